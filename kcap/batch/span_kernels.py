"""The compiled form of `kcap.batch.bodies.encoded`: spans of bytes as indexes of their distinct contents.

In: spans of one buffer, or of another one after it. Out: an index for each span, and the first span of each index. Law: the
result equals that of `encoded`; the time is linear in the bytes of the spans, whatever they hold.
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
    """A hash of some bytes and of their number. It reads two words at a time, neither of which depends on the other."""
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
    """Whether `size` bytes of two buffers are equal. Without an exit from the loop, the code compares many bytes at a time."""
    different = 0
    for k in range(size):
        different |= int(data[start + k]) ^ int(other[first + k])
    return different == 0


@compiled
def alike(data: Any, more: Any, start: int, first: int, size: int) -> Any:
    """Whether two spans of `size` bytes have the same contents; one that starts beyond `data` is in `more`."""
    base = data.size
    if start < base:
        return equal(data, start, data, first, size) if first < base else equal(data, start, more, first - base, size)
    return equal(more, start - base, data, first, size) if first < base else equal(more, start - base, more, first - base, size)


@routine
def number_spans(data: Any, more: Any, starts: Any, ends: Any, table: Any, numbers: Any, firsts: Any, seed: int) -> int:
    """Writes the index of each span's content, -1 for a span that starts at -1, and the first span of each index; returns the
    number of indexes. They are assigned in the order of the spans.

    A span that starts beyond `data` is in `more`. `table` is 0; its size is a power of two and at least twice the number of
    spans. All hashes are computed first: a processor reads several spans from memory at a time if no decision comes in between.
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
