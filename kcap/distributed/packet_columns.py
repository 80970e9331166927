"""Packets of one share of a file, without what they carry: columns that are small enough to be sent between machines.

In: columns of packets. Out: a chunk as bytes and back, and chunks of several files in the order in which a capture hands their
packets on. Law: merged chunks give the order of `kcap.capture.fileset`: by the latest time so far of each file, ties by name; a
chunk that was packed and unpacked is the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kcap.distributed.packing import pack_column, unpack_column
from kcap.distributed.stripped_segments import StrippedSegments, unpack_segments
from kcap.errors import CaptureError
from kcap.limits import CHUNK_GAP_BYTES, CHUNK_SPARSE
from kcap.model import PacketBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

ReadAt = Callable[[int, int, int], bytes]
"""Index of a file, offset, size -> bytes."""
Order = tuple[int, int, int]
"""Latest time so far, rank of the file, number of the packet."""

HEAD: Final = Struct("<iqq")
"""Index of the file, packets, bytes of their segments."""
COLUMNS: Final = ("number", "time_ns", "start", "head", "captured", "cut", "link", "latest")
"""What is kept of each packet: number in the file, time, where its bytes begin in the file, how far before that its record
does, bytes captured, bytes cut off, link type, and the latest time of the file so far."""
RISING: Final = frozenset({"number", "time_ns", "start", "latest"})
"""Columns whose steps are smaller than their values."""
AT: Final = {name: at for at, name in enumerate(COLUMNS)}


@dataclass(slots=True)
class ShardPackets:
    """Packets of one file in their order."""

    file: int
    columns: "Int64s"
    """A row each of `COLUMNS`."""
    data: bytes | None = None
    """What the packets carry, one after the other, where that travels with them."""
    stripped: StrippedSegments | None = None
    """Of packets that travel as the segments that they are, `start` is where their records begin; nothing more is known."""

    def __len__(self) -> int:
        return int(self.columns.shape[1])

    def column(self, name: str) -> "Int64s":
        """One of the columns."""
        found: Int64s = self.columns[AT[name]]
        return found

    def pack(self) -> bytes:
        """The chunk without its data."""
        segments = b"" if self.stripped is None else self.stripped.pack()
        parts = [HEAD.pack(self.file, len(self), len(segments)), segments]
        for name, values in zip(COLUMNS, self.columns):
            parts += pack_column(values, rising=name in RISING)
        return b"".join(parts)


def unpack(packed: bytes, data: bytes | None = None) -> ShardPackets:
    """What `ShardPackets.pack` gave."""
    file, count, size = HEAD.unpack_from(packed)
    at = HEAD.size + size
    columns = np.empty((len(COLUMNS), count), np.int64)
    for name, out in zip(COLUMNS, columns):
        at = unpack_column(packed, at, out, rising=name in RISING)
    return ShardPackets(file, columns, data, unpack_segments(packed[HEAD.size : HEAD.size + size], count) if size else None)


def columns_of(batch: PacketBatch, base: int, latest: Any) -> "Int64s":
    """The columns of a batch whose buffer begins at a place of its file; `latest` as `COLUMNS` has it, None for the times."""
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
    """Which file comes before which where their packets have the same time."""
    order = sorted(range(len(names)), key=lambda at: (names[at], at))
    ranks = [0] * len(names)
    for rank, at in enumerate(order):
        ranks[at] = rank
    return ranks


def merged(chunks: Iterable[ShardPackets], ranks: Sequence[int]) -> Iterator[tuple[ShardPackets, int, int]]:
    """Runs of packets in the order of the capture: a chunk, its first packet of the run and the one behind its last.

    The chunks come in the order of their first packets.
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
    """When a packet of a chunk has its turn."""
    return int(chunk.column("latest")[at]), ranks[chunk.file], int(chunk.column("number")[at])


# -- bytes ----------------------------------------------------------------------------------------------------------------
def with_bytes(chunk: ShardPackets, first: int, last: int, read_at: ReadAt) -> PacketBatch:
    """Packets of a chunk with what they carry, read from their file where it did not come along; numbered from 1.

    Raises CaptureError where the file has less than it had.
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
    """The bytes of packets and where each begins in them; what lies close together in the file is read at once."""
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
