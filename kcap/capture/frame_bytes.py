"""Reads the bytes of an exchange again, from the positions in its row.

In: a row of `exchanges` and the files from which it was made. Out: both frames with their packets. Law: the bytes equal those
that a second pass over the capture gives (`kcap.capture.frame_reader`). Each byte of a frame belongs to the packet that carried
it first.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcap.capture.frame_location import FrameLocation, location_of
from kcap.capture.frame_reader import FrameReader as Reader
from kcap.capture.frame_reader import Piece, laid
from kcap.capture.packet_source import Packet, PacketSource
from kcap.limits import SPOOL_BYTES_MAX
from kcap.model import CaptureFile
from kcap.tls.plaintext import PlaintextStore

if TYPE_CHECKING:
    from kcap.capture.sections import FileSections

SIDES = ("request", "response")
SPOOLED: Final = f"{SPOOL_BYTES_MAX >> 30} GiB"
"""What is retained of a pipe or a compressed file, in words."""


class PacketSpan(NamedTuple):
    """Bytes of a frame that one packet carried."""

    start: int
    end: int
    packet: int
    """Packet number within the file, as in Wireshark."""


@dataclass(frozen=True, slots=True)
class FrameBytes:
    """One exchange: its row and its bytes."""

    row: dict[str, Any]
    """Every column of `exchanges`."""
    request: bytes = b""
    """The request with its 4-byte length prefix; empty if it was not retained."""
    response: bytes = b""
    request_packets: list[Packet] = field(default_factory=list)
    response_packets: list[Packet] = field(default_factory=list)
    spans: dict[str, list[PacketSpan]] = field(default_factory=dict)
    """Side -> which packet carried which bytes, without gaps, in the order of the bytes."""
    changed: bool = False
    """Whether a file of these frames was removed or truncated since it was read."""


def read(
    row: dict[str, Any],
    files: Sequence[CaptureFile],
    layouts: Mapping[int, "FileSections"],
    spools: Any,
    plaintext: Callable[[], PlaintextStore | None] | None = None,
) -> FrameBytes:
    """Returns both frames of a row. `plaintext` decrypts the capture's TLS connections again."""
    source = PacketSource(files, layouts, spools)
    reader = Reader(source, plaintext)
    numbers = {file.name: at for at, file in enumerate(files)}
    found: dict[str, Any] = {}
    spans: dict[str, list[PacketSpan]] = {}
    changed = False
    for side in SIDES:
        place = location_of(row, side, numbers)
        changed |= place.file is not None and has_changed(files[place.file])
        pieces = reader.pieces(place)
        start, data = laid(pieces, place)
        stop = start + place.size
        found[side] = data
        found[f"{side}_packets"] = [p for at, part, p in pieces if data and at < stop and at + len(part) > start]
        spans[side] = _spans(pieces, start, len(data), row[f"{side}_first_packet"], _numbers(source, place, pieces))
    source.close()
    return FrameBytes(row, spans=spans, changed=changed, **found)


def has_changed(file: CaptureFile) -> bool:
    """Whether a file on disk was removed or truncated since it was read."""
    try:
        return file.size is not None and os.stat(file.path).st_size < file.size
    except OSError:
        return True


def why_not(row: Mapping[str, Any], *, changed: bool = False) -> str:
    """Why the bytes of a message are missing; `changed` as of `FrameBytes`."""
    if row["api"] == "SaslToken":
        return "a raw SASL token, which is a secret"
    if changed:
        return "cannot be read again: the file was removed or changed since it was read"
    return f"not retained: it spans two files, or lies beyond the first {SPOOLED} of a pipe or a compressed file"


def _numbers(source: PacketSource, place: FrameLocation, pieces: Sequence[Piece]) -> list[int]:
    """For each piece, the number of packets in the file between the first packet that was read and the piece's packet."""
    if place.file is None or len(pieces) == 1:
        return [0] * len(pieces)
    times: list[int] = []
    numbers: list[int] = []
    at = 0
    for batch in source.batches(place.file, place.low, place.high):
        for entry in range(len(batch)):
            if at < len(pieces) and batch.time_ns[entry] == pieces[at][2].time_ns:
                start = batch.start[entry]
                if batch.buffer[start : start + batch.captured[entry]] == pieces[at][2].data:
                    numbers.append(len(times))
                    at += 1
            times.append(0)
    return numbers + [numbers[-1] if numbers else 0] * (len(pieces) - len(numbers))


def _spans(pieces: Sequence[Piece], start: int, size: int, first: int | None, numbers: Sequence[int]) -> list[PacketSpan]:
    """Which packet carried which bytes of a frame."""
    owner = [-1] * size
    for at in range(len(pieces) - 1, -1, -1):
        offset, data, _ = pieces[at]
        low, high = max(offset - start, 0), min(offset - start + len(data), size)
        if low < high:
            owner[low:high] = [at] * (high - low)
    if not owner:
        return []
    base = (first or 0) - numbers[owner[0]]
    spans: list[PacketSpan] = []
    begin = 0
    for at in range(1, size + 1):
        if at == size or owner[at] != owner[begin]:
            spans.append(PacketSpan(begin, at, base + numbers[owner[begin]]))
            begin = at
    return spans
