"""The fast path's table of large frames: its arrays, and the values of a frame from its row.

In: rows that `kcap.fastpath.large_kernels` filled. Out: the values of a body, or the resumable reader that continues with it.
Law: both equal those of a `Resumable` that was fed with the same bytes.
"""

from array import array
from typing import Any, Final

import numpy as np

from kcap import limits
from kcap.arrays.sparse import emptied, sparse
from kcap.decode import opcodes, slots
from kcap.decode.interpreter import SHORT
from kcap.decode.programs import program_index
from kcap.decode.projection import Resumable, compiled_programs
from kcap.fastpath import layout as at
from kcap.fastpath.arrays import LargeArrays, Proof
from kcap.fastpath.large_kernels import enter_large
from kcap.fastpath.resync_kernels import UNASKED, WANTED
from kcap.kafka.body_values import REQUEST, RESPONSE, BodyValues, Pieces, values_of
from kcap.kafka.headers import FETCH, PRODUCE
from kcap.limits import FRAME_GATHERED_MAX

LARGE_APIS: Final = ((PRODUCE, REQUEST), (PRODUCE, RESPONSE), (FETCH, RESPONSE))
"""Messages that carry records, and Produce responses: API key and side."""
_TEXTS: Final = len(slots.SLOTS)
PROOF_ROOM: Final = 256
GROWTH: Final = 4
"""Factor by which the number of rows grows when all are in use."""
NOTHING: Final = np.zeros(1, np.uint8)
USED: Final = {
    "stored": at.L_TOP, "topics": at.L_TOPICS, "wrapped": at.L_WRAPPED, "excerpts": at.L_EXCERPTS,
    "excerpted": at.L_EXCERPT_BYTES,
}  # fmt: skip
"""Arrays with one row per frame -> how much of the row is in use."""


def proof() -> Proof:
    """Scratch arrays for one body."""
    topics, wrapped = np.empty((PROOF_ROOM, 4), np.int64), np.empty((PROOF_ROOM, 3), np.int64)
    loops = np.zeros((2, opcodes.COUNTERS), np.int64)
    return Proof(np.zeros((slots.WIDTH, 1), np.int64), topics, wrapped, np.zeros(5, np.int64), *loops)


def light(reader: Resumable, size: int) -> bool:
    """Whether a row can continue from what a reader has read of a frame of `size` bytes: the reader holds little, and both
    would count the records in later compressed messages alike, because there were none so far.
    """
    state, counts = reader.state, size <= FRAME_GATHERED_MAX + 4
    if reader.fault is not None or (counts and (reader.whole is None or reader.counted or state.wrapped)):
        return False
    unread = reader.settled()
    return (
        state.status == SHORT
        and len(reader.kept) + len(unread) <= limits.GATHERED_LEAST // 4
        and len(state.topics) <= limits.FAST_PATH_LARGE_TOPICS
    )


def arrays(frames: int) -> LargeArrays:
    """Arrays for this many frames; without programs if there are no frames."""
    programs = np.full((at.KEYS, at.VERSIONS, 2), -1, np.int64)
    for key, side in LARGE_APIS if frames else ():
        for version in range(at.VERSIONS):
            programs[key, version, side] = program_index(key, version, side)
    return LargeArrays(
        compiled_programs(),
        programs,
        np.zeros((frames, at.LARGE_WIDTH), np.int64),
        np.zeros((slots.WIDTH, frames), np.int64),
        sparse((frames, limits.FAST_PATH_LARGE_ROOM), np.uint8),
        sparse((frames, limits.FAST_PATH_LARGE_TOPICS, 4), np.int64),
        sparse((frames, limits.FAST_PATH_LARGE_WRAPPED, 3), np.int64),
        sparse((frames, limits.FAST_PATH_EXCERPTS, 2), np.int64),
        sparse((frames, limits.FAST_PATH_EXCERPT_BYTES), np.uint8),
        np.zeros(1, np.int64),
        np.empty((1, len(slots.ELEMENTS)), np.int64),
        np.arange(frames, dtype=np.int64),
        np.full((at.KEYS, at.VERSIONS), UNASKED, np.int64),
        proof(),
        np.empty((2 * limits.FAST_PATH_PACKETS, at.ODD_WIDTH), np.int64),
    )


class LargeFrames:
    """The large frames of a fast path."""

    def __init__(self, meta: Any) -> None:
        """`meta`: the counters that kernel and engine share."""
        self.meta = meta
        self.arrays = arrays(0)

    def __getstate__(self) -> dict[str, Any]:
        return {"meta": self.meta}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.meta = state["meta"]
        self.meta[[at.M_LARGE_FREE, at.M_LARGE_FULL]] = 0  # a fast path is pickled only after all its connections were exported
        self.arrays = arrays(0)

    def make_room(self) -> None:
        """Adds rows if a frame found none."""
        self.meta[at.M_LARGE_WANTED] = 0
        if not self.meta[at.M_LARGE_FREE] and not self.meta[at.M_LARGE_FULL]:
            self.grow()

    def grow(self) -> None:
        """Adds rows when all are in use. It adds none if the system has no memory for the arrays."""
        old, have, most = self.arrays, len(self.arrays.large), limits.FAST_PATH_LARGE_FRAMES_MAX
        count = min(GROWTH * have or limits.FAST_PATH_LARGE_FRAMES, most)
        try:
            new = arrays(count)
        except OSError:
            self.meta[at.M_LARGE_FULL] = 1
            return
        new.large[:have], new.values[:, :have] = old.large, old.values
        for frame, row in enumerate(old.large.tolist()):  # the rest of these arrays takes no memory
            for name, column in USED.items():
                size = max(row[column], 0)
                getattr(new, name)[frame, :size] = getattr(old, name)[frame, :size]
        new.free[: count - have] = np.arange(have, count)
        self.arrays = new._replace(
            answers=old.answers, proof=old.proof, odd=old.odd, elements=old.elements, excerpted_bytes=old.excerpted_bytes
        )
        self.meta[at.M_LARGE_FREE], self.meta[at.M_LARGE_FULL] = count - have, count == most

    def learn(self) -> None:
        """Looks up the programs that resyncs need."""
        self.meta[at.M_ANSWER] = 0
        for key, version in np.argwhere(self.arrays.answers == WANTED).tolist():
            self.arrays.answers[key, version] = program_index(key, version, RESPONSE)
        self.arrays = self.arrays._replace(rows=compiled_programs())

    @property
    def used(self) -> int:
        """Number of frames in the table."""
        return len(self.arrays.large) - int(self.meta[at.M_LARGE_FREE])

    @property
    def held(self) -> int:
        """Number of bytes that are stored for them."""
        if not self.used:
            return 0
        stored = self.arrays.large[:, at.L_TOP]
        return int(stored.sum() - stored[self.arrays.free[: self.meta[at.M_LARGE_FREE]]].sum())

    def enters(self, key: int, version: int, side: int) -> bool:
        """Whether a frame of this kind can have a row here."""
        if (key, side) not in LARGE_APIS or not 0 <= version < at.VERSIONS:
            return False
        if not self.meta[at.M_LARGE_FREE] and not self.meta[at.M_LARGE_FULL]:
            self.grow()
        return bool(self.meta[at.M_LARGE_FREE] and self.arrays.programs[key, version, side] >= 0)

    def enter_bytes(self, data: bytes, program: int, size: int, head: int) -> int:
        """Takes a free row for a frame of `size` bytes, whose body begins with `data`. Returns its slot; -1 if the row would
        hold much. `head` is that of `open_large`.
        """
        frame = enter_large(np.frombuffer(data or b"\0", np.uint8), 0, len(data), program, size, head, self.arrays, self.meta)
        slot, row = int(frame) + at.LARGE_BASE, self.arrays.large[frame]
        if row[at.L_PASSED] == len(data) and row[at.L_TOP] <= limits.GATHERED_LEAST:
            return slot
        self.release(slot)
        return -1

    def enter(self, reader: Resumable, program: int, size: int, head: bytes) -> int:
        """Takes a free row for a frame of `size` bytes that a `light` reader has read so far; returns its slot. `head` has the
        first bytes of the body, which are retained.
        """
        state, unread, first = reader.state, reader.settled(), len(head) + len(reader.kept)
        frame = enter_large(NOTHING, 0, 0, program, size, 0, self.arrays, self.meta)
        row, topics = self.arrays.large[frame], np.array(state.topics, np.int64).reshape(-1, 4)
        skip = state.position
        shift = first - skip
        stored = np.frombuffer(head + reader.kept + unread, np.uint8)
        self.arrays.stored[frame, : len(stored)] = stored
        row[at.L_CURSOR], row[at.L_TOP], row[at.L_KEPT], row[at.L_SKIP] = first, len(stored), first, skip
        row[at.L_PC], row[at.L_MASK], row[at.L_PASSED] = state.pc, state.mask, reader.read + len(unread)
        if state.records_end >= 0:
            row[at.L_RECORDS_END], row[at.L_LOW] = state.records_end + shift, first
        row[at.L_COUNTERS : at.L_ENDS], row[at.L_ENDS :] = state.counters, np.array(state.ends) + shift
        row[at.L_TOPICS], row[at.L_WRAPPED], row[at.L_EXCERPTS] = len(topics), len(state.wrapped) // 3, -1
        self.arrays.values[:, frame] = state.values
        texts = self.arrays.values[_TEXTS:, frame]
        texts[texts >= 0] += len(head)
        topics[:, 1:][topics[:, 1:] >= 0] += len(head)
        topics[:, 0] = frame
        self.arrays.topics[frame, : len(topics)] = topics
        self.arrays.wrapped[frame, : row[at.L_WRAPPED]] = np.array(state.wrapped, np.int64).reshape(-1, 3)
        return int(frame) + at.LARGE_BASE

    def release(self, slot: int) -> None:
        arrays, frame = self.arrays, slot - at.LARGE_BASE
        top, excerpted = arrays.large[frame, (at.L_TOP, at.L_EXCERPT_BYTES)].tolist()
        arrays.excerpted_bytes[0] -= excerpted
        for room, size in (arrays.stored, top), (arrays.excerpted, excerpted):
            if size > limits.FAST_PATH_LARGE_KEPT:
                emptied(room, frame)
        arrays.free[self.meta[at.M_LARGE_FREE]] = frame
        self.meta[at.M_LARGE_FREE] += 1

    def take(self, slot: int) -> BodyValues:
        """Returns the values and excerpts of a complete frame, and frees its row."""
        values = values_of(self.reader(slot), self.excerpts(slot))
        self.release(slot)
        return values

    def excerpts(self, slot: int) -> Pieces:
        """All of a frame's body except its records; empty if that was not requested, or if it was more than there was room
        for.
        """
        frame = slot - at.LARGE_BASE
        row, kept = self.arrays.large[frame], self.arrays.excerpted[frame]
        if row[at.L_EXCERPTS] < 0:
            return ()
        spans, top, found = self.arrays.excerpts[frame, : row[at.L_EXCERPTS]].tolist(), 0, []
        for place, size in spans:
            found.append((place, kept[top : top + size].tobytes()))
            top += size
        return *found, (int(row[at.L_PASSED]), b"")

    def stored(self, slot: int) -> Any:
        frame = slot - at.LARGE_BASE
        return self.arrays.stored[frame, : self.arrays.large[frame, at.L_TOP]]

    def reader(self, slot: int) -> Resumable:
        """Makes a reader with the state of a frame."""
        frame = slot - at.LARGE_BASE
        row, stored = self.arrays.large[frame].tolist(), self.stored(slot).tobytes()
        pc, cursor, top = row[at.L_PC], row[at.L_CURSOR], row[at.L_TOP]
        reader = Resumable(row[at.L_CODE])
        state = reader.state
        first = min(cursor, top)
        state.pc, state.mask, state.status = pc, row[at.L_MASK], row[at.L_STATUS]
        shift = row[at.L_SKIP] - first  # the reader counts positions from the next unread byte
        state.position = cursor + shift
        state.records_end = row[at.L_RECORDS_END] + shift if row[at.L_RECORDS_END] >= 0 else -1
        state.counters = row[at.L_COUNTERS : at.L_ENDS]
        state.ends = [end + shift for end in row[at.L_ENDS :]]
        state.values = self.arrays.values[:, frame].tolist()
        state.topics = array("i", self.arrays.topics[frame, : row[at.L_TOPICS]].ravel().tolist())
        state.topics[::4] = array("i", bytes(4 * row[at.L_TOPICS]))
        state.wrapped = self.arrays.wrapped[frame, : row[at.L_WRAPPED]].ravel().tolist()
        names = min(row[at.L_KEPT], first) if state.status == SHORT else first
        reader.restore(stored, names, first, row[at.L_PASSED], whole=row[at.L_SIZE] <= FRAME_GATHERED_MAX + 4)
        return reader
