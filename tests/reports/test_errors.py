"""Errors: plain Python over the rows; partitions; what stands beside."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings

from kcap.errors import UsageError
from kcap.reports.definition import ReportRequest, Row
from kcap.reports.errors import REPORT, STORM
from kcap.reports.run import run
from kcap.reports.source import ReportInput
from tests.reports.made import exchange, exchanges, partition, report


@given(rows=exchanges())
@settings(max_examples=12, deadline=None)
def test_the_report_is_plain_python_over_the_rows(rows: list[Row]) -> None:
    """Law: every exchange with an error counts once; the example is the first by time."""
    reported = report(REPORT, rows)
    bad = [row for row in rows if row["error"] not in (None, "NONE")]
    wanted = Counter((row["error"], row["api"], row["client_id"]) for row in bad)
    assert {(r["error"], r["api"], r["client_id"]): r["count"] for r in reported["rows"]} == dict(wanted)
    for row in reported["rows"]:
        group = [r for r in bad if (r["error"], r["api"], r["client_id"]) == (row["error"], row["api"], row["client_id"])]
        times = [r["request_first_ns"] for r in group if r["request_first_ns"] is not None]
        assert (row["first_ns"], row["last_ns"]) == (min(times, default=None), max(times, default=None))
        uid, _, number = row["example"].rpartition(".")
        (example,) = [r for r in group if (r["connection"], r["exchange"]) == (uid, int(number))]
        assert example["request_first_ns"] == row["first_ns"]
    silent = Counter((r["api"], r["client_id"], r["reason"]) for r in rows if r["outcome"] == "unanswered")
    assert {(r["api"], r["client_id"], r["reason"]): r["count"] for r in reported["unanswered"]} == dict(silent)


def test_partitions_that_the_first_error_hides() -> None:
    rows = [exchange(exchange=1, took_ms=1, error="NOT_LEADER_OR_FOLLOWER", error_code=6, error_count=2)]
    parts = [
        partition(topic="a", partition=0, error="NOT_LEADER_OR_FOLLOWER"), partition(topic="a", partition=1, error="NONE"),
        partition(topic="a", partition=2, error="INVALID_TIMESTAMP"), partition(topic_id="id", error="INVALID_TIMESTAMP"),
    ]  # fmt: skip
    reported = report(REPORT, rows, ReportRequest(by=("topic", "partition", "error")), parts)["rows"]
    assert [(r["topic"], r["partition"], r["error"]) for r in reported] == [
        ("a", 0, "NOT_LEADER_OR_FOLLOWER"), ("a", 2, "INVALID_TIMESTAMP"), ("id", 0, "INVALID_TIMESTAMP"),
    ]  # fmt: skip
    assert report(REPORT, rows, None, parts)["rows"][0]["count"] == 1


def test_without_partitions_topics_are_those_of_the_exchange() -> None:
    rows = [exchange(took_ms=1, error="X", topics=["a"], topic_ids=[None])]
    assert report(REPORT, rows, ReportRequest(by=("topic",)))["rows"][0]["topic"] == "a"
    with pytest.raises(UsageError, match="partition"):
        report(REPORT, rows, ReportRequest(by=("partition",)))


def test_a_storm() -> None:
    rows = [exchange(exchange=n, at_ms=n, took_ms=1, error="X") for n in range(STORM)]
    (row,) = report(REPORT, rows)["rows"]
    assert row["storm"]
    assert row["peak_per_s"] == STORM


def test_a_broker_that_was_stopped(pcaps: Path) -> None:
    """Requests without a response stand beside the errors, with their age."""
    reported = run(REPORT, ReportInput([str(pcaps / "broker-paused.pcap")]), ReportRequest())
    assert {row["reason"] for row in reported["unanswered"]} <= {"capture_end", "fin", "rst", "lost_in_capture", "skipped"}
    assert max(row["age_ns_max"] for row in reported["unanswered"]) > 2_000_000_000


def test_what_has_no_error_is_counted_by_what_became_of_it() -> None:
    kinds: list[Row] = [
        *[{"error": "NONE"}] * 5, *[{"error": None}] * 2, *[{"outcome": "unanswered", "reason": "fin"}] * 3,
        *[{"outcome": "one_way"}] * 4, {"outcome": "orphan"}, {"outcome": "orphan", "error": "X"}, {"error": "X"},
    ]  # fmt: skip
    rows = [exchange(exchange=number, at_ms=number, **kind) for number, kind in enumerate(kinds)]
    reported = report(REPORT, rows)
    assert reported["left_out"] == {"no_error": 5, "no_error_field": 2, "unanswered": 3, "one_way": 4, "orphan": 1}
    assert [row["count"] for row in reported["rows"]] == [2]
