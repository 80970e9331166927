"""What follows from a time in which a broker was away."""

from typing import Any

from kcap.reports.findings.absences import OUTAGE, STALL, Absence
from kcap.reports.findings.effects import by_absence, first_held, summed
from tests.reports.findings.tables import CONNECTION, SECOND, Row, exchange, found, many, observed, shown

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


READ: Row = {"response_bytes": CONNECTION["server_captured"]}
"""Every byte of the server is in a response."""


def stood_still(clients: str = "abc", **more: Any) -> list[Row]:
    """Clients of several hosts write every 50 ms. From 2 s to 9 s their broker says nothing; each client has two writes on the
    way, closes its connection, and goes on at 10 s."""
    rows = []
    for at, name in enumerate(clients):
        who = {"client_id": name, "client_ip": f"10.0.1.{at}", "acks": 1} | more
        rows += [exchange(f"C{name}", step + 1, "Produce", step / 20, **who, **READ) for step in range(40)]
        rows += [
            exchange(f"C{name}", 50 + step, "Produce", 2.1 + at / 10 + step / 5, None, reason="fin", age_ns=6 * SECOND, **who)
            for step in range(2)
        ]
        rows += [exchange(f"D{name}", step + 1, "Produce", 10 + step / 20, **who) for step in range(5)]
    return rows


def test_what_clients_give_up_while_their_broker_stands_still_is_one_low_finding() -> None:
    rows = stood_still()
    assert len(found("broker-stall", observed(rows))) == 1
    (row,) = found("request-timeout", observed(rows))
    assert row["sentence"] == (
        "6 requests of 3 clients (a, b, c) were not answered in time while broker 10.0.0.1:9092 sent no response to anyone"
    )
    assert (row["severity"], row["confidence"]) == ("low", 0.85)
    assert row["who"] == {"server": "10.0.0.1:9092", "client_ids": ["a", "b", "c"]}
    assert row["evidence"]["explained_by"] == "broker-stall"
    assert len(shown(row, [{"age_ns": None} | each for each in rows])) == 6


def test_a_client_whose_requests_wait_at_another_broker_has_a_finding_of_its_own() -> None:
    """That broker answers others meanwhile; writes to all replicas may wait for those of the broker that stands still."""
    elsewhere = {"client_id": "d", "client_ip": "10.0.1.9", "server_ip": "10.0.0.2"}

    def said(acks: int) -> list[tuple[str, str]]:
        late = [exchange("X", 9 + at, "Produce", 2.5 + at, None, reason="fin", age_ns=5 * SECOND, acks=acks, **elsewhere)
                for at in range(3)]  # fmt: skip
        well = [
            exchange("X", 1, "Produce", 0.0, acks=acks, **elsewhere, **READ),
            exchange("Y", 1, "Metadata", 20.0, **elsewhere),
        ]
        others = many(100, 0.1, "Metadata", connection="Z", client_id="e", server_ip="10.0.0.2")
        found_ = found("request-timeout", observed([*stood_still(), *late, *well, *others]))
        return sorted((row["severity"], row["sentence"]) for row in found_)

    alone, together = said(1), said(-1)
    assert [severity for severity, _ in alone] == ["high", "low"]
    assert alone[0][1].startswith("3 Produce of client d were not answered in time")
    ((severity, sentence),) = together
    assert severity == "low"
    assert sentence.endswith("; 3 of them went to other brokers, which may have waited for its replicas")


def test_batches_of_several_clients_without_a_certain_end_are_one_finding() -> None:
    rows = stood_still()
    parts = [
        {"connection": row["connection"], "exchange": row["exchange"], "api_key": 0, "topic": f"t-{row['client_id']}",
         "partition": 0, "error": row["error"], "producer_id": -1, "magic": 2, "records": 1} for row in rows
    ]  # fmt: skip
    (row,) = found("retries-duplicate", observed(rows, parts))
    assert row["sentence"].startswith(
        "6 batches of 3 clients (a, b, c) had no known result when others followed, while broker 10.0.0.1:9092"
    )
    assert row["evidence"] == {"batches": 6, "records": 6, "clients": 3}
    one = [part for part in parts if part["topic"] == "t-a"]
    (row,) = found("retries-duplicate", observed(rows, one))
    assert row["who"] == {"client_id": "a", "topic": "t-a"}


def test_of_clients_that_were_stopped_with_the_broker_nothing_is_said() -> None:
    rows = [row for row in stood_still() if not row["connection"].startswith("D")]
    assert found("request-timeout", observed([*rows, *many(20, 0.05, connection="E", client_id="z", acks=1)])) == []
