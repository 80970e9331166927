"""One TCP connection: puts both byte streams in order. The first copy of a byte wins, and every hole is decided once.

In: segments of the connection in capture order. Out: calls on each stream's sink, `data` for bytes in stream order and `gap`
for bytes that no packet carries. Law: the sinks see the same bytes for any reordering within the window, any duplication and
any initial sequence number. Every stream byte is delivered once, as data or as part of a gap.

Sequence numbers (RFC 9293) are unwrapped to 64-bit offsets by signed distance. Offset 0 is the first byte behind the SYN, or
the lowest byte seen if the capture has no SYN. `TRANSITIONS` is the state table of a stream.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Final, NamedTuple, Protocol

from kcap import limits
from kcap.limits import HELD_COST
from kcap.model import Transition
from kcap.net import guard
from kcap.net.guard import StreamSink
from kcap.net.segment_columns import SACKED, SPURIOUS
from kcap.weird import WeirdKind

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
MASK = 0xFFFFFFFF
START_OF = itemgetter(0)
NO_ACKS: Final = array("q")

STARTING, DELIVERING, REORDERING = "starting", "delivering", "reordering"
TRANSITIONS: Final = (
    Transition(STARTING, "syn", DELIVERING),
    Transition(STARTING, "syn", REORDERING),
    Transition(STARTING, "decide", DELIVERING),
    Transition(STARTING, "decide", REORDERING),
    Transition(STARTING, "finish", DELIVERING),
    Transition(DELIVERING, "segment", REORDERING),
    Transition(REORDERING, "segment", DELIVERING),
    Transition(REORDERING, "decide", DELIVERING),
    Transition(REORDERING, "finish", DELIVERING),
)
"""States of a stream. `starting`: no SYN seen, bytes are held. `reordering`: bytes are held behind a hole. `decide`: a hole, or
the wait for a SYN, has lasted the reorder window."""


def signed32(distance: int) -> int:
    """Returns the distance between two sequence numbers as a signed number (RFC 9293 section 3.4)."""
    distance &= MASK
    return distance - (1 << 32) if distance & 0x80000000 else distance


class WeirdReporter(Protocol):
    """Receives oddities."""

    held_bytes: int
    """Memory of the bytes held behind holes, summed over the streams of all connections that hold much."""

    def report(
        self, kind: WeirdKind, detail: str, ref: int = 0, position: int = 0, connection: "Connection | None" = None
    ) -> None: ...

    def failed(self, connection: "Connection", error: Exception, ref: int, position: int = 0) -> None: ...

    def searched(self, ref: int, connection: "Connection") -> None:
        """A heuristic (resync, recognition, comparison of copies) used the payload of a packet."""


class Held(NamedTuple):
    """Bytes held behind a hole."""

    start: int
    end: int
    data: bytes
    """Shorter than end - start where the snapshot length cut the packet."""
    time_ns: int
    ref: int
    position: int
    mark: int
    """Number of data segments of its stream when it arrived."""
    ack: int | None = None
    """Sequence number up to which its sender had acknowledged the other stream by then."""


class Stream:
    """One direction of a connection."""

    __slots__ = (
        "acked", "acked_raw", "acks", "anchored", "captured", "connection", "counted", "data_segments", "duplicated",
        "fin_at", "fin_ns", "held", "held_bytes", "isn", "last_ns", "last_start", "lost", "missing", "next",
        "next_raw", "out_of_order", "packets", "peer", "recovered", "repeats", "resent_at", "resent_ns", "retransmitted",
        "rtt_count", "rtt_min", "rtt_sum", "sacked", "sink", "spurious", "started", "timed_end", "timed_ns", "zero_ns",
        "zero_since", "zero_stalls",
    )  # fmt: skip

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection
        self.peer: Stream = self
        self.sink: StreamSink
        self.isn: int | None = None
        self.anchored = False
        """Whether offset 0 is known to be the first byte of the stream."""
        self.started = False
        """Whether bytes are delivered. Before that, they wait for a SYN that may have been displaced."""
        self.next = 0
        self.next_raw: int | None = None
        self.acked: int | None = None
        self.acked_raw: int | None = None
        self.held: list[Held] = []
        self.held_bytes = 0
        self.counted = 0
        """Memory of its held bytes, as counted in the sum of all streams."""
        self.acks = NO_ACKS
        """Packets of the server, and what each acknowledged of the client's stream, where that changes; only the newest."""
        self.lost: Sequence[tuple[int, int]] = ()
        """The newest ranges that were given up."""
        self.repeats: Sequence[tuple[int, int, bool]] = ()
        """The newest ranges seen again: start, end, and whether the tap saw one packet twice."""
        self.fin_at: int | None = None
        self.fin_ns: int | None = None
        self.last_ns = 0
        self.last_start = -1
        self.packets = 0
        self.data_segments = 0
        self.captured = 0
        self.missing = 0
        self.retransmitted = self.duplicated = self.out_of_order = self.recovered = 0
        self.sacked = self.spurious = 0
        self.resent_ns = 0
        self.resent_at: int | None = None
        """Longest time from its newest data to the retransmission of unacknowledged bytes, ns, and the time of that."""
        self.zero_since: int | None = None
        self.zero_ns = self.zero_stalls = 0
        self.timed_end: int | None = None
        self.timed_ns = 0
        self.rtt_min: int | None = None
        """Smallest round trip from the tap to the receiver of this stream and back, ns."""
        self.rtt_sum = 0
        self.rtt_count = 0

    def acked_with(self, ref: int | None) -> int | None:
        """Returns the offset up to which this side had acknowledged the other one when packet `ref` was captured. If that is no
        longer stored, a later offset is returned; None if it is not known."""
        acks = self.acks
        if not acks or ref is None:
            return self.peer.acked if self.peer.started else None  # offsets may still be shifted
        if ref >= acks[-2]:
            return acks[-1]  # nearly always so
        return max((acked for packet, acked in zip(acks[::2], acks[1::2]) if packet <= ref), default=acks[1])

    @staticmethod
    def place(offset: int) -> int:
        """Returns where the bytes of an offset are in the TCP stream; TLS plaintext has other offsets than its records."""
        return offset

    # -- round trips --------------------------------------------------------------------------------------------------
    def round_trip(self, sample: int) -> None:
        """Adds one round trip from the tap to the receiver of this stream and back."""
        if 0 <= sample <= limits.ROUND_TRIPS_NS - self.rtt_sum:
            if self.rtt_min is None or sample < self.rtt_min:
                self.rtt_min = sample
            self.rtt_sum += sample
            self.rtt_count += 1

    def _time(self, end: int, time_ns: int) -> None:
        """Starts timing a segment that came in order, until its acknowledgement.

        A held segment also waits for the bytes before it. If an acknowledgement precedes its segment in the capture, the next
        one acknowledges other bytes. Timing either would give a round trip that the path does not have.
        """
        if self.timed_end is None and (self.acked is None or self.acked < end):
            self.timed_end, self.timed_ns = end, time_ns

    def announces(self, window: int, flags: int, time_ns: int) -> None:
        """The sender announces a receive window: zero, or any size while its window is closed."""
        if window:
            self.opens_window(time_ns)
        elif self.zero_since is None and not flags & RST:
            self.zero_since = time_ns
            self.zero_stalls += 1

    def opens_window(self, time_ns: int) -> None:
        """The sender opens its receive window, which was closed."""
        self.zero_ns = self.closed_window_ns(time_ns)
        self.zero_since = None

    def closed_window_ns(self, time_ns: int) -> int:
        """Total time that the sender's receive window had been closed by this time, ns."""
        closed = 0 if self.zero_since is None else max(time_ns - self.zero_since, 0)
        return min(self.zero_ns + closed, limits.CLOSED_WINDOW_NS)

    def unacked_ns(self, time_ns: int) -> int | None:
        """Time since the last new data, ns; None if all is acknowledged or if there was no acknowledgement."""
        return None if self.acked is None or self.acked >= self.next else time_ns - self.last_ns

    def acknowledged(self, ack: int, time_ns: int) -> None:
        """The peer's cumulative acknowledgement has a new value."""
        self.acked_raw = ack
        if self.next_raw is None:
            return
        offset = self.next + signed32(ack - self.next_raw)
        if self.acked is not None and offset <= self.acked:
            return
        self.acked = offset
        if self.timed_end is not None and offset >= self.timed_end:
            self.timed_end = None
            self.round_trip(time_ns - self.timed_ns)

    # -- bytes --------------------------------------------------------------------------------------------------------
    def anchor(self, isn: int) -> None:
        """Sets the initial sequence number: offset 0 is the byte behind it."""
        self.isn = isn
        if self.started:
            return  # bytes were delivered with other offsets; a SYN this late changes nothing
        first = (isn + 1) & MASK
        if self.next_raw is not None:
            self._shift(signed32(first - self.next_raw))
        self.next_raw = first
        self.anchored = self.started = True

    def _shift(self, by: int) -> None:
        """Makes offset `by` the new offset 0, before anything was delivered."""
        self.held = [h._replace(start=h.start - by, end=h.end - by) for h in self.held if h.end > by]
        self.held_bytes = sum(h.end - h.start for h in self.held)
        if self.acked is not None:
            self.acked -= by
        if self.fin_at is not None:
            self.fin_at -= by

    def take(self, seq: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int) -> None:
        """Takes payload in any order."""
        if self.next_raw is None:
            self.next_raw = seq
        start = self.next + signed32(seq - self.next_raw)
        end = start + length
        if self.anchored and start < 0:
            if end <= 0:
                return  # a keep-alive probe with the SYN's own number
            at, captured, start = at - start, max(0, captured + start), 0
        if self.started and start < self.next:
            if end <= self.next:
                self._repeated(start, end, time_ns, ref, position)
                return
            self._repeated(start, self.next, time_ns, ref, position)
            skip = self.next - start
            at, captured, start = at + skip, max(0, captured - skip), self.next
        if self.started and start == self.next and not self.held:
            self._time(end, time_ns)
            self.acknowledges(self.peer.acked_raw, ref)
            self._deliver(start, end, buffer, at, captured, time_ns, ref, position)
            return
        if self.started and start > self.next and (not self.held or start < self.held[-1].start):
            self.out_of_order += 1
        if self.started and self.held and start < self.held[-1].start:
            self._fills(start, time_ns)
        self._hold(start, end, buffer, at, captured, time_ns, ref, position)
        self.drain()

    def _fills(self, start: int, time_ns: int) -> None:
        """Counts a segment that fills a hole a round trip after it arose, so a retransmission (RFC 5681 section 3.2)."""
        held, later = self.held, bisect_right(self.held, start, key=START_OF)
        trip = max((self.rtt_min or 0) + (self.peer.rtt_min or 0), limits.DISPLACED_NS)
        self.recovered += (not later or held[later - 1].end <= start) and time_ns - held[later].time_ns >= trip

    def acknowledges(self, ack: int | None, ref: int) -> None:
        """Stores what a packet with payload acknowledges."""
        peer = self.peer
        if ack is None or peer.next_raw is None or not peer.started or self is self.connection.client:
            return
        acked, acks = peer.next + signed32(ack - peer.next_raw), self.acks
        if not acks:
            self.acks = array("q", (ref, acked))
        elif acks[-1] != acked or acks[-2] > ref:
            acks.extend((ref, acked))
            if len(acks) > 2 * limits.REPEATS_KEPT:
                del acks[:2]

    def _deliver(
        self, start: int, end: int, buffer: bytes, at: int, captured: int, time_ns: int, ref: int, position: int
    ) -> None:
        length = end - start
        self.next_raw = (self.next_raw or 0) + length & MASK
        self.next = end
        self.last_start, self.last_ns = start, time_ns
        self.captured += length
        guard.data(self, start, buffer, at, captured, length, time_ns, ref, position)

    def _repeated(self, start: int, end: int, time_ns: int, ref: int, position: int) -> None:
        """Counts bytes that came again after they were delivered or given up."""
        if end - start <= 1 and end == self.next:
            return  # a keep-alive probe repeats the last byte (RFC 9293 section 3.8.4)
        for low, high in self.lost:
            if start < high and end > low:
                self.connection.report(
                    WeirdKind.LATE_DATA, f"bytes {start} to {end} came after the hole was given up", ref, position
                )
                return
        twice = start == self.last_start and end == self.next and time_ns - self.last_ns <= limits.DUPLICATE_NS
        if twice:
            self.duplicated += 1
        else:
            self.retransmitted += 1
            if self.timed_end is not None and start < self.timed_end:
                self.timed_end = None  # Karn's algorithm: it is not known which of the two is acknowledged
            self._sent_again(end, self.last_ns, time_ns)
        self.repeat(start, end, twice=twice)

    def _sent_again(self, end: int, newest_ns: int, time_ns: int) -> None:
        """Bytes up to `end` were retransmitted at `time_ns`; the newest data of the stream came at `newest_ns`."""
        if self.acked is not None and end > self.acked and time_ns - newest_ns > self.resent_ns:
            self.resent_ns, self.resent_at = time_ns - newest_ns, time_ns

    def repeat(self, start: int, end: int, *, twice: bool) -> None:
        """Stores that these bytes were seen again."""
        self.repeats = [*self.repeats[1 - limits.REPEATS_KEPT :], (start, end, twice)]

    def _hold(self, start: int, end: int, buffer: bytes, at: int, captured: int, time_ns: int, ref: int, position: int) -> None:
        """Holds bytes that no earlier segment brought. The first copy wins; a weird reports another one (PYROLYSE 2025)."""
        held, mark = self.held, self.data_segments
        i = bisect_right(held, start, key=START_OF)
        if i and held[i - 1].end > start:
            i -= 1
        cursor, repeated = start, 0
        while cursor < end:
            other = held[i] if i < len(held) else None
            stop = end if other is None else min(end, other.start)
            if cursor < stop:
                low, high = at + cursor - start, at + min(stop - start, captured)
                held.insert(i, Held(cursor, stop, bytes(buffer[low:high]), time_ns, ref, position, mark, self.peer.acked_raw))
                self.held_bytes += stop - cursor
                i += 1
            if other is not None and stop < end:
                stop = min(end, other.end)
                low = max(cursor, other.start)
                mine = buffer[at + low - start : at + min(stop - start, captured)]
                theirs = other.data[low - other.start : stop - other.start]
                size = min(len(mine), len(theirs))
                self.connection.searched(ref)
                self.connection.searched(other.ref)
                if mine[:size] != theirs[:size]:
                    self.connection.report(WeirdKind.OVERLAP_DIFFERS, f"at stream offset {low}", ref, position)
                repeated += stop - low
                i += 1
            cursor = stop
        if repeated:
            self.repeat(start, end, twice=repeated == end - start)
            self.retransmitted += 1
            self._sent_again(end, held[-1].time_ns, time_ns)
        self._count()

    def drain(self) -> None:
        """Delivers bytes that are in order now."""
        if not self.started:
            return
        held = self.held
        done = 0
        while done < len(held) and held[done].start <= self.next:
            h = held[done]
            done += 1
            self.held_bytes -= h.end - h.start
            if h.end <= self.next:
                continue
            skip = self.next - h.start
            data = h.data[skip:] if skip else h.data
            self.acknowledges(h.ack, h.ref)
            self._deliver(self.next, h.end, data, 0, len(data), h.time_ns, h.ref, h.position)
        if done:
            del held[:done]
            if self.counted:
                self._count()

    def start(self) -> None:
        """Starts without a SYN, since none came in time: the lowest byte seen becomes offset 0."""
        self.started = True
        if self.held:
            shift = self.held[0].start
            self._shift(shift)
            self.next_raw = (self.next_raw or 0) + shift & MASK
            self.drain()

    def decide(self, time_ns: int, at_end: bool = False) -> None:
        """Gives up holes that have waited long enough; at the end of the capture or the connection, all holes."""
        if not self.started:
            first = self.held[0] if self.held else None
            if at_end or self._full() or (first and self._waited(first, time_ns)):
                self.start()
            elif first is None and self.acked_raw is not None and self.peer.data_segments >= limits.REORDER_SEGMENTS:
                self.next_raw = self.acked_raw  # a side that only acknowledges: its next sequence number is known
                self.acked = 0
                self.start()
        while self.started and self.held:
            first = self.held[0]
            acknowledged = not self.peer.packets or (self.acked is not None and self.acked > self.next)
            full = self._full()
            if not (at_end or full or (acknowledged and self._waited(first, time_ns))):
                return
            if full and not acknowledged and not at_end:
                self.connection.report(
                    WeirdKind.REORDER_LIMIT, f"{self.held_bytes} bytes waited behind a hole", first.ref, first.position
                )
            self._give_up(first.start, time_ns, first.ref, first.position)
            self.drain()

    def _waited(self, held: Held, time_ns: int) -> bool:
        """Whether bytes have been held for the reorder window."""
        return self.data_segments - held.mark >= limits.REORDER_SEGMENTS or time_ns - held.time_ns >= limits.REORDER_NS

    def _full(self) -> bool:
        """Whether this stream or all streams together hold too much to hold more."""
        if self.held_bytes > limits.REORDER_BYTES_MAX or len(self.held) > limits.REORDER_SEGMENTS_MAX:
            return True
        return self.counted > 0 and self.connection.oddities.held_bytes > limits.HELD_BYTES_MAX

    def _count(self) -> None:
        """Adds what the stream holds to the sum of all streams, if it is much."""
        size = self.held_bytes + HELD_COST * len(self.held)
        size = size if size > limits.HELD_BYTES_LEAST else 0
        if size != self.counted:
            self.connection.oddities.held_bytes += size - self.counted
            self.counted = size

    def _give_up(self, to: int, time_ns: int, ref: int, position: int) -> None:
        start, length = self.next, to - self.next
        self.missing += length
        self.lost = [*self.lost[1 - limits.REPEATS_KEPT :], (start, to)]
        self.next = to
        self.next_raw = (self.next_raw or 0) + length & MASK
        self.timed_end = None
        self.connection.report(WeirdKind.GAP, f"{length} bytes at stream offset {start} of the {self.side}", ref, position)
        guard.gap(self, start, length, time_ns, ref, position)

    def finish(self, time_ns: int) -> None:
        self.decide(time_ns, at_end=True)
        if self.acked is not None and self.next_raw is not None:
            tail = self.acked - self.next
            if tail == 1 or self.fin_at is not None or self.peer.fin_ns is not None:
                tail -= 1  # a FIN, seen or not, takes one sequence number
            if self.started and 0 < tail < limits.SEQUENCE_FAR:
                self._give_up(self.next + tail, time_ns, 0, 0)

    def release(self) -> None:
        """Cuts the references back to this object once the connection is over and no more bytes are delivered. It is then freed
        with its last reference, without the garbage collector. Numbers remain."""
        del self.connection, self.peer, self.sink

    @property
    def state(self) -> str:
        """The state in `TRANSITIONS`."""
        if not self.started:
            return STARTING
        return REORDERING if self.held else DELIVERING

    @property
    def side(self) -> str:
        """`client`, `server`, or `lower endpoint`/`higher endpoint` while the direction is unknown."""
        connection = self.connection
        if connection.client is None:
            return "lower endpoint" if connection.streams[0] is self else "higher endpoint"
        return "client" if connection.client is self else "server"


class Connection:
    """Two streams between two endpoints, from the first packet to the last."""

    __slots__ = (
        "began", "client", "closing_ns", "closing_order", "ended", "ending", "first_ns", "first_position", "first_ref",
        "flows", "last_ns", "number", "oddities", "older", "in_order", "rst_by", "rst_ns", "streams", "syn_ns", "syn_repeated",
        "uid", "conversation",
    )  # fmt: skip

    def __init__(
        self, flow: bytes, reverse: bytes, number: int, time_ns: int, ref: int, position: int, oddities: WeirdReporter
    ) -> None:
        self.flows = (flow, reverse)
        """Flow keys (source, destination, ports) of `streams[0]` and `streams[1]`."""
        self.number = number
        self.oddities = oddities
        self.streams = (Stream(self), Stream(self))
        self.streams[0].peer, self.streams[1].peer = self.streams[1], self.streams[0]
        self.client: Stream | None = None
        self.in_order = False
        """Whether both streams deliver and hold nothing, so that the next segment takes the short path."""
        self.began = "midstream"
        self.ended = "open"
        self.first_ns = self.last_ns = time_ns
        self.first_ref, self.first_position = ref, position
        self.syn_ns: int | None = None
        self.syn_repeated = False
        self.rst_ns: int | None = None
        self.rst_by: Stream | None = None
        """The stream of the first RST; None if there is none, or if no request was waiting for a response."""
        self.closing_ns: int | None = None
        self.closing_order = -1
        """Order, among all packets, of the packet that ended it, as the table counts them."""
        self.ending: object = None
        """Its entry in the queue of ended connections (`kcap.net.connections`)."""
        self.older: Connection | None = None
        self.uid: str | None = None
        self.conversation: object = None
        """The state of the protocol above, a `kcap.kafka.conversation.Conversation`."""

    def report(self, kind: WeirdKind, detail: str, ref: int = 0, position: int = 0) -> None:
        self.oddities.report(kind, detail, ref, position, self)

    def searched(self, ref: int) -> None:
        """Reports that a heuristic used the payload of a packet of this connection."""
        self.oddities.searched(ref, self)

    def segment(
        self, stream: Stream, seq: int, ack: int, flags: int, window: int, buffer: bytes, at: int, captured: int, length: int,
        time_ns: int, ref: int, position: int,
    ) -> None:  # fmt: skip
        """Takes any segment of the connection."""
        peer = stream.peer
        if not self.in_order:
            self.decide(stream, time_ns)
        self.last_ns = max(self.last_ns, time_ns)
        stream.packets += 1
        if flags > 0xFF:
            stream.sacked += flags & SACKED > 0
            stream.spurious += flags & SPURIOUS > 0
        if flags & SYN:
            self._syn(stream, seq, ack, flags, time_ns)
            seq = (seq + 1) & MASK
        if flags & ACK and ack != peer.acked_raw:
            peer.acknowledged(ack, time_ns)
        if not window or stream.zero_since is not None:
            stream.announces(window, flags, time_ns)
        if length and not flags & RST:
            stream.data_segments += 1
            if stream.fin_at is not None and stream.next_raw is not None:
                start = stream.next + signed32(seq - stream.next_raw)
                if start >= stream.fin_at:
                    self.report(WeirdKind.DATA_AFTER_FIN, f"{length} bytes", ref, position)
            stream.take(seq, buffer, at, captured, length, time_ns, ref, position)
        if flags & FIN and stream.fin_at is None:
            if stream.next_raw is None:
                stream.next_raw = seq
            stream.fin_at = stream.next + signed32(seq - stream.next_raw) + length
            stream.fin_ns = time_ns
            if peer.fin_ns is not None and self.closing_ns is None:
                self.closing_ns, self.ended = time_ns, "fin"
        if flags & RST and self.rst_ns is None:
            self.rst_ns, self.rst_by = time_ns, stream
            if self.closing_ns is None:
                self.closing_ns, self.ended = time_ns, "rst"
        if not self.in_order or stream.held:
            self.decide(peer, time_ns)
        self.in_order = stream.started and peer.started and not stream.held and not peer.held

    def decide(self, first: Stream, time_ns: int) -> None:
        """Decides the holes of both streams, `first` before the other one."""
        for stream in (first, first.peer):
            if stream.held or not stream.started:
                stream.decide(time_ns)

    def _syn(self, stream: Stream, seq: int, ack: int, flags: int, time_ns: int) -> None:
        peer = stream.peer
        repeated = stream.isn is not None
        if not repeated:
            stream.anchor(seq)
            stream.drain()
        self.began = "syn"
        if self.client is None:  # a later, different SYN (a simultaneous open, noise) changes no roles
            self.client = peer if flags & ACK else stream
        if flags & ACK:
            if peer.isn is None:
                peer.anchor((ack - 1) & MASK)  # the SYN itself was not captured, but its number is known
                peer.drain()
            if self.syn_ns is not None and not self.syn_repeated and not repeated:
                peer.round_trip(time_ns - self.syn_ns)
                self.syn_ns = None
        elif repeated:
            self.syn_repeated = True
        elif self.syn_ns is None:
            self.syn_ns = time_ns

    def _closing(self) -> "tuple[int | None, Stream | None]":
        """Time and stream of the first FIN or RST. At equal times a FIN precedes an RST."""
        ends = *((stream.fin_ns, stream) for stream in self.streams), (self.rst_ns, self.rst_by)
        return min((end for end in ends if end[0] is not None), key=itemgetter(0), default=(None, None))

    @property
    def closed_ns(self) -> int | None:
        """The time of the first FIN or RST, ns; None if there is none."""
        return self._closing()[0]

    @property
    def closed_by(self) -> str | None:
        """The side that sent the first FIN or RST, `client` or `server`; None if there is none or its side is not known."""
        by = self._closing()[1]
        return None if by is None or self.client is None else "client" if by is self.client else "server"

    def finish(self, time_ns: int) -> None:
        """The connection or the capture is over: decides every hole. The stream whose bytes came first goes first."""
        for stream in self.streams[:: -1 if self.client is self.streams[1] else 1]:
            stream.finish(time_ns)
