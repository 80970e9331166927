"""The table `exchanges`: the columns of a batch of decided exchanges as Arrow arrays, with the facts that hold for its rows.

Law: a column is a pure function of the batch's columns and its context, and has a cost only if it is selected. Values are those
of the rows and bodies, null if these have none. numpy and Arrow build whole columns; Python loops run over connections, files,
APIs and names, not over rows.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa

from kcap import limits
from kcap.arrays.arrow import Array, Coded, batch_of_types, booleans, nulls, take, with_texts
from kcap.arrays.vectors import Vector
from kcap.batch.bodies import encoded
from kcap.batch.columns import VERSIONS, BatchColumns
from kcap.columns import EXCHANGES, FLAGS, Column
from kcap.decode.interpreter import COMPLETE, MALFORMED, SHORT
from kcap.facts.tracker import NO_FACT, Fact, RowContext
from kcap.kafka.frames import FLAG
from kcap.model import REF_FILE_SHIFT
from kcap.schema import registry
from kcap.schema.errors import ERRORS
from kcap.schema.releases import deprecated_in, removed_in
from kcap.table.schema import TYPES, arrow_schema
from kcap.wire.text import name_text

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
"""APIs whose records and partitions are those of the response."""
BROKEN: Final = FLAG["snaplen"] | FLAG["gap"] | FLAG["truncated"]
"""Flags of a frame that was not captured completely."""

NUMBERS: Final = (
    "exchange", "api_key", "api_version", "correlation_id", "age_ns", "in_flight", "request_bytes", "response_bytes",
    "request_first_ns", "request_last_ns", "response_first_ns", "response_last_ns",
    "request_pos", "request_end_pos", "response_pos", "response_end_pos",
)  # fmt: skip
"""Columns that are taken from the row unchanged."""
OF_REQUEST: Final = (
    "acks", "timeout_ms", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch",
    "generation",
)  # fmt: skip
"""Columns that are slots of the request, or of the response if the request lacks them."""
ASSIGNED: Final = ("producer_id", "producer_epoch")
"""Slots in which a request with -1 asks the response to assign a value."""
CARRIED: Final = ("partition_count", "batch_count", "record_count", "records_bytes")
"""Slots of the message that carries records."""


FETCH, SHARE_FETCH = (registry.api_key(name) for name in ("Fetch", "ShareFetch"))
MS: Final = 1_000_000


def choices(members: Sequence[object], masks: "Int64s", kind: pa.DataType, none: list[object] | None) -> Array:
    """Bit masks as lists of their members; `none` for a mask of 0."""
    if not masks.any():
        return nulls(len(masks), kind) if none is None else pa.array([none] * len(masks), kind)
    place = np.zeros(int(masks.max()) + 1, np.int32)  # masks are small: counting is quicker than sorting
    place[masks] = 1
    known = np.flatnonzero(place)
    place[known] = np.arange(len(known))
    lists = [[member for at, member in enumerate(members) if mask >> at & 1] or none for mask in known.tolist()]
    return take(pa.array(lists, kind), place[masks])


class NameColumn:
    """Names by number as an Arrow array for `take`; the last entry is null."""

    def __init__(self, names: Sequence[str | None]) -> None:
        self.array = pa.array([*names, None], pa.string())
        self.null = len(names)

    def take(self, numbers: "Int64s") -> Coded:
        """The name of each number; null for numbers out of range."""
        known = (numbers >= 0) & (numbers < self.null)
        return Coded(self.array, np.where(known, numbers, self.null))


API_NAMES: Final = NameColumn([*(registry.api_name(key) for key in range(max(registry.api_keys()) + 1)), TOKEN])
ERROR_BASE: Final = -1
ERROR_NAMES: Final = NameColumn([ERRORS.get(code) for code in range(ERROR_BASE, max(ERRORS) + 1)])


Made: TypeAlias = Array | Coded
"""A column before it is cast to the type of its table."""


class Exchanges:
    """A batch of exchanges with the facts that hold for its rows."""

    def __init__(self, columns: BatchColumns, context: RowContext, files: NameColumn) -> None:
        """`files`: the names of the capture's files."""
        self.columns, self.context, self.files = columns, context, files
        self._made: dict[str, Made] = {}
        self.size, self.number = columns.size, columns.number

    def select(self, places: "Int64s") -> "Exchanges":
        return Exchanges(self.columns.select(places), self.context.select(places), self.files)

    def made(self, name: str, make: "Callable[[Exchanges], Made]") -> Made:
        """A column of the table; computed once, since tables of parts of exchanges use it too."""
        found = self._made.get(name)
        if found is None:
            found = self._made[name] = make(self)
        return found

    # -- the connection -----------------------------------------------------------------------------------------------
    def stream(self) -> Array:
        """Number of each row's connection, from 0."""
        return Vector(self.constant("number") - 1, None).to_arrow(pa.int64())

    def constant(self, name: str) -> "Int64s":
        """A numeric attribute of each row's connection."""
        found: Int64s = self.columns.constants.number(name).take(self.number("identity").values)
        return found

    def port(self, name: str) -> Array:
        """A port of each row's connection."""
        return Vector(self.constant(name), None).to_arrow(pa.int32())

    def text(self, name: str) -> Coded:
        """A text attribute of each row's connection."""
        return self.columns.constants.text(name).take(self.number("identity").values)

    def coded(self, name: str) -> Coded:
        """A text that is part of the row."""
        known, numbers = self.columns.rows.codes(name)
        return Coded(pa.array(known, pa.string()), numbers)

    # -- positions and times ------------------------------------------------------------------------------------------
    def file(self, name: str) -> Vector:
        """File of a packet reference."""
        ref = self.number(name)
        return ref if ref.nothing else Vector(ref.values >> REF_FILE_SHIFT, ref.valid)

    def capture(self, side: str) -> Coded:
        """Name of the file with a frame's first byte."""
        return self.files.take(self.file(f"{side}_first_ref").filled(-1))

    def last_capture(self, side: str) -> Made:
        """Name of the file with a frame's last byte if it is another one."""
        first, last = self.file(f"{side}_first_ref"), self.file(f"{side}_last_ref")
        other = last.filled(-1) != first.filled(-1)
        if not other.any():
            return nulls(self.size, pa.string())
        return self.files.take(np.where(other, last.filled(-1), -1))

    def packet(self, name: str) -> Array:
        """Number of a packet within its file."""
        ref = self.number(name)
        return (ref if ref.nothing else Vector(ref.values & REF_PACKET, ref.valid)).to_arrow(pa.int64())

    def time(self) -> Array:
        """Time of the first captured byte of the exchange."""
        found = self.number("request_first_ns")
        for name in ("response_first_ns", "request_last_ns", "response_last_ns"):
            if found.valid is not None:
                found = found.otherwise(self.number(name))
        return Vector(found.filled() // 1000, None).to_arrow(pa.int64()).view(TYPES["timestamp"])

    def transfer(self, side: str) -> Vector:
        """Time from the first to the last byte of a frame, in ns."""
        return self.number(f"{side}_last_ns").minus(self.number(f"{side}_first_ns"))

    # -- latency and its parts ----------------------------------------------------------------------------------------
    def of_service(self, part: "Int64s | None") -> Vector:
        """A part of the service time that the context has."""
        assert part is not None
        return Vector(part, self.columns.service.valid)

    def throttled(self) -> Vector:
        """The part of the service time that was a throttle, for brokers older than KIP-219."""
        return self.of_service(self.context.throttled).where(self.columns.throttle.mask())

    def long_poll(self) -> Vector:
        """The part of the service time in which a Fetch waited for min_bytes: it returned fewer, within its max_wait_ms."""
        columns, service = self.columns, self.columns.service
        muted, throttled = self.context.muted, self.context.throttled
        assert muted is not None
        assert throttled is not None
        found = self.of_service(np.zeros(self.size, np.int64))
        keys = self.number("api_key")
        polls = ((keys.values == FETCH) | (keys.values == SHARE_FETCH)) & keys.mask()
        if not polls.any():
            return found
        got, least, longest = (
            columns.response.slot("records_bytes"), columns.request.slot("min_bytes"), columns.request.slot("max_wait_ms"),
        )  # fmt: skip
        left = np.where(service.mask(), service.values, 0) - muted - throttled
        waited = np.minimum(left, np.maximum(longest.values, 0) * MS)
        values = np.where(polls & (got.values < least.values), waited, 0)
        known = ~polls | (got.mask() & least.mask() & longest.mask())
        return Vector(values, found.valid).where(known)

    # -- bodies -------------------------------------------------------------------------------------------------------
    def error(self) -> Made:
        """Kafka's name of the error code."""
        code = self.columns.error_code
        if code.nothing:
            return nulls(self.size, pa.string())
        return ERROR_NAMES.take(np.where(code.mask(), code.values - ERROR_BASE, -1))

    def requested(self, name: str) -> Vector:
        """A slot of the request, or of the response if the request lacks it."""
        found = self.columns.request.slot(name)
        if name in ASSIGNED:
            return found.where(found.values >= 0).otherwise(self.columns.response.slot(name)).otherwise(found)
        return found.otherwise(self.columns.response.slot(name))

    @cached_property
    def records_in_response(self) -> "Bools":
        keys = self.number("api_key")
        found = np.zeros(self.size, np.bool_)
        for key in RECORDS_IN_RESPONSE:
            found |= keys.values == key
        return found & keys.mask()

    def carried(self, name: str) -> Vector:
        """A slot of the message that carries the records."""
        request, response = self.columns.request.slot(name), self.columns.response.slot(name)
        return request.where(~self.records_in_response).otherwise(response)

    def named(self, name: str) -> Made:
        """A text of the request, or of the response if the request lacks it."""
        responses, starts, ends = self._texts("response", name)
        requests, *spans = self._texts("request", name)
        if not len(responses) and not len(requests):
            return nulls(self.size, pa.string())
        rows = np.concatenate([responses, requests])  # the request counts for a row with both
        some, texts = encoded(self.columns.messages.pool, np.concatenate([starts, spans[0]]), np.concatenate([ends, spans[1]]))
        numbers = np.full(self.size, -1, np.int64)
        numbers[rows] = some
        return NameColumn([name_text(text) for text in texts]).take(numbers)

    def _texts(self, side: str, name: str) -> "tuple[Int64s, Int64s, Int64s]":
        """As `SideColumns.texts`, but only for messages that decode to their end.

        A message that was captured whole but is shorter or longer than its fields is damaged or of another API. The bytes in
        the place of a name may then be a credential.
        """
        messages = self.columns.request if side == "request" else self.columns.response
        rows, starts, ends = messages.texts(name)
        if not len(rows) or not messages.status[rows].any():
            return rows, starts, ends
        good = np.flatnonzero((messages.status[rows] == COMPLETE) | ~self._whole(side)[rows])
        return rows[good], starts[good], ends[good]

    def bits(self, name: str, members: Sequence[object]) -> Array:
        """A slot that is a bit mask, as the list of its members."""
        return choices(members, self.carried(name).filled(), COLUMN_TYPES[name], None)

    def api(self) -> Coded:
        """Kafka's name of the API."""
        keys = self.number("api_key")
        numbers = keys.values
        if keys.valid is not None:
            tokens = np.where(self.columns.is_outcome("orphan"), -1, API_NAMES.null - 1)
            numbers = np.where(keys.valid, np.where(numbers < API_NAMES.null - 1, numbers, -1), tokens)
        return API_NAMES.take(numbers)

    def release(self, find: Callable[[int, int], str | None]) -> Made:
        """A fact about each row's API and version."""
        places, known = self.columns.calls
        values = [find(code // VERSIONS, code % VERSIONS) for code in known]
        if not any(values):
            return nulls(self.size, pa.string())
        return Coded(pa.array([*values, None], pa.string()), places)

    def verdict(self) -> Made:
        """Whether the version suits the broker."""
        assert self.context.verdicts is not None
        return self.context.verdicts.to_arrow()

    # -- flags --------------------------------------------------------------------------------------------------------
    def undecoded(self) -> "Bools":
        """Rows with a body that was captured completely but could not be decoded."""
        found = np.zeros(self.size, np.bool_)
        named = self.number("api_key").mask()
        for name, side in (("request", self.columns.request), ("response", self.columns.response)):
            unread = ~side.here | (side.status == SHORT) | (side.status == MALFORMED)
            found |= named & self._whole(name) & unread
            if self.columns.messages.faults:
                found |= np.isin(side.index, list(self.columns.messages.faults))
        return found

    def _whole(self, side: str) -> "Bools":
        """Rows whose body was captured completely."""
        size = self.number(f"{side}_bytes")
        whole = size.mask() & (size.values <= limits.FRAME_GATHERED_MAX) & self.number(f"{side}_last_ns").mask()
        whole &= self.number(f"{side}_flags").values & BROKEN == 0
        return whole

    def flags(self) -> Array:
        """All flags of each row."""
        bits = self.number("flags").values | self.number("request_flags").values | self.number("response_flags").values
        bits = bits | self.columns.backwards * FLAG["clock"] | self.undecoded() * FLAG["undecoded"]
        return choices(FLAGS, bits, COLUMN_TYPES["flags"], [])


def _number(name: str, kind: pa.DataType) -> Callable[[Exchanges], Made]:
    return lambda rows: rows.number(name).to_arrow(kind)


MAKERS: Final[dict[str, Callable[[Exchanges], Made]]] = {
    "time": lambda rows: rows.time(),
    "capture": lambda rows: rows.capture("request"),
    "response_capture": lambda rows: rows.capture("response"),
    "connection": lambda rows: rows.text("uid"),
    "stream": lambda rows: rows.stream(),
    "client_ip": lambda rows: rows.text("client_ip"),
    "client_port": lambda rows: rows.port("client_port"),
    "server_ip": lambda rows: rows.text("server_ip"),
    "server_port": lambda rows: rows.port("server_port"),
    "api": lambda rows: rows.api(),
    "client_id": lambda rows: rows.coded("client_id"),
    "tls": lambda rows: booleans(rows.constant("tls") != 0),
    "outcome": lambda rows: rows.coded("outcome"),
    "reason": lambda rows: rows.coded("reason"),
    "request_first_packet": lambda rows: rows.packet("request_first_ref"),
    "request_last_packet": lambda rows: rows.packet("request_last_ref"),
    "response_first_packet": lambda rows: rows.packet("response_first_ref"),
    "response_last_packet": lambda rows: rows.packet("response_last_ref"),
    "request_last_capture": lambda rows: rows.last_capture("request"),
    "response_last_capture": lambda rows: rows.last_capture("response"),
    "latency_ns": lambda rows: rows.columns.latency.to_arrow(pa.int64()),
    "rtt_ns": lambda rows: rows.columns.rtt.to_arrow(pa.int64()),
    "queue_ns": lambda rows: rows.columns.queue.to_arrow(pa.int64()),
    "service_ns": lambda rows: rows.columns.service.to_arrow(pa.int64()),
    "request_transfer_ns": lambda rows: rows.transfer("request").to_arrow(pa.int64()),
    "transfer_ns": lambda rows: rows.transfer("response").to_arrow(pa.int64()),
    "throttle_time_ms": lambda rows: rows.columns.throttle.to_arrow(pa.int32()),
    "error_code": lambda rows: rows.columns.error_code.to_arrow(pa.int16()),
    "error": lambda rows: rows.error(),
    "error_count": lambda rows: rows.columns.response.slot("error_count").to_arrow(pa.int32()),
    "topics": lambda rows: rows.columns.topics.names(rows.context.topic_names),
    "topic_ids": lambda rows: rows.columns.topics.ids(),
    "codecs": lambda rows: rows.bits("codecs", CODECS),
    "magics": lambda rows: rows.bits("magics", MAGICS),
    "group_id": lambda rows: rows.named("group_id"),
    "member_id": lambda rows: rows.named("member_id"),
    "transactional_id": lambda rows: rows.named("transactional_id"),
    "broker_id": lambda rows: rows.context.of_servers(0, pa.int32()),
    "cluster_id": lambda rows: rows.context.of_servers(1, pa.string()),
    "cluster_brokers": lambda rows: rows.context.of_servers(2, pa.int32()),
    "software_name": lambda rows: rows.context.texts(lambda known: known.software[0] if known.software else None),
    "software_version": lambda rows: rows.context.texts(lambda known: known.software[1] if known.software else None),
    "sasl_mechanism": lambda rows: rows.context.texts(lambda known: known.mechanism),
    "principal": lambda rows: rows.context.texts(lambda known: known.principal),
    "version_verdict": lambda rows: rows.verdict(),
    "removed_in": lambda rows: rows.release(removed_in),
    "deprecated_in": lambda rows: rows.release(deprecated_in),
    "long_poll_ns": lambda rows: rows.long_poll().to_arrow(pa.int64()),
    "throttle_ns": lambda rows: rows.throttled().to_arrow(pa.int64()),
    "muted_ns": lambda rows: rows.of_service(rows.context.muted).to_arrow(pa.int64()),
    "flags": lambda rows: rows.flags(),
}
"""How each column is computed that is not a plain number. A column in neither table is null here and filled in later."""
NEEDS: Final = {
    **dict.fromkeys(("software_name", "software_version", "sasl_mechanism", "principal"), Fact.CONNECTIONS),
    **dict.fromkeys(("broker_id", "cluster_id", "cluster_brokers"), Fact.BROKERS),
    **dict.fromkeys(("long_poll_ns", "throttle_ns", "muted_ns"), Fact.MUTES),
    "topics": Fact.TOPICS,
    "version_verdict": Fact.VERDICTS,
}
"""Column -> the kinds of facts that it needs from its context."""


def needs_of(columns: Iterable[Column]) -> Fact:
    return reduce(or_, (NEEDS.get(column.name, NO_FACT) for column in columns), NO_FACT)


def maker(column: Column) -> Callable[[Exchanges], Made]:
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
        return lambda rows: rows.requested(name).to_arrow(kind)
    assert column.nullable, f"{name} has no maker"
    return lambda rows: nulls(rows.size, kind)


class ExchangeColumns:
    """Selected columns of the table, built for one batch after another."""

    def __init__(self, columns: Sequence[Column], *, coded: bool = False) -> None:
        """`coded`: texts are dictionary-encoded."""
        self.schema = with_texts(arrow_schema("exchanges", columns), coded=coded)
        self.makers = {column.name: partial(Exchanges.made, name=column.name, make=maker(column)) for column in columns}

    def make(self, rows: Exchanges) -> pa.RecordBatch:
        return batch_of_types([make(rows) for make in self.makers.values()], self.schema)
