"""From an input to a report."""

from pathlib import Path

import pytest

from kcap.errors import UsageError
from kcap.reports import latency, slow
from kcap.reports.definition import ReportRequest
from kcap.reports.run import columns_of, run
from kcap.reports.source import ReportInput


def test_the_head_of_every_report(pcaps: Path) -> None:
    told = run(latency.REPORT, ReportInput([str(pcaps / "aiokafka.pcap")]), ReportRequest(top=2))
    assert list(told)[:4] == ["report", "captures", "rows", "left_out"]
    assert (told["report"], told["captures"], len(told["rows"])) == ("latency", ["aiokafka.pcap"], 2)


def test_only_columns_that_are_looked_at_are_read() -> None:
    assert "topics" not in columns_of(latency.REPORT, ReportRequest())
    assert {"topics", "topic_ids"} <= set(columns_of(latency.REPORT, ReportRequest(by=("topic",))))


def test_a_grouping_where_there_are_no_groups() -> None:
    with pytest.raises(UsageError, match="no groups"):
        run(slow.REPORT, ReportInput(["nothing"]), ReportRequest(by=("api",)))
