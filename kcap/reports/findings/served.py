"""How long brokers take for requests that they serve alike all the time, and which of these are late.

In: exchanges. Out: the broker's own time of each; whether enough of a group are late. Law: what waits on purpose, such as a
long poll or a throttle, is no part of the broker's time.
"""

from collections.abc import Mapping
from typing import Any

from kcap.reports.definition import group_of
from kcap.reports.findings.observed import Observed, Row, cut_short

SERVED = (
    "Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch", "Heartbeat", "FindCoordinator", "EndTxn",
    "InitProducerId", "AddPartitionsToTxn", "TxnOffsetCommit", "OffsetForLeaderEpoch",
)  # fmt: skip
"""What brokers do alike for clients all the time; setting up connections and administration differ by nature."""
WAITING = ("Fetch", "JoinGroup", "SyncGroup", "ConsumerGroupHeartbeat", "ShareFetch")
"""APIs whose responses wait on purpose."""
PROMPT = frozenset(SERVED) - frozenset(WAITING)
"""APIs whose requests a broker answers as soon as it can."""
ALL = -1
"""`acks` of Produce requests that get their response when all replicas in sync have the records."""
REPLICATED = ("OffsetCommit", "TxnOffsetCommit", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn")
"""APIs that end when all replicas have what they wrote to the topic of a coordinator's state, as Produce with acks=all does."""
CALL = ("server_ip", "server_port", "api", "to_all")
"""What requests have in common whose times are compared: those of one API to one broker, and of Produce those that wait for
other brokers apart from those that do not."""

WAITED_NS = 1_000_000_000
"""A broker that refuses a request closes the connection sooner than that."""


def late_responses(seen: Observed) -> bool:
    """Whether responses arrived when their clients had ended the connections."""
    late = seen.exchanges.filter(seen.exchanges.flags.contains("late"))
    return any(row["n"] for row in seen.run(late.aggregate(n=late.count())))


def in_time(table: Any) -> Any:
    """Of exchanges: none of their segments was retransmitted."""
    return ~table.flags.contains("retransmitted")


def served(seen: Observed, limit: Mapping[str, float], api: str | None = None) -> tuple[Any, Any]:
    """Exchanges with the broker's `own` time, with what `elapsed` besides waits on purpose, and whether they are Produce
    requests `to_all` replicas, of one API or of all that are compared; and which of them are late.

    Exchanges of which TCP retransmitted a segment are left out: they waited for the network, even if a tap beside the broker
    saw the first copy, which the broker may have dropped (a wrong checksum, a full queue). Where quotas are at work, so are
    connections whose throttles were not captured: a muted one is no slow broker.
    """
    table = seen.exchanges
    compared = table.api.isin(sorted(PROMPT)) if api is None else table.api == api
    chosen = table.filter(table.outcome == "answered", table.latency_ns.notnull(), compared, in_time(table))
    if seen.quality["throttled"]:
        known = table.throttle_time_ms.notnull() | (table.api_version == 0) | ~table.api.isin(["Produce", "Fetch"])
        unknown = table.filter(table.outcome == "answered", ~known.fill_null(False))
        chosen = chosen.anti_join(unknown.select("connection").distinct(), "connection")
    waited = [chosen[name].fill_null(0) for name in ("rtt_ns", "long_poll_ns", "throttle_ns", "muted_ns")]
    to_all = (chosen.api == "Produce") & (chosen.acks == ALL).fill_null(False)
    chosen = chosen.mutate(elapsed=chosen.latency_ns - waited[1] - waited[2] - waited[3], to_all=to_all)
    chosen = chosen.mutate(own=chosen.elapsed - waited[0])
    return chosen, chosen.own >= int(limit["milliseconds"] * 1e6)


def waits_for_records(table: Any) -> Any:
    """Of exchanges: a Fetch without a response on a connection that was closed `WAITED_NS` and more behind it, before the
    broker had waited for as long as it may (max_wait_ms)."""
    wait_ns = table.max_wait_ms.fill_null(0).cast("int64") * 1_000_000
    waits = (table.api == "Fetch") & cut_short(table) & (table.age_ns >= WAITED_NS) & (table.age_ns < wait_ns)
    return waits.fill_null(False)


def often_late(row: Row, limit: Mapping[str, float]) -> bool:
    """Whether enough exchanges were late: of all, or for as much of the time, since a client that waits for each response sends
    few while the broker is slow."""
    if row["slow"] < limit["late"] or row["late_until_ns"] - row["late_ns"] < limit["seconds"] * 1e9:
        return False
    often = row["slow"] >= limit["share"] * row["n"]
    return bool(often or (row["slow_ns"] or 0) >= limit["share"] * (row["last_ns"] - row["first_ns"]))


def late_beside(chosen: Any, late: Any) -> Any:
    """Of each API and broker the late exchanges that were not under way while the slowest was: how many, how slow, when."""
    some = chosen.filter(late).select(*CALL, "own", "request_first_ns", "response_first_ns")
    worst = some.group_by(*CALL).aggregate(
        since=some.request_first_ns.argmax(some.own), until=some.response_first_ns.argmax(some.own)
    )
    both = some.inner_join(worst, CALL)
    rest = both.filter((both.response_first_ns < both.since) | (both.request_first_ns > both.until))
    return rest.group_by(*CALL).aggregate(
        slow=rest.count(),
        slow_ns=rest.own.sum(),
        late_ns=rest.request_first_ns.min(),
        late_until_ns=rest.response_first_ns.max(),
    )


def again(rest: Row | None, row: Row, limit: Mapping[str, float]) -> bool:
    """Whether an API of a broker was slow also beside the moment of its slowest exchange."""
    return rest is not None and often_late({**row, **rest}, limit)


def call_of(row: Row) -> tuple[Any, ...]:
    """Broker and API of a row."""
    return group_of(row, CALL)


def answering(seen: Observed, ip: str, port: int) -> tuple[int, int] | None:
    """When a server answered first and last; None where it never did."""
    calls = seen.calls_of(server_ip=ip, server_port=port, outcome="answered")
    return (min(call["first_ns"] for call in calls), max(call["last_ns"] for call in calls)) if calls else None


def lives(answered: tuple[int, int] | None, row: Row) -> bool:
    """Whether a server answered from before the first to after the last connection that it closed, within a second: one that
    starts or shuts down does not.
    """
    if answered is None:
        return False
    return bool(answered[0] <= row["first_ns"] + WAITED_NS and row["last_ns"] - WAITED_NS <= answered[1])
