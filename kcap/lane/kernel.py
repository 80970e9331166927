"""The compiled walk over packets: streams and acknowledgements of connections in good order.

In: segment columns and the lane's arrays. Out: rows, bodies, and the packets that are not for the lane. Law: what is done
here is
what `ConnectionTable.feed` does for the same packets; a connection whose next packet (or the rest of it) needs more thought
leaves
the lane before that. Importing this module imports numba.
"""

from typing import Any

from numba import njit

from kcap import limits
from kcap.lane.flows import drop, find, key_hash
from kcap.lane.layout import (
    ACKED,
    ACKED_RAW,
    CAPTURED,
    CLIENT,
    DONE,
    LAST,
    LAST_NS,
    LAST_START,
    LEAVE,
    LIVE,
    M_BODIES,
    M_FULL,
    M_GONE,
    M_LEFT,
    M_ORDER,
    M_REF,
    M_ROWS,
    M_SPARE,
    M_TOP,
    NEXT,
    NEXT_RAW,
    NONE,
    OPEN_REF,
    OPEN_START,
    PACKETS,
    RTT_COUNT,
    RTT_MIN,
    RTT_SUM,
    SEGMENTS,
    TIMED_END,
    TIMED_NS,
)
from kcap.lane.talk import requests, responses
from kcap.net.columns import ABSENT, CLEAN
from kcap.net.tcp import ACK, MASK, PSH

PUSH = PSH | ACK
IDLE = limits.CONNECTION_IDLE_NS
FAR = limits.SEQUENCE_FAR
FRAME_MAX = limits.LANE_FRAME_MAX
RESPONSE_HEAD = 8
FILE_SHIFT = 40


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
def segment(
    data: Any, numbers: Any, index: int, time_ns: int, position: int, found: int, connections: Any, streams: Any, queues: Any,
    ids: Any,
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
    data: Any, numbers: Any, times: Any, positions: Any, flow_at: Any, flow_size: Any, state: Any, first: int, last: int,
    table: Any,
    keys: Any, connections: Any, streams: Any, queues: Any, ids: Any, rows: Any, bodies: Any, arena: Any, meta: Any, left:
    Any, gone: Any,
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
                data, numbers, index, times[index], positions[index], found, connections, streams, queues, ids, rows, bodies,
                arena, meta,
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
