"""Frames again: from the packets that carried them.

In: where a frame is, as its row tells. Out: its packets and its bytes. Law: what is given is what the first reading gave;
nothing where the file cannot be read twice or the frame goes over from one file to the next.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from kcap.capture.fileset import ignore
from kcap.capture.packet_source import Packet, PacketSource
from kcap.limits import CHUNK_GAP_BYTES
from kcap.model import REF_FILE_SHIFT, ROW, PacketBatch, SegmentBatch
from kcap.net.fragments import FragmentPlace, FragmentTable
from kcap.net.packet_cursor import Report
from kcap.net.segments import SegmentParser
from kcap.tls.plaintext import PlaintextStore
from kcap.weird import WeirdKind

PART = {name: at for at, name in enumerate(ROW)}
Piece = tuple[int, bytes, Packet]
"""Place in the stream, counted from the first piece, payload, and the packet that carries it."""
Span = tuple[int, int, int]
"""First byte and end of a piece, and the time of its packet."""


class FrameReader:
    """Frames of a capture read again from its files."""

    def __init__(self, source: PacketSource, plaintext: Callable[[], PlaintextStore | None] | None = None) -> None:
        """`plaintext` decrypts the capture's TLS connections once more; it is called for the first frame of one of these."""
        self._source = source
        self._plaintext = plaintext
        self._store: PlaintextStore | None = None
        self._fragmented: dict[int, FragmentIndex] = {}
        """Of files where datagrams came in fragments."""
        self._ahead: dict[tuple[Any, ...], bytes] = {}
        """Frames that were read before they are requested."""
        self._of_side: dict[str, list[tuple[Any, ...]]] = {"request": [], "response": []}
        """Their keys, apart for both sides: who takes these in turn loses none."""

    def packets(self, place: "FrameLocation") -> tuple[list[Packet], bytes]:
        """The packets that gave a frame its bytes, and the bytes as far as they were captured without a break.

        Nothing where the file cannot be read twice, or the frame goes over from one file to the next.
        """
        return cut_out(self.pieces(place), place)

    def frame(self, place: "FrameLocation", behind: int = 0) -> bytes:
        """The bytes of a frame alone, from `behind` on, which costs less than with its packets.

        Law: two copies of a large frame are in memory, not one for each step.
        """
        known = self._ahead.pop(place.key, None)
        if known is not None:
            return known[behind:]
        return self._joined(self.pieces(place, whole=False), place, behind)

    def has(self, place: "FrameLocation") -> bool:
        """Whether a frame was read ahead."""
        return place.key in self._ahead

    def ahead(self, side: str, places: Sequence["FrameLocation"], most: int) -> int:
        """Reads frames of one side and file together, which are not of TLS, as many of the first ones as have `most` bytes; how
        many these are. Those of this side that were read ahead before are forgotten.
        """
        for key in self._of_side[side]:
            self._ahead.pop(key, None)
        self._of_side[side] = []
        if not places or places[0].file is None:
            return 0
        parser = SegmentParser(ignore)
        found = self._pieces(places, places[0].file, min(place.low for place in places), parser, whole=False, most=most)
        if parser.fragments.datagrams:
            return 0
        for place, pieces in zip(places, found):
            self._ahead[place.key] = self._joined(pieces, place, 0)
            self._of_side[side].append(place.key)
        return len(found)

    @staticmethod
    def _joined(pieces: list["Piece"], place: "FrameLocation", behind: int) -> bytes:
        """The bytes of a frame from `behind` on, of pieces that are let go."""
        spans = spans_of(pieces)
        low, stream = spread(pieces)
        pieces.clear()
        start, size = found_in(spans, low, stream, place)
        with memoryview(stream) as view:
            return bytes(view[start - low + behind : start - low + size])

    def pieces(self, place: "FrameLocation", *, whole: bool = True) -> list["Piece"]:
        """What the packets of a frame's direction carry, in the order of the file; `whole`: with the bytes of these packets."""
        if place.file is None:
            return []
        if place.tls:
            return self._decrypted(place, place.file)
        parser = SegmentParser(ignore)
        (pieces,) = self._pieces([place], place.file, place.low, parser, whole=whole)
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
        return self._pieces([place], place.file, place.low, parser, whole=whole)[0]

    def _pieces(
        self, places: Sequence["FrameLocation"], file: int, start: int, parser: SegmentParser, *, whole: bool, most: int = 0
    ) -> list[list["Piece"]]:
        """Those of each frame, reading from `start` on with what the parser has of datagrams that began before. The last
        frames are left out where all have more than `most` bytes: how many they have is known then, what they announce need
        not come.
        """
        held, kept = 0, len(places)
        pieces: list[list[Piece]] = [[] for _ in places]
        bases: list[int | None] = [None] * len(places)
        of_flow: dict[bytes, list[int]] = {}
        for number, place in enumerate(places):
            of_flow.setdefault(place.flow, []).append(number)
        for batch in self._source.batches(file, start, max(place.high for place in places)):
            found = parser.columns(batch)
            segments = found if isinstance(found, SegmentBatch) else found.lists(found.of_flows(list(of_flow)))
            for entry, flow in enumerate(segments.flow):
                if flow not in of_flow or not segments.length[entry]:
                    continue
                position = segments.position[entry]
                some = [at for at in of_flow[flow] if at < kept and places[at].low <= position <= places[at].high]
                if not some:
                    continue
                seq, first = int(segments.seq[entry]), int(segments.payload[entry])
                buffer = segments.buffers.get(entry, segments.buffer)
                data = bytes(buffer[first : first + int(segments.captured[entry])])
                packet = packet_of(batch, int(segments.packet[entry]) - batch.first_packet, whole=whole)
                for number in some:
                    base = bases[number]
                    if base is None:
                        base = bases[number] = seq
                    pieces[number].append(((seq - base + (1 << 31) & 0xFFFFFFFF) - (1 << 31), data, packet))
                    held += len(data)
                while kept > 1 and held > most:
                    kept -= 1
                    held -= sum(len(data) for _, data, _ in pieces[kept])
                    pieces[kept].clear()
        return pieces[:kept]

    def _decrypted(self, place: "FrameLocation", file: int) -> list["Piece"]:
        """As `pieces`, of a connection that was decrypted: what the packets carry is plaintext."""
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
    """Which packets of a file carry the datagrams that came in IP fragments: a frame's first packet is the one that completes
    its datagram, of which earlier packets carry the rest. A fragment takes 8 bytes, and a datagram 16.
    """

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
        """As of any table; notes which packets carried what is completed."""
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
        """Positions, from and to, of the packets before `low` that carry what is completed from `low` to `high`.

        Those near to each other are read together; what lies between others is not read: it may be the whole file.
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


class FrameLocation:
    """Where a frame is: its file and packets, its direction, and how it begins."""

    def __init__(self, row: Sequence[Any], side: str, flow: bytes, *, tls: bool = False) -> None:
        self.tls = tls
        """Its bytes are plaintext of TLS."""
        first, last = row[PART[f"{side}_first_ref"]], row[PART[f"{side}_last_ref"]]
        self.low, self.high = row[PART[f"{side}_pos"]], row[PART[f"{side}_end_pos"]]
        size, correlation = row[PART[f"{side}_bytes"]], row[PART["correlation_id"]]
        self.size = size or 0
        self.first_ns: int | None = row[PART[f"{side}_first_ns"]]
        self.flow = flow
        whole = None not in (first, size, self.low, self.high)
        one_file = whole and (last is None or last >> REF_FILE_SHIFT == first >> REF_FILE_SHIFT)
        self.file: int | None = first >> REF_FILE_SHIFT if one_file else None
        self.head = b""
        """The first bytes of the frame, as far as its row has them."""
        if size is not None:
            self.head = (self.size - 4 & 0xFFFFFFFF).to_bytes(4, "big")
            if side == "request" and row[PART["api_key"]] is not None:
                self.head += row[PART["api_key"]].to_bytes(2, "big", signed=True)
                self.head += row[PART["api_version"]].to_bytes(2, "big", signed=True)
            if correlation is not None:
                self.head += correlation.to_bytes(4, "big", signed=True)

    @property
    def key(self) -> tuple[Any, ...]:
        """Its identity among all frames."""
        return self.file, self.flow, self.low, self.high, self.size, self.first_ns, self.head


def packet_of(batch: PacketBatch, at: int, *, whole: bool = True) -> Packet:
    """Entry `at` of a batch, without its bytes where they are not asked for as a `whole`."""
    start = batch.start[at]
    link = batch.link if isinstance(batch.link, int) else batch.link[at]
    data = bytes(batch.buffer[start : start + batch.captured[at]]) if whole else b""
    return Packet(int(batch.time_ns[at]), data, int(batch.wire[at]), int(link))


def cut_out(pieces: Sequence[Piece], place: FrameLocation) -> tuple[list[Packet], bytes]:
    """The packets of a frame and its bytes."""
    start, data = laid(pieces, place)
    stop = start + place.size
    return [p for offset, part, p in pieces if data and offset < stop and offset + len(part) > start], data


def laid(pieces: Sequence[Piece], place: FrameLocation) -> tuple[int, bytes]:
    """Lays pieces of a stream by their offsets, first copies first, and finds the frame in them by its first bytes.

    Where it begins, and its bytes; none where it is not there.
    """
    low, stream = spread(pieces)
    start, size = found_in(spans_of(pieces), low, stream, place)
    with memoryview(stream) as view:
        return start, bytes(view[start - low : start - low + size])


def spans_of(pieces: Sequence[Piece]) -> list[Span]:
    """The pieces without their bytes."""
    return [(offset, offset + len(data), packet.time_ns) for offset, data, packet in pieces]


def found_in(spans: Sequence[Span], low: int, stream: bytes | bytearray, place: FrameLocation) -> tuple[int, int]:
    """Where the frame begins in a stream from `low` on, and how many of its bytes are there; no bytes where it is not there."""
    start = stream.find(place.head) if stream else -1
    while start >= 0:
        if next((time for first, end, time in spans if first - low <= start < end - low), None) == place.first_ns:
            break
        start = stream.find(place.head, start + 1)
    if start < 0:
        return 0, 0
    stop = start + low
    for first, end, _ in sorted(spans):
        if first > stop:
            break
        stop = max(stop, end)
    return start + low, max(0, min(place.size, stop - low - start))


def spread(pieces: Sequence[Piece]) -> tuple[int, bytes | bytearray]:
    """Pieces of a stream by their offsets, first copies first: the lowest offset and the bytes from there on."""
    if not pieces:
        return 0, b""
    low, end = pieces[0][0], pieces[0][0]
    for offset, data, _ in pieces:
        if offset != end:
            break
        end += len(data)
    else:
        return low, b"".join([data for _, data, _ in pieces])
    low = min(offset for offset, _, _ in pieces)
    stream = bytearray(max(offset + len(data) for offset, data, _ in pieces) - low)
    for offset, data, _ in reversed(pieces):
        at = offset - low
        stream[at : at + len(data)] = data
    return low, stream
