"""Did the client keep quiet: hand-made cases, and plain Python over many."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kcap.limits import EARLY_CLOCK_NS
from kcap.reports.definition import Row
from kcap.reports.throttle_compliance import broken
from tests.reports.made import MS, engine, exchange, tables


def found(rows: list[Row]) -> dict[tuple[str, int], tuple[int, int, int]]:
    told = engine().rows(broken(tables(rows).every))
    return {(r["connection"], r["exchange"]): (r["violations"], r["same_connection"], r["early_ns"]) for r in told}


def throttled(**values: Any) -> Row:
    return exchange(api_key=0, api="Produce", api_version=9, throttle_ns=0, **values)


def test_a_request_before_the_time_is_over() -> None:
    """Answered at 1 ms with 100 ms of throttle: requests at 41 ms are 60 ms too early, on whichever connection."""
    rows = [
        throttled(exchange=1, took_ms=1, throttle_time_ms=100),
        exchange(exchange=2, at_ms=41, took_ms=1),
        exchange(connection="C2", exchange=1, at_ms=51, took_ms=1),
        exchange(exchange=3, at_ms=101, took_ms=1),
        exchange(connection="C3", client_id="somebody else", at_ms=50, took_ms=1),
        exchange(connection="C4", server_ip="10.0.0.3", at_ms=50, took_ms=1),
    ]
    assert found(rows) == {("C1", 1): (2, 1, 60 * MS)}


def test_a_millisecond_is_forgiven() -> None:
    rows = [throttled(took_ms=1, throttle_time_ms=100), exchange(exchange=2, at_ms=100.5, took_ms=1)]
    assert found(rows) == {}


def test_a_request_counts_against_the_throttle_that_ends_last() -> None:
    rows = [
        throttled(exchange=1, took_ms=1, throttle_time_ms=100),
        throttled(exchange=2, took_ms=2, throttle_time_ms=50),
        exchange(exchange=3, at_ms=20, took_ms=1),
    ]
    assert found(rows) == {("C1", 1): (1, 1, 81 * MS)}


def test_who_waited_in_the_answer_owes_no_silence() -> None:
    """A broker before KIP-219 has waited already; a version below it leaves a new broker's client its freedom."""
    late = exchange(api_key=0, api_version=2, took_ms=100, throttle_time_ms=90, throttle_ns=90 * MS)
    old = exchange(api_key=0, api_version=5, took_ms=1, throttle_time_ms=90, throttle_ns=0)
    for first in (late, old):
        assert found([first, exchange(exchange=2, at_ms=110, took_ms=1), exchange(exchange=3, at_ms=20, took_ms=1)]) == {}


ROWS = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 40), st.sampled_from([None, 0, 3, 80]), st.sampled_from(["C1", "C2"]),
              st.sampled_from([None, "app"])),
    max_size=12,
)  # fmt: skip


@given(ROWS)
@settings(max_examples=15, deadline=None)
def test_the_windows_are_a_walk(drawn: list[tuple[int, int, int | None, str, str | None]]) -> None:
    """Law: the same violations as a walk over each client's requests."""
    rows = [
        throttled(exchange=n, at_ms=at, took_ms=took, throttle_time_ms=time, connection=connection, client_id=client)
        for n, (at, took, time, connection, client) in enumerate(drawn, 1)
    ]
    count, worst = 0, 0
    for row in rows:
        before = [
            other["response_last_ns"] + other["throttle_time_ms"] * MS
            for other in rows
            if (other["throttle_time_ms"] or 0) > 0
            and other["client_id"] == row["client_id"]
            and other["response_last_ns"] < row["request_first_ns"]
        ]
        early = max(before, default=0) - row["request_first_ns"]
        if early > EARLY_CLOCK_NS:
            count, worst = count + 1, max(worst, early)
    told = found(rows).values()
    assert sum(violations for violations, _, _ in told) == count
    assert max((early for _, _, early in told), default=0) == worst
