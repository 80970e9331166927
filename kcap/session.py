"""One capture: reads its files, runs the analyzer, hands out tables and exchanges. The edge where I/O meets the core."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kcap.analyzer import Analyzer, Options, RowBatch
from kcap.capture.fileset import FileSet
from kcap.errors import CaptureError, UsageError
from kcap.net.segments import SegmentParser
from kcap.weird import Weird, WeirdKind

if TYPE_CHECKING:
    from kcap.table.frame import Table

REF_FILE_SHIFT = 40


class Reading:
    """One pass over a capture, a step at a time; what has been read so far stands in its attributes."""

    def __init__(self, paths: Sequence[str], options: Options | None = None) -> None:
        self.analyzer = Analyzer(options)
        self.files = FileSet(paths, self._report)
        self.parser = SegmentParser(self._report)
        self.bytes = 0
        """Bytes of packets so far."""

    def _report(self, kind: WeirdKind, detail: str, file: int, packet: int, position: int) -> None:
        self.analyzer.report(kind, detail, file << REF_FILE_SHIFT | packet, position)

    def batches(self) -> Iterator[RowBatch]:
        """Decided exchanges, as they are decided; the first ones at once, then in full batches."""
        analyzer, parse = self.analyzer, self.parser.parse
        eager = 8
        for packets in self.files.batches():
            analyzer.feed(parse(packets))
            if analyzer.full or (eager and analyzer.rows):
                eager = max(0, eager - 1)
                yield analyzer.take()
        self.parser.finish()
        analyzer.finish()
        yield analyzer.take()

    @property
    def weirds(self) -> list[tuple[Weird, int]]:
        """Oddities so far: first sighting and count."""
        return self.analyzer.sightings()


class Capture:
    """Some files as one capture, in time order. Each table and each iteration is a pass over the files; a pipe allows one."""

    def __init__(self, paths: Sequence[str], options: Options | None = None, keylog: str | None = None) -> None:
        if not paths:
            raise UsageError("no capture given")
        self.paths = list(paths)
        self.options = options
        self.keylog = keylog
        self._passes = 0

    def read(self) -> Reading:
        """Starts a pass.

        Raises CaptureError when nothing can be read, UsageError when a pipe was read before.
        """
        if "-" in self.paths and self._passes:
            raise UsageError("a pipe can be read once")
        self._passes += 1
        return Reading(self.paths, self.options)

    def table(self, name: str, columns: Sequence[str] | None = None) -> "Table":
        """A table by name: exchanges, connections, captures or weirds."""
        from kcap.table.frame import Table

        return Table(self.read(), name, columns)

    def exchanges(self, columns: Sequence[str] | None = None) -> "Table":
        """One row a request/response exchange."""
        return self.table("exchanges", columns)

    def connections(self, columns: Sequence[str] | None = None) -> "Table":
        """One row a TCP connection, with its byte ledger."""
        return self.table("connections", columns)

    def captures(self, columns: Sequence[str] | None = None) -> "Table":
        """One row a file."""
        return self.table("captures", columns)

    def weirds(self, columns: Sequence[str] | None = None) -> "Table":
        """One row an oddity and connection."""
        return self.table("weirds", columns)


def open_capture(*paths: str, keylog: str | None = None, options: Options | None = None) -> Capture:
    """Several files, globs, directories or `-` as one capture.

    Raises CaptureError when a path does not exist.
    """
    return Capture(paths, options, keylog)


__all__ = ["Capture", "CaptureError", "Reading", "open_capture"]
