"""The annotations of a pcapng file (sections, interfaces, comments, names, secrets) in a form that can be written again.

In: a path. Out: `PcapngAnnotations`, with numbers in little-endian order. Law: copied options retain their meaning. Options of
unknown form are left out if the byte order changes. Numbers are those of draft-ietf-opsawg-pcapng.
"""

from contextlib import closing
from dataclasses import dataclass, field
from struct import pack, unpack_from
from typing import Final

from kcap.capture import pcapng_blocks
from kcap.capture.fileset import ignore
from kcap.capture.pcapng import PacketColumns, PcapngReader
from kcap.capture.source import Source, open_reader
from kcap.capture.writer import option
from kcap.model import CaptureFile

SECTION_KEPT: Final = {pcapng_blocks.OPTION_COMMENT: 0, 2: 0, 3: 0}
"""Options of a section header that are copied, and the width of their number (0: no number): comment, hardware, system. The
application is the program that writes the new file.
"""
INTERFACE_KEPT: Final = {pcapng_blocks.OPTION_COMMENT: 0, 2: 0, 3: 0, 8: 8, 11: 0, 12: 0, 15: 0, 16: 8, 17: 8}
"""The same for an interface: comment, name, description, speed, filter, system, hardware, transmit and receive speed. Options
on times are written anew.
"""
PACKET_KEPT: Final = {pcapng_blocks.OPTION_COMMENT: 0, 2: 4, 4: 8, 5: 8, 6: 4, 7: 0}
"""The same for a packet: comment, flags, drop count, packet id, queue, verdict. A hash is not copied, since the bytes that are
written may differ.
"""
PACKET_BLOCK_HEADER: Final = 28


@dataclass(slots=True)
class InterfaceNotes:
    """An interface; `options` as they are written, without their end."""

    link: int
    snaplen: int
    options: bytes


@dataclass(slots=True)
class PcapngAnnotations:
    """The annotations of one file. A pcap file has none."""

    sections: list[list[InterfaceNotes]] = field(default_factory=list)
    headers: list[bytes] = field(default_factory=list)
    """Options of each section's header."""
    names: list[bytes] = field(default_factory=list)
    """Records of name resolution blocks, without their end."""
    secrets: list[bytes] = field(default_factory=list)
    """Bodies of Decryption Secrets Blocks, of any type."""
    drops: int | None = None
    """Number of packets that the capturing host dropped."""


def kept_options(body: bytes, order: str, at: int, stop: int, kept: dict[int, int]) -> bytes:
    """The options that `kept` lists, little-endian."""
    out = bytearray()  # bytes would be copied with each option
    for code, value in pcapng_blocks.each_option(body, order, at, stop):
        width = kept.get(code)
        if width is not None and (not width or len(value) == width):
            out += option(code, value[::-1] if width and order == ">" else value)
    return bytes(out)


def packet_notes(buffer: bytes, start: int, captured: int, order: str) -> tuple[int, bytes]:
    """Interface and copied options of the packet whose bytes begin at `start` of a reader's buffer."""
    at = start - PACKET_BLOCK_HEADER
    if at < 0:
        return 0, b""
    kind, total = unpack_from(order + "II", buffer, at)
    if (
        kind not in {pcapng_blocks.PACKET, pcapng_blocks.OLD_PACKET}
        or unpack_from(order + "I", buffer, start - 8)[0] != captured
    ):
        return 0, b""  # a simple packet block has no options and belongs to the first interface
    (interface,) = unpack_from(order + ("I" if kind == pcapng_blocks.PACKET else "H"), buffer, at + 8)
    first, last = start + captured + (-captured & 3), at + total - 4
    return interface, kept_options(buffer, order, first, last, PACKET_KEPT) if first < last else b""


class NotingReader(PcapngReader):
    """Reads a file for its annotations."""

    notes: PcapngAnnotations

    def _step(self, at: int, columns: PacketColumns) -> tuple[int, int]:
        before = len(self.sections)
        end, need = super()._step(at, columns)
        if len(self.sections) > before:
            buffer = self._window.buffer
            (total,) = unpack_from(self._order + "I", buffer, at + 4)
            self.notes.sections.append([])
            self.notes.headers.append(kept_options(buffer, self._order, at + 24, at + total - 4, SECTION_KEPT))
        return end, need

    def _other(self, kind: int, body: bytes, at: int) -> None:
        super()._other(kind, body, at)
        notes, order = self.notes, self._order
        if kind == pcapng_blocks.INTERFACE and notes.sections and len(notes.sections[-1]) < len(self._interfaces):
            link, snaplen = unpack_from(order + "HxxI", body) if len(body) >= 8 else (-1, 0)
            options = kept_options(body, order, 8, len(body), INTERFACE_KEPT)
            notes.sections[-1].append(InterfaceNotes(link, snaplen, options))
        elif kind == pcapng_blocks.NAMES:
            notes.names.append(name_records(body, order))
        elif kind == pcapng_blocks.SECRETS and len(body) >= 8:
            form, size = unpack_from(order + "II", body)
            notes.secrets.append(pack("<II", form, min(size, len(body) - 8)) + body[8 : 8 + size])


def name_records(body: bytes, order: str) -> bytes:
    """The records of a name resolution block, little-endian, without their end."""
    return b"".join(option(kind, value) for kind, value in pcapng_blocks.each_option(body, order, 0, len(body)))


def read_annotations(path: str) -> PcapngAnnotations:
    """Reads a file to its end. Raises CaptureError if it is not a capture."""
    notes = PcapngAnnotations()
    with closing(Source(path)) as source:
        file = CaptureFile(path, path)
        reader = open_reader(source, file, 0, ignore, jit_after=None)
        if isinstance(reader, PcapngReader):
            noting = NotingReader(reader._window, file, 0, ignore, None)
            noting.notes = notes
            for _ in noting.batches():
                pass
            notes.drops = file.kernel_drops
    return notes
