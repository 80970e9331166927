"""A capture on a cluster: its files cut into ranges, the ranges dealt out to shares, the shares read into rows.

In: a Spark session and paths. Out: data frames. Law: rows equal those of `kcap rows -o`, whatever the ranges and the shares; a
range that does not begin where the one before it ended is read again from there, never guessed.
"""

import os
import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap.analyzer import Options
from kcap.capture.paths import unique_names
from kcap.distributed.packet_columns import ranks_of
from kcap.distributed.partitioner import NOTHING, PACKETS, STRIPPED, FlowSet, PartitionTask, first_seen, in_several
from kcap.distributed.ranges import ByteRange, RangeSummary
from kcap.distributed.shard_reader import ShardContext
from kcap.distributed.stitching import (
    PlannedFile,
    RangeNumbers,
    RangePosition,
    StitchedCapture,
    plan,
    recognise,
    stitch,
    to_read_again,
)
from kcap.errors import CaptureError
from kcap.facts.merge import Facts, merged
from kcap.limits import JIT_SOON_BYTES, LARGE_BYTES
from kcap.model import CaptureFile
from spark_jobs.files import Files, found, is_remote
from spark_jobs.segments import SEGMENTS, Proven, Segments
from spark_jobs.table_rows import Maker
from spark_jobs.task_storage import REDUCED, unpacked
from spark_jobs.tasks import ACCOUNT, CHUNK, DEALT, Deal, Reduce, ReduceHere

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPLIT_BYTES: Final = 128 << 20
"""Of a range where nobody says otherwise."""
PER_TASK_BYTES: Final = 32 << 20
"""Ranges are read together in a task up to this many bytes: a task costs some 10 ms."""
SHARE_BYTES: Final = 8 << 30
"""Of a capture for each share where nobody says otherwise and there are fewer cores."""
BYTES_AT_ONCE: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
"""Spark's own bound for what goes to a Python worker at once is a number of rows, and chunks are megabytes."""
BATCH_BYTES: Final = 16 << 20
NO_BOUND: Final = (1 << 31) - 1
NUMBERS: Final = count()
CHUNKS: Final = "packets"
ROWS: Final = "rows"
"""Folders of what tasks keep."""
COMPRESSED: Final = "spark.sql.inMemoryColumnarStorage.compressed"
KEPT_AT_ONCE: Final = "spark.sql.inMemoryColumnarStorage.batchSize"


@dataclass(frozen=True, slots=True)
class ScanFacts:
    """What a share learned."""

    share: int
    facts: Facts
    flows: bytes
    """Numbers of flows of which blanked bytes were looked at."""


@dataclass(slots=True)
class Scan:
    """A capture whose files are laid out and dealt out."""

    spark: "SparkSession"
    files: list[CaptureFile]
    failed: list[tuple[str, CaptureError]]
    """Files that are no captures, and why."""
    folded: StitchedCapture
    dealer: "Dealer"
    dealt: "DataFrame"
    shares: int
    options: Options = field(default_factory=Options)
    kept: "list[DataFrame]" = field(default_factory=list)
    """What is kept until nobody needs it."""
    doubted: FlowSet = field(default_factory=FlowSet)
    """Flows of which blanked bytes were looked at: their packets were dealt out as they are."""
    proven: list[Proven] = field(default_factory=list)
    """The ranges, each as it was proven."""
    folder: str | None = None
    """Where tasks keep packets and rows, if all of them run on this machine."""
    here: list[tuple[PartitionTask, RangePosition]] = field(default_factory=list)
    """Ranges whose own connections, which lie in no other, are read where the range is."""

    @property
    def readable(self) -> list[CaptureFile]:
        """The files that are captures."""
        failed = {path for path, _ in self.failed}
        return [file for file in self.files if file.path not in failed]

    @property
    def rows_folder(self) -> str | None:
        """Where rows wait."""
        return None if self.folder is None else os.path.join(self.folder, ROWS)

    @property
    def whole(self) -> ShardContext:
        """What each share needs to know."""
        layouts = {
            file: [context.section(position) for position, context in contexts]
            for file, contexts in self.folded.contexts.items()
        }
        large = sum(file.size or 0 for file in self.files) >= LARGE_BYTES
        return ShardContext(self.files, self.shares, self.folded.last_ns, large, layouts, self.options)

    def reduced(self, maker: Maker, known: Facts | None = None) -> "tuple[DataFrame, Facts]":
        """Rows made of the shares, in packed batches with the name of their table, and what these learned.

        Shares in which blanked bytes were looked at are made again, with the packets of those connections as they are.
        """
        dealt = self.dealer.whole(self.folded) if maker.looks_inside and self.dealer.strips else self.dealt
        reduce = Reduce([file.path for file in self.files], self.whole, maker, known, self.rows_folder, self.doubted)
        made = in_arrow(dealt, reduce, REDUCED)
        if self.here:
            numbers = tasks_of(self.spark, [task.part for task, _ in self.here], self.files)
            made = made.unionAll(in_arrow(numbers, ReduceHere(reduce, self.here), REDUCED))
        rows, told = self._made(made)
        while any(one.flows for one in told):
            again = [one.share for one in told if one.flows]
            self._doubt([one.flows for one in told])
            some = in_arrow(self.dealt.where(self.dealt.share.isin(again)), replace(reduce, doubted=self.doubted), REDUCED)
            others, more = self._made(some)
            rows = rows.where(~rows.share.isin(again)).unionAll(others)
            told = [one for one in told if not one.flows] + more
        return rows.drop("share"), merged(one.facts for one in told)

    def _doubt(self, flows: Sequence[bytes]) -> None:
        """Deals the packets of some flows out as they are."""
        keys = np.unique(np.concatenate([np.frombuffer(some, np.int64) for some in flows]))
        self.doubted = FlowSet(np.union1d(np.frombuffer(self.doubted.keys, np.int64), keys).tobytes())
        self.dealt = self.dealer.without_doubt(self.folded, keys.tobytes())

    def _made(self, rows: "DataFrame") -> "tuple[DataFrame, list[ScanFacts]]":
        """Rows that are kept, without what was told beside them, and that."""
        rows = kept(rows)
        self.kept.append(rows)
        said = rows.where(rows.facts.isNotNull()).select("share", "facts").collect()
        told = [ScanFacts(one.share, *pickle.loads(one.facts)) for one in said]  # noqa: S301 - what this job's own tasks wrote
        return rows.where(rows.facts.isNull()).drop("facts"), told

    def close(self) -> None:
        """Lets go of what was kept. References in files stay as long as the session: a shuffle still says where they are."""
        for frame in (*self.kept, *self.dealer.frames):
            frame.unpersist()
        self.kept.clear()
        if self.rows_folder is not None:
            shutil.rmtree(self.rows_folder, ignore_errors=True)

    def segments(self) -> "DataFrame":
        """A row a TCP segment."""
        ranges = self.spark.range(0, len(self.proven), 1, max(1, len(self.proven)))
        return in_arrow(ranges, Segments([file.path for file in self.files], self.proven), SEGMENTS)


def scan(
    spark: "SparkSession",
    paths: Sequence[str],
    split_bytes: int | None = None,
    shares: int | None = None,
    *,
    strict: bool = False,
    ship: str = "auto",
    options: Options | None = None,
) -> Scan:
    """Lays out a capture's files and deals their packets out.

    Raises CaptureError where nothing can be read, or with `strict` where something cannot.
    """
    if int(spark.conf.get(BYTES_AT_ONCE, None) or NO_BOUND) >= NO_BOUND:
        spark.conf.set(BYTES_AT_ONCE, BATCH_BYTES)
    files, failed = lay_out(paths), list[tuple[str, CaptureError]]()
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
    shares = shares or max(parallel, -(-total // SHARE_BYTES))
    folder = scratch(spark)
    dealer = Dealer(spark, files, shares, way(spark, files, ship), JIT_SOON_BYTES if total >= LARGE_BYTES else None, folder)
    dealer.deal([part for planned in plans for part in planned.ranges])
    while wrong := [again for planned in plans if (again := to_read_again(planned, dealer.accounts, numbers)) is not None]:
        dealer.deal(wrong)
    folded = stitch(plans, dealer.accounts)
    folded.files = files
    parts = [dealer.known(part) for planned in plans for part in planned.ranges]
    proven = [Proven(dealer.task(part), folded.stands[part.unit].packets) for part in parts]
    here = [(task, folded.stands[task.part.unit]) for task in dealer.settled(parts, folded)]
    standing = dealer.standing(folded)
    return Scan(
        spark, files, failed, folded, dealer, standing, shares, options or Options(), proven=proven, folder=folder, here=here
    )


def way(spark: "SparkSession", files: Sequence[CaptureFile], ship: str) -> str:
    """What travels between tasks; where nobody says, what costs least where they run."""
    if ship != "auto":
        return ship
    if all("+" in file.format for file in files):
        return "packets"
    return "edges" if is_afar(spark) or any(is_remote(file.path) for file in files) else "references"


def scratch(spark: "SparkSession") -> str | None:
    """A folder that goes when the session does, where all tasks run on this machine."""
    from pyspark import SparkFiles

    if is_afar(spark):
        return None
    return os.path.join(SparkFiles.getRootDirectory(), f"kcap-{next(NUMBERS)}")


def is_afar(spark: "SparkSession") -> bool:
    """Whether tasks may run on other machines."""
    return not str(spark.sparkContext.master).startswith("local")


def lay_out(paths: Sequence[str]) -> list[CaptureFile]:
    """The files of a capture, by name.

    Raises CaptureError where there are none.
    """
    files = found(paths)
    if not files:
        raise CaptureError(f"{', '.join(paths) or 'nothing given'}: no capture file there")
    return [CaptureFile(path, name) for path, name in zip(files, unique_names(files))]


class Dealer:
    """Deals ranges out, a round after the other."""

    def __init__(
        self, spark: "SparkSession", files: list[CaptureFile], shares: int, ship: str, jit_after: int | None, folder: str | None
    ) -> None:
        self.accounts: dict[int, RangeSummary] = {}
        self._rounds: list[DataFrame] = []
        self._whole: list[DataFrame] = []
        """Packets of all flows in several ranges as they are, once they were asked for."""
        self._spark = spark
        self._files = files
        self._shares = shares
        self._edges = ship == "edges"
        self._carries = NOTHING if ship == "references" else PACKETS
        self._parts: list[ByteRange] = []
        """Ranges in which there is something of flows that are in several."""
        self._several = FlowSet()
        self._jit_after = jit_after
        self._folder = None if folder is None else os.path.join(folder, CHUNKS)

    def deal(self, parts: Sequence[ByteRange]) -> None:
        """One round; accounts alone where it must be seen first which connections lie in several ranges."""
        flows = FlowSet() if self._edges else None
        dealt = self._dealt([self.task(part, lists=self._edges, flows=flows) for part in parts])
        self._rounds.append(dealt)
        for _, packed in dealt.where(dealt.share == ACCOUNT).select("unit", "kept").collect():
            account: RangeSummary = pickle.loads(packed)  # noqa: S301 - what this job's own tasks wrote
            self.accounts[account.part.unit] = account

    def settled(self, parts: Sequence[ByteRange], folded: StitchedCapture) -> list[PartitionTask]:
        """Deals out what lies in several ranges; the tasks that read what does not.

        Fragments of a datagram do not say which connection they are of: where there are some, all is dealt out.
        """
        if not self._edges:
            return []
        for frame in self._rounds:
            frame.unpersist()
        self._rounds.clear()
        if folded.fragments:
            self._rounds.append(self._dealt([self.task(part) for part in parts]))
            return []
        parts = sorted(parts, key=lambda part: self.accounts[part.unit].first_ns or 0)
        several = in_several([self.accounts[part.unit].flows for part in parts])
        self._several, own = FlowSet(several), FlowSet(several, named=False)
        self._parts = [part for part in parts if self._has(part, self._several)]
        fresh = first_seen([self.accounts[part.unit].flows for part in self._parts], self._several)
        tasks = [self.task(part, flows=self._several) for part in self._parts]
        self._rounds.append(
            self._dealt([replace(task, carries=STRIPPED, fresh=FlowSet(some)) for task, some in zip(tasks, fresh)])
        )
        return [replace(self.task(part, flows=own), shares=1) for part in parts if self._has(part, own)]

    @property
    def strips(self) -> bool:
        """What was dealt out are stripped segments."""
        return bool(self._parts)

    def whole(self, folded: StitchedCapture) -> "DataFrame":
        """The packets of flows in several ranges as they are; dealt out once."""
        if not self._whole:
            self._whole = [self._dealt([self.task(part, flows=self._several) for part in self._parts])]
        return self._standing(folded, self._whole)

    def without_doubt(self, folded: StitchedCapture, flows: bytes) -> "DataFrame":
        """What was dealt out, and the packets of some flows as they are, whose segments are to be left out then."""
        some = FlowSet(flows)
        self._rounds.append(self._dealt([self.task(part, flows=some) for part in self._parts if self._has(part, some)]))
        return self.standing(folded)

    def _has(self, part: ByteRange, flows: FlowSet) -> bool:
        return bool(flows.pick(np.frombuffer(self.accounts[part.unit].flows, np.int64)).any())

    def _dealt(self, tasks: Sequence[PartitionTask]) -> "DataFrame":
        numbers = tasks_of(self._spark, [task.part for task in tasks], self._files)
        return kept(in_arrow(numbers, Deal([file.path for file in self._files], tasks, self._folder), DEALT))

    @property
    def frames(self) -> "list[DataFrame]":
        """What was dealt out."""
        return [*self._rounds, *self._whole]

    def task(self, part: ByteRange, *, lists: bool = False, flows: FlowSet | None = None) -> PartitionTask:
        """A range as it is read."""
        file = self._files[part.file]
        packed = "+" in file.format
        size = None if packed else file.size
        return PartitionTask(
            part, file, size, self._shares, PACKETS if packed else self._carries, self._jit_after, lists, flows
        )

    def known(self, part: ByteRange) -> ByteRange:
        """A range as it was proven."""
        account = self.accounts[part.unit]
        return replace(part, start=account.start or 0, context=account.before, known=True)

    def standing(self, folded: StitchedCapture) -> "DataFrame":
        """The chunks of the ranges that are proven, in the order in which each share takes them."""
        return self._standing(folded, self._rounds)

    def _standing(self, folded: StitchedCapture, rounds: "Sequence[DataFrame]") -> "DataFrame":
        from pyspark.sql import functions as sql

        ranks = ranks_of([file.name for file in self._files])
        stands = [
            (unit, ranks[self.accounts[unit].part.file], stand.packets, stand.latest_ns)
            for unit, stand in folded.stands.items()
        ]
        known = self._spark.createDataFrame(stands, "unit int, rank int, packets long, before long")
        chunks = rounds[0]
        for more in rounds[1:]:
            chunks = chunks.unionAll(more)
        placed = chunks.where(chunks.share != ACCOUNT).join(sql.broadcast(known), "unit")
        placed = placed.withColumn("turn", sql.greatest("latest", "before"))
        shared = placed.repartitionById(self._shares, placed.share)
        return shared.sortWithinPartitions("turn", "rank", "number").select("share", "packets", "before", *CHUNK)


def finished(
    packed: "DataFrame", table: str, finish: Callable[[Any], Iterator[pa.RecordBatch]], schema: pa.Schema
) -> "DataFrame":
    """Packed batches of a table as rows, once they were looked at again."""
    return in_arrow(packed.where(packed.table == table), lambda batches: finish(unpacked(batches)), schema)


def tasks_of(spark: "SparkSession", parts: Sequence[ByteRange], files: Sequence[CaptureFile]) -> "DataFrame":
    """Numbers of ranges, some of them for each task."""
    total = sum((part.stop or files[part.file].size or 0) - part.start for part in parts)
    parallel = max(1, spark.sparkContext.defaultParallelism)
    return spark.range(0, len(parts), 1, max(1, min(len(parts), max(parallel, -(-total // PER_TASK_BYTES)))))


def in_arrow(frame: "DataFrame", work: Callable[[Any], Iterator[pa.RecordBatch]], schema: pa.Schema) -> "DataFrame":
    """A step that is done in Python, a task at a time."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from work(batches)

    return frame.mapInArrow(run, from_arrow_schema(schema))


def kept(frame: "DataFrame", *, large: bool = True) -> "DataFrame":
    """A data frame that is kept. Large rows are kept on disk one by one: Spark's serializer holds on to a hundred batches.

    Its search for a shorter form of each column costs more than to keep them as they are.
    """
    from pyspark import StorageLevel

    settings = {COMPRESSED: "false"} | ({KEPT_AT_ONCE: "1"} if large else {})
    conf = frame.sparkSession.conf
    before = {name: str(conf.get(name)) for name in settings}
    try:
        for name, value in settings.items():
            conf.set(name, value)
        return frame.persist(StorageLevel.DISK_ONLY if large else StorageLevel.MEMORY_AND_DISK)
    finally:
        for name, value in before.items():
            conf.set(name, value)
