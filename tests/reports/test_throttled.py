"""Each throttled response: as many as the report throttle counts, complied with as compliance says."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings

from kcap.reports.definition import ReportRequest, Row
from kcap.reports.run import run
from kcap.reports.source import ReportInput
from kcap.reports.throttle import REPORT as THROTTLE
from kcap.reports.throttled import REPORT
from tests.reports.made import exchange, exchanges, report


@given(rows=exchanges())
@settings(max_examples=12, deadline=None)
def test_the_sums_are_those_of_throttle(rows: list[Row]) -> None:
    """Law: rows, milliseconds, violations add up to the groups of `throttle`."""
    each, groups = report(REPORT, rows)["rows"], report(THROTTLE, rows)["rows"]
    assert len(each) == sum(row["throttled"] for row in groups)
    assert sum(row["throttle_time_ms"] for row in each) == sum(row["throttle_ms_sum"] for row in groups)
    assert sum(row["violations"] for row in each) == sum(row["violations"] for row in groups)
    assert sum(row["elsewhere"] for row in each) == sum(row["elsewhere"] for row in groups)
    assert sum(row["complied"] is True for row in each) == sum(row["complied"] for row in groups)
    assert sum(row["complied"] is not None for row in each) == sum(row["muting"] for row in groups)


@pytest.mark.parametrize(("name", "complied"), [("quota-0.10.pcap", {None: 11}), ("quota-3.9.pcap", {True: 9})])
def test_recorded_quotas(pcaps: Path, name: str, complied: dict[bool | None, int]) -> None:
    """A broker of 0.10 delays responses itself; one of 3.9 mutes the connection, on which the Java client sends nothing."""
    rows = run(REPORT, ReportInput([str(pcaps / name)]), ReportRequest())["rows"]
    assert Counter(row["complied"] for row in rows) == complied
    assert [row["at_ns"] for row in rows] == sorted(row["at_ns"] for row in rows)


def test_a_row_says_for_how_long_and_whether_the_client_waited() -> None:
    """The shortest throttle time is a millisecond; a response that the broker delayed has no verdict."""
    first: Row = {"api": "Produce", "api_key": 0, "api_version": 9, "throttle_ns": 0}
    rows = [
        exchange(exchange=1, at_ms=0, took_ms=1, throttle_time_ms=1, **first),
        exchange(exchange=2, at_ms=100, took_ms=1, throttle_time_ms=100, **first),
        exchange(exchange=3, at_ms=141, took_ms=1, throttle_time_ms=0, **first),
        exchange(exchange=4, at_ms=300, took_ms=90, throttle_time_ms=90, **first | {"throttle_ns": 90_000_000}),
    ]
    names = "exchange", "throttle_time_ms", "violations", "earliest_ms", "complied"
    assert [tuple(row[name] for name in names) for row in report(REPORT, rows)["rows"]] == [
        ("C1.1", 1, 0, None, True), ("C1.2", 100, 1, 60.0, False), ("C1.4", 90, 0, None, None),
    ]  # fmt: skip
