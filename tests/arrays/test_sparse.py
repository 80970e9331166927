"""Arrays of which little is written take little memory."""

import mmap

import numpy as np

from kcap.arrays.sparse import HUGE, emptied, sparse


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


def test_rows_give_their_memory_back() -> None:
    """One row alone, whether its size is whole pages or not."""
    for width in 3 * mmap.PAGESIZE, 100:
        made = sparse((40, width), np.uint8)
        made[:] = 1
        emptied(made, 7)
        assert made.any(axis=1).tolist() == [row != 7 for row in range(40)]
    made = sparse((16, 1 << 20), np.uint8)
    made[:] = 1
    before = resident()
    for row in range(16):
        emptied(made, row)
    assert before - resident() > 15 << 20 or not before


def resident() -> int:
    """Bytes of memory that this process has in use; 0 where nothing says so."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0
