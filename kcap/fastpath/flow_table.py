"""Finds the stream of a packet: a table of flow keys with open addressing, compiled.

In: the bytes of a flow key. Out: the stream's row, or none. Law: a key that was entered and not dropped is found, and no other.
Both directions of a connection have the same `pair_hash`.
"""

from typing import Any

import numpy as np

from kcap.fastpath.layout import FLOW_SIZE
from kcap.kernels import compiled, uint32


@compiled
def key_hash(data: Any, at: int, size: int) -> Any:
    """A hash of a flow key, or of other bytes."""
    value, words = np.uint64(0xCBF29CE484222325), at + (size & ~3)
    for place in range(at, words, 4):
        value = (value ^ np.uint64(uint32(data, place))) * np.uint64(0x9E3779B97F4A7C15)
        value ^= value >> np.uint64(32)
    for place in range(words, at + size):
        value = (value ^ np.uint64(data[place])) * np.uint64(0x100000001B3)
    return np.int64((value ^ (value >> np.uint64(29))) & np.uint64(0x7FFFFFFF))


@compiled
def same_key(key: Any, data: Any, at: int, size: int) -> bool:
    """Whether a stored flow key, which has room for the longest one, equals that of a packet."""
    words = size & ~3
    for k in range(0, words, 4):
        if uint32(key, k) != uint32(data, at + k):
            return False
    for k in range(words, size):  # noqa: SIM110 - kernels have no generators
        if key[k] != data[at + k]:
            return False
    return True


@compiled
def pair_hash(data: Any, at: int, size: int) -> Any:
    """A hash of the two endpoints of a flow key that does not depend on the direction."""
    half = (size - 4) // 2
    total = np.uint64(0)
    for side in range(2):
        value = np.uint64(0xCBF29CE484222325)
        for place in range(at + side * half, at + (side + 1) * half):
            value = (value ^ np.uint64(data[place])) * np.uint64(0x100000001B3)
        port = at + 2 * half + 2 * side
        value = (value ^ np.uint64(data[port])) * np.uint64(0x100000001B3)
        value = (value ^ np.uint64(data[port + 1])) * np.uint64(0x100000001B3)
        total += value ^ (value >> np.uint64(31))
    total *= np.uint64(0x9E3779B97F4A7C15)
    return np.int64((total >> np.uint64(32)) & np.uint64(0x7FFFFFFF))


def pair_number(flow: bytes) -> int:
    """`pair_hash` of a complete flow key, at a fifth of the cost of calling a kernel."""
    half = (len(flow) - 4) // 2
    total = 0
    for endpoint in (flow[:half] + flow[-4:-2], flow[half : 2 * half] + flow[-2:]):
        value = 0xCBF29CE484222325
        for byte in endpoint:
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        total += value ^ (value >> 31)
    return (total * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) >> 32 & 0x7FFFFFFF


@compiled
def find(data: Any, at: int, size: int, table: Any, keys: Any, streams: Any) -> int:
    """The stream with this flow key; -1 if none is in the fast path."""
    room = table.size - 1
    place = key_hash(data, at, size) & room
    while table[place] != 0:
        found = table[place] - 1
        if found >= 0 and streams[found, FLOW_SIZE] == size and same_key(keys[found], data, at, size):
            return int(found)
        place = (place + 1) & room
    return -1


@compiled
def enter(stream: int, table: Any, keys: Any, streams: Any) -> None:
    """Adds a stream's flow key to the table."""
    room = table.size - 1
    place = key_hash(keys[stream], 0, streams[stream, FLOW_SIZE]) & room
    while table[place] > 0:
        place = (place + 1) & room
    table[place] = stream + 1


@compiled
def enter_all(places: Any, table: Any, keys: Any, streams: Any) -> None:
    """Adds the flow keys of these streams to the table."""
    for at in range(places.size):
        enter(places[at], table, keys, streams)


@compiled
def drop(stream: int, table: Any, keys: Any, streams: Any) -> None:
    """Removes a stream. Its place stays marked (-1) for other entries with the same hash."""
    room = table.size - 1
    place = key_hash(keys[stream], 0, streams[stream, FLOW_SIZE]) & room
    while table[place] != 0:
        if table[place] == stream + 1:
            table[place] = -1
            return
        place = (place + 1) & room
