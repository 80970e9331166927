"""The fast path's arrays: connections, outstanding requests, rows, bodies and client ids.

In: how much room is needed. Out: arrays of that size, with the previous contents. Law: growing changes no number.
`import_state` and `export_state` carry connections over.
"""

import mmap
from collections.abc import Callable
from functools import cache
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kcap import limits
from kcap.decode import opcodes
from kcap.decode.projection import acks_steps
from kcap.fastpath import layout as at
from kcap.fastpath.arrays import StateArrays
from kcap.fastpath.client_ids import name_number
from kcap.fastpath.close_kernels import release_all
from kcap.fastpath.flow_table import enter_all
from kcap.fastpath.frame_kernels import RESPONSE_HEAD
from kcap.fastpath.identity_kernels import records_of
from kcap.fastpath.large_frames import LargeFrames
from kcap.identities import Identities, flows_of
from kcap.kafka.conversation import Conversation
from kcap.kafka.headers import PLAIN_HEADERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.arrays.vectors import Int64s
    from kcap.fastpath.sealed_connection import SealedConnection

ROWS_ROOM, BODIES_ROOM = 2 * limits.ROWS_PER_BATCH, 4 * limits.ROWS_PER_BATCH
ARENA_ROOM = limits.BODIES_BYTES + 4 * limits.FAST_PATH_FRAME_MAX
NAMES_ROOM = limits.FAST_PATH_NAMES_MAX
NAMES_TABLE = 1 << (2 * NAMES_ROOM).bit_length()
FIRST_SLOTS, FIRST_ENTRIES = 128, 1024
BY_SLOT: Final = {
    "connections": (1, at.CONNECTION_WIDTH, np.int64), "streams": (2, at.STREAM_WIDTH, np.int64),
    "ids": (1, at.ID_BYTES, np.uint8), "keys": (2, at.FLOW_BYTES, np.uint8),
}  # fmt: skip
"""Arrays with rows for each slot: how many rows, how many numbers in each, and their type."""
RESERVED: Final = 8
"""Factor by which more slots get room than are needed. Room that is not used costs nothing, while copying growing arrays took
longer than filling them.
"""
PRIVATE: Final[Any] = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}
"""Arguments for memory of this process alone, if the system has such; shared memory, Python's default, costs more per page."""
STEP_OF = {
    opcodes.FIXED: at.STEP_FIXED,
    opcodes.STRING: at.STEP_STRING,
    opcodes.COMPACT_STRING: at.STEP_COMPACT_STRING,
    opcodes.TAGS: at.STEP_TAGS,
}


@cache
def header_tables() -> "tuple[NDArray[np.bool_], NDArray[np.int64]]":
    """The (key, version) pairs that take the short path, and the steps to a Produce request's acks by version."""
    plain = np.zeros((at.KEYS, at.VERSIONS), np.bool_)
    for code in PLAIN_HEADERS:
        if code >> 16 < at.KEYS and code & 0xFFFF < at.VERSIONS:
            plain[code >> 16, code & 0xFFFF] = True
    steps = np.full((at.VERSIONS, at.STEPS, 2), at.STEP_OTHER, np.int64)
    for version in range(at.VERSIONS):
        known = acks_steps(version)
        if known is not None and len(known) < at.STEPS:
            for place, (op, size) in enumerate(known):
                steps[version, place] = STEP_OF.get(op, at.STEP_OTHER), size
            steps[version, len(known)] = at.STEP_NONE, 0
    return plain, steps


def _references(kept: list[Any]) -> int:
    return getrefcount(kept[0])


ALONE: Final = _references([object()])
"""Number of references to an object that only such a list refers to."""


def _zeros(size: int, kind: Any) -> Any:
    """Makes an array of zeros, whose pages take no memory before they are written. With numpy's own, freed memory may be reused
    and cleared. Raises MemoryError.
    """
    try:
        room = mmap.mmap(-1, max(size * np.dtype(kind).itemsize, 1), **PRIVATE)
    except OSError as error:  # numpy raises MemoryError, which callers expect
        raise MemoryError(error.strerror) from None
    return np.frombuffer(room, kind, size)


class FastPathState:
    def __init__(self, shared: Callable[[int], Any] | None = None) -> None:
        """`shared`: as in `BodyCollector`."""
        self.slots, self.shared = 0, shared
        self.conversations: list[Conversation | None] = []
        """The conversations of imported connections, by slot."""
        self.sealed: dict[int, SealedConnection] = {}
        """TLS of connections that began in the fast path, by slot."""
        self.handshake_bytes = 0
        """Bytes of the packets that they hold."""
        self.free: Any = np.zeros(0, np.int64)
        """Free slots, M_SLOTS of them."""
        self.names: list[str | None] = []
        """Client ids, by their number in rows."""
        self._room_for_names()
        self.rows: Any = np.empty((ROWS_ROOM, at.ROW_WIDTH), np.int64)
        self.bodies: Any = np.empty((3, BODIES_ROOM), np.int64)
        self.arena: Any = _zeros(ARENA_ROOM, np.uint8) if shared is None else shared(ARENA_ROOM)
        self.spare: list[Any] = []
        """The arena that the previous batch took."""
        self.meta: Any = np.zeros(at.META_WIDTH, np.int64)
        self.meta[at.M_FREE] = -1
        self.meta[at.M_WAITING_MAX] = limits.FAST_PATH_OUTSTANDING_MAX
        self.meta[at.M_OPEN_MAX] = limits.GATHERED_OF_ALL // 4
        self.large = LargeFrames(self.meta)
        self.log: Any = np.empty((limits.FAST_PATH_PACKETS, at.LOG_WIDTH), np.int64)
        self.undo: Any = np.empty((limits.FAST_PATH_PACKETS, at.UNDO_WIDTH), np.int64)
        self.room: dict[str, Any] = {}
        """Arrays of `BY_SLOT`, with room for more slots; unused room takes no memory."""
        self.connections: Any
        self.streams: Any
        self.ids: Any
        self.keys: Any
        for name, (_, width, kind) in BY_SLOT.items():
            setattr(self, name, np.zeros((0, width), kind))
        self.queues: Any = np.zeros((0, at.REQUEST_WIDTH), np.int64)
        self.table: Any = np.zeros(8 * FIRST_SLOTS, np.int64)
        self.dropped = 0
        """Number of places in the table whose entries were removed."""
        self._no_names()
        self._more_slots(FIRST_SLOTS)
        self.more_entries(FIRST_ENTRIES)

    def __getstate__(self) -> dict[str, Any]:
        rows, bodies, top = (int(self.meta[place]) for place in (at.M_ROWS, at.M_BODIES, at.M_TOP))
        used = {"rows": self.rows[:rows].copy(), "bodies": self.bodies[:, :bodies].copy(), "arena": self.arena[:top].copy()}
        known = len(self.all_names())
        names = {
            "name_table": known,
            "name_blobs": self.name_blobs[:known].copy(),
            "name_sizes": self.name_sizes[:known].copy(),
        }
        return self.__dict__ | used | names | {"log": None, "undo": None, "spare": [], "room": {}, "shared": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.log = np.empty((limits.FAST_PATH_PACKETS, at.LOG_WIDTH), np.int64)
        self.undo = np.empty((limits.FAST_PATH_PACKETS, at.UNDO_WIDTH), np.int64)
        known, blobs, sizes = state["name_table"], state["name_blobs"], state["name_sizes"]
        self._room_for_names()
        self.name_table: Any = _zeros(NAMES_TABLE, np.int64)
        self.meta[at.M_NAMES] = at.NO_NAME + 1
        self.name_sizes[at.NO_NAME] = -1
        for number in range(at.NO_NAME + 1, known):
            self.name(blobs[number, : sizes[number]].tobytes())

    def arrays(self, fresh: Any) -> StateArrays:
        """The arrays for kernels; `fresh` gets the connections with their first row in the open batch."""
        return StateArrays(
            self.connections, self.streams, self.queues, self.ids, self.rows, self.bodies, self.arena, self.meta, fresh,
            *header_tables(), self.name_table, self.name_blobs, self.name_sizes, self.large.arrays,
        )  # fmt: skip

    # -- slots --------------------------------------------------------------------------------------------------------
    def _more_slots(self, count: int) -> None:
        first, self.slots = self.slots, count
        self.conversations += [None] * (count - first)
        free = int(self.meta[at.M_SLOTS])
        self.free = np.concatenate([np.arange(count - 1, first - 1, -1), self.free[:free], np.zeros(first - free, np.int64)])
        self.meta[at.M_SLOTS] += count - first
        self.meta[at.M_GROWS] = count < limits.FAST_PATH_CONNECTIONS
        for name, (each, width, kind) in BY_SLOT.items():
            if len(self.room.get(name, ())) < each * count:
                old, room = getattr(self, name), max(count, min(RESERVED * count, limits.FAST_PATH_CONNECTIONS))
                self.room[name] = _zeros(each * room * width, kind).reshape(-1, width)
                self.room[name][: len(old)] = old
            setattr(self, name, self.room[name][: each * count])
        self._fill_table()

    def _fill_table(self) -> None:
        self.table = np.zeros(8 * self.slots, np.int64)
        self.dropped = 0
        live = np.flatnonzero(self.connections[:, at.LIVE])
        enter_all((2 * live[:, None] + (0, 1)).ravel(), self.table, self.keys, self.streams)

    def slot(self) -> int:
        """Takes a free slot; -1 if there is none."""
        if not self.meta[at.M_SLOTS]:
            if not self.meta[at.M_GROWS]:
                return -1
            self._more_slots(2 * self.slots)
        self.meta[at.M_SLOTS] -= 1
        return int(self.free[self.meta[at.M_SLOTS]])

    def release_all(self, slots: "Int64s") -> None:
        if not len(slots):
            return
        for slot in slots.tolist() if self.sealed else ():
            self.sealed.pop(slot, None)
        for slot in slots[self.connections[slots, at.OWN] == 0].tolist():
            self.conversations[slot] = None
        release_all(slots, self.table, self.keys, self.connections, self.streams, self.free, self.meta)
        self.dropped += 2 * len(slots)
        if 2 * self.dropped > len(self.table):
            self._fill_table()

    def set_back(self, slots: Any, undo: Any) -> None:
        """Resets TCP of connections with TLS to their state before a walk, from rows of `undo`."""
        self.connections[slots, at.LAST] = undo[:, at.U_LAST]
        self.connections[slots, at.RST_NS : at.LIVE + 1] = undo[:, at.U_ENDING : at.U_STREAMS]
        for side in range(2):
            first = at.U_STREAMS + side * (at.OPEN_START + 2)
            self.streams[2 * slots + side, : at.OPEN_START] = undo[:, first : first + at.OPEN_START]
            fins = undo[:, first + at.OPEN_START : first + at.OPEN_START + 2]
            self.streams[(2 * slots + side)[:, None], (at.FIN_AT, at.FIN_NS)] = fins

    def live(self) -> list[int]:
        found: list[int] = np.flatnonzero(self.connections[:, at.LIVE]).tolist()
        return found

    def open_frames(self, least: int) -> Any:
        """The streams with an incomplete frame of more than `least` bytes."""
        here = (self.streams[:, at.OPEN_START] >= 0) & (self.streams[:, at.OPEN_SIZE] > least)
        here &= self.streams[:, at.OPEN_SLOT] >= 0
        return np.flatnonzero(here & np.repeat(self.connections[:, at.LIVE] != at.FREE, 2))

    def heavy_frames(self) -> Any:
        """The streams with an incomplete frame that holds more than GATHERED_LEAST."""
        places = self.open_frames(limits.GATHERED_LEAST)
        large = self.streams[places, at.OPEN_SLOT] - at.LARGE_BASE
        light = large >= 0
        light[light] = self.large.arrays.large[large[light], at.L_TOP] <= limits.GATHERED_LEAST
        return places[~light]

    def decided_large(self) -> Any:
        """The large frames of rows since the last batch."""
        if not self.large.used:  # this is checked after each walk
            return np.zeros(0, np.int64)
        rows = self.rows[: self.meta[at.M_ROWS]]
        slots = np.concatenate([rows[:, at.R_REQUEST_SLOT], rows[:, at.R_RESPONSE_SLOT]])
        return slots[slots >= at.LARGE_BASE] - at.LARGE_BASE

    def count_open(self) -> int:
        """Memory of incomplete frames. It is recounted if it is much, because bytes of TLS that a walk handed back were counted
        twice.
        """
        if self.meta[at.M_OPEN] > limits.GATHERED_OF_ALL // 8:
            places = self.open_frames(0)
            gathered = self.streams[places, at.OPEN_SLOT] < at.LARGE_BASE
            self.meta[at.M_OPEN] = self.streams[places[gathered], at.OPEN_SIZE].sum()
        return int(self.meta[at.M_OPEN]) + self.large.held

    def flows(self, places: Any) -> list[bytes]:
        """The flow keys of streams."""
        return flows_of(self.keys[places], self.streams[places, at.FLOW_SIZE])

    def identities(self, slots: Any) -> Any:
        """The constants of these connections, in the form that `Identities.extend` takes."""
        return records_of(slots, self.connections, self.streams, self.keys)

    def uids(self, slots: Any) -> list[str]:
        """The uids of own connections."""
        found = Identities()
        if len(slots):
            found.extend(self.identities(slots))
        return list(map(found.uid, range(len(found))))

    # -- room ---------------------------------------------------------------------------------------------------------
    def more_entries(self, count: int) -> None:
        """Makes room for `count` more waiting requests."""
        old, free = len(self.queues), int(self.meta[at.M_FREE])
        more = np.zeros((count, at.REQUEST_WIDTH), np.int64)
        more[:, at.Q_NEXT] = [*range(old + 1, old + count), free]
        self.queues = np.concatenate([self.queues, more])
        self.meta[at.M_FREE] = old
        self.meta[at.M_SPARE] += count

    def more_room(self, length: int) -> None:
        """Makes room after the kernel stopped before a packet of this payload: for slots, rows, bodies, the arena or large
        frames.
        """
        frames, meta = length // RESPONSE_HEAD + 2, self.meta  # as in `lacks_room`
        if meta[at.M_FULL] == at.FULL_SLOTS:
            self._more_slots(2 * self.slots)
            return
        if meta[at.M_FULL] == at.FULL_LARGE:
            self.large.grow()
            return
        self.more_rows(frames + limits.ONE_WAY_KEPT)
        if meta[at.M_SPARE] < frames:
            self.more_entries(len(self.queues) + frames)
        if meta[at.M_BODIES] + frames > self.bodies.shape[1]:
            more = max(self.bodies.shape[1], BODIES_ROOM) + frames
            self.bodies = np.concatenate([self.bodies, np.empty((3, more), np.int64)], axis=1)
        if meta[at.M_TOP] + length + limits.FAST_PATH_FRAME_MAX > self.arena.size:
            self.arena = np.concatenate([self.arena, np.empty(max(self.arena.size, ARENA_ROOM) + length, np.uint8)])

    def more_rows(self, count: int) -> None:
        """Makes room for `count` more rows."""
        if self.meta[at.M_ROWS] + count > len(self.rows):
            self.rows = np.concatenate([self.rows, np.empty((max(len(self.rows), ROWS_ROOM) + count, at.ROW_WIDTH), np.int64)])

    def next_arena(self) -> None:
        """Continues with another arena, since a batch takes this one."""
        old = self.arena
        if self.shared is not None:
            self.arena = self.shared(old.size)
            return
        self.arena, self.spare = self.spare[0] if self._spared else _zeros(old.size, np.uint8), [old]

    def last_arena(self) -> None:
        """Continues with the arena of the batch before, if nothing refers to it any more, before bytes are written to this one.
        Two arenas that are filled in turn would take twice the memory, and the system would clear the pages of a new one.
        """
        if self._spared:
            top = self.meta[at.M_TOP]
            self.spare[0][:top] = self.arena[:top]
            self.arena, self.spare = self.spare[0], []

    @property
    def _spared(self) -> bool:
        """Whether the arena of the batch before can be reused."""
        return bool(self.spare) and self.spare[0].shape == self.arena.shape and _references(self.spare) == ALONE

    # -- client ids ---------------------------------------------------------------------------------------------------
    def name(self, raw: bytes | None) -> int:
        """The number of a client id; -1 if there is no room for more."""
        if raw is None:
            return at.NO_NAME
        data = np.frombuffer(raw or b"\0", np.uint8)
        return int(name_number(data, 0, len(raw), self.name_table, self.name_blobs, self.name_sizes, self.meta))

    def all_names(self) -> list[str | None]:
        """Client ids by number, including those that the kernel has added."""
        names = self.names
        for number in range(len(names), int(self.meta[at.M_NAMES])):
            names.append(self.name_blobs[number, : self.name_sizes[number]].tobytes().decode())
        return names

    def _room_for_names(self) -> None:
        self.name_blobs: Any = _zeros(NAMES_ROOM * at.ID_BYTES, np.uint8).reshape(NAMES_ROOM, at.ID_BYTES)
        self.name_sizes: Any = _zeros(NAMES_ROOM, np.int64)

    def _no_names(self) -> None:
        self.names = [None]
        self.name_table = _zeros(NAMES_TABLE, np.int64)  # clearing the old one would take all its pages into memory
        self.name_sizes[at.NO_NAME] = -1
        self.meta[at.M_NAMES] = at.NO_NAME + 1

    @property
    def names_wasted(self) -> bool:
        """Whether there are many client ids and at least half of them belong to connections that are not here any more.
        Dropping these then pays for entering the others again.
        """
        known = len(self.names)
        return known > limits.FAST_PATH_NAMES and 2 * len(np.unique(self.connections[self.live(), at.NAME])) <= known

    def forget_names(self) -> None:
        """Drops the client ids of connections that are not here any more. Rows that were taken have the old list."""
        self._no_names()
        for slot in self.live():
            size = self.connections[slot, at.ID_LENGTH]
            self.connections[slot, at.NAME] = self.name(None if size < 0 else self.ids[slot, :size].tobytes())


def none(value: int) -> int | None:
    """The number; None for NONE."""
    return None if value == at.NONE else value
