"""Chunks: packets or TCP segments of one shard of a file, as columns that are small enough to be sent between machines.

In: columns of packets or segments. Out: a chunk as bytes and back; chunks of several files merged into capture order; their
payloads, read from the files if they were not sent along. Law: unpacking gives what was packed. Merged chunks have the order of
`kcap.capture.fileset`: by the latest time so far of each file, ties by file name.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kcap.errors import CaptureError
from kcap.limits import CHUNK_GAP_BYTES, CHUNK_SPARSE
from kcap.model import PacketBatch
from kcap.net.segment_columns import CLEAN, NAMES, SegmentColumns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Int64s = NDArray[np.int64]


COLUMN: Final = Struct("<bq")
"""Head of a packed column: width of the differences, first number."""
WIDTHS: "Final[tuple[np.dtype[Any], ...]]" = (np.dtype("<i1"), np.dtype("<i2"), np.dtype("<i4"), np.dtype("<i8"))
CONSTANT: Final = -1


def pack_column(values: "Int64s", *, rising: bool) -> list[bytes]:
    """Packs at least one int64 number in the narrowest type that can hold all; `rising` columns are stored as differences."""
    first = int(values[0])
    steps = np.diff(values, prepend=first) if rising else values - first
    low, high = int(steps.min()), int(steps.max())
    if low == high == 0:
        return [COLUMN.pack(CONSTANT, first)]
    width = next(at for at, kind in enumerate(WIDTHS) if max(~low, high) < 1 << 8 * kind.itemsize - 1)
    return [COLUMN.pack(width, first), steps.astype(WIDTHS[width]).tobytes()]


def unpack_column(packed: bytes, at: int, out: "Int64s", *, rising: bool) -> int:
    """Reads a packed column at `at` into `out`; returns the position after it."""
    width, first = COLUMN.unpack_from(packed, at)
    at += COLUMN.size
    if width == CONSTANT:
        out[:] = first
        return at
    kind = WIDTHS[width]
    steps = np.frombuffer(packed, kind, len(out), at).astype(np.int64)
    out[:] = (np.cumsum(steps) if rising else steps) + first
    end: int = at + len(out) * kind.itemsize
    return end


SEQ, ACK, FLAGS, WINDOW, PAYLOAD, CAPTURED, LENGTH = range(len(NAMES))
MASK: Final = 0xFFFFFFFF
HALF: Final = 1 << 31
FLOWS: Final = Struct("<q")


def distances(numbers: "Int64s") -> "Int64s":
    """Distances of sequence numbers, signed (RFC 9293 section 3.4)."""
    found: Int64s = ((numbers + HALF) & MASK) - HALF
    return found


def in_directions(flow: "Int64s", captured: "Int64s") -> "tuple[Int64s, Int64s]":
    """The order of segments that puts the payloads of a direction together, and where each payload begins in that order."""
    order = np.argsort(flow, kind="stable")
    starts = np.empty(len(flow), np.int64)
    starts[order] = np.cumsum(captured[order]) - captured[order]
    return order, starts


@dataclass(slots=True)
class StrippedSegments:
    """TCP segments, one per packet, with payloads in which verified records may be blanked."""

    numbers: "Int64s"
    """int64, a row for each of `kcap.net.segment_columns.NAMES`; `payload` is a place in `data`, ordered by `in_directions`."""
    flow: "Int64s"
    """Index of each segment's flow key in `flows`."""
    flows: list[bytes]
    """Flow keys, one for each direction."""
    blanked: "Bools"
    """Whether records in the payload were blanked."""
    data: bytes
    """All payloads, then all flow keys."""

    def pack(self) -> bytes:
        """The segments as bytes, which `unpack_segments` reads."""
        order, numbers = np.argsort(self.flow, kind="stable"), self.numbers
        seq, ack, flags, window, _, captured, length = (row[order] for row in numbers)
        expected = np.concatenate([np.zeros(1, np.int64), (seq + length)[:-1]])
        columns = (
            self.flow, length, length - captured, distances(seq - expected), distances(np.diff(ack, prepend=0)), flags, window,
            np.array([len(flow) for flow in self.flows], np.int64),
        )  # fmt: skip
        parts = [FLOWS.pack(len(self.flows))]
        for column in columns:
            parts += pack_column(column, rising=False)
        return b"".join([*parts, np.packbits(self.blanked[order]).tobytes(), self.data])

    def without_flows(self, flows: "Bools") -> "tuple[StrippedSegments, Bools]":
        """The segments of the other flows, and a mask of them; `flows`: for each flow whether it is removed."""
        stay: Bools = ~flows[self.flow]
        return StrippedSegments(self.numbers[:, stay], self.flow[stay], self.flows, self.blanked[stay], self.data), stay

    def columns(self, file: int, first: int, last: int, time_ns: "Int64s", position: "Int64s") -> SegmentColumns:
        """Segments `first` to `last` as columns, numbered from 1."""
        sizes = np.array([len(flow) for flow in self.flows], np.int64)
        starts = len(self.data) - sizes.sum() + np.cumsum(sizes) - sizes
        flow = self.flow[first:last]
        return SegmentColumns(
            file, 1, self.data, np.frombuffer(self.data, np.uint8), time_ns, position,
            np.ascontiguousarray(self.numbers[:, first:last]),  # the layout that kernels are compiled for
            starts[flow], sizes[flow], np.full(last - first, CLEAN, np.uint8),
        )  # fmt: skip


def unpack_segments(packed: bytes, count: int) -> StrippedSegments:
    """The inverse of `StrippedSegments.pack`, for `count` segments."""
    (flows,) = FLOWS.unpack_from(packed)
    at, columns = FLOWS.size, np.empty((7, count), np.int64)
    for column in columns:
        at = unpack_column(packed, at, column, rising=False)
    sizes = np.empty(flows, np.int64)
    at = unpack_column(packed, at, sizes, rising=False)
    flow, length, cut, seq, ack, flags, window = columns
    bits = -(-count // 8)
    order = np.argsort(flow, kind="stable")
    numbers, blanked = np.empty((len(NAMES), count), np.int64), np.empty(count, np.bool_)
    blanked[order] = np.unpackbits(np.frombuffer(packed, np.uint8, bits, at), count=count).astype(np.bool_)
    data = packed[at + bits :]
    before = np.concatenate([np.zeros(1, np.int64), length[:-1]])
    for row, values in (
        (SEQ, np.cumsum(seq + before) & MASK), (ACK, np.cumsum(ack) & MASK), (FLAGS, flags), (WINDOW, window),
        (CAPTURED, length - cut), (LENGTH, length), (PAYLOAD, np.cumsum(length - cut) - (length - cut)),
    ):  # fmt: skip
        numbers[row, order] = values
    ends = (len(data) - sizes.sum() + np.cumsum(sizes)).tolist()
    keys = [data[end - size : end] for end, size in zip(ends, sizes.tolist())]
    return StrippedSegments(numbers, flow, keys, blanked, data)


ReadAt = Callable[[int, int, int], bytes]
"""Index of a file, offset, size -> bytes."""
Order = tuple[int, int, int]
"""Latest time so far, rank of the file, number of the packet."""

HEAD: Final = Struct("<iqq")
"""Index of the file, packets, bytes of their segments."""
COLUMNS: Final = ("number", "time_ns", "start", "head", "captured", "cut", "link", "latest")
"""For each packet: its number in the file, time (ns), file offset of its bytes, distance from its record's beginning to these,
bytes captured, bytes cut off by the snapshot length, link type, and the latest time of the file so far (ns).
"""
RISING: Final = frozenset({"number", "time_ns", "start", "latest"})
"""Columns whose differences are smaller than their values."""
AT: Final = {name: at for at, name in enumerate(COLUMNS)}


@dataclass(slots=True)
class ShardPackets:
    """A chunk: packets of one file in file order."""

    file: int
    columns: "Int64s"
    """int64, a row for each of `COLUMNS`."""
    data: bytes | None = None
    """The captured bytes of the packets, concatenated; None if they are read from the files."""
    stripped: StrippedSegments | None = None
    """The packets as stripped segments; `start` is then the offset of the packet record, and later columns are 0."""

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    def column(self, name: str) -> "Int64s":
        found: Int64s = self.columns[AT[name]]
        return found

    def pack(self) -> bytes:
        """The chunk as bytes, without `data`."""
        segments = b"" if self.stripped is None else self.stripped.pack()
        parts = [HEAD.pack(self.file, len(self), len(segments)), segments]
        for name, values in zip(COLUMNS, self.columns):
            parts += pack_column(values, rising=name in RISING)
        return b"".join(parts)


def unpack(packed: bytes, data: bytes | None = None) -> ShardPackets:
    """The inverse of `ShardPackets.pack`; `data` is what was sent along with it."""
    file, count, size = HEAD.unpack_from(packed)
    at = HEAD.size + size
    columns = np.empty((len(COLUMNS), count), np.int64)
    for name, out in zip(COLUMNS, columns):
        at = unpack_column(packed, at, out, rising=name in RISING)
    return ShardPackets(file, columns, data, unpack_segments(packed[HEAD.size : HEAD.size + size], count) if size else None)


def columns_of(batch: PacketBatch, base: int, latest: Any) -> "Int64s":
    """The columns of a batch whose buffer begins at file offset `base`; `latest` is that column, None where it equals the
    times.
    """
    count = len(batch)
    out = np.empty((len(COLUMNS), count), np.int64)
    out[AT["number"]] = np.arange(batch.first_packet, batch.first_packet + count)
    out[AT["time_ns"]] = batch.time_ns
    out[AT["start"]] = batch.start
    out[AT["start"]] += base
    out[AT["head"]] = out[AT["start"]] - np.asarray(batch.position, np.int64)
    out[AT["captured"]] = batch.captured
    out[AT["cut"]] = batch.wire
    out[AT["cut"]] -= out[AT["captured"]]
    out[AT["link"]] = batch.link
    out[AT["latest"]] = out[AT["time_ns"]] if latest is None else latest
    return out


# -- order ----------------------------------------------------------------------------------------------------------------
def ranks_of(names: Sequence[str]) -> list[int]:
    """Rank of each file among packets of the same time: by name."""
    order = sorted(range(len(names)), key=lambda at: (names[at], at))
    ranks = [0] * len(names)
    for rank, at in enumerate(order):
        ranks[at] = rank
    return ranks


def merged(chunks: Iterable[ShardPackets], ranks: Sequence[int]) -> Iterator[tuple[ShardPackets, int, int]]:
    """Yields runs of packets in capture order: a chunk, the first packet of the run, and the one after its last.

    The chunks must be in the order of their first packets.
    """
    source = iter(chunks)
    following = next(source, None)
    heap: list[tuple[Order, ShardPackets, int]] = []
    while heap or following is not None:
        while following is not None and (not heap or order_of(following, 0, ranks) <= heap[0][0]):
            heappush(heap, (order_of(following, 0, ranks), following, 0))
            following = next(source, None)
        _, chunk, first = heappop(heap)
        others = [heap[0][0]] if heap else []
        if following is not None:
            others.append(order_of(following, 0, ranks))
        last = len(chunk)
        if others:
            limit, mine = min(others), (ranks[chunk.file], int(chunk.column("number")[first]))
            side: Any = "right" if mine < limit[1:] else "left"
            last = max(first + 1, int(np.searchsorted(chunk.column("latest"), limit[0], side)))
        yield chunk, first, last
        if last < len(chunk):
            heappush(heap, (order_of(chunk, last, ranks), chunk, last))


def order_of(chunk: ShardPackets, at: int, ranks: Sequence[int]) -> Order:
    """The place of a packet of a chunk in capture order."""
    return int(chunk.column("latest")[at]), ranks[chunk.file], int(chunk.column("number")[at])


# -- bytes ----------------------------------------------------------------------------------------------------------------
def with_bytes(chunk: ShardPackets, first: int, last: int, read_at: ReadAt) -> PacketBatch:
    """Packets of a chunk with their bytes, read from the file if the chunk has none; numbered from 1.

    Raises CaptureError if the file is shorter than it was.
    """
    columns = chunk.columns[:, first:last]
    sizes = columns[AT["captured"]]
    if chunk.data is None:
        buffer, starts = _gathered(chunk.file, columns[AT["start"]], sizes, read_at)
    else:
        before, starts = int(chunk.columns[AT["captured"], :first].sum()), np.cumsum(sizes) - sizes
        buffer = chunk.data[before : before + int(sizes.sum())]
    positions = columns[AT["start"]] - columns[AT["head"]]
    links = columns[AT["link"]]
    link: Any = int(links[0]) if (links == links[0]).all() else links
    times, wire = np.ascontiguousarray(columns[AT["time_ns"]]), sizes + columns[AT["cut"]]
    made: list[Any] = [times, starts, np.ascontiguousarray(sizes), wire, positions]
    return PacketBatch(chunk.file, 1, buffer, made[0], made[1], made[2], made[3], made[4], link)


def _gathered(file: int, starts: "Int64s", sizes: "Int64s", read_at: ReadAt) -> "tuple[bytes, Int64s]":
    """The bytes of packets, and where each begins in them. Packets that are near each other in the file are read at once."""
    ends = starts + sizes
    cuts = [0, *(np.flatnonzero(starts[1:] - ends[:-1] > CHUNK_GAP_BYTES) + 1).tolist(), len(starts)]
    places, pieces, size = starts.copy(), list[bytes](), 0
    for low, high in pairwise(cuts):
        base, stop = int(starts[low]), int(ends[low:high].max())
        data = read_at(file, base, stop - base)
        if len(data) < stop - base:
            raise CaptureError(
                f"file {file} of the capture ends at byte {base + len(data)}: it was longer when it was read first"
            )
        places[low:high] += size - base
        pieces.append(data)
        size += len(data)
    buffer = b"".join(pieces)
    if size <= CHUNK_SPARSE * int(sizes.sum()):
        return buffer, places
    parts = [buffer[start:end] for start, end in zip(places.tolist(), (places + sizes).tolist())]
    return b"".join(parts), np.cumsum(sizes) - sizes
