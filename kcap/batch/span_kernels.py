"""The compiled form of `kcap.batch.bodies.encoded`: spans of bytes as numbers of their distinct contents.

In: spans of one buffer, or of another behind it. Out: a number for each span, and where each number stands first. Law: as
`encoded`, and linear in the bytes of the spans, whatever they hold.
"""

from typing import Any

from kcap.kernels import compiled, home, mixed, routine, uint32

WORD = 8


@compiled
def word(data: Any, at: int) -> Any:
    """Eight bytes."""
    return uint32(data, at) << 32 | uint32(data, at + 4)


@compiled
def hashed(data: Any, start: int, end: int, seed: int) -> Any:
    """A hash of some bytes and of how many they are; two at a time, of which neither waits for the other."""
    code, other, at = mixed(seed, end - start), mixed(seed, start - end), start
    while at + 2 * WORD <= end:
        code, other = mixed(code, word(data, at)), mixed(other, word(data, at + WORD))
        at += 2 * WORD
    if at + WORD <= end:
        code = mixed(code, word(data, at))
        at += WORD
    while at < end:
        other = mixed(other, int(data[at]))
        at += 1
    return mixed(code, other)


@compiled
def equal(data: Any, start: int, other: Any, first: int, size: int) -> bool:
    """Whether as many bytes of two buffers are the same. Without a way out of the loop it takes many bytes at a time."""
    different = 0
    for k in range(size):
        different |= int(data[start + k]) ^ int(other[first + k])
    return different == 0


@compiled
def alike(data: Any, more: Any, start: int, first: int, size: int) -> Any:
    """Whether two spans of as many bytes hold the same; one that starts behind `data` is of `more`."""
    base = data.size
    if start < base:
        return equal(data, start, data, first, size) if first < base else equal(data, start, more, first - base, size)
    return equal(more, start - base, data, first, size) if first < base else equal(more, start - base, more, first - base, size)


@routine
def number_spans(data: Any, more: Any, starts: Any, ends: Any, table: Any, numbers: Any, firsts: Any, seed: int) -> int:
    """Writes the number of each span's content, -1 for a span that starts at -1, and the first span of each number; returns how
    many numbers there are. They are given in the order of the spans.

    A span that starts behind `data` is of `more`. `table`, a power of two and at least twice as large as there are spans, is 0.
    All hashes come first: a processor reads several spans at a time from memory where nothing is decided in between.
    """
    count, base, room = 0, data.size, table.size
    for at in range(starts.size):
        start, end, numbers[at] = starts[at], ends[at], -1
        if start >= base:
            numbers[at] = home(hashed(more, start - base, end - base, seed), room)
        elif start >= 0:
            numbers[at] = home(hashed(data, start, end, seed), room)
    for at in range(starts.size):
        start, size = starts[at], ends[at] - starts[at]
        if start < 0:
            continue
        place = numbers[at]
        numbers[at] = count
        while table[place] != 0:
            number = table[place] - 1
            first = starts[firsts[number]]
            if ends[firsts[number]] - first == size and alike(data, more, start, first, size):
                numbers[at] = number
                break
            place = (place + 1) & (room - 1)
        if numbers[at] == count:
            table[place], firsts[count] = count + 1, at
            count += 1
    return count
