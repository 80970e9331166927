"""How a connection ends, compiled: FIN and RST of connections between two frames.

In: a packet that is no plain segment. Out: the connection's rows as `Connection.segment` would leave them. Law: a connection
with an open frame is exported before its end, as is one whose end is out of order.
"""

from typing import Any

from kcap import limits
from kcap.fastpath.flow_table import drop
from kcap.fastpath.layout import (
    ACKED,
    ACKED_RAW,
    CALLED,
    CLOSING,
    CLOSING_NS,
    DONE,
    ENDED,
    ENDS,
    FIN_AT,
    FIN_NS,
    FREE,
    HALF,
    HELD,
    LAST,
    LEAVE,
    LIVE,
    M_ENDED,
    M_SLOTS,
    NEXT,
    NEXT_RAW,
    NONE,
    OPEN,
    OPEN_SLOT,
    OPEN_START,
    OWN,
    PACKETS,
    RST_BY,
    RST_NS,
    SEARCHING,
    SHAKING,
    TALKING,
    TLS,
)
from kcap.fastpath.stream_kernels import acknowledged, distance, reopened
from kcap.kernels import compiled
from kcap.net.tcp import ACK, FIN, PSH, RST

LAST_WORD = FIN | ACK
LAST_PUSH = FIN | PSH | ACK
REFUSAL = RST | ACK
FAR = limits.SEQUENCE_FAR
LINGER = limits.CONNECTION_LINGER_NS
BY_FIN, BY_RST = ENDS.index("fin"), ENDS.index("rst")


@compiled
def ending(
    seq: int, ack: int, flags: int, window: int, length: int, time_ns: int, order: int, place: int, connections: Any,
    streams: Any, ended: Any, meta: Any,
) -> int:  # fmt: skip
    """Takes a FIN or RST of a connection with traffic: DONE where it ends the connection in order."""
    slot, other = place >> 1, place ^ 1
    live = connections[slot, LIVE]
    if not connections[slot, OWN] or length or (live != TALKING and live != HALF and live != CLOSING):
        return LEAVE
    if unfinished(streams, place) or unfinished(streams, other):
        return LEAVE
    if live == CLOSING and time_ns - connections[slot, CLOSING_NS] >= LINGER:
        return LEAVE
    by = 0
    if flags in (LAST_WORD, LAST_PUSH):
        if seq != streams[place, NEXT_RAW] or not window or streams[place, FIN_NS] != NONE:
            return LEAVE
        streams[place, FIN_AT] = streams[place, NEXT]
        streams[place, FIN_NS] = time_ns
        if live == TALKING:
            connections[slot, LIVE] = HALF
        if streams[other, FIN_NS] != NONE:
            by = BY_FIN
    elif flags in (RST, REFUSAL):
        if abs(distance(seq, streams[place, NEXT_RAW])) >= FAR:
            return LEAVE
        if connections[slot, RST_NS] == NONE:
            connections[slot, RST_NS] = time_ns
            connections[slot, RST_BY] = place & 1
        by = BY_RST
    else:
        return LEAVE
    if by and connections[slot, CLOSING_NS] == NONE:
        connections[slot, CLOSING_NS] = time_ns
        connections[slot, ENDED] = by
        connections[slot, LIVE] = CLOSING
        ended[meta[M_ENDED], 0] = slot
        ended[meta[M_ENDED], 1] = order
        meta[M_ENDED] += 1
    connections[slot, LAST] = time_ns
    streams[place, PACKETS] += 1
    if window:
        reopened(streams, place, time_ns)
    if flags & ACK and ack != streams[other, ACKED_RAW]:
        acknowledged(streams, other, ack, time_ns)
    return DONE


@compiled
def unfinished(streams: Any, place: int) -> bool:
    """Whether a frame or a record is open, which ends of connections decide; nothing of a lost boundary is left to be read."""
    is_open = streams[place, OPEN_START] >= 0 and streams[place, OPEN_SLOT] != SEARCHING
    return bool(is_open or streams[place, HELD])


@compiled
def settled(slot: int, connections: Any, streams: Any) -> bool:
    """Whether an own connection can end here: no byte came, and none was acknowledged; or a request was read, no frame and no
    record is open, and all that was acknowledged was captured (as `Stream.finish` sees it), so that a request that waits has no
    response.
    """
    first, second = 2 * slot, 2 * slot + 1
    if not connections[slot, OWN] or connections[slot, TLS] == SHAKING:
        return False
    if connections[slot, LIVE] in (CALLED, OPEN):
        return streams[first, ACKED] in (NONE, 0) and streams[second, ACKED] in (NONE, 0)
    fin = streams[first, FIN_NS] != NONE or streams[second, FIN_NS] != NONE
    for place in range(first, second + 1):
        if unfinished(streams, place):
            return False
        tail = streams[place, ACKED] - streams[place, NEXT] if streams[place, ACKED] != NONE else 0
        if tail == 1 or fin:
            tail -= 1
        if 0 < tail < FAR:
            return False
    return True


@compiled
def all_settled(slots: Any, found: Any, connections: Any, streams: Any) -> None:
    """Marks in `found` which of these connections are settled."""
    for at in range(slots.size):
        found[at] = settled(slots[at], connections, streams)


@compiled
def release_all(slots: Any, table: Any, keys: Any, connections: Any, streams: Any, free: Any, meta: Any) -> None:
    """Frees these slots."""
    for at in range(slots.size):
        release(slots[at], table, keys, connections, streams, free, meta)


@compiled
def release(slot: int, table: Any, keys: Any, connections: Any, streams: Any, free: Any, meta: Any) -> None:
    """Frees the slot."""
    connections[slot, LIVE] = FREE
    drop(2 * slot, table, keys, streams)
    drop(2 * slot + 1, table, keys, streams)
    free[meta[M_SLOTS]] = slot
    meta[M_SLOTS] += 1
