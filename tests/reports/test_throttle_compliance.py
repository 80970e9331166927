"""Compliance with throttles: hand-made cases, and plain Python over many."""

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcap.columns import EXCHANGES
from kcap.limits import EARLY_CLOCK_NS
from kcap.reports.definition import Row
from kcap.reports.throttle_compliance import compliance, obeys
from tests.reports.made import MS, arrow, engine, exchange


def found(rows: list[Row]) -> dict[tuple[str, int], tuple[int, int, int | None]]:
    """Exchange -> violations, requests elsewhere, nanoseconds by which the worst came too early."""
    engine().register("exchanges", arrow(rows, EXCHANGES))
    some = engine().rows(statement())
    return {(r["connection"], r["exchange"]): (r["violations"], r["elsewhere"], r["early_ns"]) for r in some}


@cache
def statement() -> str:
    """Its SQL: to compile it takes a hundred times as long as to run it over a few rows."""
    return engine().sql(compliance(engine().viewed("exchanges")))


def throttled(**values: Any) -> Row:
    return exchange(**{"api_key": 0, "api": "Produce", "api_version": 9, "throttle_ns": 0} | values)


def test_a_request_on_the_muted_connection_is_a_violation_and_one_elsewhere_is_none() -> None:
    """Response at 1 ms with 100 ms of throttle: the request at 41 ms is 60 ms too early, one on another connection is not."""
    rows = [
        throttled(exchange=1, took_ms=1, throttle_time_ms=100),
        exchange(exchange=2, at_ms=41, took_ms=1),
        exchange(connection="C2", exchange=1, at_ms=51, took_ms=1),
        exchange(exchange=3, at_ms=101, took_ms=1),
        exchange(connection="C3", client_id="another", at_ms=50, took_ms=1),
        exchange(connection="C4", server_ip="10.0.0.3", at_ms=50, took_ms=1),
    ]
    assert found(rows) == {("C1", 1): (1, 1, 60 * MS)}


def test_the_channel_is_muted_whatever_client_id_its_requests_name() -> None:
    rows = [throttled(took_ms=1, throttle_time_ms=100), exchange(exchange=2, at_ms=41, took_ms=1, client_id="another")]
    assert found(rows) == {("C1", 1): (1, 0, 60 * MS)}


def test_a_millisecond_is_tolerated() -> None:
    rows = [throttled(took_ms=1, throttle_time_ms=100), exchange(exchange=2, at_ms=100.5, took_ms=1)]
    assert found(rows) == {}


def test_a_request_sent_before_the_response_is_no_violation() -> None:
    """Requests in flight when the throttled response arrives were sent in good faith."""
    rows = [throttled(exchange=1, took_ms=5, throttle_time_ms=100), exchange(exchange=2, at_ms=3, took_ms=200)]
    assert found(rows) == {}


def test_a_request_counts_against_the_throttle_that_ends_last() -> None:
    rows = [
        throttled(exchange=1, took_ms=1, throttle_time_ms=100),
        throttled(exchange=2, took_ms=2, throttle_time_ms=50),
        exchange(exchange=3, at_ms=20, took_ms=1),
    ]
    assert found(rows) == {("C1", 1): (1, 0, 81 * MS)}


def test_a_response_that_the_broker_delayed_mutes_nothing() -> None:
    """A broker before KIP-219 has delayed the response; a version below it does not tell the client to wait."""
    late = exchange(api_key=0, api_version=2, took_ms=100, throttle_time_ms=90, throttle_ns=90 * MS)
    old = exchange(api_key=0, api_version=5, took_ms=1, throttle_time_ms=90, throttle_ns=0)
    for first in (late, old):
        assert found([first, exchange(exchange=2, at_ms=110, took_ms=1), exchange(exchange=3, at_ms=20, took_ms=1)]) == {}


@pytest.mark.parametrize(
    ("complied", "muting", "word"),
    [(15, 18, "yes"), (8, 10, "yes"), (7, 10, "mixed"), (5, 10, "no"), (0, 3, "no"), (0, 0, None)],
)
def test_a_client_obeys_by_the_share_of_its_throttles(complied: int, muting: int, word: str | None) -> None:
    assert obeys(complied, muting) == word


ROWS = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 40), st.sampled_from([None, 0, 3, 80]), st.sampled_from(["C1", "C2"]),
              st.sampled_from([None, "app"])),
    max_size=12,
)  # fmt: skip


@given(ROWS)
@settings(max_examples=15, deadline=None)
def test_the_windows_are_plain_python_over_the_rows(drawn: list[tuple[int, int, int | None, str, str | None]]) -> None:
    """Law: a request is a violation while a throttle of its connection lasts; it is elsewhere while one of its client's other
    connections lasts longer than its own."""
    rows = [
        throttled(
            exchange=n,
            at_ms=at,
            took_ms=took,
            throttle_time_ms=time,
            connection=connection,
            client_id=connection + (client or ""),
        )
        for n, (at, took, time, connection, client) in enumerate(drawn, 1)
    ]
    for row in rows:  # one client id a connection, shared by both connections or null
        row["client_id"] = row["client_id"][2:] or None
    ends = [(row, row["response_last_ns"] + row["throttle_time_ms"] * MS) for row in rows if (row["throttle_time_ms"] or 0) > 0]
    count = elsewhere = worst = 0
    for row in rows:
        at = row["request_first_ns"]
        own = max(
            (end for other, end in ends if other["connection"] == row["connection"] and other["response_last_ns"] < at),
            default=0,
        )
        any_ = max(
            (end for other, end in ends if other["client_id"] == row["client_id"] and other["response_last_ns"] < at), default=0
        )
        if own - at > EARLY_CLOCK_NS:
            count, worst = count + 1, max(worst, own - at)
        if any_ - at > EARLY_CLOCK_NS and any_ > own:
            elsewhere += 1
    some = found(rows).values()
    assert sum(violations for violations, _, _ in some) == count
    assert sum(others for _, others, _ in some) == elsewhere
    assert max((early for _, _, early in some if early), default=0) == worst


@pytest.mark.parametrize(
    "more",
    [
        {"api_key": 9999, "api_version": 0},
        {"throttle_ns": None},
        {"throttle_time_ms": 1000},
    ],
    ids=["api-of-later-releases", "no-delay-known", "long"],
)
def test_a_channel_is_muted_unless_the_response_was_delayed(more: Row) -> None:
    """Requests APIs that are newer than KIP-219 mute in each of their versions."""
    rows = [throttled(**{"took_ms": 1, "throttle_time_ms": 100} | more), exchange(exchange=2, at_ms=41, took_ms=1)]
    ((violations, elsewhere, _),) = found(rows).values()
    assert (violations, elsewhere) == (1, 0)


@pytest.mark.parametrize("more", [{"api_key": None}, {"response_last_ns": None}, {"throttle_time_ms": 0}])
def test_no_channel_is_muted_without_a_response_that_throttles(more: Row) -> None:
    rows = [throttled(took_ms=1, throttle_time_ms=100) | more, exchange(exchange=2, at_ms=41, took_ms=1)]
    assert found(rows) == {}


def test_the_tolerance_is_whole() -> None:
    """A request counts that was sent by more than the tolerance before the end."""
    first = throttled(took_ms=1, throttle_time_ms=100)
    end = first["response_last_ns"] + 100 * MS
    at = {"request_first_ns": end - EARLY_CLOCK_NS, "request_last_ns": end - EARLY_CLOCK_NS}
    assert found([first, exchange(exchange=2, took_ms=1) | at]) == {}
    sooner = {name: time - 1 for name, time in at.items()}
    assert found([first, exchange(exchange=2, took_ms=1) | sooner]) == {("C1", 1): (1, 0, EARLY_CLOCK_NS + 1)}
