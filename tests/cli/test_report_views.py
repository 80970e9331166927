"""Reports as text: what they say without color and without Unicode."""

import pytest

from kcap.cli.report_views import VIEWS, bars
from kcap.reports.definition import EDGES_NS
from kcap.reports.text import Style
from tests.cli.reporting import COLUMNS, json_of

ASCII = Style(100, color=False, unicode=False)


def test_every_report_has_a_view() -> None:
    assert VIEWS.keys() == COLUMNS.keys()


@pytest.mark.parametrize("report", VIEWS)
def test_a_terminal_that_knows_ascii_gets_ascii(report: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = json_of(capsys, report, "quota-3.9.pcap")
    text = "\n".join(VIEWS[report](told, ASCII, ["api"] if report in ("latency", "stats") else [], ["x.pcap"]))
    assert text.replace("…", "").isascii()
    assert "\x1b" not in text


def test_the_histogram_shows_each_class_with_its_count() -> None:
    counts = [0] * 17
    counts[6], counts[9] = 40, 1
    told = bars({"rows": [{"histogram": counts}], "histogram_edges_ns": list(EDGES_NS)}, ASCII)
    assert told[1].split()[:4] == ["300us", "-", "1ms", "40"]
    assert told[-1].rstrip().endswith("|") or told[-1].rstrip().endswith("#")
    assert len(told) == 5
