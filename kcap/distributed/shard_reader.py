"""Reads one shard of a capture like a capture: some of its connections, each complete.

In: chunks of the shard's packets in the order of their first packets, and the bytes of files on demand. Out: the output of
`kcap.capture_pass.CapturePass`: decided exchanges, closed connections, oddities; also the flows whose blanked bytes influenced
a decision. Law: the rows, including packet numbers and positions, equal those of these connections in a pass over the whole
capture. Memory does not depend on the size of the shard.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import numpy as np

from kcap import kernels
from kcap.analyzer import Analyzer, ClosedConnection, Options, RowBatch
from kcap.batch.pieces import in_pieces
from kcap.capture.fileset import as_lists
from kcap.capture.frame_reader import FrameReader
from kcap.capture.packet_source import PacketSource
from kcap.capture.sections import FileSections
from kcap.distributed.chunks import AT, ReadAt, ShardPackets, merged, ranks_of, with_bytes
from kcap.distributed.flow_shards import SelectedParser, keys_of_lists, spread
from kcap.distributed.stitching import RangePosition
from kcap.exchange import Exchange, ExchangeRows
from kcap.limits import CHUNK_RUN_PACKETS, CHUNK_RUN_SPAN, STRIPPED_KNOWN
from kcap.model import REF_FILE_SHIFT, CaptureFile, SegmentBatch
from kcap.net.packet_index import PacketIndex
from kcap.net.segment_columns import SegmentColumns
from kcap.weird import Weird, WeirdKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.decode.message import Message
    from kcap.distributed.chunks import StrippedSegments
    from kcap.identities import Identity
    from kcap.net.tcp import Connection

    Int64s = NDArray[np.int64]


class BlankedReadTracker:
    """Tracks the flows of a shard for which a decision depended on blanked bytes, so that they can be re-read unstripped.

    Such decisions are resync, recognition, the comparison of two copies of a segment, and topic names of KRaft's metadata log.
    Law: a flow it does not list has the rows that its unstripped bytes give; it may list one too many.
    """

    def __init__(self) -> None:
        self._flows: set[int] = set()
        self._blanked: set[bytes] = set()
        """Flow keys of directions with blanked bytes."""
        self._refs: deque[Int64s] = deque()
        """References of packets with blanked bytes, ascending, one array per chunk."""
        self._forgotten: dict[int, int] = {}
        """File -> its last reference that was dropped from `_refs`; earlier ones count as blanked."""

    def blanked(self, file: int, numbers: "Int64s", stripped: "StrippedSegments") -> None:
        """Registers a chunk that is about to be read, with the numbers of its packets."""
        where = np.flatnonzero(stripped.blanked)
        if not len(where):
            return
        self._blanked.update(stripped.flows[at] for at in np.unique(stripped.flow[where]).tolist())
        self._refs.append((file << REF_FILE_SHIFT) + numbers[where])
        if len(self._refs) > STRIPPED_KNOWN:
            last = int(self._refs.popleft()[-1])
            self._forgotten[last >> REF_FILE_SHIFT] = max(last, self._forgotten.get(last >> REF_FILE_SHIFT, 0))

    def searched(self, ref: int, connection: "Connection") -> None:
        """A heuristic used the payload of a packet."""
        if self._blanked.isdisjoint(connection.flows):
            return
        if ref <= self._forgotten.get(ref >> REF_FILE_SHIFT, -1) or any(has(refs, ref) for refs in self._refs):
            self._flows.update(keys_of_lists([connection.flows[0]]).tolist())

    def read_logs(self, identities: "Iterable[Identity]") -> None:
        """KRaft's metadata log was read on these connections."""
        some = (
            {(one.client_ip, one.client_port, one.server_ip, one.server_port) for one in identities} if self._blanked else set()
        )
        blanked = set(keys_of_lists(list(self._blanked)).tolist())
        for client, client_port, server, server_port in some:
            ports = client_port.to_bytes(2, "big") + server_port.to_bytes(2, "big")
            key = keys_of_lists([ip_address(client).packed + ip_address(server).packed + ports]).tolist()[0]
            if key in blanked:
                self._flows.add(key)

    @property
    def flows(self) -> bytes:
        """The flows as numbers (`kcap.distributed.flow_shards`), 8 bytes each in rising order."""
        return np.array(sorted(self._flows), np.int64).tobytes()


def has(refs: "Int64s", ref: int) -> bool:
    """Whether a sorted array contains a number."""
    at = int(np.searchsorted(refs, ref))
    return at < len(refs) and int(refs[at]) == ref


PlacedPackets = tuple[ShardPackets, RangePosition]
"""A chunk, and the position of its range in the file."""


@dataclass(frozen=True, slots=True)
class ShardContext:
    """What the reader of a shard needs to know about the whole capture. It can be pickled."""

    files: Sequence[CaptureFile]
    shards: int
    last_ns: int
    """Latest packet time of the capture, in nanoseconds."""
    large: bool = False
    """Whether the capture is large enough for compiled code to pay off."""
    layouts: Mapping[int, FileSections] = field(default_factory=dict)
    """File index -> its sections, which are needed to read the file from the middle."""
    options: Options = field(default_factory=Options)
    by_hosts: bool = False
    """Whether all connections between two hosts are in one shard."""


class RangedPacketSource(PacketSource):
    """Re-reads packets through the caller's `read_at`, wherever the files are."""

    def __init__(self, files: Sequence[CaptureFile], layouts: Mapping[int, FileSections], read_at: ReadAt) -> None:
        super().__init__(files, layouts)
        self._read_at = read_at

    def read_bytes(self, file: int, size: int, at: int) -> bytes:
        """As in the base class."""
        end = self._files[file].size or 0
        return self._read_at(file, at, min(size, end - at)) if at < end else b""


class ShardReader:
    """One pass over a shard, with the interface of `kcap.capture_pass.CapturePass` that tables read."""

    def __init__(self, context: ShardContext, shard: int, chunks: Iterable[PlacedPackets], read_at: ReadAt) -> None:
        self.analyzer = Analyzer(context.options)
        for key_log in (text for file in context.files for text in file.secrets):
            self.analyzer.secrets.keylog.add(key_log)
        self.blanked_reads = BlankedReadTracker()
        """Lists the flows that have to be re-read unstripped."""
        self.analyzer.watch = self.blanked_reads.searched
        self.keep_connections = False
        self.connections: list[ClosedConnection] = []
        """Closed connections, with `keep_connections`; a consumer may remove them."""
        self.noted: list[PacketIndex] = []
        """Indexes of packets that are fed with every segment."""
        self.unwanted: Callable[[RowBatch], Any] | None = None
        """Returns the bodies of a batch that can be released at once."""
        self.watch: Callable[[], None] | None = None
        self._late: dict[int, int] = {}
        """Reference of a packet out of time order -> the latest time before it, in nanoseconds."""
        self._context = context
        self._compiled = context.large and kernels.usable(make=True)
        self._shard = shard
        self._chunks = chunks
        self._read_at = read_at
        self._ranks = ranks_of([file.name for file in context.files])
        self._parser = SelectedParser(self._report, frozenset([shard]), context.shards, by_hosts=context.by_hosts)

    def _report(self, kind: WeirdKind, detail: str, file: int, packet: int, position: int) -> None:
        """Reports oddities of IP fragments in shard 0 only, since all shards see the fragments."""
        if self._shard == 0:
            self.analyzer.report(kind, detail, file << REF_FILE_SHIFT | packet, position)

    def another(self) -> "ShardReader | None":
        """Always None, because the chunks of a shard can be read only once."""
        return None

    def keep_bodies(self, *, records: bool = True, partitions: bool = False) -> None:
        """Retains message bodies until `message` reads them. Without `records`, the records of large bodies may be omitted.
        `partitions` says that partitions will be read too.
        """
        self.analyzer.bodies.retain(records=records, partitions=partitions)

    @property
    def capture_files(self) -> Sequence[CaptureFile]:
        return self._context.files

    @property
    def weirds(self) -> list[tuple[Weird, int]]:
        return self.analyzer.sightings()

    def message(self, batch: RowBatch, at: int, side: str, following: Sequence[tuple[int, str]] = ()) -> "Message | None":
        """The request or the response of a decided exchange, re-read from the files. `following` is that of
        `kcap.facts.tracker.Reread`.
        """
        if following:
            self._frames.ahead(batch, following)
        exchange = Exchange(ExchangeRows(batch, self.capture_files), at, self._frames)
        return exchange.request if side == "request" else exchange.response

    @cached_property
    def _frames(self) -> FrameReader:
        return FrameReader(RangedPacketSource(self._context.files, self._context.layouts, self._read_at))

    def batches(self) -> Iterator[RowBatch]:
        """Yields decided exchanges in full batches."""
        analyzer, context = self.analyzer, self._context
        if self._compiled:
            analyzer.expect_many()
        for chunk, first, last in merged(self._placed_chunks(), self._ranks):
            for low, high in self._runs(chunk, first, last):
                self._feed(chunk, low, high)
                if analyzer.closed_connections:
                    self.connections += self._settled()
                if analyzer.full:
                    yield from in_pieces(analyzer.take(self.unwanted))
        self._parser.finish()
        analyzer.advance(context.last_ns)
        for _ in analyzer.ends():
            self.connections += self._settled()
            if analyzer.full:
                yield from in_pieces(analyzer.take(self.unwanted))
        self.connections += self._settled()
        last_batch = analyzer.take(self.unwanted)
        analyzer.fast_path = None
        yield from in_pieces(last_batch)

    def turn(self, connection: ClosedConnection) -> tuple[int, int, int]:
        """Position of a connection's first packet in capture order: latest time so far, rank of the file, packet number."""
        file, number = connection.ref >> REF_FILE_SHIFT, connection.ref & (1 << REF_FILE_SHIFT) - 1
        latest = self._late.get(connection.ref)
        if latest is None:
            latest = int(str(connection.values["first_ns"]))
        return latest, self._ranks[file], number

    def _settled(self) -> list[ClosedConnection]:
        if not self.keep_connections:
            self.analyzer.take_closed()
            return []
        closed = self.analyzer.take_connections()
        for connection in closed:
            connection.settle()
        return closed

    def _placed_chunks(self) -> Iterator[ShardPackets]:
        """Yields the chunks with the packet numbers and latest times that apply to the whole file."""
        for chunk, range_position in self._chunks:
            chunk.columns[AT["number"]] += range_position.packets
            if range_position.latest_ns is not None:
                np.maximum(chunk.columns[AT["latest"]], range_position.latest_ns, out=chunk.columns[AT["latest"]])
            if chunk.stripped is not None:
                self.blanked_reads.blanked(chunk.file, chunk.column("number"), chunk.stripped)
            late = np.flatnonzero(chunk.column("latest") != chunk.column("time_ns"))
            if len(late):
                refs = (chunk.file << REF_FILE_SHIFT) + chunk.column("number")[late]
                self._late.update(zip(refs.tolist(), chunk.column("latest")[late].tolist()))
            yield chunk

    @staticmethod
    def _runs(chunk: ShardPackets, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Splits a run of packets into pieces that are analyzed at once."""
        numbers = chunk.column("number")
        while first < last:
            end = min(last, first + CHUNK_RUN_PACKETS)
            end = min(end, int(np.searchsorted(numbers, numbers[first] + CHUNK_RUN_SPAN)))
            yield first, end
            first = end

    def _feed(self, chunk: ShardPackets, first: int, last: int) -> None:
        found = self._segments(chunk, first, last)
        if isinstance(found, SegmentColumns) and not (self._context.options.fast_path and self._compiled):
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
        return self._parser.segments(batch if self._compiled else as_lists(batch), numbers)
