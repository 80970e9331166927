"""The table of connections: assigns segments to connections and decides when a connection is over.

In: `SegmentBatch`es in capture order. Out: calls on the sinks of each connection's streams, and `opened`/`closed` on the owner.
Law: a reused port pair (a new SYN, or sequence numbers far from the stream's) makes a new connection, never a mixed one.
"""

from bisect import insort
from collections import deque
from collections.abc import Iterable, Iterator
from heapq import merge
from ipaddress import ip_address
from itertools import islice, repeat
from operator import attrgetter, itemgetter
from typing import Any, Protocol

from kcap import limits
from kcap.model import REF_FILE_SHIFT, SegmentBatch
from kcap.net import guard, silent
from kcap.net.hole_timers import HoleTimers
from kcap.net.tcp import ACK, MASK, PSH, RST, SYN, Connection, Stream, WeirdReporter, signed32
from kcap.weird import WeirdKind

PLAIN_FLAGS = (ACK, PSH | ACK)
"""Flags of segments that change no connection state."""
IDLE_DETAIL = "no packet for an hour"
NEVER = 1 << 62
"""An order higher than that of any packet."""


class Owner(WeirdReporter, Protocol):
    """The owner of all connections. It is notified of each, and gives each stream its sink."""

    def opened(self, connection: Connection) -> None: ...

    def ended(self, connection: Connection) -> None:
        """All bytes up to both FINs, or up to an RST, were delivered. The connection is held in case more packets come."""

    def closed(self, connection: Connection, time_ns: int) -> None: ...

    def speechless(self, connection: Connection) -> bool:
        """Whether the owner knows nothing of the connection that `resumed` could not restore."""

    def packed(self, connection: Connection) -> None:
        """A `speechless` connection is now stored in compact form, and its object is no longer used."""

    def resumed(self, connection: Connection) -> None:
        """A connection that was stored in compact form was made an object again."""

    def closed_packed(self, flow: bytes, packed: bytes) -> None:
        """As `closed`, for a connection in compact form. `flow` is the lower of its two flow keys."""


def flow_of(client: str, client_port: int, server: str, server_port: int) -> bytes:
    """The flow key of the client's direction."""
    ports = client_port.to_bytes(2, "big") + server_port.to_bytes(2, "big")
    return ip_address(client).packed + ip_address(server).packed + ports


def reverse_flow(flow: bytes) -> bytes:
    """The flow key of the other direction."""
    size = (len(flow) - 4) // 2
    return flow[size : 2 * size] + flow[:size] + flow[-2:] + flow[-4:-2]


class Numbered(Protocol):
    """A connection that can be closed in the order of connection numbers."""

    @property
    def number(self) -> int: ...

    def close(self) -> Connection | None:
        """Closes it if it is open. Returns the connection if the table has to close it."""

    def close_with(self, others: "deque[Any]") -> None:
        """Closes it together with those at the head of the queue that are of the same kind, and removes these from the queue.
        It closes none of these if the table has to close the connection itself."""


class Elsewhere(Protocol):
    """The ended connections that the fast path holds, in addition to those of the table."""

    ended: Any
    """These connections. It has a length, and its `ends` yields the order of the packet and the time of each end."""

    def close_ended(self, until_ns: int, before: int) -> bool:
        """Closes, in order, connections that ended before packet `before`, up to the first one that ended after `until_ns`.
        Returns whether the table may go on with its own next connection."""


class Ended:
    """A connection of this table that ended and waits in the queue to be closed."""

    __slots__ = ("closing_ns", "closing_order", "connection", "flow", "packed", "table")

    def __init__(self, connection: Connection, table: "ConnectionTable") -> None:
        self.closing_ns, self.closing_order = connection.closing_ns or 0, connection.closing_order
        self.connection: Connection | None = connection
        """None while it is packed, and after it was closed."""
        self.packed = b""
        self.flow = connection.flows[0]
        self.table = table

    @property
    def number(self) -> int:
        """The connection's number, which the fast path may set late; 0 after it was closed."""
        if self.connection is not None:
            return self.connection.number
        return silent.number_of(self.packed) if self.packed else 0

    def close(self) -> Connection | None:
        """As `Numbered`; None if it was closed earlier."""
        return self.table.close_packed(self.flow) if self.packed else self.connection

    def close_with(self, others: "deque[Any]") -> None:
        """As `Numbered`; connections of the reference path are closed one by one."""


class Silent:
    """A connection in compact form that is still open when the capture ends."""

    __slots__ = ("flow", "number", "table")

    def __init__(self, flow: bytes, number: int, table: "ConnectionTable") -> None:
        self.flow, self.number, self.table = flow, number, table

    def close(self) -> Connection | None:
        """As `Numbered`."""
        return self.table.close_packed(self.flow)

    def close_with(self, others: "deque[Any]") -> None:
        """As `Ended`."""


class ConnectionTable:
    """All open connections of a capture."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.streams: dict[bytes, Stream] = {}
        """Flow key -> stream of the newest connection between these endpoints."""
        self.silent: dict[bytes, bytes | Ended] = {}
        """Lower flow key -> a packed connection that carried no bytes, or its entry of `closing` if it ended."""
        self._new: dict[Connection, None] = {}
        """Connections that may be packed when this batch is over."""
        self.holes = HoleTimers()
        """Streams with bytes behind a hole, checked as capture time advances."""
        self.closing: deque[Ended] = deque()
        """Ended connections that are held for late packets, in the order of their ends."""
        self.elsewhere: Elsewhere | None = None
        self.count = 0
        """Number of connections so far, which is the number of the newest one."""
        self.objects = 0
        """Open connections that are not in compact form, including those that linger and those that the fast path imported."""
        self.taken: deque[int] = deque()
        """Orders of packets of this batch that opened connections in the fast path, which are numbered too."""
        self.time_ns = 0
        self.order = 0
        """Order of the current packet among all packets of the fast path and this table."""
        self.order_base = 0
        """Order of a file's packet 0."""
        self._swept_ns = 0
        self.unswept = False
        """Whether there are more idle connections than the last sweep closed."""

    def feed(self, batch: SegmentBatch) -> None:
        """Takes segments in capture order."""
        self.segments(batch)
        if len(batch):
            self.advance(max(batch.time_ns))

    def segments(self, batch: SegmentBatch) -> None:
        """Takes the segments of a batch without advancing capture time at its end."""
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
            # The common case is inlined for speed: an open connection in order, with the next bytes or none.
            if stream is not None and (flags in plain) and window:
                connection = stream.connection
                silent_ns = time_ns - connection.last_ns
                if (
                    connection.in_order
                    and connection.closing_ns is None
                    and (not length or (seq == stream.next_raw and stream.fin_at is None))
                    and 0 <= silent_ns < limits.CONNECTION_IDLE_NS
                ):
                    peer = stream.peer
                    if ack != peer.acked_raw:
                        if peer.next_raw == ack and peer.acked is not None and peer.acked < peer.next:
                            # acknowledges all bytes sent, which is nearly always so
                            peer.acked_raw = ack
                            peer.acked = peer.next
                            if peer.timed_end is not None:
                                peer.timed_end = None
                                peer.round_trip(time_ns - peer.timed_ns)
                        elif not length and abs(signed32(ack - peer.next_raw)) >= limits.SEQUENCE_FAR:
                            self._thorough(
                                stream, flow, seq, ack, flags, window, buffer, at, captured, length, time_ns, base + packet,
                                position,
                            )  # fmt: skip
                            continue
                        else:
                            peer.acknowledged(ack, time_ns)
                    connection.last_ns = time_ns
                    stream.packets += 1
                    if stream.zero_since is not None:
                        stream.opens_window(time_ns)
                    if length:
                        stream.data_segments += 1
                        offset = stream.next
                        stream.next = end = offset + length
                        stream.next_raw = (seq + length) & MASK
                        stream.captured += length
                        stream.last_start = offset
                        stream.last_ns = time_ns
                        if stream is not connection.client and (not stream.acks or stream.acks[-1] != peer.acked):
                            stream.acknowledges(ack, base + packet)
                        if stream.timed_end is None and (stream.acked is None or stream.acked < end):
                            stream.timed_end = end
                            stream.timed_ns = time_ns
                        try:
                            stream.sink.data(offset, buffer, at, captured, length, time_ns, base + packet, position)
                        except Exception as error:  # noqa: BLE001 - costs only this connection
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
            length = captured = 0  # the payload of a reset is a diagnostic text (RFC 9293 section 3.5.3)
        if stream is not None and self._over(stream.connection, time_ns):
            stream = self.streams.get(flow)
        elif stream is None and self.silent and (flow in self.silent or reverse_flow(flow) in self.silent):
            self.thaw(flow)
            return self._thorough(
                self.streams[flow], flow, seq, ack, flags, window, buffer, at, captured, length, time_ns, ref, position
            )
        found = self._belongs(stream, seq, ack, flags, length)
        if found is None:
            if not (flags & SYN or length):
                return None  # a bare ACK, FIN or RST of a connection that is over or that carries nothing
            found = self._open(flow, stream, time_ns, ref, position)
        connection = found.connection
        was_closing = connection.closing_ns is not None
        connection.segment(found, seq, ack, flags, window, buffer, at, captured, length, time_ns, ref, position)
        if not connection.in_order:
            self._watch(connection)
        if connection.closing_ns is not None and not was_closing:
            self.ended(connection, self.order)
            if connection.in_order:
                self.owner.ended(connection)
        if not length:
            self._new[connection] = None
        return None

    def _watch(self, connection: Connection) -> None:
        for stream in connection.streams:
            if stream.held or stream in self.holes:
                self.holes.watch(stream)

    def ended(self, connection: Connection, order: int) -> None:
        """A connection ended with the packet of this order."""
        connection.closing_order = order
        connection.ending = ended = Ended(connection, self)
        if self.closing and self.closing[-1].closing_order > order:  # the fast path held the connection
            insort(self.closing, ended, key=attrgetter("closing_order"))
        else:
            self.closing.append(ended)

    # -- compact form -------------------------------------------------------------------------------------------------
    def thaw(self, flow: bytes) -> Connection:
        """Makes a compact connection an object again; `flow` is either of its flow keys."""
        if flow not in self.silent:
            flow = reverse_flow(flow)
        stored = self.silent.pop(flow)
        packed = stored.packed if isinstance(stored, Ended) else stored
        connection = silent.unpack(packed, (flow, reverse_flow(flow)), self.owner)
        if isinstance(stored, Ended):
            connection.ending, stored.connection, stored.packed = stored, connection, b""
        self.streams[flow], self.streams[reverse_flow(flow)] = connection.streams
        self.objects += 1
        self.owner.resumed(connection)
        return connection

    def close_packed(self, flow: bytes) -> Connection | None:
        """Closes a connection in compact form. If something is still to be decided, it returns the connection instead."""
        stored = self.silent[flow]
        packed = stored.packed if isinstance(stored, Ended) else stored
        if not silent.nothing_left(packed):
            return self.thaw(flow)
        del self.silent[flow]
        if isinstance(stored, Ended):
            stored.packed = b""
        self.owner.closed_packed(flow, packed)
        return None

    def freeze(self, connection: Connection) -> None:
        """Stores a connection in compact form if it has carried no bytes; leaves any other as it is."""
        low, high = connection.flows
        if (
            self.streams.get(low) is not connection.streams[0]
            or self.streams.get(high) is not connection.streams[1]
            or not silent.speechless(connection)
            or not self.owner.speechless(connection)
            or (connection.closing_ns is None) is not (connection.ending is None)
        ):
            return
        ended, packed = connection.ending, silent.pack(connection)
        if isinstance(ended, Ended):
            ended.connection, ended.packed = None, packed
            self.silent[low] = ended
        else:
            self.silent[low] = packed
        del self.streams[low], self.streams[high]
        self.objects -= 1
        self.owner.packed(connection)

    def _freeze(self) -> None:
        """Stores new connections without bytes in compact form, and closes the oldest ones if there are too many."""
        for connection in self._new:
            self.freeze(connection)
        self._new.clear()
        many = len(self.silent) - limits.SILENT_MAX
        if many > 0:
            self.owner.report(WeirdKind.CONNECTION_LIMIT, f"more than {limits.SILENT_MAX} connections without a byte")
            for flow in list(islice(self.silent, many)):
                left = self.close_packed(flow)
                if left is not None:
                    self._close(left, self.time_ns)

    @property
    def crowded(self) -> bool:
        """Whether the connections with the least recent packets have to be closed because there are too many."""
        return self.objects > limits.CONNECTIONS_MAX

    def _over(self, connection: Connection, time_ns: int) -> bool:
        """Closes a connection that expired before this packet. This makes the result independent of batch sizes."""
        if connection.closing_ns is not None:
            if time_ns - connection.closing_ns < limits.CONNECTION_LINGER_NS:
                return False
        elif time_ns - connection.last_ns < limits.CONNECTION_IDLE_NS:
            return False
        else:
            # Not the current time: when the connection is checked depends on what else was captured.
            time_ns = connection.last_ns + limits.CONNECTION_IDLE_NS
            connection.ended = "idle"
            connection.report(WeirdKind.CONNECTION_IDLE, IDLE_DETAIL)
        self._close(connection, time_ns)
        return True

    def _belongs(self, stream: Stream | None, seq: int, ack: int, flags: int, length: int) -> Stream | None:
        """Returns the stream that a segment belongs to, checking the newest connection first; None if it opens a new one."""
        newest = stream
        while stream is not None:
            if self._fits(stream, seq, ack, flags):
                return stream
            stream = _same_direction(stream)
        if newest is not None and not length and not flags & SYN:
            return newest  # a bare ACK or RST with distant sequence numbers opens no connection
        return None

    @staticmethod
    def _fits(stream: Stream, seq: int, ack: int, flags: int) -> bool:
        peer = stream.peer
        if flags & SYN:
            if stream.isn is not None:
                # the same number means the same SYN again, unless its connection has carried data and ended
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
                self.ended(connection.older, self.order)
            self._bound_older(connection, time_ns)
        self.streams[low], self.streams[high] = connection.streams
        self.objects += 1
        self.owner.opened(connection)
        return connection.streams[0 if flow == low else 1]

    def _bound_older(self, connection: Connection, time_ns: int) -> None:
        """Closes the oldest connection with these ports if too many of them linger."""
        lingering, oldest = 0, connection
        while oldest.older is not None:
            lingering, oldest = lingering + 1, oldest.older
        if lingering > limits.REUSED_PORTS_MAX:
            oldest.report(WeirdKind.CONNECTION_LIMIT, f"more than {limits.REUSED_PORTS_MAX} connections of the same ports")
            self._close(oldest, time_ns, connection)

    def adopt(self, connection: Connection) -> None:
        """Takes over a connection that the fast path held."""
        for flow, stream in zip(connection.flows, connection.streams, strict=True):
            self.streams[flow] = stream
        self.objects += 1
        if not connection.in_order:
            self._watch(connection)

    # -- time ---------------------------------------------------------------------------------------------------------
    def advance(self, time_ns: int, idle: Iterable[Numbered] = ()) -> None:
        """Advances capture time: gives up holes that have waited long enough, and closes idle (`idle` too) and ended
        connections."""
        self.time_ns = max(self.time_ns, time_ns)
        time_ns = self.time_ns
        self._freeze()
        ripe = {stream.connection: None for stream in self.holes.due(time_ns)}
        for connection in sorted(ripe, key=attrgetter("number")):
            first, second = connection.streams
            connection.decide(first, time_ns)
            connection.in_order = first.started and second.started and not first.held and not second.held
            self._watch(connection)
            if connection.in_order and connection.closing_ns is not None:
                self.owner.ended(connection)
        self._close_ended(time_ns)
        if self.sweeps(time_ns):
            self._swept_ns = time_ns
            self._sweep(time_ns, idle)
        if self.crowded:
            self._bound(time_ns)

    def _close_ended(self, time_ns: int) -> None:
        """Closes the ended connections that were held long enough, and the earliest ones if there are too many."""
        until_ns = time_ns - limits.CONNECTION_LINGER_NS
        elsewhere = self.elsewhere
        many = len(self.closing) + (0 if elsewhere is None else len(elsewhere.ended)) - limits.LINGERING_MAX
        if many > 0:
            mine = ((ended.closing_order, ended.closing_ns) for ended in self.closing)
            ends = merge(mine, () if elsewhere is None else elsewhere.ended.ends())
            until_ns = max(until_ns, *(closing_ns for _, closing_ns in islice(ends, many)))
            if time_ns - until_ns < limits.CONNECTION_LINGER_MIN_NS:
                self.owner.report(WeirdKind.CONNECTION_LIMIT, f"more than {limits.LINGERING_MAX} connections that ended")
        while True:
            before = self.closing[0].closing_order if self.closing else NEVER
            if elsewhere is not None and not elsewhere.close_ended(until_ns, before):
                return
            if not self.closing or self.closing[0].closing_ns > until_ns:
                return
            self._end(self.closing.popleft(), time_ns)

    def expect_end(self) -> None:
        """Announces that the next `advance` is the last one; it then closes idle connections too."""
        self._swept_ns = -limits.SWEEP_NS

    def sweeps(self, time_ns: int) -> bool:
        """Whether idle connections are to be closed at this time."""
        return self.unswept or time_ns - self._swept_ns >= limits.SWEEP_NS

    def idle(self, time_ns: int) -> list[tuple[int, bytes | Connection]]:
        """Returns the idle connections with their numbers; a connection in compact form is given by its flow key."""
        before = time_ns - limits.CONNECTION_IDLE_NS
        alive = {s.connection: None for s in self.streams.values()}
        found: list[tuple[int, bytes | Connection]] = [
            (c.number, c) for c in alive if c.closing_ns is None and c.last_ns <= before
        ]
        found += [
            (silent.number_of(stored), flow)
            for flow, stored in self.silent.items()
            if not isinstance(stored, Ended) and silent.last_ns_of(stored) <= before
        ]
        return found

    def _sweep(self, time_ns: int, others: Iterable[Numbered]) -> None:
        """Closes idle connections, up to a number that bounds the memory of their rows; the others are closed next time."""
        found = sorted([*self.idle(time_ns), *((one.number, one) for one in others)], key=itemgetter(0))
        queue = deque(one for _, one in found[: limits.CLOSED_TOGETHER])
        while queue:
            one = queue.popleft()
            if isinstance(one, bytes):
                one = self.thaw(one)
            if isinstance(one, Connection):
                self._over(one, time_ns)
            else:
                one.close_with(queue)
        self.unswept = len(found) > limits.CLOSED_TOGETHER

    def _bound(self, time_ns: int) -> None:
        """Closes the eighth of the allowed connections with the oldest last packets, so that a flood leads to few searches."""
        every = list(self._alive())
        every.sort(key=attrgetter("last_ns"))
        gone: dict[Connection, None] = {}
        for connection in every[: max(len(every) - limits.CONNECTIONS_MAX * 7 // 8, 0)]:
            gone.update(dict.fromkeys(reversed(list(_with_older(connection)))))
        for connection in gone:
            connection.report(WeirdKind.CONNECTION_LIMIT, f"more than {limits.CONNECTIONS_MAX} connections")
            self._close(connection, time_ns)

    def _alive(self) -> dict[Connection, None]:
        newest = dict.fromkeys(stream.connection for stream in self.streams.values())
        return dict.fromkeys(each for connection in newest for each in _with_older(connection))

    def _end(self, ended: Connection | Numbered, time_ns: int) -> None:
        connection = ended if isinstance(ended, Connection) else ended.close()
        if connection is not None:
            self._close(connection, time_ns)

    def _close(self, connection: Connection, time_ns: int, newest_of: Connection | None = None) -> None:
        """Closes a connection. `newest_of` is a connection that is about to become the newest with these ports."""
        if isinstance(connection.ending, Ended):
            connection.ending.connection = None
        connection.finish(time_ns)
        for flow, stream in zip(connection.flows, connection.streams, strict=True):
            self.holes.forget(stream)
            newest = self.streams.get(flow)
            if newest is stream:
                del self.streams[flow]
            newer = newest_of or (None if newest is None else newest.connection)
            while newer is not None:
                if newer.older is connection:
                    newer.older = connection.older
                newer = newer.older
        self.objects -= 1
        self.owner.closed(connection, time_ns)

    def ends(self, others: Iterable[Numbered] = ()) -> Iterator[None]:
        """Ends the capture: closes every connection, including `others`, in the order of first packets. Pauses after each."""
        every: list[Connection | Numbered] = [*self._alive(), *others]
        for flow, stored in self.silent.items():
            every.append(stored if isinstance(stored, Ended) else Silent(flow, silent.number_of(stored), self))
        every.sort(key=attrgetter("number"))
        queue = deque(every)
        every.clear()
        while queue:
            ended = queue.popleft()
            if not isinstance(ended, Connection):
                ended.close_with(queue)
            self._end(ended, self.time_ns)
            yield
        self.closing.clear()


def _with_older(connection: Connection) -> Iterator[Connection]:
    """Yields the connection and the earlier ones with its ports, the newest first."""
    each: Connection | None = connection
    while each is not None:
        yield each
        each = each.older


def _same_direction(stream: Stream) -> Stream | None:
    """The stream of the same direction in the previous connection with these ports."""
    connection = stream.connection
    older = connection.older
    return None if older is None else older.streams[connection.streams.index(stream)]


def _endpoint(flow: bytes) -> bytes:
    """Source address and port of a flow key, as bytes."""
    return flow[: (len(flow) - 4) // 2] + flow[-4:-2]
