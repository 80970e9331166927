"""A capture file as a moving window: bytes that were used are dropped, so that the file is never in memory completely.

In: a `read(n)` that gives up to n bytes as they come and b"" at the end. Out: `buffer`, immutable, whose first byte is the
file's byte `base`. Law: memory is bounded by the window or the largest record, whichever is larger. A pipe's bytes are
delivered before the window is full.
"""

from collections.abc import Callable
from mmap import ALLOCATIONGRANULARITY, mmap
from typing import cast

from kcap.limits import FIRST_WINDOW_BYTES, READ_WINDOW_BYTES

Read = Callable[[int], bytes]
ReadAt = Callable[[int, int], bytes]
"""Callback(position, size): up to `size` bytes of the file from `position` on."""
MapAt = Callable[[int, int], mmap | None]
"""The same bytes mapped into memory, from a multiple of the page size on; None if they have to be read."""


class FileWindow:
    """The bytes of a file from `base` on, as far as they were read."""

    __slots__ = ("_largest", "_map_at", "_next", "_read", "_read_at", "at", "base", "buffer", "ended")

    def __init__(
        self,
        read: Read,
        largest: int = READ_WINDOW_BYTES,
        base: int = 0,
        first: int = FIRST_WINDOW_BYTES,
        read_at: ReadAt | None = None,
        map_at: MapAt | None = None,
    ) -> None:
        """With `read_at`, the beginning of a record that continues in the next window is read again, which costs less than
        copying the rest of the window. With `map_at`, the bytes of a file that is read sparsely are not copied at all."""
        self._read = read
        self._read_at = read_at
        self._map_at = map_at
        self._next = min(first, largest)
        self._largest = largest
        self.base = base
        self.at = 0
        """Index in `buffer` of the position to which the last `advance` went."""
        self.buffer = b""
        self.ended = False

    def advance(self, at: int, need: int, *, sparse: bool = False) -> bool:
        """Drops the bytes before `at`, which may be beyond those read so far, and reads on. Returns whether `need` bytes are
        there; False if the file ends before.

        `sparse` says that most pages of the file will not be accessed; such a file is mapped if possible.
        """
        if sparse and self._map_at is not None and self._mapped(self.base + at, need, self._map_at):
            return self.left >= need
        if at > len(self.buffer) and self._read_at is None:
            at = self._passed(at)
        kept = b"" if self._read_at is not None and at and not self.ended else self.buffer[at:]
        self.base, self.at = self.base + at, 0
        parts, have = [kept], len(kept)
        while not self.ended and (have < need or len(parts) == 1):
            size = max(self._next, min(need - have, self._largest))
            part = self._read(size) if self._read_at is None else self._read_at(self.base + have, size)
            if not part:
                self.ended = True
                break
            parts.append(part)
            have += len(part)
            self._next = min(self._next * 2, self._largest)
        self.buffer = parts[-1] if not kept and len(parts) == 2 else b"".join(parts)
        return have >= need

    def _passed(self, at: int) -> int:
        """Reads up to `at`, a window at a time, and retains the last one. Returns the index of `at`, or of the end, in it."""
        while at > len(self.buffer) and not self.ended:
            self.base, at = self.base + len(self.buffer), at - len(self.buffer)
            self.buffer = self._read(min(at, self._largest))
            self.ended = not self.buffer
        return min(at, len(self.buffer))

    @property
    def left(self) -> int:
        """Number of bytes from `at` on."""
        return len(self.buffer) - self.at

    def _mapped(self, position: int, need: int, map_at: MapAt) -> bool:
        """Maps the file from the page of `position` on; False if it has to be read from now on."""
        start = position - position % ALLOCATIONGRANULARITY
        found = map_at(start, position - start + max(self._next, need))
        if found is None:
            self._map_at = None
            return False
        self.buffer = cast("bytes", found)  # a map can be indexed and sliced like bytes, and a slice of it is bytes
        self.base, self.at = start, position - start
        self._next = min(self._next * 2, self._largest)
        return True
