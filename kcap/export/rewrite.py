"""Rewrites a capture: hidden bytes become zero, names become pseudonyms, and everything keeps its length.

In: a capture file. Out: the same packets at the same times, changed consistently across segment borders and retransmissions.
Law: checksums of TCP and IP are those of the new bytes (a packet that was not captured whole keeps its checksum as right or
wrong as it was). With `redact`, no stream byte is shown that was not read as part of a message, and no byte of a packet that
differs from the stream there. Packets that cannot be changed safely are omitted.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from kcap.analyzer import Options
from kcap.capture.fileset import ignore
from kcap.capture.frame_location import FrameLocation, location
from kcap.capture.packet_copy import Origin, every_secret, no_secret, notes_of, open_copy, place
from kcap.capture.packet_source import PacketSource
from kcap.capture.pcapng_annotations import PcapngAnnotations
from kcap.capture.sections import FileSections
from kcap.capture.writer import PacketStream
from kcap.export.mark_packets import PacketWalk
from kcap.export.packet_headers import EditablePacket, renew
from kcap.export.proxied import HeaderEraser
from kcap.export.pseudonyms import Pseudonyms
from kcap.export.redaction import plan
from kcap.export.selection import SIDES
from kcap.kafka.proxy_header import has_header, is_text
from kcap.model import PART, REF_FILE_SHIFT
from kcap.net.connections import reverse_flow
from kcap.net.segments import SegmentParser
from kcap.net.tcp import MASK, SYN
from kcap.session import Capture

WRAP: Final = 1 << 32
HALF: Final = 1 << 31


@dataclass(slots=True)
class Rewritten:
    """Summary of what was done."""

    packets: int = 0
    left_out: int = 0
    """Number of packets that cannot be changed safely: IP fragments, tunnels under other addresses, other protocols
    than TCP."""
    compressed: int = 0
    """Number of batches whose records can no longer be decompressed."""
    encrypted: int = 0
    """Number of TLS connections, whose payload becomes zeros."""


@dataclass(slots=True)
class Half:
    """One direction of a connection: shown and replaced pieces, by unwrapped sequence number."""

    base: int | None = None
    last: int = 0
    shown: list[tuple[int, bytes]] = field(default_factory=list)
    """Shown pieces with the stream's bytes: an overlapping packet with other bytes may have there what is hidden elsewhere."""
    put: list[tuple[int, bytes]] = field(default_factory=list)

    def unwrap(self, seq: int) -> int:
        """The unwrapped number nearest to the previous one."""
        if self.base is None:
            self.base = self.last = seq
            return seq
        self.last += (seq - self.last + HALF & WRAP - 1) - HALF
        return self.last

    def restart(self) -> None:
        """Starts a new pass."""
        if self.base is not None:
            self.last = self.base

    def settle(self) -> None:
        """Completes the pieces, once all are known."""
        self.shown = apart(self.shown)
        self.put.sort()

    def changed(self, start: int, data: bytes, *, redact: bool) -> bytes:
        """The new stream bytes from `start` on."""
        end = start + len(data)
        out = bytearray(len(data) if redact else data)
        for low, high, value in between(self.shown, start, end) if redact else ():
            out[low:high] = alike(data[low:high], value)
        for low, high, value in between(self.put, start, end):
            out[low:high] = value
        return bytes(out)


def between(pieces: Sequence[tuple[int, bytes]], start: int, end: int) -> Iterator[tuple[int, int, bytes]]:
    """The parts of ordered pieces from `start` to `end`: where each part begins and ends, relative to `start`, and
    its bytes."""
    for at in range(max(bisect_right(pieces, (start, b"")) - 1, 0), len(pieces)):
        where, value = pieces[at]
        if where >= end:
            return
        low, high = max(where, start), min(where + len(value), end)
        if low < high:
            yield low - start, high - start, value[low - where : high - where]


def apart(pieces: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The pieces in order; of overlapping pieces the first one's bytes remain."""
    out: list[tuple[int, bytes]] = []
    end = -WRAP
    for start, data in sorted(pieces, key=itemgetter(0)):
        if start + len(data) > end:
            out.append((max(start, end), data[max(end - start, 0) :]))
            end = start + len(data)
    return out


def alike(data: bytes, stream: bytes) -> bytes:
    """The bytes of a packet that equal the stream's, else zeros."""
    return data if data == stream else bytes(one if one == other else 0 for one, other in zip(data, stream))


class Rewriter:
    """Rewrites one file."""

    def __init__(self, path: str, options: Options | None, *, redact: bool, names: Pseudonyms | None) -> None:
        self.path = path
        self.options = options
        self.redact = redact
        self.names = names
        self.done = Rewritten()
        self._halves: dict[tuple[str, bytes], Half] = {}
        self._starts: dict[int, str] = {}
        self._proxied: dict[tuple[str, bytes], tuple[int, bool]] = {}
        """Connection and direction -> bytes of its PROXY protocol header, and whether that is text."""
        self._encrypted: set[str] = set()
        """TLS connections: nothing within their records can be changed, and handshakes name hosts and certificates."""

    def write(self, stream: PacketStream, form: str, comment: str) -> Rewritten:
        """Makes two passes: the first reads the messages, the second rewrites the packets."""
        self._plan()
        walk = PacketWalk([self.path])
        notes: list[PcapngAnnotations] = []
        origins: list[Origin] = []
        owners: dict[bytes, str] = {}
        proxied = HeaderEraser()
        copy = None
        for batch, segments in walk:
            if copy is None:
                notes = notes_of(walk.files.files, form)
                if self.names is not None:
                    notes = [
                        PcapngAnnotations([[type(i)(i.link, i.snaplen, b"") for i in s] for s in n.sections]) for n in notes
                    ]
                origins = [Origin(file, FileSections(), note) for file, note in zip(walk.files.files, notes)]
                copy = open_copy(stream, form, origins, comment, secrets=no_secret if self.redact else every_secret)
            origins[batch.file].sections = walk.files.layouts[batch.file]
            entries = {packet: at for at, packet in enumerate(segments.packet)}
            for at in range(len(batch)):
                entry = entries.get(batch.first_packet + at)
                start = int(batch.start[at])
                _, data, _, link = place(batch, at)
                if entry is None or entry in segments.buffers:
                    self.done.left_out += 1
                    continue
                flow = segments.flow[entry]
                uid = self._starts.get(batch.file << REF_FILE_SHIFT | segments.packet[entry])
                if uid is not None:
                    owners[flow] = owners[reverse_flow(flow)] = uid
                    proxied.forget(flow)
                    proxied.forget(reverse_flow(flow))
                if segments.flags[entry] & SYN:
                    proxied.begins(flow, segments.seq[entry] + 1 & MASK)
                half = self._halves.get((owners.get(flow, ""), flow))
                first = segments.payload[entry] - start
                payload = data[first : first + segments.captured[entry]]
                other = payload
                if payload:
                    if owners.get(flow) in self._encrypted:
                        other = bytes(len(payload))
                    elif half is not None:
                        other = half.changed(half.unwrap(segments.seq[entry]), payload, redact=self.redact)
                    elif self.redact:
                        other = bytes(len(payload))
                    # A header is needed to find the first request, and it names the client.
                    header = proxied.erased(flow, segments.seq[entry], payload, self._proxied.get((owners.get(flow, ""), flow)))
                    other = header + other[len(header) :]
                made = renew(EditablePacket(data, first, segments.length[entry], flow, link), other, self.names)
                if made is None:
                    self.done.left_out += 1
                    continue
                copy.write(batch, at, made)
        assert copy is not None
        copy.close()
        self.done.packets = copy.packets
        return self.done

    def _plan(self) -> None:
        reading = Capture([self.path], self.options).read(keep_connections=True)

        def step() -> None:
            closed, reading.connections = reading.connections, []
            for connection in closed:
                values: dict[str, Any] = connection.values
                self._starts[connection.ref] = uid = str(values["connection"])
                if has_header(values["detail"]) and values["phase"] == "kafka" and not values["tls"]:
                    self._proxied[uid, values["flow"]] = values["client_opaque"], is_text(values["detail"])
                if values["tls"]:
                    self._encrypted.add(uid)
            self.done.encrypted = len(self._encrypted)

        reading.watch = step
        source = PacketSource(reading.files.files, reading.files.layouts)
        parser = SegmentParser(ignore)
        rename = self.names.text if self.names is not None else None
        for batch in reading.batches():
            for number, row in enumerate(batch.rows):
                identity = batch.identities[row[0]]
                if identity.tls:
                    continue
                for side in SIDES:
                    place = location(batch, number, side)
                    found = locate(source, parser, place)
                    if found is None:
                        continue
                    seq, frame = found
                    half = self._halves.setdefault((identity.uid, place.flow), Half())
                    base = half.unwrap(seq)
                    made = plan(frame, side, row[PART["api_key"]], row[PART["api_version"]], redact=self.redact, rename=rename)
                    self.done.compressed += made.compressed
                    at = 0
                    for low, high in [*made.hidden, (made.shown, made.shown)]:
                        if at < min(low, made.shown):
                            half.shown.append((base + at, frame[at : min(low, made.shown)]))
                        at = max(at, high)
                    half.put += [(base + where, value) for where, value in made.put]
        step()
        for half in self._halves.values():
            half.settle()
            half.restart()


def locate(source: PacketSource, parser: SegmentParser, place: FrameLocation) -> tuple[int, bytes] | None:
    """The sequence number at which a frame starts, and its bytes as far as they were captured without a gap."""
    if place.file is None:
        return None
    pieces: list[tuple[int, bytes, int]] = []
    base: int | None = None
    for batch in source.batches(place.file, place.low, place.high):
        segments = parser.parse(batch)
        for at in range(len(segments)):
            if segments.flow[at] != place.flow or not segments.captured[at]:
                continue
            base = int(segments.seq[at]) if base is None else base
            offset = (int(segments.seq[at]) - base + HALF & WRAP - 1) - HALF
            start, buffer = int(segments.payload[at]), segments.buffers.get(at, segments.buffer)
            pieces.append((offset, bytes(buffer[start : start + int(segments.captured[at])]), int(segments.time_ns[at])))
    if base is None:
        return None
    low = min(offset for offset, _, _ in pieces)
    size = max(offset + len(data) for offset, data, _ in pieces) - low
    stream, seen = bytearray(size), bytearray(size)
    for offset, data, _ in reversed(pieces):
        stream[offset - low : offset - low + len(data)] = data
        seen[offset - low : offset - low + len(data)] = b"\x01" * len(data)
    start = stream.find(place.head)
    while start >= 0:
        first = next((time for offset, data, time in pieces if offset - low <= start < offset - low + len(data)), None)
        if first == place.first_ns:
            break
        start = stream.find(place.head, start + 1)
    if start < 0:
        return None
    stop = min(start + place.size, size)
    hole = seen.find(0, start, stop)
    return (base + low + start) % WRAP, bytes(stream[start : stop if hole < 0 else hole])
