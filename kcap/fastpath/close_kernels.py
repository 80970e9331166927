"""How a connection ends, compiled: FIN and RST between two frames, and on connections that carried no bytes.

In: a packet that is no plain segment. Out: the connection's rows as `Connection.segment` would leave them. Law: a connection is
exported before its end if that is out of order, or on a TLS connection within a frame or a record. What is left of a frame is
decided when the connection is closed.
"""

from typing import Any

from kcap import limits
from kcap.fastpath import layout as at
from kcap.fastpath.flow_table import drop
from kcap.fastpath.stream_kernels import acknowledged, distance, reopened
from kcap.kernels import compiled
from kcap.net.tcp import ACK, FIN, PSH, RST

LAST_WORD = FIN | ACK
LAST_PUSH = FIN | PSH | ACK
REFUSAL = RST | ACK
FAR = limits.SEQUENCE_FAR
IDLE, LINGER = limits.CONNECTION_IDLE_NS, limits.CONNECTION_LINGER_NS
BY_FIN, BY_RST = at.ENDS.index("fin"), at.ENDS.index("rst")


@compiled
def ending(
    packets: Any, seq: int, ack: int, flags: int, window: int, length: int, time_ns: int, order: int, place: int, arrays: Any
) -> int:
    """Takes a FIN or RST; DONE if it ends the connection in order."""
    connections, streams, meta = arrays.connections, arrays.streams, arrays.meta
    ended = packets.ended
    slot, other = place >> 1, place ^ 1
    live = connections[slot, at.LIVE]
    if not connections[slot, at.OWN] or length:
        return at.LEAVE
    if live == at.CALLED and (
        flags != REFUSAL or place & 1 == connections[slot, at.CLIENT] or ack != streams[other, at.NEXT_RAW]
    ):
        return at.LEAVE
    if connections[slot, at.TLS] and (unfinished(streams, place) or unfinished(streams, other)):
        return at.LEAVE
    by = 0
    if flags in (LAST_WORD, LAST_PUSH):
        if seq != streams[place, at.NEXT_RAW] or not window:
            return at.LEAVE
        if streams[place, at.FIN_NS] == at.NONE:  # a retransmitted FIN is only an acknowledgement
            by = finished(time_ns, place, connections, streams)
    elif flags in (RST, REFUSAL):
        if live != at.CALLED and abs(distance(seq, streams[place, at.NEXT_RAW])) >= FAR:
            return at.LEAVE
        if connections[slot, at.RST_NS] == at.NONE:
            connections[slot, at.RST_NS] = time_ns
            connections[slot, at.RST_BY] = place & 1
        by = BY_RST
    else:
        return at.LEAVE
    if by and connections[slot, at.CLOSING_NS] == at.NONE:
        connections[slot, at.CLOSING_NS] = time_ns
        connections[slot, at.ENDED] = by
        connections[slot, at.LIVE] = at.CLOSING
        ended[meta[at.M_ENDED], 0] = slot
        ended[meta[at.M_ENDED], 1] = order
        meta[at.M_ENDED] += 1
    connections[slot, at.LAST] = time_ns
    streams[place, at.PACKETS] += 1
    if window:
        reopened(streams, place, time_ns)
    if flags & ACK and ack != streams[other, at.ACKED_RAW]:
        acknowledged(streams, other, ack, time_ns)
    return at.DONE


@compiled
def finished(time_ns: int, place: int, connections: Any, streams: Any) -> int:
    """Takes a FIN; returns how it ends the connection, 0 if the other stream goes on."""
    live = connections[place >> 1, at.LIVE]
    streams[place, at.FIN_AT] = streams[place, at.NEXT]
    streams[place, at.FIN_NS] = time_ns
    if live == at.TALKING:
        connections[place >> 1, at.LIVE] = at.HALF
    elif live == at.OPEN:
        connections[place >> 1, at.LIVE] = at.HALF_EMPTY
    return BY_FIN if streams[place ^ 1, at.FIN_NS] != at.NONE else 0


@compiled
def over(slot: int, time_ns: int, connections: Any, streams: Any) -> bool:
    """Whether a connection takes no packet of this time, because it was idle or held long enough, or because it was refused, so
    that the numbers of one stream are not known.
    """
    silent_ns = time_ns - connections[slot, at.LAST]
    if silent_ns < 0 or silent_ns >= IDLE:
        return True
    if connections[slot, at.LIVE] != at.CLOSING:
        return False
    refused = streams[2 * slot, at.NEXT_RAW] == at.NONE or streams[2 * slot + 1, at.NEXT_RAW] == at.NONE
    return bool(refused or time_ns - connections[slot, at.CLOSING_NS] >= LINGER)


@compiled
def unfinished(streams: Any, place: int) -> bool:
    """Whether a frame or a record is open, so that the end of the connection has to decide it. After a lost boundary, nothing
    is left to be read.
    """
    is_open = streams[place, at.OPEN_START] >= 0 and streams[place, at.OPEN_SLOT] != at.SEARCHING
    return bool(is_open or streams[place, at.HELD])


@compiled
def unended(place: int, connections: Any, streams: Any) -> bool:
    """Whether a response is open whose bytes so far are all in the arena."""
    slot = place >> 1
    if connections[slot, at.TLS] or place & 1 == connections[slot, at.CLIENT]:
        return False
    is_open = streams[place, at.OPEN_START] >= 0 and not streams[place, at.OPEN_FLAGS]
    return bool(is_open and 0 <= streams[place, at.OPEN_SLOT] < at.LARGE_BASE)


@compiled
def settled(slot: int, connections: Any, streams: Any) -> bool:
    """Whether an own connection can end here. Either no byte came, and none was acknowledged. Or a request was read, no frame
    and no record is open except for an `unended` response, and everything acknowledged was captured (as in `Stream.finish`), so
    that a waiting request has no response.
    """
    first, second = 2 * slot, 2 * slot + 1
    if not connections[slot, at.OWN] or connections[slot, at.TLS] == at.SHAKING:
        return False
    if connections[slot, at.LIVE] in (at.CALLED, at.OPEN):
        return streams[first, at.ACKED] in (at.NONE, 0) and streams[second, at.ACKED] in (at.NONE, 0)
    fin = streams[first, at.FIN_NS] != at.NONE or streams[second, at.FIN_NS] != at.NONE
    for place in range(first, second + 1):
        if unfinished(streams, place) and not unended(place, connections, streams):
            return False
        tail = streams[place, at.ACKED] - streams[place, at.NEXT] if streams[place, at.ACKED] != at.NONE else 0
        if tail == 1 or fin:
            tail -= 1
        if 0 < tail < FAR:
            return False
    return True


@compiled
def all_settled(slots: Any, found: Any, connections: Any, streams: Any) -> None:
    """Marks in `found` which of these connections are settled."""
    for k in range(slots.size):
        found[k] = settled(slots[k], connections, streams)


@compiled
def release_all(slots: Any, table: Any, keys: Any, connections: Any, streams: Any, free: Any, meta: Any) -> None:
    for k in range(slots.size):
        release(slots[k], table, keys, connections, streams, free, meta)


@compiled
def release(slot: int, table: Any, keys: Any, connections: Any, streams: Any, free: Any, meta: Any) -> None:
    connections[slot, at.LIVE] = at.FREE
    drop(2 * slot, table, keys, streams)
    drop(2 * slot + 1, table, keys, streams)
    free[meta[at.M_SLOTS]] = slot
    meta[at.M_SLOTS] += 1
