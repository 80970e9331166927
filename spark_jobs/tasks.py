"""What Spark's tasks do: a range dealt out to shares, a share read into rows.

In: numbers of tasks, and chunks, as record batches. Out: record batches. Law: nothing here knows of Spark; a task that is run
again, anywhere, gives the same.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from kcap.distributed.packet_columns import ShardPackets, unpack
from kcap.distributed.partitioner import PACKETS, FlowSet, Partitioner, PartitionTask, without
from kcap.distributed.shard_reader import PlacedPackets, ShardContext, ShardReader
from kcap.distributed.stitching import RangePosition
from kcap.facts.merge import Facts, FactsRecorder, tracker_of
from kcap.facts.tracker import MetadataTracker
from kcap.weird import WeirdKind
from spark_jobs.files import Files
from spark_jobs.segments import bytes_of, numbers_of
from spark_jobs.table_rows import Maker
from spark_jobs.task_storage import KEPT, REDUCED, TaskStorage, a_row, again

ACCOUNT: Final = -1
"""In place of a share: the row is the account of a range."""
HERE: Final = -2
"""In place of a share: what lies in one range."""
CHUNK: Final[dict[str, pa.DataType]] = {**KEPT, "columns": pa.int64(), "carried": pa.int64()}
"""Columns for a chunk: its own columns compressed, behind them what its packets carry, and the bytes of both; null where what
they carry stayed in the files."""
CODEC: Final = "zstd"
DEALT: Final = pa.schema({"unit": pa.int32(), "share": pa.int32(), "latest": pa.int64(), "number": pa.int64(), **CHUNK})
"""Chunks on their way to the shares, and the accounts of ranges."""


@dataclass(frozen=True, slots=True)
class Deal:
    """The tasks of one round, by number."""

    paths: Sequence[str]
    tasks: Sequence[PartitionTask]
    folder: str | None = None
    """Where chunks are kept that are small, if all tasks run on this machine; those with whole packets go through Spark, which
    takes some copies more, and lets go of them before the session ends."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Numbers of tasks in, chunks and accounts out."""
        files = Files(self.paths)
        for number in numbers_of(batches):
            yield from deal(files, self.tasks[number], self.folder)


def deal(files: Files, task: PartitionTask, folder: str | None = None) -> Iterator[pa.RecordBatch]:
    """One range.

    Raises CaptureError where the file cannot be read.
    """
    part = task.part
    read, truncated = bytes_of(files, task)
    dealing = Partitioner(task, read)
    with TaskStorage(None if task.carries == PACKETS else folder) as keeper:
        for share, chunk in dealing.chunks():
            latest, number = (int(chunk.column(name)[0]) for name in ("latest", "number"))
            columns, carried = chunk.pack(), None if chunk.data is None else len(chunk.data)
            kept = keeper.keep(pa.compress(columns, CODEC), chunk.data or b"") | {"columns": len(columns), "carried": carried}
            yield a_row(DEALT, unit=part.unit, share=share, latest=latest, number=number, **kept)
    account = dealing.account
    for detail, position in truncated:
        account.facts.complete = False
        dealing.walk.report(WeirdKind.COMPRESSED_TRUNCATED, detail, part.file, 0, position)
    yield a_row(DEALT, unit=part.unit, share=ACCOUNT, latest=0, number=0, kept=pickle.dumps(account))


@dataclass(frozen=True, slots=True)
class Reduce:
    """Makes rows of connections."""

    paths: Sequence[str]
    whole: ShardContext
    maker: Maker
    known: Facts | None = None
    """What the capture told, where that is known before."""
    folder: str | None = None
    """Where rows are kept, if all tasks run on this machine; else they go through Spark."""
    doubted: FlowSet = field(default_factory=FlowSet)
    """Flows of which stripped segments are not taken: their packets come as they are."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Chunks of a share in order, with how their ranges stand; out rows, and at last what was learned."""
        files = Files(self.paths)
        rows = standing(batches, self.doubted)
        first = next(rows, None)
        if first is not None:
            yield from self.rows(first[0], ShardReader(self.whole, first[0], in_front(first[1], rows), files.read_at))

    def rows(self, share: int, portion: ShardReader) -> Iterator[pa.RecordBatch]:
        """Some connections; out rows, and at last what was learned, and of which flows blanked bytes were looked at."""
        tell = portion.analyzer.report
        learner = (
            MetadataTracker(tell, portion.message) if self.known is None else tracker_of(self.known, tell, portion.message)
        )
        witness = FactsRecorder(learner)
        with TaskStorage(self.folder) as keeper:
            for table, made in self.maker.share(portion, learner, witness):
                yield from keeper.keep_rows(share, table, made)
        portion.doubts.read_logs(learner.logs)
        yield a_row(REDUCED, share=share, facts=pickle.dumps((witness.close(), portion.doubts.flows)))


@dataclass(frozen=True, slots=True)
class ReduceHere:
    """Makes rows of the connections that lie in one range, where that is read."""

    reduce: Reduce
    tasks: Sequence[tuple[PartitionTask, RangePosition]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Numbers of ranges in; out rows, and what was learned in each range."""
        files, whole = Files(self.reduce.paths), replace(self.reduce.whole, shares=1)
        for number in numbers_of(batches):
            task, stand = self.tasks[number]
            chunks = Partitioner(task, bytes_of(files, task)[0]).chunks()
            yield from self.reduce.rows(HERE, ShardReader(whole, HERE, ((chunk, stand) for _, chunk in chunks), files.read_at))


def standing(batches: Iterable[pa.RecordBatch], doubted: FlowSet) -> Iterator[tuple[int, PlacedPackets]]:
    """Shares and chunks of rows, without stripped segments of some flows."""
    for batch in batches:
        for at in range(batch.num_rows):
            row: dict[str, Any] = batch.slice(at, 1).to_pylist()[0]
            chunk = without(chunk_of(row), doubted)
            if chunk is not None:
                yield row["share"], (chunk, RangePosition(row["packets"], row["before"]))


def chunk_of(row: dict[str, Any]) -> ShardPackets:
    """The chunk of a row of DEALT."""
    kept, carried = again(row), row["carried"]
    behind = len(kept) - (carried or 0)
    columns: bytes = pa.decompress(kept[:behind], row["columns"], CODEC, asbytes=True)
    return unpack(columns, None if carried is None else kept[behind:])


def in_front(first: PlacedPackets, others: Iterator[tuple[int, PlacedPackets]]) -> Iterator[PlacedPackets]:
    """One more, and the others."""
    yield first
    for _, one in others:
        yield one
