"""Writes that wait for other brokers: those that all replicas have to acknowledge.

In: Produce requests, other requests to the same brokers, and what followers send to leaders where the capture has it. Out:
which brokers wait for their followers, for which, and what proves it. Law: no pairs of exchanges, one order of time.

A leader responds to a Produce request with acks=all when Fetch requests of all followers in sync name an offset behind its
records (kafka.cluster.Partition, maybeIncrementLeaderHW): the next Fetch of a follower acknowledges what it was sent.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcap.reports.drill_down import quoted
from kcap.reports.findings.model import RULES, Finding, Found, named, rule, seconds, where
from kcap.reports.findings.observed import RESPONSES_READ, SERVER, Observed, Row, clients_in, in_groups, server_of
from kcap.reports.findings.served import ALL, REPLICATED, again, late_beside, often_late, served
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted

UNSURE: Final = 0.4
"""How often a broker of a cluster is the cause where only requests wait that all replicas have to acknowledge."""
UNPROVEN: Final = 0.6
"""How often followers are the cause, where that is so at several brokers at once."""
FOLLOWED: Final = 0.9
"""How often followers are the cause where leaders wait for their Fetch."""
REPLICAS: Final = (
    "Compare LocalTimeMs and RemoteTimeMs of Produce at the leader: the first is its own disk, the second the wait for its "
    "followers (kafka-topics.sh --describe --under-replicated-partitions) and for the network to them."
)
"""Advice where only requests for all replicas are known."""
if TYPE_CHECKING:
    from kcap.reports.findings.followers import Follower

Place = tuple[str, int]
"""Address and port of a broker."""
PART: Final = 0.2
"""Of the time of a leader's late writes, the part from which on a follower is one of those that they wait for."""


def waits_for_replicas(seen: Observed, chosen: Any, late: Any) -> dict[Place, bool | None]:
    """Broker -> whether its late writes waited for its followers: nearly all of them are of those that all replicas
    acknowledge, and while most of them waited, a Produce request with acks=1 was sent and got its response in time. None where
    no such request distinguishes the broker from its followers and the paths to them. `chosen` and `late` as `served` gives
    them.
    """
    some = chosen.mutate(late=late)
    some = some.filter(some.api.isin(["Produce", *REPLICATED]), some.response_first_ns.notnull())
    quick = (some.api == "Produce") & (some.acks == 1) & ~some.late
    some = some.mutate(quick_ns=quick.ifelse(some.response_first_ns, None))
    behind = functions(some).window(group_by=list(SERVER), order_by="request_first_ns", rows=(0, None))
    some = some.mutate(next_ns=some.quick_ns.min().over(behind))
    some = some.filter(some.late)
    to_all = some.to_all | (some.api != "Produce")
    rows = seen.run(
        some.group_by(*SERVER).aggregate(
            late=some.count(), to_all=some.count(where=to_all),
            beside=some.count(where=to_all & (some.next_ns < some.response_first_ns).fill_null(False)),
        )
    )  # fmt: skip
    return {place_of(row): waited(seen, row) for row in rows}


def waited(seen: Observed, row: Row) -> bool | None:
    """What `waits_for_replicas` gives of a broker with its numbers of late writes."""
    if row["to_all"] < 0.9 * row["late"]:
        return False
    if 2 * row["beside"] >= row["late"]:
        return True
    return None if seen.once(replicated) else False


def place_of(row: Row) -> Place:
    """The broker of a row."""
    return row["server_ip"], row["server_port"]


def replicated(seen: Observed) -> bool:
    """Whether topics that are written to may have followers: the last Metadata responses name more than one replica of some
    partition, or say nothing of them.
    """
    table, written = seen.exchanges, seen.clients_by_topic("Produce")
    table = table.filter(table.api == "Metadata", table.outcome == "answered")
    latest = table.select("connection", "exchange", "request_first_ns")
    rows = seen.run(latest.order_by(latest.request_first_ns.desc(), "connection", "exchange").limit(RESPONSES_READ))
    topics = (topic for row in seen.prepared(rows) for topic in seen.message(row, "response").get("topics") or ())
    sizes = [
        len(part.get("replicaNodes") or ())
        for topic in topics if topic.get("name") in written for part in topic.get("partitions") or ()
    ]  # fmt: skip
    return not sizes or max(sizes) != 1


class Leader(NamedTuple):
    """A broker whose writes to all replicas are late, though nothing else there is known to be."""

    row: Row
    """Its figures: n, slow, slow_ns, late_p50, broker_id, and times."""
    own_ns: float | None
    """Median of its Produce requests with acks=1 meanwhile, where they are in time."""
    prompt_ns: float | None
    """Median of all requests that wait for no replica meanwhile, where these are many enough and in time."""
    alone: bool
    """Whether such requests are too few there to be known, and none of them is late."""
    beside: bool
    """Whether Produce requests with acks=1 were in time while most of the late ones waited."""
    followers: "Sequence[Follower]"
    """For which it waits, where the capture shows that."""

    @property
    def proven(self) -> bool:
        """Whether its followers are known to be what it waits for."""
        return self.beside or bool(self.followers)


def slow_leaders(seen: Observed, limit: Mapping[str, float]) -> dict[Place, Leader]:
    """The brokers whose Produce requests with acks=all are late by themselves, also beside the moment of the slowest of them:
    those with acks=1 are not, as far as there are any. Time in the queue behind other requests of a connection is not counted.
    """
    least = limit["milliseconds"] * 1e6
    if sum(call["latency_ns"] or 0 for call in seen.calls if call["api"] == "Produce") < limit["late"] * least:
        return {}
    chosen, _ = served(seen, limit)
    chosen = chosen.mutate(own=chosen.own - chosen.queue_ns.fill_null(0))
    late = chosen.own >= int(least)
    writes = chosen.filter(chosen.to_all, chosen.error == "NONE").mutate(late=late)
    rows = seen.run(
        in_groups(
            writes, SERVER, slow=writes.count(where=writes.late), slow_ns=writes.own.sum(where=writes.late),
            late_p50=writes.own.quantile(0.5, where=writes.late), broker_id=writes.broker_id.max(),
            late_ns=writes.request_first_ns.min(where=writes.late),
            late_until_ns=writes.response_first_ns.max(where=writes.late),
        )
    )  # fmt: skip
    rows = [row for row in rows if often_late(row, limit)]
    rest = {place_of(row): row for row in seen.run(late_beside(writes, writes.late))} if rows else {}
    rows = [row for row in rows if again(rest.get(place_of(row)), row, limit)]
    if not rows:
        return {}
    beside, quick = waits_for_replicas(seen, chosen, late), in_time(seen, chosen, late, rows)
    from kcap.reports.findings.followers import acknowledging  # for captures with such writes

    followers = acknowledging(seen, writes.filter(writes.late), int(least / 2))
    found: dict[Place, Leader] = {}
    for row in rows:
        place = place_of(row)
        met = [one for one in followers.get(place, ()) if one.waited_ns >= PART * row["slow_ns"]]
        if sum(one.waited_ns for one in met) < limit["met"] * row["slow_ns"]:
            met = []
        if beside.get(place, False) is not False:
            own_ns, prompt_ns = quick_medians(quick.get(place), row["late_p50"] / limit["times"], limit)
            others = quick.get(place, {"n": 0, "late": 0})
            alone = others["n"] < limit["prompt"] and not others["late"]
            found[place] = Leader(row, own_ns, prompt_ns, alone, bool(beside[place] and own_ns is not None), met)
    return found


def in_time(seen: Observed, chosen: Any, late: Any, rows: Sequence[Row]) -> dict[Place, Row]:
    """Broker -> figures of the requests that wait for no replica, sent from the first of the late writes to the response of the
    last: n, late, p50, and own_n, own_p50 of Produce with acks=1 alone.
    """
    some = chosen.mutate(late=late)
    some = some.filter(
        ~some.to_all, ~some.api.isin(list(REPLICATED)), some.request_first_ns >= min(row["late_ns"] for row in rows),
        some.request_first_ns <= max(row["late_until_ns"] for row in rows),
    )  # fmt: skip
    alone = (some.api == "Produce") & (some.acks == 1)
    figures = some.group_by(*SERVER).aggregate(
        n=some.count(), late=some.count(where=some.late), p50=some.own.quantile(0.5), own_n=some.count(where=alone),
        own_p50=some.own.quantile(0.5, where=alone),
    )  # fmt: skip
    return {place_of(row): row for row in seen.run(figures)}


def quick_medians(figures: Row | None, most: float, limit: Mapping[str, float]) -> tuple[float | None, float | None]:
    """Medians of the requests of `in_time`, where they are no larger than `most` (ns): of Produce with acks=1, and of all."""
    if figures is None:
        return None, None
    own_ns = figures["own_p50"] if figures["own_n"] and figures["own_p50"] <= most else None
    enough = figures["n"] >= limit["prompt"] and 10 * figures["late"] <= figures["n"] and figures["p50"] <= most
    return own_ns, figures["p50"] if enough else None


def waited_for(leaders: Sequence[Leader]) -> tuple[int | None, str]:
    """The broker that late writes have in common, as the follower that they wait for or as their leader; and how the sentence
    goes on.
    """
    pairs = [(leader.row["broker_id"], one) for leader in leaders for one in leader.followers]
    if not pairs:
        return None, ""
    ids, took = sorted({one.broker_id for _, one in pairs}), seconds(max(one.took_ns for _, one in pairs))
    common = set.intersection(*({leader, one.broker_id} for leader, one in pairs))
    if len(ids) > 1 and len(common) == 1:
        (broker,) = common
        return broker, f"; followers' next Fetch comes {took} after the records, in each case to or from broker {broker}"
    name = "broker" if len(ids) == 1 else "brokers"
    return (
        ids[0] if len(ids) == 1 else None,
        f"; they waited for {name} {named(ids)}, whose next Fetch comes {took} after the records",
    )


def at_servers(leaders: Sequence[Leader]) -> str:
    """A condition that the requests to these brokers meet."""
    places = [f"(server_ip == {quoted(one.row['server_ip'])} and server_port == {one.row['server_port']})" for one in leaders]
    return places[0][1:-1] if len(places) == 1 else " or ".join(places)


def writers(seen: Observed, leaders: Mapping[Place, Leader]) -> list[str]:
    """The clients that write to all replicas at these brokers."""
    table = seen.exchanges
    table = table.filter(table.api == "Produce", table.acks == ALL)
    rows = seen.run(table.select("client_id", *SERVER).distinct())
    return clients_in(row for row in rows if place_of(row) in leaders)


def late_leaders(seen: Observed, limit: Mapping[str, float]) -> dict[Place, Leader]:
    """The `slow_leaders` of which `slow-replication` speaks."""
    leaders = slow_leaders(seen, limit)
    if any(not one.proven for one in leaders.values()):
        accused = {finding.who["server"] for finding in seen.once(RULES["slow-broker"].by_default)}
        leaders = {
            place: one for place, one in leaders.items()
            if one.proven or ((one.prompt_ns is not None or one.alone) and server_of(one.row) not in accused)
        }  # fmt: skip
        if all(one.prompt_ns is None for one in leaders.values()):
            leaders = {place: one for place, one in leaders.items() if one.proven}
    enough = sum(one.row["n"] for one in leaders.values()) >= limit["requests"]
    return leaders if enough and (len(leaders) > 1 or any(one.proven for one in leaders.values())) else {}


def by_default_limits(seen: Observed) -> dict[Place, Leader]:
    """`late_leaders` with the limits of the rule, for rules on what follows from it."""
    return late_leaders(seen, RULES["slow-replication"].thresholds)


@rule(
    "slow-replication", "medium", 0.8,
    needs="responses requests",
    looks_at="service time of Produce requests with acks=all by broker, compared with requests there that wait for no replica; "
    "the Fetch requests with which followers acknowledge records, if the capture has them",
    advice="See which follower is behind: kafka-topics.sh --describe --under-replicated-partitions, or MaxLag of "
    "kafka.server:type=ReplicaFetcherManager. In kafka.network:type=RequestMetrics, RemoteTimeMs of Produce is the wait for "
    "followers and LocalTimeMs the leader's own time. Then look at the disk and garbage collection of that follower, and at "
    "the network between the brokers.",
    instead="brokers that are far from each other on purpose, since acks=all takes at least a round trip between them; slow "
    "disks of the leaders, if there is no Produce with acks=1 to compare",
    requests=20, milliseconds=50, times=5, share=0.15, late=5, seconds=2, met=0.7, prompt=5,
)  # fmt: skip
def slow_replication(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Writes that wait for followers; several leaders that do are one finding.

    Either of two observations proves it for a leader: writes with acks=1 there are `times` as fast while those with acks=all
    wait; or the part `met` of the time of the late ones ends with the Fetch of a follower that took long to acknowledge. If
    neither can be seen, several leaders must be late at once while `prompt` other requests to one of them are in time and none
    to the others is late; slow disks may be what they have in common.
    """
    leaders = late_leaders(seen, limit)
    if not leaders:
        return
    some = list(leaders.values())
    proven = any(one.proven for one in some)
    count, total = sum(one.row["slow"] for one in some), sum(one.row["n"] for one in some)
    worst = max(some, key=lambda one: one.row["late_p50"])
    own = [one.own_ns for one in some if one.own_ns is not None]
    prompt = own or [one.prompt_ns for one in some if one.prompt_ns is not None]
    broker, words = waited_for(some)
    there = f"at {len(prompt)} of them" if not own and len(prompt) < len(some) > 1 else "there"
    here = f"at {counted(len(some), 'broker')}" if len(some) > 1 else f"at {server_of(worst.row)}"
    followers = [one for leader in some for one in leader.followers]
    yield Finding(
        f"{count} of {total} writes with acks=all took {seconds(worst.row['late_p50'])} (median) {here}"
        + (f", while {'writes with acks=1' if own else 'other requests'} {there} took {seconds(max(prompt))}" if prompt else "")
        + (words if proven else "; followers may be what is slow"),
        {"broker_id": broker, "server": server_of(worst.row) if len(some) == 1 else None, "client_ids": writers(seen, leaders)},
        count,
        where(f"latency_ns >= {int(limit['milliseconds'])}ms", at_servers(some), api="Produce", acks=-1),
        min(one.row["late_ns"] for one in some), max(one.row["late_until_ns"] for one in some),
        sum(int(one.row["slow_ns"]) for one in some),
        {"writes": total, "late_writes": count, "leaders": len(some), "late_p50_ns": round(worst.row["late_p50"]),
         "prompt_p50_ns": round(max(prompt)) if prompt else None,
         "acknowledged_ns": max((one.took_ns for one in followers), default=None),
         "with_followers": sum(one.writes for one in followers) or None},
        confidence=FOLLOWED if followers else None if proven else UNPROVEN,
        advice=None if proven else REPLICAS,
    )  # fmt: skip
