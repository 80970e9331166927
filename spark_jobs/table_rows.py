"""How the rows of each table are made: on a share as far as that knows them, then with what the whole capture told.

In: a share being read; rows of shares and a learner of all facts. Out: record batches. Law: what a share makes depends on its
connections alone; the second step is a matter of each row and the facts.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from kcap.analyzer import RowBatch
from kcap.columns import Column
from kcap.distributed.shard_reader import ShardReader
from kcap.facts.merge import FactsRecorder
from kcap.facts.negotiations import Negotiation, Negotiations
from kcap.facts.tracker import MetadataTracker
from kcap.model import CaptureFile
from kcap.net.packet_index import PacketIndex
from kcap.table import partitions, records
from kcap.table.backfill import VerdictCache, backfill, companions
from kcap.table.exchanges import Exchanges, ExchangeTable
from kcap.table.fact_tables import negotiation_row
from kcap.table.schema import arrow_schema, choose
from kcap.table.side_tables import FACT_COLUMNS, batch_of, connection_rows, weird_rows

if TYPE_CHECKING:
    from kcap.decode.message import Message
    from kcap.filter.ast import Filter
    from kcap.table.row_filter import Read, RowFilter

Batches = Iterator[pa.RecordBatch]
AT_ONCE: Final = 1024
"""Connections and negotiations in a batch."""
TURN: Final = ("turn", "rank", "packet")
"""Columns beside `connections`: when the first packet had its turn."""
NUMBER: Final = "number"
"""Column of `connections` that only the whole capture has."""

LEARNING: Final = ("broker_id", "topics", "version_verdict")
"""Columns of `exchanges` that take all that there is to learn."""


class Maker(Protocol):
    """Makes rows of a share."""

    @property
    def looks_inside(self) -> bool:
        """It takes more of record batches than their headers say."""

    def share(
        self, portion: ShardReader, learner: MetadataTracker, witness: FactsRecorder
    ) -> "Iterator[tuple[str, pa.RecordBatch]]":
        """The rows of a share, each batch with the name of its table."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for of a table."""

    table: str
    columns: Sequence[Column]
    only: "Filter | None" = None

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return [column.name for column in self.columns]

    @property
    def schema(self) -> pa.Schema:
        """As the table has it."""
        return arrow_schema(self.table, self.columns)

    def cutter(self) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        """Takes the columns that are asked for out of a batch."""
        names, schema = self.names, self.schema
        return lambda batch: pa.RecordBatch.from_arrays([batch.column(name) for name in names], schema=schema)


class Turns:
    """Rows of a table in the making, batch by batch; these are none."""

    __slots__ = ()

    def take(self, batch: RowBatch, rows: Exchanges) -> Batches:
        """The rows that a batch gives; `rows` are its exchanges, and what they teach is learned."""
        yield from ()

    def rest(self) -> Batches:
        """The rows that are left at the end."""
        yield from ()


class TableMaker:
    """Makes the rows of one table."""

    primed = False
    """It needs to know beforehand what the whole capture tells."""
    learns = True
    """What exchanges teach must be learned before its rows are made."""
    looks_inside = False
    """It takes more of record batches than their headers say."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted

    @property
    def schema(self) -> pa.Schema:
        """Of its rows, once they are finished."""
        return self.wanted.schema

    def begin(self, portion: ShardReader, learner: MetadataTracker) -> Turns:
        """Rows of a share."""
        raise NotImplementedError

    def finished(self, learner: MetadataTracker) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
        """What is done to them at last."""
        return iter


@dataclass(frozen=True, slots=True)
class Together:
    """Tables that are made in one reading."""

    makers: Mapping[str, TableMaker] = field(default_factory=dict)
    """`exchanges` last: nothing is left of a batch behind them."""
    learns: bool = False
    """What exchanges teach is learned, whether a table needs it or not."""

    @classmethod
    def of(cls, asked: Iterable[Wanted]) -> "Together":
        """Those of some tables that the shares make."""
        makers = {one.table: MAKERS[one.table](one) for one in asked if one.table in MAKERS}
        names = sorted(makers, key="exchanges".__eq__)
        return cls({name: makers[name] for name in names}, any(maker.learns for maker in makers.values()))

    @property
    def looks_inside(self) -> bool:
        """One of them looks into record batches."""
        return any(maker.looks_inside for maker in self.makers.values())

    @property
    def learns_all(self) -> bool:
        """All that the capture tells is known when it was read."""
        return self.learns or any(isinstance(maker, ExchangeRows) and maker.whole for maker in self.makers.values())

    def share(
        self, portion: ShardReader, learner: MetadataTracker, witness: FactsRecorder
    ) -> "Iterator[tuple[str, pa.RecordBatch]]":
        """The rows of a share, table by table for each batch."""
        turns = {name: maker.begin(portion, learner) for name, maker in self.makers.items()}
        own = turns.get("exchanges")
        table = own.table if isinstance(own, ExchangeTurns) else ExchangeTable((), portion.capture_files, learner)
        for batch in portion.batches():
            if not len(batch):
                continue
            rows = table.learn(batch) if self.learns else table.begin(batch)
            if self.learns:
                learner.judge.judged(rows)
            for name, turn in turns.items():
                for made in turn.take(batch, rows):
                    yield name, made
            witness.saw(batch)
            table.let_go(rows)
        for name, turn in turns.items():
            for made in turn.rest():
                yield name, made


class Nobody:
    """A reading that has not begun: what a filter needs can be asked before."""

    capture_files: Sequence[CaptureFile] = ()

    def __init__(self) -> None:
        self.noted: list[PacketIndex] = []

    def message(self, batch: RowBatch, at: int, side: str) -> "Message | None":
        """Nothing."""


def sieve_of(tree: "Filter", reading: "Read | None" = None) -> "RowFilter":
    """What lets rows pass; the parts of a filter take packages that rows without one do not need."""
    from kcap.table.row_filter import RowFilter

    return RowFilter(tree, reading)


class ExchangeRows(TableMaker):
    """`exchanges`."""

    learns = False

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted)
        sieve = None if wanted.only is None else sieve_of(wanted.only, Nobody())
        asks = sieve is not None and (sieve.deep or sieve.noted is not None)
        self.looks_inside = sieve is not None and sieve.deep
        self.primed = sieve is not None and asks and sieve.late
        self.early = sieve is not None and (asks or not sieve.late)
        beside = wanted.columns if sieve is None else sieve.beside(wanted.columns)
        self.made = companions(beside)
        self.whole = {column.name for column in self.made}.issuperset(LEARNING)

    def begin(self, portion: ShardReader, learner: MetadataTracker) -> Turns:
        return ExchangeTurns(self, portion, learner)

    def finished(self, learner: MetadataTracker) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
        wanted, late = self.wanted, not self.early

        def finish(batches: Iterable[pa.RecordBatch]) -> Batches:
            sieve, judged = sieve_of(wanted.only) if wanted.only is not None and late else None, VerdictCache()
            cut = wanted.cutter()
            for batch in batches:
                if batch.num_rows:
                    made = backfill(batch, learner, judged)
                    yield cut(made if sieve is None else sieve.passed(made))

        return finish


class ExchangeTurns(Turns):
    """Exchanges, and which of them pass as far as a share knows."""

    def __init__(self, maker: ExchangeRows, portion: ShardReader, learner: MetadataTracker) -> None:
        self.table = ExchangeTable(maker.made, portion.capture_files, learner)
        only = maker.wanted.only
        self._sieve = sieve_of(only, portion) if maker.early and only is not None else None
        if self._sieve is not None and self._sieve.deep:
            portion.keep_bodies()

    def take(self, batch: RowBatch, rows: Exchanges) -> Batches:
        made = self.table.made(rows)
        yield made if self._sieve is None else self._sieve.passed(made, batch)


PartTable = partitions.PartitionTable | records.RecordTable


class PartRows(TableMaker):
    """`partitions` and `records`: parts of exchanges, which may name a topic by an id alone."""

    looks_inside = True

    tables: Final[dict[str, Callable[..., PartTable]]] = {
        "partitions": partitions.PartitionTable, "records": records.RecordTable,
    }  # fmt: skip

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted)
        self.primed = wanted.only is not None and sieve_of(wanted.only).late
        names = wanted.names
        beside = ["topic_id"] if "topic" in names and "topic_id" not in names else []
        self.made = [*wanted.columns, *choose(wanted.table, beside or None)][: len(names) + len(beside)]

    def begin(self, portion: ShardReader, learner: MetadataTracker) -> Turns:
        sieve = None
        if self.wanted.only is not None:
            from kcap.table.row_filter import ExchangeFilter

            sieve = ExchangeFilter(sieve_of(self.wanted.only, portion), portion.capture_files, learner)
        reading: Any = portion
        return PartTurns(self.tables[self.wanted.table](reading, self.made, sieve))

    def finished(self, learner: MetadataTracker) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
        wanted, known = self.wanted, learner.topics.names

        def finish(batches: Iterable[pa.RecordBatch]) -> Batches:
            cut = wanted.cutter()
            for batch in batches:
                if not batch.num_rows:
                    continue
                place = batch.schema.get_field_index("topic")
                if place >= 0 and batch.column(place).null_count:
                    names, ids = (list[Any](batch.column(name).to_pylist()) for name in ("topic", "topic_id"))
                    told = [known.get(uuid) if name is None else name for name, uuid in zip(names, ids)]
                    batch = batch.set_column(place, batch.schema.field(place), pa.array(told, pa.string()))
                yield cut(batch)

        return finish


@dataclass(slots=True)
class PartTurns(Turns):
    """Parts of exchanges, as one process makes them."""

    table: PartTable

    def take(self, batch: RowBatch, rows: Exchanges) -> Batches:
        yield from self.table.turn(batch)


class ConnectionRows(TableMaker):
    """`connections`, with when each began, which gives them their numbers."""

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted)
        self.made = replace(wanted, columns=[column for column in wanted.columns if column.name != NUMBER])
        self.learns = any(name in FACT_COLUMNS for name in wanted.names)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.made.schema, *(pa.field(name, pa.int64()) for name in TURN)])

    def begin(self, portion: ShardReader, learner: MetadataTracker) -> Turns:
        portion.keep_connections = True
        return ConnectionTurns(self, portion, learner)


@dataclass(slots=True)
class ConnectionTurns(Turns):
    """Connections that are over; all exchanges of one were in a batch by then."""

    maker: ConnectionRows
    portion: ShardReader
    learner: MetadataTracker

    def take(self, batch: RowBatch, rows: Exchanges) -> Batches:
        if len(self.portion.connections) >= AT_ONCE:
            yield from self.rest()

    def rest(self) -> Batches:
        closed, self.portion.connections = self.portion.connections, []
        rows = connection_rows(closed, self.portion.capture_files, self.learner.known)
        made = batch_of("connections", self.maker.made.columns, rows)
        turns = [self.portion.turn(connection) for connection in closed]
        columns = [pa.array([turn[at] for turn in turns], pa.int64()) for at in range(len(TURN))]
        yield pa.RecordBatch.from_arrays([*made.columns, *columns], schema=self.maker.schema)


class WeirdRows(TableMaker):
    """`weirds`."""

    def __init__(self, _: Wanted) -> None:
        super().__init__(Wanted("weirds", choose("weirds", None)))

    def begin(self, portion: ShardReader, learner: MetadataTracker) -> Turns:
        return WeirdTurns(self.wanted, portion)


@dataclass(slots=True)
class WeirdTurns(Turns):
    """Oddities, told at the end."""

    wanted: Wanted
    portion: ShardReader

    def rest(self) -> Batches:
        yield batch_of("weirds", self.wanted.columns, weird_rows(self.portion.weirds, self.portion.capture_files))


class NegotiationRows(TableMaker):
    """`negotiations`: what a connection used, until it is known what its broker offers."""

    def begin(self, portion: ShardReader, learner: MetadataTracker) -> Turns:
        return NegotiationTurns(learner)

    def finished(self, learner: MetadataTracker) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
        columns = self.wanted.columns

        def finish(batches: Iterable[pa.RecordBatch]) -> Batches:
            for batch in batches:
                every: list[Any] = batch.column(0).to_pylist()
                for packed in every:
                    entries: list[Negotiation] = pickle.loads(packed)  # noqa: S301 - what another task of this job wrote
                    yield batch_of("negotiations", columns, [negotiation_row(entry, learner) for entry in entries])

        return finish


class NegotiationTurns(Turns):
    """What connections used, told at the end."""

    def __init__(self, learner: MetadataTracker) -> None:
        self._learner = learner
        self._negotiations = Negotiations()

    def take(self, batch: RowBatch, rows: Exchanges) -> Batches:
        self._negotiations.take(rows, self._learner)
        yield from ()

    def rest(self) -> Batches:
        entries = list(self._negotiations.entries.values())
        for at in range(0, len(entries), AT_ONCE):
            packed = pickle.dumps(entries[at : at + AT_ONCE])
            yield pa.RecordBatch.from_arrays([pa.array([packed], pa.binary())], names=["entries"])


MAKERS: Final[dict[str, Callable[[Wanted], TableMaker]]] = {
    "exchanges": ExchangeRows,
    "partitions": PartRows,
    "records": PartRows,
    "connections": ConnectionRows,
    "weirds": WeirdRows,
    "negotiations": NegotiationRows,
}
"""Tables whose rows the shares make."""
