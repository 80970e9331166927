"""One byte range of a capture file, read without what comes before it.

In: a range, a `read` of the file's bytes from where the range begins. Out: batches of the packets whose records begin in the
range, numbered from 1, and an account of the range. Law: a range that begins where a record does, with the interfaces that hold
there, gives the packets that a reading of the whole file gives. Where neither is known they are guessed; the account says with
what the range began and ended, which is what `kcap.distributed.stitching` proves the guess by.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from struct import unpack_from
from typing import TYPE_CHECKING, Any, Final

from kcap.capture import pcapng_blocks
from kcap.capture.fileset import cut
from kcap.capture.pcap import PcapReader
from kcap.capture.pcapng import BLOCK_LEAST, BLOCK_MAX, MAGIC, ORDERS, PcapngReader
from kcap.capture.reader import Interface, Section, in_order
from kcap.capture.window import FileWindow, Read
from kcap.limits import GUESS_BYTES, GUESS_RECORDS, GUESS_SECONDS, READ_WINDOW_BYTES
from kcap.model import CaptureFile, PacketBatch
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from kcap.capture.pcapng import PacketColumns

KINDS: Final = frozenset({pcapng_blocks.SECTION, *range(1, 11)})
"""Types of pcapng blocks that a guess takes for some."""


@dataclass(frozen=True, slots=True)
class RangeContext:
    """What stands before a record and says how it is to be read."""

    order: str
    interfaces: tuple[Interface, ...]
    sections: int = 1
    """Sections of the file so far, this one among them."""

    def section(self, position: int = 0) -> Section:
        """As readers take it."""
        return Section(position, self.order, [replace(interface) for interface in self.interfaces])


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The records of a file that begin from `start` up to, and not at, `stop`."""

    unit: int
    """Its number among all ranges of a capture."""
    file: int
    start: int
    stop: int | None
    """None: to the file's end."""
    context: RangeContext | None = None
    """None at the file's beginning, which tells it."""
    known: bool = True
    """`start` is where a record begins, and the context is the one that holds there; else both are a guess."""


@dataclass(slots=True)
class CountedWeird:
    """Oddities of one kind: the first of them, and how many there were."""

    kind: WeirdKind
    detail: str
    packet: int
    """Within the range, from 1; 0 for none."""
    position: int
    time_ns: int
    count: int = 1


@dataclass(slots=True)
class RangeSummary:
    """A range that was read; a picklable value."""

    part: ByteRange
    start: int | None
    """Where its first record began; None where none was found."""
    before: RangeContext | None
    """What it was read with."""
    end: int = 0
    """Where the next range's first record begins."""
    after: RangeContext | None = None
    ended: bool = False
    """Nothing of the file can be read beyond its end."""
    first_ns: int | None = None
    """Of its first packet; `CaptureFile` has the earliest and the latest."""
    final_ns: int | None = None
    """Of its last packet."""
    timeless: bool = False
    """Some packet's time follows from packets before it, which may stand before the range."""
    fragments: int = 0
    flows: bytes = b""
    """Numbers of its flows (`kcap.distributed.flow_shards`), 8 bytes each in rising order, where they were asked for."""
    facts: CaptureFile = field(default_factory=lambda: CaptureFile("", ""))
    drops: dict[tuple[int, int], int] = field(default_factory=dict)
    """Section and interface -> packets that the capturing machine lost."""
    oddities: dict[WeirdKind, CountedWeird] = field(default_factory=dict)


class RangedPcap(PcapReader):
    """The records of a pcap file up to a place."""

    stop: int | None = None
    reached: int | None = None
    """Where the first record stands that is not of the range."""

    @property
    def base(self) -> int:
        """File offset of the buffer of the batch at hand."""
        return self._window.base

    def batches(self) -> Iterator[PacketBatch]:
        """The packets whose records begin in the range."""
        yield from up_to_stop(self, self._read(), self._count)

    def _damage(self, kind: WeirdKind, detail: str, at: int) -> None:
        if not stops(self, self._window.base + at):
            super()._damage(kind, detail, at)
        self._stopped = True

    def context(self) -> RangeContext:
        """What holds behind what was read."""
        return RangeContext(self._order, (self._interface,))


class RangedPcapng(PcapngReader):
    """The blocks of a pcapng file up to a place."""

    stop: int | None = None
    reached: int | None = None
    timeless = False
    before = 0
    """Sections before the one at hand."""

    @property
    def base(self) -> int:
        """File offset of the buffer of the batch at hand."""
        return self._window.base

    @property
    def drops(self) -> dict[tuple[int, int], int]:
        """Lost packets by section and interface."""
        return {(section + self.before, interface): count for (section, interface), count in self._drops.items()}

    def batches(self) -> Iterator[PacketBatch]:
        yield from up_to_stop(self, self._read(), self._count)

    def _damage(self, kind: WeirdKind, detail: str, at: int) -> None:
        if not stops(self, self._window.base + at):
            super()._damage(kind, detail, at)
        self._stopped = True

    def _step(self, at: int, columns: "PacketColumns") -> tuple[int, int]:
        if len(self._window.buffer) > at and stops(self, self._window.base + at):
            self._stopped = True
            return at, 0
        return super()._step(at, columns)

    def _odd_packet(self, kind: int, at: int, total: int, columns: "PacketColumns") -> None:
        self.timeless = self.timeless or kind != pcapng_blocks.OLD_PACKET
        return super()._odd_packet(kind, at, total, columns)

    def context(self) -> RangeContext:
        """What holds behind what was read."""
        interfaces = tuple(replace(interface) for interface in self._interfaces)
        return RangeContext(self._order, interfaces, self.before + len(self.sections))


Ranged = RangedPcap | RangedPcapng


def stops(reader: Ranged, position: int) -> bool:
    """Whether a place lies behind the range; the reader notes the first such place."""
    if reader.stop is None or position < reader.stop:
        return False
    reader.reached = position if reader.reached is None else min(position, reader.reached)
    return True


def up_to_stop(reader: Ranged, batches: Iterator[PacketBatch], count: Callable[[PacketBatch], None]) -> Iterator[PacketBatch]:
    """The packets that begin in the range."""
    for batch in batches:
        if reader.stop is not None and batch.position[-1] >= reader.stop:
            last = bisect_left(batch.position, reader.stop)
            stops(reader, int(batch.position[last]))
            batch = cut(batch, 0, last)
            if last:
                count(batch)
                yield batch
            return
        count(batch)
        yield batch


class RangeScan:
    """A range being read."""

    def __init__(self, part: ByteRange, read: Read, file: CaptureFile, size: int | None, jit_after: int | None = None) -> None:
        """`read` gives the file's bytes from `part.start` on; `file` says its format; `size` is where its bytes end."""
        self.part = part
        self.file = CaptureFile(file.path, file.name, format=file.format)
        self.account = RangeSummary(part, part.start, part.context, facts=self.file)
        self._size = size
        self._jit_after = jit_after
        self._window = FileWindow(read, READ_WINDOW_BYTES, part.start)
        self._reader: Ranged | None = None
        self._time_ns = 0

    def report(self, kind: WeirdKind, detail: str, _file: int, packet: int, position: int) -> None:
        """Counts an oddity of the range."""
        seen = self.account.oddities.get(kind)
        if seen is None:
            self.account.oddities[kind] = CountedWeird(kind, detail, packet, position, self._time_ns)
        else:
            seen.count += 1

    def batches(self) -> Iterator[tuple[PacketBatch, int]]:
        """The packets, and the file offset of each batch's buffer; the account is complete behind the last."""
        part, account, pcapng = self.part, self.account, self.file.format.startswith("pcapng")
        section = None if part.context is None else part.context.section()
        if not part.known and section is not None:
            at = find_block(self._window, section.order) if pcapng else find_record(self._window, section)
            if at is None or (part.stop is not None and self._window.base + at >= part.stop):
                account.start = None
                return
            self._window.advance(at, 1)
            account.start = self._window.base
        kind: type[Ranged] = RangedPcapng if pcapng else RangedPcap
        self._reader = reader = kind(self._window, self.file, part.file, self.report, self._jit_after, section)
        reader.stop = part.stop
        if isinstance(reader, RangedPcapng) and part.context is not None:
            reader.before = part.context.sections - 1
        for batch in reader.batches():
            times = batch.time_ns
            if account.first_ns is None:
                account.first_ns = int(times[0])
            account.final_ns = self._time_ns = int(times[-1])
            yield batch, reader.base
        account.after = reader.context()
        account.ended = reader.reached is None
        account.end = (self._size or 0) if reader.reached is None else reader.reached
        if isinstance(reader, RangedPcapng):
            account.timeless, account.drops = reader.timeless, reader.drops

    def context(self) -> RangeContext | None:
        """What holds behind the batch at hand; None before there was one."""
        return None if self._reader is None else self._reader.context()


def running_latest(times: Any, before: int | None) -> Any:
    """The latest time so far, packet by packet; None where that is each packet's own."""
    if in_order(times) and (before is None or before <= times[0]):
        return None
    latest, out = before if before is not None else int(times[0]), []
    for time in times if isinstance(times, list) else times.tolist():
        latest = time if time > latest else latest
        out.append(latest)
    return out


# -- guesses --------------------------------------------------------------------------------------------------------------
def find_record(window: FileWindow, section: Section) -> int | None:
    """Where in the window a pcap record seems to begin: some records in a row that make sense as such."""
    window.advance(0, GUESS_BYTES)
    interface, buffer = section.interfaces[0], window.buffer
    for at in range(max(0, len(buffer) - interface.record_header + 1)):
        if makes_sense(buffer, at, section.order, interface, ended=window.ended):
            return at
    return None


def makes_sense(buffer: bytes, at: int, order: str, interface: Interface, *, ended: bool) -> bool:
    """Whether records follow each other from `at` on, up to the buffer's end at least."""
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
    """Where in the window a pcapng block seems to begin: some blocks in a row that agree with themselves."""
    window.advance(0, GUESS_BYTES)
    buffer = window.buffer
    for at in range(-window.base % 4, max(0, len(buffer) - BLOCK_LEAST + 1), 4):
        if agrees(buffer, at, order, ended=window.ended):
            return at
    return None


def agrees(buffer: bytes, at: int, order: str, *, ended: bool) -> bool:
    """Whether blocks follow each other from `at` on, up to the buffer's end at least."""
    for count in range(GUESS_RECORDS):
        if at + BLOCK_LEAST > len(buffer):
            return at == len(buffer) if ended else count > 0
        if buffer[at : at + 4] == MAGIC:
            order = ORDERS.get(buffer[at + 8 : at + 12], order)
        kind, total = unpack_from(order + "II", buffer, at)
        if kind not in KINDS or total < BLOCK_LEAST or total > BLOCK_MAX or total & 3:
            return False
        end = at + total
        if end > len(buffer):
            return not ended and count > 0
        if unpack_from(order + "I", buffer, end - 4)[0] != total:
            return False
        at = end
    return True


__all__ = ["ByteRange", "CountedWeird", "RangeContext", "RangeScan", "RangeSummary", "running_latest"]
