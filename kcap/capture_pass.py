"""One pass over the files of a capture: the edge where I/O meets the core.

In: paths. Out: batches of decided exchanges; connections once they are over; oddities. Law: every pass over the same files sees
the same, and memory does not grow with the length of the capture.
"""

import os
import select
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kcap.analyzer import Analyzer, ClosedConnection, Options, RowBatch
from kcap.batch.pieces import in_pieces
from kcap.capture.fileset import FileSet
from kcap.capture.source import STANDARD_INPUT
from kcap.capture.unread import unread
from kcap.errors import CaptureError
from kcap.limits import CLOSED_TOGETHER, FAST_PATH_LARGE_FROM, LARGE_BODIES_ROOM, REREAD_BYTES_MAX
from kcap.model import PART, REF_FILE_SHIFT, CaptureFile
from kcap.net.segments import SegmentParser
from kcap.runtime import trim_heap
from kcap.weird import Weird, WeirdKind

if TYPE_CHECKING:
    from kcap.capture.frame_lengths import FrameLengths
    from kcap.capture.frame_reader import FrameReader
    from kcap.capture.packet_source import PacketSource
    from kcap.decode.message import Message
    from kcap.net.packet_index import PacketIndex
    from kcap.tls.plaintext import PlaintextStore

EAGER_SECONDS = 0.25
"""Longest time that rows wait for a batch to fill, seconds. The first rows do not wait at all."""


class CapturePass:
    """One pass over a capture, made step by step. Its attributes describe what has been read so far."""

    processes = 1
    """Number of processes that do the work."""

    def __init__(self, paths: Sequence[str], options: Options | None = None, *, keep_connections: bool = False) -> None:
        self.analyzer = Analyzer(options)
        self.files = FileSet(paths, self._report)
        self._again = paths, options
        self.parser = SegmentParser(self._report)
        self.keep_connections = keep_connections
        self.connections: list[ClosedConnection] = []
        """Closed connections, if `keep_connections` is set. A reader of this list may empty it."""
        self._settled = 0
        """Number of connections added since the last batch."""
        self.phases: Counter[str] = Counter()
        """Phases of the closed connections."""
        self.details: Counter[str] = Counter()
        """Details of the connections that are not Kafka: what they look like."""
        self.rows = 0
        self._secrets = [0] * len(self.files.files)
        """Number of Decryption Secrets Blocks that were taken, per file."""
        self.not_kept = 0
        """Number of requested messages that were too large to be gathered and cannot be read again."""
        self.watch: Callable[[], None] | None = None
        """Called from time to time, also while the last connections are closed, to show progress or to take `connections`."""
        self.positions = [0] * len(self.files.files)
        """Number of bytes read of each file."""
        self._piped = any(file.path == STANDARD_INPUT for file in self.files.files)
        self._emitted = -EAGER_SECONDS
        self.patient = False
        """Whether only full batches are emitted, however long rows wait: their consumer needs nothing before the end."""
        self.noted: list[PacketIndex] = []
        """Indexes of packets that are searched for."""
        self.frame_lengths: FrameLengths | None = None
        """Stores the lengths of packets; None if they are not requested."""
        self.unwanted: Callable[[RowBatch], Any] | None = None
        """Returns the bodies of a batch that are not needed (`Analyzer.take`)."""

    def _report(self, kind: WeirdKind, detail: str, file: int, packet: int, position: int) -> None:
        if kind is WeirdKind.LINK_UNKNOWN:
            self.files.files[file].unread_links[detail.partition(";")[0]] += 1
        self.analyzer.report(kind, detail, file << REF_FILE_SHIFT | packet, position)

    def another(self) -> "CapturePass | None":
        """Returns another pass over the same files, or None if one of them can be read only once."""
        if not all(os.path.isfile(file.path) for file in self.files.files):
            return None
        return CapturePass(*self._again)

    def keep_bodies(self, *, records: bool = True, partitions: bool = False) -> None:
        """Announces that bodies will be read: batches retain their bytes, and large bodies are stored if the input can be read
        only once.

        Without `records`, the records of large bodies may be omitted. `partitions` says that partitions will be read too.
        """
        self.analyzer.bodies.retain(records=records, partitions=partitions)
        self.files.keeps = True

    @cached_property
    def frames(self) -> "FrameReader":
        """Frames of the files that this pass reads."""
        from kcap.capture.frame_reader import FrameReader  # most passes do not re-read frames, and the import takes time

        return FrameReader(source_of(self), self.plaintext)

    def plaintext(self) -> "PlaintextStore | None":
        """Returns the plaintext of all TLS connections, from another pass over the files; None if there can be none."""
        from kcap.tls.plaintext import PlaintextPiece, PlaintextStore

        again = self.another()
        if again is None:
            return None
        store = PlaintextStore()

        def take(flow: bytes, offset: int, data: bytes, ref: int, position: int) -> None:
            file, packet = ref >> REF_FILE_SHIFT, ref & ((1 << REF_FILE_SHIFT) - 1)
            store.take(flow, PlaintextPiece(offset, data, file, packet, position))

        again.analyzer.plaintext = take
        for _ in again.batches():
            pass
        return store

    def message(self, batch: RowBatch, at: int, side: str, following: Sequence[tuple[int, str]] = ()) -> "Message | None":
        """Re-reads a message of a decided exchange; None if it was not retained. `following`: see
        `kcap.facts.tracker.Reread`."""
        if following:
            self.frames.ahead(batch, following)
        size, found = batch.rows[at][PART[f"{side}_bytes"]] or 0, None
        if size <= REREAD_BYTES_MAX:
            from kcap.exchange import Exchange, ExchangeRows

            exchange = Exchange(ExchangeRows(batch, self.capture_files), at, self.frames)
            found = exchange.request if side == "request" else exchange.response
        if LARGE_BODIES_ROOM < size <= REREAD_BYTES_MAX:  # the packets that carried it take as much memory
            trim_heap()
        values = batch.bodies.carried.get(batch.rows[at][PART[f"{side}_slot"]])
        self.not_kept += found is None and (size > FAST_PATH_LARGE_FROM or (values is not None and values.passed))
        return found

    @property
    def capture_files(self) -> list[CaptureFile]:
        """The files, with what is known of them so far."""
        return self.files.files

    @cached_property
    def file_numbers(self) -> dict[str, int]:
        """Name of each file -> its index in the capture."""
        return {file.name: at for at, file in enumerate(self.capture_files)}

    @property
    def failed(self) -> list[tuple[str, CaptureError]]:
        """Files that could not be read, or not completely, with the error of each."""
        return unread(self.files)

    @property
    def bytes(self) -> int:
        """Number of bytes read so far."""
        return sum(self.positions)

    @property
    def total_bytes(self) -> int | None:
        """Total number of bytes to read; None if it is not known."""
        sizes = [file.size if "+" not in file.format else None for file in self.files.files]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def length_of(self, name: str, packet: int) -> int:
        """Length on the wire, in bytes, of a packet of the named file; 0 if `frame_lengths` were not retained."""
        return 0 if self.frame_lengths is None else self.frame_lengths.of(self.file_numbers[name], packet)

    def batches(self) -> Iterator[RowBatch]:
        """Yields exchanges as they are decided: the first ones at once, then in batches that are full if time allows."""
        analyzer = self.analyzer
        parse = self.parser.columns if analyzer.options.fast_path else self.parser.parse
        if self.files.large:
            analyzer.expect_many()
        for packets in self.files.batches():
            if self.frame_lengths is not None:
                self.frame_lengths.take(packets)
            segments = parse(packets)
            for noted in self.noted:
                noted.take(segments)
            self._take_secrets(packets.file)
            for _ in analyzer.feeds(segments):
                self._drain()
                yield from in_pieces(self._take())
            self.positions[packets.file] = int(packets.position[-1])
            if analyzer.closed_connections:
                self._drain()
            if self.watch is not None:
                self.watch()
            if self._full or (analyzer.waiting and self._due()):
                yield from in_pieces(self._take())
        self.parser.finish()
        analyzer.secrets.follow()
        for _ in analyzer.ends():
            self._drain()
            if self.watch is not None:
                self.watch()
            if self._full:
                yield from in_pieces(self._take())
        self._drain()
        last = self._take()
        analyzer.fast_path = None  # frees its arrays while the last rows are written
        yield from in_pieces(last)

    def _take_secrets(self, file: int) -> None:
        """Takes the key logs of a pcapng file, which precede the packets that they are for. Each is replaced with an empty one:
        a key log may be as large as the file, and its secrets are stored already."""
        found = self.files.files[file].secrets
        for at in range(self._secrets[file], len(found)):
            self.analyzer.secrets.keylog.add(found[at])
            found[at] = b""
        self._secrets[file] = len(found)
        self.analyzer.secrets.follow()

    @property
    def _full(self) -> bool:
        """Whether enough rows, bodies or connections are there for a batch. A flood has millions of connections and no rows."""
        return self.analyzer.full or self._settled >= CLOSED_TOGETHER

    def _take(self) -> RowBatch:
        self._emitted, self._settled = time.monotonic(), 0
        batch = self.analyzer.take(self.unwanted)
        self.rows += len(batch)
        return batch

    def _due(self) -> bool:
        """Whether a batch that is not full is due: its rows have waited long, or the pipe has no data at the moment."""
        if self.patient:
            return False
        if time.monotonic() - self._emitted >= EAGER_SECONDS:
            return True
        return self._piped and not select.select([0], [], [], 0)[0]

    def _drain(self) -> None:
        for closed in self.analyzer.take_closed():
            self.phases.update(closed.phases)
            self.details.update(closed.details)
            for connection in closed.each() if self.keep_connections else ():
                connection.settle()
                self.connections.append(connection)
                self._settled += 1

    @property
    def weirds(self) -> list[tuple[Weird, int]]:
        """Oddities so far: first sighting and count."""
        return self.analyzer.sightings()


def source_of(reading: CapturePass) -> "PacketSource":
    """Returns a source that reads the packets of a pass's files again."""
    from kcap.capture.packet_source import PacketSource

    return PacketSource(reading.files.files, reading.files.layouts, reading.files.spools)
