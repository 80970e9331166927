"""The table of connections: assigns segments to connections and decides when a connection is over.

In: `SegmentBatch`es in capture order. Out: calls on the sinks of each connection's streams, and `opened`/`closed` on the owner.
Law: reused ports (a new SYN, or sequence numbers far from the stream's) make a new connection, never a mixed one.
"""

from collections import deque
from collections.abc import Iterable
from itertools import repeat
from typing import Protocol

from kcap import limits
from kcap.model import REF_FILE_SHIFT, SegmentBatch
from kcap.net import guard
from kcap.net.tcp import ACK, FIN, MASK, PSH, RST, SYN, Connection, Stream, WeirdReporter, signed32
from kcap.weird import WeirdKind

PLAIN_FLAGS = (ACK, PSH | ACK)
"""Flags of segments that change no connection state."""


class Owner(WeirdReporter, Protocol):
    """The owner of all connections: is notified of each, and gives each stream its sink."""

    def opened(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection, time_ns: int) -> None: ...


def reverse_flow(flow: bytes) -> bytes:
    """The flow key of the other direction."""
    size = (len(flow) - 4) // 2
    return flow[size : 2 * size] + flow[:size] + flow[-2:] + flow[-4:-2]


class Ending(Protocol):
    """A closed connection that the fast path holds, in the queue of connections to be closed."""

    number: int
    closing_ns: int
    closing_order: int

    def close(self) -> Connection | None:
        """Closes it, if it is open; returns the connection where the reference path has to close it."""

    def close_with(self, others: "deque[Connection | Ending]", until_ns: int) -> None:
        """Closes it and those of the next that are of its kind and ended by then, which are taken from the queue; none of
        these where the reference path has to close it.
        """


class ConnectionTable:
    """All open connections of a capture."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.streams: dict[bytes, Stream] = {}
        """Flow key -> stream of the newest connection between these endpoints."""
        self.restless: dict[Connection, None] = {}
        """Connections with bytes behind a hole, checked as capture time moves on; a dict for its order."""
        self.closing: deque[Connection | Ending] = deque()
        self.count = 0
        """Connections so far, which is the number of the next one."""
        self.taken: deque[int] = deque()
        """Orders of packets of this batch that opened connections in the fast path, which are numbered too."""
        self.time_ns = 0
        self.order = 0
        """Order of the current packet among all packets of the fast path and this table."""
        self.order_base = 0
        """Order of a file's packet 0."""
        self._swept_ns = 0

    def feed(self, batch: SegmentBatch) -> None:
        """Takes segments in capture order."""
        self.segments(batch)
        if len(batch):
            self.advance(max(batch.time_ns))

    def segments(self, batch: SegmentBatch) -> None:
        """Takes the segments of a batch without moving time on at its end."""
        order_base = self.order_base
        streams = self.streams
        buffers: Iterable[bytes] = repeat(batch.buffer)
        if batch.buffers:
            buffers = [batch.buffers.get(i, batch.buffer) for i in range(len(batch))]
        base = batch.file << REF_FILE_SHIFT
        plain = PLAIN_FLAGS
        columns = zip(
            batch.time_ns, batch.packet, batch.position, batch.flow, batch.seq, batch.ack, batch.flags, batch.window,
            batch.payload, batch.captured, batch.length, buffers, strict=False,
        )  # fmt: skip
        for time_ns, packet, position, flow, seq, ack, flags, window, at, captured, length, buffer in columns:
            self.order = order_base + packet
            stream = streams.get(flow)
            # The common case stands here for speed: an open connection in order, the next bytes or none.
            if stream is not None and (flags in plain) and window:
                connection = stream.connection
                silent_ns = time_ns - connection.last_ns
                if (
                    connection.in_order
                    and (seq == stream.next_raw or not length)
                    and 0 <= silent_ns < limits.CONNECTION_IDLE_NS
                ):
                    peer = stream.peer
                    if ack != peer.acked_raw:
                        if peer.next_raw == ack and peer.acked is not None:
                            # acknowledges all that was sent, as nearly always
                            peer.acked_raw = ack
                            peer.acked = peer.next
                            if peer.timed_end is not None:
                                peer.timed_end = None
                                peer.round_trip(time_ns - peer.timed_ns)
                        elif not length and abs(signed32(ack - peer.next_raw)) >= limits.SEQUENCE_FAR:
                            self._thorough(
                                stream,
                                flow,
                                seq,
                                ack,
                                flags,
                                window,
                                buffer,
                                at,
                                captured,
                                length,
                                time_ns,
                                base + packet,
                                position,
                            )
                            continue
                        else:
                            peer.acknowledged(ack, time_ns)
                    connection.last_ns = time_ns
                    stream.packets += 1
                    stream.zero_window = False
                    if length:
                        stream.data_segments += 1
                        offset = stream.next
                        stream.next = end = offset + length
                        stream.next_raw = (seq + length) & MASK
                        stream.captured += length
                        stream.last_start = offset
                        stream.last_ns = time_ns
                        if stream.timed_end is None:
                            stream.timed_end = end
                            stream.timed_ns = time_ns
                        try:
                            stream.sink.data(offset, buffer, at, captured, length, time_ns, base + packet, position)
                        except Exception as error:  # noqa: BLE001 - one connection's bytes: the others go on
                            guard.failed(stream, error, base + packet, position)
                    continue
            self._thorough(
                stream, flow, seq, ack, flags, window, buffer, at, captured, length, time_ns, base + packet, position
            )

    def _thorough(
        self, stream: Stream | None, flow: bytes, seq: int, ack: int, flags: int, window: int, buffer: bytes, at: int,
        captured: int, length: int, time_ns: int, ref: int, position: int,
    ) -> None:  # fmt: skip
        if flags & RST:
            length = captured = 0  # what a reset carries is a diagnostic text (RFC 9293 section 3.5.3)
        if stream is not None and self._over(stream.connection, time_ns):
            stream = self.streams.get(flow)
        found = self._belongs(stream, seq, ack, flags, length)
        if found is None:
            if not (flags & SYN or length):
                return  # a bare ACK, FIN or RST of a connection that is over, or of one that carries nothing
            found = self._open(flow, stream, time_ns, ref, position)
        connection = found.connection
        was_closing = connection.closing_ns is not None
        connection.segment(found, seq, ack, flags, window, buffer, at, captured, length, time_ns, ref, position)
        if not connection.in_order:
            self.restless[connection] = None
        if connection.closing_ns is not None and not was_closing:
            self._ends(connection)

    def _ends(self, connection: Connection) -> None:
        connection.closing_order = self.order
        self.closing.append(connection)

    def _over(self, connection: Connection, time_ns: int) -> bool:
        """Closes a connection that expired before this packet, so that the size of batches changes nothing."""
        if connection.closing_ns is not None:
            if time_ns - connection.closing_ns < limits.CONNECTION_LINGER_NS:
                return False
            self.closing.remove(connection)
        elif time_ns - connection.last_ns < limits.CONNECTION_IDLE_NS:
            return False
        else:
            # not the time at hand: when somebody looks depends on what else was captured
            time_ns = connection.last_ns + limits.CONNECTION_IDLE_NS
            connection.ended = "idle"
            connection.report(WeirdKind.CONNECTION_IDLE, "no packet for an hour")
        self._close(connection, time_ns)
        return True

    def _belongs(self, stream: Stream | None, seq: int, ack: int, flags: int, length: int) -> Stream | None:
        """The stream that a segment belongs to, the newest connection first; None where it opens a new one."""
        newest = stream
        while stream is not None:
            if self._fits(stream, seq, ack, flags):
                return stream
            stream = _same_direction(stream)
        if newest is not None and not length and not flags & SYN:
            return newest  # a bare ACK or RST far away opens nothing
        return None

    @staticmethod
    def _fits(stream: Stream, seq: int, ack: int, flags: int) -> bool:
        peer = stream.peer
        if flags & SYN:
            if stream.isn is not None:
                # the same number again is the same SYN again, unless its connection has lived and ended
                return stream.isn == seq and not (stream.connection.closing_ns is not None and (stream.next or peer.next))
            if flags & ACK and peer.isn is not None:
                return (peer.isn + 1) & MASK == ack
            if stream.next_raw is not None:
                return abs(signed32(seq + 1 - stream.next_raw)) < limits.SYN_DISPLACED_BYTES
            return True
        if stream.next_raw is not None:
            return abs(signed32(seq - stream.next_raw)) < limits.SEQUENCE_FAR
        if flags & ACK and peer.next_raw is not None:
            return abs(signed32(ack - peer.next_raw)) < limits.SEQUENCE_FAR
        return True

    def _open(self, flow: bytes, newest: Stream | None, time_ns: int, ref: int, position: int) -> Stream:
        while self.taken and self.taken[0] < self.order:
            self.taken.popleft()
            self.count += 1
        self.count += 1
        reverse = reverse_flow(flow)
        low, high = (flow, reverse) if _endpoint(flow) <= _endpoint(reverse) else (reverse, flow)
        connection = Connection(low, high, self.count, time_ns, ref, position, self.owner)
        if newest is not None:
            connection.older = newest.connection
            if connection.older.closing_ns is None:  # its ports are in use again
                connection.older.closing_ns = time_ns
                self._ends(connection.older)
        self.streams[low], self.streams[high] = connection.streams
        self.owner.opened(connection)
        return connection.streams[0 if flow == low else 1]

    def adopt(self, connection: Connection) -> None:
        """Takes over a connection that the fast path held."""
        for flow, stream in zip(connection.flows, connection.streams, strict=True):
            self.streams[flow] = stream
        if not connection.in_order:
            self.restless[connection] = None

    # -- time ---------------------------------------------------------------------------------------------------------
    def advance(self, time_ns: int) -> None:
        """Capture time moves on: holes that have waited long enough are given up, idle and ended connections are closed."""
        self.time_ns = max(self.time_ns, time_ns)
        time_ns = self.time_ns
        for connection in sorted(self.restless, key=_number):
            first, second = connection.streams
            first.decide(time_ns)
            second.decide(time_ns)
            connection.in_order = first.started and second.started and not first.held and not second.held
            if not first.held and not second.held:
                del self.restless[connection]
        while self.closing and time_ns - (self.closing[0].closing_ns or 0) >= limits.CONNECTION_LINGER_NS:
            ended = self.closing.popleft()
            if not isinstance(ended, Connection):
                ended.close_with(self.closing, time_ns - limits.CONNECTION_LINGER_NS)
            self._end(ended, time_ns)
        if self.sweeps(time_ns):
            self._swept_ns = time_ns
            self._sweep(time_ns)

    def expect_end(self) -> None:
        """The next `advance` is the last one: it closes idle connections too."""
        self._swept_ns = -limits.SWEEP_NS

    def sweeps(self, time_ns: int) -> bool:
        """Whether idle connections are swept at this time."""
        return time_ns - self._swept_ns >= limits.SWEEP_NS

    def _sweep(self, time_ns: int) -> None:
        for connection in sorted({s.connection for s in self.streams.values()}, key=_number):
            if connection.closing_ns is None:
                self._over(connection, time_ns)
        if len(self.streams) > 2 * limits.CONNECTIONS_MAX:
            alive = sorted({s.connection for s in self.streams.values()}, key=lambda c: c.last_ns)
            for connection in alive[: len(alive) - limits.CONNECTIONS_MAX]:
                connection.report(WeirdKind.CONNECTION_LIMIT, f"more than {limits.CONNECTIONS_MAX} connections")
                self._close(connection, time_ns)

    def _end(self, ended: Connection | Ending, time_ns: int) -> None:
        connection = ended if isinstance(ended, Connection) else ended.close()
        if connection is not None:
            self._close(connection, time_ns)

    def _close(self, connection: Connection, time_ns: int) -> None:
        connection.finish(time_ns)
        self.restless.pop(connection, None)
        for flow, stream in zip(connection.flows, connection.streams, strict=True):
            newest = self.streams.get(flow)
            if newest is stream:
                del self.streams[flow]
            while newest is not None:
                if newest.connection.older is connection:
                    newest.connection.older = connection.older
                newest = _same_direction(newest)
        self.owner.closed(connection, time_ns)

    def finish(self, others: Iterable[Ending] = ()) -> None:
        """The capture ends: every connection is closed, in the order of their first packets, `others` among them."""
        alive = {s.connection: None for s in self.streams.values()}
        for connection in list(alive):
            older = connection.older
            while older is not None:
                alive[older] = None
                older = older.older
        every: list[Connection | Ending] = [*alive, *others]
        queue = deque(sorted(every, key=_number))
        while queue:
            ended = queue.popleft()
            if not isinstance(ended, Connection):
                ended.close_with(queue, self.time_ns)
            self._end(ended, self.time_ns)
        self.closing.clear()


def _number(connection: Connection | Ending) -> int:
    return connection.number


def _same_direction(stream: Stream) -> Stream | None:
    """The stream of the same direction in the connection that had these ports before."""
    connection = stream.connection
    older = connection.older
    return None if older is None else older.streams[connection.streams.index(stream)]


def _endpoint(flow: bytes) -> bytes:
    """Source address and port of a flow key."""
    return flow[: (len(flow) - 4) // 2] + flow[-4:-2]


__all__ = ["ACK", "FIN", "RST", "SYN", "Connection", "ConnectionTable", "Owner", "reverse_flow"]
