"""The table of large frames of the fast path: its arrays, and what a frame's row says.

In: rows that `kcap.fastpath.large_kernels` filled. Out: the values of a body, or the resumable reader that continues with it.
Law: both are those of a `Resumable` that was fed with the same bytes.
"""

from array import array
from typing import Any, Final, NamedTuple

import numpy as np

from kcap import limits
from kcap.arrays.sparse import sparse
from kcap.decode import opcodes, slots
from kcap.decode.projection import Resumable, compiled_programs, program_index
from kcap.fastpath import layout as at
from kcap.fastpath.resync_kernels import UNASKED, WANTED
from kcap.kafka.bodies import REQUEST, RESPONSE, BodyValues, Pieces, values_of
from kcap.kafka.headers import PRODUCE
from kcap.limits import FRAME_GATHERED_MAX

FETCH: Final = 1
LARGE_APIS: Final = ((PRODUCE, REQUEST), (FETCH, RESPONSE))
"""What carries records: API key and side."""
_TEXTS: Final = len(slots.SLOTS)
PROOF_ROOM: Final = 256


class Proof(NamedTuple):
    """Where the interpreter works whose results no one needs; a body with more topics is for the reference path."""

    values: Any
    topics: Any
    wrapped: Any
    part: Any
    loops: Any
    ends: Any


def proof() -> Proof:
    """Room for one body."""
    topics, wrapped = np.empty((PROOF_ROOM, 4), np.int64), np.empty((PROOF_ROOM, 3), np.int64)
    loops = np.zeros((2, opcodes.COUNTERS), np.int64)
    return Proof(np.zeros((slots.WIDTH, 1), np.int64), topics, wrapped, np.zeros(5, np.int64), *loops)


class LargeArrays(NamedTuple):
    """The arrays, one row or one column a frame."""

    rows: Any
    """The table of programs (`kcap.decode.programs.ROWS`)."""
    programs: Any
    """Where the program of an API key, version and side starts, -1 for none."""
    large: Any
    values: Any
    stored: Any
    topics: Any
    wrapped: Any
    excerpts: Any
    """Place in the body and size of each excerpt."""
    excerpted: Any
    """Their bytes."""
    elements: Any
    free: Any
    """Rows that are free, M_LARGE_FREE of them."""
    answers: Any
    """Programs of responses by API key and version, as far as resyncs needed them."""
    proof: Proof
    odd: Any
    """Oddities of a walk."""


def arrays(frames: int) -> LargeArrays:
    """Arrays for this many frames; none of the programs where there is no frame."""
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
        self.meta[at.M_LARGE_FREE] = 0  # a fast path is saved when all its connections are exported
        self.arrays = arrays(0)

    def make_room(self) -> None:
        """Makes the arrays once a frame has needed them; there will be no more than these."""
        wanted, self.meta[at.M_LARGE_WANTED] = self.meta[at.M_LARGE_WANTED], 0
        if wanted and not len(self.arrays.large):
            self.arrays = arrays(limits.FAST_PATH_LARGE_FRAMES)
            self.meta[at.M_LARGE_FREE] = limits.FAST_PATH_LARGE_FRAMES

    def learn(self) -> None:
        """Looks up the programs that resyncs need."""
        self.meta[at.M_ANSWER] = 0
        for key, version in np.argwhere(self.arrays.answers == WANTED).tolist():
            self.arrays.answers[key, version] = program_index(key, version, RESPONSE)
        self.arrays = self.arrays._replace(rows=compiled_programs())

    @property
    def used(self) -> int:
        """Frames in the table."""
        return len(self.arrays.large) - int(self.meta[at.M_LARGE_FREE])

    @property
    def held(self) -> int:
        """Bytes that are stored of them."""
        if not self.used:
            return 0
        stored = self.arrays.large[:, at.L_TOP]
        return int(stored.sum() - stored[self.arrays.free[: self.meta[at.M_LARGE_FREE]]].sum())

    def release(self, slot: int) -> None:
        """Frees the row of a slot."""
        self.arrays.free[self.meta[at.M_LARGE_FREE]] = slot - at.LARGE_BASE
        self.meta[at.M_LARGE_FREE] += 1

    def take(self, slot: int, *, excerpts: bool) -> BodyValues:
        """The values of a frame that has passed, whose row is free then; with its `excerpts`, where that is wanted."""
        values = values_of(self.reader(slot))
        if excerpts:
            values = values._replace(excerpts=self.excerpts(slot))
        self.release(slot)
        return values

    def excerpts(self, slot: int) -> Pieces:
        """All of a frame's body that is no record; nothing where that is more than there is room for."""
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
        """The stored bytes of a frame."""
        frame = slot - at.LARGE_BASE
        return self.arrays.stored[frame, : self.arrays.large[frame, at.L_TOP]]

    def reader(self, slot: int) -> Resumable:
        """A reader with the state of a frame."""
        frame = slot - at.LARGE_BASE
        row, stored = self.arrays.large[frame].tolist(), self.stored(slot).tobytes()
        pc, cursor, top = row[at.L_PC], row[at.L_CURSOR], row[at.L_TOP]
        reader = Resumable(row[at.L_CODE])
        state = reader.state
        first = min(cursor, top)
        state.pc, state.mask, state.status = pc, row[at.L_MASK], row[at.L_STATUS]
        shift = row[at.L_SKIP] - first  # the reader counts positions from the next byte that was not read
        state.position = cursor + shift
        state.records_end = row[at.L_RECORDS_END] + shift if row[at.L_RECORDS_END] >= 0 else -1
        state.counters = row[at.L_COUNTERS : at.L_ENDS]
        state.ends = [end + shift for end in row[at.L_ENDS :]]
        state.values = self.arrays.values[:, frame].tolist()
        state.topics = array("i", self.arrays.topics[frame, : row[at.L_TOPICS]].ravel().tolist())
        state.topics[::4] = array("i", bytes(4 * row[at.L_TOPICS]))
        state.wrapped = self.arrays.wrapped[frame, : row[at.L_WRAPPED]].ravel().tolist()
        reader.restore(stored, first, row[at.L_PASSED], whole=row[at.L_SIZE] <= FRAME_GATHERED_MAX + 4)
        return reader
