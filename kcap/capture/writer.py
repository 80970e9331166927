"""Writes capture files: pcap and pcapng with nanoseconds, for parts cut from a capture.

In: packets with time, link type and length on the wire. Out: bytes on a stream. Law: what is written reads back the same, to
the nanosecond.
"""

from struct import pack
from typing import Protocol

from kcap.capture import pcapng_blocks
from kcap.errors import OutputError
from kcap.limits import SECOND_NS

SNAPLEN = 262144
"""The snapshot length that tcpdump writes by default; larger packets are written completely."""


class PacketStream(Protocol):
    """Takes bytes."""

    def write(self, data: bytes, /) -> object: ...


class PcapWriter:
    """Writes a pcap file of one link type."""

    def __init__(self, stream: PacketStream, link: int, snaplen: int = SNAPLEN) -> None:
        self._stream = stream
        self._link = link
        stream.write(pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snaplen, link))

    def write(self, time_ns: int, data: bytes, wire: int, link: int) -> None:
        if link != self._link:
            raise OutputError(f"a pcap file holds one link type, not {self._link} and {link}: write pcapng")
        seconds, fraction = divmod(max(time_ns, 0), SECOND_NS)
        self._stream.write(pack("<IIII", seconds & 0xFFFFFFFF, fraction, len(data), max(wire, len(data))) + data)

    def moves_to(self, stream: PacketStream) -> None:
        """Writes to another stream from now on, which continues where the previous one ended."""
        self._stream = stream


class PcapngWriter:
    """Writes a pcapng file of one section, with an interface for each link type."""

    def __init__(self, stream: PacketStream, comment: str = "") -> None:
        self._stream = stream
        self._interfaces: dict[int, int] = {}
        options = option(4, b"kcap") + (option(pcapng_blocks.OPTION_COMMENT, comment.encode()) if comment else b"")
        self._block(pcapng_blocks.SECTION, pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + options + option(0, b""))

    def write(self, time_ns: int, data: bytes, wire: int, link: int, comment: str = "") -> None:
        interface = self._interfaces.get(link)
        if interface is None:
            interface = self._interfaces[link] = len(self._interfaces)
            self._block(
                pcapng_blocks.INTERFACE,
                pack("<HHI", link, 0, 0) + option(pcapng_blocks.OPTION_TSRESOL, b"\x09") + option(0, b""),
            )
        ticks = max(time_ns, 0)
        head = pack("<IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(data), max(wire, len(data)))
        options = option(pcapng_blocks.OPTION_COMMENT, comment.encode()) + option(0, b"") if comment else b""
        self._block(pcapng_blocks.PACKET, head + data + bytes(-len(data) & 3) + options)

    def secrets(self, key_log: bytes) -> None:
        """Writes a TLS key log, which must precede the packets that it decrypts."""
        self._block(pcapng_blocks.SECRETS, pcapng_blocks.secrets_body(key_log))

    def _block(self, kind: int, body: bytes) -> None:
        body += bytes(-len(body) & 3)
        size = len(body) + 12
        self._stream.write(pack("<II", kind, size) + body + pack("<I", size))


def option(code: int, value: bytes) -> bytes:
    """One pcapng option; a value that is too long for the length field is cut."""
    value = value[:0xFFFF]
    return pack("<HH", code, len(value)) + value + bytes(-len(value) & 3)
