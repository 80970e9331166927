"""How a connection begins, compiled: SYN, SYN-ACK, first request.

In: a packet of an unknown connection, or of one without data yet. Out: the connection's rows in the fast path's arrays. Law:
they equal what `ConnectionTable` and `Conversation` know after the same packets; anything that is not clearly a Kafka
connection from its SYN on is left to these.
"""

from typing import Any

from kcap import limits
from kcap.fastpath.client_ids import name_number
from kcap.fastpath.flow_table import enter
from kcap.fastpath.layout import (
    ACKED,
    ACKED_RAW,
    ANSWERED,
    CALLED,
    CLIENT,
    CLOSING_NS,
    CONNECTION_WIDTH,
    CORRELATION,
    DONE,
    FIN_AT,
    FIN_NS,
    FIRST_NS,
    FIRST_POSITION,
    FIRST_REF,
    FLOW_SIZE,
    ID_BYTES,
    ID_LENGTH,
    IDENTITY,
    ISN,
    KEYS,
    LAST,
    LAST_START,
    LEAVE,
    LIVE,
    M_OPENED,
    M_SLOTS,
    NAME,
    NEXT_RAW,
    NONE,
    OPEN,
    OPEN_START,
    OWN,
    PACKETS,
    RST_NS,
    RTT_MIN,
    SHUT,
    STREAM_WIDTH,
    SYN_NS,
    TIMED_END,
    VERSIONS,
)
from kcap.fastpath.stream_kernels import round_trip
from kcap.kernels import compiled, int16, int32
from kcap.net.tcp import ACK, FIN, MASK, PSH, RST, SYN

URG = 32
KNOWN_FLAGS = FIN | SYN | RST | PSH | ACK | URG
"""Congestion flags may stand on a SYN (RFC 3168) and mean nothing here."""
CALL = SYN | ACK
REQUEST_HEAD = 14
FRAME_MAX = limits.FAST_PATH_FRAME_MAX
PRINTABLE, DELETE = 0x20, 0x7F


@compiled
def lower_source(data: Any, at: int, size: int) -> int:
    """-1 where a flow's source is the lower endpoint, 1 where it is the higher one, 0 where both are the same."""
    half = (size - 4) // 2
    for k in range(half):
        if data[at + k] != data[at + half + k]:
            return -1 if data[at + k] < data[at + half + k] else 1
    for k in range(2 * half, 2 * half + 2):
        if data[at + k] != data[at + k + 2]:
            return -1 if data[at + k] < data[at + k + 2] else 1
    return 0


@compiled
def call(
    data: Any, at: int, size: int, seq: int, time_ns: int, ref: int, position: int, order: int, free: Any, table: Any,
    keys: Any, connections: Any, streams: Any, opened: Any, meta: Any,
) -> bool:  # fmt: skip
    """Opens an own connection for a SYN of unknown endpoints, given a free slot. False for one that connects to itself."""
    low = lower_source(data, at, size)
    if low == 0:
        return False
    meta[M_SLOTS] -= 1
    slot = free[meta[M_SLOTS]]
    opened[meta[M_OPENED], 0] = slot
    opened[meta[M_OPENED], 1] = order
    meta[M_OPENED] += 1
    client = 0 if low < 0 else 1
    for k in range(CONNECTION_WIDTH):
        connections[slot, k] = 0
    connections[slot, LAST] = connections[slot, FIRST_NS] = connections[slot, SYN_NS] = time_ns
    connections[slot, FIRST_REF], connections[slot, FIRST_POSITION] = ref, position
    connections[slot, CORRELATION] = connections[slot, ANSWERED] = NONE
    connections[slot, RST_NS] = connections[slot, CLOSING_NS] = NONE
    connections[slot, CLIENT], connections[slot, IDENTITY] = client, -1
    connections[slot, OWN], connections[slot, LIVE] = 1, CALLED
    half = (size - 4) // 2
    for side in range(2):
        place = 2 * slot + side
        for k in range(STREAM_WIDTH):
            streams[place, k] = 0
        streams[place, NEXT_RAW] = streams[place, ACKED] = streams[place, ACKED_RAW] = NONE
        streams[place, TIMED_END] = streams[place, RTT_MIN] = streams[place, SHUT] = NONE
        streams[place, ISN] = streams[place, FIN_AT] = streams[place, FIN_NS] = NONE
        streams[place, LAST_START] = streams[place, OPEN_START] = -1
        streams[place, FLOW_SIZE] = size
        other = 0 if side == client else 1
        for k in range(half):
            keys[place, k] = data[at + k + other * half]
            keys[place, half + k] = data[at + k + (1 - other) * half]
        for k in range(2):
            keys[place, 2 * half + k] = data[at + 2 * half + k + 2 * other]
            keys[place, 2 * half + 2 + k] = data[at + 2 * half + k + 2 * (1 - other)]
        if side == client:
            streams[place, ISN], streams[place, NEXT_RAW], streams[place, PACKETS] = seq, (seq + 1) & MASK, 1
        enter(place, table, keys, streams)
    return True


@compiled
def called_back(
    place: int, seq: int, ack: int, flags: int, window: int, length: int, time_ns: int, connections: Any, streams: Any
) -> int:
    """Takes a SYN-ACK."""
    slot, other = place >> 1, place ^ 1
    if (
        place & 1 == connections[slot, CLIENT]
        or flags & KNOWN_FLAGS != CALL
        or length
        or not window
        or ack != streams[other, NEXT_RAW]
    ):
        return LEAVE
    connections[slot, LAST] = time_ns
    streams[place, PACKETS] += 1
    streams[place, ISN], streams[place, NEXT_RAW] = seq, (seq + 1) & MASK
    round_trip(streams, other, time_ns - connections[slot, SYN_NS])
    connections[slot, SYN_NS] = NONE
    streams[other, ACKED_RAW] = ack
    streams[other, ACKED] = 0
    connections[slot, LIVE] = OPEN
    return DONE


@compiled
def first_request(
    data: Any, at: int, end: int, slot: int, connections: Any, ids: Any, plain: Any, name_table: Any, blobs: Any, sizes: Any,
    meta: Any,
) -> bool:  # fmt: skip
    """Whether the client's first bytes are clearly a request with a client id: as `from_first_request`."""
    if end - at < REQUEST_HEAD:
        return False
    size, key, version, length = int32(data, at), int16(data, at + 4), int16(data, at + 6), int16(data, at + 12)
    if key < 0 or key >= KEYS or version < 0 or version >= VERSIONS or not plain[key, version]:
        return False
    first, stop = at + REQUEST_HEAD, at + 4 + size
    if length <= 0 or length > ID_BYTES or first + length > stop or first + length > end or (stop > end and size > FRAME_MAX):
        return False
    for k in range(first, first + length):
        if data[k] < PRINTABLE or data[k] >= DELETE:
            return False
    name = name_number(data, first, length, name_table, blobs, sizes, meta)
    if name < 0:
        return False
    connections[slot, NAME] = name
    connections[slot, ID_LENGTH] = length
    for k in range(length):
        ids[slot, k] = data[first + k]
    return True
