"""The exchanges between the members and the coordinator of a group, as events in order of time.

In: the tables of a capture and its messages. Out: events of each group. Law: heartbeats that change nothing are not events, so
that a stable group has few events however long the capture is; if a body is not available, its fields are empty.
"""

import base64
import binascii
from dataclasses import dataclass, replace
from struct import Struct
from typing import Any, Final

from kcap.decode.message import decode_data
from kcap.limits import GROUP_EVENTS_MAX
from kcap.model import Buffer
from kcap.reports.findings.observed import CONNECT, HEARTBEATS, Observed, Row
from kcap.reports.names import shortened
from kcap.wire.cursor import Cursor
from kcap.wire.varints import DamageError

CLASSIC: Final = ("JoinGroup", "SyncGroup", "LeaveGroup", "Heartbeat")
Assignment = dict[str, list[int]]
"""Topic -> partitions, in increasing order."""
CONSUMER: Final = "consumer"
"""The protocol type of consumers."""
ITSELF: Final = -1
"""Task number that stands for the connector itself (ConnectProtocol.CONNECTOR_TASK)."""
WORKER: Final = Struct(">hh")
"""Beginning of a worker's assignment: version, error."""


@dataclass(frozen=True, slots=True)
class Event:
    """An exchange that concerns membership."""

    api: str
    client_id: str | None
    client_ip: str
    coordinator: str
    first_ns: int
    last_ns: int
    """Time of the response's last byte; of the request's last byte if there is no response."""
    error: str | None
    member_id: str | None
    """The member id in the response, or else in the request."""
    instance_id: str | None
    epoch: int | None
    """Generation or member epoch of the response."""
    sent_epoch: int | None
    """Generation or member epoch of the request."""
    left: tuple[str, ...] = ()
    """Members that a LeaveGroup names."""
    reason: str = ""
    """The reason that a member gives for joining or leaving (KIP-800)."""
    fresh: bool = False
    """Whether it is the JoinGroup of a client that has no member id yet."""
    assignment: Assignment | None = None
    """None if the response has none. For Kafka Connect's workers: connector -> its tasks (`Workers`)."""
    protocol_type: str | None = None
    """The protocol type of a classic group as its members state it: `consumer`, `connect` or another."""


def events(seen: Observed) -> dict[str, list[Event]]:
    """Group -> its events in the order of their requests."""
    names = topic_names(seen)
    out: dict[str, list[Event]] = {}
    types: dict[str, str] = {}
    workers: dict[str, Workers] = {}
    for row in seen.prepared(rows_of(seen)):
        group, sent, answer = row["group_id"], seen.message(row, "request"), seen.message(row, "response")
        types[group] = name_in(sent, "protocolType") or types.get(group, "")
        made = event(row, sent, answer, names, types[group] or None)
        if types[group] == CONNECT and made.member_id is not None:
            mine = workers.setdefault(group, Workers())
            if row["api"] == "JoinGroup":
                mine.joined(made.member_id, sent)
            elif row["api"] == "SyncGroup" and made.error == "NONE":
                made = replace(made, assignment=mine.synced(made.member_id, answer.get("assignment") or ""))
        out.setdefault(group, []).append(made)
    return out


def rows_of(seen: Observed) -> list[Row]:
    """Exchanges that may change a group: all except successful heartbeats with a known epoch and no assignment."""
    table = seen.exchanges
    mine = table.filter(table.group_id.notnull(), table.api.isin([*CLASSIC, *HEARTBEATS]))
    beats = mine.filter(mine.api.isin(list(HEARTBEATS)))
    least = beats.group_by("api", "api_version").aggregate(least=beats.response_bytes.min(where=beats.error == "NONE"))
    joined = mine.left_join(least, ["api", "api_version"])
    steady = (joined.error == "NONE") & (
        (joined.api == "Heartbeat")
        | (joined.api.isin(list(HEARTBEATS)) & (joined.generation > 0) & (joined.response_bytes == joined.least))
    )
    columns = [
        "connection", "exchange", "group_id", "api", "client_id", "client_ip", "server_ip", "server_port", "request_first_ns",
        "request_last_ns", "response_last_ns", "error", "member_id", "generation",
    ]  # fmt: skip
    chosen = joined.filter(~steady.fill_null(False), joined.request_first_ns.notnull()).select(*columns)
    return seen.first(chosen, ("request_first_ns", "connection", "exchange"), GROUP_EVENTS_MAX, "group_changes")


def event(row: Row, sent: Row, answer: Row, names: dict[str, str], protocol_type: str | None) -> Event:
    """Makes an event of an exchange with its messages. `protocol_type` is that of its group; only some requests name it."""
    left = [name_in(member, "memberId", "groupInstanceId") or "" for member in sent.get("members") or []]
    if row["api"] == "LeaveGroup" and not left:
        left = [name_in(sent, "memberId") or row["member_id"] or ""]
    reasons = [name_in(member, "reason") for member in sent.get("members") or []]
    epoch = answer.get("generationId", answer.get("memberEpoch", row["generation"]))
    return Event(
        row["api"], row["client_id"], row["client_ip"], f"{row['server_ip']}:{row['server_port']}",
        row["request_first_ns"], row["response_last_ns"] or row["request_last_ns"] or row["request_first_ns"], row["error"],
        name_in(answer, "memberId") or name_in(sent, "memberId") or row["member_id"] or None,
        name_in(sent, "groupInstanceId", "instanceId"), epoch,
        sent.get("generationId", sent.get("memberEpoch", row["generation"])), tuple(filter(None, left)),
        next(filter(None, [name_in(sent, "reason"), *reasons]), None) or "",
        row["api"] == "JoinGroup" and sent.get("memberId") == "",
        assigned(row["api"], answer, names) if row["error"] == "NONE" and protocol_type in (None, CONSUMER) else None,
        protocol_type,
    )  # fmt: skip


def name_in(message: Row, *fields: str) -> str | None:
    """The first of these fields of a message with a nonempty text, shortened as in reports; None if there is none."""
    found = next((message[name] for name in fields if message.get(name)), None)
    return shortened(found) if isinstance(found, str) else None


def assigned(api: str, answer: Row, names: dict[str, str]) -> Assignment | None:
    """The assignment in a response, except for Kafka Connect's workers."""
    value: Any = answer.get("assignment")
    if api == "SyncGroup":
        return classic(value) if value else None
    if api == "StreamsGroupHeartbeat":
        tasks = answer.get("activeTasks")
        return None if tasks is None else {str(one["subtopologyId"]): sorted(one["partitions"]) for one in tasks}
    if not isinstance(value, dict):
        return None
    pairs = ((names.get(one["topicId"], one["topicId"]), one["partitions"]) for one in value.get("topicPartitions") or [])
    return {topic: sorted(partitions) for topic, partitions in pairs}


def classic(value: str) -> Assignment | None:
    """The assignment in these bytes; None for protocols other than `consumer`, and for damaged bytes."""
    try:
        found: Any = decode_data("ConsumerProtocolAssignment", base64.b64decode(value)).to_json()
    except binascii.Error:
        return None
    parts = found.get("assignedPartitions") if isinstance(found, dict) else None
    if parts is None or not all("partitions" in one for one in parts):
        return None
    return {shortened(str(one["topic"])): sorted(one["partitions"]) for one in parts}


class Workers:
    """The assignments of Kafka Connect's workers, by member id: connector -> its tasks, with `ITSELF` for the connector.

    Since KIP-415 an assignment has what a worker gets in addition to what it has, which its JoinGroup request lists, and what
    it must revoke. Sources: ConnectProtocol, IncrementalCooperativeConnectProtocol.
    """

    def __init__(self) -> None:
        self.has: dict[str, Assignment] = {}

    def joined(self, member: str, sent: Row) -> None:
        """Observes a JoinGroup request. Its metadata are version, URL, offset of the configuration and, since KIP-415, an
        assignment."""
        self.has.pop(member, None)
        for protocol in sent.get("protocols") or ():
            try:
                cursor = Cursor(base64.b64decode(protocol.get("metadata") or ""))
                if cursor.read_int16() == 0:
                    self.has[member] = {}
                    return
                cursor.read_string()
                cursor.skip(8)
                start, end = cursor.read_span(compact=False, width=4)
                self.has[member] = read_assignment(cursor.buffer[start:end])[1] if start >= 0 else {}
            except (binascii.Error, DamageError):
                continue
            return

    def synced(self, member: str, value: str) -> Assignment | None:
        """The assignment of a worker after a SyncGroup response; None if it is not known."""
        had = self.has.pop(member, None)
        try:
            version, given, revoked = read_assignment(base64.b64decode(value))
        except (binascii.Error, DamageError):
            return None
        if version == 0:
            return given
        if had is None:
            return None
        now = {name: sorted({*had.get(name, ()), *given.get(name, ())} - {*revoked.get(name, ())}) for name in had | given}
        self.has[member] = {name: numbers for name, numbers in now.items() if numbers}
        return self.has[member]


def read_assignment(data: Buffer) -> tuple[int, Assignment, Assignment]:
    """Version, assigned and revoked tasks from the bytes of a worker's assignment; nothing for no bytes.

    Raises DamageError.
    """
    if not data:
        return 0, {}, {}
    cursor = Cursor(data)
    version, _ = cursor.read(WORKER)
    cursor.read_string()  # the leader
    cursor.read_string()  # its URL
    cursor.skip(8)  # the offset of its configuration
    return version, read_connectors(cursor), read_connectors(cursor) if version else {}


def read_connectors(cursor: Cursor) -> Assignment:
    """Reads an array of connectors with their tasks."""
    found: Assignment = {}
    for _ in range(cursor.read_int32()):
        tasks = found.setdefault(shortened(cursor.read_string() or ""), [])
        tasks += (cursor.read_int32() for _ in range(cursor.read_int32()))
    return {connector: sorted(tasks) for connector, tasks in found.items()}


def topic_names(seen: Observed) -> dict[str, str]:
    """Topic id -> name, as far as the capture shows it."""
    table = seen.partitions
    known = table.filter(table.topic_id.notnull(), table.topic.notnull()).select("topic_id", "topic").distinct()
    return {row["topic_id"]: row["topic"] for row in seen.run(known)}
