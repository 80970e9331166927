"""A table of a capture, read when it is asked for.

In: a pass over the files that has not begun. Out: record batches as they are decided, an Arrow table or a pandas frame of all.
Law: each of the three ways gives the same rows; record batches come in flat memory.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from kcap.analyzer import Analyzer, ClosedConnection, RowBatch
from kcap.columns import Column
from kcap.errors import UsageError
from kcap.facts.tracker import MetadataTracker
from kcap.model import CaptureFile
from kcap.net.packet_index import PacketIndex
from kcap.table.backfill import chosen, companions, leading, needs_backfill, waited
from kcap.table.exchanges import ExchangeTable
from kcap.table.fact_tables import FACTS, fact_batches
from kcap.table.schema import arrow_schema, choose
from kcap.table.side_tables import FACT_COLUMNS, batch_of, capture_rows, connection_rows, weird_rows
from kcap.weird import Weird

if TYPE_CHECKING:
    import pandas as pd

    from kcap.arrays.vectors import Int64s
    from kcap.decode.message import Message
    from kcap.filter.ast import Filter
    from kcap.table.children import Children
    from kcap.table.row_filter import ExchangeFilter, RowFilter

OF_EXCHANGES = ("partitions", "records")
"""Tables whose rows are parts of exchanges."""
CONNECTIONS_AT_ONCE = 1024


class Pass(Protocol):
    """A reading of a capture."""

    connections: list[ClosedConnection]
    analyzer: Analyzer
    watch: Callable[[], None] | None
    noted: list[PacketIndex]
    unwanted: "Callable[[RowBatch], Int64s] | None"

    def another(self) -> "Pass | None": ...

    def keep_bodies(self) -> None: ...

    def message(self, batch: RowBatch, at: int, side: str) -> "Message | None": ...

    @property
    def capture_files(self) -> Sequence[CaptureFile]: ...

    def batches(self) -> Iterator[RowBatch]: ...

    @property
    def weirds(self) -> list[tuple[Weird, int]]: ...


def decided(reading: Pass, table: ExchangeTable, children: "Children | None" = None) -> Iterator[pa.RecordBatch]:
    """The exchanges of a pass as they are decided, with what belongs to them where that was asked for."""
    for batch in reading.batches():
        if len(batch):
            turned = table.turn(batch)
            if children is not None:
                turned = children.beside(turned, batch, table.places)
            del batch  # bodies need not stay while the rows are written, nor these while the next are read
            if turned.num_rows:
                yield turned
            del turned


def first_rows(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Batches up to a number of rows."""
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
        self,
        start: Callable[[], Pass],
        name: str,
        columns: Sequence[str] | None = None,
        *,
        whole: bool | None = True,
        limit: int | None = None,
        only: "Filter | None" = None,
        children: Sequence[str] = (),
    ) -> None:
        """`whole`: rows wait for what the end of the capture knows better; False: they say what is known so far; None: the
        first ones wait a little, and who asks for them looks at all of them again where `learner` knows better in the end.

        Of the exchanges, no more than `limit` are read, and those alone that `only` lets pass, with what belongs to them;
        `children`, as `kcap.table.children` has them, become list columns behind the others.

        Raises UsageError for a table whose rows belong to no single exchange, where there is a filter.
        """
        if only is not None and name not in ("exchanges", *OF_EXCHANGES):
            raise UsageError(f"a filter is about exchanges, which the table {name} is not made of")
        self._only = only
        self.name = name
        self.learner: MetadataTracker | None = None
        self._whole = whole
        self._limit = limit
        self.columns = choose(name, columns)
        self.schema = arrow_schema(name, self.columns)
        self._children = children
        if children:
            from kcap.table.children import child_fields

            for field in child_fields(children):
                self.schema = self.schema.append(field)
        self._start = start

    def record_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, in the order in which they were decided; those of the exchanges when the capture told all it knows."""
        return self.batches_of(self._start())

    def batches_of(self, reading: Pass) -> Iterator[pa.RecordBatch]:
        """The rows of a pass that somebody else watches too."""
        files = reading.capture_files
        if self.name == "exchanges":
            yield from self._exchanges(reading)
            return
        if self.name in FACTS:
            self.learner = MetadataTracker(reading.analyzer.report)
            yield from fact_batches(self.name, self.columns, reading, self.learner)
            return
        if self.name == "records":
            from kcap.table.records import record_batches

            yield from record_batches(reading, self.columns, self._of_exchanges(reading))
            return
        if self.name == "partitions":
            from kcap.table import partitions

            yield from partitions.record_batches(reading, self.columns, self._of_exchanges(reading))
            return
        if self.name == "connections":
            yield from self._connections(reading)
            return
        for _ in reading.batches():
            pass
        if self.name == "captures":
            yield batch_of(self.name, self.columns, capture_rows(files))
        else:
            yield batch_of(self.name, self.columns, weird_rows(reading.weirds, files))

    def _connections(self, reading: Pass) -> Iterator[pa.RecordBatch]:
        """Connections that are over, with what their exchanges told; all rows of one were in a batch by then."""
        learner = MetadataTracker(reading.analyzer.report)
        table = ExchangeTable(choose("exchanges", ["software_name"]), reading.capture_files, learner)
        tells = any(column.name in FACT_COLUMNS for column in self.columns)
        known = learner.known if tells else None
        for batch in reading.batches():
            if tells and len(batch):
                table.turn(batch)
            if len(reading.connections) >= CONNECTIONS_AT_ONCE:
                closed, reading.connections = reading.connections, []
                yield batch_of(self.name, self.columns, connection_rows(closed, reading.capture_files, known))
        yield batch_of(self.name, self.columns, connection_rows(reading.connections, reading.capture_files, known))

    def _exchanges(self, reading: Pass) -> Iterator[pa.RecordBatch]:
        sieve = self._sieve(reading)
        columns = self.columns if sieve is None else sieve.beside(self.columns)
        waits = (
            needs_backfill(columns)
            if self._whole is not False and sieve is not None
            else self._whole and needs_backfill(columns)
        )
        self.learner = MetadataTracker(reading.analyzer.report)
        if waits and sieve is not None and sieve.late and sieve.deep:
            self._prime(reading)
        late = sieve if waits and sieve is not None and sieve.late and not sieve.deep else None
        made = companions(columns) if waits else columns
        children = self._beside(reading)
        batches = decided(reading, self._exchange_table(reading, made, None if late is not None else sieve), children)
        if waits:
            if late is None:
                batches = first_rows(batches, self._limit)
            finish = chosen(self.schema.names, self.learner, late)
            return first_rows(waited(batches, finish), self._limit)
        if self._whole is None:
            batches = leading(batches, self.learner)
        return first_rows((batch.select(self.schema.names) for batch in batches), self._limit)

    def _beside(self, reading: Pass) -> "Children | None":
        if not self._children:
            return None
        from kcap.table.children import Children

        return Children(self._children, reading)

    def _exchange_table(self, reading: Pass, columns: Sequence[Column], sieve: "RowFilter | None") -> ExchangeTable:
        """What turns batches; `sieve` is for what can be decided at once, but for what headers decide, which always is."""
        assert self.learner is not None
        files = reading.capture_files
        if self._only is None:
            return ExchangeTable(columns, files, self.learner)
        from kcap.table.filtered import FilteredTable
        from kcap.table.push_down import PushDown, header_part
        from kcap.table.row_filter import RowFilter

        first = header_part(self._only)
        if first is not None:
            reading.unwanted = PushDown(first, columns, reading).unwanted
        sieve = sieve or (None if first is None else RowFilter(first, reading))
        if sieve is None:
            return ExchangeTable(columns, files, self.learner)
        return FilteredTable(columns, files, self.learner, sieve)

    def _sieve(self, reading: Pass) -> "RowFilter | None":
        if self._only is None:
            return None
        from kcap.table.row_filter import RowFilter

        sieve = RowFilter(self._only, reading)
        if sieve.deep:
            reading.keep_bodies()
        return sieve

    def _of_exchanges(self, reading: Pass) -> "ExchangeFilter | None":
        """What lets exchanges pass, for tables of their parts."""
        sieve = self._sieve(reading)
        if sieve is None:
            return None
        from kcap.table.row_filter import ExchangeFilter

        self.learner = MetadataTracker(reading.analyzer.report)
        if sieve.late and self._whole is not False:
            self._prime(reading)
        return ExchangeFilter(sieve, reading.capture_files, self.learner)

    def _prime(self, reading: Pass) -> None:
        """Learns what the capture tells before the first row is looked at, where the files can be read twice."""
        earlier = reading.another()
        if earlier is not None and self.learner is not None:
            table = ExchangeTable(
                choose("exchanges", ["broker_id", "topics", "version_verdict"]), earlier.capture_files, self.learner
            )
            for batch in earlier.batches():
                table.turn(batch)
                if reading.watch is not None:
                    reading.watch()

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return pa.Table.from_batches(self.record_batches(), self.schema)

    def to_pandas(self) -> "pd.DataFrame":
        """All rows as a pandas frame: `time` as datetimes, integers that may be null as pandas' own nullable ones.

        Nanoseconds stay integers: a float cannot hold those of an epoch.
        """
        import pandas as pd

        whole: dict[pa.DataType, Any] = {
            pa.int8(): pd.Int8Dtype(), pa.int16(): pd.Int16Dtype(), pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(),
        }  # fmt: skip
        frame: pd.DataFrame = self.to_arrow().to_pandas(types_mapper=whole.get)
        return frame.astype(
            {column.name: column.type for column in self.columns if not column.nullable and column.type.startswith("int")}
        )
