"""The data source `kcap`: captures as a table of Spark SQL.

In: `spark.read.format("kcap").load(PATHS)`, with options `table`, `columns`, `filter`, `split_bytes`. Out: a data frame. A data
source is a leaf: its tasks cannot send packets to each other. A set of files is therefore read whole in one task, which is
exact and as quick as one core; `table=segments` reads the TCP segments of byte ranges in parallel. Use
`spark_jobs.read_capture` for large captures, and SQL over the output of `ingest` at any scale. Law: rows equal those of `kcap
rows --table TABLE -o FILE`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kcap.capture.paths import unique_names
from kcap.distributed.partitioner import PartitionTask
from kcap.distributed.ranges import ByteRange
from kcap.distributed.stitching import recognise
from kcap.errors import UsageError
from kcap.limits import SPLIT_BYTES
from kcap.model import CaptureFile
from kcap.session import open_capture
from kcap.table.schema import arrow_schema, choose
from spark_jobs.files import Files, found, is_remote, local
from spark_jobs.segments import SEGMENTS, VerifiedRange, opened, segments_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FileSetPartition(InputPartition):
    """A set of files, read in one task."""


class RangePartition(InputPartition):
    """A range of a file."""

    def __init__(self, verified: VerifiedRange) -> None:
        super().__init__(0)
        self.verified = verified


class KcapSource(DataSource):
    """`spark.read.format("kcap")`."""

    @classmethod
    def name(cls) -> str:
        """The name it is registered under."""
        return "kcap"

    def schema(self) -> StructType:
        """The columns of the table."""
        return from_arrow_schema(schema_of(self.options))

    def reader(self, schema: StructType) -> "KcapReader":
        return KcapReader(dict(self.options))


def schema_of(options: Mapping[str, str]) -> pa.Schema:
    """The schema of the requested columns.

    Raises UsageError for columns that the table does not have.
    """
    table, names = options.get("table", "exchanges"), columns_of(options)
    if table != "segments":
        return arrow_schema(table, choose(table, names))
    return SEGMENTS if names is None else pa.schema([SEGMENTS.field(name) for name in names])


def columns_of(options: Mapping[str, str]) -> list[str] | None:
    """The option `columns`; Spark does not pass the columns of a query to a Python data source."""
    text = options.get("columns")
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def paths_of(options: Mapping[str, str]) -> list[str]:
    """The paths given to `load`.

    Raises UsageError if there are none.
    """
    if options.get("paths"):
        return [str(path) for path in json.loads(options["paths"])]
    if not options.get("path"):
        raise UsageError("no capture given; name files, folders or patterns in load()")
    return [options["path"]]


class KcapReader(DataSourceReader):
    """Reads one table."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options
        self.files = found(paths_of(options))

    def partitions(self) -> Sequence[InputPartition]:
        """One partition for everything; for segments one per range, each verified by a scan of the records before it."""
        if self.options.get("table") != "segments":
            remote = [path for path in self.files if is_remote(path)]
            if remote:
                raise UsageError(f"{remote[0]}: the data source reads local files; spark_jobs.read_capture reads URIs")
            return [FileSetPartition(0)]
        files, parts = Files(self.files), list[InputPartition]()
        split = int(self.options.get("split_bytes", SPLIT_BYTES))
        for index, name in enumerate(unique_names(self.files)):
            file = CaptureFile(self.files[index], name, files.size(index))
            parts += [RangePartition(one) for one in verified_ranges(files, index, file, split)]
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        names = schema_of(self.options).names
        if isinstance(partition, RangePartition):
            for batch in segments_of(Files(self.files), partition.verified):
                yield batch.select(names)
            return
        capture = open_capture(*(local(path) for path in self.files))
        if self.options.get("filter"):
            capture = capture.filter(self.options["filter"])
        yield from capture.table(self.options.get("table", "exchanges"), columns_of(self.options)).record_batches()


def verified_ranges(files: Files, index: int, file: CaptureFile, split: int) -> Iterator[VerifiedRange]:
    """The ranges of a file, each beginning where the previous one ended."""
    packed = recognise(file, files.reading(index, 0, file.size or 0)) is None
    start, context, packets, ended = 0, None, 0, False
    while not ended:
        stop = None if packed else (start // split + 1) * split
        part = ByteRange(0, index, start, stop, context)
        task = PartitionTask(part, replace(file), None if packed else file.size, 1)
        yield VerifiedRange(task, packets)
        if packed:
            return
        scan = opened(files, task)
        for batch, _ in scan.batches():
            packets += len(batch)
        start, context, ended = scan.summary.end, scan.summary.after, scan.summary.ended


def register(spark: "SparkSession") -> None:
    """Registers the data source `kcap`, for `spark.read.format("kcap")`."""
    spark.dataSource.register(KcapSource)
