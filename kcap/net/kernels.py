"""The compiled loop over packets; importing this module imports numba.

In: a buffer and columns of packets. Out: the numbers of their TCP headers, filled in place, and for each packet whether it is
CLEAN, ABSENT (surely no segment) or SLOW (for the plain path to judge). Law: what is called clean reads as `segments` reads it.
"""

from typing import Any

from numba import njit

ABSENT, CLEAN, SLOW = 0, 1, 2
ETHERNET, SLL, SLL2, NULL, LOOP = 1, 113, 276, 0, 108


@njit(cache=True, nogil=True)
def short(data: Any, at: int) -> int:
    """An unsigned 16 bit number in network order."""
    return int(data[at]) << 8 | int(data[at + 1])


@njit(cache=True, nogil=True)
def word(data: Any, at: int) -> int:
    """An unsigned 32 bit number in network order."""
    return short(data, at) << 16 | short(data, at + 2)


@njit(cache=True, nogil=True)
def ip_header(data: Any, at: int, end: int, link: int) -> int:
    """Where the IP header is, -1 where the plain path has to find out, -2 where there is none."""
    if link == ETHERNET:
        header, kind_at = 14, 12
    elif link == SLL:
        header, kind_at = 16, 14
    elif link == SLL2:
        header, kind_at = 20, 0
    elif link in (NULL, LOOP):
        return at + 4 if at + 24 <= end else -1
    elif link in (12, 14, 101, 228, 229):
        return at if at + 20 <= end else -1
    else:
        return -1
    if at + header + 20 > end:
        return -1
    kind = short(data, at + kind_at)
    at += header
    while kind in (0x8100, 0x88A8, 0x9100):
        if at + 24 > end:
            return -1
        kind = short(data, at + 2)
        at += 4
    if kind == 0x0800:
        return at if data[at] == 0x45 else -1
    if kind == 0x86DD:
        return at if data[at] >> 4 == 6 else -1
    return -2 if kind in (0x0806, 0x88CC) else -1


@njit(cache=True, nogil=True)
def parse_packets(
    data: Any, starts: Any, sizes: Any, links: Any, columns: Any, flow_at: Any, flow_size: Any, state: Any
) -> None:
    """Ethernet, cooked, null and raw packets of IPv4 without options or IPv6 without extensions, with TCP."""
    for index in range(starts.size):
        start = starts[index]
        end = start + sizes[index]
        state[index] = SLOW
        at = ip_header(data, start, end, links[index])
        if at < 0:
            if at == -2:
                state[index] = ABSENT
            continue
        if data[at] == 0x45:
            if data[at + 9] != 6:
                continue
            if short(data, at + 6) & 0x3FFF != 0:
                continue
            flow, size, tcp, total = at + 12, 12, at + 20, short(data, at + 2) - 20
        elif data[at] >> 4 == 6:
            if at + 60 > end or data[at + 6] != 6:
                continue
            flow, size, tcp, total = at + 8, 36, at + 40, short(data, at + 4)
        else:
            continue
        if tcp + 20 > end:
            continue
        header = data[tcp + 12] >> 4 << 2
        length = total - header
        if header < 20 or length < 0:
            continue
        payload = tcp + header
        room = max(end - payload, 0)
        flow_at[index] = flow
        flow_size[index] = size
        columns[0, index] = word(data, tcp + 4)
        columns[1, index] = word(data, tcp + 8)
        columns[2, index] = data[tcp + 13]
        columns[3, index] = short(data, tcp + 14)
        columns[4, index] = payload
        columns[5, index] = min(room, length)
        columns[6, index] = length
        state[index] = CLEAN
