"""Reassembles IP fragments into datagrams, within bounds.

A datagram is delivered with the packet that completes it. Where fragments overlap, the one with the lower offset wins. Law:
every datagram that is given up is reported, and the table can be pickled. If the snapshot length cut a fragment, the known part
of its datagram ends there.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from kcap.limits import FRAGMENT_BYTES_MAX, FRAGMENT_DATAGRAMS_MAX, FRAGMENT_WAIT_NS
from kcap.net.packet_cursor import Report
from kcap.weird import WeirdKind


class FragmentPlace(NamedTuple):
    """Where a packet was seen."""

    file: int
    packet: int
    position: int
    time_ns: int


@dataclass(slots=True)
class Datagram:
    """The fragments of one datagram so far, by offset as (captured bytes, length on the wire)."""

    first: FragmentPlace
    pieces: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    length: int | None = None
    received: int = 0
    reached: int = 0
    """Number of bytes from the beginning up to the first hole."""
    apart: list[int] = field(default_factory=list)
    """Heap of the offsets of pieces behind the first hole."""
    copy: bool = False
    """Whether the same datagram was completed before. These fragments were then captured twice, and nothing is missing."""

    def add(self, offset: int, data: bytes, size: int) -> None:
        """Adds a piece; the first one at an offset wins."""
        if offset in self.pieces:
            return
        self.pieces[offset] = (data, size)
        self.received += size
        heappush(self.apart, offset)
        while self.apart and self.apart[0] <= self.reached:
            start = heappop(self.apart)
            self.reached = max(self.reached, start + self.pieces[start][1])

    def join(self) -> tuple[bytes, int] | None:
        """Returns the captured beginning of the payload and the payload's length; None while a piece is missing."""
        if self.length is None or self.reached < self.length:
            return None
        at, known, out = 0, True, bytearray()
        for start in sorted(self.pieces):
            data, size = self.pieces[start]
            if start + size <= at:
                continue
            if start > at or at >= self.length:
                break
            if known:
                out += data[at - start : size]
                known = len(data) >= size
            at = start + size
        return bytes(out[: self.length]), self.length


@dataclass(slots=True)
class FragmentTable:
    """Incomplete datagrams by key, oldest first."""

    datagrams: dict[Hashable, Datagram] = field(default_factory=dict)
    completed: dict[Hashable, int] = field(default_factory=dict)
    """Key of each recently completed datagram -> time of its completion, ns."""

    def add(
        self, key: Hashable, offset: int, more: bool, data: bytes, size: int, place: FragmentPlace, report: Report
    ) -> tuple[bytes, int] | None:
        """Adds a fragment of `size` bytes, of which `data` were captured. Returns the payload of a datagram that it
        completes."""
        self._expire(place.time_ns, report)
        datagram = self.datagrams.get(key)
        if datagram is None:
            if len(self.datagrams) >= FRAGMENT_DATAGRAMS_MAX:
                self._give_up(next(iter(self.datagrams)), WeirdKind.FRAGMENTS_LIMIT, report)
            done = self.completed.get(key)
            copy = done is not None and place.time_ns - done <= FRAGMENT_WAIT_NS
            datagram = self.datagrams[key] = Datagram(place, copy=copy)
        datagram.add(offset, data, size)
        if not more and datagram.length is None:
            datagram.length = offset + size
        whole = datagram.join()
        if whole is not None:
            del self.datagrams[key]
            self.completed.pop(key, None)
            self.completed[key] = place.time_ns
            if len(self.completed) > FRAGMENT_DATAGRAMS_MAX:
                del self.completed[next(iter(self.completed))]
        elif datagram.received > FRAGMENT_BYTES_MAX:
            self._give_up(key, WeirdKind.FRAGMENTS_LIMIT, report)
        return whole

    def finish(self, report: Report) -> None:
        for key in list(self.datagrams):
            self._give_up(key, WeirdKind.FRAGMENTS_INCOMPLETE, report)

    def _expire(self, time_ns: int, report: Report) -> None:
        while self.datagrams:
            key, oldest = next(iter(self.datagrams.items()))
            if time_ns - oldest.first.time_ns <= FRAGMENT_WAIT_NS:
                return
            self._give_up(key, WeirdKind.FRAGMENTS_INCOMPLETE, report)

    def _give_up(self, key: Hashable, kind: WeirdKind, report: Report) -> None:
        datagram = self.datagrams.pop(key)
        if datagram.copy:
            return
        length = "an unknown number of" if datagram.length is None else datagram.length
        first = datagram.first
        report(kind, f"{datagram.received} of {length} bytes", first.file, first.packet, first.position)
