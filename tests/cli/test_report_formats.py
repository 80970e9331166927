"""Formats of a report: each says what the others say."""

import csv
import io
import json
import re
from html import unescape
from html.parser import HTMLParser

import pytest

from kcap.cli.main import main
from kcap.cli.report_formats import BARS, Commands, Document, Section, Sentences, csv_text, html, markdown, style_of, text
from kcap.cli.report_views import VIEWS
from kcap.reports.definition import Row, key_of, report_of
from kcap.reports.text import UNLIMITED, Style, TextColumn
from tests.cli.reporting import COLUMNS, json_of
from tests.cli.running import PCAPS

WIDE = Style(UNLIMITED, color=False, unicode=True)
MADE: Row = {
    "report": "errors", "captures": ["<x>.pcap"], "left_out": {"no_error": 3}, "retries": [], "over_time": None,
    "unanswered": [{"api": "Fetch", "age_ns_max": 7}],
    "rows": [{"error": "A|B", "topics": ["a", None], "count": 2, "inner": {"a": 1}, "storm": True}],
}  # fmt: skip
COLUMN = TextColumn("error", lambda row: str(row["error"]), right=False)
COUNT = TextColumn("count", lambda row: str(row["count"]))
NOTHING = TextColumn("nothing", lambda _row: "", rank=1)


def page(*blocks: Sentences | Section | Commands) -> Document:
    return Document("errors: <x>.pcap", blocks)


def test_csv_is_one_table_with_every_value_as_it_is() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(MADE))))
    assert [{name: value for name, value in row.items() if value} for row in rows] == [
        {"section": "rows", "error": "A|B", "topics": "a;", "count": "2", "inner.a": "1", "storm": "true"},
        {"section": "captures", "captures": "<x>.pcap"},
        {"section": "left_out", "no_error": "3"},
        {"section": "unanswered", "api": "Fetch", "age_ns_max": "7"},
    ]


def test_markdown_escapes_and_aligns() -> None:
    lines = markdown(page(Sentences(["a *b*"]), Section(MADE["rows"], [COLUMN, COUNT, NOTHING], "all"))).splitlines()
    assert lines == [
        "# errors: \\<x\\>.pcap",
        "",
        "a \\*b\\*",
        "",
        "## all",
        "",
        "| error | count |",
        "|---|---:|",
        "| A\\|B | 2 |",
    ]


def test_text_ends_a_long_table_early_and_says_so() -> None:
    document = page(Section([MADE["rows"][0]] * 12, [COLUMN, COUNT], "all", most=10), Sentences(["a", "b"], "title", most=1))
    lines = text(document, Style(80, color=False, unicode=True))
    assert lines[:2] == ["all", "error  count"]
    assert lines[12:] == ["  and 2 more", "", "title", "  a", "  and 1 more"]
    assert markdown(document).count("A\\|B") == 12


def test_a_narrow_terminal_gets_sentences_under_the_rows() -> None:
    section = Section(MADE["rows"], [COLUMN, COUNT], narrow=90, narrow_columns=[COUNT], narrow_text=lambda _row: "a reason")
    assert text(page(section), Style(80, color=False, unicode=True)) == ["    2", "  a reason"]


def test_a_table_without_rows() -> None:
    assert text(page(Section([], [COLUMN], empty="No rows."), Section([], [COLUMN])), WIDE) == ["No rows."]
    assert "No rows." in markdown(page(Section([], [COLUMN], empty="No rows.")))
    assert "<p>No rows.</p>" in html(page(Section([], [COLUMN], empty="No rows.")))


class Page(HTMLParser):
    """Checks that every element is closed, and collects the text."""

    def __init__(self) -> None:
        super().__init__()
        self.depth: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "rect", "line", "circle"):
            self.depth.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("meta", "rect", "line", "circle"):
            assert self.depth.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def words_of(lines: str) -> set[str]:
    """The words, without the signs that formats add."""
    return {word.strip("|*-#`") for word in lines.replace("\\", "").split()} - {""}


@pytest.mark.parametrize("report", COLUMNS)
@pytest.mark.parametrize("capture", ["quota-3.9.pcap", "broker-paused.pcap", "java-transactions.pcap"])
def test_every_format_says_all(report: str, capture: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Law: each word and figure of the text is in Markdown and in HTML; CSV has every number and name of the JSON form."""
    result = json_of(capsys, report, capture)
    document = VIEWS[report](result, WIDE, [key_of(name) for name in report_of(report).by], ["x.pcap"])
    shown = words_of("\n".join(text(document, WIDE)))
    assert shown <= words_of(markdown(document))
    shown = {word for word in shown if not BARS.keys() >= set(word)}  # which the page draws
    parser = Page()
    parser.feed(html(document).replace("<wbr>", ""))
    assert parser.depth == []
    assert shown <= words_of(" ".join(parser.words))
    cells = {cell for row in csv.reader(io.StringIO(csv_text(result))) for value in row for cell in [value, *value.split(";")]}
    assert {value for value in leaves(result) if value not in (report, "", *result["captures"])} <= cells


def test_bars_of_a_page_are_drawn() -> None:
    """The widths of block characters are those of some other font where the page's lacks them: no text has any."""
    bar = TextColumn("course", lambda row: row["course"], right=False)
    made = html(page(Sentences(["over it: |\u2588  \u2584|", "a | b"], "title"),
                     Section([{"course": "\u2588 \u2582"}, {"course": "\u258f"}, {"course": ""}], [bar])))  # fmt: skip
    assert not set("\u2581\u2582\u2584\u2588\u258f").intersection(made)
    assert "<li>a | b</li>" in made
    assert "<td class=m></td>" in made
    outlines = re.findall(r'<svg class=m style="width:(.*?)em" viewBox="0 0 (.) 8".*?<path d="(.*?)"/></svg>', made)
    assert outlines == [
        ("2.4", "4", "M0 8V0H1V8H1V8H2V8H2V8H3V8H3V4H4V8H4Z"),
        ("1.8", "3", "M0 8V0H1V8H1V8H2V8H2V6H3V8H3Z"),
        ("0.6", "1", "M0 8V0H0.125V8H1Z"),
    ]


PARTS = {
    "errors": [("rows", ""), ("unanswered", "requests without a response"), ("retries", "retries"),
               ("stories", "leadership changes")],
    "slow": [("rows", ""), ("unanswered", "requests without a response")],
    "throttle": [("rows", "")],
}  # fmt: skip
"""Report -> keys of its JSON form that are lists of rows, and the title of the part of the document that has them."""


@pytest.mark.parametrize("report", PARTS)
@pytest.mark.parametrize("capture", ["quota-3.9.pcap", "broker-paused.pcap", "cluster-startup.pcap"])
def test_what_stands_in_json_stands_in_every_format(report: str, capture: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Law: each row of each part has its line, its table row or its list entry, and each sentence stands everywhere."""
    result = json_of(capsys, report, capture)
    document = VIEWS[report](result, WIDE, [key_of(name) for name in report_of(report).by], [])
    blocks = {block.title: block for block in document.blocks if isinstance(block, Section) or block.title}
    for key, title in PARTS[report]:
        block = blocks[title]
        assert len(block.rows if isinstance(block, Section) else block.texts) == len(result[key])
    written = [" ".join(text(document, WIDE)), unescape(html(document)), markdown(document).replace("\\", "")]
    for sentence in (row["sentence"] for key, _ in PARTS[report] for row in result[key] if "sentence" in row):
        assert all(sentence in form for form in written)


def test_health_and_totals_stand_in_every_format_of_stats(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", str(PCAPS / "quota-3.9.pcap"), "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    document = VIEWS["stats"](result, WIDE, [key_of(name) for name in report_of("stats").by], [])
    forms = [" ".join(text(document, WIDE)), unescape(html(document)), markdown(document).replace("\\", "")]
    facts = [result["health"]["sentence"], *(point["sentence"] for point in result["health"]["points"])]
    facts.append(f"{result['totals']['count']:,} exchanges on {result['totals']['connections']:,} connections")
    assert all(fact in form for fact in facts for form in forms)


def leaves(value: object) -> set[str]:
    """Every value within a result, as CSV writes it."""
    if isinstance(value, dict):
        return set().union(*map(leaves, value.values()))
    if isinstance(value, list):
        return set().union(*map(leaves, value))
    return set() if value is None else {str(value).lower() if isinstance(value, bool) else str(value)}


def test_text_of_the_capture_is_text() -> None:
    made = html(page(Section([{"error": "<b>", "count": 1}], [COLUMN, COUNT]), Commands(["kcap show '<a>'"], "<c>")))
    assert "&lt;b&gt;" in made
    assert "&lt;a&gt;" in unescape(made.replace("&", "&amp;"))
    assert re.findall(r"<b>|<a>|<c>|<x>", made) == []


def test_text_for_a_file_has_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    style = style_of("report.txt")
    assert (style.width, style.color, style.unicode) == (UNLIMITED, False, True)
    assert style.red("bad") == style.bold("bad") == "bad"


def test_the_environment_may_set_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    assert style_of(None).width == 150
