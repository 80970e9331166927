"""Resync: searches for a frame boundary in bytes whose alignment is lost.

In: pieces of one direction's stream, and holes. Out: the pieces from the boundary on, to be read again as frames. Law: nothing
is lost; every byte is returned, held, or counted in `skipped`.
"""

from bisect import bisect_right
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import NamedTuple, Protocol

from kcap import limits
from kcap.limits import RESYNC_PIECE_BYTES

SHORTEST = 14
"""Number of bytes needed to distinguish a boundary from noise: the fixed head of a request."""

END_OF = itemgetter(1)


def enough(seen: int, size: int) -> bool:
    """Whether `seen` bytes of a stream are evidence for a frame of `size` bytes: the more are missing, the more are needed."""
    missing = size - seen
    return missing <= 0 or seen >= limits.EVIDENCE_BYTES * (missing // limits.EVIDENCE_STEP).bit_length()


NO_PACKET = -1
"""Packet reference of a piece that is a hole."""


class Piece(NamedTuple):
    """Stream bytes with the packet that carried them; `data` is shorter than `length` if the snapshot length cut the packet."""

    offset: int
    data: bytes
    length: int
    time_ns: int
    ref: int
    position: int


class Region:
    """Stream bytes from one offset on. Bytes that were not captured are zeros, and `holes` lists them."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.holes: list[tuple[int, int]] = []
        self.starts: set[int] = set()
        """Positions at which segments begin."""
        self.needed = 0
        """Size of the region from which on the last `comes` that was true may become false."""
        self.ended = False
        """Whether a hole came since the flag was last cleared; positions that waited for more bytes then get none."""

    def __len__(self) -> int:
        return len(self.data)

    def have(self, at: int) -> int:
        """Number of contiguous captured bytes from `at` on."""
        place = bisect_right(self.holes, at, key=END_OF)
        if place == len(self.holes):
            return max(0, len(self.data) - at)
        return max(0, self.holes[place][0] - at)

    def comes(self, at: int, size: int) -> bool:
        """Whether further bytes of the stream could still make `size` captured bytes at `at`."""
        more = at + size > len(self.data) and at + self.have(at) >= len(self.data)
        if more:
            self.needed = at + size
        return more

    def captured(self, start: int) -> Iterable[tuple[int, int]]:
        """The contiguous captured ranges from `start` on."""
        for place in range(bisect_right(self.holes, start, key=END_OF), len(self.holes)):
            low, high = self.holes[place]
            if start < low:
                yield start, low
            start = max(start, high)
        if start < len(self.data):
            yield start, len(self.data)

    def add(self, piece: Piece) -> None:
        self.starts.add(len(self.data))
        self.data += piece.data
        self.hole(piece.length - len(piece.data))

    def hole(self, length: int) -> None:
        """Adds bytes that were not captured."""
        if length > 0:
            start = len(self.data)
            self.data += bytes(length)
            if self.holes and self.holes[-1][1] == start:
                start = self.holes.pop()[0]
            self.holes.append((start, len(self.data)))
            self.ended = True

    def drop(self, size: int) -> None:
        """Removes the first bytes."""
        del self.data[:size]
        self.holes = [(max(0, start - size), end - size) for start, end in self.holes if end > size]
        self.starts = {start - size for start in self.starts if start >= size}


class BoundaryTest(Protocol):
    """What a direction knows about where frames start."""

    @property
    def resync_room(self) -> int:
        """Number of bytes that a resync may hold."""

    def resynced_over(self, size: int) -> None:
        """A resync takes `size` more bytes of the stream; it may have taken them before."""

    def resync_holds(self, change: int) -> None:
        """The number of bytes that a resync holds changed by `change`."""

    def candidates(self, region: Region, start: int) -> Iterable[int]: ...

    def is_boundary(self, region: Region, at: int, final: bool, first: bool) -> bool | None: ...


class BoundarySearch:
    """One resync. `first`: it starts where the capture of the stream starts. `refuse`: its first byte is no boundary."""

    def __init__(self, direction: BoundaryTest, first: bool = False, refuse: bool = False) -> None:
        self.direction = direction
        self.first = first
        self.sought: set[int] | None = None
        """Correlation ids that it has searched for; None before the search."""
        self.region = Region()
        self.pieces: list[Piece] = []
        """The pieces so far; holes are pieces without data."""
        self.waiting: set[int] = set()
        """Positions that need more bytes, or that wait for such a position before them."""
        self._wake: list[tuple[int, int]] = []
        """Heap of the waiting positions, by the size of the region from which on each is checked again."""
        self._starts: list[int] = []
        """Heap of the waiting positions at which segments begin; some of them no longer wait."""
        self.scanned = 1 if refuse else 0
        self.skipped = 0
        self.limited = False
        self.at_start = False
        """Whether the boundary was found where the resync began, so that no byte was skipped."""

    @property
    def size(self) -> int:
        """Memory of the bytes and of their pieces, bytes."""
        return len(self.region) + RESYNC_PIECE_BYTES * len(self.pieces)

    @property
    def held(self) -> int:
        """Number of stream bytes held."""
        return sum(p.length for p in self.pieces if p.ref != NO_PACKET)

    def data(self, piece: Piece) -> list[Piece] | None:
        """Takes more bytes; returns the pieces from the boundary on once it is found."""
        self.pieces.append(piece)
        self.region.add(piece)
        self.direction.resynced_over(piece.length)
        self.direction.resync_holds(piece.length + RESYNC_PIECE_BYTES)
        found = self._look(final=False)
        if found is None and max(len(self.region), RESYNC_PIECE_BYTES * len(self.pieces)) > self.direction.resync_room:
            self.limited = True
            if self.waiting:
                return self._take(min(self.waiting))
            self._drop(len(self.region) // 2)
        return found

    def hole(self, offset: int, length: int) -> list[Piece] | None:
        """Takes a hole: bytes that no packet carries."""
        if len(self.region) + length > self.direction.resync_room:
            found = self.finish()
            if found is None:
                return None
            return [*found, Piece(offset, b"", length, 0, NO_PACKET, 0)]
        self.pieces.append(Piece(offset, b"", length, 0, NO_PACKET, 0))
        self.region.hole(length)
        self.direction.resync_holds(length + RESYNC_PIECE_BYTES)
        return self._look(final=False)

    def finish(self) -> list[Piece] | None:
        """Ends the search, because no more bytes will come that could confirm a boundary."""
        found = self._look(final=True)
        if found is None:
            self._drop(len(self.region))
            self.scanned = 0
        return found

    def _look(self, final: bool) -> list[Piece] | None:
        region, first = self.region, self.first
        places = sorted({*self._awake(final or region.ended), *self.direction.candidates(region, self.scanned)})
        region.ended = False
        if first and not self.scanned and not (places and places[0] == 0):
            places.insert(0, 0)
        for at in places:
            region.needed = 0
            verdict = self.direction.is_boundary(region, at, final, first and at == 0)
            if verdict and not self._start_waits(at):
                return self._take(at)
            if verdict:  # it may lie inside what a segment began with, of which more bytes are needed
                self._wait(at, 0)
            elif verdict is None and not final:
                self._wait(at, region.needed)
        self.scanned = max(self.scanned, len(region) - SHORTEST + 1)
        return None

    def _wait(self, at: int, needed: int) -> None:
        """Checks a position again once the region has `needed` bytes."""
        self.waiting.add(at)
        heappush(self._wake, (needed, at))
        if at in self.region.starts:
            heappush(self._starts, at)

    def _awake(self, every: bool) -> list[int]:
        """Removes and returns the waiting positions that have to be checked again."""
        if every:
            places = list(self.waiting)
            self.waiting.clear()
            self._wake.clear()
            return places
        places, size = [], len(self.region)
        while self._wake and self._wake[0][0] <= size:
            places.append(heappop(self._wake)[1])
        self.waiting.difference_update(places)
        return places

    def _start_waits(self, at: int) -> bool:
        """Whether a position before `at`, at which a segment begins, still waits."""
        while self._starts and self._starts[0] not in self.waiting:
            heappop(self._starts)
        return bool(self._starts) and self._starts[0] < at

    def _take(self, at: int) -> list[Piece]:
        """Returns the pieces from `region[at]` on and skips those before."""
        self.direction.resync_holds(-self.size)
        self.at_start = at == 0 and not self.skipped
        out = []
        for piece in self.pieces:
            if at >= piece.length:
                self._skip(piece, piece.length)
                at -= piece.length
            elif at:
                self._skip(piece, at)
                out.append(piece._replace(offset=piece.offset + at, data=piece.data[at:], length=piece.length - at))
                at = 0
            else:
                out.append(piece)
        return out

    def _skip(self, piece: Piece, length: int) -> None:
        if piece.ref != NO_PACKET:
            self.skipped += length

    def _drop(self, size: int) -> None:
        """Skips whole pieces at the front, up to `size` bytes."""
        done = dropped = 0
        for piece in self.pieces:
            if done + piece.length > size:
                break
            self._skip(piece, piece.length)
            done += piece.length
            dropped += 1
        del self.pieces[:dropped]
        self.region.drop(done)
        self.direction.resync_holds(-done - RESYNC_PIECE_BYTES * dropped)
        self.scanned = max(0, self.scanned - done)
        self.waiting = {at - done for at in self.waiting if at >= done}
        self._wake = [(max(needed - done, 0), at - done) for needed, at in self._wake if at >= done]
        heapify(self._wake)
        self._starts = sorted(self.waiting & self.region.starts)
        self.first = False
