"""The digest: classes and totals are those of plain Python."""

from collections import defaultdict

import pytest
from hypothesis import given, settings

from kcap.reports.definition import ReportRequest, Row
from kcap.reports.stats import REPORT
from tests.reports.made import exchange, exchanges, report


def timed(rows: list[Row]) -> list[Row]:
    """The answered rows with `took`, which is their latency less the long poll."""
    found = [r for r in rows if r["outcome"] == "answered" and r["latency_ns"] is not None]
    return [r | {"took": r["latency_ns"] - (r["long_poll_ns"] or 0)} for r in found]


@given(rows=exchanges())
@settings(max_examples=12, deadline=None)
def test_the_report_is_plain_python_over_the_rows(rows: list[Row]) -> None:
    """Law: every row is in one class; shares add up; the worst is a row with the largest latency, the first of several."""
    reported = report(REPORT, rows)
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["api"], row["api_version"], row["client_id"]].append(row)
    assert len(reported["rows"]) == len(groups)
    whole = sum(r["took"] for r in timed(rows))
    for row in reported["rows"]:
        group = groups[row["api"], row["api_version"], row["client_id"]]
        values = [r["took"] for r in timed(group)]
        assert (row["count"], row["timed"], row["sum_ns"]) == (len(group), len(values), sum(values))
        assert row["errors"] == sum(r["error"] not in (None, "NONE") for r in group)
        assert row["request_bytes"] == sum(r["request_bytes"] or 0 for r in group)
        assert row["max_ns"] == max(values, default=None)
        assert sum(row["histogram"]) == len(values)
        assert row["share"] == (pytest.approx(sum(values) / whole, abs=1e-6) if whole else 0)
        first = min((r["connection"], r["exchange"]) for r in timed(group) if r["took"] == max(values)) if values else None
        assert row["worst"] == (f"{first[0]}.{first[1]}" if first else None)
    assert reported["totals"]["count"] == len(rows)
    assert reported["totals"]["sum_ns"] == whole
    assert (
        reported["totals"]["histogram"] == [sum(column) for column in zip(*(row["histogram"] for row in reported["rows"]))]
        or not rows
    )
    assert [row["sum_ns"] for row in reported["rows"]] == sorted((row["sum_ns"] for row in reported["rows"]), reverse=True)


def test_totals_count_a_row_of_two_topics_once() -> None:
    rows = [exchange(exchange=1, took_ms=2, topics=["a", "b"], topic_ids=[None, None]), exchange(exchange=2, took_ms=1)]
    reported = report(REPORT, rows, ReportRequest(by=("topic",)))
    assert [row["topic"] for row in reported["rows"]] == ["a", "b"]
    assert reported["totals"]["count"] == 2
    assert reported["left_out"] == {"no_topic": 1}
