"""Consumer groups: rebalances, commits, members that stall and that are lost."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from kcap.limits import OFFSET_MOST, READ_ALL_MOST, SILENCES_MOST
from kcap.reports.definition import group_of
from kcap.reports.findings.model import RULES, Finding, Found, called, erring, named, rule, seconds, where
from kcap.reports.findings.observed import (
    CONNECT,
    HEARTBEATS,
    Observed,
    Row,
    clients_in,
    in_groups,
    rows_by,
    times_of,
    totals,
)
from kcap.reports.findings.outages import unreachable
from kcap.reports.findings.stalls import stalled_ns
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted

JOINS = ("JoinGroup", "SyncGroup")
MOVING: Final = {
    "JoinGroup": "classic protocol", "ConsumerGroupHeartbeat": "consumer protocol (KIP-848)",
    "StreamsGroupHeartbeat": "streams protocol (KIP-1071)",
}  # fmt: skip
"""APIs by which members of groups join whose partitions have one reader each -> the protocol. Members of share groups that come
and go stop no other.
"""


@rule(
    "rebalance-loop", "high", 0.9,
    needs="responses bodies",
    looks_at="generations of a classic group (JoinGroup), or member epochs of a KIP-848 group (ConsumerGroupHeartbeat) or "
    "streams group (StreamsGroupHeartbeat), and which members stay",
    advice="See which members leave and join. A member that leaves by itself and comes back misses max.poll.interval.ms: raise "
    "it or lower max.poll.records. For members that come and go with deployments, use group.instance.id (KIP-345) or "
    "cooperative assignors (KIP-429).",
    instead="a rolling restart or scaling while the capture ran",
    sources="KIP-62, KIP-345, KIP-429, KIP-848, KIP-1071",
    rebalances=5, seconds_each=60, of_one=3, beyond=4, again=2, consumer_seconds=15, alone=10, alone_seconds=10,
)  # fmt: skip
def rebalance_loop(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A group that rebalances again and again.

    Members that start one after the other cause a generation each, so a loop has at least `beyond` generations more than
    members. In a rolling restart or a deployment, the new members stay, and with cooperative assignors each takes two
    generations (KIP-429). In a loop, `again` or more members that joined after others had left are gone as well, or the
    generations have no member that comes or goes as their cause.

    A consumer that is alone in its group disturbs no other. If `alone` of them follow each other, `alone_seconds` or less apart
    on average, the finding is low: each joins anew. Workers of Kafka Connect also join again when a connector or task is
    created or changed, so for their groups only members that come and go count.

    If members that miss max.poll.interval.ms (`poll-stall`) or that a rebalance waits for (`rebalance-slow`) are seen in the
    group, the finding names them, and those rules are silent about it.
    """
    if seen.most_calls("group_id", MOVING) < limit["rebalances"]:
        return
    from kcap.reports.findings.lives import turnover
    from kcap.reports.findings.slow_members import slow_members

    table = seen.exchanges
    chosen = table.filter(table.api.isin(list(MOVING)), table.group_id.notnull(), table.error == "NONE")
    rows = seen.run(
        chosen.group_by("group_id", "api").aggregate(
            generations=chosen.generation.nunique(where=chosen.generation > 0),
            newcomers=chosen.generation.count(where=chosen.generation == 0),
            members=chosen.member_id.nunique(), clients=chosen.client_id.nunique(),
            first_ns=chosen.request_first_ns.min(), last_ns=chosen.response_last_ns.max(),
            client_id=chosen.client_id.min(), connection=chosen.connection.argmin(chosen.request_first_ns),
            exchange=chosen.exchange.argmin(chosen.request_first_ns),
        )
    )  # fmt: skip
    # a member that stays goes from generation to generation; processes that run one after the other disturb no other
    own = chosen.filter(chosen.generation > 0).group_by("group_id", "api", "connection")
    own = own.aggregate(generations=chosen.generation.nunique())
    most = most_of_groups(seen, own, own.generations)
    sizes = (
        chosen.filter(chosen.generation > 0)
        .group_by("group_id", "api", "generation")
        .aggregate(members=chosen.member_id.nunique())
    )
    largest = most_of_groups(seen, sizes, sizes.members)
    lives = {(row["group_id"], row["api"]): row for row in seen.run(turnover(chosen, int(limit["consumer_seconds"] * 1e9)))}
    for row in rows:
        row |= lives.get((row["group_id"], row["api"]), {"came": 0, "went": 0, "again": 0})
        row["alone"] = most.get((row["group_id"], row["api"]), 0) < limit["of_one"]
    yield from one_by_one([row for row in rows if row["alone"] and largest.get((row["group_id"], row["api"])) == 1], limit)
    rows = [row for row in rows if not row["alone"] and loops(row, limit)]
    new = chosen.filter(chosen.generation == 0)
    newcomers = rows_by(seen.run(in_groups(new, ("group_id", "api", "client_id"))), ("group_id", "api")) if rows else {}
    for row in seen.prepared(rows, lambda row: row["api"] == "JoinGroup"):
        count = row["generations"] if row["api"] == "JoinGroup" else min(row["generations"], 2 * row["newcomers"])
        if row["api"] == "JoinGroup" and seen.message(row, "request").get("protocolType") == CONNECT:
            count = min(
                count, row["members"] + sum(one["n"] for one in seen.calls_of(group_id=row["group_id"], api="LeaveGroup"))
            )
        span = row["last_ns"] - row["first_ns"]
        if count - largest.get((row["group_id"], row["api"]), 0) < limit["beyond"]:
            continue
        if count < limit["rebalances"] or span > limit["seconds_each"] * 1e9 * count:
            continue
        group = row["group_id"]
        mine = seen.calls_of(group_id=group)
        leaves: Counter[str | None] = Counter()
        joins = Counter({one["client_id"]: one["n"] for one in newcomers.get((group, row["api"]), ())})
        for call in mine:
            if call["api"] == "LeaveGroup":
                leaves[call["client_id"]] += call["n"]
            elif call["api"] == "JoinGroup" and call["error"] == "NONE":
                joins[call["client_id"]] += call["n"]
        lost = sum(call["latency_ns"] or 0 for call in mine if call["api"] in JOINS)
        gone = leaves if row["api"] == "JoinGroup" else joins
        again = sorted(name for name, n in gone.items() if name and n >= 3 and joins[name] >= 3)
        every = sorted(name for name in joins if name)
        cause = f"; {named(again)} {'left and ' if gone is leaves else ''}joined again and again" if again else ""
        slow = seen.once(slow_members).get(group)
        if slow is not None:
            again, cause = slow.clients, f"; {slow.words}"
        yield Finding(
            f"group {group} ({MOVING[row['api']]}) rebalanced {count} times in {seconds(span)}{cause}",
            {"group_id": group, "client_id": again[0] if again else None, "client_ids": [] if every == again[:1] else every},
            count, where(group_id=group), row["first_ns"], row["last_ns"], lost,
            {"rebalances": count, "members": row["members"], "clients": row["clients"], "leaves": leaves.total()},
            confidence=STATED if slow and slow.sure else None, advice=RULES[slow.rule].advice if slow else None,
        )  # fmt: skip


def loops(row: Row, limit: Mapping[str, float]) -> bool:
    """Whether members of a group come to go, or more than two generations for each that comes or goes have another cause."""
    changes = row["came"] + row["went"] if row["api"] == "JoinGroup" else row["generations"]
    return bool(row["again"] >= limit["again"] or row["generations"] - 2 * changes >= limit["beyond"])


def one_by_one(rows: Sequence[Row], limit: Mapping[str, float]) -> Found:
    """Groups with one member at a time, each of which is followed by the next."""
    for row in rows:
        span, group = row["last_ns"] - row["first_ns"], row["group_id"]
        if row["went"] >= limit["alone"] and span <= limit["alone_seconds"] * 1e9 * row["went"]:
            yield Finding(
                f"group {group} ({MOVING[row['api']]}) had {row['came']} members in {seconds(span)}, one at a time: each "
                "joined when the last had gone",
                {"group_id": group, "client_id": row["client_id"] if row["clients"] == 1 else None}, row["came"],
                where(group_id=group), row["first_ns"], row["last_ns"], 0,
                {"rebalances": row["generations"], "members": row["came"], "clients": row["clients"]}, "low", 0.75, ANEW,
            )  # fmt: skip


STATED: Final = 0.95
"""How sure the cause is where the client gives it as the reason of its LeaveGroup request (KIP-800)."""
ANEW: Final = (
    "Create one consumer for the life of the process, and poll it again and again. A consumer that is created and closed for "
    "each poll joins its group each time, which takes longer than reading. Or see why the process ends and is started again."
)
"""The next step where each member of a group is followed by another."""


def most_of_groups(seen: Observed, table: Any, value: Any) -> dict[tuple[str, str], int]:
    """Group and API -> the largest value."""
    rows = seen.run(table.group_by("group_id", "api").aggregate(most=value.max()))
    return {(row["group_id"], row["api"]): row["most"] for row in rows}


@rule(
    "rebalance-slow", "medium", 0.85,
    needs="requests responses bodies",
    looks_at="Heartbeat requests of a member that get REBALANCE_IN_PROGRESS again and again while it does not join, and "
    "JoinGroup requests of others that wait meanwhile; JoinGroup and SyncGroup requests that still wait when the capture ends",
    advice="All members wait for the late one, whose program works on the records of its last poll. Lower max.poll.records, or "
    "use cooperative assignors (KIP-429) or the consumer protocol (KIP-848), with which the others continue.",
    instead="a member that was stopped for a while, for example by garbage collection; a client library that does not join "
    "again",
    sources="KIP-62, KIP-429, KIP-848",
    seconds=5, heartbeats=2,
)  # fmt: skip
def rebalance_slow(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A rebalance that waits for a member that knows of it and continues its work, or that still waits for a member when the
    capture ends.
    """
    unfinished: frozenset[str] = frozenset()
    if any(call["api"] in JOINS and call["reason"] == "capture_end" for call in seen.calls):
        from kcap.reports.findings.unfinished import unfinished_rebalances

        open_ = list(unfinished_rebalances(seen, int(limit["seconds"] * 1e9)))
        unfinished = frozenset(finding.who["group_id"] for finding in open_)
        yield from open_
    if not seen.calls_of(api="Heartbeat", error="REBALANCE_IN_PROGRESS"):
        return
    from kcap.reports.findings.slow_members import late_members, looping, waited_for

    waits, late = late_members(seen, limit)
    if waits or late:
        waits = [row for row in waits if row["group_id"] not in seen.once(looping)]
        late = {group: rows for group, rows in late.items() if group not in seen.once(looping)}
    # with one that was lost, no member waits in JoinGroup
    for group in late.keys() - {row["group_id"] for row in waits} - unfinished:
        longer = [one for one in late[group] if one["last_ns"] - one["first_ns"] >= limit["seconds"] * 1e9]
        if longer:
            (first, last), names, number = times_of(longer), clients_in(longer), sum(one["n"] for one in longer)
            yield Finding(
                f"a rebalance of group {group} was not done {seconds(last - first)} after it had begun: "
                f"{counted(len(longer), 'member')} ({named(names)}) knew of it and did not join",
                {"group_id": group, "client_ids": names}, number,
                where("api == Heartbeat", "error == REBALANCE_IN_PROGRESS", group_id=group), first, last, last - first,
                {"waiting": 0, "late": len(longer), "heartbeats": number, "longest_ns": last - first},
            )  # fmt: skip
    for row in waits:
        group = row["group_id"]
        if during := waited_for(row, late):
            names = clients_in(during)
            yield Finding(
                f"a rebalance of group {group} took {seconds(row['longest'])}: it waited for {counted(len(during), 'member')} "
                f"({named(names)}) that knew of it and did not join",
                {"group_id": group, "client_ids": names}, row["n"],
                where("api == JoinGroup", f"latency >= {limit['seconds']:g}s", group_id=group), row["first_ns"], row["last_ns"],
                row["lost"] or 0,
                {"waiting": row["n"], "late": len(during), "heartbeats": sum(one["n"] for one in during),
                 "longest_ns": row["longest"]},
            )  # fmt: skip


@rule(
    "commit-storm", "medium", 0.9,
    needs="requests",
    looks_at="OffsetCommit requests per second of each member of a group, compared with the records that the client fetched or "
    "the offsets that its commits moved over, and with its Fetch requests that returned records",
    advice="Commit once per poll or by time (enable.auto.commit, auto.commit.interval.ms), not after every record.",
    instead="a short burst of work that really needs a commit after each record; kafka-go, which commits in this way unless "
    "CommitInterval is set",
    sources="auto.commit.interval.ms of Kafka's consumer configurations (5 s)",
    commits=50, a_second=20, a_record=0.5, a_fetch=1.5, interval_s=5, many=250,
)  # fmt: skip
def commit_storm(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A client that commits after every record.

    Automatic commits come every 5 s (`interval_s`), so a storm that lasts longer commits a hundred times instead of once. A
    shorter burst with fewer than `many` commits, which automatic commits make in 20 minutes, is info. So is about one commit
    per Fetch with records: Spring for Apache Kafka by default (AckMode.BATCH) commits once per poll, and records may arrive one
    at a time. Clients that fetch ahead have many more records than they have processed: the committed offsets show how far they
    are.
    """
    fetched = seen.calls_by("client_id", ("Fetch",))
    for (client, group), calls in seen.calls_by(("client_id", "group_id"), ("OffsetCommit",)).items():
        row, fetches = totals(calls), totals(fetched.get(client, ()))
        records = fetches["records"]
        rate = row["n"] / max((row["last_ns"] - row["first_ns"]) / 1e9, 1.0)
        if row["n"] < limit["commits"] or rate < limit["a_second"]:
            continue
        moved = seen.once(advances).get((client, group), records)
        if row["n"] < limit["a_record"] * min(records, moved):
            continue
        members = seen.once(committers)[client, group]
        if rate < limit["a_second"] * members:
            continue
        who = {"client_id": client, "group_id": group}
        lasting = row["n"] >= limit["many"] or row["last_ns"] - row["first_ns"] >= limit["interval_s"] * 1e9
        often = row["n"] > limit["a_fetch"] * seen.once(fetches_with_records).get(client, 0)
        yield Finding(
            f"{called(client)} of group {group} committed offsets {row['n']} times, {rate:.0f} a second",
            who, row["n"], where("api == OffsetCommit", **who), row["first_ns"], row["last_ns"], row["latency_ns"],
            {"commits": row["n"], "commits_a_second": round(rate, 1), "records": records or None, "offsets": moved or None,
                "members": members},
            None if lasting and often else "info",
        )  # fmt: skip


def fetches_with_records(seen: Observed) -> dict[str | None, int]:
    """Client id -> its Fetch requests whose responses had records, or were not captured so far that this can be known."""
    table = seen.exchanges
    fetches = table.filter(table.api == "Fetch")
    full = fetches.group_by("client_id").aggregate(n=fetches.count(where=(fetches.record_count != 0).fill_null(True)))
    return {row["client_id"]: row["n"] for row in seen.run(full)}


def advances(seen: Observed) -> dict[tuple[str | None, str | None], int]:
    """Offsets from the lowest to the highest commit, of all partitions together, by client and group; only of commits that were
    captured so far that they can be read.
    """
    committed = seen.parts.committed_offset.between(0, OFFSET_MOST)
    parts = seen.parts.filter((seen.parts.api == "OffsetCommit") & committed)
    by = parts.group_by("client_id", "group_id", "topic", "topic_id", "partition")
    each = by.aggregate(moved=parts.committed_offset.max() - parts.committed_offset.min())
    sums = each.group_by("client_id", "group_id").aggregate(moved=each.moved.sum())
    return {(row["client_id"], row["group_id"]): row["moved"] for row in seen.run(sums)}


def committers(seen: Observed) -> dict[tuple[str | None, str | None], int]:
    """How many members of a group commit with one client id, which the instances of a service share; without the ids that
    brokers give members, how many connections do. By client and group.
    """
    table = seen.exchanges
    chosen = table.filter(table.api == "OffsetCommit")
    counted = chosen.group_by("client_id", "group_id").aggregate(
        members=chosen.member_id.nunique(where=chosen.member_id != ""), connections=chosen.connection.nunique()
    )
    return {(row["client_id"], row["group_id"]): row["members"] or row["connections"] or 1 for row in seen.run(counted)}


@rule(
    "commit-failed", "medium", 0.9,
    needs="responses bodies",
    looks_at="ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS, STALE_MEMBER_EPOCH and OFFSET_METADATA_TOO_LARGE "
    "responses to OffsetCommit and TxnOffsetCommit",
    advice="With ILLEGAL_GENERATION and UNKNOWN_MEMBER_ID, the member had lost its partitions before it committed, so records "
    "are read twice. Look at rebalances and max.poll.interval.ms.",
    instead="for errors of membership: one rebalance at an unlucky moment, or a coordinator that stood still for longer than "
    "the members' session timeout (broker-stall)",
    failures=3,
)  # fmt: skip
def commit_failed(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Offset commits that the coordinator refuses. The finding is low for a member that `poll-stall` or `rebalance-slow` names:
    it follows from that member's work between polls.
    """
    names = [
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
        "REBALANCE_IN_PROGRESS",
        "STALE_MEMBER_EPOCH",
        "OFFSET_METADATA_TOO_LARGE",
    ]
    for row in seen.errors(names, ("client_id", "group_id"), ["OffsetCommit", "TxnOffsetCommit"]):
        if row["n"] >= limit["failures"]:
            from kcap.reports.findings.slow_members import explained  # for captures with such errors

            who = {"client_id": row["client_id"], "group_id": row["group_id"]}
            too_much = row["error_name"] == "OFFSET_METADATA_TOO_LARGE"
            cause = None if too_much else explained(seen, row["client_id"], row["group_id"])
            yield Finding(
                f"{counted(row['n'], 'commit')} of {called(row['client_id'])} for group {row['group_id']} failed with "
                f"{row['error_name']}",
                who, row["n"], where("api in {OffsetCommit, TxnOffsetCommit}", erring(seen, names), **who),
                row["first_ns"], row["last_ns"], row["latency_ns"] or 0, {"failed": row["n"], "explained_by": cause},
                "low" if cause else None,
                advice="Commit less metadata with each offset, or raise offset.metadata.max.bytes of the broker (4,096)."
                if too_much
                else f"See the finding on these members ({cause}): a member loses its partitions before it commits." if cause
                else None,
            )  # fmt: skip


@rule(
    "poll-stall", "medium", 0.75,
    needs="requests bodies",
    looks_at="members that leave their group and join it again on the same connection (LeaveGroup, or member epoch -1 in "
    "groups whose broker assigns: KIP-848, share and streams groups)",
    advice="The consumer did not poll within max.poll.interval.ms: raise it, lower max.poll.records, or process records in "
    "another thread.",
    instead="an application that unsubscribes and subscribes again",
    sources="KIP-62, KIP-800, KIP-848, KIP-932, KIP-1071",
    stalls=2,
)  # fmt: skip
def poll_stall(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Members that leave because they do not poll, and come back. A member that its group no longer knows when it leaves does
    not count: its session had expired, as that of a stopped process does.
    """
    joins, leaves = (seen.calls_by("group_id", (api,)) for api in ("JoinGroup", "LeaveGroup"))
    again = any(totals(joins.get(name, ()))["last_ns"] > totals(some)["first_ns"] for name, some in leaves.items())
    if not again and seen.apis.isdisjoint(HEARTBEATS):
        return
    from kcap.reports.findings.slow_members import left, looping, returns

    rows = seen.once(returns)
    loops = seen.once(looping) if any(row["n"] >= limit["stalls"] for row in rows) else ()
    for row in rows:
        if row["group_id"] in loops:
            continue
        who = {"client_id": row["client_id"], "group_id": row["group_id"]}
        yield Finding(
            left(row, f" group {row['group_id']}"),
            who, row["n"], where(f"api in {{LeaveGroup, JoinGroup, {', '.join(HEARTBEATS)}}}", **who), row["first_ns"],
            row["last_ns"], int(row["away_ns"]), {"stalls": row["n"], "away_ns": row["away_ns"]},
            None if row["n"] >= limit["stalls"] else "info", STATED if "poll" in (row["reason"] or "") else None,
        )  # fmt: skip


LIVING: Final = (
    "JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "LeaveGroup", "ShareFetch", "ShareAcknowledge", *HEARTBEATS,
)  # fmt: skip
"""APIs by which a member of a group shows that it lives, or that it leaves."""
UNKNOWN: Final = ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH")
"""Errors of a request of a member that the group has removed."""
LATE_NS: Final = 1_000_000_000
"""A member that waits for a response as long as this is not silent meanwhile: its coordinator is."""


@rule(
    "member-lost", "medium", 0.8,
    needs="requests bodies",
    looks_at="members of classic groups that send nothing for `seconds` without having left, until the group has a generation "
    "without them; members of groups whose broker assigns that send nothing for `consumer_seconds` until a later epoch; "
    "members of any group that send nothing for `seconds` and are unknown when they come back. The time in which a member "
    "waits for a response does not count, nor does a member whose coordinator accepts no connections",
    advice="See whether the process was killed (out of memory, SIGKILL without a grace period), paused (garbage collection, "
    "CPU limits), cut off, or busy for longer than its session (KafkaJS sends heartbeats only between records). A consumer "
    "that closes leaves its group; otherwise its partitions have no reader until session.timeout.ms is over.",
    instead="members that by design do not leave, such as static members (group.instance.id) and Kafka Streams; a LeaveGroup "
    "that is not in the capture",
    sources="KIP-62, KIP-345, KIP-848, KIP-932, KIP-1071",
    seconds=6, consumer_seconds=15,
)  # fmt: skip
def member_lost(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Members that went silent and that their groups removed.

    A classic generation is complete when every member has joined or was removed. In groups whose broker assigns, a member may
    be behind the group's epoch. So it must miss three heartbeats of 5 s before a later epoch, or before a response that it is
    unknown; or it misses as many while the epoch advances and no other member joins or leaves. A coordinator that stands still
    or is restarted removes members that could not reach it: these are not reported.
    """
    if not seen.apis.intersection(("JoinGroup", *HEARTBEATS)):
        return
    table = seen.exchanges
    mine = table.filter(table.api.isin(list(LIVING)), table.group_id.notnull(), (table.member_id != "").fill_null(False))
    order = {"group_by": ["group_id", "member_id"], "order_by": ["request_first_ns", "exchange"]}
    sofar = functions(mine).window(**order, rows=(None, 0))
    mine = mine.mutate(
        then_ns=mine.request_first_ns.lead().over(**order), then_error=mine.error.lead().over(**order),
        epoch=mine.generation.max().over(sofar),  # requests about records of share groups have none
        in_ns=(mine.generation >= 0).ifelse(mine.request_first_ns, None).max().over(sofar),
        out_ns=(mine.generation < 0).ifelse(mine.request_first_ns, None).max().over(sofar),
        heard_ns=mine.response_first_ns.max().over(sofar),
    )  # fmt: skip
    waited = (mine.heard_ns - mine.request_first_ns >= LATE_NS).fill_null(False)
    mine = mine.mutate(request_first_ns=waited.ifelse(mine.heard_ns, mine.request_first_ns))
    silent = (mine.then_ns - mine.request_first_ns >= int(limit["seconds"] * 1e9)).fill_null(True)
    ends = mine.mutate(generation=mine.generation.fill_null(mine.epoch))
    ends = ends.filter(silent, ends.api != "LeaveGroup", ends.generation > 0, ends.in_ns >= ends.out_ns.fill_null(0))
    columns = (
        "group_id", "member_id", "client_id", "client_ip", "request_first_ns", "then_ns", "then_error", "generation",
        "connection", "server_ip", "server_port",
    )  # fmt: skip
    rows = seen.first(ends.select(*columns), ("request_first_ns", "group_id", "member_id"), SILENCES_MOST, "silent_members")
    later, by_broker = completed(seen), seen.calls_by("group_id", HEARTBEATS)
    moves = moving(seen) if rows and by_broker else {}
    lost: dict[str, list[Row]] = {}
    for row in rows:
        every = later.get(row["group_id"], [])
        known = every[bisect_right(every, row["generation"], key=itemgetter(0)) :]
        assigned = row["group_id"] in by_broker
        least = int(limit["consumer_seconds" if assigned else "seconds"] * 1e9)
        times = [at for _, at in (known if assigned else known[:1])]
        without = next((at for at in times if at - row["request_first_ns"] >= least), None)
        if row["then_error"] in UNKNOWN:
            without = row["then_ns"]
        elif assigned and without is None and row["then_ns"] is None and seen.span[1] - row["request_first_ns"] >= least:
            without = by_itself(row, times, moves.get(row["group_id"], ()), int(limit["seconds"] * 1e9))
        if without is None:
            continue
        span = row["server_ip"], row["server_port"], row["request_first_ns"], without
        if unreachable(seen, *span) or without - row["request_first_ns"] - stalled_ns(seen, *span) < limit["seconds"] * 1e9:
            continue
        if row["then_ns"] is None or row["then_ns"] >= without:
            took = without - row["request_first_ns"]
            lost.setdefault(row["group_id"], []).append({**row, "silent_ns": took, "without_ns": without})
    lost = silent_for_long(seen, lost)
    used = last_used(mine, seen, [row["connection"] for some in lost.values() for row in some])
    for group, some in lost.items():
        clients = sorted({f"{row['client_id']} at {row['client_ip']}" for row in some})
        longest, back = max(row["silent_ns"] for row in some), sum(used[row["connection"]] >= row["without_ns"] for row in some)
        who = "a member" if len(some) == 1 else counted(len(some), "member")
        yield Finding(
            f"group {group} gave up {who} that sent nothing for up to {seconds(longest)} and had not left: "
            f"{named(clients)}" + (f"; {back} came back" if back else ""),
            {"group_id": group, "client_ids": clients_in(some)}, len(some),
            where(group_id=group), min(row["request_first_ns"] for row in some), max(row["without_ns"] for row in some),
            sum(row["silent_ns"] for row in some), {"members": len(some), "silent_ns": longest, "came_back": back},
        )  # fmt: skip


def silent_for_long(seen: Observed, lost: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The members that sent nothing for the session timeout of their client, where a JoinGroup request shows it: a member that
    does not join a rebalance is removed as well, but sends heartbeats meanwhile (rebalance-slow).
    """
    table = seen.exchanges
    joins = table.filter(table.api == "JoinGroup", table.group_id.isin(sorted(lost)))
    who = ("group_id", "client_id", "client_ip")
    of = joins.group_by(*who).aggregate(
        connection=joins.connection.argmax(joins.request_first_ns), exchange=joins.exchange.argmax(joins.request_first_ns)
    )
    rows = seen.first(of, who, READ_ALL_MOST, "group_sessions") if lost else []
    wanted = {group_of(row, who) for some in lost.values() for row in some}
    timeouts = {
        group_of(row, who): (seen.message(row, "request").get("sessionTimeoutMs") or 0) * 1_000_000
        for row in seen.prepared([row for row in rows if group_of(row, who) in wanted])
    }
    some = {group: [row for row in rows if row["silent_ns"] >= 0.95 * timeouts.get(group_of(row, who), 0)]
            for group, rows in lost.items()}  # fmt: skip
    return {group: rows for group, rows in some.items() if rows}


def moving(seen: Observed) -> dict[str, list[int]]:
    """Group in which the broker assigns -> when members joined or left, ns since the epoch, in order."""
    table = seen.exchanges
    chosen = table.filter(table.api.isin(list(HEARTBEATS)), table.group_id.notnull(), table.generation <= 0)
    chosen = chosen.select("group_id", "request_first_ns")
    rows = seen.first(chosen, ("request_first_ns", "group_id"), SILENCES_MOST, "members_that_move")
    return {group: [row["request_first_ns"] for row in some] for group, some in rows_by(rows, "group_id").items()}


def by_itself(row: Row, epochs: Sequence[int], moves: Sequence[int], least: int) -> int | None:
    """When a later epoch was shown that no member caused which joined or left since this one was silent, no sooner than `least`
    ns from then on."""
    since = row["request_first_ns"]
    caused = moves[at] if (at := bisect_right(moves, since)) < len(moves) else None
    shown = next((at for at in epochs if at - since >= least), None)
    sooner = any(at > since and at - since < least for at in epochs)
    return None if shown is None or sooner or (caused is not None and caused <= shown) else shown


def last_used(mine: Any, seen: Observed, connections: Sequence[str]) -> dict[str, int]:
    """Connection -> when a member used it last, ns since the epoch."""
    if not connections:
        return {}
    chosen = mine.filter(mine.connection.isin(list(connections)))
    last = chosen.group_by("connection").aggregate(last_ns=chosen.request_first_ns.max())
    return {row["connection"]: row["last_ns"] for row in seen.run(last)}


def completed(seen: Observed) -> dict[str, list[tuple[int, int]]]:
    """Group -> its generations with the time, in ns since the epoch, from which a member shows that each is complete."""
    table = seen.exchanges
    joined = (table.api == "JoinGroup") & (table.error == "NONE")
    chosen = table.filter(joined | table.api.isin(list(HEARTBEATS)), table.group_id.notnull(), table.generation > 0)
    shown = joined.ifelse(table.response_first_ns, table.request_first_ns)
    chosen = chosen.mutate(shown_ns=shown)
    chosen = chosen.filter(chosen.shown_ns.notnull())
    times = chosen.group_by("group_id", "generation").aggregate(shown_ns=chosen.shown_ns.min())
    rows = seen.first(times, ("group_id", "generation"), SILENCES_MOST, "generations")
    found: dict[str, list[tuple[int, int]]] = {}
    for row in rows:
        found.setdefault(row["group_id"], []).append((row["generation"], row["shown_ns"]))
    return found
