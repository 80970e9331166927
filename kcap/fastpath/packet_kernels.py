"""The compiled walk over packets: streams and acknowledgements of well-behaved connections.

In: segment columns and the fast path's arrays. Out: rows, bodies, and the packets for the reference path. Law: the effect
equals that of `ConnectionTable.feed` for the same packets. A connection is exported before its next packet, or the rest of it,
if that is not simple.
"""

from typing import Any

from kcap import limits
from kcap.fastpath import layout as at
from kcap.fastpath.close_kernels import ending, over
from kcap.fastpath.flow_table import drop, find, pair_hash
from kcap.fastpath.frame_kernels import lacks_room, requests, responses
from kcap.fastpath.large_kernels import lacks_row
from kcap.fastpath.open_kernels import KNOWN_FLAGS, call, called_back, first_request
from kcap.fastpath.sealed_kernels import logged, seals
from kcap.fastpath.stream_kernels import acknowledged, distance, heard, reopened, repeat_of, repeated, selective, shut
from kcap.kernels import compiled
from kcap.limits import FAST_PATH_REPEATS_MAX, REPEATS_SEARCHED_MAX
from kcap.model import REF_FILE_SHIFT
from kcap.net.segment_columns import ABSENT, CLEAN
from kcap.net.tcp import ACK, MASK, PSH, RST, SYN

PUSH = PSH | ACK
FAR, WAIT = limits.SEQUENCE_FAR, limits.FAST_PATH_WAIT
STOP = 1
"""Result of `opens` if the walk has to stop before the packet."""


@compiled
def again(seq: int, ack: int, length: int, time_ns: int, place: int, connections: Any, streams: Any, queues: Any) -> int:
    """Takes bytes that are not the next ones; DONE if all of them were seen before. Undecided exchanges with any of them are
    flagged.
    """
    slot, other = place >> 1, place ^ 1
    ahead = distance(seq, streams[place, at.NEXT_RAW])
    start = streams[place, at.NEXT] + ahead
    end = start + length
    if (
        ahead <= -FAR
        or start < 0
        or end > streams[place, at.NEXT]
        or connections[slot, at.HOLED]
        or connections[slot, at.LIVE] != at.TALKING
        or connections[slot, at.TLS]
        or connections[slot, at.PASSED]
        or (streams[place, at.OPEN_START] >= 0 and streams[place, at.OPEN_SLOT] == at.SEARCHING)
    ):
        return at.LEAVE
    if streams[place, at.REPEATS] >= FAST_PATH_REPEATS_MAX:
        return at.LEAVE
    flag = repeat_of(streams, place, start, end, time_ns)
    if flag:
        flagged = 0
        if place & 1 != connections[slot, at.CLIENT]:
            if streams[place, at.OPEN_START] >= 0 and end > streams[place, at.OPEN_START]:
                streams[place, at.OPEN_FLAGS] |= flag
                flagged = 1
        else:
            entry = connections[slot, at.HEAD]
            if connections[slot, at.COUNT] > REPEATS_SEARCHED_MAX:
                return at.LEAVE
            for _ in range(connections[slot, at.COUNT]):
                low, size = queues[entry, at.Q_FRAME + at.F_START], queues[entry, at.Q_FRAME + at.F_SIZE]
                if not queues[entry, at.Q_DONE]:
                    low, size = streams[place, at.OPEN_START], streams[place, at.OPEN_SIZE]
                if start < low + size and end > low:
                    queues[entry, at.Q_FLAGS] |= flag
                    flagged = 1
                entry = queues[entry, at.Q_NEXT]
        streams[place, at.REPEATS] = streams[place, at.REPEATS] + 1 if flagged or streams[place, at.REPEATS] else 0
    connections[slot, at.LAST] = time_ns
    streams[place, at.PACKETS] += 1
    streams[place, at.SEGMENTS] += 1
    if ack != streams[other, at.ACKED_RAW]:
        acknowledged(streams, other, ack, time_ns)
    if flag:
        repeated(streams, place, start, end, flag, time_ns)
    return at.DONE


@compiled
def shut_out(seq: int, ack: int, length: int, time_ns: int, place: int, connections: Any, streams: Any) -> int:
    """Takes an acknowledgement with a zero window."""
    slot, other = place >> 1, place ^ 1
    if length or connections[slot, at.LIVE] == at.CLOSING or abs(distance(seq, streams[place, at.NEXT_RAW])) >= FAR:
        return at.LEAVE
    connections[slot, at.LAST] = time_ns
    streams[place, at.PACKETS] += 1
    if ack != streams[other, at.ACKED_RAW]:
        acknowledged(streams, other, ack, time_ns)
    shut(streams, place, time_ns)
    return at.DONE


@compiled
def is_next(packets: Any, index: int, ref: int, place: int, arrays: Any) -> bool:
    """Whether the framers can take the next bytes of a stream: those of TLS were captured, and a first request can be
    recognised.
    """
    numbers = packets.numbers
    connections, streams = arrays.connections, arrays.streams
    slot, live, cursor, captured = place >> 1, connections[place >> 1, at.LIVE], numbers[4, index], numbers[5, index]
    if connections[slot, at.TLS] and captured != numbers[6, index]:
        return False
    if live == at.TALKING or (live == at.HALF and streams[place, at.FIN_NS] == at.NONE):
        return bool(streams[place, at.OPEN_START] < 0 or streams[place, at.OPEN_REF] >> REF_FILE_SHIFT == ref >> REF_FILE_SHIFT)
    if live != at.OPEN or place & 1 != connections[slot, at.CLIENT]:
        return False
    if not first_request(packets.data, cursor, cursor + captured, slot, arrays):
        return False
    connections[slot, at.LIVE] = at.TALKING
    return True


@compiled
def segment(packets: Any, index: int, time_ns: int, position: int, place: int, arrays: Any) -> Any:
    """Takes one packet of a connection; DONE, LEAVE, or how many bytes of its payload were taken."""
    data, numbers = packets.data, packets.numbers
    connections, streams, meta = arrays.connections, arrays.streams, arrays.meta
    slot, other = place >> 1, place ^ 1
    seq, ack, flags, length = numbers[0, index], numbers[1, index], numbers[2, index] & 0xFF, numbers[6, index]
    if over(slot, time_ns, connections, streams):
        return at.LEAVE
    if connections[slot, at.LIVE] == at.CALLED and not flags & RST:
        return called_back(place, seq, ack, flags, numbers[3, index], length, time_ns, connections, streams)
    if flags != ACK and flags != PUSH:
        return ending(packets, seq, ack, flags, numbers[3, index], length, time_ns, meta[at.M_ORDER] + index, place, arrays)
    closed = numbers[3, index] == 0
    if closed:
        if not length or seq != streams[place, at.NEXT_RAW]:
            return shut_out(seq, ack, length, time_ns, place, connections, streams)
    else:
        reopened(streams, place, time_ns)
    ref = meta[at.M_REF] + index
    if length:
        if seq != streams[place, at.NEXT_RAW]:
            return again(seq, ack, length, time_ns, place, connections, streams, arrays.queues)
        if not is_next(packets, index, ref, place, arrays):
            return at.LEAVE
    if not heard(streams, other, ack, length, time_ns):
        return at.LEAVE
    if closed:
        shut(streams, place, time_ns)
    connections[slot, at.LAST] = time_ns
    streams[place, at.PACKETS] += 1
    if not length:
        return at.DONE
    streams[place, at.SEGMENTS] += 1
    offset = streams[place, at.NEXT]
    streams[place, at.NEXT] = offset + length
    streams[place, at.NEXT_RAW] = (seq + length) & MASK
    streams[place, at.CAPTURED] += length
    streams[place, at.LAST_START] = offset
    streams[place, at.LAST_NS] = time_ns
    if streams[place, at.TIMED_END] == at.NONE and (
        streams[place, at.ACKED] == at.NONE or streams[place, at.ACKED] < offset + length
    ):
        streams[place, at.TIMED_END] = offset + length
        streams[place, at.TIMED_NS] = time_ns
    if connections[slot, at.TLS]:
        return at.DONE
    cursor = numbers[4, index]
    have, end = cursor + numbers[5, index], cursor + length
    if place & 1 == connections[slot, at.CLIENT]:
        stopped = requests(data, cursor, have, end, offset, time_ns, ref, position, meta[at.M_ORDER] + index, place, arrays)
    else:
        stopped = responses(data, cursor, have, end, offset, time_ns, ref, position, meta[at.M_ORDER] + index, place, arrays)
    return at.DONE if stopped == end else stopped - cursor


@compiled
def opens(packets: Any, cursor: int, size: int, index: int, time_ns: int, position: int, arrays: Any) -> int:
    """Takes a packet of unknown endpoints. DONE if it opens nothing or an own connection; STOP if no slot is free, or if a flow
    before it could not be looked up.
    """
    numbers = packets.numbers
    meta = arrays.meta
    flags = numbers[2, index]
    if meta[at.M_BLIND]:
        return STOP if flags & SYN else at.LEAVE
    if not flags & SYN and (not numbers[6, index] or flags & RST):
        return at.DONE
    if flags & KNOWN_FLAGS != SYN or numbers[6, index] or not numbers[3, index] or not meta[at.M_OPENS]:
        return at.LEAVE
    if not meta[at.M_SLOTS]:
        if not meta[at.M_GROWS]:
            return at.LEAVE
        meta[at.M_FULL] = at.FULL_SLOTS
        return STOP
    made = call(
        packets, cursor, size, numbers[0, index], time_ns, meta[at.M_REF] + index, position, meta[at.M_ORDER] + index, arrays
    )
    return at.DONE if made else at.LEAVE


@compiled
def lacks(packets: Any, index: int, place: int, arrays: Any) -> bool:
    """Whether there may be no room for what a packet of a connection contains; M_FULL says for what."""
    numbers = packets.numbers
    meta = arrays.meta
    if lacks_room(numbers[6, index], arrays.rows, arrays.bodies, arrays.arena, meta):
        meta[at.M_FULL] = at.FULL_ROOM
    elif lacks_row(packets.data, numbers, index, place, arrays.connections, arrays.streams, arrays.queues, meta):
        meta[at.M_FULL] = at.FULL_LARGE
    return bool(meta[at.M_FULL])


@compiled
def walk(packets: Any, first: int, last: int, arrays: Any) -> int:
    """Walks packets `first` to `last`; returns where it stopped. It stops if arrays are full, if a connection outside has as
    many packets as `patience` allows for its endpoints, if the reference path must take packets before the next flow can be
    looked up, or if a response is late and has to be reported after an earlier packet's oddities. Payload of connections with
    TLS is only listed in `log`.
    """
    data, numbers, times, positions, kinds = packets.data, packets.numbers, packets.times, packets.positions, packets.kinds
    table, keys, seen, patience = packets.table, packets.keys, packets.seen, packets.patience
    connections, streams, meta = arrays.connections, arrays.streams, arrays.meta
    for index in range(first, last):
        if kinds[index] == ABSENT:
            continue
        taken = at.LEAVE
        if kinds[index] == CLEAN:
            cursor, size = packets.flow_at[index], packets.flow_size[index]
            found = find(data, cursor, size, table, keys, streams)
            if found >= 0:
                if lacks(packets, index, found, arrays):
                    return index
                sealed = seals(data, numbers, index, found, connections, streams, packets.undo, meta)
                taken = segment(packets, index, times[index], positions[index], found, arrays)
                if numbers[2, index] > 0xFF and taken != at.LEAVE:
                    selective(streams, found, numbers[2, index] >> 8)
                if taken == at.DONE:
                    logged(sealed, numbers, index, found, connections, streams, packets.log, meta)
                    if meta[at.M_LATE] and (meta[at.M_LEFT] or meta[at.M_ODD]):
                        return index + 1
                    continue
                drop(found, table, keys, streams)
                drop(found ^ 1, table, keys, streams)
                packets.gone[meta[at.M_GONE]] = found >> 1
                meta[at.M_GONE] += 1
            pair = pair_hash(data, cursor, size)
            place = pair & (seen.size - 1)
            if found < 0:
                if not seen[place] and not packets.outside[pair & (packets.outside.size - 1)]:
                    did = opens(packets, cursor, size, index, times[index], positions[index], arrays)
                    if did == at.DONE:
                        continue
                    if did == STOP:
                        return index
                if seen[place] >= patience[place]:
                    return index
            else:
                patience[place] += WAIT
            seen[place] += 1
        elif meta[at.M_OPENED]:
            return index
        else:
            meta[at.M_BLIND] = 1
        packets.left[meta[at.M_LEFT], 0] = index
        packets.left[meta[at.M_LEFT], 1] = taken
        meta[at.M_LEFT] += 1
    return last
