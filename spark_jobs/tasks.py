"""The work of Spark's tasks: partition a range into shards, build rows of a shard.

In: indexes of tasks, and chunks, as record batches. Out: record batches. Law: nothing here imports Spark; a task that is run
again, on any machine, gives the same result.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from kcap.distributed.chunks import ShardPackets, unpack
from kcap.distributed.partitioner import PACKETS, FlowSet, Partitioner, PartitionTask, without_flows
from kcap.distributed.shard_reader import PlacedPackets, ShardContext, ShardReader
from kcap.distributed.stitching import RangePosition
from kcap.facts.merge import Facts, FactsRecorder, tracker_of
from kcap.facts.tracker import MetadataTracker
from kcap.weird import WeirdKind
from spark_jobs.files import Files
from spark_jobs.segments import bytes_of, numbers_of
from spark_jobs.table_rows import Maker
from spark_jobs.task_storage import REDUCED, STORED, TaskStorage, load, single_row

SUMMARY: Final = -1
"""Value of `shard` for the summary of a range."""
LOCAL: Final = -2
"""Value of `shard` for the connections that are in a single range."""
CHUNK: Final[dict[str, pa.DataType]] = {**STORED, "columns": pa.int64(), "carried": pa.int64()}
"""Columns for a chunk: its compressed columns followed by the captured bytes of its packets. `columns` and `carried` are the
sizes of both; `carried` is null if the packets are read from the files."""
CODEC: Final = "zstd"
PARTITIONED: Final = pa.schema({"unit": pa.int32(), "shard": pa.int32(), "latest": pa.int64(), "number": pa.int64(), **CHUNK})
"""Chunks of shards, and summaries of ranges."""


@dataclass(frozen=True, slots=True)
class PartitionRanges:
    """Partitions ranges: the tasks of one round."""

    paths: Sequence[str]
    tasks: Sequence[PartitionTask]
    folder: str | None = None
    """Folder for chunks without packet bytes, if all tasks run on this machine. Chunks with packet bytes go through Spark: this
    takes more copies, but Spark releases them before the session ends."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Returns chunks and summaries of the tasks with these indexes."""
        files = Files(self.paths)
        for number in numbers_of(batches):
            yield from partition_range(files, self.tasks[number], self.folder)


def partition_range(files: Files, task: PartitionTask, folder: str | None = None) -> Iterator[pa.RecordBatch]:
    """Partitions one range.

    Raises CaptureError if the file cannot be read.
    """
    part = task.part
    read, truncated = bytes_of(files, task)
    partitioner = Partitioner(task, read)
    with TaskStorage(None if task.carries == PACKETS else folder) as storage:
        for shard, chunk in partitioner.chunks():
            latest, number = (int(chunk.column(name)[0]) for name in ("latest", "number"))
            columns, carried = chunk.pack(), None if chunk.data is None else len(chunk.data)
            stored = storage.store(pa.compress(columns, CODEC), chunk.data or b"") | {
                "columns": len(columns),
                "carried": carried,
            }
            yield single_row(PARTITIONED, unit=part.unit, shard=shard, latest=latest, number=number, **stored)
    summary = partitioner.summary
    for detail, position in truncated:
        summary.facts.complete = False
        partitioner.scan.report(WeirdKind.COMPRESSED_TRUNCATED, detail, part.file, 0, position)
    yield single_row(PARTITIONED, unit=part.unit, shard=SUMMARY, latest=0, number=0, stored=pickle.dumps(summary))


@dataclass(frozen=True, slots=True)
class Reduce:
    """Builds rows of shards."""

    paths: Sequence[str]
    context: ShardContext
    maker: Maker
    facts: Facts | None = None
    """The facts of the whole capture, if they are needed before rows are built."""
    folder: str | None = None
    """Folder for rows, if all tasks run on this machine; otherwise they go through Spark."""
    unstripped: FlowSet = field(default_factory=FlowSet)
    """Flows whose stripped segments are skipped, since their packets come unstripped."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Returns the rows and then the facts of a shard from its chunks in order, with the positions of their ranges."""
        files = Files(self.paths)
        rows = placed_chunks(batches, self.unstripped)
        first = next(rows, None)
        if first is not None:
            yield from self.rows(first[0], ShardReader(self.context, first[0], prepended(first[1], rows), files.read_at))

    def rows(self, shard: int, reader: ShardReader) -> Iterator[pa.RecordBatch]:
        """The rows of a shard, then its facts and the flows to be re-read unstripped."""
        report = reader.analyzer.report
        tracker = (
            MetadataTracker(report, reader.message, partial=True)
            if self.facts is None
            else tracker_of(self.facts, report, reader.message)
        )
        recorder = FactsRecorder(tracker)
        with TaskStorage(self.folder) as storage:
            for table, made in self.maker.share(reader, tracker, recorder):
                yield from storage.store_rows(shard, table, made)
        reader.blanked_reads.read_logs(tracker.logs)
        yield single_row(REDUCED, shard=shard, facts=pickle.dumps((recorder.close(), reader.blanked_reads.flows)))


@dataclass(frozen=True, slots=True)
class ReduceLocal:
    """Builds rows of the connections that are in a single range, in the task that reads the range."""

    reduce: Reduce
    tasks: Sequence[tuple[PartitionTask, RangePosition]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Returns the rows and then the facts of the ranges with these indexes."""
        files, context = Files(self.reduce.paths), replace(self.reduce.context, shards=1)
        for number in numbers_of(batches):
            task, range_position = self.tasks[number]
            chunks = Partitioner(task, bytes_of(files, task)[0]).chunks()
            yield from self.reduce.rows(
                LOCAL, ShardReader(context, LOCAL, ((chunk, range_position) for _, chunk in chunks), files.read_at)
            )


def placed_chunks(batches: Iterable[pa.RecordBatch], unstripped: FlowSet) -> Iterator[tuple[int, PlacedPackets]]:
    """Shards and chunks from Spark rows, without stripped segments of some flows."""
    for batch in batches:
        for at in range(batch.num_rows):
            row: dict[str, Any] = batch.slice(at, 1).to_pylist()[0]
            chunk = without_flows(chunk_of(row), unstripped)
            if chunk is not None:
                yield row["shard"], (chunk, RangePosition(row["packets"], row["before"]))


def chunk_of(row: dict[str, Any]) -> ShardPackets:
    stored, carried = load(row), row["carried"]
    behind = len(stored) - (carried or 0)
    columns: bytes = pa.decompress(stored[:behind], row["columns"], CODEC, asbytes=True)
    return unpack(columns, None if carried is None else stored[behind:])


def prepended(first: PlacedPackets, others: Iterator[tuple[int, PlacedPackets]]) -> Iterator[PlacedPackets]:
    """An iterator over `first` and then the chunks of `others`."""
    yield first
    for _, one in others:
        yield one
