"""snoop captures (RFC 1761), as Solaris and Oracle's appliances write them, converted to an equivalent pcap file.

In: a `read(n)` of a snoop file. Out: a `read(n)` of pcap with the same packets, times and link type. Law: each packet appears
once and unchanged. A file that ends early, or a record that contradicts itself, gives all packets before it and is reported.
"""

from collections.abc import Callable
from struct import Struct, pack
from typing import Final

from kcap.capture.window import Read
from kcap.limits import PACKET_BYTES_MAX

HEADER_BYTES: Final = 16
RECORD: Final = Struct(">IIIIII")
"""Original length, included length, record length, cumulative drops, seconds, microseconds."""
LINKS: Final = {0: 1, 1: 1, 4: 1, 5: 104, 8: 10, 18: 122, 26: 226}
"""Datalink type of snoop (RFC 1761, Solaris' sys/dlpi.h) -> link type of pcap: Ethernet, HDLC, FDDI, Fibre Channel, IPNET."""
OTHER: Final = 0xFFFF
"""Link type of pcap for a datalink type that has none; its packets are reported as not read."""


class SnoopStream:
    """`read` for a snoop file, which returns bytes of pcap."""

    def __init__(self, read: Read, truncated: Callable[[str, int], None]) -> None:
        self._read = read
        self._truncated = truncated
        self._given = 0
        """Bytes of the snoop file read so far."""
        self._ready = b""
        self._begun = self._done = False

    def read(self, size: int) -> bytes:
        """Returns up to `size` bytes; b"" at the end."""
        if not self._ready and not self._done:
            self._ready = self._record() if self._begun else self._header()
        out, self._ready = self._ready[:size], self._ready[size:]
        return out

    def _header(self) -> bytes:
        self._begun = True
        head = self._take(HEADER_BYTES)
        if len(head) < HEADER_BYTES:
            return self._stop("the snoop header is cut")
        link = LINKS.get(int.from_bytes(head[12:], "big"), OTHER)
        return pack(">IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, PACKET_BYTES_MAX, link)

    def _record(self) -> bytes:
        head = self._take(RECORD.size)
        if not head:
            self._done = True
            return b""
        if len(head) < RECORD.size:
            return self._stop(f"{len(head)} bytes of a record of at least {RECORD.size}")
        original, included, whole, _, seconds, micros = RECORD.unpack(head)
        if included > PACKET_BYTES_MAX or not included + RECORD.size <= whole <= included + RECORD.size + PACKET_BYTES_MAX:
            return self._stop(f"a record claims {included} bytes in {whole}")
        body = self._take(whole - RECORD.size)
        if len(body) < included:
            return self._stop(f"{RECORD.size + len(body)} bytes of a record of {whole}")
        return pack(">IIII", seconds, micros, included, original) + body[:included]

    def _take(self, size: int) -> bytes:
        """The next `size` bytes; fewer at the end of the file."""
        parts: list[bytes] = []
        while size and (part := self._read(size)):
            parts.append(part)
            size -= len(part)
            self._given += len(part)
        return b"".join(parts)

    def _stop(self, detail: str) -> bytes:
        self._done = True
        self._truncated(detail, self._given)
        return b""
