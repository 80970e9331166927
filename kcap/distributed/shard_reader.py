"""A share of a capture read like a capture: some of its connections, each whole, as the reading of everything would see them.

In: chunks of the share's packets in the order of their first packets, and the bytes of files on demand. Out: what `Reading`
gives: decided exchanges, closed connections, oddities. Law: rows are those that a reading of the whole capture gives of these
connections, packet numbers and positions among them; memory does not depend on how much there is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from kcap.analyzer import Analyzer, ClosedConnection, Options, RowBatch
from kcap.capture.fileset import as_lists
from kcap.capture.frame_reader import FrameReader
from kcap.capture.packet_source import PacketSource
from kcap.capture.reader import Section
from kcap.capture.window import FileWindow
from kcap.distributed.blanked_reads import BlankedReadTracker
from kcap.distributed.flow_shards import PickedParser, spread
from kcap.distributed.packet_columns import AT, ReadAt, ShardPackets, merged, ranks_of, with_bytes
from kcap.distributed.stitching import RangePosition
from kcap.limits import CHUNK_RUN_PACKETS, CHUNK_RUN_SPAN
from kcap.model import REF_FILE_SHIFT, CaptureFile, SegmentBatch
from kcap.net.packet_index import PacketIndex
from kcap.net.segment_columns import SegmentColumns
from kcap.session import Exchange, ExchangeRows
from kcap.weird import Weird, WeirdKind

if TYPE_CHECKING:
    from kcap.decode.message import Message

PlacedPackets = tuple[ShardPackets, RangePosition]
"""A chunk, and where its range stands in the file."""


@dataclass(frozen=True, slots=True)
class ShardContext:
    """What a share needs to know of the capture it is of; a picklable value."""

    files: Sequence[CaptureFile]
    shares: int
    last_ns: int
    """When the capture ends."""
    large: bool = False
    """So much comes that the compiled parts pay."""
    layouts: Mapping[int, list[Section]] = field(default_factory=dict)
    """Per file: what it takes to read it from the middle."""
    options: Options = field(default_factory=Options)


class RangedPacketSource(PacketSource):
    """Packets once more, from wherever the files are."""

    def __init__(self, files: Sequence[CaptureFile], layouts: Mapping[int, list[Section]], read_at: ReadAt) -> None:
        super().__init__(files, layouts)
        self._read_at = read_at

    def _window(self, file: int, position: int, window_bytes: int) -> FileWindow:
        at, end = position, self._files[file].size or 0

        def read(size: int) -> bytes:
            nonlocal at
            data = self._read_at(file, at, min(size, end - at)) if at < end else b""
            at += len(data)
            return data

        return FileWindow(read, window_bytes, position, min(window_bytes, 1 << 16))


class ShardReader:
    """One pass over a share; what a `kcap.table.builder.Table` reads."""

    def __init__(self, whole: ShardContext, share: int, chunks: Iterable[PlacedPackets], read_at: ReadAt) -> None:
        self.analyzer = Analyzer(whole.options)
        self.doubts = BlankedReadTracker()
        """Connections whose packets have to come as they are."""
        self.analyzer.watch = self.doubts.searched
        self.keep_connections = False
        self.connections: list[ClosedConnection] = []
        """Connections that are over, where they are kept; whoever reads them may take them away."""
        self.noted: list[PacketIndex] = []
        """Who looks out for packets."""
        self.unwanted: Callable[[RowBatch], Any] | None = None
        """Says which bodies of a batch nobody will look at."""
        self.watch: Callable[[], None] | None = None
        self._late: dict[int, int] = {}
        """Packets whose time is before that of another one ahead of them -> the latest time so far."""
        self._whole = whole
        self._compiled = whole.large and has_kernels()
        self._share = share
        self._chunks = chunks
        self._read_at = read_at
        self._ranks = ranks_of([file.name for file in whole.files])
        self._parser = PickedParser(self._report, frozenset([share]), whole.shares)

    def _report(self, kind: WeirdKind, detail: str, file: int, packet: int, position: int) -> None:
        """Oddities of IP fragments, which all shares see, are told by one of them."""
        if self._share == 0:
            self.analyzer.report(kind, detail, file << REF_FILE_SHIFT | packet, position)

    def another(self) -> "ShardReader | None":
        """There is no second pass over what others send."""
        return None

    def keep_bodies(self) -> None:
        """Bodies will be asked for."""
        self.analyzer.bodies.keep = True

    @property
    def capture_files(self) -> Sequence[CaptureFile]:
        """The files of the capture."""
        return self._whole.files

    @property
    def weirds(self) -> list[tuple[Weird, int]]:
        """Oddities so far."""
        return self.analyzer.sightings()

    def message(self, batch: RowBatch, at: int, side: str) -> "Message | None":
        """The request or the response of a decided exchange, read again from the files."""
        exchange = Exchange(ExchangeRows(batch, self.capture_files), at, self._frames)
        return exchange.request if side == "request" else exchange.response

    @cached_property
    def _frames(self) -> FrameReader:
        return FrameReader(RangedPacketSource(self._whole.files, self._whole.layouts, self._read_at))

    def batches(self) -> Iterator[RowBatch]:
        """Decided exchanges, in full batches."""
        analyzer, whole = self.analyzer, self._whole
        if self._compiled:
            analyzer.expect_many()
        for chunk, first, last in merged(self._standing(), self._ranks):
            for low, high in self._runs(chunk, first, last):
                self._feed(chunk, low, high)
                if analyzer.closed_connections:
                    self.connections += self._settled()
                if analyzer.full:
                    yield analyzer.take(self.unwanted)
        self._parser.finish()
        analyzer.advance(whole.last_ns)
        analyzer.finish()
        self.connections += self._settled()
        last_batch = analyzer.take(self.unwanted)
        analyzer.lane = None
        yield last_batch

    def turn(self, connection: ClosedConnection) -> tuple[int, int, int]:
        """When a connection's first packet had its turn: latest time so far, rank of the file, number of the packet."""
        file, number = connection.ref >> REF_FILE_SHIFT, connection.ref & (1 << REF_FILE_SHIFT) - 1
        latest = self._late.get(connection.ref)
        if latest is None:
            latest = int(str(connection.values["first_ns"]))
        return latest, self._ranks[file], number

    def _settled(self) -> list[ClosedConnection]:
        closed = self.analyzer.take_connections()
        if not self.keep_connections:
            return []
        for connection in closed:
            connection.settle()
        return closed

    def _standing(self) -> Iterator[ShardPackets]:
        """The chunks with numbers and times of the whole file."""
        for chunk, stand in self._chunks:
            chunk.columns[AT["number"]] += stand.packets
            if stand.latest_ns is not None:
                np.maximum(chunk.columns[AT["latest"]], stand.latest_ns, out=chunk.columns[AT["latest"]])
            if chunk.stripped is not None:
                self.doubts.blanked(chunk.file, chunk.column("number"), chunk.stripped)
            late = np.flatnonzero(chunk.column("latest") != chunk.column("time_ns"))
            if len(late):
                refs = (chunk.file << REF_FILE_SHIFT) + chunk.column("number")[late]
                self._late.update(zip(refs.tolist(), chunk.column("latest")[late].tolist()))
            yield chunk

    @staticmethod
    def _runs(chunk: ShardPackets, first: int, last: int) -> Iterator[tuple[int, int]]:
        """A run in pieces that are read at once."""
        numbers = chunk.column("number")
        while first < last:
            end = min(last, first + CHUNK_RUN_PACKETS)
            end = min(end, int(np.searchsorted(numbers, numbers[first] + CHUNK_RUN_SPAN)))
            yield first, end
            first = end

    def _feed(self, chunk: ShardPackets, first: int, last: int) -> None:
        found = self._segments(chunk, first, last)
        if isinstance(found, SegmentColumns) and not (self._whole.options.lane and self._compiled):
            found = found.all()
        for noted in self.noted:
            noted.take(found)
        self.analyzer.feed(found)

    def _segments(self, chunk: ShardPackets, first: int, last: int) -> SegmentBatch | SegmentColumns:
        numbers = chunk.column("number")[first:last]
        if chunk.stripped is not None:
            times, positions = (np.ascontiguousarray(chunk.column(name)[first:last]) for name in ("time_ns", "start"))
            return spread(chunk.stripped.columns(chunk.file, first, last, times, positions), numbers)
        batch = with_bytes(chunk, first, last, self._read_at)
        return self._parser.picked(batch if self._compiled else as_lists(batch), numbers)


def has_kernels() -> bool:
    """Whether the compiled loops can be had: a machine that was sent kcap alone has no numba."""
    try:
        from kcap.net import segment_kernels
    except (ImportError, RuntimeError):  # no numba, or no place for its cache
        return False
    return segment_kernels is not None
