"""The search for a frame boundary in bytes of which the alignment is lost.

In: pieces of one direction's stream, and holes. Out: the pieces from the boundary on, to be read again as frames.
Law: nothing is lost: a byte that comes in is handed back, kept, or counted in `skipped`.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from kcap import limits

SHORTEST = 14
"""Bytes a place must have behind it before it can be told from noise: a request's head."""


class Piece(NamedTuple):
    """Stream bytes with the packet that brought them; `data` is shorter than `length` where the snapshot length cut."""

    offset: int
    data: bytes
    length: int
    time_ns: int
    ref: int
    position: int


class Judge(Protocol):
    """The direction's own knowledge of what can start a frame."""

    def candidates(self, region: bytearray, start: int, stop: int) -> Iterable[int]: ...

    def judge(self, region: bytearray, at: int, hole: bool, first: bool) -> bool | None: ...


class Hunter:
    """One search. `first`: it starts where the capture of the stream starts; `refuse`: not at its first byte."""

    def __init__(self, judge: Judge, first: bool = False, refuse: bool = False) -> None:
        self.judge = judge
        self.first = first
        self.region = bytearray()
        self.pieces: list[Piece] = []
        self.waiting: list[int] = []
        self.scanned = 1 if refuse else 0
        self.skipped = 0
        self.limited = False
        self.at_start = False
        """The boundary that was found is where the search began: nothing was passed over."""

    @property
    def kept(self) -> int:
        """Stream bytes held."""
        return sum(p.length for p in self.pieces)

    def data(self, piece: Piece) -> list[Piece] | None:
        """More bytes; the pieces from the boundary on when it is found."""
        self.pieces.append(piece)
        self.region += piece.data
        found = self._look(hole=False)
        if found is None and len(piece.data) < piece.length:
            found = self.hole()
        if found is None and len(self.region) > limits.HUNT_BYTES:
            self.limited = True
            found = self._take(self.waiting[0]) if self.waiting else self._drop(len(self.region) // 2)
        return found

    def hole(self) -> list[Piece] | None:
        """Behind the bytes so far comes a hole, or nothing at all."""
        found = self._look(hole=True)
        if found is None:
            self._drop(len(self.region))
            self.scanned = 0
        return found

    def _look(self, hole: bool) -> list[Piece] | None:
        region, first = self.region, self.first
        waiting, self.waiting = self.waiting, []
        stop = len(region)
        places = sorted({*waiting, *self.judge.candidates(region, self.scanned, stop)})
        if first and not self.scanned and not (places and places[0] == 0):
            places.insert(0, 0)
        for at in places:
            verdict = self.judge.judge(region, at, hole, first and at == 0)
            if verdict:
                return self._take(at)
            if verdict is None and not hole:
                self.waiting.append(at)
        self.scanned = max(self.scanned, stop - SHORTEST + 1)
        return None

    def _take(self, at: int) -> list[Piece]:
        """The pieces from `region[at]` on; what stands before is skipped."""
        self.at_start = at == 0 and not self.skipped
        out = []
        for piece in self.pieces:
            have = len(piece.data)
            if at >= have and at:
                self.skipped += piece.length
                at -= have
            elif at:
                self.skipped += at
                out.append(piece._replace(offset=piece.offset + at, data=piece.data[at:], length=piece.length - at))
                at = 0
            else:
                out.append(piece)
        return out

    def _drop(self, size: int) -> None:
        """Gives up the first `size` bytes of the region, all of it when that is more."""
        done = dropped = 0
        for piece in self.pieces:
            if done + len(piece.data) > size:
                break
            self.skipped += piece.length
            done += len(piece.data)
            dropped += 1
        del self.pieces[:dropped], self.region[:done]
        self.scanned = max(0, self.scanned - done)
        self.waiting = [at - done for at in self.waiting if at >= done]
        self.first = False
