"""One connection as Kafka sees it: what it is, its two framers, its pairing, what it tells of itself.

In: the bytes of both streams of a `Connection`. Out: rows to the `Collector`. Phases, each a pair of sinks on the streams:
`Waiting` (not known what it is), framers (Kafka), `Opaque` (something else; counted, named, never guessed at).
"""

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from kcap import limits
from kcap.kafka.bodies import BodyCollector
from kcap.kafka.decrypted import DecryptedConnection, Decryptor, TlsSink
from kcap.kafka.frames import FLAG, NO_BODY, NO_FRAME, Frame, PendingExchange, PendingResponse
from kcap.kafka.headers import other_protocol
from kcap.kafka.pairing import Pairing
from kcap.kafka.recognition import NO_REQUEST, Recognition, from_content, from_first_request, from_pieces, why_not
from kcap.kafka.requests import RequestFramer
from kcap.kafka.responses import ResponseFramer
from kcap.net.connections import ConnectionTable
from kcap.net.tcp import Connection
from kcap.schema.registry import api_key
from kcap.tls.secrets import Secrets
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from kcap.kafka.decrypted import Listen

MIDSTREAM, RETRANSMITTED, DUPLICATED, ONE_SIDED, UNDECODED = (
    FLAG[n] for n in ("midstream", "retransmitted", "duplicated", "one_sided", "undecoded")
)
NEVER: Final = 1 << 62


SAYING_WHO: Final = (api_key("ApiVersions"), api_key("SaslHandshake"))
"""Requests that tell something of who asks, answered or not."""


class PassedOver(NamedTuple):
    """A request that waits while later ones are answered."""

    row: int
    """The rows of the machines before it in the open batch."""
    talk: "Conversation"
    exchange: int
    api_key: int
    api_version: int
    body: bytes
    """Empty where it was not kept."""


class Collector(Protocol):
    """What the conversations of a capture share."""

    bodies: BodyCollector
    batch: int
    """Number of the batch of rows that is open."""
    rows: list[tuple[Any, ...]]
    orders: list[int]
    """Beside each row its place among those of the lane: the packet that decided it."""
    passed_over: list[PassedOver]
    """Requests that tell who asks, behind which later ones were answered."""
    table: ConnectionTable
    secrets: Secrets
    """What TLS connections are decrypted with."""
    plaintext: "Listen | None"
    """Hears of each piece of plaintext."""

    def identity(self, talk: "Conversation") -> int:
        """Index of the connection's constants in the batch of rows that is open."""

    def decode_as(self, connection: Connection) -> bool | None:
        """The user's word on what the connection is: True Kafka, False not, None nothing said."""


Data = tuple[int, bytes, int, int, int, int, int, int]
"""The arguments of one `Sink.data`."""


class Waiting:
    """Keeps a stream's bytes until it is known what they are."""

    def __init__(self, talk: "Conversation", index: int) -> None:
        self.talk = talk
        self.index = index
        self.bytes = bytearray()
        """What was captured without a break from the first byte seen on."""
        self.whole = True
        self.holed = False
        """The stream's very first bytes are not in the capture."""
        self.count = 0

    def data(
        self, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
    ) -> None:
        """Keeps the bytes and asks whether they are enough."""
        data = bytes(buffer[at : at + captured])
        self.talk.connection.searched(ref)
        self.talk.kept.append((self.index, (offset, data, 0, captured, length, time_ns, ref, position)))
        self.count += length
        if self.whole:
            self.bytes += data
            self.whole = captured == length
        self.talk.consider(False)

    def gap(self, offset: int, length: int, time_ns: int) -> None:
        """Keeps the place of the hole."""
        self.talk.kept.append((self.index, (offset, length, time_ns)))
        if self.count:
            self.whole = False
        else:
            self.holed = True


class Opaque:
    """Counts the bytes of a stream that is no Kafka."""

    def __init__(self) -> None:
        self.count = 0

    def data(
        self, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
    ) -> None:
        """Counts."""
        self.count += length

    def gap(self, offset: int, length: int, time_ns: int) -> None:
        """Holes are counted by the stream."""


class Conversation:
    """A connection and what is made of it."""

    def __init__(self, connection: Connection | DecryptedConnection, collector: Collector) -> None:
        self.connection: Connection = connection  # type: ignore[assignment]  # plaintext streams are read as TCP's are
        self.tcp: Connection = connection.outer if isinstance(connection, DecryptedConnection) else connection
        self.collector = collector
        self.phase = "empty"
        """empty, waiting, kafka, or the name of what else it is."""
        self.detail = ""
        self.pairing = Pairing(self.connection, self)
        self.requests: RequestFramer | None = None
        self.responses: ResponseFramer | None = None
        self.looked_at = 0
        self.identity_batch = -1
        self.identity_index = -1
        self.rows = 0
        self.failures = 0
        """How often the code below failed on its bytes: from then on they are counted alone."""
        self.tls: Decryptor | None = None
        """Reads the connection where it speaks TLS."""
        self.inner: Conversation | None = None
        """What is made of the plaintext of a TLS connection."""
        self.lane = -1
        """Place in the fast lane, -1 outside; there the lane knows better what stands in this object and those it refers to."""
        self.lane_left = 0
        """How often it had to leave the lane."""
        self.lane_again = 0
        """How many packets the lane has to have passed before it may enter again."""
        self.kept: list[tuple[int, Data | tuple[int, int, int]]] = []
        """What both streams brought while it was not known what they are."""
        for index, stream in enumerate(self.connection.streams):
            stream.sink = Waiting(self, index)

    # -- what it is ---------------------------------------------------------------------------------------------------
    def consider(self, final: bool) -> None:
        """Looks at the bytes kept so far; moves on to the next phase when they say what this is."""
        first, second = (s.sink for s in self.connection.streams)
        if not isinstance(first, Waiting) or not isinstance(second, Waiting) or not self.kept:
            return
        self.phase = "waiting"
        verdict = self._verdict(first, second, final)
        if verdict is None:
            return
        if verdict.client is None:
            self._opaque(verdict.detail)
        else:
            self.begin(verdict.client)

    def _verdict(self, first: Waiting, second: Waiting, final: bool) -> Recognition | None:
        connection = self.connection
        said = self.collector.decode_as(connection)
        client = None if connection.client is None else connection.streams.index(connection.client)
        if said is False:
            return Recognition(None, "set to be no Kafka")
        if said and client is not None:
            return Recognition(client)
        up, down = (second, first) if client == 1 else (first, second)
        if client is not None and connection.streams[client].anchored and not up.holed:
            full = final or up.count > limits.RECOGNISE_BYTES or down.count > limits.MIDSTREAM_BYTES or not up.whole
            if not up.count and not full:
                return None
            kafka = from_first_request(up.bytes, full)
            if kafka:
                return Recognition(client)
            if kafka is None:
                return None
            return Recognition(None, other_protocol(up.bytes) or other_protocol(down.bytes) or why_not(up.bytes))
        full = final or first.count + second.count > limits.MIDSTREAM_BYTES
        looks = len(self.kept)
        if not full and looks < 2 * self.looked_at:
            return None  # look again when there is twice as much
        self.looked_at = looks
        verdict = from_content(first.bytes, second.bytes, full)
        if verdict is not None and verdict.client is None:
            verdict = from_pieces(self._pieces(0), self._pieces(1)) or verdict
        if verdict is not None and client is not None and verdict.client not in (None, client):
            return Recognition(None, "requests from the side that was called")
        if verdict is not None and verdict.client is None and said:
            return Recognition(client if client is not None else 0)
        return verdict

    def _pieces(self, index: int) -> list[bytearray]:
        """The bytes kept of a stream, cut where some are missing."""
        pieces, end = [bytearray()], -1
        for place, call in self.kept:
            if place != index or len(call) != 8:
                continue
            offset, data, _, captured = call[:4]
            if offset != end and pieces[-1]:
                pieces.append(bytearray())
            pieces[-1] += data
            end = offset + captured
        return pieces

    def begin(self, client: int) -> None:
        """It is Kafka, and stream `client` asks."""
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

    def _opaque(self, detail: str) -> None:
        self.phase = detail if detail in ("tls", "http") else "opaque"
        self.detail = detail
        first = next((call for _, call in self.kept if len(call) == 8), None)
        if detail == "tls" and self.connection is self.tcp:
            self._decrypt()
        else:
            for stream in self.connection.streams:
                stream.sink = Opaque()
        if first is not None and not (self.tls is not None and self.collector.secrets):
            self._not_kafka(detail, first[6], first[7])
        self._replay()

    def _not_kafka(self, detail: str, ref: int, position: int) -> None:
        kind = WeirdKind.DIRECTION_UNKNOWN if detail == NO_REQUEST else WeirdKind.NOT_KAFKA
        self.connection.report(kind, detail, ref, position)

    def _decrypt(self) -> None:
        """The connection speaks TLS: its streams go through a decryptor, and what that opens is looked at as any
        connection is.
        """
        connection = self.tcp
        client = 0 if connection.client is None else connection.streams.index(connection.client)
        if connection.client is None:
            hello = next((index for index, call in self.kept if len(call) == 8 and call[1][5:6] in (b"\1", b"\2")), None)
            if hello is not None:
                first = next(call[1] for index, call in self.kept if index == hello and len(call) == 8)
                client = hello if first[5:6] == b"\1" else 1 - hello
        self.tls = Decryptor(connection, client, self.collector.secrets, self._plain, self.collector.plaintext)
        for index, stream in enumerate(connection.streams):
            stream.sink = TlsSink(self.tls, index)

    def _plain(self, connection: DecryptedConnection) -> None:
        """The first plaintext is there."""
        self.inner = Conversation(connection, self.collector)
        self.inner.tls = self.tls

    def _replay(self) -> None:
        """Hands the kept bytes on, both streams merged in packet order, so that an answer comes behind its request."""
        kept, self.kept = self.kept, []
        sinks = [s.sink for s in self.connection.streams]
        newest = [(0, 0), (0, 0)]
        order = []
        for place, (index, call) in enumerate(kept):
            if len(call) == 8:
                newest[index] = max(newest[index], (call[5], call[6]))  # what waited for it comes with it
            order.append((*newest[index], place))
        for _, _, place in sorted(order):
            index, call = kept[place]
            if len(call) == 8:
                sinks[index].data(*call)
            else:
                sinks[index].gap(*call)

    def fail(self) -> None:
        """What stands below failed on this connection's bytes. Its rows so far stay; bytes are counted from here on."""
        self.failures += 1
        self.lane_again = NEVER
        self.kept = []
        if self.phase in ("empty", "waiting"):
            self.phase, self.detail = "opaque", "not read: the decoder failed"
        for stream in self.connection.streams:
            stream.sink = Opaque()

    # -- the end ------------------------------------------------------------------------------------------------------
    def finish(self, time_ns: int) -> None:
        """The connection is over: what still waits is decided."""
        if self.failures:
            self._finish_failed(time_ns)
            return
        self.consider(True)
        if self.tls is not None and self.connection is self.tcp:
            self.tls.finish()
            if self.inner is not None:
                self.inner.finish(time_ns)
                if self.inner.phase == "kafka":
                    self.phase = "kafka"
                    return
            if self.collector.secrets:
                self._not_kafka(
                    self.phase if self.inner is None else f"tls, {self.inner.detail or 'no data'}",
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
        losing = responses.hunter is not None
        responses.finish()
        self.pairing.losses = responses.losses
        reason = {"fin": "fin", "rst": "rst"}.get(connection.ended, "capture_end")
        ended_ns = connection.closing_ns if reason != "capture_end" and connection.closing_ns is not None else time_ns
        self.pairing.finish(reason, ended_ns, losing)

    def _finish_failed(self, time_ns: int) -> None:
        """Bytes that belong to no frame that was read are passed over; requests that wait are rows still, once."""
        for framer in (self.requests, self.responses):
            if framer is not None:
                framer.open = framer.hunter = None
                framer.skipped = framer.stream.captured - framer.framed
        if self.requests is not None and self.failures == 1:
            self.pairing.finish("capture_end", time_ns, True)

    # -- rows ---------------------------------------------------------------------------------------------------------
    def emit(
        self,
        exchange: PendingExchange,
        answer: PendingResponse | None,
        outcome: str,
        reason: str | None,
        decided_ns: int | None,
        flags: int,
    ) -> None:
        """A decided exchange becomes a row; its parts are `ROW`."""
        connection, collector = self.connection, self.collector
        request = exchange.request or NO_FRAME
        bodies = collector.bodies
        request_slot = bodies.settle(exchange)
        response, response_slot, previous_ns, rtt_ns = NO_FRAME, NO_BODY, None, None
        if answer is not None and answer.frame is not None:
            response = answer.frame
            previous_ns = answer.previous_ns
            if exchange.api_key is not None and exchange.api_version is not None:
                response_slot = bodies.answered(answer, exchange.api_key, exchange.api_version)
            if connection.client is not None:
                rtt_ns = connection.client.rtt_min
        flags |= request.flags | response.flags
        if self.failures:
            flags |= UNDECODED
        if connection.began != "syn":
            flags |= MIDSTREAM
        first, second = connection.streams
        if first.repeats or second.repeats:
            flags |= self._repeats(request, response)
        if not first.packets or not second.packets:
            flags |= ONE_SIDED
        self.rows += 1
        place = self.identity()
        age_ns = None
        if decided_ns is not None and request.last_ns is not None:
            age_ns = decided_ns - request.last_ns
        facts = (
            place, exchange.number, exchange.api_key, exchange.api_version, exchange.correlation_id,
            exchange.client_id, outcome, reason, age_ns, rtt_ns, previous_ns, flags, request_slot, response_slot,
        )  # fmt: skip
        collector.orders.append(collector.table.order)
        collector.rows.append(facts + request + response)

    def passed_over(self, exchange: PendingExchange) -> None:
        """What a request tells of its connection holds for the rows that come now, though its own may come much later."""
        key, version = exchange.api_key, exchange.api_version
        if key is None or version is None or key not in SAYING_WHO:
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
        """Flags of a row whose bytes were seen again before it was decided."""
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
