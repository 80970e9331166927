"""Re-reads packets by file and position, from files that can be read twice.

In: the position of a packet. Out: the packet, or None if it is not available (a pipe or compressed file that was not spooled
that far, or a file that has changed since). Law: the result equals that of the first reading, except for the time of packets
that have none of their own.
"""

import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from weakref import finalize

from kcap.capture.fileset import cut, ignore
from kcap.capture.reader import CaptureFileReader
from kcap.capture.sections import FileSection, FileSections
from kcap.capture.source import reader_of
from kcap.capture.spool import Spool
from kcap.capture.window import FileWindow
from kcap.limits import ONE_PACKET_BYTES, OPEN_FILES_MAX, READ_WINDOW_BYTES
from kcap.model import CaptureFile, PacketBatch

if TYPE_CHECKING:
    from kcap.capture.pcap import PcapReader
    from kcap.capture.pcapng import PcapngReader

PLAIN_BYTE_NS = 2
"""Processor time, ns, per byte that is read and parsed without kernels, for packets of Ethernet's size."""


class Packet(NamedTuple):
    """One packet as it was captured."""

    time_ns: int
    data: bytes
    wire: int
    link: int


class PacketSource:
    """Reads packets of a capture's files on demand."""

    def __init__(
        self,
        files: Sequence[CaptureFile],
        layouts: Mapping[int, FileSections] | None = None,
        spools: Mapping[int, Spool] | None = None,
    ) -> None:
        self._files = files
        self._spools = {} if spools is None else spools
        self._layouts = dict(layouts or {})
        self._open: dict[int, int] = {}
        finalize(self, close_all, self._open)

    def read(self, file: int, position: int) -> bytes | None:
        """The captured bytes of the packet whose record or block starts at `position`."""
        packet = self.packet(file, position)
        return None if packet is None else packet.data

    def packet(self, file: int, position: int) -> Packet | None:
        """The packet whose record or block starts at `position`."""
        reader = self._reader(file, position, ONE_PACKET_BYTES)
        batch = None if reader is None else next(reader.batches(), None)
        if batch is None or batch.position[0] != position:
            return None
        start = batch.start[0]
        link = batch.link if isinstance(batch.link, int) else batch.link[0]
        return Packet(batch.time_ns[0], batch.buffer[start : start + batch.captured[0]], batch.wire[0], link)

    def batches(self, file: int, first: int, last: int) -> Iterator[PacketBatch]:
        """Yields the packets from position `first` to position `last`, both included, numbered from 1."""
        return (batch for _, batch in self.placed(file, first, last))

    def placed(self, file: int, first: int, last: int) -> Iterator[tuple[int, PacketBatch]]:
        """The same, with the position in the file of each batch's first buffer byte."""
        compiled = is_long(last - first)
        reader = self._reader(file, first, ONE_PACKET_BYTES if first == last else READ_WINDOW_BYTES, compiled=compiled)
        if reader is None:
            return
        for batch in reader.batches():
            if batch.position[-1] >= last:
                yield reader.base, cut(batch, 0, bisect_right(batch.position, last))
                return
            yield reader.base, batch

    def whole(self, file: int) -> Iterator[PacketBatch]:
        """Yields all packets of a file, numbered from 1."""
        reader = self._reader(file, 0, READ_WINDOW_BYTES, beginning=True)
        return iter(()) if reader is None else reader.batches()

    def close(self) -> None:
        """Closes the files."""
        close_all(self._open)

    def _reader(
        self, file: int, position: int, window_bytes: int, *, beginning: bool = False, compiled: bool = False
    ) -> CaptureFileReader | None:
        """A reader from a position on. With `beginning`, it first reads the file's header; with `compiled`, it uses kernels."""
        known = self._files[file]
        spool = self._spools.get(file)
        kind = reader_of(known.format if spool is None else known.format.partition("+")[0])
        if kind is None or (known.size is None and spool is None) or (spool is not None and not spool.kept):
            return None
        section = None if beginning else self._section(file, kind, position)
        if section is None and not beginning:
            return None
        window = self._window(file, position, window_bytes)
        return kind(window, CaptureFile(known.path, known.name), file, ignore, position if compiled else None, section)

    def _section(self, file: int, kind: "type[PcapReader | PcapngReader]", position: int) -> FileSection | None:
        """The section that `position` is in; for a file that was not read in this process, the one at the file's beginning."""
        sections = self._layouts.get(file)
        if sections is None:
            known = self._files[file]
            reader = kind(self._window(file, 0, READ_WINDOW_BYTES), CaptureFile(known.path, known.name), file, ignore, None)
            next(reader.batches(), None)
            sections = self._layouts[file] = reader.sections
        return sections.of(position)

    def read_bytes(self, file: int, size: int, at: int) -> bytes:
        """Up to `size` bytes of a file from position `at` on."""
        spool = self._spools.get(file)
        try:
            return os.pread(self._number(file), size, at) if spool is None else spool.read(size, at)
        except OSError:
            return b""

    def _window(self, file: int, position: int, window_bytes: int) -> FileWindow:
        at = position

        def read(size: int) -> bytes:
            nonlocal at
            data = self.read_bytes(file, size, at)
            at += len(data)
            return data

        return FileWindow(read, window_bytes, position, min(window_bytes, 1 << 16))

    def _number(self, file: int) -> int:
        """File descriptor of a file, which is opened if needed."""
        number = self._open.pop(file, None)
        if number is None:
            if len(self._open) >= OPEN_FILES_MAX:
                os.close(self._open.pop(next(iter(self._open))))
            number = os.open(self._files[file].path, os.O_RDONLY)
        self._open[file] = number
        return number


def is_long(size: int) -> bool:
    """Whether `size` bytes of a file are read faster by kernels, counting the time to load them if this has not happened."""
    if not size:
        return False
    from kcap import kernels

    return kernels.worthwhile(size * PLAIN_BYTE_NS)


def close_all(files: dict[int, int]) -> None:
    """Closes file descriptors, also if a source is garbage collected."""
    for number in files.values():
        os.close(number)
    files.clear()
