"""Several capture files as one capture, in time order.

In: paths. Out: batches of all files merged by packet time, and by file name for equal times. The order within a file is
preserved, even if its time goes back. Law: files that do not overlap in time are read one after the other at no extra cost;
only overlapping files are open at the same time. A file that cannot be read is reported and left out if another one can be
read.
"""

import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import closing
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

from kcap.capture.paths import expand, unique_names
from kcap.capture.reader import CaptureFileReader, in_order
from kcap.capture.sections import FileSections
from kcap.capture.source import Source, TooManyOpenError, open_reader
from kcap.capture.spool import Spool
from kcap.errors import CaptureError
from kcap.limits import FIRST_WINDOW_BYTES, JIT_AFTER_BYTES, JIT_SOON_BYTES, LARGE_BYTES, OPEN_WINDOWS_BYTES, READ_WINDOW_BYTES
from kcap.model import CaptureFile, PacketBatch
from kcap.net.packet_cursor import Report
from kcap.weird import WeirdKind

Order = tuple[int, str, int]
"""Time, name and index of the next packet of a file."""
EARLIEST = -(1 << 63)


class FileSetMember:
    """One file of the set, with the position up to which its packets were taken."""

    def __init__(self, index: int, reader: CaptureFileReader, source: Source) -> None:
        self.index = index
        self.reader = reader
        self.source = source
        self.batch: PacketBatch | None = None
        self.at = 0
        self._batches = reader.batches()
        self._latest: int | None = None
        """Latest time of the batch; None before it is computed."""
        self._ordered = False

    def fill(self) -> bool:
        """Reads the next batch if needed; returns whether there is another packet."""
        if self.batch is None or self.at >= len(self.batch):
            self.batch, self.at = next(self._batches, None), 0
            self._latest = None
        return self.batch is not None

    @property
    def order(self) -> Order:
        assert self.batch is not None
        return int(self.batch.time_ns[self.at]), self.reader.file.name, self.index

    def take(self, until: Order | None) -> PacketBatch:
        """Returns the packets before the next packet of another file."""
        batch, first = self.batch, self.at
        assert batch is not None
        last = len(batch) if until is None else self._run_end(batch, first, until)
        self.at = last
        if first == 0 and last == len(batch):
            return batch
        if not isinstance(batch.time_ns, list):
            self.batch = batch = as_lists(batch)  # files that interleave give runs too short for the compiled parser
        return cut(batch, first, last)

    def _run_end(self, batch: PacketBatch, first: int, until: Order) -> int:
        times, mine = batch.time_ns, self.reader.file.name
        limit = until[0] + ((mine, self.index) < until[1:])  # times below this come first
        if self._latest is None:
            self._ordered = in_order(times)
            self._latest = int(times[-1] if self._ordered else max(times))
        if self._latest < limit:
            return len(batch)
        if self._ordered:
            return bisect_left(times, limit, first)
        return next((at for at in range(first, len(times)) if times[at] >= limit), len(batch))


class FileSet:
    """All files of a capture."""

    def __init__(self, paths: Sequence[str], report: Report, jit_after: int | None = JIT_AFTER_BYTES) -> None:
        found = expand(paths)
        if not found:
            tables = any(Path(path).is_dir() and next(Path(path).rglob("*.parquet"), None) for path in paths)
            more = " (it holds saved tables, which this command does not read)" if tables else ""
            raise CaptureError(f"{', '.join(paths) or 'nothing given'}: no capture file there{more}")
        self.files = [CaptureFile(path, name) for path, name in zip(found, unique_names(found))]
        """In the order given; a batch's `file` is an index into this list. Unreadable files remain in it."""
        self.failed: list[tuple[str, CaptureError]] = []
        self.layouts: dict[int, FileSections] = {}
        """For each file that was opened, what `PacketSource` needs to read it from the middle."""
        self.spools: dict[int, Spool] = {}
        """Spilled bytes of inputs that can be read only once."""
        self.keeps = False
        """Whether packets will be re-read."""
        self.large = sum(map(size_of, found)) >= LARGE_BYTES
        """Whether the files are so large that compiled loops are sure to pay off."""
        self._report = report
        self._jit_after = min(jit_after, JIT_SOON_BYTES) if jit_after is not None and self.large else jit_after
        self._sources: list[Source] = []
        """The sources that are open."""
        self._begun: dict[int, FileSetMember] = {}
        """Members that were opened before their turn: the only file of a set, and inputs that can be read only once."""
        self._waiting: list[Order] = []
        for index in range(len(self.files)):
            self._look(index)
        if len(self.failed) == len(self.files):
            error = self.failed[0][1]
            raise error if len(self.failed) == 1 else CaptureError(f"none of {len(found)} files could be read; {error}")

    def batches(self) -> Iterator[PacketBatch]:
        """Yields the packets of all files, once."""
        heap: list[tuple[Order, FileSetMember]] = []
        self._decide()
        # Orders differ at least in their index, so that members are never compared.
        waiting, self._waiting = sorted(self._waiting, reverse=True), []
        try:
            while heap or waiting:
                while waiting and (not heap or waiting[-1] <= heap[0][0]):
                    index = waiting.pop()[2]
                    member = self._begun.pop(index, None) or self._start(index)
                    self._decide()
                    if member is not None and self._fill(member):
                        heappush(heap, (member.order, member))
                if not heap:
                    continue
                member = heappop(heap)[1]
                others = [*waiting[-1:], *(order for order, _ in heap[:1])]
                yield member.take(min(others, default=None))
                if self._fill(member):
                    heappush(heap, (member.order, member))
        finally:
            self.close()

    def _decide(self) -> None:
        for spool in self.spools.values():
            spool.decide(self.keeps)

    def close(self) -> None:
        """Closes all files. A capture that was read to its end has done so already."""
        for source in self._sources:
            source.close()
        self._sources.clear()

    def _look(self, index: int) -> None:
        """Finds the first packet time of a file, unless it is the only one. A file without packets comes first."""
        file, first = self.files[index], EARLIEST
        if len(self.files) == 1:
            member = self._start(index)
            if member is None:
                return
            self._begun[index] = member
        else:
            try:
                source = Source(file.path)
                if source.size is None:
                    member = self._begun[index] = self._member(index, source)
                    if member.fill():
                        first = member.order[0]
                else:
                    first = first_time(source)
            except CaptureError as error:
                self._begun.pop(index, None)
                self._fail(index, error)
                return
        self._waiting.append((first, file.name, index))

    def _member(self, index: int, source: Source) -> FileSetMember:
        self._sources.append(source)
        window = min(READ_WINDOW_BYTES, max(FIRST_WINDOW_BYTES, OPEN_WINDOWS_BYTES // len(self._sources)))
        try:
            reader = open_reader(source, self.files[index], index, self._report, window, self._jit_after, self.spools)
        except CaptureError:
            self._close(source)
            raise
        self.layouts[index] = reader.sections
        return FileSetMember(index, reader, source)

    def _start(self, index: int) -> FileSetMember | None:
        try:
            return self._member(index, Source(self.files[index].path))
        except CaptureError as error:
            self._fail(index, error)
            return None

    def _fill(self, member: FileSetMember) -> bool:
        """Whether the member has more packets; if not, it is closed."""
        try:
            if member.fill():
                return True
        except CaptureError as error:
            self._fail(member.index, error)
        self._close(member.source)
        return False

    def _close(self, source: Source) -> None:
        self._sources.remove(source)
        source.close()

    def _fail(self, index: int, error: CaptureError) -> None:
        """Leaves a file out. Raises TooManyOpenError, since the remaining files would look like the whole capture."""
        if isinstance(error, TooManyOpenError):
            raise error
        file = self.files[index]
        file.complete = False
        self.failed.append((file.path, error))
        self._report(WeirdKind.FILE_UNREADABLE, str(error), index, 0, 0)


def size_of(path: str) -> int:
    """Bytes on disk; 0 for anything that is not a file."""
    return os.path.getsize(path) if os.path.isfile(path) else 0


def first_time(source: Source) -> int:
    """Returns the time of the first packet of a file that can be opened again, and closes the file."""
    with closing(source):
        file = CaptureFile(source.path, source.path)
        batch = next(open_reader(source, file, 0, ignore, FIRST_WINDOW_BYTES, None).batches(), None)
        return EARLIEST if batch is None else batch.time_ns[0]


def ignore(_kind: WeirdKind, _detail: str, _file: int, _packet: int, _position: int) -> None:
    """Ignores an oddity of the first look at a file; it is reported when the file is read."""


def as_lists(batch: PacketBatch) -> PacketBatch:
    """Converts a batch of the compiled readers to the form of the plain ones."""
    arrays: list[Any] = [batch.time_ns, batch.start, batch.captured, batch.wire, batch.position]
    times, starts, captured, wire, positions = (array.tolist() for array in arrays)
    return PacketBatch(batch.file, batch.first_packet, batch.buffer, times, starts, captured, wire, positions, batch.link)


def cut(batch: PacketBatch, first: int, last: int) -> PacketBatch:
    return PacketBatch(
        batch.file,
        batch.first_packet + first,
        batch.buffer,
        batch.time_ns[first:last],
        batch.start[first:last],
        batch.captured[first:last],
        batch.wire[first:last],
        batch.position[first:last],
        batch.link if isinstance(batch.link, int) else batch.link[first:last],
    )
