"""Times in which a broker says nothing at all."""

from itertools import count
from typing import Any

from kcap.reports.findings.model import RULES
from kcap.reports.findings.stalls import broker_stall, stalled_ns
from kcap.reports.findings.stalls import stalls as found_stalls
from tests.reports.findings.tables import SECOND, Row, exchange, found, many, observed

STEP, HOSTS = 0.05, ("10.0.0.9", "10.0.0.8")


def paused(hosts: tuple[str, ...] = HOSTS[:1], until: float = 3.0, **more: object) -> list[Row]:
    """Produce requests of a connection a host every 50 ms for 5 s; between 1 s and `until` the broker is silent, and from 1.5 s
    on the client waits.
    """
    out = []
    for number, host in enumerate(hosts):
        exchanges = count(1)
        for step in range(100):
            at = step * STEP
            if 1.5 < at < until:
                continue
            waits = until - at if 1 < at < until else 0.0
            out.append(exchange(f"C{number}", next(exchanges), "Produce", at, waits + 0.002, client_ip=host, **more))
    return out


def stalls(rows: list[Row]) -> list[Row]:
    return found("broker-stall", observed(rows))


def test_a_broker_that_is_silent_while_requests_wait() -> None:
    (one,) = stalls(paused())
    assert one["evidence"]["silences"] == 1
    assert 1.9 * SECOND < one["evidence"]["longest_ns"] < 2.1 * SECOND
    assert one["confidence"] == 0.6, "one connection may be held up on its way"
    (two,) = stalls(paused(HOSTS))
    assert two["confidence"] == 0.85
    assert two["evidence"]["hosts"] == 2
    assert two["evidence"]["requests"] == 2 * one["evidence"]["requests"]


def test_what_else_looks_like_it_is_left_alone() -> None:
    assert stalls(paused(until=1.9)) == [], "shorter"
    others = [exchange("C9", at, "Heartbeat", at / 5) for at in range(1, 25)]
    assert stalls(paused() + others) == [], "it sends responses to others"
    assert stalls(paused(flags=["retransmitted"])) == [], "the network"
    assert stalls(paused(throttle_time_ms=5)) == [], "a quota mutes the connection"
    poll = exchange("C0", 999, "Fetch", 1.0, 2.0)
    assert stalls([*paused(), poll]) == [], "behind a long poll"
    at_once = [exchange("C0", 900 + n, "Produce", 1.0, 2.0) for n in range(9)]
    quick = [row for row in paused() if row["latency_ns"] < SECOND]
    assert stalls([*quick, *at_once]) == [], "nothing was sent in between: the clock of the capture was set forward"
    slow = [row | {"latency_ns": row["latency_ns"] + SECOND} for row in many(100, 0.05)]
    assert stalls(slow) == [], "it is never quicker"


def test_a_broker_that_waits_for_the_replicas_of_a_stopped_one_is_not_accused() -> None:
    """One of three brokers was stopped for 4 s: another said nothing either, as all that waited at it were writes to all
    replicas, a consumer's commit and the Heartbeat behind it among them."""
    listed = [{"host": f"10.0.0.{node}", "port": 9092, "broker_id": node} for node in (1, 2)]

    def said(*more: Row, brokers: list[Row] = listed, acks: int = -1) -> list[Row]:
        seen = observed([*paused(HOSTS, acks=acks), *more], brokers=brokers)
        return found("broker-stall", seen, loud=False)

    commit = exchange("C7", 1, "OffsetCommit", 1.1, 1.9)
    (row,) = said(commit, exchange("C7", 2, "Heartbeat", 1.2, 1.8))
    assert (row["severity"], row["confidence"]) == ("info", 0.4)
    assert "other brokers may hold up" in row["sentence"]
    assert said(commit, brokers=listed[:1])[0]["severity"] == "medium", "there is no other broker to wait for"
    assert said(commit, brokers=[])[0]["severity"] == "info", "no Metadata response says that it is alone"
    assert said(commit, acks=1)[0]["severity"] == "medium", "the leader writes these alone"
    assert said(exchange("C7", 1, "Metadata", 1.1, 1.9))[0]["severity"] == "medium", "this waits for no replica"
    poll = exchange("C8", 1, "Fetch", 1.0, 2.001, max_wait_ms=500, client_id="broker-2-fetcher-0")
    (row,) = said(poll)
    assert row["severity"] == "medium", "a long poll is overdue"
    assert said(poll | {"max_wait_ms": 5000})[0]["severity"] == "info", "that poll may wait"


def test_responses_to_other_brokers_are_no_silence() -> None:
    replica = [exchange("C9", at, "Fetch", at / 5, client_id="broker-2-fetcher-0") for at in range(1, 25)]
    assert stalls(paused() + replica) == []


def statements(rows: list[Row]) -> int:
    """How many the rule runs over these rows."""
    seen = observed(rows)
    assert seen.calls
    run, asked = seen.run, 0

    def counted(expression: Any) -> list[Row]:
        nonlocal asked
        asked += 1
        return run(expression)

    seen.run = counted  # type: ignore[method-assign]
    list(broker_stall(seen, RULES["broker-stall"].thresholds))
    return asked


def test_a_capture_without_a_wait_costs_no_statement() -> None:
    assert statements(many(50, 0.05)) == 0
    assert statements(paused()) > 0


def test_how_long_a_broker_stood_still_in_a_span_of_time() -> None:
    seen = observed(paused())
    start = min(row["request_first_ns"] for row in paused())
    (stall,) = found_stalls(seen)
    assert stalled_ns(seen, "10.0.0.1", 9092, start, start + 10 * SECOND) == stall["until"] - stall["since"]
    assert stalled_ns(seen, "10.0.0.1", 9092, stall["since"] + SECOND, stall["until"] + SECOND) < 1.1 * SECOND
    assert stalled_ns(seen, "10.0.0.1", 9092, start, stall["since"]) == 0
    assert stalled_ns(seen, "10.0.0.2", 9092, start, start + 10 * SECOND) == 0, "another server"
    assert found_stalls(observed(many(100, 0.05))) == []
