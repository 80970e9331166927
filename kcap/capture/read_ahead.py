"""Frames that will be requested, read together: connections take turns, and each of their frames lies across the others.

In: which frame of a batch is read next. Out: frames behind it in the file reader's hand. Law: what is read is the same; frames
whose packets lie among each other cost readings in proportion to their bytes, not to their number.
"""

from bisect import bisect_right
from weakref import ref

from kcap.analyzer import RowBatch
from kcap.capture.frame_reader import PART, FrameLocation, FrameReader
from kcap.limits import FRAME_GATHERED_MAX, READ_AHEAD_BYTES
from kcap.net.connections import flow_of, reverse_flow


def location(batch: RowBatch, at: int, side: str) -> FrameLocation:
    """Where the request or the response of a decided exchange is."""
    row = batch.rows[at]
    identity = batch.identities[int(str(row[0]))]
    flow = flow_of(identity.client_ip, identity.client_port, identity.server_ip, identity.server_port)
    return FrameLocation(row, side, flow if side == "request" else reverse_flow(flow), tls=identity.tls)


class ReadAhead:
    """Decides which frames are read together: after the first request of a batch twice as many as the time before, as far
    as they lie among each other, since the next one requested is likely behind it.
    """

    def __init__(self, frames: FrameReader) -> None:
        self._frames = frames
        self._batch: ref[RowBatch] | None = None
        self._count = 0
        """Frames of this batch that are read with the next one that was not read ahead."""
        self._passed: dict[str, list[int]] = {}
        """Per side, the exchanges of this batch whose frames were not gathered, or not to their end."""
        self._keys: dict[str, set[int | None]] = {}
        """Per side, the API keys of frames of this batch that were requested."""

    def before(self, batch: RowBatch, at: int, side: str) -> None:
        """Frame `side` of an exchange is about to be read."""
        if self._batch is None or self._batch() is not batch:
            self._batch, self._count, self._passed, self._keys = ref(batch), 0, {}, {}
        place = location(batch, at, side)
        if place.tls or self._frames.has(place):
            return
        self._keys.setdefault(side, set()).add(batch.rows[at][PART["api_key"]])
        some = self._behind(batch, at, side, place) if self._count else []
        self._count = 2 * self._frames.ahead(side, [place, *some] if some else [], READ_AHEAD_BYTES) or 1

    def _behind(self, batch: RowBatch, at: int, side: str, first: FrameLocation) -> list[FrameLocation]:
        """Frames of exchanges behind this one that are likely wanted for the same reason, among whose packets the first is."""
        rows, slot, key = batch.rows, PART[f"{side}_slot"], PART["api_key"]
        carried = batch.bodies.carried
        if side not in self._passed:
            known = {number for number, values in carried.items() if values.passed}
            size = PART[f"{side}_bytes"]
            self._passed[side] = [
                number for number, row in enumerate(rows) if row[slot] in known or (row[size] or 0) > FRAME_GATHERED_MAX
            ]
        among, found = self._passed[side], list[FrameLocation]()
        mine = carried.get(rows[at][slot])
        for other in among[bisect_right(among, at) :]:
            place = location(batch, other, side)
            if len(found) >= self._count or not overlap(first, place):
                break
            others = carried.get(rows[other][slot])
            plain = mine is None or mine.excerpts or others is None or not others.excerpts
            if rows[other][key] in self._keys[side] and not place.tls and plain:
                found.append(place)
        return found


def overlap(first: FrameLocation, other: FrameLocation) -> bool:
    """Whether packets of both lie among each other."""
    if first.file is None or other.file != first.file or None in (first.low, first.high, other.low, other.high):
        return False
    return bool(other.low < first.high and first.low < other.high)
