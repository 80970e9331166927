"""Scans a capture with Spark: cuts files into ranges, partitions the ranges by flow into shards, builds rows of the shards.

In: a Spark session and paths. Out: data frames. Law: rows equal those of `kcap rows -o`, whatever the ranges and the shards
are; a range that does not begin where the previous one ended is read again from there. The stages are those of
`kcap.distributed`; this module runs them as Spark tasks.
"""

import os
import pickle
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap.analyzer import Options
from kcap.capture.paths import unique_names
from kcap.capture.sections import sections_of
from kcap.distributed.chunks import ranks_of
from kcap.distributed.partitioner import (
    PACKETS,
    REFERENCES,
    STRIPPED,
    FlowSet,
    PartitionTask,
    flows_in_several_ranges,
    newly_seen_flows,
)
from kcap.distributed.ranges import ByteRange, RangeSummary
from kcap.distributed.shard_reader import ShardContext
from kcap.distributed.stitching import (
    PlannedFile,
    RangeNumbers,
    RangePosition,
    StitchedCapture,
    next_unverified,
    plan,
    recognise,
    stitch,
)
from kcap.errors import CaptureError
from kcap.facts.merge import Facts, merged
from kcap.limits import JIT_SOON_BYTES, LARGE_BYTES, SHARD_BYTES, SPLIT_BYTES, TASK_BATCH_BYTES, TASK_BYTES
from kcap.model import CaptureFile
from kcap.tls.secrets import Secrets
from spark_jobs.files import Files, found, is_remote
from spark_jobs.segments import SEGMENTS, Segments, VerifiedRange
from spark_jobs.spark_session import ENCRYPTION
from spark_jobs.table_rows import Maker
from spark_jobs.task_storage import REDUCED, unpacked
from spark_jobs.tasks import CHUNK, PARTITIONED, SUMMARY, PartitionRanges, Reduce, ReduceLocal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BYTES_AT_ONCE: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
"""Setting that limits the bytes of a batch for a Python worker. By default Spark limits only the number of rows, and a row with
a chunk has megabytes."""
NO_BOUND: Final = (1 << 31) - 1
NUMBERS: Final = count()
CHUNKS: Final = "packets"
ROWS: Final = "rows"
"""Folders in which tasks store chunks and rows."""
COMPRESSED: Final = "spark.sql.inMemoryColumnarStorage.compressed"
CACHED_ROWS: Final = "spark.sql.inMemoryColumnarStorage.batchSize"


@dataclass(frozen=True, slots=True)
class ShardFacts:
    """The facts that the reader of one shard found."""

    shard: int
    facts: Facts
    flows: bytes
    """Numbers of the flows to be re-read unstripped (`kcap.distributed.shard_reader.BlankedReadTracker`)."""


@dataclass(slots=True)
class Scan:
    """A capture whose ranges are stitched and partitioned into shards."""

    spark: "SparkSession"
    files: list[CaptureFile]
    failed: list[tuple[str, CaptureError]]
    """Files that are not captures, with the reasons."""
    stitched: StitchedCapture
    rounds: "PartitionRounds"
    partitioned: "DataFrame"
    shards: int
    options: Options = field(default_factory=Options)
    retained: "list[DataFrame]" = field(default_factory=list)
    """Persisted rows, until `close`."""
    unstripped: FlowSet = field(default_factory=FlowSet)
    """Flows that were partitioned again with unstripped packets."""
    verified: list[VerifiedRange] = field(default_factory=list)
    """All ranges, verified."""
    folder: str | None = None
    """Folder in which tasks store chunks and rows, if all tasks run on this machine."""
    local: list[tuple[PartitionTask, RangePosition]] = field(default_factory=list)
    """Ranges with connections that are in no other range; one task reads and analyzes them."""

    @property
    def readable(self) -> list[CaptureFile]:
        """The files that are captures."""
        failed = {path for path, _ in self.failed}
        return [file for file in self.files if file.path not in failed]

    @property
    def rows_folder(self) -> str | None:
        """Folder of stored rows."""
        return None if self.folder is None else os.path.join(self.folder, ROWS)

    @property
    def shard_context(self) -> ShardContext:
        """The facts of the capture that the reader of each shard needs."""
        layouts = {
            file: sections_of(context.section(position) for position, context in contexts)
            for file, contexts in self.stitched.contexts.items()
        }
        large = sum(file.size or 0 for file in self.files) >= LARGE_BYTES
        by_hosts = self.rounds.by_hosts
        return ShardContext(self.files, self.shards, self.stitched.last_ns, large, layouts, self.options, by_hosts)

    def reduced(self, maker: Maker, facts: Facts | None = None) -> "tuple[DataFrame, Facts]":
        """Rows of the shards, in packed batches with the name of their table, and the facts of all shards.

        Shards in which blanked bytes influenced a decision are read again, with unstripped packets of these flows.
        """
        stripped_away = maker.looks_inside and self.rounds.strips
        partitioned = self.rounds.unstripped_chunks(self.stitched) if stripped_away else self.partitioned
        reduce = Reduce([file.path for file in self.files], self.shard_context, maker, facts, self.rows_folder, self.unstripped)
        made = in_arrow(partitioned, reduce, REDUCED)
        if self.local:
            numbers = tasks_of(self.spark, [task.part for task, _ in self.local], self.files)
            made = made.unionAll(in_arrow(numbers, ReduceLocal(reduce, self.local), REDUCED))
        rows, shard_facts = self._made(made)
        while any(one.flows for one in shard_facts):
            again = [one.shard for one in shard_facts if one.flows]
            self._reread_unstripped([one.flows for one in shard_facts])
            some = in_arrow(
                self.partitioned.where(self.partitioned.shard.isin(again)), replace(reduce, unstripped=self.unstripped), REDUCED
            )
            others, more = self._made(some)
            rows = rows.where(~rows.shard.isin(again)).unionAll(others)
            shard_facts = [one for one in shard_facts if not one.flows] + more
        return rows.drop("shard"), merged(one.facts for one in shard_facts)

    def _reread_unstripped(self, flows: Sequence[bytes]) -> None:
        """Partitions the packets of some flows again, unstripped."""
        keys = np.unique(np.concatenate([np.frombuffer(some, np.int64) for some in flows]))
        self.unstripped = FlowSet(np.union1d(np.frombuffer(self.unstripped.keys, np.int64), keys).tobytes())
        self.partitioned = self.rounds.with_unstripped(self.stitched, keys.tobytes())

    def _made(self, rows: "DataFrame") -> "tuple[DataFrame, list[ShardFacts]]":
        """Persists rows; returns them without the rows that hold facts, and the facts."""
        rows = persisted(rows)
        self.retained.append(rows)
        found = rows.where(rows.facts.isNotNull()).select("shard", "facts").collect()
        shard_facts = [ShardFacts(one.shard, *pickle.loads(one.facts)) for one in found]  # noqa: S301 - what this job's own tasks wrote
        return rows.where(rows.facts.isNull()).drop("facts"), shard_facts

    def close(self) -> None:
        """Releases persisted rows and chunks. Stored chunks remain until the session ends, since a shuffle still refers to
        them."""
        for frame in (*self.retained, *self.rounds.frames):
            frame.unpersist()
        self.retained.clear()
        if self.rows_folder is not None:
            shutil.rmtree(self.rows_folder, ignore_errors=True)

    def segments(self) -> "DataFrame":
        """The table `segments`: one row per TCP segment."""
        ranges = self.spark.range(0, len(self.verified), 1, max(1, len(self.verified)))
        return in_arrow(ranges, Segments([file.path for file in self.files], self.verified), SEGMENTS)


def scan(
    spark: "SparkSession",
    paths: Sequence[str],
    split_bytes: int | None = None,
    shards: int | None = None,
    *,
    strict: bool = False,
    ship: str = "auto",
    options: Options | None = None,
) -> Scan:
    """Stitches the ranges of a capture's files and partitions their packets.

    Raises CaptureError if nothing can be read, or with `strict` if some file cannot.
    """
    if int(spark.conf.get(BYTES_AT_ONCE, None) or NO_BOUND) >= NO_BOUND:
        spark.conf.set(BYTES_AT_ONCE, TASK_BATCH_BYTES)
    files, failed = files_of(paths), list[tuple[str, CaptureError]]()
    source, numbers = Files([file.path for file in files]), RangeNumbers()
    plans: list[PlannedFile] = []
    for index, file in enumerate(files):
        try:
            file.size = source.size(index)
            context = recognise(file, source.reading(index, 0, file.size))
        except CaptureError as error:
            failed.append((file.path, error))
            continue
        plans.append(plan(file, index, context, split_bytes or SPLIT_BYTES, numbers))
    if failed and (strict or not plans):
        raise failed[0][1] if len(failed) == 1 else CaptureError(f"{len(failed)} files could not be read; {failed[0][1]}")
    total = sum(file.size or 0 for file in files)
    parallel = max(1, spark.sparkContext.defaultParallelism)
    shards = shards or max(parallel, -(-total // SHARD_BYTES))
    folder = scratch(spark)
    options = options or Options()
    rounds = PartitionRounds(
        spark, files, shards, ship_of(spark, files, ship), JIT_SOON_BYTES if total >= LARGE_BYTES else None, folder
    )
    rounds.by_hosts = options.secrets is not None and options.secrets.resumable
    rounds.run([part for planned in plans for part in planned.ranges])
    while wrong := [again for planned in plans if (again := next_unverified(planned, rounds.summaries, numbers)) is not None]:
        rounds.run(wrong)
    stitched = stitch(plans, rounds.summaries)
    stitched.files = files
    parts = [rounds.verified_range(part) for planned in plans for part in planned.ranges]
    held = secrets_in(files)
    if not rounds.by_hosts and held.resumable:
        rounds.regroup(parts)
    if held or options.secrets:
        warn_of_keys(spark)
    verified = [VerifiedRange(rounds.task(part), stitched.positions[part.unit].packets) for part in parts]
    local = [(task, stitched.positions[task.part.unit]) for task in rounds.local_tasks(parts, stitched)]
    placed_chunks = rounds.placed_chunks(stitched)
    return Scan(
        spark,
        files,
        failed,
        stitched,
        rounds,
        placed_chunks,
        shards,
        options,
        verified=verified,
        folder=folder,
        local=local,
    )


def secrets_in(files: Sequence[CaptureFile]) -> Secrets:
    """The TLS secrets within captures (Decryption Secrets Blocks)."""
    secrets = Secrets()
    for file in files:
        for key_log in file.secrets:
            secrets.keylog.add(key_log)
    return secrets


def warn_of_keys(spark: "SparkSession") -> None:
    """Warns if Spark may write keys unencrypted into its local folders."""
    if spark.sparkContext.getConf().get(ENCRYPTION, "false") != "true":
        warnings.warn(f"Spark may write TLS keys into its local folders: set {ENCRYPTION} to true", stacklevel=2)


def ship_of(spark: "SparkSession", files: Sequence[CaptureFile], ship: str) -> str:
    """What travels between tasks; with `auto` the cheapest way for the locations of tasks and files."""
    if ship != "auto":
        return ship
    if all("+" in file.format for file in files):
        return "packets"
    return "edges" if is_afar(spark) or any(is_remote(file.path) for file in files) else "references"


def scratch(spark: "SparkSession") -> str | None:
    """A folder that Spark removes with the session; None unless all tasks run on this machine."""
    from pyspark import SparkFiles

    if is_afar(spark):
        return None
    return os.path.join(SparkFiles.getRootDirectory(), f"kcap-{next(NUMBERS)}")


def is_afar(spark: "SparkSession") -> bool:
    """Whether tasks may run on other machines."""
    return not str(spark.sparkContext.master).startswith("local")


def files_of(paths: Sequence[str]) -> list[CaptureFile]:
    """The files of a capture, sorted by name.

    Raises CaptureError if there are none.
    """
    files = found(paths)
    if not files:
        raise CaptureError(f"{', '.join(paths) or 'nothing given'}: no capture file there")
    return [CaptureFile(path, name) for path, name in zip(files, unique_names(files))]


class PartitionRounds:
    """Partitions ranges in rounds: each round is one Spark stage over the ranges that have to be read (again)."""

    def __init__(
        self, spark: "SparkSession", files: list[CaptureFile], shards: int, ship: str, jit_after: int | None, folder: str | None
    ) -> None:
        self.summaries: dict[int, RangeSummary] = {}
        self.by_hosts = False
        """Whether all connections between two hosts go to one shard, since a TLS session may resume that of another
        connection."""
        self._rounds: list[DataFrame] = []
        self._unstripped: list[DataFrame] = []
        """Unstripped packets of all flows that are in several ranges, once `unstripped_chunks` was called."""
        self._spark = spark
        self._files = files
        self._shards = shards
        self._edges = ship == "edges"
        self._carries = REFERENCES if ship == "references" else PACKETS
        self._parts: list[ByteRange] = []
        """Ranges with packets of flows that are in several ranges."""
        self._several = FlowSet()
        self._jit_after = jit_after
        self._folder = None if folder is None else os.path.join(folder, CHUNKS)

    def run(self, parts: Sequence[ByteRange]) -> None:
        """Runs one round. With `edges` it returns only summaries, which show which flows are in several ranges."""
        flows = FlowSet() if self._edges else None
        partitioned = self._partition([self.task(part, lists=self._edges, flows=flows) for part in parts])
        self._rounds.append(partitioned)
        for _, packed in partitioned.where(partitioned.shard == SUMMARY).select("unit", "stored").collect():
            summary: RangeSummary = pickle.loads(packed)  # noqa: S301 - what this job's own tasks wrote
            self.summaries[summary.part.unit] = summary

    def regroup(self, parts: Sequence[ByteRange]) -> None:
        """Partitions verified ranges again, by hosts; with `edges`, `local_tasks` does that, since it partitions everything."""
        self.by_hosts = True
        if not self._edges:
            self._everything(parts)

    def _everything(self, parts: Sequence[ByteRange]) -> None:
        for frame in self._rounds:
            frame.unpersist()
        self._rounds = [self._partition([self.task(part) for part in parts])]

    def local_tasks(self, parts: Sequence[ByteRange], stitched: StitchedCapture) -> list[PartitionTask]:
        """Partitions the flows that are in several ranges; returns the tasks that read the other flows.

        With IP fragments everything is partitioned, since a fragment does not show its flow; likewise with shards by hosts,
        whose connections need each other.
        """
        if not self._edges:
            return []
        if stitched.fragments or self.by_hosts:
            self._everything(parts)
            return []
        for frame in self._rounds:
            frame.unpersist()
        self._rounds.clear()
        parts = sorted(parts, key=lambda part: self.summaries[part.unit].first_ns or 0)
        several = flows_in_several_ranges([self.summaries[part.unit].flows for part in parts])
        self._several, own = FlowSet(several), FlowSet(several, listed=False)
        self._parts = [part for part in parts if self._has(part, self._several)]
        fresh = newly_seen_flows([self.summaries[part.unit].flows for part in self._parts], self._several)
        tasks = [self.task(part, flows=self._several) for part in self._parts]
        self._rounds.append(
            self._partition([replace(task, carries=STRIPPED, fresh=FlowSet(some)) for task, some in zip(tasks, fresh)])
        )
        return [replace(self.task(part, flows=own), shards=1) for part in parts if self._has(part, own)]

    @property
    def strips(self) -> bool:
        """Whether the chunks are stripped segments."""
        return bool(self._parts)

    def unstripped_chunks(self, stitched: StitchedCapture) -> "DataFrame":
        """Chunks with the unstripped packets of flows in several ranges; partitioned at the first call."""
        if not self._unstripped:
            self._unstripped = [self._partition([self.task(part, flows=self._several) for part in self._parts])]
        return self._placed_chunks(stitched, self._unstripped)

    def with_unstripped(self, stitched: StitchedCapture, flows: bytes) -> "DataFrame":
        """The chunks so far and the unstripped packets of some flows; readers skip these flows' stripped segments."""
        some = FlowSet(flows)
        self._rounds.append(self._partition([self.task(part, flows=some) for part in self._parts if self._has(part, some)]))
        return self.placed_chunks(stitched)

    def _has(self, part: ByteRange, flows: FlowSet) -> bool:
        return bool(flows.mask(np.frombuffer(self.summaries[part.unit].flows, np.int64)).any())

    def _partition(self, tasks: Sequence[PartitionTask]) -> "DataFrame":
        numbers = tasks_of(self._spark, [task.part for task in tasks], self._files)
        work = PartitionRanges([file.path for file in self._files], tasks, self._folder)
        return persisted(in_arrow(numbers, work, PARTITIONED))

    @property
    def frames(self) -> "list[DataFrame]":
        """The persisted chunks."""
        return [*self._rounds, *self._unstripped]

    def task(self, part: ByteRange, *, lists: bool = False, flows: FlowSet | None = None) -> PartitionTask:
        """The task that partitions a range."""
        file = self._files[part.file]
        packed = "+" in file.format
        size = None if packed else file.size
        return PartitionTask(
            part,
            file,
            size,
            self._shards,
            PACKETS if packed else self._carries,
            self._jit_after,
            lists,
            flows,
            by_hosts=self.by_hosts,
        )

    def verified_range(self, part: ByteRange) -> ByteRange:
        """A range with the start and the context that stitching verified."""
        summary = self.summaries[part.unit]
        return replace(part, start=summary.start or 0, context=summary.before, verified=True)

    def placed_chunks(self, stitched: StitchedCapture) -> "DataFrame":
        """The chunks of the verified ranges, grouped by shard, in the order in which its reader takes them."""
        return self._placed_chunks(stitched, self._rounds)

    def _placed_chunks(self, stitched: StitchedCapture, rounds: "Sequence[DataFrame]") -> "DataFrame":
        from pyspark.sql import functions as sql

        ranks = ranks_of([file.name for file in self._files])
        positions = [
            (unit, ranks[self.summaries[unit].part.file], range_position.packets, range_position.latest_ns)
            for unit, range_position in stitched.positions.items()
        ]
        verified = self._spark.createDataFrame(positions, "unit int, rank int, packets long, before long")
        chunks = rounds[0]
        for more in rounds[1:]:
            chunks = chunks.unionAll(more)
        placed = chunks.where(chunks.shard != SUMMARY).join(sql.broadcast(verified), "unit")
        placed = placed.withColumn("turn", sql.greatest("latest", "before"))
        shared = placed.repartitionById(self._shards, placed.shard)
        return shared.sortWithinPartitions("turn", "rank", "number").select("shard", "packets", "before", *CHUNK)


def finished(
    packed: "DataFrame", table: str, finish: Callable[[Any], Iterator[pa.RecordBatch]], schema: pa.Schema
) -> "DataFrame":
    """The rows of a table: its packed batches, finished with the facts of the whole capture."""
    return in_arrow(packed.where(packed.table == table), lambda batches: finish(unpacked(batches)), schema)


def tasks_of(spark: "SparkSession", parts: Sequence[ByteRange], files: Sequence[CaptureFile]) -> "DataFrame":
    """A data frame of the indexes of ranges, with several ranges in a partition."""
    total = sum((part.stop or files[part.file].size or 0) - part.start for part in parts)
    parallel = max(1, spark.sparkContext.defaultParallelism)
    return spark.range(0, len(parts), 1, max(1, min(len(parts), max(parallel, -(-total // TASK_BYTES)))))


def in_arrow(frame: "DataFrame", work: Callable[[Any], Iterator[pa.RecordBatch]], schema: pa.Schema) -> "DataFrame":
    """Runs `work` over the record batches of each partition in Python."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from work(batches)

    return frame.mapInArrow(run, from_arrow_schema(schema))


def persisted(frame: "DataFrame", *, large: bool = True) -> "DataFrame":
    """Persists a data frame: large rows on disk one by one, since Spark's serializer holds a hundred batches in memory.

    Spark's own compression of cached columns is off, since it costs more than it saves.
    """
    from pyspark import StorageLevel

    settings = {COMPRESSED: "false"} | ({CACHED_ROWS: "1"} if large else {})
    conf = frame.sparkSession.conf
    before = {name: str(conf.get(name)) for name in settings}
    try:
        for name, value in settings.items():
            conf.set(name, value)
        return frame.persist(StorageLevel.DISK_ONLY if large else StorageLevel.MEMORY_AND_DISK)
    finally:
        for name, value in before.items():
            conf.set(name, value)
