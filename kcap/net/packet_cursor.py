"""A position in one packet, with the end of the captured bytes and the end of the bytes on the wire.

In: buffer and offsets. Out: the same, moved inward by the layers. Law: `at` only grows within one buffer, so that every walk
through nested headers ends. No read goes past the captured bytes into the neighbouring packet.
"""

from collections.abc import Callable
from struct import Struct

from kcap.weird import WeirdKind

Report = Callable[[WeirdKind, str, int, int, int], None]
"""Callback(kind, detail, file, packet, position), so that the caller counts: the fields of a file's `Weird`, in order."""

SHORT = Struct(">H").unpack_from


class PacketCursor:
    """Position `at` in `buffer`. Bytes up to `end` were captured; on the wire there were bytes up to `stop`."""

    __slots__ = ("addresses", "at", "buffer", "end", "fault", "fault_detail", "stop")

    def __init__(self, buffer: bytes, at: int, end: int, stop: int) -> None:
        self.buffer = buffer
        self.at = at
        self.end = end
        self.stop = stop
        self.addresses = b""
        """Source and destination of the innermost IP header read so far."""
        self.fault: WeirdKind | None = None
        self.fault_detail = ""

    def have(self, size: int, what: str) -> bool:
        """Whether `size` bytes of header `what` were captured; if not, the fault names the header."""
        need = self.at + size
        if need <= self.end:
            return True
        self.fail(WeirdKind.PACKET_CUT if need <= self.stop else WeirdKind.PACKET_MALFORMED, f"{what} header ends early")
        return False

    def fail(self, kind: WeirdKind, detail: str) -> int:
        """Stores why the packet cannot be read; returns 0, for no protocol."""
        self.fault, self.fault_detail = kind, detail
        return 0

    def short(self, offset: int) -> int:
        """Returns the 16-bit number at `offset` bytes from here."""
        return int(SHORT(self.buffer, self.at + offset)[0])

    def enter(self, buffer: bytes, stop: int) -> None:
        """Continues in reassembled bytes."""
        self.buffer, self.at, self.end, self.stop = buffer, 0, len(buffer), stop
