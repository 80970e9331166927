"""Opens capture files: from a path or standard input, plain or compressed, to a reader of their packets.

In: a path, or `-` for standard input. Out: a `CaptureFileReader`, which fills its `CaptureFile` as it reads. Law: the first
bytes of a file decide its format, whatever its name. A pipe's bytes are delivered as they come. Raises `CaptureError` with a
one-line message if the input is not a capture.
"""

import os
import stat
from collections.abc import Callable
from errno import EMFILE, ENFILE
from io import FileIO
from mmap import mmap
from typing import TYPE_CHECKING, Final

from kcap.capture.beginnings import SNOOP, compression
from kcap.capture.maps import FileMaps
from kcap.capture.pcap import PcapReader, byte_order
from kcap.capture.reader import CaptureFileReader
from kcap.capture.sections import MAGIC
from kcap.capture.spool import Spool
from kcap.capture.window import FileWindow, Read
from kcap.errors import CaptureError, said
from kcap.inputs import STANDARD
from kcap.limits import COMPRESSIONS_MAX, JIT_AFTER_BYTES, MAPPED_FILE_BYTES, READ_WINDOW_BYTES
from kcap.model import CaptureFile
from kcap.net.packet_cursor import Report
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from kcap.capture.pcapng import PcapngReader

STANDARD_INPUT: Final = STANDARD
MAGIC_BYTES = 16


class TooManyOpenError(CaptureError):
    """The process may open no more files. This is no fault of the file, so it is not left out of a set."""


class Source:
    """An open file or pipe."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._file = FileIO(0, closefd=False) if path == STANDARD_INPUT else FileIO(path)
            state = os.fstat(self._file.fileno())
        except OSError as error:
            if error.errno in (EMFILE, ENFILE):
                raise TooManyOpenError(
                    f"{path}: {os.strerror(error.errno).lower()}: those that overlap in time are read at once (ulimit -n)"
                ) from None
            raise CaptureError(f"{path}: {said(error)}") from None
        self.size = state.st_size if stat.S_ISREG(state.st_mode) else None
        """Bytes on disk; None for input that can be read only once."""
        self._maps: FileMaps | None = None

    def read(self, size: int) -> bytes:
        """Returns up to `size` bytes as they come; b"" at the end."""
        try:
            return self._file.read(size) or b""
        except OSError as error:
            raise CaptureError(f"{self.path}: {said(error)}") from None

    def read_at(self, position: int, size: int) -> bytes:
        """Returns up to `size` bytes of a regular file from a position on."""
        try:
            return os.pread(self._file.fileno(), size, position)
        except OSError as error:
            raise CaptureError(f"{self.path}: {said(error)}") from None

    def map_at(self, position: int, size: int) -> mmap | None:
        """The same bytes as a map, from a multiple of the page size on; None if they have to be read. The first call takes the
        lease. It is not taken earlier, because other processes may have to wait for it and most files are read."""
        if self._maps is None:
            self._maps = FileMaps(self.path, os.fstat(self._file.fileno()))
        return self._maps.map_at(position, size)

    def close(self) -> None:
        """Closes the file; standard input stays open."""
        if self._maps is not None:
            self._maps.close()
        self._file.close()


def open_reader(
    source: Source,
    file: CaptureFile,
    index: int,
    report: Report,
    window_bytes: int = READ_WINDOW_BYTES,
    jit_after: int | None = JIT_AFTER_BYTES,
    spools: dict[int, Spool] | None = None,
) -> CaptureFileReader:
    """Makes a reader for the format of the source. A spool is added to `spools` for input that can be read only once."""
    file.size = source.size
    read: Read = source.read

    def truncated(detail: str, position: int) -> None:
        file.complete, file.fault = False, file.fault or detail
        report(WeirdKind.COMPRESSED_TRUNCATED, detail, index, 0, position)

    head, read, wrappings = unwrap(read, truncated)
    once = bool(wrappings) or source.size is None or source.path == STANDARD_INPUT  # it cannot be opened again
    if spools is not None and once:
        spools[index] = Spool()
        read = spools[index].reading(read)
    placed = not once and hasattr(os, "pread")
    large = placed and (source.size or 0) >= MAPPED_FILE_BYTES
    window = FileWindow(read, window_bytes, read_at=source.read_at if placed else None, map_at=source.map_at if large else None)
    reader = reader_of(form_of(head))
    if reader is None:
        raise CaptureError(f"{source.path}: {no_capture(head, wrappings)}")
    made = reader(window, file, index, report, jit_after)
    file.format = "+".join([file.format, *reversed(wrappings)])
    return made


def form_of(head: bytes) -> str:
    """`pcap` or `pcapng`; empty if these first bytes are those of neither."""
    return "pcap" if byte_order(head) else "pcapng" if head.startswith(MAGIC) else ""


def reader_of(form: str) -> "type[PcapReader | PcapngReader] | None":
    """The reader class of a format, `pcap` or `pcapng`; None for others."""
    if form != "pcapng":
        return PcapReader if form == "pcap" else None
    from kcap.capture.pcapng import PcapngReader  # a large module, which captures of the other format do not need

    return PcapngReader


def unwrap(read: Read, truncated: Callable[[str, int], None]) -> tuple[bytes, Read, list[str]]:
    """Returns the first bytes inside a stream's compression, a `read` of all of them, and the compressions, outermost first."""
    wrappings: list[str] = []
    while True:
        head = read_head(read)
        read = again(head, read)
        name = "snoop" if head.startswith(SNOOP) else compression(head)
        if name is None or len(wrappings) == COMPRESSIONS_MAX:
            return head, read, wrappings
        wrappings.append(name)
        if name == "snoop":
            from kcap.capture.snoop import SnoopStream  # few captures need it

            read = SnoopStream(read, truncated).read
        else:
            from kcap.capture.compressed import Decompressed

            read = Decompressed(read, name, truncated).read


def why_no_capture(read: Read) -> str | None:
    """What a stream is if it is not a capture, also inside its compression; None for a capture."""
    head, _, wrappings = unwrap(read, lambda _detail, _position: None)
    return None if form_of(head) else no_capture(head, wrappings)


def no_capture(head: bytes, wrappings: list[str]) -> str:
    """Why these first bytes are not those of a capture."""
    if not head:
        return f"empty{' inside ' + '+'.join(wrappings) if wrappings else ''}"
    from kcap.capture.foreign import ADVICE, foreign  # only this message needs it

    found = foreign(head)
    if found is not None:
        return f"{found} is not read; {ADVICE}"
    return (
        f"no capture (it starts with {head[:4].hex()}): tried pcap, pcapng and snoop, plain or in gzip, bzip2, xz, zstd or lz4"
    )


def read_head(read: Read) -> bytes:
    """The first bytes of a stream; all of them if it is short."""
    head = b""
    while len(head) < MAGIC_BYTES:
        part = read(MAGIC_BYTES - len(head))
        if not part:
            break
        head += part
    return head


def again(head: bytes, read: Read) -> Read:
    """A `read` that returns `head` again before the rest."""
    pending = [head]

    def read_again(size: int) -> bytes:
        if not pending:
            return read(size)
        first = pending.pop()
        if len(first) > size:
            pending.append(first[size:])
            first = first[:size]
        return first or read(size)

    return read_again
