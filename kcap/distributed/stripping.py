"""Strips the packets of a range: retains TCP segments without lower headers, and blanks records that a CRC-32C verifies.

In: segments in capture order, with their shards. Out: chunks of stripped segments. Law: a chunk holds everything that decides a
row of `exchanges`; otherwise `StrippedSegments.blanked` marks the packet, so that `BlankedReadTracker` notices a decision that
depended on blanked bytes. The records of CRC-verified batches (`kcap.records.verified`) become BLANK, and batch headers remain.
Never blanked are batches across the edge of a window; the first bytes of a connection without a SYN and the bytes after a hole,
where resync may search for a frame boundary; and KRaft's metadata log, which names topics.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kcap.distributed.chunks import AT, CAPTURED, FLAGS, PAYLOAD, SEQ, ShardPackets, StrippedSegments, distances, in_directions
from kcap.facts.topic_names import LOG_MARKS
from kcap.limits import (
    STRIPPED_BYTES,
    STRIPPED_CHUNK_BYTES,
    STRIPPED_FIRST_BYTES,
    STRIPPED_GAP_BYTES,
    STRIPPED_MIDSTREAM_BYTES,
    STRIPPED_PACKETS,
)
from kcap.net.segment_columns import SegmentColumns, columns_of
from kcap.net.tcp import SYN
from kcap.records.verified import can_verify, find_verified

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.model import SegmentBatch
    from kcap.net.segment_columns import SegmentColumns

    Bools = NDArray[np.bool_]
    Bytes = NDArray[np.uint8]
    Int64s = NDArray[np.int64]


def gather(source: "Bytes", starts: "Int64s", sizes: "Int64s", out: "Bytes", *, compiled: bool) -> None:
    """Copies spans of `source`, concatenated, to the beginning of `out`. The compiled way gives the result of the plain one."""
    if compiled:
        from kcap.capture.record_kernels import copy_pieces

        copy_pieces(source, starts, sizes, out)
        return
    view = memoryview(source.data)
    pieces = b"".join([view[start : start + size] for start, size in zip(starts.tolist(), sizes.tolist())])
    out[: len(pieces)] = np.frombuffer(pieces, np.uint8)


def directions_of(columns: "SegmentColumns", where: "Int64s", keys: "Int64s") -> "tuple[list[bytes], Int64s, Int64s]":
    """The distinct flow keys (one for each direction) of some segments, the first segment of each, and each segment's key.

    `where`: indexes of the segments; `keys`: their flow numbers (`kcap.distributed.flow_shards`), the same for both directions.
    """
    sizes = columns.flow_size[where]
    if not columns.flows and sizes.min() == sizes.max():
        rows: Any = columns.data[columns.flow_at[where][:, None] + np.arange(int(sizes[0]))]
        ends = rows[:, -8:].copy().view("<i8")[:, 0]  # the destination address and the ports, which differ between directions
        _, first, own = np.unique(keys ^ ends, return_index=True, return_inverse=True)
        if (rows[first][own] == rows).all():
            return [rows[at].tobytes() for at in first.tolist()], first, own
    places: dict[bytes, int] = {}
    heads: list[int] = []
    inverse: list[int] = []
    for at, key in enumerate(columns.lists(where).flow):
        place = places.setdefault(key, len(places))
        if place == len(heads):
            heads.append(at)
        inverse.append(place)
    return list(places), np.array(heads, np.int64), np.array(inverse, np.int64)


BLANK: Final = 0xFF
"""Value of blanked bytes. Read as a length prefix it is negative, so that no frame boundary is found among them."""


@dataclass(slots=True)
class StrippedDirection:
    """One direction of a flow within the range. Positions count from the first sequence number seen."""

    base: int
    fresh: bool
    """Whether its flow is in no earlier range and no SYN was seen, so that it may begin within a frame."""
    next: int | None = None
    """Position after the last byte seen; None before the first."""
    unstripped_to: int = 0
    """Position before which no byte is blanked."""


class StripWindow:
    """The packets that are stripped together, with their payloads."""

    def __init__(self) -> None:
        self.columns: list[Int64s] = []
        self.numbers: list[Int64s] = []
        self.shards: list[Int64s] = []
        self.flows: list[Int64s] = []
        self.packets = self.top = 0
        self._data = np.empty(STRIPPED_FIRST_BYTES, np.uint8)

    @property
    def full(self) -> bool:
        """Whether it is large enough to make chunks of it."""
        return self.top >= STRIPPED_BYTES or self.packets >= STRIPPED_PACKETS

    @property
    def data(self) -> "Bytes":
        """Payloads in the order of the packets."""
        return self._data[: self.top]

    def payloads(self, source: "Bytes", starts: "Int64s", sizes: "Int64s", *, compiled: bool) -> None:
        """Appends payloads: spans of `source`."""
        self.packets += len(sizes)
        end = self.top + int(sizes.sum())
        if end > len(self._data):
            data = np.empty(max(end, 2 * len(self._data)), np.uint8)
            data[: self.top] = self.data
            self._data = data
        gather(source, starts, sizes, self._data[self.top : end], compiled=compiled)
        self.top = end


class Stripper:
    """Strips the packets of one range."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._places: dict[bytes, int] = {}
        """Flow key of a direction -> its index in `_directions`."""
        self._directions: list[StrippedDirection] = []
        self._window = StripWindow()
        self._compiled = False

    def take(
        self, columns: "Int64s", shards: "Int64s", keys: "Int64s", found: "SegmentBatch | SegmentColumns", fresh: "Bools"
    ) -> None:
        """Takes packets by their chunk columns, shards and flow numbers.

        `found`: their segments, perhaps among others; `fresh`: whether the flow is in no earlier range.
        """
        self._compiled = isinstance(found, SegmentColumns)
        if not isinstance(found, SegmentColumns):
            found = columns_of(found)
        where, window = columns[AT["number"]] - found.first_packet, self._window
        numbers = found.numbers[:, where]
        source, starts = found.data, numbers[PAYLOAD]
        for at, other in found.others.items():
            starts[where == at] += len(source)
            source = np.concatenate([source, np.frombuffer(other, np.uint8)])
        window.payloads(source, starts, numbers[CAPTURED], compiled=self._compiled)
        window.flows.append(self._flows(directions_of(found, where, keys), numbers, fresh))
        window.columns.append(columns)
        window.numbers.append(numbers)
        window.shards.append(shards)

    @property
    def full(self) -> bool:
        """Whether `chunks` should be called."""
        return self._window.full

    def _flows(self, directions: "tuple[list[bytes], Int64s, Int64s]", numbers: "Int64s", fresh: "Bools") -> "Int64s":
        keys, first, own = directions
        for key, at in zip(keys, first.tolist()):
            if key not in self._places:
                self._places[key] = len(self._directions)
                self._directions.append(StrippedDirection(int(numbers[SEQ, at]), bool(fresh[at])))
        out: Int64s = np.array([self._places[key] for key in keys], np.int64)[own]
        for place in np.unique(out[numbers[FLAGS] & SYN != 0]).tolist():
            self._directions[place].fresh = False
        return out

    def chunks(self) -> Iterator[tuple[int, ShardPackets]]:
        """Chunks of the packets taken since the last call, each with the number of its shard."""
        window, self._window = self._window, StripWindow()
        if not window.flows:
            return
        columns, numbers = (np.concatenate(parts, axis=1) for parts in (window.columns, window.numbers))
        shards, flow = np.concatenate(window.shards), np.concatenate(window.flows)
        columns[AT["start"]] -= columns[AT["head"]]
        columns[[AT[name] for name in ("head", "captured", "cut", "link")]] = 0
        payloads = StrippedPayloads(flow, numbers, window.data, self._directions, compiled=self._compiled)
        if can_verify(compiled=self._compiled):
            payloads.blank()
        blanked, captured = payloads.blanked(), numbers[CAPTURED]
        keys = list(self._places)
        for shard in np.unique(shards).tolist():
            places = np.flatnonzero(shards == shard)
            parts = (np.cumsum(captured[places]) - captured[places]) // STRIPPED_CHUNK_BYTES
            cuts = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(places)]
            for low, high in pairwise(cuts):
                some = places[low:high]
                known, own = np.unique(flow[some], return_inverse=True)
                order, starts = in_directions(own, captured[some])
                own_numbers: Any = numbers[:, some]
                own_numbers[PAYLOAD] = starts
                flows = [keys[at] for at in known.tolist()]
                data = payloads.of(some[order]) + b"".join(flows)
                stripped = StrippedSegments(own_numbers, own, flows, blanked[some], data)
                yield shard, ShardPackets(self._file, columns[:, some], None, stripped)


class StrippedPayloads:
    """The payloads of a window in stream order, each stream byte once, with the records of verified batches blanked."""

    def __init__(
        self, flow: "Int64s", numbers: "Int64s", source: "Bytes", directions: list[StrippedDirection], *, compiled: bool
    ) -> None:
        self._directions = directions
        self._compiled = compiled
        self._captured = numbers[CAPTURED]
        self._source, self._source_at = source, np.cumsum(self._captured) - self._captured
        carry = np.flatnonzero(self._captured)
        bases = np.array([direction.base for direction in directions], np.int64)
        places = distances(numbers[SEQ] + (numbers[FLAGS] & SYN != 0) - bases[flow])
        order = carry[np.lexsort((carry, places[carry], flow[carry]))]
        self._flow, self._place, sizes = flow[order], places[order], self._captured[order]
        again = np.zeros(len(order), np.bool_)
        alike = (np.diff(self._flow) == 0) & (np.diff(self._place) == 0) & (np.diff(sizes) == 0)
        for at in (np.flatnonzero(alike) + 1).tolist():
            again[at] = np.array_equal(self._piece(order[at]), self._piece(order[at - 1]))
        once = ~again
        self._flow, self._place, self._sizes, self._order = (part[once] for part in (self._flow, self._place, sizes, order))
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._bytes = bytearray(int(self._sizes.sum()))
        """Every payload once; those of a stream are adjacent."""
        self._data = np.frombuffer(self._bytes, np.uint8)
        gather(source, self._source_at[self._order], self._sizes, self._data, compiled=compiled)
        self._at = np.zeros(len(flow), np.int64)
        self._at[order] = self._starts[np.cumsum(once) - 1]
        self._zones: Int64s = np.empty((0, 2), np.int64)

    def of(self, which: "Int64s") -> bytes:
        """The payloads of some packets, concatenated."""
        sizes = self._captured[which]
        out = np.empty(int(sizes.sum()), np.uint8)
        gather(self._data, self._at[which], sizes, out, compiled=self._compiled)
        return out.tobytes()

    def blank(self) -> None:
        """Blanks the records of verified batches."""
        if not len(self._flow):
            return
        zones = find_verified(self._data, self._stretches(), compiled=self._compiled)
        for low, high in zones.tolist():
            self._data[low:high] = BLANK
        self._zones = self._without_logs(zones)

    def blanked(self) -> "Bools":
        """For each packet, whether any byte of its payload is blanked."""
        if not len(self._zones):
            return np.zeros(len(self._at), np.bool_)
        behind = np.searchsorted(self._zones[:, 1], self._at, "right")
        begins = self._zones[np.minimum(behind, len(self._zones) - 1), 0]
        found: Bools = (behind < len(self._zones)) & (begins < self._at + self._captured)
        return found

    def _piece(self, at: int) -> "Bytes":
        start: int = self._source_at[at]
        return self._source[start : start + self._captured[at]]

    def _stretches(self) -> "Int64s":
        """Contiguous ranges of streams as rows (start, end, first position at which a batch may be blanked)."""
        flow, place = self._flow, self._place
        ends = place + self._sizes  # bytes that the snapshot length cut off are a hole
        breaks = np.ones(len(flow), np.bool_)
        breaks[1:] = (np.diff(flow) != 0) | (place[1:] != ends[:-1])
        begins = np.flatnonzero(breaks)
        stops = np.append(begins[1:], len(flow))
        out = np.empty((len(begins), 3), np.int64)
        out[:, 0] = self._starts[begins]
        out[:, 1] = (self._starts + self._sizes)[stops - 1]
        for row, (begin, stop) in enumerate(zip(begins.tolist(), stops.tolist())):
            direction, start = self._directions[flow[begin]], int(place[begin])
            if direction.next is None:
                direction.unstripped_to = start + STRIPPED_MIDSTREAM_BYTES if direction.fresh else 0
            elif start > direction.next:
                direction.unstripped_to = start + STRIPPED_GAP_BYTES
            out[row, 2] = out[row, 0] + max(0, direction.unstripped_to - start)
            direction.next = max(direction.next or 0, int(ends[stop - 1]))
        return out

    def _without_logs(self, zones: "Int64s") -> "Int64s":
        """The zones of directions without KRaft's metadata log; the bytes of directions with it are restored."""
        if not len(zones):
            return zones
        cuts = [*np.flatnonzero(np.diff(self._flow, prepend=-1)).tolist(), len(self._flow)]
        blanked = np.ones(len(zones), np.bool_)
        for low, high in pairwise(cuts):
            start, end = int(self._starts[low]), int(self._starts[high - 1] + self._sizes[high - 1])
            if any(self._bytes.find(mark, start, end) >= 0 for mark in LOG_MARKS):
                some = self._order[low:high]
                gather(
                    self._source, self._source_at[some], self._captured[some], self._data[start:end], compiled=self._compiled
                )
                blanked &= (zones[:, 0] < start) | (zones[:, 0] >= end)
        return zones[blanked]
