"""Reads frames again, from the packets that carried them.

In: where a frame is, according to its row. Out: its packets and its bytes. Law: the result equals that of the first reading. It
is empty if the file cannot be read twice or the frame continues in the next file.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kcap.capture.fileset import ignore
from kcap.capture.frame_layout import FrameLayout
from kcap.capture.frame_location import FrameLocation, FramePlace, location
from kcap.capture.packet_source import Packet, PacketSource
from kcap.limits import CHUNK_GAP_BYTES, FRAME_SPAN_FACTOR, READ_WINDOW_BYTES
from kcap.model import PacketBatch, SegmentBatch
from kcap.net.fragments import FragmentPlace, FragmentTable
from kcap.net.packet_cursor import Report
from kcap.net.segments import SegmentParser
from kcap.net.tcp import signed32
from kcap.tls.plaintext import PlaintextStore
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from kcap.analyzer import RowBatch
    from kcap.capture.frame_index import FrameIndex, IndexedPiece

Piece = tuple[int, bytes, Packet]
"""Offset in the stream from the first piece, payload, and the packet that carries it."""


class FrameReader:
    """Reads frames of a capture again from its files."""

    def __init__(self, source: PacketSource, plaintext: Callable[[], PlaintextStore | None] | None = None) -> None:
        """`plaintext` decrypts the capture's TLS connections again. It is called for the first frame of such a connection."""
        self._source = source
        self._plaintext = plaintext
        self._store: PlaintextStore | None = None
        self._fragmented: dict[int, FragmentIndex] = {}
        """Indexes of the files with fragmented datagrams."""
        self._index: FrameIndex | None = None
        self._no_room = False
        """Whether the index could not be written."""
        self._spanned = self._given = 0
        """Bytes of files that were read for a single frame each, and bytes of all frames that were returned."""
        self._ahead: dict[FramePlace, list[IndexedPiece]] = {}
        """Payloads of frames that are requested next."""

    def packets(self, place: FrameLocation) -> tuple[list[Packet], bytes]:
        """The packets that carried a frame, and the frame's contiguous captured bytes.

        Empty if the file cannot be read twice or the frame continues in the next file.
        """
        return cut_out(self.pieces(place), place)

    def frame(self, place: FrameLocation, behind: int = 0) -> bytes:
        """The bytes of a frame from `behind` on. This costs less than reading its packets too.

        Law: the cost of reading frames is proportional to their bytes, or is that of one reading of the file, even if each
        frame spans all the others.
        """
        if place.file is None:
            return b""
        found = None
        if not place.tls:
            near = place.where not in self._ahead and self._is_near(place)
            found = self._by_itself(place, behind) if near else self._by_index(place, place.file, behind)
        if found is None:
            found = self._of_pieces(place, behind)
        self._given += len(found)
        return found

    def ahead(self, batch: "RowBatch", following: Sequence[tuple[int, str]]) -> None:
        """Reads the frames of a batch, given as row and side, that span others, all together. `frame` returns them next."""
        self._ahead.clear()
        of_file = defaultdict[int, list[FrameLocation]](list)
        for at, side in following:
            place = location(batch, at, side)
            if place.file is not None and not place.tls and not self._is_near(place):
                of_file[place.file].append(place)
        for file, some in of_file.items():
            low, high = min(place.low for place in some), max(place.high for place in some)
            self._with_index(file, low, high, partial(self._take_ahead, file, some))

    def _take_ahead(self, file: int, places: Sequence[FrameLocation], index: "FrameIndex") -> None:
        self._ahead.update(zip((place.where for place in places), index.joined(file, places)))

    def _is_near(self, place: FrameLocation) -> bool:
        """Whether a frame is read together with everything between its packets, since that is not much more than the frame."""
        span = place.high - place.low
        most = READ_WINDOW_BYTES + FRAME_SPAN_FACTOR * (self._given + min(span, place.size))
        return self._no_room or bool(self._spanned + span <= most)

    def _by_itself(self, place: FrameLocation, behind: int) -> bytes | None:
        """Reads a frame from the range of its first to its last packet; None if datagrams began before that range."""
        self._spanned += place.high - place.low
        layout, parser = FrameLayout(place, place.high - place.low), SegmentParser(ignore)
        for offset, data, batch, at in self._pieces(place, parser):
            layout.add(offset, data, int(batch.time_ns[at]))
        return None if parser.fragments.datagrams else layout.found(behind)[1]

    def _by_index(self, place: FrameLocation, file: int, behind: int) -> bytes | None:
        """Reads a frame from its own packets; None if these are not indexed."""
        layout = FrameLayout(place, place.high - place.low)

        def look_up(index: "FrameIndex") -> None:
            lay(layout, index.pieces(file, place.flow, place.low, place.high))

        if ahead := self._ahead.pop(place.where, None):
            lay(layout, ahead)
        elif not self._with_index(file, place.low, place.high, look_up):
            return None
        return layout.found(behind)[1]

    def _with_index(self, file: int, low: int, high: int, use: Callable[["FrameIndex"], None]) -> bool:
        """Calls `use` with the index of all packets between two positions of a file; False if these cannot be indexed."""
        try:
            if self._index is None:
                from kcap.capture.frame_index import FrameIndex

                self._index = FrameIndex(self._source)
            if self._index.covers(file, low, high):
                use(self._index)
                return True
        except OSError:  # a full disk costs time: frames are read without the index
            self._index, self._no_room = None, True
        return False

    def _of_pieces(self, place: FrameLocation, behind: int) -> bytes:
        """Reads a frame from its packets; the memory of each piece is released as it is added to the layout."""
        pieces = self.pieces(place, whole=False)[::-1]
        layout = FrameLayout(place, sum(len(data) for _, data, _ in pieces))
        while pieces:
            offset, data, packet = pieces.pop()
            layout.add(offset, data, packet.time_ns)
        return layout.found(behind)[1]

    def pieces(self, place: FrameLocation, *, whole: bool = True) -> list["Piece"]:
        """The payloads of packets of the frame's direction, in file order; with `whole`, with the bytes of these packets."""
        if place.file is None:
            return []
        if place.tls:
            return self._decrypted(place, place.file)
        parser = SegmentParser(ignore)
        pieces = self._with_packets(place, parser, whole=whole)
        if not parser.fragments.datagrams:
            return pieces
        if place.file not in self._fragmented:
            self._fragmented[place.file] = FragmentIndex(self._source, place.file)
        runs = self._fragmented[place.file].before(place.low, place.high)
        if not runs:
            return pieces
        parser = SegmentParser(ignore)
        for first, last in runs:
            for batch in self._source.batches(place.file, first, last):
                parser.columns(batch)
        return self._with_packets(place, parser, whole=whole)

    def _with_packets(self, place: FrameLocation, parser: SegmentParser, *, whole: bool) -> list["Piece"]:
        return [
            (offset, bytes(data), packet_of(batch, at, whole=whole)) for offset, data, batch, at in self._pieces(place, parser)
        ]

    def _pieces(
        self, place: FrameLocation, parser: SegmentParser
    ) -> Iterator[tuple[int, bytes | memoryview, PacketBatch, int]]:
        """Yields the payloads of a frame, each with its packet's batch and index. The parser has earlier fragments."""
        base: int | None = None
        for batch in () if place.file is None else self._source.batches(place.file, place.low, place.high):
            found = parser.columns(batch)
            segments = found if isinstance(found, SegmentBatch) else found.lists(found.of_flows([place.flow]))
            for entry, flow in enumerate(segments.flow):
                if flow != place.flow or not segments.length[entry]:
                    continue
                seq, first = int(segments.seq[entry]), int(segments.payload[entry])
                base = seq if base is None else base
                buffer = segments.buffers.get(entry, segments.buffer)
                data = memoryview(buffer)[first : first + int(segments.captured[entry])]
                yield signed32(seq - base), data, batch, int(segments.packet[entry]) - batch.first_packet

    def _decrypted(self, place: FrameLocation, file: int) -> list["Piece"]:
        """As `pieces`, for a connection that was decrypted: the pieces are plaintext."""
        if self._store is None and self._plaintext is not None:
            self._store = self._plaintext()
        found = [] if self._store is None else self._store.between(place.flow, file, place.low or 0, place.high or 0)
        packets = {position: self._source.packet(file, position) for position in {piece.position for piece in found}}
        out = []
        for piece in found:
            packet = packets[piece.position]
            if packet is not None:
                out.append((piece.offset, piece.data, packet))
        return out


class FragmentIndex(FragmentTable):
    """Index of the packets that carry datagrams in IP fragments. The first packet of a frame may be one that completes a
    datagram, whose other fragments are in earlier packets. A fragment takes 8 bytes, and a datagram 16."""

    def __init__(self, source: PacketSource, file: int) -> None:
        """Reads the file once."""
        super().__init__()
        self._open: dict[Hashable, array[int]] = {}
        self._completed, self._ends, self._places = array("q"), array("q"), array("q")
        parser = SegmentParser(ignore)
        parser.fragments = self
        for batch in source.whole(file):
            parser.parse(batch)

    def add(
        self, key: Hashable, offset: int, more: bool, data: bytes, size: int, place: FragmentPlace, report: Report
    ) -> tuple[bytes, int] | None:
        """As `FragmentTable.add`; also stores which packets carried a datagram that is completed."""
        whole = super().add(key, offset, more, data, size, place, report)
        if key in self.datagrams:
            self._open.setdefault(key, array("q")).append(place.position)
        elif whole is not None:
            self._places.extend(self._open.pop(key, ()))
            self._completed.append(place.position)
            self._ends.append(len(self._places))
        return whole

    def _give_up(self, key: Hashable, kind: WeirdKind, report: Report) -> None:
        self._open.pop(key, None)
        super()._give_up(key, kind, report)

    def before(self, low: int, high: int) -> list[tuple[int, int]]:
        """Position ranges of the packets before `low` that carry fragments of datagrams completed between `low` and `high`.

        Packets near each other are in one range. What lies between ranges is not read, since it may be the whole file.
        """
        first, last = bisect_left(self._completed, low), bisect_right(self._completed, high)
        if first == last:
            return []
        begin = self._ends[first - 1] if first else 0
        runs: list[tuple[int, int]] = []
        for place in sorted(place for place in self._places[begin : self._ends[last - 1]] if place < low):
            if runs and place - runs[-1][1] <= CHUNK_GAP_BYTES:
                runs[-1] = runs[-1][0], place
            else:
                runs.append((place, place))
        return runs


def lay(layout: FrameLayout, pieces: Iterable["IndexedPiece"]) -> None:
    """Adds the pieces of a direction, in the order of the file."""
    base: int | None = None
    for seq, data, time_ns in pieces:
        base = seq if base is None else base
        layout.add(signed32(seq - base), data, time_ns)


def packet_of(batch: PacketBatch, at: int, *, whole: bool = True) -> Packet:
    """Entry `at` of a batch; with its bytes if `whole`."""
    start = batch.start[at]
    link = batch.link if isinstance(batch.link, int) else batch.link[at]
    data = bytes(batch.buffer[start : start + batch.captured[at]]) if whole else b""
    return Packet(int(batch.time_ns[at]), data, int(batch.wire[at]), int(link))


def cut_out(pieces: Sequence[Piece], place: FrameLocation) -> tuple[list[Packet], bytes]:
    """The packets of a frame, and its bytes."""
    start, data = laid(pieces, place)
    stop = start + place.size
    return [p for offset, part, p in pieces if data and offset < stop and offset + len(part) > start], data


def laid(pieces: Sequence[Piece], place: FrameLocation) -> tuple[int, bytes]:
    """Puts pieces of a stream at their offsets, where first copies win, and finds the frame in them by its first bytes.

    Returns where it begins and its bytes; no bytes if it is not found.
    """
    layout = FrameLayout(place, sum(len(data) for _, data, _ in pieces))
    for offset, data, packet in pieces:
        layout.add(offset, data, packet.time_ns)
    return layout.found()
