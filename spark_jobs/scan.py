"""A capture on a cluster: its files cut into ranges, the ranges dealt out to shares, the shares read into rows.

In: a Spark session and paths. Out: data frames. Law: rows equal those of `kcap rows -o`, whatever the ranges and the shares; a
range that does not begin where the one before it ended is read again from there, never guessed.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kcap.analyzer import Options
from kcap.capture.chunks import ranks_of
from kcap.capture.folding import Folded, Numbers, Planned, fold, plan, recognise, to_read_again
from kcap.capture.paths import unique_names
from kcap.capture.ranges import Account, Range
from kcap.capture.sharing import Task
from kcap.errors import CaptureError
from kcap.limits import JIT_SOON_BYTES, LARGE_BYTES
from kcap.model import CaptureFile
from kcap.portion import Whole
from kcap.table.merging import Facts, merged
from spark_jobs.files import Files, found, is_remote
from spark_jobs.rows import Maker
from spark_jobs.segments import SEGMENTS, Proven, Segments
from spark_jobs.work import ACCOUNT, DEALT, REDUCED, Deal, Reduce, unpacked

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
KEPT_AT_ONCE: Final = "spark.sql.inMemoryColumnarStorage.batchSize"


@dataclass(slots=True)
class Scan:
    """A capture whose files are laid out and dealt out."""

    spark: "SparkSession"
    files: list[CaptureFile]
    failed: list[tuple[str, CaptureError]]
    """Files that are no captures, and why."""
    folded: Folded
    dealt: "DataFrame"
    shares: int
    options: Options = field(default_factory=Options)
    kept: "list[DataFrame]" = field(default_factory=list)
    """What is kept until nobody needs it."""
    proven: list[Proven] = field(default_factory=list)
    """The ranges, each as it was proven."""

    @property
    def readable(self) -> list[CaptureFile]:
        """The files that are captures."""
        failed = {path for path, _ in self.failed}
        return [file for file in self.files if file.path not in failed]

    @property
    def whole(self) -> Whole:
        """What each share needs to know."""
        layouts = {
            file: [context.section(position) for position, context in contexts]
            for file, contexts in self.folded.contexts.items()
        }
        large = sum(file.size or 0 for file in self.files) >= LARGE_BYTES
        return Whole(self.files, self.shares, self.folded.last_ns, large, layouts, self.options)

    def reduced(self, maker: Maker, known: Facts | None = None) -> "tuple[DataFrame, Facts]":
        """Rows made of the shares, in packed batches, and what these learned."""
        reduce = Reduce([file.path for file in self.files], self.whole, maker, known)
        rows = kept(in_arrow(self.dealt, reduce, REDUCED))
        self.kept.append(rows)
        told = rows.where(rows.facts.isNotNull()).select("facts").collect()
        facts = merged(pickle.loads(one[0]) for one in told)  # noqa: S301 - what this job's own tasks wrote
        return rows.where(rows.facts.isNull()).select("rows"), facts

    def close(self) -> None:
        """Lets go of what was kept."""
        for frame in self.kept:
            frame.unpersist()
        self.kept.clear()

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
    carries: bool | None = None,
    options: Options | None = None,
) -> Scan:
    """Lays out a capture's files and deals their packets out.

    Raises CaptureError where nothing can be read, or with `strict` where something cannot.
    """
    if int(spark.conf.get(BYTES_AT_ONCE, None) or NO_BOUND) >= NO_BOUND:
        spark.conf.set(BYTES_AT_ONCE, BATCH_BYTES)
    files, failed = lay_out(paths), list[tuple[str, CaptureError]]()
    source, numbers = Files([file.path for file in files]), Numbers()
    plans: list[Planned] = []
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
    dealer = Dealer(spark, files, shares, carries, JIT_SOON_BYTES if total >= LARGE_BYTES else None)
    dealer.deal([part for planned in plans for part in planned.ranges])
    while wrong := [again for planned in plans if (again := to_read_again(planned, dealer.accounts, numbers)) is not None]:
        dealer.deal(wrong)
    folded = fold(plans, dealer.accounts)
    folded.files = files
    proven = [dealer.proven(part, folded) for planned in plans for part in planned.ranges]
    return Scan(spark, files, failed, folded, dealer.standing(folded), shares, options or Options(), dealer.rounds, proven)


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
        self, spark: "SparkSession", files: list[CaptureFile], shares: int, carries: bool | None, jit_after: int | None
    ) -> None:
        self.accounts: dict[int, Account] = {}
        self.rounds: list[DataFrame] = []
        self._spark = spark
        self._files = files
        self._shares = shares
        self._carries = carries
        self._jit_after = jit_after
        self._afar = not str(spark.sparkContext.master).startswith("local")  # each machine would read all files once more

    def deal(self, parts: Sequence[Range]) -> None:
        """One round."""
        tasks = [self._task(part) for part in parts]
        bytes_of = [(part.stop or self._files[part.file].size or 0) - part.start for part in parts]
        parallel = max(1, self._spark.sparkContext.defaultParallelism)
        slices = max(1, min(len(tasks), max(parallel, -(-sum(bytes_of) // PER_TASK_BYTES))))
        numbers = self._spark.range(0, len(tasks), 1, slices)
        dealt = kept(in_arrow(numbers, Deal([file.path for file in self._files], tasks), DEALT))
        for _, packed in dealt.where(dealt.share == ACCOUNT).select("unit", "chunk").collect():
            account: Account = pickle.loads(packed)  # noqa: S301 - what this job's own tasks wrote
            self.accounts[account.part.unit] = account
        self.rounds.append(dealt)

    def _task(self, part: Range) -> Task:
        file = self._files[part.file]
        packed = "+" in file.format
        carries = packed or (self._afar or is_remote(file.path) if self._carries is None else self._carries)
        return Task(part, file, None if packed else file.size, self._shares, carries, self._jit_after)

    def proven(self, part: Range, folded: Folded) -> Proven:
        """A range as it was proven."""
        account = self.accounts[part.unit]
        known = replace(part, start=account.start or 0, context=account.before, known=True)
        return Proven(self._task(known), folded.stands[part.unit].packets)

    def standing(self, folded: Folded) -> "DataFrame":
        """The chunks of the ranges that are proven, in the order in which each share takes them."""
        from pyspark.sql import functions as sql

        ranks = ranks_of([file.name for file in self._files])
        stands = [
            (unit, ranks[self.accounts[unit].part.file], stand.packets, stand.latest_ns)
            for unit, stand in folded.stands.items()
        ]
        known = self._spark.createDataFrame(stands, "unit int, rank int, packets long, before long")
        chunks = self.rounds[0]
        for more in self.rounds[1:]:
            chunks = chunks.unionAll(more)
        placed = chunks.where(chunks.share != ACCOUNT).join(sql.broadcast(known), "unit")
        placed = placed.withColumn("turn", sql.greatest("latest", "before"))
        shared = placed.repartitionById(self._shares, placed.share)
        return shared.sortWithinPartitions("turn", "rank", "number").select("share", "packets", "before", "chunk", "data")


def finished(packed: "DataFrame", finish: Callable[[Any], Iterator[pa.RecordBatch]], schema: pa.Schema) -> "DataFrame":
    """Packed batches as rows, once they were looked at again."""
    return in_arrow(packed, lambda batches: finish(unpacked(batches)), schema)


def in_arrow(frame: "DataFrame", work: Callable[[Any], Iterator[pa.RecordBatch]], schema: pa.Schema) -> "DataFrame":
    """A step that is done in Python, a task at a time."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from work(batches)

    return frame.mapInArrow(run, from_arrow_schema(schema))


def kept(frame: "DataFrame") -> "DataFrame":
    """A data frame that is kept on disk, row by row: Spark's serializer holds on to a hundred batches, and rows are large."""
    from pyspark import StorageLevel

    conf = frame.sparkSession.conf
    before = conf.get(KEPT_AT_ONCE)
    conf.set(KEPT_AT_ONCE, 1)
    try:
        return frame.persist(StorageLevel.DISK_ONLY)
    finally:
        conf.set(KEPT_AT_ONCE, str(before))
