"""pcap files: both byte orders, microseconds and nanoseconds, and the "modified" format with 24-byte record headers.

In: a window on the file. Out: batches of packets. Law: a record that is cut, or whose size is impossible, ends the file; all
records before it are returned.
"""

from collections.abc import Iterator
from struct import Struct, unpack_from

from kcap.capture.reader import CaptureFileReader
from kcap.capture.sections import FileSection, Interface
from kcap.capture.window import FileWindow
from kcap.errors import CaptureError
from kcap.limits import BATCH_PACKETS_MAX, JIT_AFTER_BYTES, PACKET_BYTES_MAX, SECOND_NS
from kcap.model import CaptureFile, PacketBatch
from kcap.net.packet_cursor import Report
from kcap.weird import WeirdKind

FILE_HEADER_BYTES = 24
FORMS = {0xA1B2C3D4: (1000, 16), 0xA1B23C4D: (1, 16), 0xA1B2CD34: (1000, 24)}
"""Magic number -> nanoseconds per unit of the time's fraction, bytes of a record header (libpcap's sf-pcap.c)."""


def byte_order(head: bytes) -> str | None:
    """Byte order of a file that begins like a pcap file; None for others."""
    for order in "<>":
        if len(head) >= 4 and unpack_from(order + "I", head)[0] in FORMS:
            return order
    return None


class PcapReader(CaptureFileReader):
    """A pcap file. Its only interface is described in its header."""

    def __init__(
        self,
        window: FileWindow,
        file: CaptureFile,
        index: int,
        report: Report,
        jit_after: int | None = JIT_AFTER_BYTES,
        section: FileSection | None = None,
    ) -> None:
        """With a `section`, the window starts at a record instead of at the file's header."""
        super().__init__(window, file, index, report, jit_after)
        self._at = 0 if section else FILE_HEADER_BYTES
        section = section or self._read_header(window, file)
        self.sections.add(section)
        self._interface = section.interfaces[0]
        self._header = self._interface.record_header
        self._order = section.order

    @staticmethod
    def _read_header(window: FileWindow, file: CaptureFile) -> FileSection:
        if len(window.buffer) < FILE_HEADER_BYTES and not window.advance(0, FILE_HEADER_BYTES):
            raise CaptureError(f"{file.path}: cut before the pcap header ended")
        order = byte_order(window.buffer)
        if order is None:
            raise CaptureError(f"{file.path}: no pcap file")
        magic, snaplen, link = unpack_from(order + "I12xII", window.buffer)
        unit, header = FORMS[magic]
        link &= 0xFFFF  # the upper bits give the length of a frame check sequence
        file.format = "pcap"
        file.links.add(link)
        file.snaplen = snaplen or None
        return FileSection(0, order, [Interface(link, snaplen, unit, record_header=header)])

    def _read(self) -> Iterator[PacketBatch]:
        window, at, big = self._window, self._at, self._order == ">"
        while not self._stopped:
            kernels = self._compiled()
            if kernels is None:
                batch, at, need = self._hop(at)
            else:
                batch, at, need = kernels.hop_pcap(window, at, big, self._interface, self.index, self._packets + 1)
            if len(batch):
                self._packets += len(batch)
                yield batch
            if not need:
                continue
            if need > PACKET_BYTES_MAX + self._header:
                self._damage(WeirdKind.FILE_TRUNCATED, f"a record claims {need - self._header} bytes", at)
            elif window.advance(at, need, sparse=self._sparse()):
                at = window.at
            elif window.left:
                self._damage(WeirdKind.FILE_TRUNCATED, f"{window.left} bytes of a record of at least {need}", window.at)
            else:
                return

    def _hop(self, at: int) -> tuple[PacketBatch, int, int]:
        """Reads as many records from `at` on as the window or a batch holds. Returns where they end, and the bytes needed,
        too."""
        window, buffer, unit, header = self._window, self._window.buffer, self._interface.multiplier, self._header
        unpack = Struct(self._order + "IIII").unpack_from
        times: list[int] = []
        starts: list[int] = []
        sizes: list[int] = []
        lengths: list[int] = []
        add_time, add_start, add_size, add_length = times.append, starts.append, sizes.append, lengths.append
        available, need = len(buffer), 0
        last = available - header
        for _ in range(BATCH_PACKETS_MAX):
            if at > last:
                need = header
                break
            seconds, fraction, size, length = unpack(buffer, at)
            start = at + header
            end = start + size
            if end > available:
                need = end - at
                break
            add_time(seconds * SECOND_NS + fraction * unit)
            add_start(start)
            add_size(size)
            add_length(length if length > size else size)  # a call of max() would take longer
            at = end
        shift = window.base - header
        positions = [start + shift for start in starts]
        link = self._interface.link
        batch = PacketBatch(self.index, self._packets + 1, buffer, times, starts, sizes, lengths, positions, link)
        return batch, at, need
