"""Reports as text: what they say without color and without Unicode."""

import pytest

from kcap.cli.report_text import Style
from kcap.cli.report_views import VIEWS, bars, duration_short, folded, story
from kcap.reports.shape import EDGES_NS, Row
from tests.cli.reporting import COLUMNS, json_of

ASCII = Style(100, color=False, unicode=False)
LOST: Row = {
    "at_ns": 1_795_240_800_000_000_000, "client_id": "app", "api": "Produce", "topic": "t", "partition": 0,
    "error": "NOT_LEADER_OR_FOLLOWER", "metadata_after_ns": 5_000_000, "good_after_ns": 9_000_000, "tries": 1,
}  # fmt: skip


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


def test_edges() -> None:
    assert [duration_short(edge) for edge in EDGES_NS[::5]] == ["1us", "300us", "100ms", "30s"]


def test_a_series_folds_without_losing_its_peak() -> None:
    assert folded([1, None, 9, 2], 2, max) == [1, 9]
    assert folded([None, None], 1, max) == [None]


def test_stories_are_sentences() -> None:
    assert story(LOST).endswith("asked for Metadata after 5.00ms, was answered well after 9.00ms (1 more try)")
    assert story(LOST | {"good_after_ns": None, "metadata_after_ns": None}).endswith("no good answer in this capture")
