"""Arrays of zeros, most of which is never written.

In: a shape and a type. Out: the array. Law: after a dense beginning, a page that is not written takes no memory.
"""

import mmap
from math import prod
from typing import Any

import numpy as np

HUGE = 2 << 20
"""Size of a huge page, bytes. With huge pages, a written page of 4 KiB would take this much."""
PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


def sparse(shape: tuple[int, ...], kind: type[Any], dense: int = 0) -> Any:
    """An array of zeros, whose unwritten pages after the first `dense` bytes take no memory. Raises OSError if there is no
    room."""
    size = prod(shape) * np.dtype(kind).itemsize
    if not size:
        return np.zeros(shape, kind)
    room = mmap.mmap(-1, size, **PRIVATE)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        border = dense // HUGE * HUGE
        if border:
            room.madvise(mmap.MADV_HUGEPAGE, 0, border)
        room.madvise(mmap.MADV_NOHUGEPAGE, border)
    return np.frombuffer(room, kind).reshape(shape)


def emptied(array: Any, row: int) -> None:
    """Releases the memory of a row of such an array, whose rows are whole pages. The row is then zeros."""
    room, size = array, array[row].nbytes
    while not isinstance(room, mmap.mmap):
        room = room.obj if isinstance(room, memoryview) else room.base
    if hasattr(mmap, "MADV_DONTNEED") and size % mmap.PAGESIZE == 0:
        room.madvise(mmap.MADV_DONTNEED, row * size, size)
    else:
        array[row] = 0
