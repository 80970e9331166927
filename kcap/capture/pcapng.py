"""pcapng files: any byte order, several sections and interfaces, each with its own clock and link type.

In: a window on the file. Out: batches of packets; names, secrets and drop counts are stored in the `CaptureFile`. Law: unknown
blocks are skipped, and a block that is cut ends the file. A block that contradicts itself is reported and costs at most itself.
"""

from collections.abc import Iterator
from struct import Struct, unpack_from

from kcap.capture import pcapng_blocks
from kcap.capture.reader import CaptureFileReader
from kcap.capture.sections import MAGIC, FileSection, Interface
from kcap.capture.window import FileWindow
from kcap.errors import CaptureError
from kcap.limits import BATCH_PACKETS_MAX, BLOCK_BYTES_MAX, HOST_NAMES_KEPT, INTERFACES_MAX, JIT_AFTER_BYTES
from kcap.model import CaptureFile, PacketBatch
from kcap.net.packet_cursor import Report
from kcap.weird import WeirdKind

ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
BLOCK_LEAST = 12
PACKET_HEADER = 28
PACKET_LEAST = PACKET_HEADER + 4
INTERFACES_COMPILED = 256
"""Largest number of interfaces of a section for which the compiled loop is used."""
KERNEL_RUN_LEAST = 256
"""Number of consecutive packets from which another call of the compiled loop pays off."""


class PacketColumns:
    """The packets of a batch that is being built."""

    __slots__ = ("interfaces", "lengths", "links", "positions", "sizes", "starts", "times")

    def __init__(self) -> None:
        self.times: list[int] = []
        self.starts: list[int] = []
        self.sizes: list[int] = []
        self.lengths: list[int] = []
        self.positions: list[int] = []
        self.interfaces: list[int] = []
        self.links: list[int] = []
        """Link types of the first packets, which came from sections that have ended."""

    def linked(self, interfaces: list[Interface]) -> list[int]:
        """Link types of all packets; the last ones came from these interfaces."""
        self.links += [interfaces[interface].link for interface in self.interfaces[len(self.links) :]]
        return self.links


class PcapngReader(CaptureFileReader):
    """A pcapng file."""

    def __init__(
        self,
        window: FileWindow,
        file: CaptureFile,
        index: int,
        report: Report,
        jit_after: int | None = JIT_AFTER_BYTES,
        section: FileSection | None = None,
    ) -> None:
        """With a `section`, the window starts at one of its blocks instead of at the file's header."""
        super().__init__(window, file, index, report, jit_after)
        self._order = "<"
        self._interfaces: list[Interface] = []
        self._packet_link: int | None = None
        """Link type of all interfaces of the section; None if they differ."""
        self._drops: dict[int, int] = {}
        """Number of packets dropped by each interface of the section."""
        self._dropped = 0
        """The sum over all sections."""
        self._coarse = 0
        """Number of interfaces of the section whose clocks need more than 64 bits."""
        self._previous_ns = 0
        self._skipped = 0
        """Bytes of a Decryption Secrets Block ahead that is skipped."""
        if section is not None:
            self.sections.add(FileSection(section.position, section.order))
            self._order = section.order
            for interface in section.interfaces:
                self._described(interface)
            return
        if len(window.buffer) < BLOCK_LEAST and not window.advance(0, BLOCK_LEAST):
            raise CaptureError(f"{file.path}: cut before the pcapng section header ended")
        if window.buffer[:4] != MAGIC or window.buffer[8:12] not in ORDERS:
            raise CaptureError(f"{file.path}: no pcapng file")
        file.format = "pcapng"

    def _read(self) -> Iterator[PacketBatch]:
        window, at = self._window, 0
        while not self._stopped:
            kernels = self._compiled() if self._simple() else None
            if kernels is None:
                columns = PacketColumns()
                at, need = self._walk(at, columns)
                batch = self._batch(columns)
            else:
                batch, at, need = kernels.hop_pcapng(
                    window, at, self._order == ">", self._interfaces, self.index, self._packets + 1
                )
                if need < 0:  # the kernel does not handle this block
                    columns = PacketColumns()
                    if len(batch):
                        self._previous_ns = int(batch.time_ns[-1])
                        self._packets += len(batch)
                        yield batch
                    # If such blocks are frequent, the plain loop is faster.
                    at, need = (self._step if len(batch) >= KERNEL_RUN_LEAST else self._walk)(at, columns)
                    batch = self._batch(columns)
            if len(batch):
                self._packets += len(batch)
                self._previous_ns = int(batch.time_ns[-1])
                yield batch
            if not need or self._stopped:
                continue
            if self._skipped:
                at = self._behind_secrets(at)
            elif window.advance(at, need, sparse=self._sparse()):
                at = window.at
            elif window.left:
                self._damage(WeirdKind.FILE_TRUNCATED, f"{window.left} bytes of a block of at least {need}", window.at)
            else:
                return

    def _walk(self, at: int, columns: PacketColumns) -> tuple[int, int]:
        """Reads blocks from `at` on until the batch or the window is full. Returns where they end, and the bytes needed to go
        on.
        """
        window, buffer = self._window, self._window.buffer
        available, base = len(buffer), window.base
        last = available - PACKET_HEADER
        add_time, add_start, add_size = columns.times.append, columns.starts.append, columns.sizes.append
        add_length, add_position, add_interface = columns.lengths.append, columns.positions.append, columns.interfaces.append
        unpack = Struct(self._order + "IIIIIII").unpack_from
        current, multiplier, divisor, offset, high_limit = -1, 0, 1, 0, 0
        while len(columns.times) < BATCH_PACKETS_MAX and not self._stopped:
            if at <= last:
                kind, total, interface, high, low, size, length = unpack(buffer, at)
                end = at + total
                if kind == pcapng_blocks.PACKET and end <= available and size <= total - PACKET_LEAST and not total & 3:
                    if interface != current and interface < len(self._interfaces):
                        clock = self._interfaces[interface]
                        current, multiplier, divisor, offset = interface, clock.multiplier, clock.divisor, clock.offset_ns
                        high_limit = clock.high_limit()
                    if interface == current and high < high_limit:
                        ticks = (high << 32 | low) * multiplier
                        add_time((ticks if divisor == 1 else ticks // divisor) + offset)
                        add_start(at + PACKET_HEADER)
                        add_size(size)
                        add_length(length if length > size else size)  # a call of max() would take longer
                        add_position(base + at)
                        add_interface(interface)
                        at = end
                        continue
            at, need = self._step(at, columns)
            if not self._interfaces:  # a section began
                current, unpack = -1, Struct(self._order + "IIIIIII").unpack_from
            if need:
                return at, need
        return at, 0

    def _step(self, at: int, columns: PacketColumns) -> tuple[int, int]:
        """Reads one block of any kind. Returns where it ends, and the bytes needed if it is not complete."""
        window, buffer = self._window, self._window.buffer
        left = len(buffer) - at
        if left < BLOCK_LEAST:
            return at, BLOCK_LEAST
        order = self._order
        if buffer[at : at + 4] == MAGIC:
            new = ORDERS.get(buffer[at + 8 : at + 12])
            if new is None:
                self._damage(WeirdKind.BLOCK_MALFORMED, "section header without byte order", at)
                return at, 0
            order = new
        kind, total = unpack_from(order + "II", buffer, at)
        if total < BLOCK_LEAST or total > BLOCK_BYTES_MAX:
            if kind == pcapng_blocks.SECRETS and total > BLOCK_BYTES_MAX:
                self._skipped = total
                return at, BLOCK_LEAST
            self._damage(WeirdKind.BLOCK_MALFORMED, f"a block claims {total} bytes", at)
            return at, 0
        padded = total + (-total & 3)  # some writers do not count the padding
        if left < padded:
            return at, padded
        if unpack_from(order + "I", buffer, at + padded - 4)[0] != total:
            self._malformed("the two lengths of a block differ", at)
        body = buffer[at + 8 : at + total - 4]
        if kind == pcapng_blocks.SECTION:
            columns.linked(self._interfaces)
            self._section_over()
            self._order, self._interfaces, self._packet_link, self._coarse = order, [], None, 0
            self.sections.add(FileSection(window.base + at, order))
        elif kind in {pcapng_blocks.PACKET, pcapng_blocks.OLD_PACKET, pcapng_blocks.SIMPLE_PACKET}:
            self._odd_packet(kind, at, total, columns)
        else:
            self._other(kind, body, at)
        return at + padded, 0

    def _behind_secrets(self, at: int) -> int:
        """Skips a Decryption Secrets Block that is too large for memory; returns where it ends."""
        window, total, self._skipped = self._window, self._skipped, 0
        start = window.base + at
        if not window.advance(at + total + (-total & 3) - 4, 4):
            detail = f"a Decryption Secrets Block claims {total:,} bytes, of which the last are missing"
            self._damage(WeirdKind.FILE_TRUNCATED, detail, start - window.base)
            return window.at
        if unpack_from(self._order + "I", window.buffer, window.at)[0] != total:
            self._damage(WeirdKind.BLOCK_MALFORMED, f"a block claims {total} bytes", start - window.base)
            return window.at
        self.file.skipped_secrets += total
        self._report(WeirdKind.SECRETS_LIMIT, f"{total} bytes, {BLOCK_BYTES_MAX} at most", self.index, 0, start)
        return window.at + 4

    def _odd_packet(self, kind: int, at: int, total: int, columns: PacketColumns) -> None:
        """Reads a packet block that the fast loop skips: an obsolete or simple one, or one that contradicts itself."""
        buffer, order = self._window.buffer, self._order
        header = 12 if kind == pcapng_blocks.SIMPLE_PACKET else PACKET_HEADER
        room = total - header - 4
        if room < 0:
            return self._malformed("packet block too short", at)
        interface, high, low = 0, 0, 0
        if kind == pcapng_blocks.SIMPLE_PACKET:
            (length,) = unpack_from(order + "I", buffer, at + 8)
            size = length
        elif kind == pcapng_blocks.PACKET:
            interface, high, low, size, length = unpack_from(order + "IIIII", buffer, at + 8)
        else:
            interface, high, low, size, length = unpack_from(order + "HxxIIII", buffer, at + 8)
        if interface >= len(self._interfaces):
            return self._malformed(f"packet of interface {interface}, which was not described", at)
        clock = self._interfaces[interface]
        time = columns.times[-1] if columns.times else self._previous_ns
        if kind == pcapng_blocks.SIMPLE_PACKET:  # has no time; its captured length follows from other fields (section 4.4)
            size = min(length, clock.snaplen or length, room)
        elif high >= clock.high_limit():
            self._malformed("packet time beyond 64 bits of nanoseconds", at)
        else:
            time = (high << 32 | low) * clock.multiplier // clock.divisor + clock.offset_ns
        if size > room:
            self._malformed(f"packet of {size} bytes in a block of {total}", at)
            size = room
        columns.times.append(time)
        columns.starts.append(at + header)
        columns.sizes.append(size)
        columns.lengths.append(max(length, size))
        columns.positions.append(self._window.base + at)
        columns.interfaces.append(interface)
        return None

    def _other(self, kind: int, body: bytes, at: int) -> None:
        file, order = self.file, self._order
        if kind == pcapng_blocks.INTERFACE:
            if len(self._interfaces) == INTERFACES_MAX:
                detail = f"{INTERFACES_MAX:,} at most"
                self._report(WeirdKind.INTERFACE_LIMIT, detail, self.index, 0, self._window.base + at)
                return
            interface, wrong = pcapng_blocks.read_interface(body, order)
            if wrong:
                self._malformed(wrong, at)
            self._described(interface)
            if interface.link >= 0:
                file.links.add(interface.link)
            file.snaplen = max(file.snaplen or 0, interface.snaplen) or None
        elif kind == pcapng_blocks.STATISTICS:
            drops = pcapng_blocks.read_drops(body, order)
            if drops is not None and drops[0] >= len(self._interfaces):
                self._malformed(f"statistics of interface {drops[0]}, which was not described", at)
            elif drops is not None:
                self._dropped += drops[1] - self._drops.get(drops[0], 0)
                self._drops[drops[0]] = drops[1]
                file.kernel_drops = self._dropped
        elif kind == pcapng_blocks.NAMES:
            for address, name in pcapng_blocks.read_names(body, order).items():
                if len(file.names) < HOST_NAMES_KEPT:
                    file.names.setdefault(address, name)
        elif kind == pcapng_blocks.SECRETS:
            secrets = pcapng_blocks.read_secrets(body, order)
            if secrets is not None:
                file.secrets.append(secrets)

    def _malformed(self, detail: str, at: int) -> None:
        self._report(WeirdKind.BLOCK_MALFORMED, detail, self.index, 0, self._window.base + at)

    def _described(self, interface: Interface) -> None:
        """Adds an interface to the section."""
        first = not self._interfaces
        self._interfaces.append(interface)
        self.sections.describe(interface)
        self._coarse += interface.divisor != 1
        self._packet_link = interface.link if first or self._packet_link == interface.link else None

    def _section_over(self) -> None:
        """Prepares for another section."""
        self._drops = {}

    def _simple(self) -> bool:
        """Whether 64 bits are enough for the kernel's arithmetic with all clocks, and its tables of interfaces are small. It
        makes these tables for each run of packets.
        """
        return 0 < len(self._interfaces) <= INTERFACES_COMPILED and not self._coarse

    def _batch(self, columns: PacketColumns) -> PacketBatch:
        link = self._packet_link
        if columns.links or link is None:
            links = columns.linked(self._interfaces)
            link = links[0] if links and links.count(links[0]) == len(links) else None
        return PacketBatch(
            self.index,
            self._packets + 1,
            self._window.buffer,
            columns.times,
            columns.starts,
            columns.sizes,
            columns.lengths,
            columns.positions,
            columns.links if link is None else link,
        )
