"""Reports that look at several tables."""

from pathlib import Path
from typing import Any

import pytest

from kcap.reports.findings.report import check
from spark_jobs.capture import open_capture
from spark_jobs.findings import diff, findings, observed, of_ids
from spark_jobs.reports import Saved
from tests.spark_jobs.jobs import on_spark, saved


@on_spark
def test_rules_on_transactions_that_are_long_run_on_spark(spark: Any, pcaps: Path) -> None:
    """One of the queries was not SQL that Spark takes, and no other capture came to it."""
    capture = open_capture(spark, [str(pcaps / "problems" / "transaction-timed-out.pcap")], 30_000, 2)
    with observed(capture) as seen:
        rows = check(seen, ("long-transaction", "zombie-fenced"))["rows"]
    assert {(row["id"], row["who"]["transactional_id"]) for row in rows} == {
        ("long-transaction", "late39"), ("long-transaction", "late41"), ("zombie-fenced", "late39"),
    }  # fmt: skip


@on_spark
def test_reports_of_saved_tables_are_those_of_captures(spark: Any, pcaps: Path, tmp_path: Path) -> None:
    """Law: a scan and what was saved of the same capture give the same findings, groups and transactions, and no difference."""
    capture = open_capture(spark, [str(pcaps / "java-transactions.pcap")], 30_000, 2)
    stored = Saved(spark, saved(spark, tmp_path, str(pcaps / "java-transactions.pcap")))
    for name in ("groups", "transactions"):
        one, two = of_ids(capture, name), of_ids(stored, name)
        assert one["rows"] == two["rows"], name
        assert one["captures"] == ["java-transactions.pcap"]
        assert one["rows"]
        assert of_ids(capture, name, ["nothing"])["rows"] == []
    assert findings(capture)["rows"] == findings(stored)["rows"]
    assert findings(capture, ["commit-storm"])["judged"] == 1
    made = diff(stored, capture)
    assert made["report"] == "diff"
    assert not [row for row in made["rows"] if row["significant"]]


@on_spark
@pytest.mark.parametrize(
    ("name", "rule"),
    [("sequence-gap", "sequence-errors"), ("batches-split", "message-too-large"), ("transaction-left", "hanging-transaction"),
     ("broker-unavailable", "broker-unavailable"), ("rebalance-loop-848", "rebalance-loop"), ("consumer-killed", "member-lost"),
     ("static-member-fenced", "static-member-fenced"),
     ("sequence-twice", "sequence-errors")],
)  # fmt: skip
def test_rules_with_queries_of_their_own_run_on_spark(spark: Any, pcaps: Path, name: str, rule: str) -> None:
    path = str(pcaps / "problems" / f"{name}.pcap")
    with observed(open_capture(spark, [path], 30_000, 2)) as seen:
        (row,) = check(seen, (rule,))["rows"]
    assert (row["id"], row["severity"] in ("high", "medium")) == (rule, True)


@on_spark
def test_the_rule_on_batches_that_may_stand_twice_runs_on_spark(spark: Any, pcaps: Path) -> None:
    with observed(open_capture(spark, [str(pcaps / "problems" / "retries-late.pcap")], 30_000, 2)) as seen:
        rows = check(seen, ("retries-duplicate",))["rows"]
    assert [row["who"]["client_ids"] for row in rows] == [["do-aio", "do-franz", "do-kafkago", "do-sarama"]]
