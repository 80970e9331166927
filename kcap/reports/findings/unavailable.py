"""What a cluster cannot serve: logs on disks that failed, partitions without a leader, groups without a coordinator, changes
without a controller."""

from collections.abc import Mapping

from kcap.limits import EVENTS_MOST
from kcap.reports.definition import RAFT
from kcap.reports.findings.model import Finding, Found, named, rule, seconds, where
from kcap.reports.findings.observed import RESPONSES_READ, SERVER, Observed, Row, clients_in, rows_by, server_of, times_of
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted

DISK, NO_LEADER, NO_COORDINATOR = "KAFKA_STORAGE_ERROR", "LEADER_NOT_AVAILABLE", "COORDINATOR_NOT_AVAILABLE"
NOT_LEADER, METADATA = "NOT_LEADER_OR_FOLLOWER", "__cluster_metadata"
COORDINATED = {
    0: ("group", "__consumer_offsets", "offsets.topic.replication.factor"),
    1: ("transaction", "__transaction_state", "transaction.state.log.replication.factor"),
    2: ("share group", "__share_group_state", "share.coordinator.state.topic.replication.factor"),
}
"""Key type of FindCoordinator (FindCoordinatorRequest.CoordinatorType) -> what is coordinated, the topic that holds its state,
and the setting of the broker with which that topic is created."""
WHOLE = -1
"""Stands for all partitions of a topic."""
STATES = frozenset(topic for _, topic, _ in COORDINATED.values())
"""Topics that coordinators keep their state in."""


@rule(
    "disk-failed", "critical", 0.95,
    needs="responses bodies",
    looks_at="KAFKA_STORAGE_ERROR responses, by broker",
    advice="Look in the broker's log for the log directory that it took offline, and check whether that disk is full or "
    "broken. The broker uses the directory again after a restart (KIP-112).",
    instead="an administrator who is moving a log directory on purpose",
    sources="KIP-112",
)  # fmt: skip
def disk_failed(seen: Observed, _limit: Mapping[str, float]) -> Found:
    """A broker that cannot use a disk that holds its logs."""
    refused = seen.partition_errors([DISK], ("server_ip", "server_port", "topic"))
    for (ip, port), rows in rows_by(refused, SERVER).items():
        clients = seen.clients_of(server_ip=ip, server_port=port, error=DISK)
        topics, requests = sorted({row["topic"] for row in rows if row["topic"]}), sum(row["requests"] for row in rows)
        yield Finding(
            f"{server_of(rows[0])} cannot use the disk of {counted(len(topics), 'topic')} ({named(topics)}): {DISK} for "
            + counted(requests, "request"),
            {"server": server_of(rows[0]), "client_ids": clients}, requests,
            where(f"error == {DISK}", server_ip=ip, server_port=port),
            *times_of(rows), sum(row["latency_ns"] or 0 for row in rows),
            {"errors": requests, "clients": len(clients), "topics": topics},
        )  # fmt: skip


def leaderless(seen: Observed) -> dict[str, list[Row]]:
    """Topic -> clients whose first and last Metadata responses with LEADER_NOT_AVAILABLE name the same partitions of it: n,
    first_ns, last_ns, partitions as in `without_leader`, and whether the last request had `named` the topic: one for all topics
    lists it beside the others.
    """
    if not seen.has_messages or not seen.calls_of(api="Metadata", error=NO_LEADER):
        return {}
    table = seen.exchanges
    table = table.filter(table.api == "Metadata", table.error == NO_LEADER)
    at = table.request_first_ns
    groups = table.group_by("client_id").aggregate(
        n=table.count(), first_ns=at.min(), last_ns=at.max(),
        first=table.exchange.argmin(at), first_of=table.connection.argmin(at),
        last=table.exchange.argmax(at), last_of=table.connection.argmax(at),
    )  # fmt: skip
    rows = seen.run(groups.filter(groups.n > 1))
    ends = [{"connection": row[f"{end}_of"], "exchange": row[end]} for row in rows for end in ("first", "last")]
    messages = [(without_leader(seen.message(end, "response")), seen.message(end, "request")) for end in seen.prepared(ends)]
    found: dict[str, list[Row]] = {}
    for row, (before, _), (after, request) in zip(rows, messages[::2], messages[1::2], strict=True):
        names = {topic.get("name") for topic in request.get("topics") or ()}
        for topic in before.keys() & after.keys():
            if parts := before[topic] & after[topic]:
                # a request may have ids in place of names (KIP-516)
                found.setdefault(topic, []).append(
                    row | {"partitions": parts, "named": not request or topic in names or None in names}
                )
    return found


def without_leader(response: Row) -> dict[str, set[int]]:
    """Topic -> partitions that a Metadata response has without a leader; WHOLE for a topic as such."""
    found: dict[str, set[int]] = {}
    for topic in response.get("topics") or ():
        parts = {part["partitionIndex"] for part in topic.get("partitions") or () if part.get("errorCode") == 5}
        if topic.get("errorCode") == 5:
            parts.add(WHOLE)
        if parts and topic.get("name"):
            found[topic["name"]] = parts
    return found


@rule(
    "no-leader", "high", 0.9,
    needs="responses messages",
    looks_at="LEADER_NOT_AVAILABLE in Metadata responses that clients get for the same partitions again and again",
    advice="See which brokers hold the replicas of these partitions and are missing (kafka-topics.sh --describe "
    "--unavailable-partitions), and read the controller's log.",
    instead="a cluster that was starting",
    sources="KIP-966",
    errors=5, seconds=5,
)  # fmt: skip
def no_leader(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Partitions without a leader: no replica that may lead is available. The finding names clients that write or read the
    topic or request its metadata by name, but not clients that list all topics.
    """
    for topic, rows in seen.once(leaderless).items():
        if not any(persistent(row, limit) for row in rows):
            continue
        errors, (first, last) = sum(row["n"] for row in rows), times_of(rows)
        parts = set.union(*(row["partitions"] for row in rows))
        what = f"topic {topic}" if WHOLE in parts else f"{counted(len(parts), 'partition')} of topic {topic}"
        users = seen.clients_by_topic("Produce", "Fetch").get(topic, ())
        clients = clients_in(row for row in rows if row["named"] or row["client_id"] in users)
        only = clients_in(rows)
        yield Finding(
            f"{what} had no leader for {seconds(last - first)}: {NO_LEADER} in {counted(errors, 'Metadata response')}",
            {"topic": topic, "client_ids": clients}, errors,
            where("api == Metadata", f"error == {NO_LEADER}", client_id=only[0] if len(only) == 1 else None),
            first, last, last - first, {"partitions": len(parts), "errors": errors, "clients": len(rows)},
        )  # fmt: skip


def persistent(row: Row, limit: Mapping[str, float]) -> bool:
    """Whether a client got these errors (n, first_ns, last_ns) for `seconds`, and at least one in such a time."""
    lasted, enough = row["last_ns"] - row["first_ns"], limit["seconds"] * 1e9
    return bool(row["n"] >= limit["errors"] and enough <= lasted <= row["n"] * enough)


@rule(
    "no-coordinator", "high", 0.9,
    needs="responses",
    looks_at="COORDINATOR_NOT_AVAILABLE responses to FindCoordinator that clients get again and again",
    advice="The topic of the coordinator's state is missing or has no leader. See its partitions (kafka-topics.sh --describe) "
    "and the broker's log. It cannot be created while there are fewer brokers than its replication factor.",
    instead="a cluster that was starting",
    errors=5, seconds=5,
)  # fmt: skip
def no_coordinator(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Groups or transactions that cannot begin because no broker coordinates them."""
    kinds: dict[int, list[Row]] = {}
    for row in seen.prepared(seen.errors([NO_COORDINATOR], ("client_id",), ["FindCoordinator"])):
        kinds.setdefault(seen.message(row, "request").get("keyType", 0), []).append(row)
    for kind, rows in kinds.items():
        if not any(persistent(row, limit) for row in rows):
            continue
        what, topic, setting = COORDINATED.get(kind, COORDINATED[0])
        clients = clients_in(rows)
        errors, (first, last) = sum(row["n"] for row in rows), times_of(rows)
        yield Finding(
            f"{counted(len(rows), 'client')} found no {what} coordinator for {seconds(last - first)}: {NO_COORDINATOR} for "
            + counted(errors, "FindCoordinator request"),
            {"client_ids": clients}, errors,
            where("api == FindCoordinator", f"error == {NO_COORDINATOR}", client_id=clients[0] if len(clients) == 1 else None),
            first, last, last - first, {"errors": errors, "clients": len(rows)},
            advice=f"The topic {topic} is missing or has no leader: see its partitions (kafka-topics.sh --describe) and the "
            f"broker's log. It cannot be created while there are fewer brokers than {setting}.",
        )  # fmt: skip


@rule(
    "no-controller", "high", 0.85,
    needs="responses messages",
    looks_at="Fetch requests of brokers and controllers for the cluster's metadata log, to which every controller except the "
    "leader responds with NOT_LEADER_OR_FOLLOWER",
    advice="See which controllers are down or cannot reach each other: a majority of the voters must be available "
    "(kafka-metadata-quorum.sh describe --status; the controllers' logs). Until a controller leads, no partition leader, topic "
    "or setting can change, and no broker can join. Clients continue with the partition leaders that are available.",
    instead="an election, which takes a few seconds after the leader is lost; a leader that the brokers and controllers of "
    "this capture cannot reach, but others can",
    sources="KIP-595, KIP-996",
    between_brokers=True,
    errors=3, seconds=1, longest=5, nodes=2,
)  # fmt: skip
def no_controller(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Times of `seconds` and more in which no Fetch of the metadata log succeeds and controllers respond that they are not the
    leader: the quorum is electing a leader, or cannot elect one.

    The finding is info below `longest` seconds, or if it concerns fewer than `nodes` brokers and controllers: a single one may
    have lost its path. Voters that request votes name the leader that they lost until there is a new one (KIP-996).
    """
    for row in without_success(seen, limit):
        named_ = [leader_named(seen.message(one, "response")) for one in seen.prepared(row["samples"])]
        last = named_[0] if named_ and len(set(named_)) == 1 else None
        lasted = row["until_ns"] - row["first_ns"]
        all_ = row["clients"] >= limit["nodes"]
        what = "no controller led the cluster" if all_ else "a node reached no controller that leads"
        yield Finding(
            f"{what} for {seconds(lasted)}: {counted(row['n'], 'Fetch request')} of {counted(row['clients'], 'node')} for its "
            f"metadata got {NOT_LEADER}, and none succeeded"
            + ("" if last is None else f"; the responses name controller {last}"),
            {"topic": METADATA, "broker_id": last}, row["n"], where(f"error == {NOT_LEADER}", topic=METADATA), row["first_ns"],
            row["until_ns"], lasted, {"errors": row["n"], "nodes": row["clients"], "controllers": row["servers"]},
            None if all_ and lasted >= limit["longest"] * 1e9 else "info",
        )  # fmt: skip


def without_success(seen: Observed, limit: Mapping[str, float]) -> list[Row]:
    """The times of `seconds` and more between two Fetch requests for the metadata's log that succeed, or to the last that does
    not, with `errors` and more that got NOT_LEADER_OR_FOLLOWER: n, clients, servers, first_ns (of these errors), until_ns, and
    some of them as `samples`, spread over the time.
    """
    table = seen.every
    ibis = functions(table)
    polls = table.filter(table.client_id.fill_null("").startswith(RAFT), table.api == "Fetch", table.outcome == "answered")
    polls = polls.mutate(ok=polls.error == "NONE", bad=polls.error == NOT_LEADER)
    order = ["response_first_ns", "connection", "exchange"]
    polls = polls.mutate(turn=polls.ok.cast("int64").sum().over(ibis.window(order_by=order, rows=(None, 0))))
    bad = polls.bad
    runs = polls.group_by("turn").aggregate(
        n=polls.count(where=bad), clients=polls.client_id.nunique(where=bad), first_ns=polls.response_first_ns.min(where=bad),
        end_ns=polls.response_first_ns.max(where=bad), ok_ns=polls.response_first_ns.min(where=polls.ok),
        servers=polls.server_ip.nunique(where=bad),
    )  # fmt: skip
    runs = runs.mutate(until_ns=runs.ok_ns.lead().over(ibis.window(order_by="turn")).fill_null(runs.end_ns))
    runs = runs.filter(runs.n >= int(limit["errors"]), runs.until_ns - runs.first_ns >= int(limit["seconds"] * 1e9))
    rows = seen.first(runs.drop("ok_ns", "end_ns"), ("first_ns",), EVENTS_MOST, "quorum_gaps")
    if rows:
        place = ibis.row_number().over(ibis.window(group_by="turn", order_by=order))
        some = polls.filter(bad).semi_join(runs, "turn").mutate(place=place)
        some = some.inner_join(runs.select("turn", many="n"), "turn")
        some = some.filter((some.place * RESPONSES_READ) % some.many < RESPONSES_READ)
        by = rows_by(seen.run(some.select("turn", "connection", "exchange", "request_first_ns")), "turn")
        for row in rows:
            row["samples"] = by.get(row["turn"], [])
    return rows


def leader_named(response: Row) -> int | None:
    """The leader that a Fetch response names for its partition; None where it names none (KIP-595; leaderId is -1 then)."""
    parts = (part for topic in response.get("responses") or () for part in topic.get("partitions") or ())
    leader = next(((part.get("currentLeader") or {}).get("leaderId", -1) for part in parts), -1)
    return None if leader < 0 else int(leader)
