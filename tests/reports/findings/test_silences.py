"""Silences of brokers, and the requests that wait in them."""

from typing import Any

from kcap.reports.findings.model import RULES
from kcap.reports.findings.served import served
from kcap.reports.findings.silences import delayed, overdue, silences, standing_brokers
from tests.reports.findings.tables import CONNECTION, SECOND, START, Row, exchange, many, observed

LIMIT = RULES["broker-stall"].thresholds


def given_up(count: int = 5, waited: float = 3.0, **more: Any) -> list[Row]:
    """Writes that get their response at once up to 2 s and from 8 s on; those between are given up."""
    late = [
        exchange("C2", at + 1, "Produce", 2.1 + at / 10, None, age_ns=int(waited * SECOND), **{"reason": "rst"} | more)
        for at in range(count)
    ]
    back = [exchange("C3", at + 1, "Produce", 8 + at / 10) for at in range(9)]
    return [*many(40, 0.05), *late, *back]


def links(rows: list[Row], begun: float = 8.0) -> list[Row]:
    names = dict.fromkeys(row["connection"] for row in rows)
    begin = {"C3": START + int(begun * SECOND)}
    return [CONNECTION | {"connection": name, "first_ns": begin.get(name, START), "closed_by": "client"} for name in names]


def found(rows: list[Row], **more: Any) -> list[Row]:
    stood = standing_brokers(observed(rows, connections=links(rows, **more)), LIMIT)
    return [silence for some in stood.values() for silence in some["silences"]]


def test_requests_that_all_were_given_up_show_a_silence_as_well() -> None:
    (one,) = found(given_up())
    assert (one["n"], one["unanswered"], one["given_up"]) == (5, 5, 5)
    assert one["until"] - one["since"] > 5 * SECOND
    assert found(given_up(flags=["retransmitted"])) == [], "the network"
    assert found(given_up(waited=0.5)) == [], "they did not wait"
    assert found(given_up(count=2)) == [], "too few"


def test_what_waits_at_the_end_of_the_capture_or_has_no_host_that_connects_again_was_not_given_up() -> None:
    (one,) = found(given_up(reason="capture_end"))
    assert (one["unanswered"], one["given_up"]) == (5, 0)
    (one,) = found(given_up(), begun=0.0)
    assert (one["unanswered"], one["given_up"]) == (5, 0)


def test_a_broker_that_sends_nothing_any_more_is_silent_until_the_capture_ends() -> None:
    rows = [row for row in given_up() if row["connection"] != "C3"]
    (one,) = found(rows)
    assert one["until"] == START + 10 * SECOND, "the last packet of any connection"


def test_late_exchanges_and_overdue_polls() -> None:
    rows = given_up()
    seen = observed(rows, connections=links(rows))
    chosen, late = served(seen, {"milliseconds": 1000})
    waiting = delayed(seen, chosen, late)
    both, times = silences(seen, waiting, SECOND)
    assert len(seen.run(both.select("connection"))) == 5
    assert [row["links"] for row in seen.run(times)] == [1]
    poll = exchange("R", 1, "Fetch", 0, 3.0, max_wait_ms=500)
    assert overdue(observed([poll]), SECOND) == {("10.0.0.1", 9092): [poll["response_first_ns"]]}
    assert overdue(observed([poll | {"max_wait_ms": 2500}]), SECOND) == {}
