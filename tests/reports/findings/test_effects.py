"""What follows from a time in which a broker was away."""

from typing import Any

from kcap.reports.findings.absences import OUTAGE, STALL, Absence
from kcap.reports.findings.effects import by_absence, first_held, summed
from tests.reports.findings.tables import SECOND, Row

AWAY = Absence("10.0.0.1", 9092, 1, 100 * SECOND, 110 * SECOND, STALL, back=True)
AGAIN = AWAY._replace(since=200 * SECOND, until=210 * SECOND)
OTHER = Absence("10.0.0.2", 9092, 2, 104 * SECOND, 130 * SECOND, OUTAGE, back=True)


def batches(ended: float | None, last: float, client: str = "app") -> Row:
    return {"client_id": client, "first_ns": int(last * SECOND), "last_ns": int(last * SECOND),
            "ended_ns": None if ended is None else int(ended * SECOND)}  # fmt: skip


def test_batches_belong_to_the_broker_that_was_away_when_they_were_sent_or_waited() -> None:
    def whose(row: Row, *away: Absence) -> str | None:
        ((one, rows),) = by_absence([row], away)
        assert rows == [row]
        return one and one.server

    assert whose(batches(101, 105), AWAY) == AWAY.server
    assert whose(batches(99, 105), AWAY) is None, "one ended before"
    assert whose(batches(101, 111), AWAY) is None, "one was sent later"
    assert whose(batches(101, 205), AWAY, AGAIN) == AWAY.server, "the broker was away twice"
    assert whose(batches(105, 120), AWAY, OTHER) == OTHER.server
    assert whose(batches(None, 105), AWAY) == AWAY.server
    assert whose(batches(105, 105)) is None


def test_batches_of_one_broker_are_together() -> None:
    rows = [batches(101, 102, "a"), batches(101, 102, "b"), batches(1, 2, "c")]
    assert [(one and one.server, [row["client_id"] for row in some]) for one, some in by_absence(rows, [AWAY, AGAIN])] == [
        (AWAY.server, ["a", "b"]), (None, ["c"]),
    ]  # fmt: skip


def request(number: int, **more: Any) -> Row:
    return {
        "client_id": "app", "connection": "C1", "exchange": number, "api": "Produce", "error": None, "server_ip": "10.0.0.1",
        "server_port": 9092, "request_first_ns": number * SECOND, "request_last_ns": number * SECOND, "age_ns": 3 * SECOND,
        "latency_ns": None,
    } | more  # fmt: skip


def test_the_first_request_of_a_connection_that_waits_holds_up_those_behind_it() -> None:
    some = [request(3), request(2), request(1), request(9, connection="C2")]
    assert first_held(some, [AWAY, OTHER, None, None]) == {"C1": (2, OTHER)}
    assert first_held(some, [None] * 4) == {}


def test_requests_of_a_client_as_one_row() -> None:
    late = request(5, error="REQUEST_TIMED_OUT", age_ns=None, latency_ns=2 * SECOND, server_ip="10.0.0.2", api="Metadata")
    row = summed([request(1), request(4, age_ns=SECOND), late])
    expected = {
        "n": 3, "errors": 1, "longest": 3 * SECOND, "waited": 4 * SECOND, "lost": 2 * SECOND, "apis": 2, "servers": 2,
        "ports": 1, "ended_ns": 4 * SECOND,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    assert (row["first_ns"], row["last_ns"]) == (SECOND, 5 * SECOND)
    assert summed([late])["longest"] is None
