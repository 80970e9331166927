"""TCP segments on their way between machines: what their headers say, and their payloads without what nobody looks at.

In: segments as columns. Out: bytes and back. Law: what was packed comes out; payloads of one direction stand one behind the
other, which is how they compress.
"""

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Final

import numpy as np

from kcap.distributed.packing import pack_column, unpack_column
from kcap.net.segment_columns import CLEAN, NAMES, SegmentColumns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Int64s = NDArray[np.int64]

SEQ, ACK, FLAGS, WINDOW, PAYLOAD, CAPTURED, LENGTH = range(len(NAMES))
MASK: Final = 0xFFFFFFFF
HALF: Final = 1 << 31
HEAD: Final = Struct("<q")


def distances(numbers: "Int64s") -> "Int64s":
    """Distances of sequence numbers, signed (RFC 9293 section 3.4)."""
    found: Int64s = ((numbers + HALF) & MASK) - HALF
    return found


def in_directions(flow: "Int64s", captured: "Int64s") -> "tuple[Int64s, Int64s]":
    """Segments in the order in which their payloads stand, and where each of these begins."""
    order = np.argsort(flow, kind="stable")
    starts = np.empty(len(flow), np.int64)
    starts[order] = np.cumsum(captured[order]) - captured[order]
    return order, starts


@dataclass(slots=True)
class StrippedSegments:
    """Segments, one a packet."""

    numbers: "Int64s"
    """A row each of `kcap.net.segment_columns.NAMES`; `payload` is a place in `data`, as `in_directions` has it."""
    flow: "Int64s"
    """Which of the flows."""
    flows: list[bytes]
    """Flow keys of directions."""
    blanked: "Bools"
    """Records of its payload were blanked."""
    data: bytes
    """Payloads, then flow keys."""

    def pack(self) -> bytes:
        """All of it."""
        order, numbers = np.argsort(self.flow, kind="stable"), self.numbers
        seq, ack, flags, window, _, captured, length = (row[order] for row in numbers)
        expected = np.concatenate([np.zeros(1, np.int64), (seq + length)[:-1]])
        columns = (
            self.flow, length, length - captured, distances(seq - expected), distances(np.diff(ack, prepend=0)), flags, window,
            np.array([len(flow) for flow in self.flows], np.int64),
        )  # fmt: skip
        parts = [HEAD.pack(len(self.flows))]
        for column in columns:
            parts += pack_column(column, rising=False)
        return b"".join([*parts, np.packbits(self.blanked[order]).tobytes(), self.data])

    def without(self, flows: "Bools") -> "tuple[StrippedSegments, Bools]":
        """The segments that are not of some of the flows, and which these are."""
        stay: Bools = ~flows[self.flow]
        return StrippedSegments(self.numbers[:, stay], self.flow[stay], self.flows, self.blanked[stay], self.data), stay

    def columns(self, file: int, first: int, last: int, time_ns: "Int64s", position: "Int64s") -> SegmentColumns:
        """Segments from one to another, numbered from 1."""
        sizes = np.array([len(flow) for flow in self.flows], np.int64)
        starts = len(self.data) - sizes.sum() + np.cumsum(sizes) - sizes
        flow = self.flow[first:last]
        return SegmentColumns(
            file, 1, self.data, np.frombuffer(self.data, np.uint8), time_ns, position,
            np.ascontiguousarray(self.numbers[:, first:last]),  # as the compiled loops know it
            starts[flow], sizes[flow], np.full(last - first, CLEAN, np.uint8),
        )  # fmt: skip


def unpack_segments(packed: bytes, count: int) -> StrippedSegments:
    """What `StrippedSegments.pack` gave for so many segments."""
    (flows,) = HEAD.unpack_from(packed)
    at, columns = HEAD.size, np.empty((7, count), np.int64)
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
