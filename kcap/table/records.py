"""The table `records`: one row a record of Produce requests and of Fetch and ShareFetch responses.

In: a pass over a capture, and another one before it that learns what topic ids are called, where the files can be read twice.
Out: record batches of the asked-for columns, as exchanges are decided. Law: offsets are absolute; those of a Produce count from
the base offset that its answer names. An incomplete last batch ends a partition, damage ends what it damages, nothing raises.
"""

from binascii import a2b_base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kcap.analyzer import ROW, RowBatch
from kcap.columns import Column
from kcap.decode.json import read_json
from kcap.decode.message import decode_data
from kcap.decode.plan import plan_for
from kcap.facts.failures import Report, tell
from kcap.facts.topic_names import LOG_MARKS, METADATA_TOPIC, NO_ID, TopicNames, telling_keys, tells
from kcap.faults import Fault, fault_of
from kcap.kafka.frames import NO_BODY
from kcap.limits import FRAME_GATHERED_MAX
from kcap.records.batch import Batch, Record
from kcap.records.record_sets import decode_records
from kcap.schema.registry import (
    REQUEST,
    RESPONSE,
    api_key,
    api_name,
    request_header_version,
    response_header_version,
)
from kcap.table.schema import TYPES, arrow_schema
from kcap.wire.cursor import Cursor
from kcap.wire.varints import DamageError, java_long

if TYPE_CHECKING:
    from kcap.decode.message import Message
    from kcap.table.builder import Pass
    from kcap.table.row_filter import ExchangeFilter

Json = dict[str, Any]
PART: Final = {name: at for at, name in enumerate(ROW)}
SLOTS: Final = (PART["request_slot"], PART["response_slot"])
SIDES: Final = ("request", "response")
SIZES: Final = (PART["request_bytes"], PART["response_bytes"])
PRODUCE, FETCH, SHARE_FETCH = (api_key(name) for name in ("Produce", "Fetch", "ShareFetch"))
CARRIERS: Final = frozenset({PRODUCE, FETCH, SHARE_FETCH})
ROWS_AT_ONCE: Final = 8192
BYTES_AT_ONCE: Final = 16 << 20
"""Keys and values gathered before a record batch leaves."""
TOPIC_RECORD: Final = b"\x01\x02"
"""How a TopicRecord of KRaft's log begins: frame version 1, record type 2 (MetadataRecordSerde)."""


def record_batches(
    reading: "Pass", columns: Sequence[Column], sieve: "ExchangeFilter | None" = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a pass, as they are decided; those of the exchanges that a filter lets pass."""
    table = RecordTable(reading, columns, sieve)
    for batch in reading.batches():
        yield from table.turn(batch)


class RecordTable:
    """Turns the batches of a pass, all of them, in order."""

    def __init__(self, reading: "Pass", columns: Sequence[Column], sieve: "ExchangeFilter | None" = None) -> None:
        self._names, self._learns = names_of(reading, asked=any(column.name == "topic" for column in columns))
        reading.keep_bodies()
        self._reading, self._sieve, self._rows = reading, sieve, RecordRows(columns)
        self._report = reading.analyzer.report

    def turn(self, batch: RowBatch) -> Iterator[pa.RecordBatch]:
        """The rows of a batch, if it has any."""
        message, rows = self._reading.message, self._rows
        if self._learns:
            learn(batch, self._names, message, self._report)
        only = None if self._sieve is None else frozenset(self._sieve.rows(batch).tolist())
        for row in records_of(batch, self._names, message, only, self._report):
            rows.add(row)
            if rows.full:
                yield rows.take()
        if rows.waiting:
            yield rows.take()


def names_of(reading: "Pass", *, asked: bool = True) -> tuple[TopicNames, bool]:
    """What topic ids are called, by a pass over the capture before this one; or, where nobody asked or the capture can be read
    but once, no names yet, and that they are to be learned on the way."""
    names = TopicNames()
    earlier = reading.another() if asked else None
    if earlier is None:
        return names, True
    earlier.keep_bodies()
    for batch in earlier.batches():
        learn(batch, names, earlier.message, reading.analyzer.report)
        if reading.watch is not None:
            reading.watch()
    return names, False


Reread = Callable[[RowBatch, int, str], "Message | None"]
"""A row's `request` or `response`, read again from the file."""


class Exchanged:
    """The bodies of one row: out of the batch where it has them, else read again."""

    def __init__(self, batch: RowBatch, at: int, message: Reread) -> None:
        self.batch = batch
        self.row = batch.rows[at]
        self.key: int = self.row[PART["api_key"]]
        self.version: int = self.row[PART["api_version"]]
        self._at = at
        self._message = message
        self.fault: Fault | None = None
        """What failed on one of the bodies; what was read before that stays."""

    def body(self, side: int) -> Json:
        """The body of one side as JSON, as far as it reads; empty where there is none."""
        if side == RESPONSE and self.row[PART["response_bytes"]] is None:
            return {}
        plan = plan_for(self.key, self.version, side)
        if plan is None:
            return {}
        data = self._data(self.row[SLOTS[side]])
        if not data or (self.row[SIZES[side]] or 0) > FRAME_GATHERED_MAX:
            # A large frame is not gathered: the batch has its beginning at most.
            message = self._message(self.batch, self._at, SIDES[side])
            body: Json | None = message.to_json() if message is not None else None
            if message is not None and body is not None:
                self.note(message.undecoded)
                return body
        reading = read_json(plan, data, self._tags(data, side))
        self.note(reading.undecoded)
        return reading.value

    def note(self, undecoded: str | None) -> None:
        """Keeps the first fault; damage is told elsewhere."""
        if self.fault is None and isinstance(undecoded, Fault):
            self.fault = undecoded

    def _tags(self, data: bytes, side: int) -> int:
        """Where the body starts behind the header's tag section, which batches keep with it."""
        headers = request_header_version(self.key, self.version) - 1, response_header_version(self.key, self.version)
        cursor = Cursor(data)
        if headers[side] >= 1:
            try:
                for _ in range(cursor.read_uvarint()):
                    cursor.read_uvarint()
                    cursor.skip(cursor.read_uvarint(), "tagged field")
            except DamageError:
                return len(data)
        return cursor.position

    def mentions(self, *marks: bytes) -> bool:
        """Whether the response, as far as the batch has it, holds some bytes."""
        data = self._data(self.row[SLOTS[RESPONSE]])
        return any(mark in data for mark in marks)

    def _data(self, slot: int) -> bytes:
        bodies = self.batch.bodies
        if slot >= 0:
            return bytes(memoryview(bodies.arena)[bodies.starts[slot] : bodies.ends[slot]])
        values = bodies.carried.get(slot) if slot < NO_BODY else None
        return b"" if values is None else values.data


def learn(batch: RowBatch, names: TopicNames, message: Reread, report: Report | None = None) -> None:
    """Takes the names that a batch tells; `report` is told of exchanges that failed to."""
    telling = telling_keys()
    for at, row in enumerate(batch.rows):
        try:
            learn_row(batch, at, row, telling, names, message)
        except Exception as error:  # noqa: BLE001 - this exchange tells no names
            tell(report, batch, at, "topic names", error)


def learn_row(
    batch: RowBatch, at: int, row: tuple[Any, ...], telling: Mapping[int, int], names: TopicNames, message: Reread
) -> None:
    """Takes the names that an exchange tells."""
    key, version = row[PART["api_key"]], row[PART["api_version"]]
    if key in telling and version >= telling[key]:
        name = api_name(key)
        exchanged = Exchanged(batch, at, message)
        for side in tells(name, version):
            names.learn(f"{name}{('Request', 'Response')[side]}", exchanged.body(side))
    elif key == FETCH and (exchanged := Exchanged(batch, at, message)).mentions(*LOG_MARKS):
        learn_from_log(exchanged, names)


def learn_from_log(exchanged: Exchanged, names: TopicNames) -> None:
    """Takes the names that KRaft's own log tells where it is fetched."""
    learn_log(exchanged.body(RESPONSE), names)


def learn_log(body: Json, names: TopicNames) -> None:
    """Takes the names that KRaft's own log tells, from a Fetch response."""
    for name, uuid, _, partition in partitions(body, "responses", "topic", "partitions", "partitionIndex"):
        if METADATA_TOPIC not in (name, names.name(uuid)):
            continue
        records = blob(partition)
        for batch in decode_records(records).batches:
            for record in batch.records if not batch.is_control else ():
                if record.value is not None and record.value.startswith(TOPIC_RECORD):
                    names.learn("TopicRecord", decode_data("TopicRecord", record.value).to_json())


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
    text = partition.get("records")
    return a2b_base64(text) if text else b""


def fetched(exchanged: Exchanged) -> Iterator[Partition]:
    """The partitions of a Fetch or ShareFetch response."""
    body = exchanged.body(RESPONSE)
    for name, uuid, number, partition in partitions(body, "responses", "topic", "partitions", "partitionIndex"):
        yield name, uuid, number, blob(partition)


def produced(exchanged: Exchanged) -> Iterator[tuple[Partition, int | None]]:
    """The partitions of a Produce request, and where the broker put them."""
    bases = {}
    answer = exchanged.body(RESPONSE)
    for name, uuid, number, partition in partitions(answer, "responses", "name", "partitionResponses", "index"):
        if partition.get("baseOffset", -1) >= 0:
            bases[name or uuid, number] = partition["baseOffset"]
    body = exchanged.body(REQUEST)
    for name, uuid, number, partition in partitions(body, "topicData", "name", "partitionData", "index"):
        yield (name, uuid, number, blob(partition)), bases.get((name or uuid, number))


Row = tuple[str, int, str | None, str | None, str | None, int, int | None, Batch, Record]
"""Connection, exchange, API, topic, its id, partition, offset, batch, record."""


def records_of(
    batch: RowBatch,
    names: TopicNames,
    message: Reread,
    only: frozenset[int] | None = None,
    report: Report | None = None,
) -> Iterator[Row]:
    """The records of a batch of exchanges, or of some of them; `report` is told of exchanges on which reading failed."""
    return (row for _, row in placed_records(batch, names, message, only, report))


def placed_records(
    batch: RowBatch,
    names: TopicNames,
    message: Reread,
    only: frozenset[int] | None = None,
    report: Report | None = None,
) -> Iterator[tuple[int, Row]]:
    """The same, each with the place of its exchange in the batch."""
    for at, row in enumerate(batch.rows):
        key = row[PART["api_key"]]
        if key not in CARRIERS or row[PART["api_version"]] is None or (only is not None and at not in only):
            continue
        exchanged = Exchanged(batch, at, message)
        uid, number, api = batch.identities[row[0]].uid, row[PART["exchange"]], api_name(key)
        try:
            for name, uuid, partition, offset, records, record in of_exchange(exchanged, key):
                yield at, (uid, number, api, name or names.name(uuid), uuid, partition, offset, records, record)
        except Exception as error:  # noqa: BLE001 - the records before it stay, and so do those of other exchanges
            exchanged.fault = exchanged.fault or fault_of(error)
        if exchanged.fault is not None:
            tell(report, batch, at, "records", exchanged.fault)


def of_exchange(exchanged: Exchanged, key: int) -> Iterator[tuple[str | None, str | None, int, int | None, Batch, Record]]:
    """Name and id of the topic, partition, offset, batch and record of each record of an exchange."""
    parts: Iterator[tuple[Partition, int | None]] = (
        produced(exchanged) if key == PRODUCE else ((part, None) for part in fetched(exchanged))
    )
    for (name, uuid, partition, data), base in parts:
        place = 0
        found = decode_records(data)
        for records in found.batches:
            for record in records.records:
                # Producers count from 0 or not at all; the broker numbers what it takes in the order in which it comes.
                offset = record.offset if key != PRODUCE else None if base is None else java_long(base + place)
                place += 1
                yield name, uuid, partition, offset, records, record
            exchanged.note(records.fault)
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
"""How each column comes from a row."""


class RecordRows:
    """Rows in the making."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._schema = arrow_schema("records", columns)
        self._rows: list[Row] = []
        self._bytes = 0

    @property
    def waiting(self) -> int:
        """Rows that were added since the last batch."""
        return len(self._rows)

    @property
    def full(self) -> bool:
        """Enough for a batch."""
        return len(self._rows) >= ROWS_AT_ONCE or self._bytes >= BYTES_AT_ONCE

    def add(self, row: Row) -> None:
        """Takes a row."""
        record = row[8]
        self._rows.append(row)
        self._bytes += len(record.key or b"") + len(record.value or b"")

    def take(self) -> pa.RecordBatch:
        """The rows so far."""
        rows, self._rows, self._bytes = self._rows, [], 0
        arrays = [pa.array(list(map(VALUES[column.name], rows)), TYPES[column.type]) for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
