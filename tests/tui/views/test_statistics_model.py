"""Latencies, the digest, the slowest: every count leads to as many exchanges."""

import pytest

from kcap.output.grid import duration
from kcap.reports.definition import ReportRequest, Row, keys_of, report_of
from kcap.tui.views import statistics_model as model
from kcap.tui.views.sheet import Bars
from kcap.tui.views.statistics import Statistics
from tests.tui.views.laws import cases, lines_hold, passing, sheet_holds
from tests.tui.views.stub import StubBook

CAPTURES = ("java-transactions.pcap", "long-polls.pcap", "quota-0.10.pcap")


@pytest.mark.parametrize(("name", "by"), cases(CAPTURES, Statistics.GROUPINGS))
def test_every_count_leads_to_as_many_exchanges(name: str, by: tuple[str, ...]) -> None:
    book, asked = StubBook(name), ReportRequest(by)
    for report, make in ((report_of("latency"), model.latency), (report_of("stats"), model.digest)):
        sheet = make(book.report(report, asked), keys_of(report, asked))
        assert sheet_holds(sheet, name) >= len(sheet.rows) > 0


@pytest.mark.parametrize("name", CAPTURES)
def test_the_slowest(name: str) -> None:
    sheet = model.slow(StubBook(name).report(report_of("slow"), ReportRequest(top=20)))
    sheet_holds(sheet, name)
    latencies = [row["timed_ns"] for row in sheet.rows]
    assert latencies == sorted(latencies, reverse=True)
    assert [sheet.fields[0].text(row) for row in sheet.rows] == [duration(latency) for latency in latencies], (
        "the order is shown"
    )
    assert sheet.detail is not None
    for row in sheet.rows:
        lines_hold(sheet.detail(row, 60), 80)


def test_each_class_of_a_histogram_leads_to_its_exchanges() -> None:
    """Law: the bars of a histogram add up to the row's count, and each leads to as many exchanges as it is long."""
    name, asked = "java-transactions.pcap", ReportRequest()
    report = report_of("latency")
    sheet = model.latency(StubBook(name).report(report, asked), keys_of(report, asked))
    assert sheet.charts is not None
    for row in sheet.rows:
        bars = sheet.charts(row)[0]
        assert sum(value or 0 for value in bars.values) == row["count"]
        for value, down in zip(bars.values, bars.downs):
            assert isinstance(down, str)
            assert passing(name, down) == value


def test_steps_of_time_hold_all_answers() -> None:
    name, report = "java-transactions.pcap", report_of("latency")
    result = StubBook(name).report(report, ReportRequest())
    p99, answers = model.over_time(result["over_time"])
    assert sum(value or 0 for value in answers.values) == sum(row["count"] for row in result["rows"])
    found = [passing(name, str(down)) for down in answers.downs]
    off = sum(abs(one - int(value or 0)) for one, value in zip(found, answers.values))
    assert off <= 2, "a step ends at a nanosecond, `time` knows microseconds"
    assert p99.logarithmic
    assert model.over_time(None) == []


def test_parts_of_a_latency_are_drawn() -> None:
    row = {"exchange": "C1.7", "queue_ns": 3_000_000, "service_ns": 1_000_000, "rtt_ns": 0}
    bars = model.spent(row)
    assert isinstance(bars, Bars)
    assert (list(bars.labels), list(bars.values), list(bars.downs)) == (
        ["queue", "broker"],
        [3_000_000, 1_000_000],
        [("C1", 7)] * 2,
    )


def test_each_part_of_the_time_is_counted_once() -> None:
    """The mute after a throttled response stood in the broker's time too: `broker 8.25s, mute 8.25s` of 8.25 s."""
    row: Row = {"exchange": "C1.7"}
    row |= {"queue_ns": 2_000, "service_ns": 9_000, "rtt_ns": 1_000, "muted_ns": 6_000, "long_poll_ns": 1_000}
    bars = model.spent(row)
    assert dict(zip(bars.labels, bars.values)) == {
        "queue": 2_000, "broker": 2_000, "network": 1_000, "long poll": 1_000, "mute": 6_000,
    }  # fmt: skip
    sums = {f"{name}_sum": value for name, value in row.items() if name != "exchange"}
    assert model.apart(sums, "_sum") == model.apart(row)
