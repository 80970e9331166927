"""Copies packets of captures into a new file, with what pcapng has on them and their interfaces.

In: batches as the readers give them, and indexes in them. Out: bytes on a stream. Law: what is written reads back the same, to
the nanosecond: bytes, lengths and link types, and from pcapng to pcapng also interfaces, comments, names and secrets. A pcap
file can hold one link type and nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import pack
from typing import Final

from kcap.capture import pcapng_blocks
from kcap.capture.pcapng_annotations import PcapngAnnotations, packet_notes, read_annotations
from kcap.capture.sections import FileSections
from kcap.capture.source import STANDARD_INPUT
from kcap.capture.writer import SNAPLEN, PacketStream, PcapngWriter, PcapWriter, option
from kcap.errors import UsageError
from kcap.model import CaptureFile, PacketBatch

PCAP, PCAPNG = "pcap", "pcapng"
SUFFIXES: Final = {".pcap": PCAP, ".cap": PCAP, ".dmp": PCAP, ".pcapng": PCAPNG, ".ntar": PCAPNG}
COMPRESSED: Final = (".gz", ".zst", ".lz4")


@dataclass(slots=True)
class Origin:
    """Where packets come from: a file, the sections found in it, and its pcapng annotations."""

    file: CaptureFile
    sections: FileSections
    notes: PcapngAnnotations


def place(batch: PacketBatch, at: int) -> tuple[int, bytes, int, int]:
    """Time, bytes, length on the wire and link type of entry `at`."""
    start, link = int(batch.start[at]), batch.link
    data = batch.buffer[start : start + int(batch.captured[at])]
    return int(batch.time_ns[at]), data, int(batch.wire[at]), int(link if isinstance(link, int) else link[at])


class PcapCopy:
    """Writes a pcap file with the first packet's link type."""

    tells_drops = False
    """The format has no field for them."""

    def __init__(self, stream: PacketStream, origins: Sequence[Origin]) -> None:
        self._stream = stream
        self._links = {link for origin in origins for link in origin.file.links}
        self._snaplen = max([origin.file.snaplen or SNAPLEN for origin in origins], default=SNAPLEN)
        self._writer: PcapWriter | None = None
        self.packets = 0

    def write(self, batch: PacketBatch, at: int, data: bytes | None = None) -> None:
        """Writes a packet. Raises OutputError for a second link type."""
        time_ns, bytes_, wire, link = place(batch, at)
        if self._writer is None:
            self._writer = PcapWriter(self._stream, link, self._snaplen)
        self._writer.write(time_ns, bytes_ if data is None else data, wire, link)
        self.packets += 1

    def moves_to(self, stream: PacketStream) -> None:
        """Writes to another stream from now on."""
        self._stream = stream
        if self._writer is not None:
            self._writer.moves_to(stream)

    def close(self) -> None:
        """Writes the file header if there were no packets, so that the file is valid."""
        if self._writer is None:
            self._writer = PcapWriter(self._stream, min(self._links, default=1), self._snaplen)


SecretsFilter = Callable[[bytes], bytes]
"""Body of a Decryption Secrets Block (little-endian) -> the part that is written, empty for nothing."""


def every_secret(body: bytes) -> bytes:
    return body


def no_secret(_body: bytes) -> bytes:
    return b""


class PcapngCopy(PcapngWriter):
    """Writes a pcapng file of one section, with the interfaces that the packets came from."""

    tells_drops = False
    """Drops are written only if the file has all packets of its origins."""

    def __init__(
        self, stream: PacketStream, origins: Sequence[Origin], comment: str = "", *, secrets: SecretsFilter = every_secret
    ) -> None:
        """`comment` describes the file; `secrets` selects the secrets of the origins that are copied."""
        self._stream = stream
        self._origins = origins
        self._known: dict[tuple[int, int, int, int], int] = {}
        self.packets = 0
        options = option(pcapng_blocks.OPTION_COMMENT, comment.encode()) if comment else b""
        seen: dict[bytes, None] = {}
        for origin in origins:
            seen |= dict.fromkeys(header for header in origin.notes.headers if header)
        options += b"".join(seen) + option(4, b"kcap") + option(0, b"")
        self._block(pcapng_blocks.SECTION, pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + options)
        for body in dict.fromkeys(filter(None, map(secrets, (body for origin in origins for body in origin.notes.secrets)))):
            self._block(pcapng_blocks.SECRETS, body)
        for records in dict.fromkeys(names for origin in origins for names in origin.notes.names if names):
            self._block(pcapng_blocks.NAMES, records + option(0, b""))

    def write(self, batch: PacketBatch, at: int, data: bytes | None = None) -> None:  # type: ignore[override]
        """Writes a packet with its interface and options."""
        time_ns, bytes_, wire, link = place(batch, at)
        data = bytes_ if data is None else data
        origin = self._origins[batch.file]
        section, interface, options = 0, 0, b""
        if origin.notes.sections:
            section = max(origin.sections.number(int(batch.position[at])), 0)
            order = origin.sections.order(section) if len(origin.sections) else "<"
            interface, options = packet_notes(batch.buffer, int(batch.start[at]), int(batch.captured[at]), order)
        number = self._interface(batch.file, section, interface, link)
        ticks = max(time_ns, 0)
        head = pack("<IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), max(wire, len(data)))
        self._block(pcapng_blocks.PACKET, head + data + bytes(-len(data) & 3) + (options + option(0, b"") if options else b""))
        self.packets += 1

    def moves_to(self, stream: PacketStream) -> None:
        """Writes to another stream from now on."""
        self._stream = stream

    def _interface(self, file: int, section: int, interface: int, link: int) -> int:
        """The number of an interface in this file; the interface is described when its first packet comes."""
        key = (file, section, interface, link)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self._known)
            origin = self._origins[file]
            described = origin.notes.sections[section] if section < len(origin.notes.sections) else []
            snaplen, options = 0 if origin.notes.sections else origin.file.snaplen or 0, b""
            if interface < len(described):
                snaplen, options = described[interface].snaplen, described[interface].options
            options += option(pcapng_blocks.OPTION_TSRESOL, b"\x09") + option(0, b"")
            self._block(pcapng_blocks.INTERFACE, pack("<HHI", link, 0, snaplen) + options)
        return known

    def close(self) -> None:
        """Writes the numbers of dropped packets that the capturing hosts reported, if the file has an interface to attach them
        to.
        """
        drops = [origin.notes.drops for origin in self._origins if origin.notes.drops is not None]
        if self.tells_drops and drops and self._known:
            body = pack("<III", 0, 0, 0) + option(pcapng_blocks.OPTION_IFDROP, pack("<Q", sum(drops))) + option(0, b"")
            self._block(pcapng_blocks.STATISTICS, body)


def notes_of(files: Sequence[CaptureFile], form: str) -> list[PcapngAnnotations]:
    """The annotations of the files, if the output format can hold them."""
    return [
        read_annotations(file.path)
        if form == PCAPNG and file.format.startswith(PCAPNG) and file.path != STANDARD_INPUT
        else PcapngAnnotations()
        for file in files
    ]


def form_of(output: str | None, requested: str | None, files: Sequence[CaptureFile]) -> str:
    """The format of the output: as requested, by its name's suffix, or what the input needs.

    Raises UsageError for a suffix of a compressed format.
    """
    name = (output or "").lower()
    if name.endswith(COMPRESSED):
        raise UsageError(f"{output}: output is not compressed; write a .pcap or .pcapng and compress that")
    if requested is not None:
        return requested
    for suffix, form in SUFFIXES.items():
        if name.endswith(suffix):
            return form
    links = {link for file in files for link in file.links}
    return PCAPNG if len(links) > 1 or any(file.format.startswith(PCAPNG) for file in files) else PCAP


def open_copy(
    stream: PacketStream, form: str, origins: Sequence[Origin], comment: str = "", *, secrets: SecretsFilter = every_secret
) -> PcapCopy | PcapngCopy:
    """Returns the writer of a format."""
    return PcapCopy(stream, origins) if form == PCAP else PcapngCopy(stream, origins, comment, secrets=secrets)
