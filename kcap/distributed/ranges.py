"""Reads one byte range of a capture file without the bytes before it.

In: a range, and a `read` of the file's bytes from the start of the range. Out: batches of the packets whose records begin in
the range, numbered from 1, and a summary of the range. Law: a range that starts at a record, with the interfaces that apply
there, gives the packets that a pass over the whole file gives. If neither is known, both are guessed. The summary has the
context with which the range began and ended, by which `kcap.distributed.stitching` verifies the guess.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from struct import unpack_from
from typing import TYPE_CHECKING, Any, Final

from kcap.capture import pcapng_blocks
from kcap.capture.fileset import cut
from kcap.capture.pcap import PcapReader
from kcap.capture.pcapng import BLOCK_LEAST, ORDERS, PcapngReader
from kcap.capture.reader import CaptureFileReader, in_order
from kcap.capture.sections import MAGIC, FileSection, Interface
from kcap.capture.window import FileWindow, Read
from kcap.limits import BLOCK_BYTES_MAX, GUESS_BYTES, GUESS_RECORDS, GUESS_SECONDS, READ_WINDOW_BYTES
from kcap.model import CaptureFile, PacketBatch
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from kcap.capture.pcapng import PacketColumns

KINDS: Final = frozenset({pcapng_blocks.SECTION, *range(1, 11)})
"""Types of pcapng blocks that the search for a block boundary accepts."""


@dataclass(frozen=True, slots=True)
class RangeContext:
    """State of a reader before a record: byte order and interfaces."""

    order: str
    interfaces: tuple[Interface, ...]
    sections: int = 1
    """Number of sections of the file so far, including this one."""

    def section(self, position: int = 0) -> FileSection:
        """The context as a section that readers start from."""
        return FileSection(position, self.order, [replace(interface) for interface in self.interfaces])


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The records of a file that begin at an offset in `start <= offset < stop`."""

    unit: int
    """Its number among all ranges of a capture."""
    file: int
    start: int
    stop: int | None
    """None means the end of the file."""
    context: RangeContext | None = None
    """None at the beginning of the file, whose header contains it."""
    verified: bool = True
    """Whether `start` is the offset of a record at which `context` applies; otherwise both are guesses."""


@dataclass(slots=True)
class CountedWeird:
    """The oddities of one kind: the first one, and the count."""

    kind: WeirdKind
    detail: str
    packet: int
    """Within the range, from 1; 0 for none."""
    position: int
    time_ns: int
    count: int = 1


@dataclass(slots=True)
class RangeSummary:
    """The outcome of reading a range. It can be pickled."""

    part: ByteRange
    start: int | None
    """Offset of its first record; None if none was found."""
    before: RangeContext | None
    """The context with which it was read."""
    end: int = 0
    """Offset of the first record after the range."""
    after: RangeContext | None = None
    ended: bool = False
    """Whether the file ends with this range, or cannot be read further."""
    first_ns: int | None = None
    """Time of its first packet, ns; `facts` has the earliest and the latest time."""
    first_position: int = 0
    """Position of its first packet in the file."""
    final_ns: int | None = None
    """Time of its last packet, ns."""
    timeless: bool = False
    """Whether the time of some packet (a Simple Packet Block) derives from a packet before it, which may be before the
    range.
    """
    fragments: int = 0
    flows: bytes = b""
    """Numbers of its flows (`kcap.distributed.flow_shards`), 8 bytes each, ascending; filled if `PartitionTask.lists` is
    set.
    """
    facts: CaptureFile = field(default_factory=lambda: CaptureFile("", ""))
    drops: dict[tuple[int, int], int] = field(default_factory=dict)
    """(section, interface) -> packets that the capturing host dropped."""
    oddities: dict[WeirdKind, CountedWeird] = field(default_factory=dict)


class Ranged(CaptureFileReader):
    """Reads the records of a file up to `stop`."""

    stop: int | None = None
    reached: int | None = None
    """Offset of the first record after the range."""

    def batches(self) -> Iterator[PacketBatch]:
        """The packets whose records begin in the range."""
        for batch in self._read():
            if self.stop is not None and batch.position[-1] >= self.stop:
                last = bisect_left(batch.position, self.stop)
                self.stops(int(batch.position[last]))
                batch = cut(batch, 0, last)
                if last:
                    self._count(batch)
                    yield batch
                return
            self._count(batch)
            yield batch

    def stops(self, position: int) -> bool:
        """Whether an offset is after the range; the first such offset is recorded."""
        if self.stop is None or position < self.stop:
            return False
        self.reached = position if self.reached is None else min(position, self.reached)
        return True

    def _damage(self, kind: WeirdKind, detail: str, at: int) -> None:
        if not self.stops(self._window.base + at):
            super()._damage(kind, detail, at)
        self._stopped = True


class RangedPcap(Ranged, PcapReader):
    """Reads a range of a pcap file."""

    def context(self) -> RangeContext:
        """The context after the records read so far."""
        return RangeContext(self._order, (self._interface,))


class RangedPcapng(Ranged, PcapngReader):
    """Reads a range of a pcapng file, whose records are its blocks."""

    timeless = False
    before = 0
    """Number of sections of the file before the first one read."""

    @cached_property
    def past(self) -> dict[tuple[int, int], int]:
        """`drops` of sections that have ended."""
        return {}

    @property
    def drops(self) -> dict[tuple[int, int], int]:
        """(section, interface) -> dropped packets."""
        section = len(self.sections) + self.before
        return self.past | {(section, interface): count for interface, count in self._drops.items()}

    def _section_over(self) -> None:
        self.past = self.drops
        super()._section_over()

    def _step(self, at: int, columns: "PacketColumns") -> tuple[int, int]:
        if len(self._window.buffer) > at and self.stops(self._window.base + at):
            self._stopped = True
            return at, 0
        return super()._step(at, columns)

    def _odd_packet(self, kind: int, at: int, total: int, columns: "PacketColumns") -> None:
        self.timeless = self.timeless or kind != pcapng_blocks.OLD_PACKET
        return super()._odd_packet(kind, at, total, columns)

    def context(self) -> RangeContext:
        """The context after the records read so far."""
        interfaces = tuple(replace(interface) for interface in self._interfaces)
        return RangeContext(self._order, interfaces, self.before + len(self.sections))


class RangeScan:
    """Reads one range."""

    def __init__(self, part: ByteRange, read: Read, file: CaptureFile, size: int | None, jit_after: int | None = None) -> None:
        """`read` gives the file's bytes from `part.start` on; `file` has its format; `size` is its length, None if unknown."""
        self.part = part
        self.file = CaptureFile(file.path, file.name, format=file.format)
        self.summary = RangeSummary(part, part.start, part.context, facts=self.file)
        self._size = size
        self._jit_after = jit_after
        self._window = FileWindow(read, READ_WINDOW_BYTES, part.start)
        self._reader: RangedPcap | RangedPcapng | None = None
        self._time_ns = 0

    def report(self, kind: WeirdKind, detail: str, _file: int, packet: int, position: int) -> None:
        """Counts an oddity of the range."""
        seen = self.summary.oddities.get(kind)
        if seen is None:
            self.summary.oddities[kind] = CountedWeird(kind, detail, packet, position, self._time_ns)
        else:
            seen.count += 1

    def batches(self) -> Iterator[tuple[PacketBatch, int]]:
        """Yields batches of packets, each with the file offset of its buffer. The summary is complete after the last one."""
        part, summary, pcapng = self.part, self.summary, self.file.format.startswith("pcapng")
        section = None if part.context is None else part.context.section()
        if not part.verified and section is not None:
            at = find_block(self._window, section.order) if pcapng else find_record(self._window, section)
            if at is None or (part.stop is not None and self._window.base + at >= part.stop):
                summary.start = None
                return
            self._window.advance(at, 1)
            summary.start = self._window.base
        kind: type[RangedPcap | RangedPcapng] = RangedPcapng if pcapng else RangedPcap
        self._reader = reader = kind(self._window, self.file, part.file, self.report, self._jit_after, section)
        reader.stop = part.stop
        if isinstance(reader, RangedPcapng) and part.context is not None:
            reader.before = part.context.sections - 1
        for batch in reader.batches():
            times = batch.time_ns
            if summary.first_ns is None:
                summary.first_ns, summary.first_position = int(times[0]), int(batch.position[0])
            summary.final_ns = self._time_ns = int(times[-1])
            yield batch, reader.base
        summary.after = reader.context()
        summary.ended = reader.reached is None
        summary.end = (self._size or 0) if reader.reached is None else reader.reached
        if isinstance(reader, RangedPcapng):
            summary.timeless, summary.drops = reader.timeless, reader.drops

    def context(self) -> RangeContext | None:
        """The context after the current batch; None before the first."""
        return None if self._reader is None else self._reader.context()


def running_latest(times: Any, before: int | None) -> Any:
    """For each packet the latest time so far; None if that is its own time for all packets."""
    if in_order(times) and (before is None or before <= times[0]):
        return None
    latest, out = before if before is not None else int(times[0]), []
    for time in times if isinstance(times, list) else times.tolist():
        latest = time if time > latest else latest
        out.append(latest)
    return out


# -- guesses --------------------------------------------------------------------------------------------------------------
def find_record(window: FileWindow, section: FileSection) -> int | None:
    """Offset in the window of a probable pcap record, from which plausible records follow each other; None if there is none."""
    window.advance(0, GUESS_BYTES)
    interface, buffer = section.interfaces[0], window.buffer
    for at in range(max(0, len(buffer) - interface.record_header + 1)):
        if looks_like_records(buffer, at, section.order, interface, ended=window.ended):
            return at
    return None


def looks_like_records(buffer: bytes, at: int, order: str, interface: Interface, *, ended: bool) -> bool:
    """Whether plausible pcap records follow each other from `at` on, at least to the end of the buffer."""
    header, limit = interface.record_header, 1_000_000_000 // interface.multiplier
    most = max(interface.snaplen, 1 << 18)
    before: int | None = None
    for count in range(GUESS_RECORDS):
        if at + header > len(buffer):
            return at == len(buffer) if ended else count > 1
        seconds, fraction, size, length = unpack_from(order + "IIII", buffer, at)
        if fraction >= limit or size > most or length > 1 << 24 or not length or size > length:
            return False
        if before is not None and abs(seconds - before) > GUESS_SECONDS:
            return False
        before = seconds
        at += header + size
    return True


def find_block(window: FileWindow, order: str) -> int | None:
    """Offset in the window of a probable pcapng block, from which several blocks with matching lengths follow each other; None
    if there is none.
    """
    window.advance(0, GUESS_BYTES)
    buffer = window.buffer
    for at in range(-window.base % 4, max(0, len(buffer) - BLOCK_LEAST + 1), 4):
        if looks_like_blocks(buffer, at, order, ended=window.ended):
            return at
    return None


def looks_like_blocks(buffer: bytes, at: int, order: str, *, ended: bool) -> bool:
    """Whether consistent pcapng blocks follow each other from `at` on, at least to the end of the buffer."""
    for count in range(GUESS_RECORDS):
        if at + BLOCK_LEAST > len(buffer):
            return at == len(buffer) if ended else count > 0
        if buffer[at : at + 4] == MAGIC:
            order = ORDERS.get(buffer[at + 8 : at + 12], order)
        kind, total = unpack_from(order + "II", buffer, at)
        if kind not in KINDS or total < BLOCK_LEAST or total > BLOCK_BYTES_MAX or total & 3:
            return False
        end = at + total
        if end > len(buffer):
            return not ended and count > 0
        if unpack_from(order + "I", buffer, end - 4)[0] != total:
            return False
        at = end
    return True
