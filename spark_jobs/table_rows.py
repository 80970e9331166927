"""The tables that Spark's tasks build of shards, with kcap's own builders and additions that only Spark needs.

In: a shard being read; rows of shards and a tracker of all facts. Out: record batches. Law: the rows of a shard depend only on
its connections; completing them depends on each row and the facts.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import pyarrow as pa

from kcap.analyzer import ClosedConnection
from kcap.distributed.shard_reader import ShardReader
from kcap.facts.merge import FactsRecorder
from kcap.facts.negotiations import Negotiation
from kcap.facts.tracker import EVERY_FACT, NO_FACT, MetadataTracker
from kcap.filter.ast import Filter, is_deep
from kcap.limits import NEGOTIATIONS_AT_ONCE
from kcap.reports.versions.merge import detached
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.table.builder import TableSet
from kcap.table.row_filter import RowFilter
from kcap.table.schema import choose
from kcap.table.side_tables import batch_of, negotiation_row
from kcap.table.table_builders import (
    BUILDERS,
    Batches,
    ConnectionsBuilder,
    ExchangesBuilder,
    NegotiationsBuilder,
    TableBuilder,
    TableRequest,
)

TURN: Final = ("turn", "rank", "packet")
"""Columns added to `connections`: the order of first packets, which determines the numbers of connections."""
NUMBER: Final = "number"
"""Column of `connections` that only the whole capture can provide."""
LEARNING: Final = ("broker_id", "topics", "version_verdict")
"""Columns of `exchanges` that need all facts of the whole capture."""


PROFILES: Final = "profiles"
"""Name of the rows with connection profiles, one per shard."""
PROFILE_SCHEMA: Final = pa.schema([pa.field("profiles", pa.binary())])


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """A request for connection profiles."""

    only: Filter | None = None
    """A filter; exchanges that it does not select still give facts, but do not count."""

    def begin(self, portion: ShardReader, tracker: MetadataTracker) -> ConnectionProfiles:
        """Empty profiles for a shard, which receive its batches."""
        portion.keep_connections = True
        row_filter = None if self.only is None else RowFilter(self.only, portion)
        if row_filter is not None and row_filter.deep:
            portion.keep_bodies()
        return ConnectionProfiles(tracker, row_filter)


def profile_row(profiles: ConnectionProfiles) -> pa.RecordBatch:
    """One row with all profiles of a shard."""
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(detached(profiles))], pa.binary())], schema=PROFILE_SCHEMA)


class Maker(Protocol):
    """Builds rows of a shard."""

    @property
    def looks_inside(self) -> bool:
        """Whether it reads record batches beyond their headers."""

    def share(
        self, portion: ShardReader, learner: MetadataTracker, witness: FactsRecorder
    ) -> "Iterator[tuple[str, pa.RecordBatch]]":
        """The rows of a shard, each batch with the name of its table."""


class ShardConnections(ConnectionsBuilder):
    """Builds `connections`, each with the order of its first packet."""

    def __init__(self, request: TableRequest) -> None:
        columns = [column for column in request.columns if column.name != NUMBER]
        super().__init__(replace(request, columns=columns))

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.request.schema, *(pa.field(name, pa.int64()) for name in TURN)])

    def close(self, closed: Sequence[ClosedConnection]) -> Batches:
        shard: Any = self.reading
        turns = [shard.turn(connection) for connection in closed]
        columns = [pa.array([turn[at] for turn in turns], pa.int64()) for at in range(len(TURN))]
        for made in super().close(closed):
            yield pa.RecordBatch.from_arrays([*made.columns, *columns], schema=self.schema)


class ShardNegotiations(NegotiationsBuilder):
    """Builds `negotiations` as pickled entries, until the offers of all brokers are known."""

    def rest(self) -> Batches:
        entries = self.entries()
        for at in range(0, len(entries), NEGOTIATIONS_AT_ONCE):
            packed = pickle.dumps(entries[at : at + NEGOTIATIONS_AT_ONCE])
            yield pa.RecordBatch.from_arrays([pa.array([packed], pa.binary())], names=["entries"])

    def finisher(self, tracker: MetadataTracker, *, better: bool = True) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        def finish(batch: pa.RecordBatch) -> pa.RecordBatch:
            packed: list[Any] = batch.column(0).to_pylist()
            entries: list[Negotiation] = [entry for some in packed for entry in pickle.loads(some)]  # noqa: S301 - what another task of this job wrote
            return batch_of("negotiations", self.request.columns, [negotiation_row(entry, tracker) for entry in entries])

        return finish


def all_weirds(request: TableRequest) -> TableBuilder:
    """A builder of `weirds` with all columns, from which those of several shards are combined."""
    return BUILDERS["weirds"](replace(request, columns=choose("weirds", None)))


SHARD_BUILDERS: Final[dict[str, Callable[[TableRequest], TableBuilder]]] = {
    **{name: BUILDERS[name] for name in ("exchanges", "partitions", "records", "tls_turns")},
    "connections": ShardConnections,
    "negotiations": ShardNegotiations,
    "weirds": all_weirds,
}
"""Tables whose rows are built from shards."""


@dataclass(frozen=True, slots=True)
class Together:
    """Tables that are built in one pass."""

    makers: Mapping[str, TableBuilder] = field(default_factory=dict)
    """`exchanges` last: a batch is freed while its rows are written."""
    learns: bool = False
    """Whether every fact is tracked, even if no table needs it."""
    profiles: ProfileRequest | None = None
    """Whether the connection profiles are built too, which the report `versions` needs."""

    @classmethod
    def of(cls, requests: Iterable[TableRequest]) -> "Together":
        """The tables among some that are built from shards."""
        makers = {one.table: SHARD_BUILDERS[one.table](one) for one in requests if one.table in SHARD_BUILDERS}
        names = sorted(makers, key="exchanges".__eq__)
        return cls({name: makers[name] for name in names}, any(name not in ("exchanges", "connections") for name in names))

    @property
    def looks_inside(self) -> bool:
        """Whether one of them reads record batches beyond their headers."""
        deep = self.profiles is not None and self.profiles.only is not None and is_deep(self.profiles.only)
        return deep or any(maker.bodies for maker in self.makers.values())

    @property
    def learns_all(self) -> bool:
        """Whether the facts of the whole capture are complete after the pass."""
        exchanges = self.makers.get("exchanges")
        made = {column.name for column in exchanges.made} if isinstance(exchanges, ExchangesBuilder) else set()
        return self.learns or made.issuperset(LEARNING)

    def share(
        self, portion: ShardReader, learner: MetadataTracker, witness: FactsRecorder
    ) -> "Iterator[tuple[str, pa.RecordBatch]]":
        """The rows of a shard, table by table for each batch."""
        found = self.profiles.begin(portion, learner) if self.profiles is not None else None
        tables = TableSet(self.makers, [] if found is None else [found], EVERY_FACT if self.learns else NO_FACT)
        tables.begin(portion, learner)
        for batch in portion.batches():
            yield from tables.take(batch)
            if len(batch):
                witness.observed(batch)
        yield from tables.rest()
        if found is not None:
            found.finish(portion)
            yield PROFILES, profile_row(found)


def finished(maker: TableBuilder, tracker: MetadataTracker) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    """Completes the rows of shards."""

    def finish(batches: Iterable[pa.RecordBatch]) -> Batches:
        complete = maker.finisher(tracker)
        for batch in batches:
            if batch.num_rows:
                yield complete(batch)

    return finish
