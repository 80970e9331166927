"""The exchanges of a report's groups: those that count, the slowest first, a few of each group."""

from pathlib import Path

import pytest

from kcap.reports import clients, errors, latency, topics
from kcap.reports.definition import Report, ReportRequest, Row
from kcap.reports.run import run
from kcap.reports.source import ReportInput


def listed(pcaps: Path, report: Report, *by: str, most: int = 2) -> Row:
    return run(report, ReportInput([str(pcaps / "java-transactions.pcap")]), ReportRequest(by, listed=most))


@pytest.mark.parametrize(("report", "by"), [(latency.REPORT, ("api",)), (clients.REPORT, ("client_id",))])
def test_each_group_has_its_slowest_exchanges_failed_ones_first(report: Report, by: tuple[str, ...], pcaps: Path) -> None:
    result = listed(pcaps, report, *by)
    for row in result["rows"]:
        mine = [one for one in result["exchanges"] if one[by[0]] == row[by[0]]]
        assert mine
        for failed in (True, False):
            times = [one["latency_ns"] for one in mine if one["failed"] is failed]
            assert len(times) <= 2
            assert times == sorted(times, reverse=True)
        assert [one["failed"] for one in mine] == sorted((one["failed"] for one in mine), reverse=True)
        if report is latency.REPORT:
            assert max(one["latency_ns"] for one in mine) == row["with_polls_max_ns"]


def test_groups_of_partitions_list_their_own_exchanges_once(pcaps: Path) -> None:
    result = listed(pcaps, topics.REPORT, "topic", most=100)
    assert {one["topic"] for one in result["exchanges"]} == {row["topic"] for row in result["rows"]}
    names = [(one["topic"], one["name"]) for one in result["exchanges"]]
    assert len(names) == len(set(names))
    deep = listed(pcaps, errors.REPORT, "topic", "partition")
    assert all(one["failed"] for one in deep["exchanges"])
    assert {(row["topic"], row["partition"]) for row in deep["rows"]} == {
        (one["topic"], one["partition"]) for one in deep["exchanges"]
    }


def test_a_report_lists_none_unless_it_is_asked_for(pcaps: Path) -> None:
    assert "exchanges" not in listed(pcaps, latency.REPORT, most=0)
