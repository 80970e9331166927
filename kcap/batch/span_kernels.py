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


@routine
def number_spans(data: Any, more: Any, starts: Any, ends: Any, table: Any, numbers: Any, firsts: Any, seed: int) -> int:
    """Writes the number of each span's content, -1 for a span that starts at -1, and the first span of each number; returns how
    many numbers there are. They are given in the order of the spans.

    A span that starts behind `data` is of `more`. `table`, a power of two and at least twice as large as there are spans, is 0.
    """
    count, base = 0, data.size
    for at in range(starts.size):
        start, size = starts[at], ends[at] - starts[at]
        numbers[at] = -1
        if start < 0:
            continue
        within = start if start < base else start - base
        code = hashed(data, within, within + size, seed) if start < base else hashed(more, within, within + size, seed)
        place = home(code, table.size)
        while table[place] != 0:
            number = table[place] - 1
            first = starts[firsts[number]]
            if ends[firsts[number]] - first == size:
                there = first if first < base else first - base
                if start < base:
                    same = equal(data, within, data, there, size) if first < base else equal(data, within, more, there, size)
                else:
                    same = equal(more, within, data, there, size) if first < base else equal(more, within, more, there, size)
                if same:
                    numbers[at] = number
                    break
            place = (place + 1) & (table.size - 1)
        if numbers[at] < 0:
            table[place], numbers[at], firsts[count] = count + 1, count, at
            count += 1
    return count
