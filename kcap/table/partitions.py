"""The table `partitions`: one row a topic-partition of an exchange that is about partitions.

In: a pass over a capture, and another one before it that learns what topic ids are called, where the files can be read twice.
Out: record batches of the asked-for columns, as exchanges are decided. Law: a partition that a request and its response both
name is one row; rows stand in the order of the request, then what only the response names; each value is the wire's.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap.analyzer import RowBatch
from kcap.arrays.arrow import Array, take
from kcap.arrays.vectors import Vector
from kcap.columns import Column
from kcap.decode import slots
from kcap.facts.failures import Report, tell
from kcap.facts.fetch_positions import Positions
from kcap.facts.topic_names import TopicNames
from kcap.faults import Fault
from kcap.records.record_sets import decode_records, plain_size
from kcap.row_columns import RowColumns
from kcap.schema.registry import REQUEST, RESPONSE, api_key
from kcap.table.batch_headers import COLUMNS as FACTS
from kcap.table.batch_headers import BatchFacts, batch_facts
from kcap.table.exchanges import ERROR_BASE, ERROR_NAMES
from kcap.table.partition_pairs import Pairs
from kcap.table.records import Reread, learn, names_of
from kcap.table.schema import TYPES, arrow_schema, columns_of

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s
    from kcap.table.builder import Pass
    from kcap.table.row_filter import ExchangeFilter

PRODUCE, FETCH = api_key("Produce"), api_key("Fetch")
LEADER: Final = "leader_id"
ANSWERED: Final = ("error_code", "base_offset", "high_watermark", "last_stable_offset", "log_start_offset", LEADER)
"""Columns that only an answer tells."""
EITHER: Final = ("partition", "committed_offset", "timestamp_ms", "leader_epoch")
"""Columns as the response has them, or the request where that lacks them."""


def record_batches(
    reading: "Pass", columns: Sequence[Column], sieve: "ExchangeFilter | None" = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a pass, as they are decided; those of the exchanges that a filter lets pass."""
    table = PartitionTable(reading, columns, sieve)
    for batch in reading.batches():
        yield from table.turn(batch)


class PartitionTable:
    """Turns the batches of a pass, all of them, in order."""

    def __init__(self, reading: "Pass", columns: Sequence[Column], sieve: "ExchangeFilter | None" = None) -> None:
        self._names, self._learns = names_of(reading, asked=any(column.name == "topic" for column in columns))
        reading.keep_bodies()
        self._reading, self._columns, self._sieve = reading, columns, sieve
        self._report = reading.analyzer.report
        self._schema, self._positions = arrow_schema("partitions", columns), Positions()
        self._listed = any(column.name == LEADER for column in columns)

    def turn(self, batch: RowBatch) -> Iterator[pa.RecordBatch]:
        """The rows of a batch, if it has any."""
        message = self._reading.message
        if self._learns:
            learn(batch, self._names, message, self._report)
        partitions = Partitions(batch, message, self._names, self._positions, listed=self._listed, report=self._report)
        if not len(partitions.pairs):
            return
        arrays = [partitions.column(column.name) for column in self._columns]
        made = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        if self._sieve is not None:
            made = made.filter(pa.array(np.isin(partitions.pairs.row, self._sieve.rows(batch))))
        yield made


class Partitions:
    """The partitions of one batch as columns; what several of them need is made once."""

    def __init__(
        self, batch: RowBatch, message: Reread, names: TopicNames, positions: Positions, *, listed: bool = False,
        report: Report | None = None,
    ) -> None:  # fmt: skip
        """`listed`: the partitions that Metadata lists too; `report` is told of those on which reading failed."""
        self._batch, self._report = batch, report
        self._parts = RowColumns(batch)
        self._names = names
        self.pairs = Pairs(batch, self._parts, message, listed=listed)
        # Sessions go on from batch to batch, whether the column is asked for or not.
        self._fetch_offset = self._positioned(positions)

    def column(self, name: str) -> Array:
        """A column of the table."""
        made = MADE[name](self)
        return made.to_arrow(KINDS[name]) if isinstance(made, Vector) else made

    # -- the exchange -------------------------------------------------------------------------------------------------
    def number(self, name: str) -> Vector:
        """A part of the exchange."""
        return self._parts.number(name).take(self.pairs.row)

    def connection(self) -> Array:
        """Uid of the connection."""
        known = pa.array([identity.uid for identity in self._batch.identities], pa.string())
        return take(known, self.number("identity").values)

    def time(self) -> Array:
        """First byte of the request, of the response where there is no request."""
        first = self.number("request_first_ns").otherwise(self.number("response_first_ns"))
        made: Any = Vector(first.values // 1000, first.valid).to_arrow(pa.int64())
        found: Array = made.cast(KINDS["time"])
        return found

    # -- the partition ------------------------------------------------------------------------------------------------
    def either(self, name: str) -> Vector:
        """A column of the response, or of the request."""
        return self.pairs.value(name, RESPONSE).otherwise(self.pairs.value(name, REQUEST))

    def answered(self, name: str) -> Vector:
        """A column of the response."""
        return self.pairs.value(name, RESPONSE)

    def error(self) -> Array:
        """Kafka's name of the error."""
        code = self.answered("error_code")
        return ERROR_NAMES.take(np.where(code.mask(), code.values - ERROR_BASE, -1))

    def topic(self) -> Array:
        """Name by the message, or by what the capture tells of its id."""
        pairs = self.pairs
        uuids = [self._names.name(text) for text in self._uuids]
        known = pa.array([*(name.decode(errors="replace") for name in pairs.names), *uuids, None], pa.string())
        last = len(known) - 1
        by_id = np.where(pairs.uuid >= 0, pairs.uuid + len(pairs.names), last)
        return take(known, np.where(pairs.name >= 0, pairs.name, by_id))

    @cached_property
    def _uuids(self) -> list[str]:
        return [urlsafe_b64encode(uuid)[:22].decode() for uuid in self.pairs.ids]

    def topic_id(self) -> Array:
        """As Kafka prints its uuids."""
        known = pa.array([*self._uuids, None], pa.string())
        return take(known, np.where(self.pairs.uuid >= 0, self.pairs.uuid, len(known) - 1))

    def group(self) -> Array:
        """The group that the partition is asked for, or that of the message."""
        bodies, texts = self.pairs.bodies, [name.decode(errors="replace") for name in self.pairs.groups]
        of_row: dict[int, str | None] = {}
        for row, span in zip(bodies.rows.tolist(), bodies.projection.spans("group_id"), strict=True):
            if span is not None and of_row.get(row) is None and span[0] >= 0:
                of_row[row] = bytes(bodies.buffer[span[0] : span[1]]).decode(errors="replace")
        numbers, rows = self.pairs.group.tolist(), self.pairs.row.tolist()
        return pa.array([texts[n] if n >= 0 else of_row.get(row) for n, row in zip(numbers, rows, strict=True)], pa.string())

    def _positioned(self, positions: Positions) -> Vector:
        """`fetch_offset`, also where only the fetch session knows it."""
        pairs, asked = self.pairs, self.pairs.value("fetch_offset", REQUEST)
        places = np.flatnonzero(self.number("api_key").values == FETCH)
        if not len(places):
            return asked
        values, valid = asked.values.copy(), asked.mask().copy()
        numbers, sessions = self.either("partition").values, self._sessions()
        cuts = np.flatnonzero(np.diff(pairs.row[places], prepend=-1)).tolist()
        for low, high in zip(cuts, [*cuts[1:], len(places)], strict=True):
            some = places[low:high].tolist()
            row = int(pairs.row[some[0]])
            session_id, epoch = sessions.get((row, REQUEST), (None, None))
            if session_id is None or epoch is None:
                continue
            known = [(pairs.topic(place), int(numbers[place])) for place in some]
            named = {key: int(values[place]) for key, place in zip(known, some, strict=True) if valid[place]}
            answered, _ = sessions.get((row, RESPONSE), (None, None))
            held = positions.fetched(self._uid(row), session_id, epoch, named, answered)
            for key, place in zip(known, some, strict=True):
                if not valid[place] and key in held:
                    values[place], valid[place] = held[key], True
        return Vector(values, valid)

    def _uid(self, row: int) -> str:
        return self._batch.identities[int(self._parts.number("identity").values[row])].uid

    def _sessions(self) -> dict[tuple[int, int], tuple[int | None, int | None]]:
        """Fetch session and epoch of each message, by exchange and side."""
        bodies = self.pairs.bodies
        said = zip(*(bodies.projection.column(name) for name in ("session_id", "session_epoch")), strict=True)
        return dict(zip(zip(bodies.rows.tolist(), bodies.sides.tolist(), strict=True), said, strict=True))

    def fetch_offset(self) -> Vector:
        """Where the fetch reads from."""
        return self._fetch_offset

    # -- its records --------------------------------------------------------------------------------------------------
    @cached_property
    def _spans(self) -> tuple["Int64s", "Int64s"]:
        """Start and end of each row's records, -1 for none: of a Produce those of the request, else those of the answer."""
        pairs = self.pairs
        produced = self.number("api_key").values == PRODUCE
        starts, ends = (
            np.where(produced, pairs.span(at, REQUEST), pairs.span(at, RESPONSE))
            for at in (slots.RECORDS_START, slots.RECORDS_END)
        )
        # What a cut message announces and does not have is not there, though other bodies stand behind it in the buffer.
        body_end = np.where(produced, pairs.body_end(REQUEST), pairs.body_end(RESPONSE))
        return starts, np.minimum(ends, body_end)

    @cached_property
    def _facts(self) -> BatchFacts:
        starts, ends = self._spans
        return batch_facts(self.pairs.bodies.buffer, starts.tolist(), ends.tolist(), failed=self._failed)

    def _failed(self, place: int, error: Exception | Fault) -> None:
        tell(self._report, self._batch, int(self.pairs.row[place]), "records of a partition", error)

    def of_batches(self, name: str) -> Array:
        """A fact of the records."""
        return pa.array(getattr(self._facts, name), KINDS[name])

    def plain_bytes(self) -> Array:
        """Of each Produce the size of its batches without compression."""
        view, produced = memoryview(self.pairs.bodies.buffer), self.number("api_key").values == PRODUCE
        found: list[int | None] = []
        for at, (start, end, wanted) in enumerate(zip(*(column.tolist() for column in (*self._spans, produced)), strict=True)):
            sizes: list[int | None] = [None]
            if wanted and start >= 0:
                try:
                    sizes = [plain_size(batch) for batch in decode_records(view[start:end]).batches]
                except Exception as error:  # noqa: BLE001 - of this partition the size is not known
                    self._failed(at, error)
            found.append(None if None in sizes else sum(size or 0 for size in sizes))
        return pa.array(found, pa.int64())

    def lag(self) -> Vector:
        """High watermark less the offset behind what this answer brought, or behind nothing."""
        high = self.answered("high_watermark").where(self.number("api_key").values == FETCH)
        brought = Vector(
            np.array([offset or 0 for offset in self._facts.next_offset], np.int64),
            np.array([offset is not None for offset in self._facts.next_offset], np.bool_),
        )
        return high.minus(brought.otherwise(self._fetch_offset))


KINDS: Final = {column.name: TYPES[column.type] for column in columns_of("partitions").values()}
Maker = Callable[[Partitions], "Array | Vector"]
MADE: Final[dict[str, Maker]] = {
    "connection": Partitions.connection,
    "exchange": lambda made: made.number("exchange"),
    "time": Partitions.time,
    "api_key": lambda made: made.number("api_key"),
    "group_id": Partitions.group,
    "topic": Partitions.topic,
    "topic_id": Partitions.topic_id,
    "error": Partitions.error,
    "fetch_offset": Partitions.fetch_offset,
    "plain_bytes": Partitions.plain_bytes,
    "lag": Partitions.lag,
    **{name: partial(Partitions.answered, name=name) for name in ANSWERED},
    **{name: partial(Partitions.either, name=name) for name in EITHER},
    **{name: partial(Partitions.of_batches, name=name) for name in FACTS if name in KINDS},
}
"""How each column is made."""
