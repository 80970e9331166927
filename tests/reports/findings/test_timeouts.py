"""Requests that clients gave up, and batches that may be in the log twice since."""

from collections.abc import Sequence
from typing import Any

from tests.reports.findings.tables import CONNECTION, SECOND, START, Row, exchange, found, many, observed, shown


def test_requests_that_were_given_up_on() -> None:
    late = [exchange("C1", at + 2, "Produce", at, None, reason="rst", age_ns=SECOND) for at in range(3)]
    well = exchange("C1", 1, "Produce", 0, response_bytes=CONNECTION["server_captured"])
    assert len(found("request-timeout", observed([well, *late]))) == 1
    assert found("request-timeout", observed(late)) == [], "a client that never got a response has another problem"
    polls = [row | {"api": "Fetch"} for row in late]
    assert found("request-timeout", observed([well, *polls])) == [], "long polls end with their connection"
    assert found("request-timeout", observed([well, *(row | {"max_wait_ms": 700} for row in polls)])) == []
    assert len(found("request-timeout", observed([well, *(row | {"max_wait_ms": 500} for row in polls)]))) == 1
    poll = late[0] | {"api": "Fetch", "exchange": 1, "max_wait_ms": 5000}
    behind = [row | {"exchange": row["exchange"] + 1} for row in late]
    assert found("request-timeout", observed([well, poll, *behind])) == [], "the broker answers a connection in order"
    answered = exchange("C1", 1, "Fetch", 0, 0.9, response_bytes=CONNECTION["server_captured"])
    assert found("request-timeout", observed([well | {"connection": "C2"}, answered, behind[0], behind[0]])) == [], "its turn"
    polled = answered | {"flags": ["late"], "max_wait_ms": 900}
    seen = observed([well | {"connection": "C2"}, polled, behind[0], behind[0]])
    assert found("request-timeout", seen) == [], "a long poll before it waited on purpose"
    seen = observed([well | {"connection": "C2"}, polled | {"max_wait_ms": None}, behind[0], behind[0]])
    assert found("request-timeout", seen) == [], "the capture does not say how long the poll may wait"
    muted = [row | {"age_ns": 3 * SECOND} for row in late]
    throttled = exchange("C1", 1, "Produce", 0, throttle_time_ms=9000, response_bytes=CONNECTION["server_captured"])
    seen = observed([throttled, *muted])
    assert found("request-timeout", seen) == [], "the broker reads nothing while it throttles the connection"
    on = exchange("C9", 1, "Metadata", 20)
    assert len(found("request-timeout", observed([throttled | {"throttle_time_ms": 100}, *muted, on]))) == 1
    patient = [row | {"age_ns": 8 * SECOND} for row in late]
    moved = exchange("C1", 1, "OffsetCommit", 0, 5.0, error="NOT_COORDINATOR", response_bytes=CONNECTION["server_captured"])
    assert found("request-timeout", observed([moved, *patient, on])) == [], "the client leaves a broker that is no coordinator"
    assert len(found("request-timeout", observed([moved | {"error": "NONE"}, *patient, on]))) == 1
    over = poll | {"max_wait_ms": 100}
    assert len(found("request-timeout", observed([well, over, *behind]))) == 1
    unread = [CONNECTION | {"connection": "C1", "server_captured": 1100}]
    assert found("request-timeout", observed([well, *late], connections=unread)) == [], "the responses may be among these bytes"
    sealed = [CONNECTION | {"connection": "C1", "tls": True}]
    assert len(found("request-timeout", observed([well, *late], connections=sealed))) == 1
    sealed = [sealed[0] | {"server_missing": 6}]
    assert found("request-timeout", observed([well, *late], connections=sealed)) == [], "a record that is cut does not open"
    later = [CONNECTION | {"connection": "C1", "first_ns": START + 5 * SECOND}]
    assert found("request-timeout", observed([well, *late], connections=later)) == [], "the file is not in the order of time"


def test_responses_that_arrive_when_the_client_has_closed_are_too_late() -> None:
    def count(age: float, closed_by: str = "client", api: str = "Produce", **more: Any) -> int:
        more |= {"flags": ["late"], "response_bytes": CONNECTION["server_captured"]}
        rows = [exchange(f"C{at}", 1, api, 5 * at, 3.0, **more) for at in range(3)]
        ends = {"closed_by": closed_by, "ended": "fin"}
        links = [
            CONNECTION | ends | {"connection": f"C{at}", "closed_ns": row["request_last_ns"] + int(age * SECOND)}
            for at, row in enumerate(rows)
        ]
        every = [*rows, exchange("C9", 1, "Metadata", 20)]
        findings = found("request-timeout", observed(every, connections=[*links, CONNECTION | {"connection": "C9"}]))
        assert all(shown(row, every) == rows for row in findings)
        return sum(row["count"] for row in findings)

    assert count(1.5) == 3
    assert count(0.1) == 0, "it did not wait"
    assert count(1.5, "server") == count(3.5) == 0
    assert count(1.5, error="REQUEST_TIMED_OUT") == 3, "each counts once"
    assert count(1.5, api="Fetch", max_wait_ms=1400) == 0, "it may wait on purpose"


def test_a_client_that_was_stopped_with_requests_on_the_way() -> None:
    """Nothing follows of it; one that gives requests up goes on, or tries to."""
    given_up = [exchange("C1", at + 1, "Produce", at * 0.1, None, outcome="unanswered", reason="fin", age_ns=SECOND)
                for at in range(3)]  # fmt: skip
    before = exchange("C1", 9, "Produce", -1.0, response_bytes=CONNECTION["server_captured"])

    def said(*more: Row, links: Sequence[Row] = ()) -> tuple[str, bool]:
        every = [CONNECTION | {"connection": "C1", "closed_by": "client"}, *links]
        (row,) = found("request-timeout", observed([before, *given_up, *more], connections=every), loud=False)
        return row["severity"], row["sentence"].endswith("nothing follows of this client: it may have been stopped")

    assert said() == ("info", True)
    assert said(exchange("C2", 1, "Metadata", 3.0)) == ("high", False)
    assert said(exchange("C2", 1, "Metadata", 3.0, client_id="other")) == ("info", True)
    tried = {"connection": "C3", "client_id": None, "phase": "empty", "exchanges": 0, "first_ns": START + 3 * SECOND}
    assert said(links=[CONNECTION | tried]) == ("high", False), "it tries to connect"
    assert said(links=[CONNECTION | tried | {"client_ip": "10.0.0.8"}]) == ("info", True), "another host does"


def test_batches_that_may_stand_in_the_log_twice() -> None:
    rows = many(4, 1.0)
    parts = [{"connection": "C1", "exchange": at + 1, "api_key": 0, "topic": "t", "partition": 0} for at in range(4)]

    def retried(producer: int) -> list[Row]:
        late = [row | {"acks": -1, "error": "REQUEST_TIMED_OUT" if at < 2 else "NONE"} for at, row in enumerate(rows)]
        some = [part | {"error": late[at]["error"], "producer_id": producer, "magic": 2} for at, part in enumerate(parts)]
        return found("retries-duplicate", observed(late, some))

    assert len(retried(-1)) == 1
    assert retried(4000) == [], "the broker knows the batch again by its producer id and sequence"

    def left(again: float | None) -> list[Row]:
        """A producer of which two requests of four have no response when it closes, a second later; or it connects again."""
        flight = [
            exchange("C1", at + 1, "Produce", at / 1000, 0.001 if at < 2 else None, acks=-1)
            | ({} if at < 2 else {"reason": "rst", "age_ns": 1_000_000_000})
            for at in range(4)
        ]
        more = [] if again is None else [exchange("C2", 1, "Produce", again, acks=-1)]
        some = [{"connection": row["connection"], "exchange": row["exchange"], "api_key": 0, "topic": "t", "partition": 0,
                 "error": row["error"], "producer_id": -1, "magic": 2} for row in flight + more]  # fmt: skip
        return found("retries-duplicate", observed(flight + more, some))

    assert left(None) == [], "it wrote nothing after it had closed"
    assert len(left(2.0)) == 1

    def answered(*flags: str) -> list[Row]:
        """A producer that closes a connection with two requests, whose responses come 4 s behind them, and goes on."""
        some = [exchange("C1", at + 1, "Produce", at / 1000, 4.0, acks=-1, flags=[*flags]) for at in range(2)]
        some.append(exchange("C2", 1, "Produce", 5.0, acks=-1))
        batches = [{"connection": row["connection"], "exchange": row["exchange"], "api_key": 0, "topic": "t", "partition": 0,
                    "error": "NONE", "producer_id": -1, "magic": 2} for row in some]  # fmt: skip
        return found("retries-duplicate", observed(some, batches))

    assert len(answered("late")) == 1, "the broker wrote what the client sends again"
    assert answered() == [], "a slow broker, whose responses the client took"


SILENT, BACK = 2.0, 8.0
"""When the broker of the next tests sends its last response, and the next one, in seconds."""


def standing_still(*more: Row, clients: Sequence[str] = ("a", "b"), acks: int = 1, **others: Any) -> list[Row]:
    """Producers that write twenty times a second, each from its host, to a broker that stands still; each closes its connection
    with ten requests, which wait for 2.5 to 3 s, and goes on when the broker does. A peer responds all the time."""
    rows = list(more)
    for number, client in enumerate(clients):
        mine = {"client_id": client, "client_ip": f"10.0.1.{number}", "acks": acks}
        rows += many(40, 0.05, connection=f"{client}1", **mine)
        rows += [
            exchange(f"{client}1", 41 + at, "Produce", SILENT + 0.1 + at * 0.05, None, reason="rst",
                     age_ns=int((3 - at * 0.05) * SECOND), **mine)
            for at in range(10)
        ]  # fmt: skip
        rows += [row | {"request_first_ns": row["request_first_ns"] + int(BACK * SECOND),
                        "request_last_ns": row["request_last_ns"] + int(BACK * SECOND),
                        "response_first_ns": row["response_first_ns"] + int(BACK * SECOND),
                        "response_last_ns": row["response_last_ns"] + int(BACK * SECOND)}
                 for row in many(20, 0.05, connection=f"{client}2", **mine)]  # fmt: skip
    return rows + many(100, 0.1, connection="P1", client_id="peer", server_ip="10.0.0.2", **others)


def links(rows: list[Row]) -> list[Row]:
    """The connections of these exchanges, with the hosts and times that these have; the last ones begin when the broker is
    back."""
    first = {row["connection"]: row for row in reversed(rows)}
    return [
        CONNECTION | {name: row[name] for name in ("connection", "client_id", "client_ip", "server_ip")}
        | {"first_ns": row["request_first_ns"], "last_ns": START + 10 * SECOND, "closed_by": "client", "server_captured": 0}
        for row in first.values()
    ]  # fmt: skip


BROKERS = [{"host": f"10.0.0.{node}", "port": 9092, "broker_id": node} for node in (1, 2)]


def test_what_clients_gave_up_while_their_broker_stood_still_is_one_finding_below_that_of_the_broker() -> None:
    rows = standing_still()
    seen = observed(rows, connections=links(rows), brokers=BROKERS)
    (stall,) = found("broker-stall", seen)
    assert (stall["severity"], stall["who"]["server"], stall["evidence"]["given_up"]) == ("high", "10.0.0.1:9092", 20)
    (row,) = found("request-timeout", seen)
    assert (row["severity"], row["who"]) == ("low", {"server": "10.0.0.1:9092", "client_ids": ["a", "b"]})
    assert row["sentence"] == (
        "20 requests of 2 clients (a, b) were not answered in time while broker 10.0.0.1:9092 sent no response to anyone"
    )
    assert (row["count"], row["evidence"]["explained_by"]) == (20, "broker-stall")
    assert len(shown(row, [{"age_ns": None} | one for one in rows])) == 20


def test_what_another_time_explains_is_a_finding_of_its_client() -> None:
    early = [exchange("x1", at + 1, "Produce", at * 0.1, None, reason="rst", age_ns=SECOND, client_id="x") for at in range(3)]
    on = [exchange("x2", 1, "Metadata", 1.5, client_id="x"), exchange("x2", 2, "Metadata", 9, client_id="x")]
    rows = standing_still(*early, *on)
    low, high = sorted(found("request-timeout", observed(rows, connections=links(rows), brokers=BROKERS)),
                       key=lambda row: row["severity"] == "high")  # fmt: skip
    assert (low["severity"], low["who"].get("client_ids")) == ("low", ["a", "b"])
    assert (high["severity"], high["who"]["client_id"], high["count"]) == ("high", "x", 3)


def test_writes_to_all_replicas_wait_for_the_replicas_of_a_broker_that_stands_still() -> None:
    def said(acks: int) -> list[tuple[str, int]]:
        late = [
            exchange("x1", at + 1, "Produce", SILENT + 0.5 + at / 2, 3.0, error="REQUEST_TIMED_OUT", acks=acks, client_id="x",
                     server_ip="10.0.0.2") for at in range(3)
        ]  # fmt: skip
        rows = standing_still(*late, exchange("x1", 9, "Metadata", 9, client_id="x", server_ip="10.0.0.2"))
        findings = found("request-timeout", observed(rows, connections=links(rows), brokers=BROKERS))
        return sorted((row["severity"], row["count"]) for row in findings)

    assert said(-1) == [("low", 23)]
    assert said(1) == [("high", 3), ("low", 20)], "the leader writes these alone"


def test_requests_behind_one_that_waits_for_replicas_wait_as_long() -> None:
    sent = ("Produce", -1), ("Metadata", None), ("Metadata", None)
    late = [
        exchange("x1", 1 + at, api, SILENT + 0.5 + at / 10, None, reason="rst", age_ns=3 * SECOND, acks=acks, client_id="x",
                 server_ip="10.0.0.2") for at, (api, acks) in enumerate(sent)
    ]  # fmt: skip
    rows = standing_still(*late, exchange("x2", 1, "Metadata", 9, client_id="x", server_ip="10.0.0.2"))
    (row,) = found("request-timeout", observed(rows, connections=links(rows), brokers=BROKERS))
    assert (row["severity"], row["count"]) == ("low", 23)


def test_batches_of_several_clients_without_an_end_while_their_broker_stood_still_are_one_finding() -> None:
    for clients, who in ((("a", "b"), [["a", "b"]]), (("a",), [None])):
        rows = standing_still(clients=clients)
        parts = [{"connection": row["connection"], "exchange": row["exchange"], "api_key": 0, "topic": "t", "partition": 0,
                  "error": row["error"], "producer_id": -1, "magic": 2, "records": 1} for row in rows]  # fmt: skip
        findings = found("retries-duplicate", observed(rows, parts, connections=links(rows), brokers=BROKERS))
        assert [row["who"].get("client_ids") for row in findings] == who
        assert sum(row["count"] for row in findings) == 10 * len(clients)
