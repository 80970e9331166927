"""Reports as CSV, Markdown and HTML."""

import csv
import io
from html.parser import HTMLParser

import pytest

from kcap.cli.report_pages import cell, csv_text, html, markdown
from kcap.reports.definition import Row
from tests.cli.reporting import COLUMNS, json_of

TOLD: Row = {
    "report": "errors", "captures": ["<x>.pcap"], "left_out": {"no_error": 3},
    "rows": [{"error": "A|B", "topics": ["a", None], "count": 2, "max_ns": 1_500_000, "request_bytes": 2000, "none": None}],
}  # fmt: skip


def test_csv_has_every_value_as_it_is() -> None:
    told = csv_text(TOLD | {"rows": [TOLD["rows"][0] | {"inner": {"a": 1}, "storm": True}]})
    assert list(csv.DictReader(io.StringIO(told))) == [
        {"error": "A|B", "topics": "a;", "count": "2", "max_ns": "1500000", "request_bytes": "2000", "none": "", "inner.a": "1",
         "storm": "true"}
    ]  # fmt: skip


def test_markdown_escapes_and_aligns() -> None:
    lines = markdown(TOLD).splitlines()
    assert lines[2] == "| error | topics | count | max | request_bytes |"
    assert lines[3] == "|---|---|---:|---:|---:|"
    assert lines[4].startswith("| A\\|B | a, None | 2 | 1.50ms | 2.0 kB |")
    assert lines[-1] == "Left out: 3 without an error."


def test_no_rows() -> None:
    assert "No rows." in markdown(TOLD | {"rows": []})
    assert csv_text(TOLD | {"rows": []}).strip() == ""


@pytest.mark.parametrize("report", COLUMNS)
def test_html_is_well_formed(report: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Law: every element is closed, and text of the capture is text."""
    depth: list[str] = []

    class Checker(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in ("meta", "rect", "line", "circle"):
                depth.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag not in ("meta", "rect", "line", "circle"):
                assert depth.pop() == tag

    page = html(json_of(capsys, report, "quota-3.9.pcap"), ())
    Checker().feed(page)
    assert depth == []
    assert "&lt;x&gt;.pcap" in html(TOLD, ())


def test_cells() -> None:
    assert cell("first_ns", 1_795_240_800_000_000_000) == "2026-11-21T06:00:00.000Z"
    assert cell("share", 0.5) == "50.0%"
    assert cell("api_version", 1000) == "1000"
    assert cell("count", 1000) == "1,000"
