"""What a cluster cannot serve: logs on disks that failed, partitions without a leader, groups without a coordinator."""

from collections.abc import Mapping

from kcap.reports.findings.model import Finding, Found, named, rule, seconds, where
from kcap.reports.findings.observed import SERVER, Observed, Row, clients_in, rows_by, server_of, times_of
from kcap.reports.text import count as counted

DISK, NO_LEADER, NO_COORDINATOR = "KAFKA_STORAGE_ERROR", "LEADER_NOT_AVAILABLE", "COORDINATOR_NOT_AVAILABLE"
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
    looks_at="KAFKA_STORAGE_ERROR responses by broker",
    advice="See the broker's log for the log directory that it took offline, and whether that disk is full or broken; the "
    "broker uses it again after a restart (KIP-112).",
    instead="an administrator who moves a directory on purpose",
    sources="KIP-112",
)  # fmt: skip
def disk_failed(seen: Observed, _limit: Mapping[str, float]) -> Found:
    """A broker that cannot use the disk of a log."""
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
    first_ns, last_ns, partitions as in `without_leader`.
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
    without = [without_leader(seen.message(end, "response")) for end in seen.prepared(ends)]
    found: dict[str, list[Row]] = {}
    for row, before, after in zip(rows, without[::2], without[1::2], strict=True):
        for topic in before.keys() & after.keys():
            if parts := before[topic] & after[topic]:
                found.setdefault(topic, []).append(row | {"partitions": parts})
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
    advice="See which brokers hold the replicas of these partitions and are not there (kafka-topics.sh --describe "
    "--unavailable-partitions), and the controller's log.",
    instead="a cluster that was starting",
    sources="KIP-966",
    errors=5, seconds=5,
)  # fmt: skip
def no_leader(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Partitions without a leader: no replica of them is there that may lead."""
    for topic, rows in seen.once(leaderless).items():
        if not any(persistent(row, limit) for row in rows):
            continue
        errors, (first, last) = sum(row["n"] for row in rows), times_of(rows)
        parts = set.union(*(row["partitions"] for row in rows))
        what = f"topic {topic}" if WHOLE in parts else f"{counted(len(parts), 'partition')} of topic {topic}"
        clients = clients_in(rows)
        yield Finding(
            f"{what} had no leader for {seconds(last - first)}: {NO_LEADER} in {counted(errors, 'Metadata response')}",
            {"topic": topic, "client_ids": clients}, errors,
            where("api == Metadata", f"error == {NO_LEADER}", client_id=clients[0] if len(clients) == 1 else None),
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
    advice="The topic of the coordinator's state is missing or has no leader: see its partitions (kafka-topics.sh --describe) "
    "and the broker's log. It cannot be created while there are fewer brokers than its replication factor.",
    instead="a cluster that was starting",
    errors=5, seconds=5,
)  # fmt: skip
def no_coordinator(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Groups or transactions that cannot begin: no broker coordinates them."""
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
