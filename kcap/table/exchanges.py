"""Decided exchanges as Arrow: a `RowBatch` in, a record batch of the asked-for columns out.

Law: a column costs only where it is asked for; values are what the rows and bodies say, null where they say nothing. Columns
are made whole, by numpy and Arrow; a Python loop goes over connections, files, APIs and names, not over rows.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kcap import limits
from kcap.analyzer import RowBatch
from kcap.arrays.arrow import Array, nulls, picked, take
from kcap.arrays.vectors import Vector
from kcap.columns import EXCHANGES, FLAGS, Column
from kcap.decode.projection import MALFORMED, SHORT
from kcap.facts.tracker import MetadataTracker, RowContext
from kcap.facts.version_verdicts import KEYS, VERSIONS
from kcap.kafka.frames import FLAG
from kcap.model import REF_FILE_SHIFT, CaptureFile
from kcap.row_columns import WHOLE_FROM, RowColumns
from kcap.schema import registry
from kcap.schema.errors import ERRORS
from kcap.schema.releases import deprecated_in, removed_in
from kcap.table.bodies import Messages, SideColumns, encoded, tell_uncounted
from kcap.table.schema import TYPES, arrow_schema
from kcap.table.service_parts import ServiceParts
from kcap.table.topics import TopicColumns

if TYPE_CHECKING:
    from kcap.arrays.vectors import Bools, Int64s

REF_PACKET: Final = (1 << REF_FILE_SHIFT) - 1
TOKEN: Final = "SaslToken"  # noqa: S105 - the name of a row, no secret
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
MAGICS: Final = (0, 1, 2)
COLUMN_TYPES: Final = {column.name: TYPES[column.type] for column in EXCHANGES}
RECORDS_IN_RESPONSE: Final = frozenset(
    key for name in ("Fetch", "ShareFetch", "FetchSnapshot") if (key := registry.api_key(name)) is not None
)
"""APIs whose records and partitions are those of the answer."""
BROKEN: Final = FLAG["snaplen"] | FLAG["gap"] | FLAG["truncated"]
"""Flags of a frame whose bytes were not all captured."""

NUMBERS: Final = (
    "exchange", "api_key", "api_version", "correlation_id", "age_ns", "request_bytes", "response_bytes",
    "request_first_ns", "request_last_ns", "response_first_ns", "response_last_ns",
    "request_pos", "request_end_pos", "response_pos", "response_end_pos",
)  # fmt: skip
"""Columns that are parts of the row as they are."""
OF_REQUEST: Final = (
    "acks", "timeout_ms", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch",
    "generation",
)  # fmt: skip
"""Columns that are slots of the request, or of the response where the request lacks them."""
ASSIGNED: Final = ("producer_id", "producer_epoch")
"""Slots in which a request says -1 to be given one by the response."""
CARRIED: Final = ("partition_count", "batch_count", "record_count", "records_bytes")
"""Slots of the message that carries records."""


def choices(members: Sequence[object], masks: "Int64s", kind: pa.DataType, none: list[object] | None) -> Array:
    """Bit masks as lists of what their bits stand for; `none` for a mask of 0."""
    if not masks.any():
        return nulls(len(masks), kind) if none is None else pa.array([none] * len(masks), kind)
    place = np.zeros(int(masks.max()) + 1, np.int32)  # masks are small: counting them is quicker than sorting them
    place[masks] = 1
    known = np.flatnonzero(place)
    place[known] = np.arange(len(known))
    lists = [[member for at, member in enumerate(members) if mask >> at & 1] or none for mask in known.tolist()]
    return take(pa.array(lists, kind), place[masks])


class NameColumn:
    """Names by number as an Arrow array to take from; the last entry is null."""

    def __init__(self, names: Sequence[str | None]) -> None:
        self.array = pa.array([*names, None], pa.string())
        self.null = len(names)

    def take(self, numbers: "Int64s") -> Array:
        """The name of each number, null for those out of range."""
        known = (numbers >= 0) & (numbers < self.null)
        return picked(self.array, np.where(known, numbers, self.null))


API_NAMES: Final = NameColumn([*(registry.api_name(key) for key in range(max(registry.api_keys()) + 1)), TOKEN])
ERROR_BASE: Final = -1
ERROR_NAMES: Final = NameColumn([ERRORS.get(code) for code in range(ERROR_BASE, max(ERRORS) + 1)])


class Exchanges:
    """A batch being turned; what several columns need is made once."""

    def __init__(self, batch: RowBatch, files: NameColumn, learner: MetadataTracker, *, whole: bool = False) -> None:
        self.batch = batch
        self.learner = learner
        self.size = len(batch)
        self.files = files
        self.parts = RowColumns(batch, whole=whole)
        self.array, self.number = self.parts.array, self.parts.number

    # -- parts of the row ---------------------------------------------------------------------------------------------
    def is_outcome(self, name: str) -> "Bools":
        """Which rows ended so."""
        known, numbers = self.parts.codes("outcome")
        found: Bools = np.array([text == name for text in known] or [False], np.bool_)[numbers]
        return found

    # -- the connection -----------------------------------------------------------------------------------------------
    def stream(self) -> Array:
        """Number of the row's connection, from 0."""
        numbers = np.array([known.number - 1 for known in self.batch.identities] or [0], np.int64)
        return pa.array(numbers[self.number("identity").values], pa.int64())

    def constant(self, name: str, kind: pa.DataType) -> Array:
        """What the row's connection says."""
        known = pa.array([getattr(identity, name) for identity in self.batch.identities], kind)
        return picked(known, self.number("identity").values)

    # -- places and times ---------------------------------------------------------------------------------------------
    def file(self, name: str) -> Vector:
        """File of a packet reference."""
        ref = self.number(name)
        return ref if ref.nothing else Vector(ref.values >> REF_FILE_SHIFT, ref.valid)

    def capture(self, side: str) -> Array:
        """Name of the file with a frame's first byte."""
        return self.files.take(self.file(f"{side}_first_ref").filled(-1))

    def last_capture(self, side: str) -> Array:
        """Name of the file with a frame's last byte where that is another."""
        first, last = self.file(f"{side}_first_ref"), self.file(f"{side}_last_ref")
        other = last.filled(-1) != first.filled(-1)
        if not other.any():
            return nulls(self.size, pa.string())
        return self.files.take(np.where(other, last.filled(-1), -1))

    def packet(self, name: str) -> Array:
        """Number within its file of a packet reference."""
        ref = self.number(name)
        return (ref if ref.nothing else Vector(ref.values & REF_PACKET, ref.valid)).to_arrow(pa.int64())

    def time(self) -> Array:
        """First byte seen of the exchange."""
        found = self.number("request_first_ns")
        for name in ("response_first_ns", "request_last_ns", "response_last_ns"):
            if found.valid is not None:
                found = found.otherwise(self.number(name))
        return pa.array(found.filled() // 1000, pa.int64()).view(TYPES["timestamp"])

    def transfer(self, side: str) -> Vector:
        """Last minus first byte of a frame."""
        return self.number(f"{side}_last_ns").minus(self.number(f"{side}_first_ns"))

    # -- latency and its parts ----------------------------------------------------------------------------------------
    @cached_property
    def latency(self) -> Vector:
        difference = self.number("response_first_ns").minus(self.number("request_last_ns"))
        return difference.where(self.is_outcome("answered"))

    @cached_property
    def backwards(self) -> "Bools":
        """Rows whose answer came before its request: their latency has no parts."""
        latency = self.latency
        return latency.mask() & (latency.values < 0)

    @cached_property
    def rtt(self) -> Vector:
        known, latency = self.number("rtt_min_ns"), self.latency.where(~self.backwards)
        return Vector(np.minimum(known.values, latency.values), known.mask() & latency.mask())

    @cached_property
    def queue(self) -> Vector:
        latency, previous, rtt = self.latency.where(~self.backwards), self.number("previous_ns"), self.rtt.filled()
        waited = np.where(previous.mask(), previous.values - self.number("request_last_ns").values - rtt, 0)
        return Vector(np.clip(waited, 0, np.maximum(latency.values - rtt, 0)), latency.valid)

    def service(self) -> Vector:
        """What is left of the latency."""
        return Vector(self.latency.values - self.rtt.filled() - self.queue.values, self.queue.valid)

    # -- bodies -------------------------------------------------------------------------------------------------------
    @cached_property
    def messages(self) -> Messages:
        return Messages(self.batch.bodies, [self.number(f"{side}_slot").values for side in ("request", "response")])

    @cached_property
    def request(self) -> SideColumns:
        return SideColumns(self.messages, self.number("request_slot").values)

    @cached_property
    def response(self) -> SideColumns:
        return SideColumns(self.messages, self.number("response_slot").values)

    @cached_property
    def told(self) -> RowContext:
        return self.learner.take(self)

    @cached_property
    def waits(self) -> ServiceParts:
        return ServiceParts(self, self.learner.muted_until)

    @cached_property
    def topics(self) -> TopicColumns:
        return TopicColumns(self.messages, self.request, self.response, self.size)

    @cached_property
    def error_code(self) -> Vector:
        """The first error of the answer; of one that was not read to its end the outermost, where that is one."""
        top = self.response.slot("top_error_code")
        return self.response.slot("error_code").otherwise(top.where(top.values != 0))

    def error(self) -> Array:
        """Kafka's name of the error code."""
        code = self.error_code
        if code.nothing:
            return nulls(self.size, pa.string())
        return ERROR_NAMES.take(np.where(code.mask(), code.values - ERROR_BASE, -1))

    def throttle(self) -> Vector:
        """Throttle time, null where Kafka says -1."""
        found = self.response.slot("throttle_time_ms")
        return found.where(found.values >= 0)

    def asked(self, name: str) -> Vector:
        """A slot of the request, or of the response where the request lacks it."""
        found = self.request.slot(name)
        if name in ASSIGNED:
            return found.where(found.values >= 0).otherwise(self.response.slot(name)).otherwise(found)
        return found.otherwise(self.response.slot(name))

    @cached_property
    def records_in_response(self) -> "Bools":
        keys = self.number("api_key")
        found = np.zeros(self.size, np.bool_)
        for key in RECORDS_IN_RESPONSE:
            found |= keys.values == key
        return found & keys.mask()

    def carried(self, name: str) -> Vector:
        """A slot of the message that carries the records."""
        request, response = self.request.slot(name), self.response.slot(name)
        return request.where(~self.records_in_response).otherwise(response)

    def named(self, name: str) -> Array:
        """A text of the request, or of the response where the request lacks it."""
        answered, starts, ends = self.response.texts(name)
        asked, *spans = self.request.texts(name)
        if not len(answered) and not len(asked):
            return nulls(self.size, pa.string())
        rows = np.concatenate([answered, asked])  # of a row that stands in both, the last counts
        some, texts = encoded(self.messages.pool, np.concatenate([starts, spans[0]]), np.concatenate([ends, spans[1]]))
        numbers = np.full(self.size, -1, np.int64)
        numbers[rows] = some
        return NameColumn([text.decode(errors="replace") for text in texts]).take(numbers)

    def bits(self, name: str, members: Sequence[object]) -> Array:
        """A slot that is a bit mask, as the list of what its bits stand for."""
        return choices(members, self.carried(name).filled(), COLUMN_TYPES[name], None)

    def api(self) -> Array:
        """Kafka's name of the API."""
        keys = self.number("api_key")
        numbers = keys.values
        if keys.valid is not None:
            tokens = np.where(self.is_outcome("orphan"), -1, API_NAMES.null - 1)
            numbers = np.where(keys.valid, np.where(numbers < API_NAMES.null - 1, numbers, -1), tokens)
        return API_NAMES.take(numbers)

    def release(self, find: Callable[[int, int], str | None]) -> Array:
        """A fact of each row's API and version."""
        places, known = self.calls
        values = [find(code // VERSIONS, code % VERSIONS) for code in known]
        if not any(values):
            return nulls(self.size, pa.string())
        return take(pa.array([*values, None], pa.string()), places)

    @cached_property
    def calls(self) -> tuple["Int64s", list[int]]:
        """API and version of each row by number, and those; the number behind the last is for none.

        What no release has is the last of the room there is, which no release has either.
        """
        key, version = self.number("api_key"), self.number("api_version")
        codes = np.minimum(key.values, KEYS - 1) * VERSIONS + np.minimum(version.values, VERSIONS - 1)
        here = (key.values >= 0) & (version.values >= 0) & key.mask() & version.mask()
        codes = np.where(here, codes, KEYS * VERSIONS)
        known = np.flatnonzero(np.bincount(codes, minlength=KEYS * VERSIONS)[: KEYS * VERSIONS])
        number = np.full(KEYS * VERSIONS + 1, len(known))
        number[known] = np.arange(len(known))
        return number[codes], known.tolist()

    # -- flags --------------------------------------------------------------------------------------------------------
    def undecoded(self) -> "Bools":
        """Rows with a body that was captured whole and yet could not be read."""
        found = np.zeros(self.size, np.bool_)
        named = self.number("api_key").mask()
        for name, side in (("request", self.request), ("response", self.response)):
            size = self.number(f"{name}_bytes")
            whole = size.mask() & (size.values <= limits.FRAME_GATHERED_MAX) & self.number(f"{name}_last_ns").mask()
            whole &= self.number(f"{name}_flags").values & BROKEN == 0
            unread = ~side.here | (side.status == SHORT) | (side.status == MALFORMED)
            found |= named & whole & unread
            if self.messages.faults:
                found |= np.isin(side.index, list(self.messages.faults))
        return found

    def flags(self) -> Array:
        """All that is odd about the row."""
        bits = self.number("flags").values | self.number("request_flags").values | self.number("response_flags").values
        bits = bits | self.backwards * FLAG["clock"] | self.undecoded() * FLAG["undecoded"]
        return choices(FLAGS, bits, COLUMN_TYPES["flags"], [])


def _number(name: str, kind: pa.DataType) -> Callable[[Exchanges], Array]:
    if kind == pa.int64():
        return lambda rows: rows.array(name)
    return lambda rows: rows.array(name).cast(kind)


MAKERS: Final[dict[str, Callable[[Exchanges], Array]]] = {
    "time": lambda rows: rows.time(),
    "capture": lambda rows: rows.capture("request"),
    "response_capture": lambda rows: rows.capture("response"),
    "connection": lambda rows: rows.constant("uid", pa.string()),
    "stream": lambda rows: rows.stream(),
    "client_ip": lambda rows: rows.constant("client_ip", pa.string()),
    "client_port": lambda rows: rows.constant("client_port", pa.int32()),
    "server_ip": lambda rows: rows.constant("server_ip", pa.string()),
    "server_port": lambda rows: rows.constant("server_port", pa.int32()),
    "api": lambda rows: rows.api(),
    "client_id": lambda rows: rows.array("client_id"),
    "tls": lambda rows: rows.constant("tls", pa.bool_()),
    "outcome": lambda rows: rows.array("outcome"),
    "reason": lambda rows: rows.array("reason"),
    "request_first_packet": lambda rows: rows.packet("request_first_ref"),
    "request_last_packet": lambda rows: rows.packet("request_last_ref"),
    "response_first_packet": lambda rows: rows.packet("response_first_ref"),
    "response_last_packet": lambda rows: rows.packet("response_last_ref"),
    "request_last_capture": lambda rows: rows.last_capture("request"),
    "response_last_capture": lambda rows: rows.last_capture("response"),
    "latency_ns": lambda rows: rows.latency.to_arrow(pa.int64()),
    "rtt_ns": lambda rows: rows.rtt.to_arrow(pa.int64()),
    "queue_ns": lambda rows: rows.queue.to_arrow(pa.int64()),
    "service_ns": lambda rows: rows.service().to_arrow(pa.int64()),
    "request_transfer_ns": lambda rows: rows.transfer("request").to_arrow(pa.int64()),
    "transfer_ns": lambda rows: rows.transfer("response").to_arrow(pa.int64()),
    "throttle_time_ms": lambda rows: rows.throttle().to_arrow(pa.int32()),
    "error_code": lambda rows: rows.error_code.to_arrow(pa.int16()),
    "error": lambda rows: rows.error(),
    "error_count": lambda rows: rows.response.slot("error_count").to_arrow(pa.int32()),
    "topics": lambda rows: rows.learner.topic_names(rows),
    "topic_ids": lambda rows: rows.topics.ids(),
    "codecs": lambda rows: rows.bits("codecs", CODECS),
    "magics": lambda rows: rows.bits("magics", MAGICS),
    "group_id": lambda rows: rows.named("group_id"),
    "member_id": lambda rows: rows.named("member_id"),
    "transactional_id": lambda rows: rows.named("transactional_id"),
    "broker_id": lambda rows: rows.learner.of_servers(rows, 0, pa.int32()),
    "cluster_id": lambda rows: rows.learner.of_servers(rows, 1, pa.string()),
    "software_name": lambda rows: rows.told.texts(lambda known: known.software[0] if known.software else None),
    "software_version": lambda rows: rows.told.texts(lambda known: known.software[1] if known.software else None),
    "sasl_mechanism": lambda rows: rows.told.texts(lambda known: known.mechanism),
    "principal": lambda rows: rows.told.texts(lambda known: known.principal),
    "version_verdict": lambda rows: rows.learner.verdicts(rows),
    "removed_in": lambda rows: rows.release(removed_in),
    "deprecated_in": lambda rows: rows.release(deprecated_in),
    "long_poll_ns": lambda rows: rows.waits.long_poll().to_arrow(pa.int64()),
    "throttle_ns": lambda rows: rows.waits.throttled().to_arrow(pa.int64()),
    "muted_ns": lambda rows: rows.waits.muted().to_arrow(pa.int64()),
    "flags": lambda rows: rows.flags(),
}
"""How a column is made, for those that are no plain number; a column that is in neither is null for now."""
LEARNED: Final = frozenset(
    {"broker_id", "cluster_id", "software_name", "software_version", "sasl_mechanism", "principal", "version_verdict"}
)
"""Columns for which messages that teach are read."""


def maker(column: Column) -> Callable[[Exchanges], Array]:
    """How a column is made."""
    kind = TYPES[column.type]
    found = MAKERS.get(column.name)
    if found is not None:
        return found
    name = column.name
    if name in NUMBERS:
        return _number(name, kind)
    if name in CARRIED:
        return lambda rows: rows.carried(name).to_arrow(kind)
    if name in OF_REQUEST or name in ASSIGNED:
        return lambda rows: rows.asked(name).to_arrow(kind)
    assert column.nullable, f"{name} has no maker"
    return lambda rows: nulls(rows.size, kind)


class ExchangeTable:
    """Turns batches of one capture; what they tell is learned on the way, so it takes all of them, in order."""

    def __init__(self, columns: Sequence[Column], files: Sequence[CaptureFile], learner: MetadataTracker | None = None) -> None:
        self.schema = arrow_schema("exchanges", columns)
        self.learner = learner or MetadataTracker()
        self._captures = files
        self._learns = not LEARNED.isdisjoint(column.name for column in columns)
        self._makers = [maker(column) for column in columns]
        self.places: Int64s | None = None
        """Rows of the batch turned last that were made, None for all of them."""
        self._files = NameColumn([file.name for file in files])

    def turn(self, batch: RowBatch) -> pa.RecordBatch:
        """One batch as Arrow."""
        return self.made(self.begin(batch))

    def begin(self, batch: RowBatch) -> Exchanges:
        """One batch to be made later; what its columns need to be learned is learned."""
        rows = self._rows(batch)
        if self._learns:
            rows.told  # noqa: B018 - what servers tell must be known before their columns are made
        return rows

    def learn(self, batch: RowBatch) -> Exchanges:
        """One batch to be made later, or never: all that it teaches is learned."""
        rows = self._rows(batch)
        rows.told  # noqa: B018
        rows.waits  # noqa: B018
        self.learner.take_topics(rows)
        return rows

    def made(self, rows: Exchanges) -> pa.RecordBatch:
        """The columns; nothing is left of the batch behind them."""
        columns = [make(rows) for make in self._makers]
        tell_uncounted(rows)
        self.let_go(rows)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def let_go(self, rows: Exchanges) -> None:
        """A batch's parts refer to each other: without this its bodies wait for Python's collector."""
        self.learner.let_go()
        vars(rows).clear()

    def _rows(self, batch: RowBatch) -> Exchanges:
        self.learner.take_names(self._captures)
        return Exchanges(batch, self._files, self.learner, whole=len(self._makers) >= WHOLE_FROM)
