"""One connection above TCP: recognises its protocol, and holds its two framers and its pairing.

In: the bytes of both streams of a `Connection`. Out: rows to the `Collector`. Each phase (`PHASES`) is a pair of sinks on the
streams: `Waiting` (not recognised yet), framers (Kafka), `TlsSink` (TLS), `Opaque` (anything else: bytes are counted, never
interpreted).
"""

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from kcap import limits
from kcap.kafka.bodies import BodyCollector
from kcap.kafka.frames import FLAG, NO_BODY, NO_FRAME, Frame, PendingExchange, PendingResponse
from kcap.kafka.pairing import Pairing
from kcap.kafka.proxy_header import ProxyHeader, proxy_header
from kcap.kafka.recognition import NO_REQUEST, Recognition, from_content, from_first_bytes, from_pieces
from kcap.kafka.requests import RequestFramer
from kcap.kafka.responses import ResponseFramer
from kcap.limits import CALL_BYTES
from kcap.net.connections import ConnectionTable
from kcap.net.tcp import Connection
from kcap.schema.registry import api_key
from kcap.tls.secrets import Secrets
from kcap.weird import WeirdKind
from kcap.wire.text import client_text

if TYPE_CHECKING:
    from kcap.kafka.decrypted import DecryptedConnection, Decryptor, Listen

MIDSTREAM, RETRANSMITTED, DUPLICATED, ONE_SIDED, UNDECODED = (
    FLAG[n] for n in ("midstream", "retransmitted", "duplicated", "one_sided", "undecoded")
)
NEVER: Final = 1 << 62


IDENTIFYING_REQUESTS: Final = (api_key("ApiVersions"), api_key("SaslHandshake"))
"""API keys of requests that identify their sender, whether they get a response or not."""


class PassedOver(NamedTuple):
    """An outstanding request that a later one overtook: the later one's response came first."""

    row: int
    """Number of reference path rows before it in the open batch."""
    conversation: "Conversation"
    exchange: int
    api_key: int
    api_version: int
    body: bytes
    """Empty if it was not retained."""


class Collector(Protocol):
    """The state that all conversations of a capture share."""

    bodies: BodyCollector
    batch: int
    """Number of the open batch of rows."""
    rows: list[tuple[Any, ...]]
    orders: list[int]
    """The order of the packet that decided each row of the reference path; rows of both paths are merged by it."""
    passed_over: list[PassedOver]
    """Identifying requests that were overtaken."""
    table: ConnectionTable
    secrets: Secrets
    """Secrets that decrypt TLS connections."""
    plaintext: "Listen | None"
    """Callback for each piece of plaintext."""
    infer_turns: bool
    """Whether turns of TLS connections are inferred."""
    unrecognised_bytes: int
    """Memory that is buffered for all connections that are not recognised yet."""

    def identity(self, conversation: "Conversation") -> int:
        """Index of the connection's constants in the open batch of rows."""

    def decode_as(self, connection: Connection) -> bool | None:
        """The user's setting for the connection: True for Kafka, False for not Kafka, None for no setting."""


Data = tuple[int, bytes, int, int, int, int, int, int]
"""The arguments of one `Sink.data`."""


class Waiting:
    """Buffers a stream's bytes until the connection is recognised."""

    __slots__ = ("bytes", "conversation", "count", "holed", "index", "whole")

    def __init__(self, conversation: "Conversation", index: int) -> None:
        self.conversation = conversation
        self.index = index
        self.bytes = bytearray()
        """The contiguous bytes from the first one seen."""
        self.whole = True
        self.holed = False
        """Whether the stream's very first bytes are not in the capture."""
        self.count = 0

    def data(
        self, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
    ) -> None:
        """Buffers the bytes and tries to recognise the connection."""
        data = bytes(buffer[at : at + captured])
        self.conversation.connection.searched(ref)
        self.conversation.buffered.append((self.index, (offset, data, 0, captured, length, time_ns, ref, position)))
        self.count += length
        if self.whole:
            self.bytes += data
            self.whole = captured == length
        self.conversation.hold(2 * captured)
        self.conversation.consider(False)
        if self.conversation.crowded:
            self.conversation.connection.report(
                WeirdKind.RECOGNITION_LIMIT, f"more than {limits.UNRECOGNISED_BYTES_MAX:,} bytes wait", ref, position
            )
            self.conversation.consider(True)

    def gap(self, offset: int, length: int, time_ns: int) -> None:
        self.conversation.buffered.append((self.index, (offset, length, time_ns)))
        self.conversation.hold(0)
        if self.count:
            self.whole = False
        else:
            self.holed = True


class Opaque:
    """Counts the bytes of a stream that is not Kafka."""

    def __init__(self) -> None:
        self.count = 0

    def data(
        self, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
    ) -> None:
        self.count += length

    def gap(self, offset: int, length: int, time_ns: int) -> None:
        """Ignores the gap: the stream counts gaps."""


class Conversation:
    """A connection, its phase, and the framers and pairing of its Kafka traffic."""

    def __init__(self, connection: "Connection | DecryptedConnection", collector: Collector) -> None:
        self.connection: Connection = connection  # type: ignore[assignment]  # plaintext streams are read as TCP's are
        self.tcp: Connection = connection if isinstance(connection, Connection) else connection.outer
        self.collector = collector
        self.phase = "empty"
        """One of `PHASES`."""
        self.detail = ""
        self._pairing: Pairing | None = None
        self.requests: RequestFramer | None = None
        self.responses: ResponseFramer | None = None
        self.recognition_attempts = 0
        self.starting = False
        """Whether streams are delivering bytes that are only recognised together with those that follow."""
        self.identity_batch = -1
        self.identity_index = -1
        self.rows = 0
        self.failures = 0
        """Number of decoder failures on its bytes; after the first one bytes are only counted."""
        self.tls: Decryptor | None = None
        """The decryptor of a TLS connection; None for others."""
        self.inner: Conversation | None = None
        """The conversation over the plaintext of a TLS connection; None for others."""
        self.fast_path_slot = -1
        """Slot in the fast path, whose arrays are then newer than this object and all that it refers to; -1 outside."""
        self.fast_path_exits = 0
        """Number of times that it was exported from the fast path soon after it was imported."""
        self.fast_path_retry_at = 0
        """Number of packets of the connection from which it may be imported again."""
        self.buffered: list[tuple[int, Data | tuple[int, int, int]]] = []
        """The buffered calls of both streams (stream index, arguments) before recognition."""
        self.held = 0
        """Memory of these calls, bytes."""
        self.header: ProxyHeader | None = None
        """The PROXY protocol header that the client's stream begins with."""
        self.proxied = 0
        """Size of that header in bytes, if the bytes after it are read."""
        for index, stream in enumerate(self.connection.streams):
            stream.sink = Waiting(self, index)

    @property
    def pairing(self) -> Pairing:
        """The requests and responses without a partner; made on first use, since most connections of a flood have none."""
        if self._pairing is None:
            self._pairing = Pairing(self.connection, self, self.collector.bodies)
        return self._pairing

    @property
    def untouched(self) -> bool:
        """Whether no byte, hole or failure reached it, so that it equals a new conversation."""
        first, second = (stream.sink for stream in self.connection.streams)
        return (
            self.phase == "empty"
            and not self.buffered
            and not self.failures
            and not self.fast_path_exits
            and self.fast_path_slot < 0
            and self.connection is self.tcp
            and not (isinstance(first, Waiting) and first.holed)
            and not (isinstance(second, Waiting) and second.holed)
        )

    # -- recognition --------------------------------------------------------------------------------------------------
    def hold(self, size: int) -> None:
        """One more call is buffered, with `size` bytes."""
        self.held += size + CALL_BYTES
        self.collector.unrecognised_bytes += size + CALL_BYTES

    def _release(self) -> list[tuple[int, Data | tuple[int, int, int]]]:
        """Returns the buffered calls and clears the buffers."""
        self.collector.unrecognised_bytes -= self.held
        buffered, self.buffered, self.held = self.buffered, [], 0
        return buffered

    @property
    def crowded(self) -> bool:
        """Whether it has to be recognised from the bytes at hand, because all connections together buffer too much."""
        over = self.collector.unrecognised_bytes > limits.UNRECOGNISED_BYTES_MAX
        return over and self.held > limits.UNRECOGNISED_BYTES_LEAST

    def consider(self, final: bool) -> None:
        """Tries to recognise the connection by its buffered bytes; on success moves to the next phase."""
        first, second = (s.sink for s in self.connection.streams)
        if not isinstance(first, Waiting) or not isinstance(second, Waiting) or not self.buffered or self.starting:
            return
        self.phase = "waiting"
        if first.count + second.count > limits.MIDSTREAM_BYTES:
            self._start_streams()
        verdict = self._verdict(first, second, final)
        if verdict is None:
            return
        if self.header is not None:
            self._proxied(self.header, verdict.client is not None or verdict.detail == "tls")
        if verdict.client is None:
            self._opaque(verdict.detail)
        else:
            self.begin(verdict.client)

    def _start_streams(self) -> None:
        """Makes streams whose SYN was not captured start with the bytes that they hold. The other side has sent as many bytes
        as recognition waits for, so that displaced packets have arrived by now. A client that mostly reads sends few segments
        in that time."""
        self.starting = True
        for stream in self.connection.streams:
            if not stream.started and stream.held:
                stream.start()
        self.starting = False

    def _verdict(self, first: Waiting, second: Waiting, final: bool) -> Recognition | None:
        connection = self.connection
        said = self.collector.decode_as(connection)
        client = None if connection.client is None else connection.streams.index(connection.client)
        if said is False:
            return Recognition(None, "set to be no Kafka")
        up, down = (second, first) if client == 1 else (first, second)
        begins = client is not None and connection.streams[client].anchored and not up.holed
        header = self.header = proxy_header(up.bytes) if begins else None
        if said and client is not None:
            return Recognition(client)
        if client is not None and begins:
            full = final or up.count > limits.RECOGNISE_BYTES or down.count > limits.MIDSTREAM_BYTES or not up.whole
            if not up.count and not full:
                return None
            return from_first_bytes(up.bytes, down.bytes, client, header, full)
        full = final or first.count + second.count > limits.MIDSTREAM_BYTES
        looks = len(self.buffered)
        if not full and looks < 2 * self.recognition_attempts:
            return None  # look again when there is twice as much
        self.recognition_attempts = looks
        verdict = from_content(first.bytes, second.bytes, full)
        if verdict is not None and verdict.client is None:
            verdict = from_pieces(self._pieces(0), self._pieces(1)) or verdict
        if verdict is not None and client is not None and verdict.client not in (None, client):
            return Recognition(None, "requests from the side that was called")
        if verdict is not None and verdict.client is None and said:
            return Recognition(client if client is not None else 0)
        return verdict

    def _pieces(self, index: int) -> list[bytearray]:
        """Returns the contiguous pieces of a stream's buffered bytes."""
        pieces, end = [bytearray()], -1
        for place, call in self.buffered:
            if place != index or len(call) != 8:
                continue
            offset, data, _, captured = call[:4]
            if offset != end and pieces[-1]:
                pieces.append(bytearray())
            pieces[-1] += data
            end = offset + captured
        return pieces

    def begin(self, client: int) -> None:
        """Enters the phase `kafka`; stream `client` sends the requests."""
        connection = self.connection
        up, down = connection.streams[client], connection.streams[1 - client]
        connection.client = up
        self.phase = "kafka"
        bodies = self.collector.bodies
        self.requests = RequestFramer(up, self.pairing, bodies)
        self.responses = ResponseFramer(down, self.pairing, bodies, self.requests)
        for stream, framer in ((up, self.requests), (down, self.responses)):
            if not stream.anchored:
                framer.start_midstream()
            stream.sink = framer
        self._replay()

    def _proxied(self, header: ProxyHeader, within: bool) -> None:
        """Handles a PROXY protocol header at the beginning of the client's stream. `within`: the bytes after it are read."""
        connection = self.connection
        client = 0 if connection.client is connection.streams[0] else 1
        first = next(call for index, call in self.buffered if index == client and len(call) == 8)
        connection.report(WeirdKind.PROXY_HEADER, header.text, first[6], first[7])
        if not within:
            return
        self.proxied, self.detail = header.size, header.version
        left, rest = header.size, []
        for index, call in self.buffered:
            if index == client and left and len(call) == 8:
                offset, data, at, captured, length, time_ns, ref, position = call
                size = min(left, length)
                left -= size
                if size == length:
                    continue
                call = offset + size, data, at + size, captured - size, length - size, time_ns, ref, position
            rest.append((index, call))
        self.buffered = rest

    def _opaque(self, detail: str) -> None:
        self.phase = detail if detail in ("tls", "http") else "opaque"
        if not self.proxied:
            self.detail = detail
        first = next((call for _, call in self.buffered if len(call) == 8), None)
        if detail == "tls" and self.connection is self.tcp:
            self.decrypt()
        else:
            for stream in self.connection.streams:
                stream.sink = Opaque()
        if first is not None and not (self.tls is not None and self.collector.secrets):
            self._not_kafka(detail, first[6], first[7])
        self._replay()

    def _not_kafka(self, detail: str, ref: int, position: int) -> None:
        kind = WeirdKind.DIRECTION_UNKNOWN if detail == NO_REQUEST else WeirdKind.NOT_KAFKA
        self.connection.report(kind, detail, ref, position)

    def decrypt(self) -> "Decryptor":
        """Enters the phase `tls`: the streams go through a decryptor, and its plaintext is recognised like any connection."""
        from kcap.kafka.decrypted import Decryptor, TlsSink  # most captures have no TLS, and the import takes time

        self.phase = "tls"
        if not self.proxied:
            self.detail = "tls"
        connection = self.tcp
        if connection.client is None:
            from kcap.tls.roles import client_of

            found = client_of((self._pieces(0), self._pieces(1)))
            connection.client = None if found is None else connection.streams[found]
        client = 0 if connection.client is None else connection.streams.index(connection.client)
        collector = self.collector
        self.tls = Decryptor(
            connection, client, collector.secrets, self._plain, collector.plaintext, turns=collector.infer_turns
        )
        for index, stream in enumerate(connection.streams):
            stream.sink = TlsSink(self.tls, index)
        return self.tls

    def _plain(self, connection: "DecryptedConnection") -> None:
        """Starts the conversation over the plaintext, at its first byte."""
        self.inner = Conversation(connection, self.collector)
        self.inner.tls = self.tls

    def _replay(self) -> None:
        """Replays the buffered calls to the new sinks, both streams merged in packet order, so that a response follows its
        request.
        """
        buffered = self._release()
        sinks = [s.sink for s in self.connection.streams]
        newest = [(0, 0), (0, 0)]
        order = []
        for place, (index, call) in enumerate(buffered):
            if len(call) == 8:
                newest[index] = max(newest[index], (call[5], call[6]))  # bytes that waited for this call come with it
            order.append((*newest[index], place))
        for _, _, place in sorted(order):
            index, call = buffered[place]
            if len(call) == 8:
                sinks[index].data(*call)
            else:
                sinks[index].gap(*call)

    @property
    def mid_frame(self) -> bool:
        """Whether bytes of a frame are still to come, on either side."""
        requests, responses = self.requests, self.responses
        return (requests is not None and requests.open is not None) or (responses is not None and responses.open is not None)

    @property
    def packets(self) -> int:
        """Number of packets of both sides so far."""
        first, second = self.tcp.streams
        return first.packets + second.packets

    def leaves_fast_path(self) -> None:
        """The connection left the fast path. It stays outside longer each time, unless it was inside for at least as long as it
        had been outside before."""
        packets = self.packets
        if packets - self.fast_path_retry_at > limits.FAST_PATH_WAIT << self.fast_path_exits:
            self.fast_path_exits = 0
        self.fast_path_retry_at = packets + (limits.FAST_PATH_WAIT << self.fast_path_exits)
        self.fast_path_exits = min(self.fast_path_exits + 1, limits.FAST_PATH_EXITS_MAX)

    def fail(self) -> None:
        """kcap's code failed on this connection's bytes. Its rows so far remain, and further bytes are only counted."""
        self.failures += 1
        self.fast_path_retry_at = NEVER
        self._release()
        if self.phase in ("empty", "waiting"):
            self.phase, self.detail = "opaque", "not read: the decoder failed"
        for stream in self.connection.streams:
            stream.sink = Opaque()

    # -- the end ------------------------------------------------------------------------------------------------------
    def finish(self, time_ns: int) -> None:
        """The connection is over: decides outstanding exchanges."""
        if self.failures:
            self._finish_failed(time_ns)
            return
        self.consider(True)
        self._release()
        if self.tls is not None and self.connection is self.tcp:
            self.tls.finish(time_ns)
            if self.inner is not None:
                self.inner.finish(time_ns)
                if self.inner.phase == "kafka":
                    self.phase = "kafka"
                    return
            if self.collector.secrets:
                why = f": {self.tls.session.facts.why}" if self.tls.session.facts.why else ""
                self._not_kafka(
                    f"{self.phase}{why}" if self.inner is None else f"tls, {self.inner.detail or 'no data'}",
                    self.tcp.first_ref,
                    self.tcp.first_position,
                )
            return
        requests, responses = self.requests, self.responses
        if requests is None or responses is None:
            return
        connection = self.connection
        requests.finish()
        self.pairing.request_losses = requests.losses
        losing = responses.search is not None
        responses.finish()
        self.pairing.losses = responses.losses
        reason = {"fin": "fin", "rst": "rst"}.get(connection.ended, "capture_end")
        ended_ns = connection.closing_ns if reason != "capture_end" and connection.closing_ns is not None else time_ns
        self.pairing.finish(reason, ended_ns, losing)

    def _finish_failed(self, time_ns: int) -> None:
        """Ends a connection whose decoder failed: counts the bytes of incomplete frames as skipped, and, after the first
        failure, makes a row of each outstanding request."""
        for framer in (self.requests, self.responses):
            if framer is not None:
                if framer.search is not None:
                    framer.resync_holds(-framer.search.size)
                framer.open = framer.search = None
                framer.skipped = framer.stream.captured - framer.framed - (self.proxied if framer is self.requests else 0)
        if self.requests is not None and self.failures == 1:
            self.pairing.finish("capture_end", time_ns, True)

    def release(self) -> None:
        """Cuts references back to this object, as `Stream.release`, once the connection is over or stored in compact form. The
        values that describe it remain."""
        self.connection.conversation = None
        for stream in self.connection.streams:
            stream.release()
        if self._pairing is not None:
            del self._pairing.outlet
        if self.inner is not None:
            self.inner.release()
        if self.tls is not None:
            self.tls.release()

    # -- rows ---------------------------------------------------------------------------------------------------------
    def emit(
        self,
        exchange: PendingExchange,
        response: PendingResponse | None,
        outcome: str,
        reason: str | None,
        decided_ns: int | None,
        flags: int,
    ) -> None:
        """Makes a row of a decided exchange; its parts are listed in `ROW`."""
        connection, collector = self.connection, self.collector
        request = exchange.request or NO_FRAME
        bodies = collector.bodies
        request_slot = bodies.settle(exchange)
        response_frame, response_slot, previous_ns, rtt_ns = NO_FRAME, NO_BODY, None, None
        if response is not None and response.frame is not None:
            response_frame = response.frame
            previous_ns = response.previous_ns
            if exchange.api_key is not None and exchange.api_version is not None:
                response_slot = bodies.settle_response(response, exchange.api_key, exchange.api_version)
            else:
                bodies.forget_response(response)
            if connection.client is not None:
                rtt_ns = connection.client.rtt_min
        flags |= request.flags | response_frame.flags
        if self.failures:
            flags |= UNDECODED
        if connection.began != "syn":
            flags |= MIDSTREAM
        first, second = connection.streams
        if first.repeats or second.repeats:
            flags |= self._repeats(request, response_frame)
        if not first.packets or not second.packets:
            flags |= ONE_SIDED
        self.rows += 1
        place = self.identity()
        age_ns = None
        if decided_ns is not None and request.last_ns is not None:
            age_ns = decided_ns - request.last_ns
        in_flight = 1 + self.pairing.waiting(response_frame.last_ns) if outcome == "answered" else None
        facts = (
            place, exchange.number, exchange.api_key, exchange.api_version, exchange.correlation_id,
            client_text(exchange.client_id), outcome, reason, age_ns, rtt_ns, previous_ns, in_flight, flags, request_slot,
            response_slot,
        )  # fmt: skip
        collector.orders.append(collector.table.order)
        collector.rows.append(facts + request + response_frame)

    def left_out(self, response: PendingResponse) -> None:
        """Releases a body that no row refers to."""
        self.collector.bodies.forget_response(response)

    def passed_over(self, exchange: PendingExchange) -> None:
        """Collects an identifying request that was overtaken, because it concerns rows before its own."""
        key, version = exchange.api_key, exchange.api_version
        if key is None or version is None or key not in IDENTIFYING_REQUESTS:
            return
        collector = self.collector
        body = collector.bodies.bytes_of(exchange.request_slot)
        found = PassedOver(len(collector.rows), self, exchange.number, key, version, body)
        collector.passed_over.append(found)

    def identity(self) -> int:
        """Index of the connection's constants in the open batch."""
        collector = self.collector
        if self.identity_batch != collector.batch:
            self.identity_index = collector.identity(self)
            self.identity_batch = collector.batch
        return self.identity_index

    def _repeats(self, request: Frame, response: Frame) -> int:
        """Flags of a row whose bytes were sent or captured twice before it was decided."""
        connection, flags = self.connection, 0
        client = connection.client
        if client is None:
            return 0
        for stream, frame in ((client, request), (client.peer, response)):
            if frame.start is None or frame.size is None:
                continue
            for low, high, twice in stream.repeats:
                if low < frame.start + frame.size and high > frame.start:
                    flags |= DUPLICATED if twice else RETRANSMITTED
        return flags
