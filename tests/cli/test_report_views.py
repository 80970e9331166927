"""Reports as text: what they say without color and without Unicode; as pages: where their numbers lead."""

import html
import json
import re
import shlex
from pathlib import Path

import pytest

from kcap.cli.main import main
from kcap.cli.report_formats import text
from kcap.cli.report_views import VIEWS, histogram
from kcap.reports.definition import EDGES_NS, key_of
from kcap.reports.text import Style
from tests.cli.reporting import COLUMNS, json_of
from tests.cli.running import PCAPS

ASCII = Style(100, color=False, unicode=False)


def test_every_report_has_a_view() -> None:
    assert VIEWS.keys() == COLUMNS.keys()


@pytest.mark.parametrize("report", VIEWS)
def test_a_terminal_that_knows_ascii_gets_ascii(report: str, capsys: pytest.CaptureFixture[str]) -> None:
    reported = json_of(capsys, report, "quota-3.9.pcap")
    document = VIEWS[report](reported, ASCII, [key_of("api")] if report in ("latency", "stats") else [], ["x.pcap"])
    lines = "\n".join(text(document, ASCII))
    assert lines.replace("…", "").isascii()
    assert "\x1b" not in lines


@pytest.mark.parametrize("capture", ["quota-3.9.pcap", "java-transactions.pcap"])
def test_parts_of_the_latency_are_counted_once(capture: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The broker's share held its mute, of which the sentence above said that it takes nearly all of the time."""
    reported = json_of(capsys, "latency", capture)
    table = next(
        block for block in VIEWS["latency"](reported, ASCII, [key_of("api")], []).blocks if getattr(block, "columns", ())
    )
    parts = [column for column in table.columns if column.head in ("queue", "mute", "throttle", "broker", "network")]
    assert len(parts) == 5
    for row in reported["rows"]:
        shares = [int(text.rstrip("%")) for column in parts if (text := column.text(row)) not in ("", "<1%")]
        assert sum(shares) <= 100 + len(shares), (row["api"], shares)
    assert capture != "quota-3.9.pcap" or any(parts[1].text(row) not in ("", "<1%") for row in reported["rows"])


def test_what_a_section_lists_is_not_called_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    reported = json_of(capsys, "errors", "cut-message.pcap")
    assert reported["left_out"] == {"no_error": 1, "unanswered": 1}
    assert [row["count"] for row in reported["unanswered"]] == [1]
    assert text(VIEWS["errors"](reported, ASCII, [], []), ASCII)[-1] == "not counted: 1 exchange without an error"


def test_the_histogram_shows_each_class_with_its_count() -> None:
    counts = [0] * 17
    counts[6], counts[9] = 40, 1
    rows = histogram([{"histogram": counts}], EDGES_NS, ASCII).rows
    assert [(row["low"], row["high"], row["count"]) for row in rows] == [
        ("300us", "1ms", 40), ("1ms", "3ms", 0), ("3ms", "10ms", 0), ("10ms", "30ms", 1),
    ]  # fmt: skip
    assert [row["bar"][-1:] for row in rows] == ["#", "", "", "#"]
    assert histogram([{"histogram": [0] * 17}], EDGES_NS, ASCII).rows == []


COUNTED = frozenset({"count", "errors", "unanswered", "throttled", "long polls", "of responses", "requests"})
"""Columns of a page that count exchanges."""


@pytest.mark.parametrize(
    ("capture", "words"),
    [
        ("java-transactions.pcap", ["stats"]), ("java-transactions.pcap", ["errors"]), ("java-transactions.pcap", ["topics"]),
        ("java-transactions.pcap", ["slow", "--top", "3"]), ("quota-3.9.pcap", ["throttle"]), ("raw-frames.pcap", ["clients"]),
        ("long-polls.pcap", ["latency", "--by", "time:10s,topic", "-Y", "latency > 1ms"]),
        ("java-transactions.pcap", ["errors", "--by", "topic,partition"]),
        ("raw-frames.pcap", ["versions"]), ("fallback-0.9.pcap", ["versions", "--target", "4.0"]),
    ],
)  # fmt: skip
def test_numbers_of_a_page_lead_to_the_exchanges_that_they_count(capture: str, words: list[str], tmp_path: Path) -> None:
    """Law: a link has its place; its command is one that runs, and shows as many exchanges as the number counts."""
    page, rows = tmp_path / "page.html", tmp_path / "rows.jsonl"
    assert main([*words, str(PCAPS / capture), "-o", str(page)]) == 0
    text_ = page.read_text(encoding="utf-8")
    assert set(re.findall(r'href="#(\w+)"', text_)) == set(re.findall(r'id="(\w+)"', text_)) != set()
    numbers: dict[tuple[str, str], str] = {}
    for table in re.findall(r"<table(?: class=d)?>.*?</table>", text_, re.DOTALL):
        heads = re.findall(r"<th(?: [^>]*)?>(.*?)</th>", table)
        for row in re.findall(r"<tr(?: class=b)?>(<td.*?)</tr>", table):
            for head, cell in zip(heads, re.findall(r"<td[^>]*>(.*?)</td>", row), strict=True):
                if linked := re.fullmatch(r'<a href="#(\w+)">(.*)</a>', cell):
                    numbers[linked[1], head] = linked[2].replace(",", "")
    for place, commands in re.findall(r'<h3 id="(\w+)">.*?</h3><pre>(.*?)</pre>', text_, re.DOTALL):
        for line in html.unescape(commands).split("\n")[:3]:
            command, _, heads = line.rpartition("  # ")
            kcap, *arguments = shlex.split(command)
            assert (kcap, arguments[0]) in (("kcap", "rows"), ("kcap", "show"))
            if arguments[0] == "rows":
                assert main([*arguments, "--columns", "exchange", "--format", "jsonl", "-o", str(rows)]) == 0
                found = [json.loads(row) for row in rows.read_text(encoding="utf-8").splitlines()]
                assert found
                partitions = words[0] == "topics" or "topic,partition" in words  # which are counted, not exchanges
                counted = [head for head in heads.split(", ") if head in COUNTED and not partitions]
                assert [int(numbers[place, head]) for head in counted] == [len(found)] * len(counted)


def test_zeros_lead_nowhere_and_names_are_text(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["topics", str(PCAPS / "quota-3.9.pcap"), "-o", str(page)]) == 0
    assert not re.search(r'<a href="#\w+">0\b(?!\.)', page.read_text(encoding="utf-8"))
