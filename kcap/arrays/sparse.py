"""Arrays of zeros most of which is never written to.

In: a shape and a type. Out: the array. Law: a page that is not written to takes no memory, behind a dense beginning.
"""

import mmap
from math import prod
from typing import Any

import numpy as np

HUGE = 2 << 20
"""Bytes of a huge page: with them a written page of 4 KiB would take this much."""
PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}


def sparse(shape: tuple[int, ...], kind: type[Any], dense: int = 0) -> Any:
    """An array of zeros of which only the pages that are written to take memory, but for its first `dense` bytes. Raises
    OSError where the system has no such room.
    """
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
    """Gives back the memory of a row of such an array, whose rows are whole pages; they are zeros then."""
    room, size = array, array[row].nbytes
    while not isinstance(room, mmap.mmap):
        room = room.obj if isinstance(room, memoryview) else room.base
    if hasattr(mmap, "MADV_DONTNEED") and size % mmap.PAGESIZE == 0:
        room.madvise(mmap.MADV_DONTNEED, row * size, size)
    else:
        array[row] = 0
