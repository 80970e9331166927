"""Latencies: the percentiles are numpy's, what is left out is counted."""

from collections import defaultdict
from itertools import pairwise
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings

from kcap.reports.definition import EDGES_NS, ReportRequest, Row
from kcap.reports.latency import PERCENTILES, REPORT
from tests.reports.made import MS, exchange, exchanges, report


def plain(rows: list[Row], polls: bool) -> dict[object, list[int]]:
    groups = defaultdict(list)
    for row in rows:
        waits = (row["long_poll_ns"] or 0) > 0
        if row["outcome"] == "answered" and row["latency_ns"] is not None and (polls or not waits):
            groups[row["api"]].append(row["latency_ns"])
    return groups


def is_nearest(whole: int, exact: float) -> bool:
    """Whether a whole number is the nearest one; of a half both are, since the last bit of a float says which it is."""
    return abs(whole - exact) <= 0.5 + 1e-12 * abs(exact)


@pytest.mark.parametrize("polls", [False, True])
@given(rows=exchanges())
@settings(max_examples=12, deadline=None)
def test_the_report_is_plain_python_over_the_rows(polls: bool, rows: list[Row]) -> None:
    """Law: counts, sums, extremes, percentiles (linear interpolation, to the nearest) and histogram of every group."""
    told = report(REPORT, rows, ReportRequest(long_polls=polls))
    wanted = plain(rows, polls)
    assert {row["api"] for row in told["rows"]} == {row["api"] for row in rows}
    for row in told["rows"]:
        values = wanted.get(row["api"], [])
        assert row["count"] == len(values) == sum(row["histogram"])
        assert row["unanswered"] == sum(r["outcome"] == "unanswered" and r["api"] == row["api"] for r in rows)
        assert row["sum_ns"] == sum(values)
        assert (row["min_ns"], row["max_ns"]) == ((min(values), max(values)) if values else (None, None))
        for name, quantile in PERCENTILES.items():
            assert is_nearest(row[name], np.percentile(values, quantile * 100)) if values else row[name] is None
        edges = [float("-inf"), *EDGES_NS, float("inf")]
        assert row["histogram"] == [sum(low <= v < high for v in values) for low, high in pairwise(edges)]
    polled = [r for r in rows if r["outcome"] == "answered" and r["latency_ns"] is not None and (r["long_poll_ns"] or 0) > 0]
    assert told["left_out"].get("long_poll", 0) == (0 if polls else len(polled))
    assert sum(row["with_long_polls"]["count"] for row in told["rows"]) == sum(map(len, plain(rows, True).values()))


def test_large_percentiles_are_exact() -> None:
    rng = np.random.default_rng(7)
    values = rng.integers(0, 10**11, 5000)
    rows = [exchange(exchange=at, latency_ns=int(v)) for at, v in enumerate(values)]
    (row,) = report(REPORT, rows)["rows"]
    for name, quantile in PERCENTILES.items():
        assert row[name] == floor(np.percentile(values, quantile * 100) + 0.5)


def test_unanswered_requests_make_tails_honest() -> None:
    """Law: a request that waits counts with its age beside the answers, not among them."""
    rows = [exchange(exchange=1, took_ms=1), exchange(exchange=2, outcome="unanswered", age_ns=9000 * MS)]
    (row,) = report(REPORT, rows)["rows"]
    assert (row["count"], row["unanswered"], row["max_ns"], row["unanswered_age_ns_max"]) == (1, 1, MS, 9000 * MS)
    assert row["with_unanswered"]["p99_ns"] > 8000 * MS


def test_most_time_first_and_along_the_time() -> None:
    rows = [exchange(exchange=n, at_ms=at, took_ms=took, api=api)
            for n, (at, took, api) in enumerate([(0, 1, "A"), (1500, 7, "B"), (1600, 9, "A"), (0, 2, None)])]  # fmt: skip
    assert [row["api"] for row in report(REPORT, rows)["rows"]] == ["A", "B", None]
    timed = report(REPORT, rows, ReportRequest(by=("time:1s", "api")))["rows"]
    assert [(row["time"][17:], row["api"], row["count"]) for row in timed] == [
        ("20Z", "A", 1), ("20Z", None, 1), ("21Z", "A", 1), ("21Z", "B", 1)
    ] or [row["time"] for row in timed] == sorted(row["time"] for row in timed)  # fmt: skip
    assert len(timed) == 4


def test_the_figures_over_time_hold_every_answer() -> None:
    rows = [exchange(exchange=n, at_ms=n * 10, took_ms=n) for n in range(1, 101)]
    series = report(REPORT, rows)["over_time"]
    assert sum(series["count"]) == 100
    assert max(value for value in series["max_ns"] if value) == 100 * MS
    assert report(REPORT, [])["over_time"] is None


def test_doubtful_times_are_told() -> None:
    rows = [exchange(exchange=1, took_ms=1, flags=["clock", "retransmitted"]), exchange(exchange=2, took_ms=1)]
    assert report(REPORT, rows)["flagged"] == {"clock": 1, "retransmitted": 1}
