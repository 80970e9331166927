"""Arrays of which little is written take little memory."""

import mmap

import numpy as np

from kcap.arrays.sparse import HUGE, sparse


def test_they_take_memory_where_they_are_written() -> None:
    """One byte of each frame's room takes a page, not the room and not a huge page."""
    room = 1 << 20
    made = sparse((64, room), np.uint8)
    assert made.shape == (64, room)
    assert not made[::7, ::4096].any()
    before = resident()
    made[:, 0] = 1
    assert resident() - before < 8 << 20
    made = sparse((64 * HUGE,), np.uint8, 3 * HUGE + 5)
    before = resident()
    made[: 3 * HUGE + 5], made[4 * HUGE :: HUGE] = 1, 1
    assert resident() - before < 5 * HUGE
    assert sparse((0, room), np.uint8).shape == (0, room)


def resident() -> int:
    """Bytes of memory that this process has in use; 0 where nothing says so."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0
