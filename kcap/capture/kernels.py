"""The compiled loops themselves; importing this module imports numba.

In: bytes as an array. Out: columns filled in place, and where and why the loop stopped: bytes needed (0: the columns are full,
below 0: a block of another kind). Law: as in `pcap` and `pcapng`, line by line.
"""

from typing import Any

from numba import njit


@njit(cache=True, nogil=True)
def word(data: Any, at: int, big: bool) -> int:
    """An unsigned 32 bit number."""
    a, b, c, d = int(data[at]), int(data[at + 1]), int(data[at + 2]), int(data[at + 3])
    if big:
        return a << 24 | b << 16 | c << 8 | d
    return d << 24 | c << 16 | b << 8 | a


@njit(cache=True, nogil=True)
def hop_pcap(data: Any, at: int, big: bool, header: int, unit: int, columns: Any) -> tuple[int, int, int]:
    """Records of a pcap file."""
    available, count, room = data.size, 0, columns.shape[1]
    while count < room:
        if at + header > available:
            return count, at, header
        size = word(data, at + 8, big)
        end = at + header + size
        if end > available:
            return count, at, end - at
        columns[0, count] = word(data, at, big) * 1_000_000_000 + word(data, at + 4, big) * unit
        columns[1, count] = at + header
        columns[2, count] = size
        columns[3, count] = max(size, word(data, at + 12, big))
        count += 1
        at = end
    return count, at, 0


@njit(cache=True, nogil=True)
def hop_pcapng(data: Any, at: int, big: bool, clocks: Any, columns: Any) -> tuple[int, int, int]:
    """Enhanced packet blocks of a pcapng section whose clocks tick in whole nanoseconds."""
    available, count, room = data.size, 0, columns.shape[1]
    while count < room:
        if at + 28 > available or word(data, at, big) != 6:
            return count, at, -1
        total, interface, high = word(data, at + 4, big), word(data, at + 8, big), word(data, at + 12, big)
        size = word(data, at + 20, big)
        end = at + total
        if end > available or total & 3 or size > total - 32 or interface >= clocks.shape[0] or high >= clocks[interface, 2]:
            return count, at, -1
        columns[0, count] = (high << 32 | word(data, at + 16, big)) * clocks[interface, 0] + clocks[interface, 1]
        columns[1, count] = at + 28
        columns[2, count] = size
        columns[3, count] = max(size, word(data, at + 24, big))
        columns[4, count] = interface
        count += 1
        at = end
    return count, at, 0
