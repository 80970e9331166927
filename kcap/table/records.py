"""The table `records`: one row per record of Produce requests and of Fetch and ShareFetch responses.

In: batches of exchanges whose bodies are retained. Out: record batches of selected columns. Law: offsets are absolute; those of
a Produce count from the base offset in its response. An incomplete last batch ends a partition, damage affects only what it
damages, and nothing raises.
"""

from collections.abc import Callable, Iterator, Sequence
from struct import pack
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa

from kcap.batch.columns import SIDES, BatchColumns
from kcap.batch.failures import report_failure
from kcap.columns import Column
from kcap.decode.json import Records, read_json
from kcap.decode.message import decode_request, decode_response
from kcap.decode.plan import plan_for
from kcap.decode.secrets import DAMAGED, masked, shown_as
from kcap.facts.message_json import behind_tags
from kcap.facts.topic_names import NO_ID
from kcap.facts.tracker import MetadataTracker, Reread
from kcap.faults import Fault, fault_of
from kcap.kafka.frames import NO_BODY
from kcap.limits import FRAME_GATHERED_MAX, RECORD_BYTES_AT_ONCE, ROWS_AT_ONCE
from kcap.records.batch import Batch, Contents, Record
from kcap.records.record_sets import RecordSet, each_batch
from kcap.schema.registry import REQUEST, RESPONSE, api_key, api_name, request_header_version
from kcap.table.schema import TYPES, arrow_schema
from kcap.wire.text import MASKED
from kcap.wire.varints import java_long

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s
    from kcap.decode.message import Message

Json = dict[str, Any]
PRODUCE, FETCH, SHARE_FETCH = (api_key(name) for name in ("Produce", "Fetch", "ShareFetch"))
CARRIERS: Final = [key for key in (PRODUCE, FETCH, SHARE_FETCH) if key is not None]


class Exchanged:
    """The bodies of one exchange: from the batch if it has them, else read again."""

    def __init__(self, columns: BatchColumns, at: int, reread: Reread) -> None:
        def part(name: str) -> int | None:
            vector = columns.number(name)
            return int(vector.values[at]) if vector.valid is None or vector.valid[at] else None

        self.key, self.version = part("api_key"), part("api_version")
        self._columns, self._at, self._reread = columns, at, reread
        self._slots = [part(f"{side}_slot") for side in SIDES]
        self._sizes = [part(f"{side}_bytes") for side in SIDES]
        self._correlation = part("correlation_id")
        self.fault: Fault | None = None
        """The first fault of a body; what was read before it remains."""

    def body(self, side: int, records: Records = "base64") -> Json:
        """The body of one side as JSON, as far as it can be decoded; empty if there is none. With `records` as bytes, large
        messages take less memory."""
        if self.key is None or self.version is None or (side == RESPONSE and self._sizes[RESPONSE] is None):
            return {}
        plan = plan_for(self.key, self.version, side)
        if plan is None:
            return {}
        data, message = self._kept(side)
        if message is None:
            start = behind_tags(data, self.key, self.version, side)
        else:
            data, start, plan = message.frame, message.header.end, plan_for(self.key, message.version, side) or plan
        reading = read_json(plan, data, start, records=records)
        self.note(reading.undecoded)
        return reading.value

    def shown(self, side: int) -> Json:
        """The same with possible secrets masked."""
        if self.key is None or self.version is None or (side == RESPONSE and self._sizes[RESPONSE] is None):
            return {}
        data, message = self._kept(side)
        if message is None:
            message = self._headed(side, data, self.key, self.version)
        self.note(message.undecoded)
        damaged = side == REQUEST and self._client_id() == MASKED
        return masked(DAMAGED if damaged else shown_as(message, self._sizes[side]), message.to_json() or {})

    def _kept(self, side: int) -> "tuple[bytes, Message | None]":
        """The body as far as the batch has it, and the message if more was read again."""
        slot = self._slots[side]
        (low,), (high,) = self._columns.spans(np.array([NO_BODY if slot is None else slot]))
        data = self._columns.body(low, high)
        lacking = not data and (slot is None or slot < 0)
        if lacking or (self._sizes[side] or 0) > FRAME_GATHERED_MAX:
            # The batch has at most the beginning of a large frame, which is not gathered. A body in the arena may be empty.
            message = self._reread(self._columns.batch, self._at, SIDES[side])
            if message is not None and message.version is not None and not message.header.fault:
                return data, message
        return data, None

    def _headed(self, side: int, data: bytes, key: int, version: int) -> "Message":
        """The body as a message after the header that its row describes."""
        head = (self._correlation or 0).to_bytes(4, "big", signed=True)
        if side == RESPONSE:
            return decode_response(head + data, key, version)
        head = pack(">hh", key, version) + head
        if request_header_version(key, version):
            raw = (self._client_id() or "").encode()
            head += pack(">h", len(raw)) + raw
        return decode_request(head + data)

    def _client_id(self) -> str | None:
        known, numbers = self._columns.rows.codes("client_id")
        name: str | None = known[int(numbers[self._at])]
        return name

    def note(self, undecoded: str | None) -> None:
        """Records the first fault; damage is reported elsewhere."""
        if self.fault is None and isinstance(undecoded, Fault):
            self.fault = undecoded


Partition = tuple[str | None, str | None, int, bytes]
"""Name and id of the topic, number of the partition, its records."""


def partitions(
    body: Json, topics: str, name: str, inner: str, number: str
) -> Iterator[tuple[str | None, str | None, int, Json]]:
    """Each partition of a body: name and id of its topic, its number, and its struct."""
    for topic in body.get(topics) or ():
        uuid = topic.get("topicId")
        for partition in topic.get(inner) or ():
            if number in partition:
                yield topic.get(name), None if uuid == NO_ID else uuid, partition[number], partition


def blob(partition: Json) -> bytes:
    """The records field."""
    return partition.get("records") or b""


class Bodies(Protocol):
    """Provides the bodies of an exchange as JSON."""

    def body(self, side: int, records: Records = "base64") -> Json:
        """The body of one side; empty if there is none."""


def fetched(exchanged: Bodies) -> Iterator[Partition]:
    """The partitions of a Fetch or ShareFetch response."""
    body = exchanged.body(RESPONSE, "bytes")
    for name, uuid, number, partition in partitions(body, "responses", "topic", "partitions", "partitionIndex"):
        yield name, uuid, number, blob(partition)


def produced(exchanged: Bodies) -> Iterator[tuple[Partition, int | None]]:
    """The partitions of a Produce request, each with its base offset from the response."""
    bases = {}
    response = exchanged.body(RESPONSE)
    for name, uuid, number, partition in partitions(response, "responses", "name", "partitionResponses", "index"):
        if partition.get("baseOffset", -1) >= 0:
            bases[name or uuid, number] = partition["baseOffset"]
    body = exchanged.body(REQUEST, "bytes")
    for name, uuid, number, partition in partitions(body, "topicData", "name", "partitionData", "index"):
        yield (name, uuid, number, blob(partition)), bases.get((name or uuid, number))


Row = tuple[str, int, str | None, str | None, str | None, int, int | None, Batch, Record]
"""Connection, exchange, API, topic, its id, partition, offset, batch, record."""


def records_of(columns: BatchColumns, tracker: MetadataTracker, reread: Reread, only: "Int64s | None" = None) -> Iterator[Row]:
    """The records of a batch of exchanges, or of those at `only`; faults are reported through the tracker."""
    return (row for _, row in placed_records(columns, tracker, reread, only))


def placed_records(
    columns: BatchColumns, tracker: MetadataTracker, reread: Reread, only: "Int64s | None" = None
) -> Iterator[tuple[int, Row]]:
    """The same, each with the position of its exchange in the batch."""
    keys = columns.number("api_key")
    carriers = np.isin(keys.values, CARRIERS) & keys.mask() & columns.number("api_version").mask()
    places = np.flatnonzero(carriers) if only is None else only[carriers[only]]
    names = ("identity", "exchange", "api_key")
    for at, one, number, key in zip(places.tolist(), *(columns.number(name).values[places].tolist() for name in names)):
        exchanged, uid, api = Exchanged(columns, at, reread), columns.identities[one].uid, api_name(key)
        try:
            for name, uuid, partition, offset, records, record in of_exchange(exchanged, key):
                yield at, (uid, number, api, name or tracker.topic_name(uuid), uuid, partition, offset, records, record)
        except Exception as error:  # noqa: BLE001 - the records before it stay, and so do those of other exchanges
            exchanged.fault = exchanged.fault or fault_of(error)
        if exchanged.fault is not None:
            report_failure(tracker.report, columns.batch, at, "records", exchanged.fault)


def of_exchange(exchanged: Exchanged, key: int) -> Iterator[tuple[str | None, str | None, int, int | None, Batch, Record]]:
    """Name and id of the topic, partition, offset, batch and record, for each record of an exchange."""
    parts: Iterator[tuple[Partition, int | None]] = (
        produced(exchanged) if key == PRODUCE else ((part, None) for part in fetched(exchanged))
    )
    for (name, uuid, partition, data), base in parts:
        place, found = 0, RecordSet()
        for records in each_batch(data, found):
            contents = Contents()
            for record in records.each(contents):
                # Producers count from 0 or not at all; the broker numbers records in their order.
                offset = record.offset if key != PRODUCE else None if base is None else java_long(base + place)
                place += 1
                yield name, uuid, partition, offset, records, record
            exchanged.note(contents.fault)
        exchanged.note(found.fault)


def _control(row: Row) -> str | None:
    batch, record = row[7], row[8]
    if not batch.is_control:
        return None
    return record.control.type if record.control is not None else "UNKNOWN"


def _size(data: bytes | None) -> int | None:
    return None if data is None else len(data)


VALUES: Final[dict[str, Callable[[Row], Any]]] = {
    "connection": lambda row: row[0],
    "exchange": lambda row: row[1],
    "api": lambda row: row[2],
    "topic": lambda row: row[3],
    "topic_id": lambda row: row[4],
    "partition": lambda row: row[5],
    "offset": lambda row: row[6],
    "timestamp_ms": lambda row: None if row[8].timestamp == -1 else row[8].timestamp,
    "timestamp_type": lambda row: row[7].timestamp_type if row[7].magic else None,
    "magic": lambda row: row[7].magic,
    "codec": lambda row: row[7].codec,
    "key_bytes": lambda row: _size(row[8].key),
    "value_bytes": lambda row: _size(row[8].value),
    "headers": lambda row: [name for name, _ in row[8].headers],
    "control": _control,
    "key": lambda row: row[8].key,
    "value": lambda row: row[8].value,
}
"""How each column is computed from a row."""


class RecordRows:
    """Collects rows into record batches."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._schema = arrow_schema("records", columns)
        self._rows: list[Row] = []
        self._bytes = 0

    @property
    def waiting(self) -> int:
        """Number of rows added since the last batch."""
        return len(self._rows)

    @property
    def full(self) -> bool:
        """Whether there are enough rows for a batch."""
        return len(self._rows) >= ROWS_AT_ONCE or self._bytes >= RECORD_BYTES_AT_ONCE

    def add(self, row: Row) -> None:
        record = row[8]
        self._rows.append(row)
        self._bytes += len(record.key or b"") + len(record.value or b"")

    def take(self) -> pa.RecordBatch:
        rows, self._rows, self._bytes = self._rows, [], 0
        arrays = [pa.array(list(map(VALUES[column.name], rows)), TYPES[column.type]) for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
