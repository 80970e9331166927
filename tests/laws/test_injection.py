"""Names that a stranger chose are text in every output for people: nothing in them is obeyed, drawn or run.

Client ids, topics, hosts, groups, members, transactional ids and the capture's own file name hold control characters, direction
marks, markup and formulas.
"""

import csv
import io
import json
import re
import struct
from html.parser import HTMLParser
from itertools import count
from pathlib import Path

import pytest

from tests.cli.running import run_here
from tests.support.messages import (
    Story,
    api_versions,
    api_versions_answer,
    began,
    fetch,
    fetch_answer,
    many,
    metadata,
    metadata_answer,
    saved,
    text,
)
from tests.support.wire import request, response

EVIL = "\x1b]0;t\x07\x9b31m\u202e\u2066<img src=x onerror=p()>|`*_[a](javascript:b)&lt;\u2028\r\n# h http://e.vil"
FORMULA = "=cmd|' /c calc'!A1"
PEOPLE = ("table", "markdown", "html")
REPORTS = ("latency", "stats", "slow", "throttle", "errors", "topics", "clients")
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Characters that a terminal obeys, or that hide or turn text."""
RAW_TAGS = re.compile(r"<img|<a ", re.IGNORECASE)


class Tags(HTMLParser):
    """The elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        inside = tag == "a" and len(attrs) == 1 and re.fullmatch(r"#x\d+", attrs[0][1] or "") is not None
        assert inside or not any(name.startswith("on") or name in ("href", "src") for name, _ in attrs), (tag, attrs)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> str:
    name = "e\x1b[31m\u202e<img src=x>|`a`_b_.pcap"
    return str(saved(tmp_path_factory.mktemp("evil") / name, *hostile_stories()))


def hostile_stories() -> tuple[Story, Story, Story]:
    """Three connections with such names in every place."""
    story = began()
    story.ask(api_versions(1, EVIL[:60], EVIL[60:], client=EVIL), api_versions_answer(1, {1: (0, 13), 3: (0, 12)}))
    topics: dict[bytes, str | None] = {bytes(range(16)): EVIL}
    story.ask(metadata(2, EVIL), metadata_answer(2, [(1, EVIL, 9092)], EVIL, topics))
    for correlation in range(3, 9):
        story.ask(fetch(correlation, client=EVIL), fetch_answer(correlation, throttle=5), after_ms=600)
    other = began(port=40_001)
    other.ask(api_versions(1, client=FORMULA), api_versions_answer(1, {1: (0, 13)}))
    return story, other, coordinated()


def coordinated() -> Story:
    """A group that is joined and left by errors, and transactions of a producer that is fenced."""
    story, evil, correlation = began(port=40_002), text(EVIL), count(1)
    one, three = struct.pack(">i", 0), struct.pack(">qh", 7, 1)
    for generation in range(3):
        number = struct.pack(">i", generation)
        joined = bytes(2) + number + evil * 3 + many([evil + many([])])
        for key, asked, reported in (
            (11, evil + number + evil + text("consumer") + many([evil + many([])]), joined),
            (14, evil + number + evil + many([]), bytes(6)),
            (12, evil + number + evil, b"\0\x1b"),
            (22, evil + bytes(4), bytes(6) + struct.pack(">qh", 7, generation)),
            (24, evil + three + many([evil + many([one])]), bytes(4) + many([evil + many([one + bytes(2)])])),
            (26, evil + three + b"\1", bytes(4) + (b"\0\0", b"\0\x2f", b"\0\x35")[generation]),
        ):
            at = next(correlation)
            story.ask(request(key, 0, at, asked, EVIL), response(at, reported), after_ms=50)
    return story


def harmless(output: str, form: str) -> None:
    """Nothing raw in an output for people."""
    assert not HIDDEN.search(output), repr(HIDDEN.search(output))
    if form == "html":
        page = Tags()
        page.feed(output)
        assert "img" not in page.found
    if form == "markdown":
        outside = re.sub(r"(?s)^```$.*?^```$", "", output, flags=re.MULTILINE)
        assert not re.search(r"(?<!\\)<img", outside)
        assert "](javascript" not in outside.replace("\\]", "")


def shown(*words: str) -> str:
    """What a command writes."""
    code, output = run_here(*words)
    assert code in (0, 1), output
    return output


@pytest.mark.parametrize("form", PEOPLE)
def test_tables_show_names_as_text(capture: str, form: str) -> None:
    for table in (
        "exchanges",
        "connections",
        "captures",
        "weirds",
        "partitions",
        "negotiations",
        "tls_turns",
        "topic_names",
        "brokers",
    ):
        harmless(shown("rows", capture, "--table", table, "--format", form), form)


@pytest.mark.parametrize("form", PEOPLE)
def test_reports_show_names_as_text(capture: str, form: str) -> None:
    for report in REPORTS:
        harmless(shown(report, capture, "--format", form), form)
    harmless(shown("versions", capture, "--format", form), form)
    for report in ("check", "groups", "transactions", "diff"):
        paths = [capture] * (1 + (report == "diff"))
        written = shown(report, *paths, "--format", "text" if form == "table" else form)
        assert "img src" in written or report == "diff"
        harmless(written, form)


def test_messages_and_details_show_names_as_text(capture: str, tmp_path: Path) -> None:
    uid = shown("rows", capture, "--columns", "connection", "--format", "tsv").split()[1] + ".2"
    for words in (("health", capture), ("show", capture, uid), ("show", capture, uid, "--hex"), ("connections", capture)):
        harmless(shown(*words), "table")
    harmless(shown("latency", capture, "--plot", str(tmp_path / "a.svg")), "table")
    harmless((tmp_path / "a.svg").read_text(), "html")
    for words in (
        ("sql", "select '\x1b[31m' || nothing from exchanges", capture),
        ("rows", capture + "\x1b[2J"),
        ("rows", "-Y", "\x1b<", capture),
    ):
        code, output = run_here(*words)
        assert code in (2, 3), output
        harmless(output, "table")


def test_json_is_harmless_on_a_terminal(capture: str) -> None:
    """Law: what a terminal obeys is escaped in JSON, whose values stay the same."""
    uid = shown("rows", capture, "--columns", "connection", "--format", "tsv").split()[1] + ".2"
    words = [(report, capture, "--format", "json") for report in (*REPORTS, "versions", "check", "groups", "connections")]
    words += [("rows", capture, "--format", form) for form in ("json", "jsonl")]
    words += [("rows", capture, "-T", "ek"), ("check", capture, "--format", "sarif"), ("show", capture, uid, "--json")]
    for one in words:
        written = shown(*one)
        assert not HIDDEN.search(written), one
        assert json.loads(written.splitlines()[0] if one[-1] in ("jsonl", "ek") else written)


def test_fields_are_one_line_a_row(capture: str) -> None:
    output = shown("rows", capture, "-T", "fields", "-e", "client_id", "-e", "topics", "-E", "separator=;")
    harmless(output, "table")
    assert len(output.splitlines()) == 27


def test_csv_is_raw_for_programs_and_safe_on_request(capture: str) -> None:
    def names(*more: str) -> set[str]:
        text = shown("rows", capture, "--format", "csv", "--columns", "client_id,latency_ns", *more)
        return {row["client_id"] for row in csv.DictReader(io.StringIO(text, newline=""))}

    assert names() == {EVIL, FORMULA}
    assert names("--csv-safe") == {EVIL, "'" + FORMULA}
    report = shown("clients", capture, "--format", "csv", "--csv-safe")
    assert FORMULA in report
    assert not re.search(r"(^|,)\"?=", report, re.MULTILINE)
