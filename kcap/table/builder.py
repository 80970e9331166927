"""Builds any set of tables of a capture in one pass; and one table of a capture, as the Python API has it.

In: requests for tables, a pass that has not begun. Out: record batches as exchanges are decided. Law: each table has the rows
that a pass of its own would give; memory does not grow with the number of exchanges.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from kcap.analyzer import ClosedConnection, RowBatch
from kcap.batch.columns import BatchColumns
from kcap.batch.rows import STRUCT_FROM
from kcap.facts.tracker import NO_FACT, Fact, MetadataTracker
from kcap.limits import CONNECTIONS_AT_ONCE
from kcap.table.backfill import Backfill, Labelled, leading, waited
from kcap.table.exchanges import Exchanges, NameColumn
from kcap.table.schema import choose
from kcap.table.table_builders import BUILDERS, ExchangesBuilder, Reading, TableBuilder, TableRequest

if TYPE_CHECKING:
    import pandas as pd

    from kcap.filter.ast import Filter


class Observer(Protocol):
    """Receives the exchanges and connections of a pass beside its tables."""

    needs: Fact

    def take(self, rows: Exchanges) -> None: ...

    def close(self, closed: ClosedConnection) -> None: ...


class TableSet:
    """Tables that are built in one pass, by label."""

    def __init__(self, builders: Mapping[str, TableBuilder], observers: Sequence[Observer] = (), needs: Fact = NO_FACT) -> None:
        """`needs`: facts that the caller reads from the tracker at the end."""
        self.builders = builders
        self.observers = observers
        for kind in (*(builder.needs for builder in builders.values()), *(observer.needs for observer in observers)):
            needs |= kind
        self.needs = needs
        self.primed = any(builder.primed for builder in builders.values())

    @classmethod
    def of(cls, requests: Mapping[str, TableRequest], observers: Sequence[Observer] = (), needs: Fact = NO_FACT) -> "TableSet":
        return cls({label: BUILDERS[one.table](one) for label, one in requests.items()}, observers, needs)

    def begin(self, reading: Reading, tracker: MetadataTracker | None = None) -> MetadataTracker:
        """Starts a pass; returns the tracker of its facts. `tracker` has facts of the whole capture."""
        self.reading = reading
        builders = self.builders.values()
        self._of_exchanges = bool(self.needs or self.observers) or any(
            type(builder).take is not TableBuilder.take for builder in builders
        )
        self._many = any(len(b.request.columns) >= STRUCT_FROM for b in builders if b.request.table == "exchanges")
        reading.keep_connections |= any(builder.closes for builder in builders)
        self._closes = bool(self.observers) or any(builder.closes for builder in builders)
        self.tracker = tracker or MetadataTracker(reading.analyzer.report, reading.message)
        if tracker is None and self.primed:
            self._prime(reading)
        for builder in builders:
            builder.begin(reading, self.tracker)
        alone = next(iter(builders)) if len(self.builders) == 1 and not self.observers else None
        if isinstance(alone, ExchangesBuilder):
            alone.push_down(self.needs)
        self._names = NameColumn([file.name for file in reading.capture_files])
        return self.tracker

    def _prime(self, reading: Reading) -> None:
        """Collects the facts of the whole capture before the first row, if the files can be read twice."""
        earlier = reading.another()
        if earlier is None:
            return
        for batch in earlier.batches():
            if len(batch):
                self.tracker.observe(BatchColumns(batch), self.needs, earlier.capture_files)
            if reading.watch is not None:
                reading.watch()
        self.tracker.restart()

    def take(self, batch: RowBatch) -> Iterator[Labelled]:
        if len(batch) and self._of_exchanges:
            takes = self._takes(batch)
            del batch
            for label, made in takes:
                if made.num_rows:
                    yield label, made
        if len(self.reading.connections) >= CONNECTIONS_AT_ONCE:
            yield from self.close_connections()

    def _takes(self, batch: RowBatch) -> Iterator[Labelled]:
        columns = BatchColumns(batch, many=self._many)
        rows = Exchanges(columns, self.tracker.observe(columns, self.needs, self.reading.capture_files), self._names)
        del batch, columns
        for observer in self.observers:
            observer.take(rows)
        takes = [(label, builder.take(rows)) for label, builder in self.builders.items()]
        del rows
        for label, made in takes:
            for some in made:
                yield label, some

    def close_connections(self) -> Iterator[Labelled]:
        """Rows of the connections that ended since the last call."""
        if not self._closes:  # then the caller may read them
            return
        closed, self.reading.connections = self.reading.connections, []
        for observer in self.observers:
            for connection in closed:
                observer.close(connection)
        for label, builder in self.builders.items():
            for made in builder.close(closed):
                yield label, made

    def rest(self) -> Iterator[Labelled]:
        """The rows that remain at the end of the pass."""
        yield from self.close_connections()
        for label, builder in self.builders.items():
            for made in builder.rest():
                yield label, made

    def rows(self) -> Iterator[Labelled]:
        """All rows of the pass, before `finisher` completes them."""
        # Nothing here holds a batch while its rows are written: its bodies take megabytes.
        yield from chain.from_iterable(map(self.take, self.reading.batches()))
        yield from self.rest()

    def finisher(self, label: str) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """Completes the rows of a table with all facts of the capture."""
        return self.builders[label].finisher(self.tracker, better=self.tracker.knows_better())


def first_rows(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Batches up to a total number of rows."""
    left = limit
    for batch in batches:
        if left is None:
            yield batch
            continue
        yield batch.slice(0, left)
        left -= min(left, batch.num_rows)
        if left == 0:
            return


class Table:
    """One table of a capture."""

    def __init__(
        self, start: Callable[[], Reading], name: str, columns: Sequence[str] | None = None, *,
        backfill: Backfill = Backfill.WAIT, limit: int | None = None, only: "Filter | None" = None,
        children: Sequence[str] = (), body_fields: Sequence[str] = (), of_exchanges: Sequence[str] = (), coded: bool = False,
    ) -> None:  # fmt: skip
        """`limit`: maximum number of rows. `only`: a filter on exchanges and their parts. `of_exchanges`: columns of exchanges
        to add to a table of partitions. `coded`: as `TableRequest.coded`.

        Raises UsageError for unknown names, and for a filter on a table that is not made of exchanges.
        """
        self.request = TableRequest.of(
            name, columns, only=only, backfill=backfill, children=children, body_fields=body_fields,
            of_exchanges=choose("exchanges", of_exchanges) if of_exchanges else (), coded=coded,
        )  # fmt: skip
        self.name, self.columns, self.schema = name, self.request.columns, self.request.schema
        self.tracker: MetadataTracker | None = None
        self._limit = limit
        self._start = start

    def record_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, in the order in which they were decided."""
        tables = TableSet.of({self.name: self.request})
        builder = tables.builders[self.name]
        self.tracker = tables.begin(self._start())
        labelled = tables.rows()
        if self.request.backfill is Backfill.REWRITE and not builder.waits:
            labelled = leading(labelled, self.tracker)
        rows: Iterator[pa.RecordBatch] = (batch for _, batch in labelled)
        if builder.waits:
            some = rows if builder.filtered_late else first_rows(rows, self._limit)
            yield from first_rows(waited(some, lambda: tables.finisher(self.name)), self._limit)
            return
        yield from first_rows((batch.select(self.schema.names) for batch in rows), self._limit)

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return pa.Table.from_batches(self.record_batches(), self.schema)

    def to_pandas(self) -> "pd.DataFrame":
        """All rows as a pandas DataFrame. `time` has datetimes; nullable integers have pandas' nullable types.

        Nanoseconds remain integers, since a float cannot represent nanoseconds since the epoch.
        """
        import pandas as pd

        nullable: dict[pa.DataType, Any] = {
            pa.int8(): pd.Int8Dtype(), pa.int16(): pd.Int16Dtype(), pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(),
        }  # fmt: skip
        frame: pd.DataFrame = self.to_arrow().to_pandas(types_mapper=nullable.get)
        return frame.astype(
            {column.name: column.type for column in self.columns if not column.nullable and column.type.startswith("int")}
        )
