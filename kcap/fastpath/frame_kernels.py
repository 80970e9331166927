"""Frames and pairing of a connection in good order, compiled.

In: stream bytes in order. Out: outstanding requests, and rows. Law: the same as framers and pairing; where these would leave
their short way, the offset in the packet at which the reference path takes over. Importing this module imports numba.
"""

from typing import Any

from kcap import limits
from kcap.fastpath.body_kernels import add_body, close_frame, go_on, open_frame, whole_frame
from kcap.fastpath.layout import (
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
from kcap.kafka.headers import API_VERSIONS, PRODUCE
from kcap.kernels import compiled, inner, int16, int32
from kcap.schema.quirks import DOWNGRADES

FRAME_MAX = limits.FAST_PATH_FRAME_MAX
OUTSTANDING_MAX = limits.FAST_PATH_OUTSTANDING_MAX
REQUEST_HEAD = 14
RESPONSE_HEAD = 8
REFUSED = DOWNGRADES[API_VERSIONS][0]
REFUSED_VERSION = DOWNGRADES[API_VERSIONS][1]
UNKNOWN = -1


@compiled
def acks_of(data: Any, at: int, end: int, steps: Any, version: int) -> int:
    """Acks of a Produce request; 0 also where they cannot be read: both are for the reference path."""
    for step in range(STEPS):
        if at + 2 > end:
            return 0
        kind = steps[version, step, 0]
        if kind == STEP_NONE:
            return int(int16(data, at))
        if kind == STEP_FIXED:
            at += steps[version, step, 1]
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


@compiled
def chain(connections: Any, slot: int, queues: Any, meta: Any) -> Any:
    """Appends an entry to the outstanding requests."""
    entry = meta[M_FREE]
    meta[M_FREE] = queues[entry, Q_NEXT]
    meta[M_SPARE] -= 1
    if connections[slot, COUNT]:
        queues[connections[slot, TAIL], Q_NEXT] = entry
    else:
        connections[slot, HEAD] = entry
    connections[slot, TAIL] = entry
    connections[slot, COUNT] += 1
    return entry


@compiled
def unchain(connections: Any, slot: int, queues: Any, meta: Any) -> None:
    """Removes the first entry."""
    entry = connections[slot, HEAD]
    connections[slot, HEAD] = queues[entry, Q_NEXT]
    connections[slot, COUNT] -= 1
    queues[entry, Q_NEXT] = meta[M_FREE]
    meta[M_FREE] = entry
    meta[M_SPARE] += 1


@inner
def requests(
    data: Any, at: int, end: int, offset: int, time_ns: int, ref: int, position: int, place: int, connections: Any,
    streams: Any, queues: Any, ids: Any, plain: Any, steps: Any, arena: Any, bodies: Any, meta: Any,
) -> Any:  # fmt: skip
    """Takes bytes of the client; returns the offset at which the reference path takes over."""
    slot = place >> 1
    if streams[place, OPEN_START] >= 0:
        before = at
        at = go_on(streams, place, data, at, end, position, arena)
        offset += at - before
        if streams[place, OPEN_LEFT]:
            return at
        entry = connections[slot, TAIL]
        close_frame(streams, place, queues, entry, Q_FRAME, time_ns, ref)
        queues[entry, Q_DONE] = 1
        connections[slot, REQUEST_FRAMES] += 1
        connections[slot, REQUEST_BYTES] += queues[entry, Q_FRAME + F_SIZE]
    while end - at >= REQUEST_HEAD:
        size, key, version = int32(data, at), int16(data, at + 4), int16(data, at + 6)
        correlation, length = int32(data, at + 8), int16(data, at + 12)
        if key < 0 or key >= KEYS or version < 0 or version >= VERSIONS or not plain[key, version]:
            return at
        body, stop = at + REQUEST_HEAD + max(length, 0), at + 4 + size
        if length != connections[slot, ID_LENGTH] or body > stop or body > end or (stop > end and size > FRAME_MAX):
            return at
        for k in range(length):
            if ids[slot, k] != data[at + REQUEST_HEAD + k]:
                return at
        if connections[slot, COUNT] == OUTSTANDING_MAX:
            return at
        if (
            connections[slot, COUNT] > connections[slot, TAKEN]
            and queues[connections[slot, TAIL], Q_CORRELATION] == correlation
        ):
            return at
        if key == PRODUCE and acks_of(data, body, min(stop, end), steps, version) == 0:
            return at
        entry = chain(connections, slot, queues, meta)
        connections[slot, NUMBER] += 1
        connections[slot, CORRELATION] = correlation
        kept = add_body(data, body, min(stop, end), stop, -2 - ((key << 16 | version) << 1), arena, bodies, meta)
        queues[entry, Q_NUMBER] = connections[slot, NUMBER]
        queues[entry, Q_KEY] = key
        queues[entry, Q_VERSION] = version
        queues[entry, Q_CORRELATION] = correlation
        queues[entry, Q_SLOT] = SLOT_BASE + kept
        if stop > end:
            queues[entry, Q_DONE] = 0
            open_frame(streams, place, offset, size + 4, time_ns, ref, position, stop - end, kept, bodies[0, kept] + end - body)
            return end
        queues[entry, Q_DONE] = 1
        whole_frame(queues, entry, Q_FRAME, offset, size + 4, time_ns, ref, position)
        connections[slot, REQUEST_FRAMES] += 1
        connections[slot, REQUEST_BYTES] += size + 4
        offset += size + 4
        at = stop
    return at


@inner
def responses(
    data: Any, at: int, end: int, offset: int, time_ns: int, ref: int, position: int, order: int, place: int, connections: Any,
    streams: Any, queues: Any, rows: Any, arena: Any, bodies: Any, fresh: Any, meta: Any,
) -> Any:  # fmt: skip
    """Takes bytes of the broker; returns the offset at which the reference path takes over."""
    slot = place >> 1
    if streams[place, OPEN_START] >= 0:
        before = at
        at = go_on(streams, place, data, at, end, position, arena)
        offset += at - before
        if streams[place, OPEN_LEFT]:
            return at
        close_frame(streams, place, rows, meta[M_ROWS], R_RESPONSE, time_ns, ref)
        response(rows, streams[place, OPEN_SLOT], order, place, connections, streams, queues, arena, bodies, fresh, meta)
    while end - at >= RESPONSE_HEAD and connections[slot, COUNT]:
        entry = connections[slot, HEAD]
        size, correlation = int32(data, at), int32(data, at + 4)
        stop = at + 4 + size
        if (
            size < 4
            or not queues[entry, Q_DONE]
            or correlation != queues[entry, Q_CORRELATION]
            or (stop > end and size > FRAME_MAX)
        ):
            return at
        if size < 6 and queues[entry, Q_KEY] == API_VERSIONS:
            return at
        body = at + RESPONSE_HEAD
        kept = add_body(data, body, min(stop, end), stop, UNKNOWN, arena, bodies, meta)
        if stop > end:
            open_frame(streams, place, offset, size + 4, time_ns, ref, position, stop - end, kept, bodies[0, kept] + end - body)
            connections[slot, TAKEN] = 1
            return end
        whole_frame(rows, meta[M_ROWS], R_RESPONSE, offset, size + 4, time_ns, ref, position)
        response(rows, kept, order, place, connections, streams, queues, arena, bodies, fresh, meta)
        offset += size + 4
        at = stop
    return at


@inner
def response(
    rows: Any, kept: int, order: int, place: int, connections: Any, streams: Any, queues: Any, arena: Any, bodies: Any,
    fresh: Any, meta: Any,
) -> None:  # fmt: skip
    """The oldest request has its response, whose frame is in the row: as `Conversation.emit`."""
    slot, row = place >> 1, meta[M_ROWS]
    entry = connections[slot, HEAD]
    unchain(connections, slot, queues, meta)
    connections[slot, TAKEN] = 0
    meta[M_ROWS] += 1
    if connections[slot, IDENTITY] < 0:
        connections[slot, IDENTITY] = meta[M_IDENTITIES]
        meta[M_IDENTITIES] += 1
        fresh[meta[M_FRESH]] = slot
        meta[M_FRESH] += 1
    key, version = queues[entry, Q_KEY], queues[entry, Q_VERSION]
    if key == API_VERSIONS and int16(arena, bodies[0, kept]) == REFUSED:
        bodies[2, kept] = -2 - ((key << 16 | REFUSED_VERSION) << 1 | 1)
    else:
        bodies[2, kept] = -2 - ((key << 16 | version) << 1 | 1)
    rows[row, R_ORDER] = order
    rows[row, R_IDENTITY] = connections[slot, IDENTITY]
    rows[row, R_NAME] = connections[slot, NAME]
    rows[row, R_NUMBER] = queues[entry, Q_NUMBER]
    rows[row, R_KEY] = key
    rows[row, R_VERSION] = version
    rows[row, R_CORRELATION] = queues[entry, Q_CORRELATION]
    rows[row, R_RTT] = streams[place ^ 1, RTT_MIN]
    rows[row, R_PREVIOUS] = connections[slot, ANSWERED]
    rows[row, R_FLAGS] = connections[slot, FLAGS]
    rows[row, R_REQUEST_SLOT] = queues[entry, Q_SLOT]
    rows[row, R_RESPONSE_SLOT] = SLOT_BASE + kept
    for part in range(FRAME):
        rows[row, R_REQUEST + part] = queues[entry, Q_FRAME + part]
    connections[slot, ANSWERED] = rows[row, R_RESPONSE + F_LAST_NS]
    connections[slot, ROWS] += 1
    connections[slot, RESPONSE_FRAMES] += 1
    connections[slot, RESPONSE_BYTES] += rows[row, R_RESPONSE + F_SIZE]
