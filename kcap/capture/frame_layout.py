"""Assembles a frame from the payloads of its packets, by their offsets in the stream.

In: pieces of a stream, in the order of the file. Out: where the frame begins, and its bytes up to the first missing one. Law:
the first copy of a byte counts. Memory depends on the frame's size, not on the number of packets that carried it.
"""

from array import array
from bisect import bisect_right
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import TYPE_CHECKING

from kcap.limits import SEGMENT_BYTES_MAX

if TYPE_CHECKING:
    from kcap.capture.frame_location import FrameLocation

TAKEN, BEGINS = b"\1", b"\2"
"""Marks of a byte that is present, and of one that came at the time of the frame's first byte."""


class FrameLayout:
    """The bytes around a frame: appended while they come in order, then written to their offsets, with a mark for each."""

    def __init__(self, place: "FrameLocation", room: int) -> None:
        """`room`: total number of bytes of all packets."""
        self._place = place
        self._reach = min(place.size, room) + SEGMENT_BYTES_MAX
        """The first packet carries some bytes of the frame, so all others are at most this far from its first byte."""
        self._base: int | None = None
        """Offset in the stream of the first piece."""
        self._joined = bytearray()
        self._begins = array("q")
        """Start and end of each part of these bytes that came at the time of the frame's first byte."""
        self._spread: tuple[mmap, mmap] | None = None
        """Bytes and marks, with the first piece in the middle. Only written parts take memory."""
        self._low, self._end = self._reach, 0

    def add(self, offset: int, data: bytes | memoryview, time_ns: int) -> None:
        """Adds a piece at its offset in the stream."""
        if self._base is None:
            self._base = offset
        at, first = offset - self._base, time_ns == self._place.first_ns
        if self._spread is None and at == len(self._joined):
            self._joined += data
            if not first:
                return
            if self._begins and self._begins[-1] == at:
                self._begins.pop()
            else:
                self._begins.append(at)
            self._begins.append(len(self._joined))
        elif data:
            self._lay(at + self._reach, data, BEGINS if first else TAKEN)

    def _lay(self, at: int, data: bytes | memoryview, mark: bytes) -> None:
        """Writes a piece at its offset in the layout, which is not the next one."""
        if self._spread is None:
            self._spread = blank(2 * self._reach), blank(2 * self._reach)
            self._end = self._reach + min(self._reach, len(self._joined))
            self._spread[0][self._reach : self._end] = memoryview(self._joined)[: self._end - self._reach]
            self._spread[1][self._reach : self._end] = TAKEN * (self._end - self._reach)
            for number in range(0, len(self._begins), 2):
                begin, end = (min(self._reach + one, self._end) for one in self._begins[number : number + 2])
                self._spread[1][begin:end] = BEGINS * (end - begin)
            self._joined = bytearray()
        content, marks = self._spread
        end = at + len(data)
        if at < 0 or end > 2 * self._reach:
            return
        begin = at
        while (begin := marks.find(b"\0", begin, end)) >= 0:
            taken = min((found for kind in (TAKEN, BEGINS) if (found := marks.find(kind, begin, end)) >= 0), default=end)
            content[begin:taken] = data[begin - at : taken - at]
            marks[begin:taken] = mark * (taken - begin)
            begin = taken
        self._low, self._end = min(self._low, at), max(self._end, end)

    def found(self, behind: int = 0) -> tuple[int, bytes]:
        """Returns where the frame begins in the stream, and its bytes from `behind` on; no bytes if the frame is not found."""
        place, low = self._place, 0
        data: bytearray | mmap = self._joined
        end = len(self._joined)
        if self._spread is not None:
            data, low, end = self._spread[0], self._low, self._end
        start = data.find(place.head, low, end)
        while start >= 0 and not self._may_begin(start):
            start = data.find(place.head, start + 1, end)
        if start < 0 or self._base is None:
            return 0, b""
        stop, base = min(start + place.size, end), self._base
        if self._spread is not None:
            missing = self._spread[1].find(b"\0", start, stop)
            stop, base = stop if missing < 0 else missing, base - self._reach
            self._spread[1].close()
        with memoryview(data) as view:
            return base + start, bytes(view[start + behind : stop])

    def _may_begin(self, at: int) -> bool:
        """Whether a byte came at the time of the frame's first byte."""
        if self._spread is not None:
            return self._spread[1][at] == BEGINS[0]
        return bisect_right(self._begins, at) % 2 == 1


def blank(size: int) -> mmap:
    """Zeroed memory, which is allocated as it is written."""
    try:
        return mmap(-1, size, MAP_PRIVATE | MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"no room for {size} bytes") from error
