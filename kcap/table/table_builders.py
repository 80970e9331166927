"""Builds each kind of table during one pass, one class per kind.

In: batches of exchanges with their contexts, connections that have ended. Out: record batches, which `finisher` completes once
the tracker has observed everything. Law: rows before that depend only on the connections read so far.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa

from kcap.analyzer import Analyzer, ClosedConnection, RowBatch
from kcap.arrays.arrow import Coded, batch_of_types, booleans, take, with_texts
from kcap.columns import ONLY_ROW, Column, exchange_column
from kcap.errors import UsageError
from kcap.facts.brokers import Server
from kcap.facts.fetch_positions import Positions
from kcap.facts.tracker import NO_FACT, Fact, MetadataTracker, Reread
from kcap.limits import ROWS_AT_ONCE
from kcap.model import CaptureFile
from kcap.net.packet_index import PacketIndex
from kcap.table.backfill import BACKFILLED, Backfill, Backfiller, companions, needs_backfill
from kcap.table.exchanges import ExchangeColumns, Exchanges, needs_of
from kcap.table.schema import arrow_schema, choose
from kcap.table.side_tables import (
    FACT_COLUMNS,
    batch_of,
    broker_rows,
    capture_rows,
    connection_batch,
    negotiation_row,
    topic_rows,
    turn_batches,
    weird_rows,
)
from kcap.weird import Weird

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s
    from kcap.facts.negotiations import Negotiation
    from kcap.filter.ast import Filter
    from kcap.table.row_filter import Read, RowFilter

Batches = Iterator[pa.RecordBatch]


class Reading(Protocol):
    """One pass over a capture, or over a shard of one."""

    connections: list[ClosedConnection]
    analyzer: Analyzer
    watch: Callable[[], None] | None
    noted: list[PacketIndex]
    unwanted: "Callable[[RowBatch], Any] | None"
    keep_connections: bool

    def another(self) -> "Reading | None": ...

    def keep_bodies(self, *, records: bool = True, partitions: bool = False) -> None: ...

    @property
    def message(self) -> Reread: ...

    @property
    def capture_files(self) -> Sequence[CaptureFile]: ...

    def batches(self) -> Iterator[RowBatch]: ...

    @property
    def weirds(self) -> list[tuple[Weird, int]]: ...


CODED_TABLES: Final = ("exchanges", "partitions")
"""Tables whose texts can be dictionary-encoded."""


@dataclass(frozen=True, slots=True)
class TableRequest:
    """One table of a capture."""

    table: str
    columns: Sequence[Column]
    only: "Filter | None" = None
    """A filter on exchanges, for tables of exchanges and their parts."""
    backfill: Backfill = Backfill.WAIT
    children: Sequence[str] = ()
    """`partitions`, `records`: list columns after those of exchanges."""
    body_fields: Sequence[str] = ()
    """Fields of decoded bodies, `request.topics.name`: list columns after these."""
    of_exchanges: Sequence[Column] = ()
    """Columns of exchanges after those of their partitions, named by `exchange_column`."""
    coded: bool = False
    """Whether texts are dictionary-encoded, which takes less time to build and to write to Parquet."""

    @classmethod
    def of(cls, table: str, names: Sequence[str] | None = None, **more: Any) -> "TableRequest":
        """A request by names of columns; by default all columns of the table.

        Raises UsageError for unknown names, and for a filter on a table that is not made of exchanges.
        """
        if more.get("only") is not None and table not in BACKFILLED:
            raise UsageError(f"a filter is about exchanges, which the table {table} is not made of")
        return cls(table, choose(table, names), **more)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the finished rows."""
        made = arrow_schema(self.table, self.columns)
        if self.children:
            from kcap.table.children import child_fields

            for field in child_fields(self.children):
                made = made.append(field)
        for field in exchange_fields(self.of_exchanges):
            made = made.append(field)
        if self.body_fields:
            from kcap.table.body_fields import body_columns

            for field in body_columns(self.body_fields):
                made = made.append(field)
        return with_texts(made, coded=self.coded)


def row_filter(tree: "Filter", reading: "Read | None" = None) -> "RowFilter":
    """The filter for rows. Its modules import packages that tables without a filter do not need."""
    from kcap.table.row_filter import RowFilter

    return RowFilter(tree, reading)


class TableBuilder:
    """Builds one table; `begin` starts a new pass. Before that it can be pickled."""

    needs = NO_FACT
    """The facts that its rows need."""
    bodies = False
    """Whether it needs the bytes of bodies, including those that a batch does not retain by default."""
    primed = False
    """Whether it needs the facts of the whole capture before its first row."""
    closes = False
    """Whether it is made of connections that have ended."""
    waits = False
    """Whether its rows have to be completed by `finisher`."""
    filtered_late = False
    """Whether the filter tests values that a backfill may change, so that `finisher` applies it."""

    def __init__(self, request: TableRequest) -> None:
        self.request = request

    @property
    def schema(self) -> pa.Schema:
        return self.request.schema

    @property
    def made_schema(self) -> pa.Schema:
        """The schema of the rows before `finisher` completes them."""
        return self.schema

    def begin(self, reading: Reading, tracker: MetadataTracker) -> None:
        """Starts a pass."""
        self.reading, self.tracker = reading, tracker

    def take(self, rows: Exchanges) -> Batches:
        """The rows of a batch of exchanges."""
        yield from ()

    def close(self, closed: Sequence[ClosedConnection]) -> Batches:
        """The rows of connections that have ended; all of their exchanges were in a batch by then."""
        yield from ()

    def rest(self) -> Batches:
        """The rows that remain at the end of the pass."""
        yield from ()

    def finisher(self, tracker: MetadataTracker, *, better: bool = True) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """Returns a function that completes record batches with all facts of the capture. `better`: these may change a row."""
        return lambda batch: batch

    def in_batches(self, rows: Iterator[dict[str, object]]) -> Batches:
        """Rows by column name, in batches; one empty batch if there are none."""
        some: list[dict[str, object]] = []
        for row in rows:
            some.append(row)
            if len(some) >= ROWS_AT_ONCE:
                yield batch_of(self.request.table, self.request.columns, some)
                some = []
        yield batch_of(self.request.table, self.request.columns, some)


class OfExchanges(TableBuilder):
    """Base class of tables whose rows are exchanges or parts of them: filter, companions, backfill."""

    def __init__(self, request: TableRequest) -> None:
        super().__init__(request)
        only = None if request.only is None else row_filter(request.only)
        resolved = request.backfill is not Backfill.AS_KNOWN
        self.needs = NO_FACT if only is None else only.needs
        self.bodies = only is not None and only.deep
        self.records = True
        """Whether bodies are needed together with their records."""
        self.partitions = False
        """Whether the partitions of bodies are needed."""
        self.filtered_late = self._can_wait(only) and resolved
        self.primed = only is not None and only.late and resolved and not self.filtered_late
        columns = list(request.columns)
        if self.filtered_late and only is not None:
            names = {column.name for column in columns}
            columns += [column for column in only.columns if column.name not in names]
        self.waits = self.filtered_late or (
            request.backfill is Backfill.WAIT and needs_backfill(request.table, columns, request.children)
        )
        self.made = companions(request.table, columns) if self.waits else columns

    @property
    def made_schema(self) -> pa.Schema:
        return replace(self.request, columns=self.made).schema

    def _can_wait(self, only: "RowFilter | None") -> bool:
        """Whether the filter can be applied to finished rows."""
        return False

    def begin(self, reading: Reading, tracker: MetadataTracker) -> None:
        super().begin(reading, tracker)
        if self.bodies:
            reading.keep_bodies(records=self.records, partitions=self.partitions)
        self.filter: RowFilter | None = None
        if self.request.only is not None and not self.filtered_late:
            self.filter = row_filter(self.request.only, reading)

    def finisher(self, tracker: MetadataTracker, *, better: bool = True) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        fill, names = Backfiller(tracker), self.schema.names
        late = row_filter(self.request.only) if self.filtered_late and self.request.only is not None else None

        def finish(batch: pa.RecordBatch) -> pa.RecordBatch:
            if better:
                batch = fill(batch)
            if late is not None:
                batch = late.passed(batch)
            chosen: pa.RecordBatch = batch.select(names)
            return chosen

        return finish


class ExchangesBuilder(OfExchanges):
    """Builds `exchanges`, with list columns of their parts on request."""

    def __init__(self, request: TableRequest) -> None:
        super().__init__(request)
        self.needs |= needs_of(self.made)
        if request.children:
            self.bodies, self.needs = True, self.needs | Fact.TOPICS
            self.partitions = "partitions" in request.children
        self.bodies |= bool(request.body_fields)

    def _can_wait(self, only: "RowFilter | None") -> bool:
        return only is not None and only.late and not only.deep and only.packets is None

    def begin(self, reading: Reading, tracker: MetadataTracker) -> None:
        super().begin(reading, tracker)
        self._columns, self._children = ExchangeColumns(self.made, coded=self.request.coded), None
        self._schema = self._columns.schema
        if self.request.children:
            from kcap.table.children import Children

            self._children = Children(self.request.children, tracker, reading.message)
            for field in self._children.fields:
                self._schema = self._schema.append(field)
        self._body_fields = None
        if self.request.body_fields:
            from kcap.table.body_fields import BodyFields

            self._body_fields = BodyFields(self.request.body_fields, reading.message)
            for field in self._body_fields.fields:
                self._schema = self._schema.append(field)

    def push_down(self, needs: Fact) -> None:
        """Skips the bodies of rows that do not pass, in a pass for this table only; `needs` are those of the tracker."""
        if self.request.only is None:
            return
        from kcap.table.push_down import PushDown, header_part

        first = header_part(self.request.only)
        if first is not None:
            self.reading.unwanted = PushDown(first, needs, self.reading).unwanted
            self.filter = self.filter or row_filter(first, self.reading)

    def take(self, rows: Exchanges) -> Batches:
        columns, seen = rows.columns, {}
        places: Int64s = np.arange(rows.size)
        stretches = [(0, rows.size)] if self._children is None else self._children.stretches(rows)
        if self.filter is not None:
            tested = self.filter.made(rows)
            places = np.array(self.filter.rows(tested, columns), np.int64)
            if len(places) < rows.size:
                rows = rows.select(places)
                seen = {name: take(tested.column(name), places) for name in tested.schema.names}
            else:
                seen = dict(zip(tested.schema.names, tested.columns))
        if not len(places):
            return
        whole = len(stretches) == 1
        while stretches:
            between = stretches.pop(0)
            first, last = np.searchsorted(places, between).tolist()
            some = np.arange(first, last)
            part, known = (rows, seen) if whole else (rows.select(some), {name: take(seen[name], some) for name in seen})
            made = [known[name] if name in known else make(part) for name, make in self._columns.makers.items()]
            if self._children is not None:
                made += self._children.make(columns, places[first:last], between)
            if self._body_fields is not None:
                made += self._body_fields.make(columns, places[first:last])
            del part, known
            if not stretches:
                columns.report_uncounted(self.tracker.report)
                del rows, columns, seen  # the batch's bodies need not live while its rows are written
            batch = batch_of_types(made, self._schema)
            del made
            if batch.num_rows:
                yield batch
            del batch


def exchange_fields(columns: Sequence[Column]) -> list[Any]:
    """Arrow fields of such columns, followed by `ONLY_ROW`."""
    fields = [field.with_name(exchange_column(field.name)) for field in arrow_schema("exchanges", columns)]
    return [*fields, pa.field(ONLY_ROW, pa.bool_())] if fields else []


class PartsBuilder(OfExchanges):
    """Base class of `partitions` and `records`."""

    def __init__(self, request: TableRequest) -> None:
        super().__init__(request)
        self.bodies = True
        if any(column.name == "topic" for column in request.columns):
            self.needs |= Fact.TOPICS


class PartitionsBuilder(PartsBuilder):
    def __init__(self, request: TableRequest) -> None:
        super().__init__(request)
        self.needs |= needs_of(request.of_exchanges)
        from kcap.table.partitions import OF_RECORDS  # these modules take 10 ms to import, and most tables do not need them

        self.partitions = True
        deep = request.only is not None and row_filter(request.only).deep
        self.records = deep or any(column.name in OF_RECORDS for column in self.made)

    def begin(self, reading: Reading, tracker: MetadataTracker) -> None:
        from kcap.table.partitions import LEADER

        super().begin(reading, tracker)
        self._schema, self._positions = self.made_schema, Positions()
        self._of_exchanges = ExchangeColumns(self.request.of_exchanges).makers.values()
        self._listed = any(column.name == LEADER for column in self.made)

    def take(self, rows: Exchanges) -> Batches:
        from kcap.table.partition_pairs import stretches
        from kcap.table.partitions import Partitions

        owners = [make(rows) for make in self._of_exchanges]
        only = None if self.filter is None else self.filter.places(rows)
        for between in stretches(rows):
            found = Partitions(
                rows.columns, self.tracker, self._positions, self.reading.message, listed=self._listed, records=self.records,
                between=between,
            )  # fmt: skip
            if not len(found.pairs):
                continue
            columns, of = [found.column(column.name) for column in self.made], found.pairs.row
            columns += [owner.take(of) if isinstance(owner, Coded) else take(owner, of) for owner in owners]
            if owners:
                columns.append(booleans(are_only(of)))
            made = batch_of_types(columns, self._schema)
            if only is not None:
                made = made.filter(pa.array(np.isin(of, only)))
            yield made


def are_only(owners: Any) -> Any:
    """bool[rows]: whether no adjacent row has the same owner. Input: int64[rows] in which equal owners are adjacent."""
    edges = np.ones(len(owners) + 1, np.bool_)
    edges[1:-1] = owners[1:] != owners[:-1]
    return edges[:-1] & edges[1:]


class RecordsBuilder(PartsBuilder):
    def begin(self, reading: Reading, tracker: MetadataTracker) -> None:
        from kcap.table.records import RecordRows

        super().begin(reading, tracker)
        self._rows = RecordRows(self.made)

    def take(self, rows: Exchanges) -> Batches:
        from kcap.table.records import records_of

        only = None if self.filter is None else self.filter.places(rows)
        for row in records_of(rows.columns, self.tracker, self.reading.message, only):
            self._rows.add(row)
            if self._rows.full:
                yield self._rows.take()
        if self._rows.waiting:
            yield self._rows.take()


class ConnectionsBuilder(TableBuilder):
    closes = True

    def __init__(self, request: TableRequest) -> None:
        super().__init__(request)
        names = {column.name for column in request.columns}
        self._facts = not names.isdisjoint(FACT_COLUMNS)
        self.needs = Fact.CONNECTIONS if self._facts else NO_FACT

    def close(self, closed: Sequence[ClosedConnection]) -> Batches:
        known = self.tracker.known if self._facts else None
        for start in range(0, max(len(closed), 1), ROWS_AT_ONCE):
            some = closed[start : start + ROWS_AT_ONCE]
            yield connection_batch(some, self.request.columns, self.reading.capture_files, known)


class TlsTurnsBuilder(TableBuilder):
    closes = True

    def begin(self, reading: Reading, tracker: MetadataTracker) -> None:
        super().begin(reading, tracker)
        reading.analyzer.infer_turns = True

    def close(self, closed: Sequence[ClosedConnection]) -> Batches:
        yield from turn_batches(closed, self.request.columns)


class NegotiationsBuilder(TableBuilder):
    needs = Fact.VERDICTS

    def begin(self, reading: Reading, tracker: MetadataTracker) -> None:
        super().begin(reading, tracker)
        from kcap.facts.negotiations import Negotiations

        self._negotiations = Negotiations()

    def take(self, rows: Exchanges) -> Batches:
        self._negotiations.take(rows.columns, rows.context)
        yield from ()

    def entries(self) -> "list[Negotiation]":
        """The API versions that connections have used so far."""
        return list(self._negotiations.entries.values())

    def rest(self) -> Batches:
        yield from self.in_batches(negotiation_row(entry, self.tracker) for entry in self.entries())


class BrokersBuilder(TableBuilder):
    needs = Fact.BROKERS

    def begin(self, reading: Reading, tracker: MetadataTracker) -> None:
        super().begin(reading, tracker)
        self._servers: set[Server] = set()

    def take(self, rows: Exchanges) -> Batches:
        self._servers.update(rows.context.servers)
        yield from ()

    def rest(self) -> Batches:
        yield from self.in_batches(broker_rows(self.tracker, self._servers))


class TopicNamesBuilder(TableBuilder):
    needs = Fact.TOPICS | Fact.BROKERS

    def rest(self) -> Batches:
        yield from self.in_batches(topic_rows(self.tracker))


class CapturesBuilder(TableBuilder):
    """Builds `captures`."""

    def rest(self) -> Batches:
        yield batch_of("captures", self.request.columns, capture_rows(self.reading.capture_files))


class WeirdsBuilder(TableBuilder):
    """Builds `weirds`."""

    def rest(self) -> Batches:
        yield from self.in_batches(weird_rows(self.reading.weirds, self.reading.capture_files))


BUILDERS: Final[dict[str, Callable[[TableRequest], TableBuilder]]] = {
    "exchanges": ExchangesBuilder,
    "partitions": PartitionsBuilder,
    "records": RecordsBuilder,
    "connections": ConnectionsBuilder,
    "negotiations": NegotiationsBuilder,
    "brokers": BrokersBuilder,
    "tls_turns": TlsTurnsBuilder,
    "topic_names": TopicNamesBuilder,
    "captures": CapturesBuilder,
    "weirds": WeirdsBuilder,
}
