"""Leaders, replicas and coordinators that move, and what that costs clients."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from kcap.limits import EVENTS_MOST, GONE_MOST
from kcap.reports.definition import RAFT, uids
from kcap.reports.findings.access import controllers
from kcap.reports.findings.model import Finding, Found, called, erring, in_versions, named, picking_parts, rule, seconds, where
from kcap.reports.findings.observed import (
    SERVER,
    Observed,
    Row,
    clients_in,
    cut_short,
    in_groups,
    in_wrong_version,
    rows_by,
    server_of,
    times_of,
    totals,
)
from kcap.reports.findings.outages import leaders_moved
from kcap.reports.findings.unavailable import leaderless
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted
from kcap.schema.registry import api_key
from kcap.schema.releases import removed_in

REFUSED = "error == UNSUPPORTED_VERSION or reason in {fin, rst}"
"""Display filter of requests that a broker refuses with an error, or by closing the connection."""
NOT_LEADING = ("NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_FOR_PARTITION")
"""The error of a broker that does not lead a partition, by its name and by that of earlier releases."""
MOVED = (*NOT_LEADING, "FENCED_LEADER_EPOCH")
"""Errors that a client gets from a broker which no longer leads the partition."""
NO_COORDINATOR = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS")
"""Errors of a broker that does not coordinate the group, or not yet."""
OF_LEADERS = (
    "NONE", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "REQUEST_TIMED_OUT", "OFFSET_OUT_OF_RANGE",
    "OUT_OF_ORDER_SEQUENCE_NUMBER", "DUPLICATE_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID", "MESSAGE_TOO_LARGE",
    "RECORD_LIST_TOO_LARGE", "CORRUPT_MESSAGE",
)  # fmt: skip
"""What a client gets from the leader alone, which has looked at the records or the offset by then (ReplicaManager)."""
WORK = (
    "Produce", "Fetch", "Metadata", "ListOffsets", "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit",
    "OffsetFetch", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "ShareFetch", "StreamsGroupHeartbeat", "InitProducerId",
    "AddPartitionsToTxn", "EndTxn", "SaslHandshake", "SaslAuthenticate",
)  # fmt: skip
"""What producers and consumers cannot do without; administration tries newer APIs and falls back to older ones."""
METADATA_READ = 8
"""Metadata responses whose bytes are looked at: the last of as many equal spans of the capture."""


@rule(
    "leader-change", "medium", 0.85,
    needs="requests responses bodies",
    looks_at="time from a response with a leadership error until the client's next request to the leader of the same "
    "partition, as far as other clients were served there meanwhile",
    advice="Lower metadata.max.age.ms or retry.backoff.ms, or upgrade: newer clients learn the new leader from the error "
    "response (KIP-951).",
    instead="a broker that was down, so that the partition had no leader for that time",
    sources="KIP-951",
    seconds=10,
)  # fmt: skip
def leader_change(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Clients that take long to follow a partition to its new leader.

    The time counts from the response with the error, which a broker that is cut off from its controller sends late; if other
    clients use the partition, it counts from the first response that one of them gets: until then, it may have no leader. Some
    libraries request metadata only so often, kafka-go every 6 s (MetadataTTL) and franz-go every 5 s (MetadataMinAge): below
    `seconds`, the finding is info. A partition that one broker alone serves, before and after its restart, did not move.
    """
    if not seen.errors_of_partitions.intersection(MOVED):
        return
    parts = seen.parts.filter(seen.parts.api.isin(["Produce", "Fetch"]), seen.parts.topic.notnull())
    bad = leaders_moved(seen, MOVED)
    bad = bad.filter(bad.api.isin(["Produce", "Fetch"]), bad.topic.notnull())
    bad = bad.order_by("request_first_ns").limit(EVENTS_MOST)
    good = parts.filter(parts.error.isin(list(OF_LEADERS)), parts.client_id.notnull())
    slot = {"client": "client_id", "what": "api", "name": "topic", "number": "partition", "at_ns": "request_first_ns"}
    key = {"connection": "connection", "exchange": "exchange"}
    ibis = functions(parts)
    bad = bad.filter(bad.client_id.notnull(), bad.response_first_ns.notnull())
    bad = bad.select(
        **slot | {"at_ns": "response_first_ns"}, **key, served=ibis.literal(0, "int64"), good_ns=ibis.null("int64")
    )
    good = good.semi_join(bad, [("topic", "name"), ("partition", "number")])
    good = good.select(**slot, **key, served=ibis.literal(1, "int64"), good_ns="request_first_ns")
    # in one order of time: pairs of errors and successes would be the product of both
    both = ibis.union(bad, good)
    order = {"order_by": ["at_ns", both.served.desc()], "rows": (1, None)}
    place = ["name", "number"]
    both = both.mutate(
        next_ns=both.good_ns.min().over(ibis.window(group_by=list(slot)[:-1], **order)),
        led_ns=both.good_ns.min().over(ibis.window(group_by=place, **order)),
        shared=both.client.min().over(group_by=place) < both.client.max().over(group_by=place),
    )
    times = both.filter(both.served == 0, both.next_ns.notnull())
    times = times.mutate(took=times.next_ns - times.shared.ifelse(times.led_ns, times.at_ns))
    times = times.filter(times.took > 0)
    picked = picking_parts(seen, times, "client", "name")
    sums = {"longest": times.took.max(), "requests": uids(times).nunique()}
    for row in seen.run(in_groups(times, ("client", "name"), ("at_ns", "next_ns"), **sums)):
        only = picked(row | {"n": row["requests"]})
        yield Finding(
            f"{called(row['client'])} took up to {seconds(row['longest'])} to follow topic {row['name']} to its new leader",
            {"client_id": row["client"], "topic": row["name"]}, row["requests"],
            where(erring(seen, MOVED), only, client_id=row["client"], topic=row["name"]), row["first_ns"], row["last_ns"],
            int(row["longest"]), {"errors": row["n"], "longest_ns": row["longest"]},
            None if row["longest"] >= limit["seconds"] * 1e9 else "info",
        )  # fmt: skip


@rule(
    "isr-shrink", "medium", 0.85,
    needs="responses messages bodies",
    looks_at="Metadata responses with fewer in-sync replicas than replicas, up to the end of the capture",
    advice="See which broker is missing or lags behind (UnderReplicatedPartitions, kafka-topics.sh --describe "
    "--under-replicated-partitions).",
    instead="a broker that was restarting; a reassignment that was adding replicas",
    sources="KIP-966",
    seconds=3,
)  # fmt: skip
def isr_shrink(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Partitions whose replicas are not all in sync. The finding is info if the missing broker responded before and after but
    not meanwhile, so that it was restarted, or if it stood still or was away until then.
    """
    if not seen.has_messages or "Metadata" not in seen.apis:
        return
    table = seen.exchanges
    links = seen.every_link
    whole = links.aggregate(begin=links.first_ns.min(), end=links.last_ns.max())
    chosen = table.filter(table.api == "Metadata", table.outcome == "answered").cross_join(whole)
    length = (chosen.end - chosen.begin) // METADATA_READ + 1
    chosen = chosen.mutate(part=((chosen.request_first_ns - chosen.begin) // length).cast("int64"))
    rows = seen.run(
        chosen.group_by("part", "server_ip").aggregate(
            connection=chosen.connection.argmax(chosen.request_first_ns), at_ns=chosen.request_first_ns.max(),
            exchange=chosen.exchange.argmax(chosen.request_first_ns),
        )
    )  # fmt: skip
    small: dict[str, dict[int, tuple[int, int]]] = {}
    since: dict[str, dict[int, int]] = {}
    until: dict[str, int] = {}
    latest = sorted(rows, key=lambda one: -one["at_ns"])[:METADATA_READ][::-1]
    seen.prepare(latest)
    for row in latest:
        for topic in seen.message(row, "response").get("topics") or ():
            name = topic.get("name")
            parts = [
                part for part in topic.get("partitions") or ()
                if len(part.get("isrNodes") or ()) < len(part.get("replicaNodes") or ())
            ]  # fmt: skip
            absent = {node for part in parts for node in set(part["replicaNodes"]) - set(part["isrNodes"])}
            small.pop(name, None)
            before = since.get(name, {})
            since[name] = {node: before[node] if node in before else row["at_ns"] for node in absent}
            if parts:
                small[name] = {part["partitionIndex"]: (len(part["isrNodes"]), len(part["replicaNodes"])) for part in parts}
                until[name] = row["at_ns"]
    if not small:
        return
    from kcap.reports.findings.absences import absences, away_since

    users = seen.clients_by_topic("Produce", "Fetch")
    least = int(limit["seconds"] * 1e9)
    by_missing: dict[tuple[frozenset[int], bool], list[str]] = {}
    back: dict[tuple[int, int, int], bool] = {}
    for name, found in small.items():
        if not min(found.values())[0] and name in seen.once(leaderless):
            continue  # `no-leader` says it
        # a topic that was just created has its leader in sync alone for a moment
        spans = [(node, at, until[name]) for node, at in since[name].items() if until[name] - at >= least]
        for span in spans:
            if span not in back:
                back[span] = came_back(seen, *span)
        lasted = any(not back[span] and not away_since(seen.once(absences), *span) for span in spans)
        by_missing.setdefault((frozenset(since[name]), lasted), []).append(name)
    for (nodes, lasted), names in by_missing.items():
        names.sort()
        sizes = [size for name in names for size in small[name].values()]
        (in_sync, replicas), count = min(sizes), len(sizes)
        of = f"topic {names[0]}" if len(names) == 1 else f"{counted(len(names), 'topic')} ({named(names)})"
        clients = sorted({client for name in names for client in users.get(name, [])})
        yield Finding(
            f"{counted(count, 'partition')} of {of} {'has' if count == 1 else 'have'} "
            f"{'as few as ' if len(set(sizes)) > 1 else ''}{in_sync} of {replicas} replicas in sync"
            + (f"; broker {min(nodes)} is missing" if len(nodes) == 1 else ""),
            {"topic": names[0] if len(names) == 1 else None, "client_ids": clients,
             "broker_id": min(nodes) if len(nodes) == 1 else None}, count,
            where("api == Metadata", topic=names[0] if len(names) == 1 else None),
            min((at for name in names for at in since[name].values()), default=until[names[0]]),
            max(until[name] for name in names), 0,
            {"partitions": count, "in_sync": in_sync, "replicas": replicas, **({"topics": names} if len(names) > 1 else {})},
            None if lasted else "info",
        )  # fmt: skip


STOPPING_NS: Final = 10_000_000_000
"""How long before its process ends a broker may leave the replicas in sync: first it hands over what it leads."""


def came_back(seen: Observed, node: int, since_ns: int, until_ns: int) -> bool:
    """Whether a broker was restarted: it answered before this time and after, and not in it; or all of its connections ended
    soon after it began, and later ones of it began.
    """
    table = seen.every
    table = table.filter(table.broker_id == node, table.response_first_ns.notnull())
    at = table.response_first_ns
    (row,) = seen.run(
        table.aggregate(before=at.min(), inside=table.count(where=at.between(since_ns, until_ns)), behind=at.max())
    )
    if row["before"] is None or row["before"] >= since_ns:
        return False
    absent = not row["inside"] and row["behind"] > until_ns
    return absent or any(0 <= gap["ended_ns"] - since_ns <= STOPPING_NS for gap in without_connections(seen, node))


def without_connections(seen: Observed, node: int) -> list[Row]:
    """The times in which a broker has no connection that carried exchanges, neither as a server nor to copy logs, between two
    that have: `ended_ns` is when such a time begins. A connection ends when one side closes it: the other may do so much later.
    """
    every, links = seen.every, seen.every_link
    ibis, order, links = functions(links), ["first_ns", "connection"], links.filter(links.exchanges > 0)
    copying = links.client_id.fill_null("").startswith(f"broker-{node}-fetcher-") | (links.client_id == f"{RAFT}{node}")
    both = ibis.union(links.filter(copying), links.semi_join(every.filter(every.broker_id == node), SERVER))
    ends = both.closed_ns.fill_null(both.last_ns)
    both = both.mutate(upto_ns=ends.max().over(ibis.window(order_by=order, rows=(None, 0))))
    both = both.mutate(ended_ns=both.upto_ns.lag().over(ibis.window(order_by=order)))
    return seen.run(both.filter(both.first_ns > both.ended_ns).select("ended_ns"))


@rule(
    "hot-broker", "low", 0.7,
    needs="requests responses peers",
    looks_at="bytes of Produce and Fetch, by broker",
    advice="Spread the leaders (kafka-leader-election.sh --election-type preferred), or reassign partitions. Also look for "
    "skewed keys.",
    instead="a capture that was taken at one broker and shows little of the others",
    megabytes=10, share=0.8, brokers=3,
)  # fmt: skip
def hot_broker(seen: Observed, limit: Mapping[str, float]) -> Found:
    """One broker that serves nearly all bytes."""
    if len({(call["server_ip"], call["server_port"]) for call in seen.calls}) < limit["brokers"]:
        return
    served = {
        place: totals([call for call in calls if call["outcome"] in ("answered", "one_way")])
        for place, calls in seen.calls_by(SERVER, ("Produce", "Fetch")).items()
    }
    size = {place: row["request_bytes"] + row["response_bytes"] for place, row in served.items() if row["n"]}
    total = sum(size.values())
    if len(size) >= limit["brokers"] and total >= limit["megabytes"] * 1e6:
        ip, port = max(size, key=lambda place: size[place])
        most, hot = size[ip, port], served[ip, port]
        if most >= limit["share"] * total:
            server = f"{ip}:{port}"
            yield Finding(
                f"broker {server} carries {most / total:.0%} of the bytes of {len(size)} brokers",
                {"server": server, "broker_id": hot["broker_id"]}, hot["n"],
                where("api in {Produce, Fetch}", server_ip=ip, server_port=port), hot["first_ns"], hot["last_ns"], 0,
                {"bytes": most, "share": round(most / total, 3), "brokers": len(size)},
            )  # fmt: skip


@rule(
    "coordinator-moves", "medium", 0.8,
    needs="responses bodies",
    looks_at="NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE and COORDINATOR_LOAD_IN_PROGRESS responses, by group",
    advice="See why the leader of the group's partition of __consumer_offsets moves: broker restarts, elections, offline "
    "partitions.",
    instead="a broker that had just started; its clients find it again by themselves",
    errors=3, coordinators=2, seconds=5, each=2,
)  # fmt: skip
def coordinator_moves(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Groups whose coordinator moves or is not available.

    A client learns of a move from one or two errors (`each`), as in a rolling restart, in which the coordinator goes from
    broker to broker: that is info. Those less than a second apart are one, as KafkaJS commits behind a refused Heartbeat. Moves
    around the time in which a broker was away, which follow from that, are info as well.
    """
    if not any(call["error"] in NO_COORDINATOR for call in seen.calls):
        return
    from kcap.reports.findings.addresses import servers_shared  # for captures with such errors
    from kcap.reports.findings.coordinators import most_often_refused

    by: dict[str, list[Row]] = {}
    homes: dict[str, set[tuple[str, int]]] = {}
    several = seen.once(servers_shared)
    for call in seen.calls:
        if not call["group_id"] or (call["server_ip"], call["server_port"]) in several:
            continue
        if call["error"] in NO_COORDINATOR:
            by.setdefault(call["group_id"], []).append(call)
        elif call["error"] == "NONE" and call["api"] in ("JoinGroup", "Heartbeat", "ConsumerGroupHeartbeat", "OffsetCommit"):
            homes.setdefault(call["group_id"], set()).add((call["server_ip"], call["server_port"]))
    for group, rows in by.items():
        moved = sum(row["n"] for row in rows if row["error"] == "NOT_COORDINATOR")
        count, places = sum(row["n"] for row in rows), len(homes.get(group, ()))
        first, last = times_of(rows)
        refused = not places and last - first >= limit["seconds"] * 1e9
        most = seen.once(most_often_refused).get(group, 0)
        again = places >= limit["coordinators"] and most > limit["each"] * (places - 1)
        loud = moved >= limit["errors"] and (again or refused)
        gone = None
        if loud and again:
            from kcap.reports.findings.absences import while_away

            gone = while_away(seen, rows)
        yield Finding(
            f"group {group} got {counted(count, 'response')} that its coordinator was elsewhere or not ready"
            + (f"; {places} brokers coordinated it" if places > 1 else f", and no other for {seconds(last - first)}" * refused)
            + (f", while {gone.words}" if gone else ""),
            {"group_id": group, "client_ids": clients_in(rows)}, count,
            where(erring(seen, NO_COORDINATOR), group_id=group), first, last, sum(row["latency_ns"] or 0 for row in rows),
            {"errors": count, "not_coordinator": moved, "coordinators": places}, None if loud and not gone else "info",
        )  # fmt: skip


@rule(
    "acks-risk", "medium", 0.7,
    needs="requests responses bodies",
    looks_at="Produce requests with acks=0 or acks=1 to topics whose leaders moved while the capture ran",
    advice="Set acks=all (and enable.idempotence=true): records that only one leader took are lost if the next leader did not "
    "have them.",
    instead="data that may be lost, such as metrics",
    sources="KIP-98, KIP-679",
    errors=3,
)  # fmt: skip
def acks_risk(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Producers that do not wait for replicas while leaders move. A partition that one broker alone serves, before and after
    its restart, did not move.
    """
    if not seen.errors_of_partitions.intersection(MOVED):
        return
    moved: dict[str, int] = {}
    for row in seen.partition_errors(MOVED, ("topic",), leaders_moved(seen, MOVED)):
        moved[row["topic"] or "__"] = row["n"]
    risky = {name: n for name, n in moved.items() if n >= limit["errors"] and not name.startswith("__")}
    if not risky:
        return
    parts = seen.parts
    taken = parts.error.fill_null("NONE") == "NONE"  # what was refused was not written, and is sent again
    chosen = parts.filter(parts.api == "Produce", parts.acks.isin([0, 1]), taken)
    for row in seen.run(in_groups(chosen, ("client_id", "topic", "acks"), records=chosen.records.sum())):
        if row["topic"] not in risky:
            continue
        yield Finding(
            f"{called(row['client_id'])} wrote {row['records'] or 0} records to {row['topic']} with acks={row['acks']} while "
            f"its leaders moved ({counted(risky[row['topic']], 'error')})",
            {"client_id": row["client_id"], "topic": row["topic"]}, row["n"],
            where(f"acks == {row['acks']}", client_id=row["client_id"], topic=row["topic"]), row["first_ns"], row["last_ns"], 0,
            {"records": row["records"], "acks": row["acks"], "errors": risky[row["topic"]]},
        )  # fmt: skip


@rule(
    "version-refused", "high", 0.9,
    needs="responses",
    looks_at="UNSUPPORTED_VERSION responses, also to ApiVersions if the client tries no older version; requests at which the "
    "broker closes the connection, in versions that it does not list, or that newer releases removed and it never answers; "
    "Java clients that have no version of Produce and Fetch in common with a broker",
    advice="kcap versions shows the API and version, and which releases support it. Upgrade the older side (KIP-896).",
    instead="a feature that a client tries and can do without",
    sources="KIP-35, KIP-896, KAFKA-18659",
    refused=3,
)  # fmt: skip
def version_refused(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Requests in versions that the broker does not support."""
    if all(call["error"] != "UNSUPPORTED_VERSION" and call["reason"] not in ("fin", "rst") for call in seen.calls):
        return
    table = seen.exchanges
    refused = (table.error == "UNSUPPORTED_VERSION") & ((table.api != "ApiVersions") | table.client_id.isin(insisting(seen)))
    closed = cut_short(table) & (table.api != "ApiVersions")
    chosen = table.filter(refused | (closed & (in_wrong_version(table) | seen.once(gone))))
    ends = ("client_id", "server_ip", "server_port")
    by = rows_by(seen.run(in_groups(chosen, (*ends, "api", "api_version"))), ends)
    served = {(call["client_id"], call["api"]) for call in seen.calls if call["error"] == "NONE"}
    for (client, ip, port), every in by.items():
        offers = seen.once(controllers).get((ip, port))  # a client for brokers is in the wrong place, in whatever version
        some = every if offers is None else [row for row in every if api_key(row["api"] or "") in offers]
        if not some:
            continue
        count = sum(row["n"] for row in some)
        work = [row for row in some if row["api"] in WORK or row["api"] == "ApiVersions"]
        never = any((client, row["api"]) not in served for row in work)
        used = sorted({f"{row['api']} v{row['api_version']}" for row in some})
        yield Finding(
            f"{ip}:{port} refused {counted(count, 'request')} of {called(client)}: {named(used)}",
            {"client_id": client, "server": f"{ip}:{port}"}, count,
            where(in_versions(some), REFUSED, client_id=client, server_ip=ip, server_port=port),
            *times_of(some), 0,
            {"refused": count, "versions": used},
            None if any(row["n"] >= limit["refused"] for row in work) else "medium" if never else "info",
        )  # fmt: skip
    yield from strangers(seen)


def strangers(seen: Observed) -> Found:
    """Clients that have no version of Produce and Fetch in common with a broker, as both show in ApiVersions.

    A Java client sends its name since ApiVersions v3, which such a broker refuses first.
    """
    known = [call for call in seen.calls_of(api="ApiVersions") if call["client_id"] is not None]
    refused = {(call["client_id"], server_of(call)) for call in known if call["error"] == "UNSUPPORTED_VERSION"}
    calls = [call for call in known if call["error"] == "NONE" and (call["client_id"], server_of(call)) in refused]
    if not calls:
        return
    from kcap.reports.versions.fingerprints import Software  # the definitions of all releases take time to load
    from kcap.reports.versions.libraries import JAVA
    from kcap.reports.versions.simulator import nothing_in_common

    offered = seen.offered(calls)
    by: dict[tuple[str | None, str | None, str], list[Row]] = {}
    for call in calls:
        if call["software_name"] == JAVA:
            by.setdefault((call["client_id"], call["software_version"], server_of(call)), []).append(call)
    for (client, version, server), some in by.items():
        ranges = offered.get((some[0]["server_ip"], some[0]["server_port"]), {})
        apart = nothing_in_common(Software(JAVA, version, JAVA, guessed=False, why=""), ranges)
        if apart:
            whole = totals(some)
            yield Finding(
                f"{called(client)} ({JAVA} {version}) and {server} have no version in common of {' and '.join(apart)}",
                {"client_id": client, "server": server}, whole["n"],
                where("api == ApiVersions", "error == NONE", client_id=client, server_ip=some[0]["server_ip"],
                      server_port=some[0]["server_port"]),
                whole["first_ns"], whole["last_ns"], 0, {"versions": apart},
            )  # fmt: skip


def insisting(seen: Observed) -> list[str]:
    """Clients that do nothing but request ApiVersions in a version that is refused, again and again, where others try version 0
    next (KIP-511).
    """
    sent: dict[str, Counter[tuple[str, str, int]]] = {}
    for call in seen.calls:
        if call["client_id"] is not None:
            sent.setdefault(call["client_id"], Counter())[call["api"], call["error"], call["api_version"]] += call["n"]
    return [
        client for client, kinds in sent.items()
        if len(kinds) == 1 and kinds.total() > 1 and next(iter(kinds))[:2] == ("ApiVersions", "UNSUPPORTED_VERSION")
    ]  # fmt: skip


def gone(seen: Observed) -> Any:
    """Of `exchanges`: requests of versions that some release took away, to servers that answer others and none of these, on
    connections that the server closes. Kafka 4 names Produce 0-2 and closes (KAFKA-18659); clients without ApiVersions ask
    nothing before. A server that answers nothing at all may close for any reason, unless responses name it as a broker beside
    one that refuses the same versions.
    """
    answered = seen.calls_of(outcome="answered")
    taken = {(call["server_ip"], call["server_port"], call["api"], call["api_version"]) for call in answered}
    speaking = {place[:2] for place in taken}
    closed = {
        (call["server_ip"], call["server_port"], call["api"], call["api_version"])
        for call in seen.calls if call["reason"] in ("fin", "rst") and taken_away(call["api"], call["api_version"])
    }  # fmt: skip
    refused = {place for place in closed - taken if place[:2] in speaking}
    versions = {place[2:] for place in refused} - {place[2:] for place in taken}
    silent = {place for place in closed if place[:2] not in speaking and place[2:] in versions}
    beside = {(row["host"], row["port"]) for row in seen.run(seen.brokers)} if silent else set()
    table = seen.exchanges
    chosen = functions(table).literal(False)
    for ip, port, api, version in sorted(refused | {place for place in silent if place[:2] in beside})[:GONE_MOST]:
        chosen |= (table.server_ip == ip) & (table.server_port == port) & (table.api == api) & (table.api_version == version)
    return chosen & table.connection.isin(seen.closed_by_server)


def taken_away(api: str | None, version: int | None) -> bool:
    """Whether some release took this version away."""
    key = None if api is None else api_key(api)
    return key is not None and version is not None and removed_in(key, version) is not None
