"""Frames and pairing of a connection in good order, compiled.

In: stream bytes in order. Out: requests that wait, and rows. Law: as the framers and the pairing; where these would have to
think, the
place in the packet at which they should go on. Importing this module imports numba.
"""

from typing import Any

from numba import njit

from kcap import limits
from kcap.kafka.headers import API_VERSIONS, PRODUCE, SASL_HANDSHAKE
from kcap.lane.bodies import add_body, close_frame, go_on, open_frame, whole_frame
from kcap.lane.layout import (
    ANSWERED,
    CORRELATION,
    COUNT,
    F_LAST_NS,
    F_SIZE,
    FLAGS,
    FRAME,
    HEAD,
    ID_LENGTH,
    IDENTITY,
    KEYS,
    M_FREE,
    M_FRESH,
    M_IDENTITIES,
    M_ROWS,
    M_SPARE,
    NAME,
    NUMBER,
    OPEN_LEFT,
    OPEN_SLOT,
    OPEN_START,
    Q_CORRELATION,
    Q_DONE,
    Q_FRAME,
    Q_KEY,
    Q_NEXT,
    Q_NUMBER,
    Q_SLOT,
    Q_VERSION,
    R_CORRELATION,
    R_FLAGS,
    R_IDENTITY,
    R_KEY,
    R_NAME,
    R_NUMBER,
    R_ORDER,
    R_PREVIOUS,
    R_REQUEST,
    R_REQUEST_SLOT,
    R_RESPONSE,
    R_RESPONSE_SLOT,
    R_RTT,
    R_VERSION,
    REQUEST_BYTES,
    REQUEST_FRAMES,
    RESPONSE_BYTES,
    RESPONSE_FRAMES,
    ROWS,
    RTT_MIN,
    SLOT_BASE,
    STEP_COMPACT_STRING,
    STEP_FIXED,
    STEP_NONE,
    STEP_STRING,
    STEP_TAGS,
    STEPS,
    TAIL,
    TAKEN,
    VERSIONS,
)
from kcap.lane.numbers import int16, int32
from kcap.schema.quirks import DOWNGRADES

FRAME_MAX = limits.LANE_FRAME_MAX
OUTSTANDING_MAX = limits.LANE_OUTSTANDING_MAX
REQUEST_HEAD = 14
RESPONSE_HEAD = 8
REFUSED = DOWNGRADES[API_VERSIONS][0]
REFUSED_VERSION = DOWNGRADES[API_VERSIONS][1]
UNKNOWN = -1


@njit(cache=True, nogil=True)
def acks_of(data: Any, at: int, end: int, steps: Any) -> int:
    """Acks of a Produce request; 0 also where they cannot be read: both are for the machines."""
    for step in range(STEPS):
        if at + 2 > end:
            return 0
        kind = steps[step, 0]
        if kind == STEP_NONE:
            return int(int16(data, at))
        if kind == STEP_FIXED:
            at += steps[step, 1]
        elif kind == STEP_STRING:
            length = int16(data, at)
            at += 2 + (length if length > 0 else 0)
        elif kind == STEP_COMPACT_STRING and data[at] < 128:
            at += int(data[at]) if data[at] else 1
        elif kind == STEP_TAGS and data[at] == 0:
            at += 1
        else:
            return 0
    return 0


@njit(cache=True, nogil=True)
def chain(connection: Any, queues: Any, meta: Any) -> Any:
    """A new last entry of the requests that wait."""
    place = meta[M_FREE]
    meta[M_FREE] = queues[place, Q_NEXT]
    meta[M_SPARE] -= 1
    if connection[COUNT]:
        queues[connection[TAIL], Q_NEXT] = place
    else:
        connection[HEAD] = place
    connection[TAIL] = place
    connection[COUNT] += 1
    return place


@njit(cache=True, nogil=True)
def unchain(connection: Any, queues: Any, meta: Any) -> None:
    """The first entry waits no longer."""
    place = connection[HEAD]
    connection[HEAD] = queues[place, Q_NEXT]
    connection[COUNT] -= 1
    queues[place, Q_NEXT] = meta[M_FREE]
    meta[M_FREE] = place
    meta[M_SPARE] += 1


@njit(cache=True, nogil=True)
def requests(
    data: Any, at: int, end: int, offset: int, time_ns: int, ref: int, position: int, connection: Any, stream: Any, queues: Any,
    client_id: Any, plain: Any, steps: Any, arena: Any, bodies: Any, meta: Any,
) -> Any:  # fmt: skip
    """Bytes of the client; where the lane's understanding ends."""
    if stream[OPEN_START] >= 0:
        before = at
        at = go_on(stream, data, at, end, position, arena)
        offset += at - before
        if stream[OPEN_LEFT]:
            return at
        entry = queues[connection[TAIL]]
        close_frame(stream, entry[Q_FRAME:], time_ns, ref)
        entry[Q_DONE] = 1
        connection[REQUEST_FRAMES] += 1
        connection[REQUEST_BYTES] += entry[Q_FRAME + F_SIZE]
    while end - at >= REQUEST_HEAD:
        size, key, version = int32(data, at), int16(data, at + 4), int16(data, at + 6)
        correlation, length = int32(data, at + 8), int16(data, at + 12)
        if key < 0 or key >= KEYS or version < 0 or version >= VERSIONS or not plain[key, version] or key == SASL_HANDSHAKE:
            return at
        body, stop = at + REQUEST_HEAD + max(length, 0), at + 4 + size
        if length != connection[ID_LENGTH] or body > stop or body > end or (stop > end and size > FRAME_MAX):
            return at
        for k in range(length):
            if client_id[k] != data[at + REQUEST_HEAD + k]:
                return at
        if connection[COUNT] == OUTSTANDING_MAX:
            return at
        if connection[COUNT] > connection[TAKEN] and queues[connection[TAIL], Q_CORRELATION] == correlation:
            return at
        if key == PRODUCE and acks_of(data, body, min(stop, end), steps[version]) == 0:
            return at
        entry = queues[chain(connection, queues, meta)]
        connection[NUMBER] += 1
        connection[CORRELATION] = correlation
        slot = add_body(data, body, min(stop, end), stop, -2 - ((key << 16 | version) << 1), arena, bodies, meta)
        entry[Q_NUMBER] = connection[NUMBER]
        entry[Q_KEY] = key
        entry[Q_VERSION] = version
        entry[Q_CORRELATION] = correlation
        entry[Q_SLOT] = SLOT_BASE + slot
        if stop > end:
            entry[Q_DONE] = 0
            open_frame(stream, offset, size + 4, time_ns, ref, position, stop - end, slot, bodies[0, slot] + end - body)
            return end
        entry[Q_DONE] = 1
        whole_frame(entry[Q_FRAME:], offset, size + 4, time_ns, ref, position)
        connection[REQUEST_FRAMES] += 1
        connection[REQUEST_BYTES] += size + 4
        offset += size + 4
        at = stop
    return at


@njit(cache=True, nogil=True)
def responses(
    data: Any, at: int, end: int, offset: int, time_ns: int, ref: int, position: int, order: int, slot: int, connections: Any,
    stream: Any,
    client: Any, queues: Any, rows: Any, arena: Any, bodies: Any, fresh: Any, meta: Any,
) -> Any:  # fmt: skip
    """Bytes of the broker; where the lane's understanding ends."""
    connection = connections[slot]
    if stream[OPEN_START] >= 0:
        before = at
        at = go_on(stream, data, at, end, position, arena)
        offset += at - before
        if stream[OPEN_LEFT]:
            return at
        row = rows[meta[M_ROWS]]
        close_frame(stream, row[R_RESPONSE:], time_ns, ref)
        answer(row, stream[OPEN_SLOT], order, slot, connection, client, queues, arena, bodies, fresh, meta)
    while end - at >= RESPONSE_HEAD and connection[COUNT]:
        entry = queues[connection[HEAD]]
        size, correlation = int32(data, at), int32(data, at + 4)
        stop = at + 4 + size
        if size < 4 or not entry[Q_DONE] or correlation != entry[Q_CORRELATION] or (stop > end and size > FRAME_MAX):
            return at
        if size < 6 and entry[Q_KEY] == API_VERSIONS:
            return at
        body = at + RESPONSE_HEAD
        kept = add_body(data, body, min(stop, end), stop, UNKNOWN, arena, bodies, meta)
        if stop > end:
            open_frame(stream, offset, size + 4, time_ns, ref, position, stop - end, kept, bodies[0, kept] + end - body)
            connection[TAKEN] = 1
            return end
        row = rows[meta[M_ROWS]]
        whole_frame(row[R_RESPONSE:], offset, size + 4, time_ns, ref, position)
        answer(row, kept, order, slot, connection, client, queues, arena, bodies, fresh, meta)
        offset += size + 4
        at = stop
    return at


@njit(cache=True, nogil=True)
def answer(
    row: Any,
    kept: int,
    order: int,
    slot: int,
    connection: Any,
    client: Any,
    queues: Any,
    arena: Any,
    bodies: Any,
    fresh: Any,
    meta: Any,
) -> None:
    """The oldest request has its response, whose frame stands in the row: as `Conversation.emit`."""
    entry = queues[connection[HEAD]]
    unchain(connection, queues, meta)
    connection[TAKEN] = 0
    meta[M_ROWS] += 1
    if connection[IDENTITY] < 0:
        connection[IDENTITY] = meta[M_IDENTITIES]
        meta[M_IDENTITIES] += 1
        fresh[meta[M_FRESH]] = slot
        meta[M_FRESH] += 1
    key, version = entry[Q_KEY], entry[Q_VERSION]
    if key == API_VERSIONS and int16(arena, bodies[0, kept]) == REFUSED:
        bodies[2, kept] = -2 - ((key << 16 | REFUSED_VERSION) << 1 | 1)
    else:
        bodies[2, kept] = -2 - ((key << 16 | version) << 1 | 1)
    row[R_ORDER] = order
    row[R_IDENTITY] = connection[IDENTITY]
    row[R_NAME] = connection[NAME]
    row[R_NUMBER] = entry[Q_NUMBER]
    row[R_KEY] = key
    row[R_VERSION] = version
    row[R_CORRELATION] = entry[Q_CORRELATION]
    row[R_RTT] = client[RTT_MIN]
    row[R_PREVIOUS] = connection[ANSWERED]
    row[R_FLAGS] = connection[FLAGS]
    row[R_REQUEST_SLOT] = entry[Q_SLOT]
    row[R_RESPONSE_SLOT] = SLOT_BASE + kept
    row[R_REQUEST : R_REQUEST + FRAME] = entry[Q_FRAME : Q_FRAME + FRAME]
    connection[ANSWERED] = row[R_RESPONSE + F_LAST_NS]
    connection[ROWS] += 1
    connection[RESPONSE_FRAMES] += 1
    connection[RESPONSE_BYTES] += row[R_RESPONSE + F_SIZE]
