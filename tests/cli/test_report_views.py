"""Reports as text: what they say without color and without Unicode."""

import pytest

from kcap.cli.report_formats import text
from kcap.cli.report_views import VIEWS, histogram
from kcap.reports.definition import EDGES_NS
from kcap.reports.text import Style
from tests.cli.reporting import COLUMNS, json_of

ASCII = Style(100, color=False, unicode=False)


def test_every_report_has_a_view() -> None:
    assert VIEWS.keys() == COLUMNS.keys()


@pytest.mark.parametrize("report", VIEWS)
def test_a_terminal_that_knows_ascii_gets_ascii(report: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = json_of(capsys, report, "quota-3.9.pcap")
    document = VIEWS[report](told, ASCII, ["api"] if report in ("latency", "stats") else [], ["x.pcap"])
    lines = "\n".join(text(document, ASCII))
    assert lines.replace("…", "").isascii()
    assert "\x1b" not in lines


def test_the_histogram_shows_each_class_with_its_count() -> None:
    counts = [0] * 17
    counts[6], counts[9] = 40, 1
    rows = histogram([{"histogram": counts}], EDGES_NS, ASCII).rows
    assert [(row["low"], row["high"], row["count"]) for row in rows] == [
        ("300us", "1ms", 40), ("1ms", "3ms", 0), ("3ms", "10ms", 0), ("10ms", "30ms", 1),
    ]  # fmt: skip
    assert [row["bar"][-1:] for row in rows] == ["#", "", "", "#"]
    assert histogram([{"histogram": [0] * 17}], EDGES_NS, ASCII).rows == []
