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
from tests.reports.made import exchanges, report


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
