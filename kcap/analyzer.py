"""Composes the pipeline from TCP segments to decided exchanges. No I/O, no clock.

In: segments. Out: batches of decided exchanges, closed connections, weirds. Law: pickling the analyzer after any packet and
continuing with the copy changes nothing, and neither does the size of the batches of segments.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kcap import limits
from kcap.fastpath.closed_rows import ClosedRow, ClosedRows
from kcap.faults import Fault, fault_of
from kcap.identities import Identities, Identity, endpoints, uid_of
from kcap.kafka.bodies import BodyCollector
from kcap.kafka.body_batch import BodyBatch
from kcap.kafka.conversation import Conversation, PassedOver
from kcap.kafka.frames import FLAG, Frame
from kcap.model import REF_FILE_SHIFT, ROW, SegmentBatch
from kcap.net.connections import ConnectionTable, reverse_flow
from kcap.net.segment_columns import SegmentColumns, columns_of
from kcap.net.silent import pack, ref_of, speechless, unpack
from kcap.net.tcp import Connection
from kcap.sightings import Sightings
from kcap.tls.facts import tls_values
from kcap.tls.secrets import Secrets
from kcap.weird import Weird, WeirdKind
from kcap.wire.text import client_text

if TYPE_CHECKING:
    from kcap.fastpath.engine import FastPath
    from kcap.fastpath.rows import FastPathRows
    from kcap.kafka.decrypted import Listen

SLOTS_AT, FRAMES_AT = ROW.index("request_slot"), ROW.index("request_start")

BROKEN = FLAG["snaplen"] | FLAG["gap"] | FLAG["truncated"]
"""Flags of a frame that was not captured completely."""


@dataclass(slots=True, weakref_slot=True)
class RowBatch:
    """Decided exchanges: raw rows (see `model.ROW`), the connections that they refer to, and their projected bodies."""

    tuples: list[tuple[Any, ...]]
    """Rows of the reference path."""
    identities: Identities
    bodies: BodyBatch
    fast_rows: "FastPathRows | None" = None
    """Rows of the fast path."""
    orders: list[int] = field(default_factory=list)
    """The order of the packet that decided each row of the reference path."""
    passed_over: list[tuple[int, int, PassedOver]] = field(default_factory=list)
    """Overtaken requests: number of reference path rows before each, index of its connection's identity, the request."""
    _rows: list[tuple[Any, ...]] | None = None

    def __len__(self) -> int:
        return len(self.tuples) + (len(self.fast_rows) if self.fast_rows is not None else 0)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """All rows as tuples, in the order in which they were decided."""
        if self._rows is None:
            self._rows = self.tuples
            if self.fast_rows is not None:
                both = self.fast_rows.tuples(ROW) + self.tuples
                self._rows = [both[at] for at in self.fast_rows.merged(self.orders).tolist()]
        return self._rows


class KeptConnection:
    """A closed connection and its row of `connections`, which is made when it is first read."""

    __slots__ = ("_connection", "_detail", "_phase", "_values", "ref")

    count = 1

    def __init__(self, connection: Connection, conversation: Conversation) -> None:
        self._connection: tuple[Connection, Conversation] | None = (connection, conversation)
        self._values: dict[str, object] = {}
        self._phase = shown_phase(conversation)
        self._detail = conversation.detail
        self.ref = connection.first_ref

    @property
    def phases(self) -> dict[str, int]:
        """As `SilentConnection`."""
        return {self._phase: 1}

    @property
    def details(self) -> dict[str, int]:
        """As `SilentConnection`."""
        return {self._detail: 1} if self._detail else {}

    @property
    def values(self) -> dict[str, object]:
        """The row, without the file's name."""
        self.settle()
        return self._values

    def part(self, names: tuple[str, ...]) -> dict[str, object]:
        """The named columns of the row; None for a column that the row does not have."""
        return dict(zip(names, map(self.values.get, names)))

    def each(self) -> list["ClosedConnection"]:
        """As `SilentConnection`."""
        return [self]

    def settle(self) -> None:
        """Makes the row and releases the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._values = describe(*connection)


class SilentConnection:
    """A closed connection that carried no bytes, in compact form. Its row is made each time it is read."""

    __slots__ = ("_flow", "_owner", "_packed")

    count: Final = 1
    """Number of connections that this object represents."""
    phases: Final = {"empty": 1}
    """Phase -> number of connections in it."""
    details: Final[dict[str, int]] = {}
    """Detail -> number of connections with it."""

    def __init__(self, flow: bytes, packed: bytes, owner: "Analyzer") -> None:
        self._flow, self._packed, self._owner = flow, packed, owner

    @property
    def ref(self) -> int:
        """Reference of its first packet."""
        return ref_of(self._packed)

    @property
    def compact(self) -> tuple[bytes, bytes]:
        """Its flow key and its compact form, from which another process can rebuild it."""
        return self._flow, self._packed

    @property
    def values(self) -> dict[str, object]:
        """As `KeptConnection`."""
        connection = unpack(self._packed, (self._flow, reverse_flow(self._flow)), self._owner)
        conversation = Conversation(connection, self._owner)
        conversation.release()
        return describe(connection, conversation)

    def part(self, names: tuple[str, ...]) -> dict[str, object]:
        """As `KeptConnection`."""
        return dict(zip(names, map(self.values.get, names)))

    def each(self) -> list["ClosedConnection"]:
        """The connections, one after the other."""
        return [self]

    def settle(self) -> None:
        """As `KeptConnection`; there is nothing to release."""


ClosedConnection: TypeAlias = KeptConnection | SilentConnection | ClosedRow
"""A closed connection and its row of `connections`."""


ClosedTogether: TypeAlias = KeptConnection | SilentConnection | ClosedRows
"""Something that is closed at once: one connection, or many connections of the fast path."""


@dataclass(slots=True)
class Options:
    """Settings for reading a capture: ports, TLS secrets, engine."""

    kafka_ports: frozenset[int] = field(default_factory=frozenset)
    """Ports whose connections are read as Kafka, whatever they look like (`-d tcp.port==N,kafka`)."""
    not_kafka_ports: frozenset[int] = field(default_factory=frozenset)
    """Ports whose connections are never read as Kafka (`--not-kafka`)."""
    secrets: Secrets | None = None
    """Secrets that decrypt TLS connections."""
    fast_path: bool = True
    """Whether compiled code reads well-behaved connections if segments come as columns. Changes only speed."""
    jobs: int = 1
    """Number of processes that read the capture; 0 means as many as pay off (`kcap.jobs.cores`). Changes only speed."""


class Analyzer:
    """Turns segments in capture order into decided exchanges."""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.secrets = Secrets() if self.options.secrets is None else self.options.secrets.copy()
        self.plaintext: Listen | None = None
        """Callback for each piece of plaintext of TLS connections."""
        self.infer_turns = False
        """Whether turns of TLS connections are inferred; their rows then have them as `turns` (`kcap.tls.turns.Turns`)."""
        self.bodies = BodyCollector()
        self.rows: list[tuple[Any, ...]] = []
        self.orders: list[int] = []
        self.passed_over: list[PassedOver] = []
        self.fast_path: FastPath | None = None
        self.packets = 0
        """Number of packets that came as columns before the fast path was started."""
        self.batch = 0
        self.identities = Identities()
        self._closed: list[ClosedTogether] = []
        self.closed_connections = 0
        """Number of connections in it that wait to be taken."""
        self._sightings = Sightings()
        self.weirds_most = limits.WEIRDS_MAX
        """Number of entries of `sightings` from which on oddities of further connections are counted together."""
        self.kafka_connections = 0
        self.watch: Callable[[int, Connection], None] | None = None
        """Callback(packet reference, connection) for each packet whose payload a heuristic used
        (`kcap.distributed.shard_reader`).
        """
        self.unrecognised_bytes = self.held_bytes = 0
        """Memory held by connections that are not recognised yet, and memory of bytes behind holes where it is much."""
        self.table = ConnectionTable(self)

    def __getstate__(self) -> dict[str, object]:
        if self.fast_path is not None:
            self.fast_path.leave()
        return self.__dict__

    def feeds(self, batch: SegmentBatch | SegmentColumns) -> Iterator[None]:
        """Takes segments. Pauses so that the caller can take rows: a packet may have a hundred messages."""
        if self.fast_path is None and isinstance(batch, SegmentColumns):
            self._start_fast_path(len(batch))
        if self.fast_path is not None:
            yield from self.fast_path.feeds(columns_of(batch) if isinstance(batch, SegmentBatch) else batch)
            return
        segments = batch if isinstance(batch, SegmentBatch) else batch.all()
        for some in segments.pieces(limits.FEED_PACKETS):
            self.table.segments(some)
            if self.full:
                yield
        if len(segments):  # as in the fast path, so that exchanges decided by a timeout have the same place among the rows
            self.table.advance(max(segments.time_ns))

    def feed(self, batch: SegmentBatch | SegmentColumns) -> None:
        """Takes all segments of a batch without a pause; see `feeds`."""
        for _ in self.feeds(batch):
            pass

    def expect_many(self) -> None:
        """Starts the fast path with the next columns, because it will get more packets than FAST_PATH_AFTER_PACKETS."""
        self.packets = limits.FAST_PATH_AFTER_PACKETS

    def _start_fast_path(self, packets: int) -> None:
        """Starts the fast path once there were enough packets for it to pay off."""
        self.packets += packets
        if not self.options.fast_path or self.packets < limits.FAST_PATH_AFTER_PACKETS:
            return
        from kcap import kernels

        if kernels.usable():
            from kcap.fastpath.engine import FastPath

            self.fast_path = FastPath(self)

    @property
    def waiting(self) -> int:
        """Number of rows decided since the last batch."""
        return len(self.rows) + (self.fast_path.decided if self.fast_path is not None else 0)

    @property
    def rows_per_batch(self) -> int:
        """Number of rows that make a batch full."""
        most = limits.ROWS_PER_BATCH
        return min(most, limits.ROWS_WITH_PARTITIONS_PER_BATCH) if self.bodies.partitions else most

    @property
    def full(self) -> bool:
        """Whether there are enough rows or bodies for a batch."""
        gathered = self.fast_path.gathered if self.fast_path is not None else 0
        if self.waiting >= self.rows_per_batch or len(self.bodies.arena) + gathered >= limits.BODIES_BYTES:
            return True
        if self.bodies.fresh_topics >= limits.TOPICS_OF_MESSAGE and self.waiting:
            return True
        return self.bodies.records and self._large_bytes >= limits.LARGE_BODIES_ROOM

    @property
    def _large_bytes(self) -> int:
        """Bytes of large messages since the last batch. They are in memory together where their records are read again."""
        return self.bodies.large_bytes + (self.fast_path.large_bytes if self.fast_path is not None else 0)

    def take(self, unwanted: Callable[[RowBatch], Any] | None = None) -> RowBatch:
        """Returns the exchanges decided since the last call.

        `unwanted` gets the batch without its bodies and returns an array of the slots that need not be decoded.
        """
        passed_over, self.passed_over = self.passed_over, []
        if not self.waiting:  # nothing reads a batch without rows
            self.passed_over = [one._replace(row=0) for one in passed_over]
            passed_over = []
        passed = [(one.row, one.conversation.identity(), one) for one in passed_over]
        if self.fast_path is None:
            if unwanted is not None:
                self.bodies.leave_out(unwanted(self._bare(None)).tolist())
            batch = RowBatch(self.rows, self.identities, self.bodies.close(), passed_over=passed)
        else:
            requested = None if unwanted is None else lambda taken: unwanted(self._bare(taken))
            decided, bodies = self.fast_path.take(requested)
            batch = RowBatch(self.rows, self.identities, bodies, decided, self.orders, passed)
        self.rows, self.identities, self.orders = [], Identities(), []
        self.batch += 1
        self.report_undecoded(batch)
        return batch

    def _bare(self, decided: "FastPathRows | None") -> RowBatch:
        """The open batch without its bodies."""
        return RowBatch(self.rows, self.identities, BodyCollector().close(), decided, self.orders)

    def report_undecoded(self, batch: RowBatch) -> None:
        """Reports bodies that were captured completely but do not match the schema of their API and version."""
        slots = batch.bodies.unread()
        if not slots:
            return
        rows = [row for row in batch.tuples if row[SLOTS_AT] in slots or row[SLOTS_AT + 1] in slots]
        if batch.fast_rows is not None:
            marked = [row[SLOTS_AT] in slots or row[SLOTS_AT + 1] in slots for row in batch.tuples]
            rows = batch.fast_rows.among(ROW, slots, rows, [order for order, here in zip(batch.orders, marked) if here])
        for row in rows:
            for side, start in (("request", FRAMES_AT), ("response", FRAMES_AT + 9)):
                word = slots.get(row[SLOTS_AT + (start > FRAMES_AT)])
                frame = Frame(*row[start : start + 9])
                if word is None or frame.flags & BROKEN or frame.last_ns is None or frame.size is None:
                    continue
                if frame.size > limits.FRAME_GATHERED_MAX:
                    continue
                uid = batch.identities[row[0]].uid
                detail = f"{side} of key {row[2]} version {row[3]}: {word}"
                kind = WeirdKind.DECODER_FAILED if isinstance(word, Fault) else WeirdKind.UNDECODED
                self._count(kind, detail, frame.first_ref or 0, frame.low or 0, uid)

    def take_connections(self) -> list[ClosedConnection]:
        """Returns the connections closed since the last call."""
        return [connection for together in self.take_closed() for connection in together.each()]

    def take_closed(self) -> list[ClosedTogether]:
        """Returns the same as they were closed; those of the fast path are grouped."""
        closed, self._closed, self.closed_connections = self._closed, [], 0
        return closed

    def advance(self, time_ns: int) -> None:
        """Advances capture time, even if there are no packets for this analyzer."""
        (self.table if self.fast_path is None else self.fast_path).advance(time_ns)

    def ends(self) -> Iterator[None]:
        """Ends the capture: closes every connection, which decides every exchange. Pauses so that the caller can take rows and
        closed connections; the end of a capture with many open connections then takes no more memory than its middle."""
        self.table.expect_end()
        self.advance(self.table.time_ns)
        while self.table.unswept:
            if self.full or self.closed_connections >= limits.CLOSED_TOGETHER:
                yield
            self.advance(self.table.time_ns)
        for _ in (self.table if self.fast_path is None else self.fast_path).ends():
            if self.full or self.closed_connections >= limits.CLOSED_TOGETHER:
                yield

    def finish(self) -> None:
        """Ends the capture without a pause; see `ends`."""
        for _ in self.ends():
            pass

    # -- called by connections and conversations ----------------------------------------------------------------------
    def opened(self, connection: Connection) -> None:
        connection.conversation = Conversation(connection, self)
        if self.fast_path is not None:
            self.fast_path.opened(connection)

    def ended(self, connection: Connection) -> None:
        """As `Owner`; the connection's TLS keys are no longer needed."""
        conversation = connection.conversation
        if isinstance(conversation, Conversation) and conversation.tls is not None:
            conversation.tls.session.rest()

    def closed(self, connection: Connection, time_ns: int) -> None:
        conversation = connection.conversation
        if isinstance(conversation, Conversation):
            for _ in range(3):  # each attempt has less left to do
                try:
                    conversation.finish(time_ns)
                    break
                except Exception as error:  # noqa: BLE001 - its other rows remain
                    self.failed(connection, error, connection.first_ref)
            self.kafka_connections += conversation.phase == "kafka"
            if conversation.untouched and speechless(connection):
                self._close(SilentConnection(connection.flows[0], pack(connection), self))
            else:
                self._close(KeptConnection(connection, conversation))
            conversation.release()
        if self.fast_path is not None:
            self.fast_path.closed(connection.flows[0])

    def _close(self, closed: ClosedTogether) -> None:
        self._closed.append(closed)
        self.closed_connections += closed.count

    def closed_packed(self, flow: bytes, packed: bytes) -> None:
        """As `closed`, for a connection in compact form, which carried no bytes."""
        self._close(SilentConnection(flow, packed, self))
        if self.fast_path is not None:
            self.fast_path.closed(flow)

    def speechless(self, connection: Connection) -> bool:
        """Whether nothing above TCP is known of a connection."""
        conversation = connection.conversation
        return isinstance(conversation, Conversation) and conversation.untouched

    def packed(self, connection: Connection) -> None:
        """A connection was stored in compact form; its objects are released."""
        assert isinstance(connection.conversation, Conversation)
        connection.conversation.release()

    def resumed(self, connection: Connection) -> None:
        """A connection that was stored in compact form was made an object again."""
        connection.conversation = Conversation(connection, self)

    def over(self, closed: ClosedRows) -> None:
        """Takes closed connections that only the fast path held."""
        self.kafka_connections += closed.phases.get("kafka", 0)
        self._close(closed)

    def report(
        self,
        kind: WeirdKind,
        detail: str,
        ref: int = 0,
        position: int = 0,
        connection: Connection | None = None,
        *,
        uid: str | None = None,
    ) -> None:
        """Counts an oddity and stores its first sighting. The connection is given as an object or by its uid."""
        self._count(kind, detail, ref, position, uid if connection is None else connection_uid(connection))

    def failed(self, connection: Connection, error: Exception, ref: int, position: int = 0) -> None:
        """Reports a decoder failure on a connection. Its further bytes are only counted."""
        self.report(WeirdKind.DECODER_FAILED, f"the rest of the connection: {fault_of(error)}", ref, position, connection)
        if isinstance(connection.conversation, Conversation):
            connection.conversation.fail()

    def searched(self, ref: int, connection: Connection) -> None:
        """A heuristic used the payload of a packet."""
        if self.watch is not None:
            self.watch(ref, connection)

    def reads_handshakes(self) -> bool:
        """Whether the fast path may read TLS handshakes: there are key logs, and nothing observes the bytes of connections."""
        return bool(self.secrets.keylog.stored) and self.plaintext is None and not self.infer_turns and self.watch is None

    def _count(self, kind: WeirdKind, detail: str, ref: int, position: int, uid: str | None, count: int = 1) -> None:
        self._sightings.count(kind, detail, ref, position, uid, count, self.weirds_most)

    @property
    def sighted(self) -> int:
        """Number of entries in `sightings`."""
        return len(self._sightings)

    def sightings(self) -> list[tuple[Weird, int]]:
        """Returns every oddity so far in packet order: the first sighting of each kind on each connection, and the count."""
        return list(self._sightings)

    def take_sightings(self) -> list[tuple[Weird, int]]:
        """Returns the oddities since the last call, in the order in which each was first seen."""
        found, self._sightings = list(self._sightings.entered()), Sightings()
        return found

    def add_sightings(self, found: list[tuple[Weird, int]]) -> None:
        """Adds oddities that another analyzer counted, in the order in which it first saw each."""
        for weird, count in found:
            ref = weird.file << REF_FILE_SHIFT | weird.packet
            self._count(weird.kind, weird.detail, ref, weird.position, weird.connection, count)

    def identity(self, conversation: Conversation) -> int:
        """Adds the connection's constants to the open batch and returns their index."""
        return self.identities.append(self.constants(conversation))

    @staticmethod
    def constants(conversation: Conversation) -> Identity:
        connection = conversation.tcp
        client = connection.client or connection.streams[0]
        flow = connection.flows[connection.streams.index(client)]
        tls = conversation.tls is not None
        return Identity(connection_uid(connection), *endpoints(flow), connection.number, tls)

    def takes_all(self) -> bool:
        """Whether the user configured no ports."""
        return not self.options.kafka_ports and not self.options.not_kafka_ports

    def decode_as(self, connection: Connection) -> bool | None:
        """The user's setting for this connection's ports: True for Kafka, False for not Kafka, None for no setting."""
        options = self.options
        if not options.kafka_ports and not options.not_kafka_ports:
            return None
        flow = connection.flows[0]
        ports = {int.from_bytes(flow[-4:-2], "big"), int.from_bytes(flow[-2:], "big")}
        if ports & options.not_kafka_ports:
            return False
        return True if ports & options.kafka_ports else None


def connection_uid(connection: Connection) -> str:
    if connection.uid is None:
        client = connection.client
        isn = client.isn if client is not None else None
        connection.uid = uid_of(connection.flows[0], connection.first_ns, isn)
    return connection.uid


def describe(connection: Connection, conversation: Conversation) -> dict[str, object]:
    """Returns the row of `connections` without file name and community id, which is computed from `flow`, the client's key."""
    client = connection.client or connection.streams[0]
    place = connection.streams.index(client)
    server, flow = connection.streams[1 - place], connection.flows[place]
    kafka = conversation if conversation.inner is None else conversation.inner
    ip, port, peer_ip, peer_port = endpoints(flow)
    values: dict[str, object] = {
        "connection": connection_uid(connection),
        "number": connection.number,
        "flow": flow,
        "client_ip": ip,
        "client_port": port,
        "server_ip": peer_ip,
        "server_port": peer_port,
        **{name: getattr(connection, name) for name in ("first_ns", "last_ns", "began", "ended", "closed_ns", "closed_by")},
        "phase": shown_phase(conversation),
        "detail": conversation.detail or None,
        "packets": client.packets + server.packets,
        "client_packets": client.packets,
        "server_packets": server.packets,
        "retransmitted": client.retransmitted + server.retransmitted,
        "sacked": client.sacked + server.sacked,
        "spurious": client.spurious + server.spurious,
        "duplicated": client.duplicated + server.duplicated,
        "out_of_order": client.out_of_order + server.out_of_order,
        "recovered": client.recovered + server.recovered,
        "rtt_min_ns": client.rtt_min,
        "rtt_avg_ns": client.rtt_sum // client.rtt_count if client.rtt_count else None,
        "client_rtt_min_ns": server.rtt_min,
        "zero_window_stalls": client.zero_stalls + server.zero_stalls,
        "zero_window_ns": sum(stream.closed_window_ns(connection.last_ns) for stream in connection.streams),
        "client_id": client_text(next(iter(kafka.requests.client_ids), None)) if kafka.requests is not None else None,
        "tls": conversation.tls is not None,
        "exchanges": kafka.rows,
        "request_frames": kafka.requests.frames if kafka.requests is not None else 0,
        "response_frames": kafka.responses.frames if kafka.responses is not None else 0,
    }
    if conversation.tls is not None:
        values |= tls_values(conversation.tls.session.facts)
        if conversation.tls.session.turns is not None:
            values["turns"] = conversation.tls.session.turns
    for name, stream, framer in (("client", client, kafka.requests), ("server", server, kafka.responses)):
        framed, skipped, pending = (framer.framed, framer.skipped, framer.pending) if framer is not None else (0, 0, 0)
        opaque = stream.captured if framer is None else conversation.proxied if stream is client else 0
        if conversation.inner is not None:  # on an encrypted stream, all bytes that are not plaintext of frames are opaque
            opaque = max(stream.captured - framed - skipped - pending, 0)
        values |= {
            f"{name}_captured": stream.captured,
            f"{name}_framed": framed,
            f"{name}_skipped": skipped,
            f"{name}_opaque": opaque,
            f"{name}_pending": pending,
            f"{name}_missing": stream.missing,
            f"{name}_unacked_ns": stream.unacked_ns(connection.last_ns),
            f"{name}_resent_ns": stream.resent_ns,
            f"{name}_resent_at_ns": stream.resent_at,
        }
    return values


def shown_phase(conversation: Conversation) -> str:
    """The phase of a closed connection as its row shows it."""
    return conversation.phase if conversation.phase != "waiting" else "opaque"


def community_id(flow: bytes) -> str:
    """Returns the Community ID of a TCP flow: version 1, seed 0 (corelight/community-id-spec)."""
    from base64 import b64encode
    from hashlib import sha1

    size = (len(flow) - 4) // 2
    source, destination, ports = flow[:size], flow[size : 2 * size], (flow[-4:-2], flow[-2:])
    if (source, ports[0]) > (destination, ports[1]):
        source, destination, ports = destination, source, (ports[1], ports[0])
    seed = b"\0\0" + source + destination + b"\x06\0" + ports[0] + ports[1]
    return "1:" + b64encode(sha1(seed, usedforsecurity=False).digest()).decode()
