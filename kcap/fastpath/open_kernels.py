"""How a connection begins, compiled: SYN, SYN-ACK, first request.

In: a packet of an unknown connection, or of one without data yet. Out: the connection's rows in the fast path's arrays. Law:
they equal the state of `ConnectionTable` and `Conversation` after the same packets. Anything that is not clearly a Kafka
connection from its SYN on is left to these.
"""

from typing import Any

from kcap import limits
from kcap.fastpath import layout as at
from kcap.fastpath.client_ids import name_number
from kcap.fastpath.flow_table import enter
from kcap.fastpath.stream_kernels import round_trip
from kcap.kernels import compiled, int16, int32
from kcap.net.tcp import ACK, FIN, MASK, PSH, RST, SYN

URG = 32
KNOWN_FLAGS = FIN | SYN | RST | PSH | ACK | URG
"""Flags that may occur. Congestion flags are allowed on a SYN (RFC 3168) and ignored here."""
CALL = SYN | ACK
REQUEST_HEAD = 14
FRAME_MAX = limits.FAST_PATH_FRAME_MAX
PRINTABLE, DELETE = 0x20, 0x7F


@compiled
def lower_source(data: Any, cursor: int, size: int) -> int:
    """-1 if a flow's source is the lower endpoint, 1 if it is the higher one, 0 if both are the same."""
    half = (size - 4) // 2
    for k in range(half):
        if data[cursor + k] != data[cursor + half + k]:
            return -1 if data[cursor + k] < data[cursor + half + k] else 1
    for k in range(2 * half, 2 * half + 2):
        if data[cursor + k] != data[cursor + k + 2]:
            return -1 if data[cursor + k] < data[cursor + k + 2] else 1
    return 0


@compiled
def call(
    packets: Any, cursor: int, size: int, seq: int, time_ns: int, ref: int, position: int, order: int, arrays: Any
) -> bool:
    """Opens an own connection for a SYN of unknown endpoints, if there is a free slot. False for one that connects to
    itself.
    """
    data, keys, opened = packets.data, packets.keys, packets.opened
    connections, streams, meta = arrays.connections, arrays.streams, arrays.meta
    low = lower_source(data, cursor, size)
    if low == 0:
        return False
    meta[at.M_SLOTS] -= 1
    slot = packets.free[meta[at.M_SLOTS]]
    opened[meta[at.M_OPENED], 0] = slot
    opened[meta[at.M_OPENED], 1] = order
    meta[at.M_OPENED] += 1
    client = 0 if low < 0 else 1
    for k in range(at.CONNECTION_WIDTH):
        connections[slot, k] = 0
    connections[slot, at.LAST] = connections[slot, at.FIRST_NS] = connections[slot, at.SYN_NS] = time_ns
    connections[slot, at.FIRST_REF], connections[slot, at.FIRST_POSITION] = ref, position
    connections[slot, at.CORRELATION] = connections[slot, at.ANSWERED] = at.NONE
    connections[slot, at.RST_NS] = connections[slot, at.CLOSING_NS] = at.NONE
    connections[slot, at.CLIENT], connections[slot, at.IDENTITY] = client, -1
    connections[slot, at.OWN], connections[slot, at.LIVE] = 1, at.CALLED
    half = (size - 4) // 2
    for side in range(2):
        place = 2 * slot + side
        for k in range(at.STREAM_WIDTH):
            streams[place, k] = 0
        streams[place, at.NEXT_RAW] = streams[place, at.ACKED] = streams[place, at.ACKED_RAW] = at.NONE
        streams[place, at.TIMED_END] = streams[place, at.RTT_MIN] = streams[place, at.SHUT] = at.NONE
        streams[place, at.RESENT_AT] = at.NONE
        streams[place, at.ISN] = streams[place, at.FIN_AT] = streams[place, at.FIN_NS] = at.NONE
        streams[place, at.LAST_START] = streams[place, at.OPEN_START] = -1
        streams[place, at.FLOW_SIZE] = size
        other = 0 if side == client else 1
        for k in range(half):
            keys[place, k] = data[cursor + k + other * half]
            keys[place, half + k] = data[cursor + k + (1 - other) * half]
        for k in range(2):
            keys[place, 2 * half + k] = data[cursor + 2 * half + k + 2 * other]
            keys[place, 2 * half + 2 + k] = data[cursor + 2 * half + k + 2 * (1 - other)]
        if side == client:
            streams[place, at.ISN], streams[place, at.NEXT_RAW], streams[place, at.PACKETS] = seq, (seq + 1) & MASK, 1
        enter(place, packets.table, keys, streams)
    return True


@compiled
def called_back(
    place: int, seq: int, ack: int, flags: int, window: int, length: int, time_ns: int, connections: Any, streams: Any
) -> int:
    """Takes a SYN-ACK."""
    slot, other = place >> 1, place ^ 1
    if (
        place & 1 == connections[slot, at.CLIENT]
        or flags & KNOWN_FLAGS != CALL
        or length
        or not window
        or ack != streams[other, at.NEXT_RAW]
    ):
        return at.LEAVE
    connections[slot, at.LAST] = time_ns
    streams[place, at.PACKETS] += 1
    streams[place, at.ISN], streams[place, at.NEXT_RAW] = seq, (seq + 1) & MASK
    round_trip(streams, other, time_ns - connections[slot, at.SYN_NS])
    connections[slot, at.SYN_NS] = at.NONE
    streams[other, at.ACKED_RAW] = ack
    streams[other, at.ACKED] = 0
    connections[slot, at.LIVE] = at.OPEN
    return at.DONE


@compiled
def first_request(data: Any, cursor: int, end: int, slot: int, arrays: Any) -> bool:
    """Whether the client's first bytes are clearly a request with a client id, as `from_first_request`."""
    connections = arrays.connections
    if end - cursor < REQUEST_HEAD:
        return False
    size, key, version, length = int32(data, cursor), int16(data, cursor + 4), int16(data, cursor + 6), int16(data, cursor + 12)
    if key < 0 or key >= at.KEYS or version < 0 or version >= at.VERSIONS or not arrays.header[key, version]:
        return False
    first, stop = cursor + REQUEST_HEAD, cursor + 4 + size
    if (
        length <= 0
        or length > at.ID_BYTES
        or first + length > stop
        or first + length > end
        or (stop > end and size > FRAME_MAX)
    ):
        return False
    for k in range(first, first + length):
        if data[k] < PRINTABLE or data[k] >= DELETE:
            return False
    name = name_number(data, first, length, arrays.names, arrays.blobs, arrays.sizes, arrays.meta)
    if name < 0:
        return False
    connections[slot, at.NAME] = name
    connections[slot, at.ID_LENGTH] = length
    for k in range(length):
        arrays.ids[slot, k] = data[first + k]
    return True
