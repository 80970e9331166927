"""Latencies: the percentiles are numpy's, no answered exchange is left out, the verdict says what the numbers prove."""

from collections import defaultdict
from itertools import pairwise
from math import floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ibis.expr.operations import MultiQuantile

from kcap.reports.definition import EDGES_NS, ReportRequest, Row
from kcap.reports.latency import PERCENTILES, REPORT, STEPS, half_of, percent
from tests.reports.made import BASE_NS, MS, exchange, exchanges, report, tables


def plain(rows: list[Row], polls: bool) -> dict[object, list[int]]:
    groups = defaultdict(list)
    for row in rows:
        if row["outcome"] == "answered" and row["latency_ns"] is not None:
            groups[row["api"]].append(row["latency_ns"] - (0 if polls else row["long_poll_ns"] or 0))
    return groups


def is_nearest(whole: int, exact: float) -> bool:
    """Whether a whole number is the nearest one; of a half both are, since the last bit of a float says which it is."""
    return abs(whole - exact) <= 0.5 + 1e-12 * abs(exact)


@pytest.mark.parametrize("polls", [False, True])
@given(rows=exchanges())
@settings(max_examples=12, deadline=None)
def test_the_report_is_plain_python_over_the_rows(polls: bool, rows: list[Row]) -> None:
    """Law: counts, sums, extremes, percentiles (linear interpolation, to the nearest) and histogram of every group."""
    made = report(REPORT, rows, ReportRequest(long_polls=polls))
    wanted = plain(rows, polls)
    assert {row["api"] for row in made["rows"]} == {row["api"] for row in rows}
    for row in made["rows"]:
        values = wanted.get(row["api"], [])
        assert row["count"] == len(values) == sum(row["histogram"])
        assert row["unanswered"] == sum(r["outcome"] == "unanswered" and r["api"] == row["api"] for r in rows)
        assert row["sum_ns"] == sum(values)
        assert (row["min_ns"], row["max_ns"]) == ((min(values), max(values)) if values else (None, None))
        for name, quantile in PERCENTILES.items():
            assert is_nearest(row[name], np.percentile(values, quantile * 100)) if values else row[name] is None
        edges = [float("-inf"), *EDGES_NS, float("inf")]
        assert row["histogram"] == [sum(low <= v < high for v in values) for low, high in pairwise(edges)]
        whole = plain(rows, True).get(row["api"], [])
        assert row["with_polls_max_ns"] == max(whole, default=None)
        assert is_nearest(row["with_polls_p99_ns"], np.percentile(whole, 99)) if whole else row["with_polls_p99_ns"] is None


@given(rows=exchanges())
@settings(max_examples=8, deadline=None)
def test_the_busiest_groups_are_those_of_the_whole_report(rows: list[Row]) -> None:
    """Law: groups with most time, each with the figures that it has among all, also where what names it is null."""
    by = ("client_id", "api")
    whole = report(REPORT, rows, ReportRequest(by))
    some = report(REPORT, rows, ReportRequest(by, busiest=2))
    named = {tuple(row[name] for name in by): row for row in whole["rows"]}
    assert all(named[tuple(row[name] for name in by)] == row for row in some["rows"])
    sums = sorted((row["sum_ns"] for row in whole["rows"]), reverse=True)
    assert sorted((row["sum_ns"] for row in some["rows"]), reverse=True) == sums[:2]
    assert {name: some[name] for name in some if name != "rows"} == {name: whole[name] for name in whole if name != "rows"}


def test_large_percentiles_are_exact() -> None:
    rng = np.random.default_rng(7)
    values = rng.integers(0, 10**11, 5000)
    rows = [exchange(exchange=at, latency_ns=int(v)) for at, v in enumerate(values)]
    (row,) = report(REPORT, rows)["rows"]
    for name, quantile in PERCENTILES.items():
        assert row[name] == floor(np.percentile(values, quantile * 100) + 0.5)


def test_no_statement_holds_the_values_of_two_quantiles() -> None:
    """An engine cannot write them elsewhere: five million exchanges take 40 MB and more for each."""
    made = REPORT.build(tables([exchange()]), ReportRequest())
    counts = [len(expression.op().find(MultiQuantile)) for expression in made.values()]
    assert max(counts) == 1
    assert sum(counts) == 4


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


def test_times_less_than_exact_are_counted() -> None:
    rows = [exchange(exchange=1, took_ms=1, flags=["clock", "retransmitted"]), exchange(exchange=2, took_ms=1)]
    assert report(REPORT, rows)["flagged"] == {"clock": 1, "retransmitted": 1}


def test_the_verdict_names_what_dominates_and_when() -> None:
    """Client `app` takes 90 ms of 100 ms, 80 of them in the queue, within the first tenth of the capture."""
    rows = [
        exchange(exchange=1, at_ms=0, took_ms=80, queue_ns=80 * MS, service_ns=0, api="Produce"),
        exchange(exchange=2, at_ms=5, took_ms=10, api="Produce"),
        exchange(exchange=3, at_ms=100, took_ms=10, api="Fetch"),
    ]
    found = report(REPORT, rows)["verdict"]
    assert (found["api"], found["client_id"], found["count"], found["share"]) == ("Produce", "app", 2, 0.9)
    assert (found["part"], found["part_share"]) == ("queue", pytest.approx(8 / 9, abs=1e-6))
    assert found["last_ns"] - found["first_ns"] <= 2 * MS
    assert found["sentence"].startswith(
        "Produce of client app (10.0.0.1) at broker 10.0.0.2:9092 takes 90% of the summed latency"
    )
    assert "89% of that is spent in the queue" in found["sentence"]
    assert "2% of the captured time" in found["sentence"]


def test_the_verdict_does_not_say_that_something_dominates_which_does_not() -> None:
    rows = [exchange(exchange=n, at_ms=n, took_ms=10 - n, api=api) for n, api in enumerate("ABC")]
    sentence = report(REPORT, rows)["verdict"]["sentence"]
    assert "has the largest share, but only 37%" in sentence
    assert report(REPORT, [])["verdict"]["sentence"] == "No request was answered."
    waiting = [exchange(outcome="unanswered", age_ns=9000 * MS)]
    assert report(REPORT, waiting)["verdict"]["sentence"] == (
        "No request was answered. 1 request has no response, the oldest after 9.00s."
    )


@given(st.lists(st.integers(0, 5), min_size=STEPS, max_size=STEPS))
@settings(max_examples=30, deadline=None)
def test_half_of_the_time_lies_in_the_shortest_run_of_steps(sums: list[int]) -> None:
    """Law: no shorter run of steps has half of the sum."""
    rows: list[Row] = [{"step": at, "sum_ns": value, "first_ns": 0, "last_ns": 599} for at, value in enumerate(sums)]
    first, last, share = half_of(rows, sum(sums))
    if not sum(sums):
        assert (first, last, share) == (None, None, 0.0)
        return
    assert first is not None
    assert last is not None
    width = round(share * STEPS)
    assert sum(sums[first // 10 : last // 10]) * 2 >= sum(sums)
    assert all(sum(sums[at : at + width - 1]) * 2 < sum(sums) for at in range(STEPS))


def test_a_share_is_never_rounded_to_all_or_nothing() -> None:
    assert [percent(share) for share in (0.0, 0.001, 0.5, 0.999, 1.0)] == ["0%", "<1%", "50%", ">99%", "100%"]


def test_an_exchange_is_a_long_poll_where_the_broker_waited() -> None:
    rows = [exchange(exchange=number, took_ms=1, long_poll_ns=poll) for number, poll in enumerate((None, 0, 1, 7))]
    assert report(REPORT, rows)["rows"][0]["long_polls"] == 2


@pytest.mark.parametrize("hours", [1, 19, 20, 30 * 24, 20 * 365 * 24])
def test_steps_divide_the_time_of_any_capture_evenly(hours: int) -> None:
    """Engines divide integers as doubles: the nanoseconds of many hours, times the number of steps, are no exact ones."""
    last_ms = hours * 3_600_000
    rows = [exchange(exchange=at, at_ms=last_ms * at // (2 * STEPS), took_ms=1) for at in range(2 * STEPS + 1)]
    counts = report(REPORT, rows)["over_time"]["count"]
    assert len(counts) == STEPS
    assert sum(counts) == 2 * STEPS + 1
    assert set(counts) <= {1, 2, 3}, "two in each, but where one lies at the boundary"


def test_a_capture_of_one_moment_has_one_step() -> None:
    over = report(REPORT, [exchange(exchange=1, at_ms=5, took_ms=2), exchange(exchange=2, at_ms=5, took_ms=4)])["over_time"]
    assert (over["count"], over["max_ns"], over["step_ns"]) == ([2], [4 * MS], 0)
    some = [exchange(exchange=1, took_ms=1), exchange(exchange=2, request_first_ns=BASE_NS + STEPS * 7 - 1, took_ms=1)]
    some[1]["request_first_ns"] = BASE_NS + STEPS * 7 - 2
    assert report(REPORT, some)["over_time"]["step_ns"] == 6, "from the first to the last request are 7 ns less than 60 steps"


def test_the_brokers_part_of_writes_may_be_their_wait_for_followers() -> None:
    for api, said in (("Produce", True), ("Metadata", False)):
        sentence = report(REPORT, [exchange(took_ms=9, api=api)])["verdict"]["sentence"]
        assert "is spent in the broker" in sentence
        assert ("(with acks=all also in its wait for followers)" in sentence) is said
