"""How the rows of each table are made: on a share as far as that knows them, then with what the whole capture told.

In: a share being read; rows of shares and a learner of all facts. Out: record batches. Law: what a share makes depends on its
connections alone; the second step is a matter of each row and the facts.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from kcap.analyzer import RowBatch
from kcap.columns import Column
from kcap.model import CaptureFile
from kcap.net.noted import Noted
from kcap.portion import Portion
from kcap.table import partitions, records
from kcap.table.exchanges import Exchanges, ExchangeTable, Names
from kcap.table.facts import negotiation_row
from kcap.table.learned import Learner
from kcap.table.merging import Witness
from kcap.table.negotiations import Negotiation, Negotiations
from kcap.table.schema import arrow_schema, choose
from kcap.table.tables import TOLD, batch_of, connection_rows, weird_rows
from kcap.table.whole import companions, learned_again

if TYPE_CHECKING:
    from kcap.decode.message import Message
    from kcap.filter.nodes import Filter
    from kcap.table.sieve import Read, Sieve

Batches = Iterator[pa.RecordBatch]
AT_ONCE: Final = 1024
"""Connections and negotiations in a batch."""
TURN: Final = ("turn", "rank", "packet")
"""Columns beside `connections`: when the first packet had its turn."""


LEARNING: Final = ("broker_id", "topics", "version_verdict")
"""Columns of `exchanges` that take all that there is to learn."""


class Maker(Protocol):
    """Makes rows of a share, and looks at them again."""

    @property
    def schema(self) -> pa.Schema:
        """Of the rows of a share."""

    def share(self, portion: Portion, learner: Learner, witness: Witness) -> Batches:
        """The rows of a share."""

    def finished(self, learner: Learner) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
        """What is done to them at last."""


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

    def cut(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that are asked for."""
        return pa.RecordBatch.from_arrays([batch.column(name) for name in self.names], schema=self.schema)


class Nobody:
    """A reading that has not begun: what a filter needs can be asked before."""

    capture_files: Sequence[CaptureFile] = ()

    def __init__(self) -> None:
        self.noted: list[Noted] = []

    def message(self, batch: RowBatch, at: int, side: str) -> "Message | None":
        """Nothing."""


def sieve_of(tree: "Filter", reading: "Read | None" = None) -> "Sieve":
    """What lets rows pass; the parts of a filter take packages that rows without one do not need."""
    from kcap.table.sieve import Sieve

    return Sieve(tree, reading)


class ExchangeRows:
    """`exchanges`."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        sieve = None if wanted.only is None else sieve_of(wanted.only, Nobody())
        asks = sieve is not None and (sieve.deep or sieve.noted is not None)
        self.primed = sieve is not None and asks and sieve.late
        self._early = sieve is not None and (asks or not sieve.late)
        beside = wanted.columns if sieve is None else sieve.beside(wanted.columns)
        self._made = companions(beside)
        self.learns_all = {column.name for column in self._made}.issuperset(LEARNING)

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema("exchanges", self._made)

    def share(self, portion: Portion, learner: Learner, witness: Witness) -> Batches:
        table = ExchangeTable(self._made, portion.capture_files, learner)
        sieve = sieve_of(self.wanted.only, portion) if self._early and self.wanted.only is not None else None
        if sieve is not None and sieve.deep:
            portion.keep_bodies()
        for batch in portion.batches():
            if not len(batch):
                continue
            made = table.turn(batch)
            witness.saw(batch)
            yield made if sieve is None else sieve.passed(made, batch)

    def finished(self, learner: Learner) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
        wanted, late = self.wanted, not self._early

        def finish(batches: Iterable[pa.RecordBatch]) -> Batches:
            sieve = sieve_of(wanted.only) if wanted.only is not None and late else None
            for batch in batches:
                if batch.num_rows:
                    made = learned_again(batch, learner)
                    yield wanted.cut(made if sieve is None else sieve.passed(made))

        return finish


class Watched:
    """A share whose batches a learner sees first."""

    def __init__(self, portion: Portion, learner: Learner, witness: Witness) -> None:
        self._portion = portion
        self._witness = witness
        self._table = ExchangeTable(choose("exchanges", LEARNING), portion.capture_files, learner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._portion, name)

    def batches(self) -> Iterator[RowBatch]:
        """The batches."""
        for batch in self._portion.batches():
            if len(batch):
                self._table.turn(batch)
                self._witness.saw(batch)
            yield batch


class PartRows:
    """`partitions` and `records`: parts of exchanges, which may name a topic by an id alone."""

    learns_all = True
    makers: Final = {"partitions": partitions.record_batches, "records": records.record_batches}

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.primed = wanted.only is not None and sieve_of(wanted.only).late
        names = wanted.names
        beside = ["topic_id"] if "topic" in names and "topic_id" not in names else []
        self._made = [*wanted.columns, *choose(wanted.table, beside or None)][: len(names) + len(beside)]

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self.wanted.table, self._made)

    def share(self, portion: Portion, learner: Learner, witness: Witness) -> Batches:
        seen: Any = Watched(portion, learner, witness)
        sieve = None
        if self.wanted.only is not None:
            from kcap.table.sieve import ExchangeSieve

            sieve = ExchangeSieve(sieve_of(self.wanted.only, portion), portion.capture_files, learner)
        yield from self.makers[self.wanted.table](seen, self._made, sieve)

    def finished(self, learner: Learner) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
        wanted, known = self.wanted, learner.topics.names

        def finish(batches: Iterable[pa.RecordBatch]) -> Batches:
            for batch in batches:
                if not batch.num_rows:
                    continue
                place = batch.schema.get_field_index("topic")
                if place >= 0 and batch.column(place).null_count:
                    names, ids = (list[Any](batch.column(name).to_pylist()) for name in ("topic", "topic_id"))
                    told = [known.get(uuid) if name is None else name for name, uuid in zip(names, ids)]
                    batch = batch.set_column(place, batch.schema.field(place), pa.array(told, pa.string()))
                yield wanted.cut(batch)

        return finish


class ConnectionRows:
    """`connections`, with when each began, which gives them their numbers."""

    primed = learns_all = False

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.wanted.schema, *(pa.field(name, pa.int64()) for name in TURN)])

    def share(self, portion: Portion, learner: Learner, witness: Witness) -> Batches:
        portion.keep_connections = True
        told = any(name in TOLD for name in self.wanted.names)
        reading: Any = Watched(portion, learner, witness) if told else portion
        for _ in reading.batches():
            if len(portion.connections) >= AT_ONCE:
                yield self._made(portion, learner)
        yield self._made(portion, learner)

    def _made(self, portion: Portion, learner: Learner) -> pa.RecordBatch:
        closed, portion.connections = portion.connections, []
        rows = batch_of("connections", self.wanted.columns, connection_rows(closed, portion.capture_files, learner.known))
        turns = [portion.turn(connection) for connection in closed]
        columns = [pa.array([turn[at] for turn in turns], pa.int64()) for at in range(len(TURN))]
        return pa.RecordBatch.from_arrays([*rows.columns, *columns], schema=self.schema)

    def finished(self, learner: Learner) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
        return iter


class WeirdRows:
    """`weirds`."""

    primed = learns_all = False

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted

    @property
    def schema(self) -> pa.Schema:
        return self.wanted.schema

    def share(self, portion: Portion, learner: Learner, witness: Witness) -> Batches:
        for _ in Watched(portion, learner, witness).batches():
            pass
        yield batch_of("weirds", self.wanted.columns, weird_rows(portion.weirds, portion.capture_files))

    def finished(self, learner: Learner) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
        return iter


class NegotiationRows:
    """`negotiations`: what a connection used, until it is known what its broker offers."""

    primed = learns_all = False
    schema = pa.schema([pa.field("entries", pa.binary())])

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted

    def share(self, portion: Portion, learner: Learner, witness: Witness) -> Batches:
        negotiations, nothing = Negotiations(), Names([])
        for batch in portion.batches():
            if not len(batch):
                continue
            rows = Exchanges(batch, nothing, learner)
            learner.take_names(portion.capture_files)
            rows.told  # noqa: B018 - what servers tell is learned
            learner.take_topics(rows)
            negotiations.take(rows, learner)
            witness.saw(batch)
        entries = list(negotiations.entries.values())
        for at in range(0, len(entries), AT_ONCE):
            packed = pickle.dumps(entries[at : at + AT_ONCE])
            yield pa.RecordBatch.from_arrays([pa.array([packed], pa.binary())], schema=self.schema)

    def finished(self, learner: Learner) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
        columns = self.wanted.columns

        def finish(batches: Iterable[pa.RecordBatch]) -> Batches:
            for batch in batches:
                every: list[Any] = batch.column(0).to_pylist()
                for packed in every:
                    entries: list[Negotiation] = pickle.loads(packed)  # noqa: S301 - what another task of this job wrote
                    yield batch_of("negotiations", columns, [negotiation_row(entry, learner) for entry in entries])

        return finish


class NoRows:
    """Facts alone."""

    primed = learns_all = False
    schema = pa.schema([pa.field("nothing", pa.int8())])

    def share(self, portion: Portion, learner: Learner, witness: Witness) -> Batches:
        for _ in Watched(portion, learner, witness).batches():
            pass
        yield from ()

    def finished(self, learner: Learner) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
        return iter


MAKERS: Final[dict[str, Callable[[Wanted], Any]]] = {
    "exchanges": ExchangeRows,
    "partitions": PartRows,
    "records": PartRows,
    "connections": ConnectionRows,
    "weirds": WeirdRows,
    "negotiations": NegotiationRows,
}
"""Tables whose rows the shares make."""
