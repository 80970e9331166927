"""The table `segments`: TCP segments of byte ranges, for analyses below the level of Kafka.

In: verified ranges, and the number of packets before each. Out: one row per segment, with the number and file offset of its
packet. Law: the segments of all ranges are those of one pass over the files. IP fragments give no segments, since a range may
lack part of a datagram.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from kcap.capture.source import unwrap
from kcap.capture.window import Read
from kcap.distributed.flow_shards import ShardParser
from kcap.distributed.partitioner import PartitionTask
from kcap.distributed.ranges import RangeScan
from kcap.identities import endpoints
from kcap.model import SegmentBatch
from spark_jobs.files import Files

KINDS: Final[dict[str, pa.DataType]] = {
    "capture": pa.string(), "packet": pa.int64(), "position": pa.int64(), "time_ns": pa.int64(),
    "source_ip": pa.string(), "source_port": pa.int32(), "destination_ip": pa.string(), "destination_port": pa.int32(),
    "seq": pa.int64(), "ack": pa.int64(), "flags": pa.int16(), "window": pa.int32(), "captured": pa.int32(),
    "length": pa.int32(),
}  # fmt: skip
SEGMENTS: Final = pa.schema([pa.field(name, kind) for name, kind in KINDS.items()])
"""Columns of the table `segments`. `position` is the offset of the packet's record; `window` is -1 if it was cut off;
`captured` of `length` payload bytes are in the file."""


@dataclass(frozen=True, slots=True)
class VerifiedRange:
    """A range that begins at a record, and the number of packets of its file before it."""

    task: PartitionTask
    packets: int


def numbers_of(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    """The indexes of the ranges of a task."""
    for batch in batches:
        numbers: list[Any] = batch.column(0).to_pylist()
        yield from numbers


def bytes_of(files: Files, task: PartitionTask) -> tuple[Read, list[tuple[str, int]]]:
    """A reader of a range's decompressed bytes, and a list of (detail, offset) for truncated compressed data."""
    read, truncated = files.reading(task.part.file, task.part.start, task.file.size or 0), list[tuple[str, int]]()
    if task.size is None:
        read = unwrap(read, lambda detail, position: truncated.append((detail, position)))[1]
    return read, truncated


def opened(files: Files, task: PartitionTask) -> RangeScan:
    return RangeScan(task.part, bytes_of(files, task)[0], task.file, task.size, task.jit_after)


def segments_of(files: Files, verified: VerifiedRange) -> Iterator[pa.RecordBatch]:
    """The segments of a range as rows."""
    scan = opened(files, verified.task)
    parser = ShardParser(scan.report, 1)
    for batch, _ in scan.batches():
        found = parser.split(batch)[1]
        segments = found if isinstance(found, SegmentBatch) else found.all()
        if len(segments):
            yield rows_of(segments, verified.task.file.name, verified.packets)


def rows_of(segments: SegmentBatch, capture: str, packets: int) -> pa.RecordBatch:
    ends = [endpoints(flow) for flow in segments.flow]
    columns: dict[str, Sequence[Any]] = {
        "capture": [capture] * len(ends),
        "packet": [number + packets for number in segments.packet],
        "source_ip": [end[0] for end in ends],
        "source_port": [end[1] for end in ends],
        "destination_ip": [end[2] for end in ends],
        "destination_port": [end[3] for end in ends],
    }
    arrays = [pa.array(columns.get(name) or getattr(segments, name), kind) for name, kind in KINDS.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=SEGMENTS)


@dataclass(frozen=True, slots=True)
class Segments:
    """Makes the segment rows of ranges, given by index."""

    paths: Sequence[str]
    verified: Sequence[VerifiedRange]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Returns the rows of the ranges with these indexes."""
        files = Files(self.paths)
        for number in numbers_of(batches):
            yield from segments_of(files, self.verified[number])
