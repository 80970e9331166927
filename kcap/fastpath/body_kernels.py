"""Frames and their bodies in the fast path's arena, compiled.

In: the bytes of a frame, packet by packet. Out: bodies with room for all bytes, and frames in the form of rows. Law: a frame
equals the one that the framers make of the same bytes. A body that is still needed when a batch closes moves to the next one.
"""

from typing import Any

from kcap import limits
from kcap.fastpath import layout as at
from kcap.fastpath.large_kernels import take_large
from kcap.kafka.frames import FLAG
from kcap.kernels import compiled, copied, routine

MOVED_BODY = limits.FAST_PATH_MOVED_BODY
MOVED_BYTES = limits.FAST_PATH_MOVED_BYTES
UNKNOWN = -1
SNAPLEN = FLAG["snaplen"]
TOGETHER = 64
"""Number of rows that are transposed together: 17 kB on each side."""


@compiled
def program_code(key: int, version: int, side: int) -> int:
    """The code of the program for the requests (`side` 0) or responses (1) of a version, until the batch is projected."""
    return -2 - ((key * at.VERSIONS + version) << 1 | side)


@compiled
def add_body(data: Any, low: int, high: int, stop: int, program: int, arena: Any, bodies: Any, meta: Any) -> Any:
    """Adds `data[low:high]` to the arena, with room up to `stop`; returns the slot."""
    slot, top = meta[at.M_BODIES], meta[at.M_TOP]
    copied(data, low, high, arena, top)
    bodies[0, slot] = top
    bodies[1, slot] = meta[at.M_TOP] = top + stop - low
    bodies[2, slot] = program
    meta[at.M_BODIES] = slot + 1
    return slot


@compiled
def open_frame(
    streams: Any, place: int, start: int, size: int, time_ns: int, ref: int, position: int, left: int, slot: int, cursor: int,
    flags: int,
) -> None:  # fmt: skip
    """Stores a frame whose last byte has not come yet."""
    streams[place, at.OPEN_START] = start
    streams[place, at.OPEN_SIZE] = size
    streams[place, at.OPEN_NS] = time_ns
    streams[place, at.OPEN_REF] = ref
    streams[place, at.OPEN_LOW] = streams[place, at.OPEN_HIGH] = position
    streams[place, at.OPEN_LEFT] = left
    streams[place, at.OPEN_SLOT] = slot
    streams[place, at.OPEN_AT] = cursor
    streams[place, at.OPEN_FLAGS] = flags


@compiled
def go_on(
    streams: Any, place: int, data: Any, cursor: int, have: int, end: int, position: int, arena: Any, bodies: Any, big: Any
) -> Any:
    """Takes more bytes of the open frame, of which those before `have` were captured; returns where they end. Bytes of the
    frame remain only if the frame ends there, has no room, or is large and was cut.
    """
    size = min(streams[place, at.OPEN_LEFT], end - cursor)
    seen = min(size, have - cursor)
    if streams[place, at.OPEN_SLOT] >= at.LARGE_BASE:
        if seen < size:
            return cursor
        size = take_large(data, cursor, cursor + size, streams[place, at.OPEN_SLOT] - at.LARGE_BASE, big) - cursor
    elif not streams[place, at.OPEN_FLAGS] & SNAPLEN:
        top = streams[place, at.OPEN_AT]
        copied(data, cursor, cursor + seen, arena, top)
        streams[place, at.OPEN_AT] = top + seen
        if seen < size:
            bodies[1, streams[place, at.OPEN_SLOT]] = top + seen
            streams[place, at.OPEN_FLAGS] |= SNAPLEN
    streams[place, at.OPEN_LEFT] -= size
    if position < streams[place, at.OPEN_LOW]:
        streams[place, at.OPEN_LOW] = position
    elif position > streams[place, at.OPEN_HIGH]:
        streams[place, at.OPEN_HIGH] = position
    return cursor + size


@compiled
def close_frame(streams: Any, place: int, table: Any, row: int, base: int, time_ns: int, ref: int) -> None:
    """Closes the open frame, whose last byte has come: writes it to a row of a table from column `base` on."""
    table[row, base + at.F_START] = streams[place, at.OPEN_START]
    table[row, base + at.F_SIZE] = streams[place, at.OPEN_SIZE]
    table[row, base + at.F_FIRST_NS] = streams[place, at.OPEN_NS]
    table[row, base + at.F_FIRST_REF] = streams[place, at.OPEN_REF]
    table[row, base + at.F_LAST_NS] = time_ns
    table[row, base + at.F_LAST_REF] = ref
    table[row, base + at.F_LOW] = streams[place, at.OPEN_LOW]
    table[row, base + at.F_HIGH] = streams[place, at.OPEN_HIGH]
    streams[place, at.OPEN_START] = -1


@compiled
def whole_frame(table: Any, row: int, base: int, start: int, size: int, time_ns: int, ref: int, position: int) -> None:
    """Writes a frame that is complete in one packet, as `close_frame`."""
    table[row, base + at.F_START] = start
    table[row, base + at.F_SIZE] = size
    table[row, base + at.F_FIRST_NS] = table[row, base + at.F_LAST_NS] = time_ns
    table[row, base + at.F_FIRST_REF] = table[row, base + at.F_LAST_REF] = ref
    table[row, base + at.F_LOW] = table[row, base + at.F_HIGH] = position


@routine
def transposed(rows: Any, out: Any) -> None:
    """Writes rows as columns, some rows at a time, so that both sides stay in the L1 cache."""
    for first in range(0, rows.shape[0], TOGETHER):
        last = min(first + TOGETHER, rows.shape[0])
        for column in range(rows.shape[1]):
            for row in range(first, last):
                out[column, row] = rows[row, column]


@compiled
def carry_over(
    connections: Any, streams: Any, queues: Any, bodies: Any, arena: Any, new_bodies: Any, new_arena: Any, meta: Any, heavy: Any
) -> Any:
    """Moves the bodies of outstanding requests and of open frames to a new batch, and lists the entries that are too large to
    move.
    """
    count, room, meta[at.M_BODIES], meta[at.M_TOP] = 0, MOVED_BYTES, 0, 0
    for slot in range(connections.shape[0]):
        connection = connections[slot]
        if not connection[at.LIVE]:
            continue
        place = connection[at.PASSED_HEAD] if connection[at.PASSED] else connection[at.HEAD]
        for number in range(connection[at.PASSED] + connection[at.COUNT]):
            place = connection[at.HEAD] if number == connection[at.PASSED] else place
            entry = queues[place]
            old = entry[at.Q_SLOT] - at.SLOT_BASE
            if 0 <= old < at.LARGE_BASE - at.SLOT_BASE:  # large frames have a separate table
                size = bodies[1, old] - bodies[0, old]
                if entry[at.Q_DONE] and (size > MOVED_BODY or size > room):
                    heavy[count] = place
                    count += 1
                else:
                    if entry[at.Q_DONE]:
                        room -= size
                    new = moved(old, bodies, arena, new_bodies, new_arena, meta)
                    entry[at.Q_SLOT] = at.SLOT_BASE + new
                    if not entry[at.Q_DONE]:
                        reopened(streams[2 * slot + connection[at.CLIENT]], old, new, bodies, new_bodies)
            place = entry[at.Q_NEXT]
        server = streams[2 * slot + 1 - connection[at.CLIENT]]
        if server[at.OPEN_START] >= 0 and 0 <= server[at.OPEN_SLOT] < at.LARGE_BASE:
            old = server[at.OPEN_SLOT]
            reopened(server, old, moved(old, bodies, arena, new_bodies, new_arena, meta), bodies, new_bodies)
    return count


@compiled
def moved(old: int, bodies: Any, arena: Any, new_bodies: Any, new_arena: Any, meta: Any) -> Any:
    """Moves a body to the new batch; returns its slot there."""
    low, high, slot, top = bodies[0, old], bodies[1, old], meta[at.M_BODIES], meta[at.M_TOP]
    copied(arena, low, high, new_arena, top)
    new_bodies[0, slot] = top
    new_bodies[1, slot] = meta[at.M_TOP] = top + high - low
    new_bodies[2, slot] = bodies[2, old]
    bodies[2, old] = UNKNOWN
    meta[at.M_BODIES] = slot + 1
    return slot


@compiled
def reopened(stream: Any, old: int, new: int, bodies: Any, new_bodies: Any) -> None:
    """Continues the open frame in the new batch."""
    stream[at.OPEN_SLOT] = new
    stream[at.OPEN_AT] += new_bodies[0, new] - bodies[0, old]
