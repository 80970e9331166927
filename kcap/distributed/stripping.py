"""Packets of a range made into segments that travel light: no headers below TCP, and no records that a checksum vouches for.

In: segments in capture order, with their shares. Out: chunks. Law: what travels has whatever decides a row of `exchanges`, or
`StrippedSegments.blanked` tells that it may not, so that whoever looks at blanked bytes knows. Of batches that their CRC-32C
proves (`kcap.records.verified`) all but the header becomes BLANK. Left as they are: batches that go over the edge of a window;
what comes first of a connection without its SYN, and what is behind a hole, where a frame boundary may have to be searched for;
KRaft's log, which names topics.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kcap.distributed.packet_columns import AT, ShardPackets
from kcap.distributed.pieces import directions_of, gather
from kcap.distributed.stripped_segments import CAPTURED, FLAGS, PAYLOAD, SEQ, StrippedSegments, distances, in_directions
from kcap.facts.topic_names import LOG_MARKS
from kcap.limits import STRIPPED_BYTES, STRIPPED_CHUNK_BYTES, STRIPPED_GAP_BYTES, STRIPPED_MIDSTREAM_BYTES, STRIPPED_PACKETS
from kcap.net.segment_columns import SegmentColumns, columns_of
from kcap.net.tcp import SYN
from kcap.records.verified import can_prove, proven

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.model import SegmentBatch

    Bytes = NDArray[np.uint8]
    Bools = NDArray[np.bool_]
    Int64s = NDArray[np.int64]

FIRST_BYTES: Final = 1 << 20
"""Room for payloads at first."""
BLANK: Final = 0xFF
"""Where a length prefix is looked for it is a negative number: who reads it knows that it is none."""


@dataclass(slots=True)
class Direction:
    """One direction of a flow, as far as the range shows it; places count from the first number seen."""

    base: int
    fresh: bool
    """It is not known from an earlier range, and its SYN was not seen."""
    next: int | None = None
    """Behind the last byte seen."""
    whole: int = 0
    """Up to where bytes stay as they are."""


class StripWindow:
    """What is seen at once: packets, a row or an entry each."""

    def __init__(self) -> None:
        self.columns: list[Int64s] = []
        self.numbers: list[Int64s] = []
        self.shares: list[Int64s] = []
        self.flows: list[Int64s] = []
        self.packets = self.top = 0
        self._data = np.empty(FIRST_BYTES, np.uint8)

    @property
    def full(self) -> bool:
        """Enough for chunks."""
        return self.top >= STRIPPED_BYTES or self.packets >= STRIPPED_PACKETS

    @property
    def data(self) -> "Bytes":
        """Payloads in the order of the packets."""
        return self._data[: self.top]

    def payloads(self, source: "Bytes", starts: "Int64s", sizes: "Int64s", *, compiled: bool) -> None:
        """More of them."""
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
        """Flow key of a direction -> its place among all."""
        self._directions: list[Direction] = []
        self._window = StripWindow()
        self._compiled = False

    def take(
        self, columns: "Int64s", shares: "Int64s", keys: "Int64s", found: "SegmentBatch | SegmentColumns", fresh: "Bools"
    ) -> None:
        """Packets by their chunk columns and the numbers of their flows; `found` has their segments and may have others,
        `fresh` says whose flow is of no earlier range."""
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
        window.shares.append(shares)

    @property
    def full(self) -> bool:
        """Chunks should be made."""
        return self._window.full

    def _flows(self, directions: "tuple[list[bytes], Int64s, Int64s]", numbers: "Int64s", fresh: "Bools") -> "Int64s":
        keys, first, own = directions
        for key, at in zip(keys, first.tolist()):
            if key not in self._places:
                self._places[key] = len(self._directions)
                self._directions.append(Direction(int(numbers[SEQ, at]), bool(fresh[at])))
        out: Int64s = np.array([self._places[key] for key in keys], np.int64)[own]
        for place in np.unique(out[numbers[FLAGS] & SYN != 0]).tolist():
            self._directions[place].fresh = False
        return out

    def chunks(self) -> Iterator[tuple[int, ShardPackets]]:
        """Shares and their packets, of what was taken since the last call."""
        window, self._window = self._window, StripWindow()
        if not window.flows:
            return
        columns, numbers = (np.concatenate(parts, axis=1) for parts in (window.columns, window.numbers))
        shares, flow = np.concatenate(window.shares), np.concatenate(window.flows)
        columns[AT["start"]] -= columns[AT["head"]]
        columns[[AT[name] for name in ("head", "captured", "cut", "link")]] = 0
        payloads = StrippedPayloads(flow, numbers, window.data, self._directions, compiled=self._compiled)
        if can_prove(compiled=self._compiled):
            payloads.blank()
        blanked, captured = payloads.blanked(), numbers[CAPTURED]
        keys = list(self._places)
        for share in np.unique(shares).tolist():
            places = np.flatnonzero(shares == share)
            parts = (np.cumsum(captured[places]) - captured[places]) // STRIPPED_CHUNK_BYTES
            cuts = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(places)]
            for low, high in pairwise(cuts):
                some = places[low:high]
                known, own = np.unique(flow[some], return_inverse=True)
                order, starts = in_directions(own, captured[some])
                kept: Any = numbers[:, some]
                kept[PAYLOAD] = starts
                flows = [keys[at] for at in known.tolist()]
                data = payloads.of(some[order]) + b"".join(flows)
                yield (
                    share,
                    ShardPackets(self._file, columns[:, some], None, StrippedSegments(kept, own, flows, blanked[some], data)),
                )


class StrippedPayloads:
    """The payloads of a window in the order of their streams, and what of them is blanked."""

    def __init__(
        self, flow: "Int64s", numbers: "Int64s", source: "Bytes", directions: list[Direction], *, compiled: bool
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
        """Each once, those of a stream one behind the other."""
        self._data = np.frombuffer(self._bytes, np.uint8)
        gather(source, self._source_at[self._order], self._sizes, self._data, compiled=compiled)
        self._at = np.zeros(len(flow), np.int64)
        self._at[order] = self._starts[np.cumsum(once) - 1]
        self._zones: Int64s = np.empty((0, 2), np.int64)

    def of(self, which: "Int64s") -> bytes:
        """Payloads of some packets."""
        sizes = self._captured[which]
        out = np.empty(int(sizes.sum()), np.uint8)
        gather(self._data, self._at[which], sizes, out, compiled=self._compiled)
        return out.tobytes()

    def blank(self) -> None:
        """Blanks the records of proven batches."""
        if not len(self._flow):
            return
        zones = proven(self._data, self._stretches(), compiled=self._compiled)
        for low, high in zones.tolist():
            self._data[low:high] = BLANK
        self._zones = self._without_logs(zones)

    def blanked(self) -> "Bools":
        """Packets of whose payload something is blank."""
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
        """Bytes that follow each other in a stream, and from where on batches in them count."""
        flow, place = self._flow, self._place
        ends = place + self._sizes  # what the snapshot length cut off is a hole
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
                direction.whole = start + STRIPPED_MIDSTREAM_BYTES if direction.fresh else 0
            elif start > direction.next:
                direction.whole = start + STRIPPED_GAP_BYTES
            out[row, 2] = out[row, 0] + max(0, direction.whole - start)
            direction.next = max(direction.next or 0, int(ends[stop - 1]))
        return out

    def _without_logs(self, zones: "Int64s") -> "Int64s":
        """The zones of directions that do not fetch KRaft's log; those of others are what they were."""
        if not len(zones):
            return zones
        cuts = [*np.flatnonzero(np.diff(self._flow, prepend=-1)).tolist(), len(self._flow)]
        kept = np.ones(len(zones), np.bool_)
        for low, high in pairwise(cuts):
            start, end = int(self._starts[low]), int(self._starts[high - 1] + self._sizes[high - 1])
            if any(self._bytes.find(mark, start, end) >= 0 for mark in LOG_MARKS):
                some = self._order[low:high]
                gather(
                    self._source, self._source_at[some], self._captured[some], self._data[start:end], compiled=self._compiled
                )
                kept &= (zones[:, 0] < start) | (zones[:, 0] >= end)
        return zones[kept]
