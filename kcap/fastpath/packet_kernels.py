"""The compiled walk over packets: streams and acknowledgements of connections in good order.

In: segment columns and the fast path's arrays. Out: rows, bodies, and the packets for the reference path. Law: the effect is
that of `ConnectionTable.feed` for the same packets; a connection whose next packet (or the rest of it) is not simple is
exported before that.
"""

from typing import Any

from kcap import limits
from kcap.fastpath.close_kernels import ending
from kcap.fastpath.flow_table import drop, find, pair_hash
from kcap.fastpath.frame_kernels import lacks_room, requests, responses
from kcap.fastpath.large_kernels import lacks_row
from kcap.fastpath.layout import (
    ACKED,
    ACKED_RAW,
    CALLED,
    CAPTURED,
    CLIENT,
    CLOSING,
    COUNT,
    DONE,
    F_SIZE,
    F_START,
    FIN_NS,
    FULL_LARGE,
    FULL_ROOM,
    FULL_SLOTS,
    HALF,
    HEAD,
    HOLED,
    LAST,
    LAST_NS,
    LAST_START,
    LEAVE,
    LIVE,
    M_BLIND,
    M_FULL,
    M_GONE,
    M_GROWS,
    M_LATE,
    M_LEFT,
    M_OPENED,
    M_OPENS,
    M_ORDER,
    M_REF,
    M_SLOTS,
    NEXT,
    NEXT_RAW,
    NONE,
    OPEN,
    OPEN_FLAGS,
    OPEN_REF,
    OPEN_SIZE,
    OPEN_SLOT,
    OPEN_START,
    PACKETS,
    PASSED,
    Q_DONE,
    Q_FLAGS,
    Q_FRAME,
    Q_NEXT,
    REPEATS,
    SEARCHING,
    SEGMENTS,
    TALKING,
    TIMED_END,
    TIMED_NS,
    TLS,
)  # fmt: skip
from kcap.fastpath.open_kernels import KNOWN_FLAGS, call, called_back, first_request
from kcap.fastpath.sealed_kernels import FILE_SHIFT, logged, seals
from kcap.fastpath.stream_kernels import acknowledged, distance, heard, reopened, repeat_of, repeated, selective, shut
from kcap.kernels import compiled
from kcap.limits import FAST_PATH_REPEATS_MAX, REPEATS_SEARCHED_MAX
from kcap.net.segment_columns import ABSENT, CLEAN
from kcap.net.tcp import ACK, MASK, PSH, RST, SYN

PUSH = PSH | ACK
IDLE = limits.CONNECTION_IDLE_NS
FAR, WAIT = limits.SEQUENCE_FAR, limits.FAST_PATH_WAIT
STOP = 1
"""What `opens` returns where the walk has to stop before the packet."""


@compiled
def again(seq: int, ack: int, length: int, time_ns: int, place: int, connections: Any, streams: Any, queues: Any) -> int:
    """Bytes that are not the next: DONE where all were seen before; undecided exchanges that have any of them are flagged."""
    slot, other = place >> 1, place ^ 1
    ahead = distance(seq, streams[place, NEXT_RAW])
    start = streams[place, NEXT] + ahead
    end = start + length
    if (
        ahead <= -FAR
        or start < 0
        or end > streams[place, NEXT]
        or connections[slot, HOLED]
        or connections[slot, LIVE] != TALKING
        or connections[slot, TLS]
        or connections[slot, PASSED]
        or (streams[place, OPEN_START] >= 0 and streams[place, OPEN_SLOT] == SEARCHING)
    ):
        return LEAVE
    if streams[place, REPEATS] >= FAST_PATH_REPEATS_MAX:
        return LEAVE
    flag = repeat_of(streams, place, start, end, time_ns)
    if flag:
        flagged = 0
        if place & 1 != connections[slot, CLIENT]:
            if streams[place, OPEN_START] >= 0 and end > streams[place, OPEN_START]:
                streams[place, OPEN_FLAGS] |= flag
                flagged = 1
        else:
            entry = connections[slot, HEAD]
            if connections[slot, COUNT] > REPEATS_SEARCHED_MAX:
                return LEAVE
            for _ in range(connections[slot, COUNT]):
                low, size = queues[entry, Q_FRAME + F_START], queues[entry, Q_FRAME + F_SIZE]
                if not queues[entry, Q_DONE]:
                    low, size = streams[place, OPEN_START], streams[place, OPEN_SIZE]
                if start < low + size and end > low:
                    queues[entry, Q_FLAGS] |= flag
                    flagged = 1
                entry = queues[entry, Q_NEXT]
        streams[place, REPEATS] = streams[place, REPEATS] + 1 if flagged or streams[place, REPEATS] else 0
    connections[slot, LAST] = time_ns
    streams[place, PACKETS] += 1
    streams[place, SEGMENTS] += 1
    if ack != streams[other, ACKED_RAW]:
        acknowledged(streams, other, ack, time_ns)
    if flag:
        repeated(streams, place, start, flag)
    return DONE


@compiled
def shut_out(seq: int, ack: int, length: int, time_ns: int, place: int, connections: Any, streams: Any) -> int:
    """Takes an acknowledgement with a zero window."""
    slot, other = place >> 1, place ^ 1
    if length or connections[slot, LIVE] == CLOSING or abs(distance(seq, streams[place, NEXT_RAW])) >= FAR:
        return LEAVE
    connections[slot, LAST] = time_ns
    streams[place, PACKETS] += 1
    if ack != streams[other, ACKED_RAW]:
        acknowledged(streams, other, ack, time_ns)
    shut(streams, place, time_ns)
    return DONE


@compiled
def is_next(
    data: Any, numbers: Any, index: int, ref: int, place: int, connections: Any, streams: Any, ids: Any, plain: Any, names: Any,
    blobs: Any, sizes: Any, meta: Any,
) -> bool:  # fmt: skip
    """Whether the framers can take the next bytes of a stream: those of TLS were captured, and a first request can be
    recognised.
    """
    slot, live, at, captured = place >> 1, connections[place >> 1, LIVE], numbers[4, index], numbers[5, index]
    if connections[slot, TLS] and captured != numbers[6, index]:
        return False
    if live == TALKING or (live == HALF and streams[place, FIN_NS] == NONE):
        return bool(streams[place, OPEN_START] < 0 or streams[place, OPEN_REF] >> FILE_SHIFT == ref >> FILE_SHIFT)
    if live != OPEN or place & 1 != connections[slot, CLIENT]:
        return False
    if not first_request(data, at, at + captured, slot, connections, ids, plain, names, blobs, sizes, meta):
        return False
    connections[slot, LIVE] = TALKING
    return True


@compiled
def segment(
    data: Any, numbers: Any, index: int, time_ns: int, position: int, place: int, connections: Any, streams: Any, queues: Any,
    ids: Any, rows: Any, bodies: Any, arena: Any, meta: Any, fresh: Any, plain: Any, steps: Any, ended: Any, names: Any,
    blobs: Any, sizes: Any, big: Any,
) -> Any:  # fmt: skip
    """Takes one packet of a connection: DONE, LEAVE, or how many bytes of its payload were taken."""
    slot, other = place >> 1, place ^ 1
    seq, ack, flags, length = numbers[0, index], numbers[1, index], numbers[2, index] & 0xFF, numbers[6, index]
    silent_ns = time_ns - connections[slot, LAST]
    if silent_ns < 0 or silent_ns >= IDLE:
        return LEAVE
    live = connections[slot, LIVE]
    if live == CALLED:
        return called_back(place, seq, ack, flags, numbers[3, index], length, time_ns, connections, streams)
    if flags != ACK and flags != PUSH:
        return ending(
            seq, ack, flags, numbers[3, index], length, time_ns, meta[M_ORDER] + index, place, connections, streams, ended,
            meta,
        )  # fmt: skip
    closed = numbers[3, index] == 0
    if closed:
        if not length or seq != streams[place, NEXT_RAW]:
            return shut_out(seq, ack, length, time_ns, place, connections, streams)
    else:
        reopened(streams, place, time_ns)
    ref = meta[M_REF] + index
    if length:
        if seq != streams[place, NEXT_RAW]:
            return again(seq, ack, length, time_ns, place, connections, streams, queues)
        if not is_next(data, numbers, index, ref, place, connections, streams, ids, plain, names, blobs, sizes, meta):
            return LEAVE
    if not heard(streams, other, ack, length, time_ns):
        return LEAVE
    if closed:
        shut(streams, place, time_ns)
    connections[slot, LAST] = time_ns
    streams[place, PACKETS] += 1
    if not length:
        return DONE
    streams[place, SEGMENTS] += 1
    offset = streams[place, NEXT]
    streams[place, NEXT] = offset + length
    streams[place, NEXT_RAW] = (seq + length) & MASK
    streams[place, CAPTURED] += length
    streams[place, LAST_START] = offset
    streams[place, LAST_NS] = time_ns
    if streams[place, TIMED_END] == NONE and (streams[place, ACKED] == NONE or streams[place, ACKED] < offset + length):
        streams[place, TIMED_END] = offset + length
        streams[place, TIMED_NS] = time_ns
    if connections[slot, TLS]:
        return DONE
    at = numbers[4, index]
    have, end = at + numbers[5, index], at + length
    if place & 1 == connections[slot, CLIENT]:
        stopped = requests(
            data, at, have, end, offset, time_ns, ref, position, meta[M_ORDER] + index, place, connections, streams, queues,
            ids, plain, steps, rows, arena, bodies, fresh, meta, big,
        )  # fmt: skip
    else:
        stopped = responses(
            data, at, have, end, offset, time_ns, ref, position, meta[M_ORDER] + index, place, connections, streams, queues,
            rows, arena, bodies, fresh, meta, big,
        )  # fmt: skip
    return DONE if stopped == end else stopped - at


@compiled
def opens(
    data: Any, at: int, size: int, numbers: Any, index: int, time_ns: int, position: int, free: Any, table: Any,
    keys: Any, connections: Any, streams: Any, opened: Any, meta: Any,
) -> int:  # fmt: skip
    """Takes a packet of unknown endpoints: DONE where it opens nothing or an own connection; STOP where no slot is free, or
    a flow before it could not be looked up.
    """
    flags = numbers[2, index]
    if meta[M_BLIND]:
        return STOP if flags & SYN else LEAVE
    if not flags & SYN and (not numbers[6, index] or flags & RST):
        return DONE
    if flags & KNOWN_FLAGS != SYN or numbers[6, index] or not numbers[3, index] or not meta[M_OPENS]:
        return LEAVE
    if not meta[M_SLOTS]:
        if not meta[M_GROWS]:
            return LEAVE
        meta[M_FULL] = FULL_SLOTS
        return STOP
    made = call(
        data, at, size, numbers[0, index], time_ns, meta[M_REF] + index, position, meta[M_ORDER] + index, free, table, keys,
        connections, streams, opened, meta,
    )  # fmt: skip
    return DONE if made else LEAVE


@compiled
def lacks(
    data: Any, numbers: Any, index: int, place: int, connections: Any, streams: Any, queues: Any, rows: Any, bodies: Any,
    arena: Any, meta: Any,
) -> bool:  # fmt: skip
    """Whether there may be no room for what a packet of a connection brings; M_FULL says for what."""
    if lacks_room(numbers[6, index], rows, bodies, arena, meta):
        meta[M_FULL] = FULL_ROOM
    elif lacks_row(data, numbers, index, place, connections, streams, queues, meta):
        meta[M_FULL] = FULL_LARGE
    return bool(meta[M_FULL])


@compiled
def walk(
    data: Any, numbers: Any, times: Any, positions: Any, flow_at: Any, flow_size: Any, state: Any, first: int, last: int,
    table: Any, keys: Any, connections: Any, streams: Any, queues: Any, ids: Any, rows: Any, bodies: Any, arena: Any, meta: Any,
    left: Any, gone: Any, fresh: Any, plain: Any, steps: Any, seen: Any, patience: Any, outside: Any, free: Any, opened: Any,
    ended: Any, names: Any, blobs: Any, sizes: Any, big: Any, log: Any, undo: Any,
) -> int:  # fmt: skip
    """Walks packets `first` to `last`; returns where it stopped: arrays are full, a connection outside has as many packets as
    `patience` has of its endpoints, the reference path must take packets before the flow of the next can be looked up, or a
    response is late, which is reported behind what the packets before it gave reason to report. Payload of connections with
    TLS is noted in `log` alone.
    """
    for index in range(first, last):
        if state[index] == ABSENT:
            continue
        taken = LEAVE
        if state[index] == CLEAN:
            at, size = flow_at[index], flow_size[index]
            found = find(data, at, size, table, keys, streams)
            if found >= 0:
                if lacks(data, numbers, index, found, connections, streams, queues, rows, bodies, arena, meta):
                    return index
                sealed = seals(data, numbers, index, found, connections, streams, undo, meta)
                taken = segment(
                    data, numbers, index, times[index], positions[index], found, connections, streams, queues, ids, rows,
                    bodies, arena, meta, fresh, plain, steps, ended, names, blobs, sizes, big,
                )  # fmt: skip
                if numbers[2, index] > 0xFF and taken != LEAVE:
                    selective(streams, found, numbers[2, index] >> 8)
                if taken == DONE:
                    logged(sealed, numbers, index, found, connections, streams, log, meta)
                    if meta[M_LATE]:
                        return index + 1
                    continue
                drop(found, table, keys, streams)
                drop(found ^ 1, table, keys, streams)
                gone[meta[M_GONE]] = found >> 1
                meta[M_GONE] += 1
            pair = pair_hash(data, at, size)
            place = pair & (seen.size - 1)
            if found < 0:
                if not seen[place] and not outside[pair & (outside.size - 1)]:
                    did = opens(
                        data, at, size, numbers, index, times[index], positions[index], free, table, keys, connections,
                        streams, opened, meta,
                    )  # fmt: skip
                    if did == DONE:
                        continue
                    if did == STOP:
                        return index
                if seen[place] >= patience[place]:
                    return index
            else:
                patience[place] += WAIT
            seen[place] += 1
        elif meta[M_OPENED]:
            return index
        else:
            meta[M_BLIND] = 1
        left[meta[M_LEFT], 0] = index
        left[meta[M_LEFT], 1] = taken
        meta[M_LEFT] += 1
    return last
