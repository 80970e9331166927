"""A capture file as a moving window: what was read is handed on and forgotten, never the whole file.

In: a `read(n)` that gives up to n bytes as they come and b"" at the end. Out: `buffer`, immutable, whose first byte is the
file's byte `base`. Law: memory is bounded by the window or the largest record, whichever is more; a pipe's bytes are not held
back until the window is full.
"""

from collections.abc import Callable

from kcap.limits import FIRST_WINDOW_BYTES, READ_WINDOW_BYTES

Read = Callable[[int], bytes]


class FileWindow:
    """The bytes of a file from `base` on, as far as they were read."""

    __slots__ = ("_largest", "_next", "_read", "base", "buffer", "ended")

    def __init__(self, read: Read, largest: int = READ_WINDOW_BYTES, base: int = 0, first: int = FIRST_WINDOW_BYTES) -> None:
        self._read = read
        self._next = min(first, largest)
        self._largest = largest
        self.base = base
        self.buffer = b""
        self.ended = False

    def advance(self, at: int, need: int) -> bool:
        """Forgets what lies before `at` and reads on; True when `need` bytes are there, False where the file ends before."""
        kept = self.buffer[at:]
        self.base += at
        parts, have = [kept], len(kept)
        while not self.ended and (have < need or len(parts) == 1):
            part = self._read(max(self._next, min(need - have, self._largest)))
            if not part:
                self.ended = True
                break
            parts.append(part)
            have += len(part)
            self._next = min(self._next * 2, self._largest)
        self.buffer = b"".join(parts) if len(parts) > 1 else kept
        return have >= need
