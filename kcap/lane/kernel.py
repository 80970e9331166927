"""The compiled walk over packets: streams, acknowledgements, frames and pairing of connections in good order.

In: segment columns and the lane's arrays. Out: rows, bodies, and the packets that are not for the lane. Law: what is done here is
what `ConnectionTable.feed`, the framers and the pairing do for the same packets; a connection whose next packet (or the rest of it)
needs more thought leaves the lane before that. Importing this module imports numba.
"""

from typing import Any

import numpy as np
from numba import njit

from kcap import limits
from kcap.kafka.headers import API_VERSIONS, PRODUCE, SASL_HANDSHAKE
from kcap.lane.layout import (
    ACKED, ACKED_RAW, ANSWERED, CAPTURED, CLIENT, CORRELATION, COUNT, DONE, F_FIRST_NS, F_FIRST_REF, F_HIGH, F_LAST_NS, F_LAST_REF,
    F_LOW, F_SIZE, F_START, FLAGS, FLOW_SIZE, FRAME, HEAD, ID_LENGTH, IDENTITY, KEYS, LAST, LAST_NS, LAST_START, LEAVE, LIVE, M_BODIES,
    M_FREE, M_FRESH, M_FULL, M_GONE, M_IDENTITIES, M_LEFT, M_ORDER, M_REF, M_ROWS, M_SPARE, M_TOP, NAME, NEXT, NEXT_RAW, NONE, NUMBER, OPEN_AT, OPEN_HIGH,
    OPEN_LEFT, OPEN_LOW, OPEN_NS, OPEN_REF, OPEN_SIZE, OPEN_SLOT, OPEN_START, PACKETS, Q_CORRELATION, Q_DONE, Q_FRAME, Q_KEY, Q_NEXT, Q_NUMBER,
    Q_SLOT, Q_VERSION, R_CORRELATION, R_FLAGS, R_IDENTITY, R_KEY, R_NAME, R_NUMBER, R_ORDER, R_PREVIOUS, R_REQUEST, R_REQUEST_SLOT,
    R_RESPONSE, R_RESPONSE_SLOT, R_RTT, R_VERSION, REQUEST_BYTES, REQUEST_FRAMES, RESPONSE_BYTES, RESPONSE_FRAMES, ROWS, RTT_COUNT,
    RTT_MIN, RTT_SUM, SEGMENTS, SLOT_BASE, STEP_COMPACT_STRING, STEP_FIXED, STEP_NONE, STEP_STRING, STEP_TAGS, STEPS, TAIL, TAKEN, TIMED_END,
    TIMED_NS, VERSIONS,
)  # fmt: skip
from kcap.net.columns import ABSENT, CLEAN
from kcap.net.tcp import ACK, MASK, PSH
from kcap.schema.quirks import DOWNGRADES

PUSH = PSH | ACK
IDLE, FAR = limits.CONNECTION_IDLE_NS, limits.SEQUENCE_FAR
FRAME_MAX = limits.LANE_FRAME_MAX
OUTSTANDING_MAX, MOVED_BODY, MOVED_BYTES = limits.LANE_OUTSTANDING_MAX, limits.LANE_MOVED_BODY, limits.LANE_MOVED_BYTES
REQUEST_HEAD, RESPONSE_HEAD = 14, 8
REFUSED = DOWNGRADES[API_VERSIONS][0]
REFUSED_VERSION = DOWNGRADES[API_VERSIONS][1]
FILE_SHIFT = 40
UNKNOWN = -1


@njit(cache=True, nogil=True, inline="always")
def int16(data: Any, at: int) -> Any:
    """A 16 bit number in network order."""
    return np.int64(np.int16((np.uint16(data[at]) << np.uint16(8)) | np.uint16(data[at + 1])))


@njit(cache=True, nogil=True, inline="always")
def int32(data: Any, at: int) -> Any:
    """A 32 bit number in network order."""
    value = (
        (np.uint32(data[at]) << np.uint32(24))
        | (np.uint32(data[at + 1]) << np.uint32(16))
        | (np.uint32(data[at + 2]) << np.uint32(8))
        | np.uint32(data[at + 3])
    )
    return np.int64(np.int32(value))


@njit(cache=True, nogil=True)
def key_hash(data: Any, at: int, size: int) -> Any:
    """A number for a flow key."""
    value = np.uint64(0xCBF29CE484222325)
    for place in range(at, at + size):
        value = (value ^ np.uint64(data[place])) * np.uint64(0x100000001B3)
    return np.int64((value ^ (value >> np.uint64(29))) & np.uint64(0x7FFFFFFF))


@njit(cache=True, nogil=True)
def find(data: Any, at: int, size: int, table: Any, keys: Any, streams: Any) -> int:
    """The stream with this flow key, -1 for none in the lane."""
    room = table.size - 1
    place = key_hash(data, at, size) & room
    while table[place] != 0:
        found = table[place] - 1
        if found >= 0 and streams[found, FLOW_SIZE] == size:
            same = True
            for k in range(size):
                if keys[found, k] != data[at + k]:
                    same = False
                    break
            if same:
                return int(found)
        place = (place + 1) & room
    return -1


@njit(cache=True, nogil=True)
def enter(stream: int, table: Any, keys: Any, streams: Any) -> None:
    """Puts a stream's flow key into the table."""
    room = table.size - 1
    place = key_hash(keys[stream], 0, streams[stream, FLOW_SIZE]) & room
    while table[place] > 0:
        place = (place + 1) & room
    table[place] = stream + 1


@njit(cache=True, nogil=True)
def drop(stream: int, table: Any, keys: Any, streams: Any) -> None:
    """Takes it out; its place stays marked (-1) for those behind it."""
    room = table.size - 1
    place = key_hash(keys[stream], 0, streams[stream, FLOW_SIZE]) & room
    while table[place] != 0:
        if table[place] == stream + 1:
            table[place] = -1
            return
        place = (place + 1) & room


@njit(cache=True, nogil=True)
def distance(ahead: int, behind: int) -> Any:
    """`signed32` of the difference of two sequence numbers."""
    value = (ahead - behind) & MASK
    return value - (1 << 32) if value & 0x80000000 else value


@njit(cache=True, nogil=True)
def round_trip(stream: Any, sample: int) -> None:
    """As `Stream.round_trip`."""
    if sample >= 0:
        if stream[RTT_MIN] == NONE or sample < stream[RTT_MIN]:
            stream[RTT_MIN] = sample
        stream[RTT_SUM] += sample
        stream[RTT_COUNT] += 1


@njit(cache=True, nogil=True)
def acknowledged(stream: Any, ack: int, time_ns: int) -> None:
    """As `Stream.acknowledged`."""
    stream[ACKED_RAW] = ack
    offset = stream[NEXT] + distance(ack, stream[NEXT_RAW])
    if stream[ACKED] != NONE and offset <= stream[ACKED]:
        return
    stream[ACKED] = offset
    if stream[TIMED_END] != NONE and offset >= stream[TIMED_END]:
        stream[TIMED_END] = NONE
        round_trip(stream, time_ns - stream[TIMED_NS])


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
            at += 2 + max(int16(data, at), 0)
        elif kind == STEP_COMPACT_STRING and data[at] < 128:
            at += max(np.int64(data[at]), 1)
        elif kind == STEP_TAGS and data[at] == 0:
            at += 1
        else:
            return 0
    return 0


@njit(cache=True, nogil=True)
def add_body(data: Any, low: int, high: int, stop: int, program: int, arena: Any, bodies: Any, meta: Any) -> Any:
    """Keeps `data[low:high]` and room up to `stop` in the arena; its slot in the lane."""
    slot, top = meta[M_BODIES], meta[M_TOP]
    arena[top : top + high - low] = data[low:high]
    bodies[0, slot] = top
    bodies[1, slot] = meta[M_TOP] = top + stop - low
    bodies[2, slot] = program
    meta[M_BODIES] = slot + 1
    return slot


@njit(cache=True, nogil=True)
def open_frame(stream: Any, start: int, size: int, time_ns: int, ref: int, position: int, left: int, slot: int, at: int) -> None:
    """A frame of which bytes are still to come."""
    stream[OPEN_START] = start
    stream[OPEN_SIZE] = size
    stream[OPEN_NS] = time_ns
    stream[OPEN_REF] = ref
    stream[OPEN_LOW] = stream[OPEN_HIGH] = position
    stream[OPEN_LEFT] = left
    stream[OPEN_SLOT] = slot
    stream[OPEN_AT] = at


@njit(cache=True, nogil=True)
def go_on(stream: Any, data: Any, at: int, end: int, position: int, arena: Any) -> Any:
    """More bytes of the open frame; where they end."""
    size = min(stream[OPEN_LEFT], end - at)
    place = stream[OPEN_AT]
    arena[place : place + size] = data[at : at + size]
    stream[OPEN_AT] = place + size
    stream[OPEN_LEFT] -= size
    if position < stream[OPEN_LOW]:
        stream[OPEN_LOW] = position
    elif position > stream[OPEN_HIGH]:
        stream[OPEN_HIGH] = position
    return at + size


@njit(cache=True, nogil=True)
def close_frame(stream: Any, frame: Any, time_ns: int, ref: int) -> None:
    """The open frame's last byte has passed."""
    frame[F_START] = stream[OPEN_START]
    frame[F_SIZE] = stream[OPEN_SIZE]
    frame[F_FIRST_NS] = stream[OPEN_NS]
    frame[F_FIRST_REF] = stream[OPEN_REF]
    frame[F_LAST_NS] = time_ns
    frame[F_LAST_REF] = ref
    frame[F_LOW] = stream[OPEN_LOW]
    frame[F_HIGH] = stream[OPEN_HIGH]
    stream[OPEN_START] = -1


@njit(cache=True, nogil=True)
def whole_frame(frame: Any, start: int, size: int, time_ns: int, ref: int, position: int) -> None:
    """A frame that one packet brought."""
    frame[F_START] = start
    frame[F_SIZE] = size
    frame[F_FIRST_NS] = frame[F_LAST_NS] = time_ns
    frame[F_FIRST_REF] = frame[F_LAST_REF] = ref
    frame[F_LOW] = frame[F_HIGH] = position


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
    data: Any, at: int, end: int, offset: int, time_ns: int, ref: int, position: int, order: int, slot: int, connections: Any, stream: Any,
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
    row: Any, kept: int, order: int, slot: int, connection: Any, client: Any, queues: Any, arena: Any, bodies: Any, fresh: Any, meta: Any
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


@njit(cache=True, nogil=True)
def segment(
    data: Any, numbers: Any, index: int, time_ns: int, position: int, found: int, connections: Any, streams: Any, queues: Any, ids: Any,
    rows: Any, bodies: Any, arena: Any, meta: Any, fresh: Any, plain: Any, steps: Any,
) -> Any:  # fmt: skip
    """One packet of a connection in the lane: DONE, LEAVE, or how many bytes of its payload were taken."""
    connection, stream, peer = connections[found >> 1], streams[found], streams[found ^ 1]
    seq, ack, flags, length = numbers[0, index], numbers[1, index], numbers[2, index], numbers[6, index]
    silent_ns = time_ns - connection[LAST]
    if (flags != ACK and flags != PUSH) or not numbers[3, index] or silent_ns < 0 or silent_ns >= IDLE:
        return LEAVE
    ref = meta[M_REF] + index
    if length:
        if seq != stream[NEXT_RAW] or numbers[5, index] != length:
            return LEAVE
        if stream[OPEN_START] >= 0 and stream[OPEN_REF] >> FILE_SHIFT != ref >> FILE_SHIFT:
            return LEAVE
    if ack != peer[ACKED_RAW]:
        if peer[NEXT_RAW] == ack and peer[ACKED] != NONE:
            peer[ACKED_RAW] = ack
            peer[ACKED] = peer[NEXT]
            if peer[TIMED_END] != NONE:
                peer[TIMED_END] = NONE
                round_trip(peer, time_ns - peer[TIMED_NS])
        elif not length and abs(distance(ack, peer[NEXT_RAW])) >= FAR:
            return LEAVE
        else:
            acknowledged(peer, ack, time_ns)
    connection[LAST] = time_ns
    stream[PACKETS] += 1
    if not length:
        return DONE
    stream[SEGMENTS] += 1
    offset = stream[NEXT]
    stream[NEXT] = offset + length
    stream[NEXT_RAW] = (seq + length) & MASK
    stream[CAPTURED] += length
    stream[LAST_START] = offset
    stream[LAST_NS] = time_ns
    if stream[TIMED_END] == NONE:
        stream[TIMED_END] = offset + length
        stream[TIMED_NS] = time_ns
    at = numbers[4, index]
    end = at + length
    if found & 1 == connection[CLIENT]:
        stopped = requests(
            data, at, end, offset, time_ns, ref, position, connection, stream, queues, ids[found >> 1], plain, steps,
            arena, bodies, meta,
        )  # fmt: skip
    else:
        stopped = responses(
            data, at, end, offset, time_ns, ref, position, meta[M_ORDER] + index, found >> 1, connections, stream, peer,
            queues, rows, arena, bodies, fresh, meta,
        )  # fmt: skip
    return DONE if stopped == end else stopped - at


@njit(cache=True, nogil=True)
def walk(
    data: Any, numbers: Any, times: Any, positions: Any, flow_at: Any, flow_size: Any, state: Any, first: int, last: int, table: Any,
    keys: Any, connections: Any, streams: Any, queues: Any, ids: Any, rows: Any, bodies: Any, arena: Any, meta: Any, left: Any, gone: Any,
    fresh: Any, plain: Any, steps: Any, seen: Any, patience: int,
) -> int:  # fmt: skip
    """Packets `first` to `last`; where it stopped: for want of room, or since a connection outside shows much of itself."""
    for index in range(first, last):
        if state[index] == ABSENT:
            continue
        found = find(data, flow_at[index], flow_size[index], table, keys, streams) if state[index] == CLEAN else -1
        taken = LEAVE
        if found >= 0:
            length = numbers[6, index]
            frames = length // RESPONSE_HEAD + 2
            if (
                meta[M_ROWS] + frames > rows.shape[0]
                or meta[M_BODIES] + frames > bodies.shape[1]
                or meta[M_SPARE] < frames
                or meta[M_TOP] + length + FRAME_MAX > arena.size
            ):
                meta[M_FULL] = 1
                return index
            taken = segment(
                data, numbers, index, times[index], positions[index], found, connections, streams, queues, ids, rows, bodies, arena, meta,
                fresh, plain, steps,
            )  # fmt: skip
            if taken == DONE:
                continue
            drop(found, table, keys, streams)
            drop(found ^ 1, table, keys, streams)
            connections[found >> 1, LIVE] = 0
            gone[meta[M_GONE]] = found >> 1
            meta[M_GONE] += 1
        elif state[index] == CLEAN:
            place = key_hash(data, flow_at[index], flow_size[index]) & (seen.size - 1)
            seen[place] += 1
            if seen[place] > patience:
                return index
        left[meta[M_LEFT], 0] = index
        left[meta[M_LEFT], 1] = taken
        meta[M_LEFT] += 1
    return last


@njit(cache=True, nogil=True)
def carry_over(
    connections: Any, streams: Any, queues: Any, bodies: Any, arena: Any, new_bodies: Any, new_arena: Any, meta: Any, heavy: Any
) -> Any:
    """Moves the bodies of requests that wait and of open frames to a new batch; which entries are too heavy for that."""
    count, room, meta[M_BODIES], meta[M_TOP] = 0, MOVED_BYTES, 0, 0
    for slot in range(connections.shape[0]):
        connection = connections[slot]
        if not connection[LIVE]:
            continue
        place = connection[HEAD]
        for _ in range(connection[COUNT]):
            entry = queues[place]
            old = entry[Q_SLOT] - SLOT_BASE
            if old >= 0:
                size = bodies[1, old] - bodies[0, old]
                if entry[Q_DONE] and (size > MOVED_BODY or size > room):
                    heavy[count] = place
                    count += 1
                else:
                    if entry[Q_DONE]:
                        room -= size
                    new = moved(old, bodies, arena, new_bodies, new_arena, meta)
                    entry[Q_SLOT] = SLOT_BASE + new
                    if not entry[Q_DONE]:
                        reopened(streams[2 * slot + connection[CLIENT]], old, new, bodies, new_bodies)
            place = entry[Q_NEXT]
        server = streams[2 * slot + 1 - connection[CLIENT]]
        if server[OPEN_START] >= 0:
            old = server[OPEN_SLOT]
            reopened(server, old, moved(old, bodies, arena, new_bodies, new_arena, meta), bodies, new_bodies)
    return count


@njit(cache=True, nogil=True)
def moved(old: int, bodies: Any, arena: Any, new_bodies: Any, new_arena: Any, meta: Any) -> Any:
    """A body's place in the new batch; in the old one nobody reads it."""
    low, high, slot, top = bodies[0, old], bodies[1, old], meta[M_BODIES], meta[M_TOP]
    new_arena[top : top + high - low] = arena[low:high]
    new_bodies[0, slot] = top
    new_bodies[1, slot] = meta[M_TOP] = top + high - low
    new_bodies[2, slot] = bodies[2, old]
    bodies[2, old] = UNKNOWN
    meta[M_BODIES] = slot + 1
    return slot


@njit(cache=True, nogil=True)
def reopened(stream: Any, old: int, new: int, bodies: Any, new_bodies: Any) -> None:
    """The open frame goes on in the new batch."""
    stream[OPEN_SLOT] = new
    stream[OPEN_AT] += new_bodies[0, new] - bodies[0, old]
