"""Frames of a client: request headers, Produce's acks, raw SASL tokens.

In: stream bytes. Out: exchanges to the `Pairing`, bodies to the `BodyCollector`. The laws are those of `kcap.kafka.framing`.
"""

from collections.abc import Iterable

from kcap import limits
from kcap.decode.programs import program_index
from kcap.decode.projection import Resumable, acks_of_produce
from kcap.kafka.bodies import BodyCollector
from kcap.kafka.body_values import REQUEST, UNKNOWN, resumed
from kcap.kafka.frames import Frame, PendingExchange
from kcap.kafka.framing import Framer, OpenFrame
from kcap.kafka.headers import (
    HEADER_BYTES_MAX,
    PLAIN_HEADERS,
    PRODUCE,
    REQUEST_HEAD,
    SASL_HANDSHAKE,
    SHAPE,
    RequestHeader,
    body_fits,
    header_bytes,
    names_client,
    noise,
    plausible,
    read_header,
)
from kcap.kafka.pairing import Pairing
from kcap.kafka.resync import Region
from kcap.net.tcp import Stream
from kcap.weird import WeirdKind

HEAD = REQUEST_HEAD.size
CLIENT_ID_AT = 12
SHORTEST_ID = 3
"""A client id of at most one letter (with its length) occurs anywhere by chance; resync then searches for requests by shape."""


class RequestFramer(Framer):
    """The framer of a client's stream."""

    def __init__(self, stream: Stream, pairing: Pairing, bodies: BodyCollector) -> None:
        super().__init__(stream, bodies)
        self.pairing = pairing
        self.raw_id: bytes | None = None
        """The client id of the last request as bytes, which are cheaper to compare than text."""
        self.client_id: str | None = None
        self.client_ids: dict[str | None, bytes] = {}
        """Client ids of this connection -> their bytes on the wire, with the length."""
        self.last_correlation: int | None = None
        self.handshake: RequestHeader | None = None
        """The SaslHandshake v0 that raw tokens follow; None if there is none."""
        self.raw_tokens = False

    def data(
        self, offset: int, buffer: bytes, at: int, captured: int, length: int, time_ns: int, ref: int, position: int
    ) -> None:
        """Takes bytes. Complete frames with a header like the previous one take a short path."""
        if (
            self.open is None
            and self.search is None
            and captured == length
            and not self.boundary_flags
            and self.handshake is None
        ):
            end = at + length
            pairing, bodies = self.pairing, self.bodies
            unpack = REQUEST_HEAD.unpack_from
            while end - at >= HEAD:
                size, key, version, correlation, id_length = unpack(buffer, at)
                stop = at + 4 + size
                body = at + HEAD + id_length if id_length > 0 else at + HEAD
                if stop > end or body > stop or (key << 16 | version) not in PLAIN_HEADERS:
                    break
                raw = buffer[at + HEAD : body] if id_length >= 0 else None
                if raw != self.raw_id or self.last_correlation is None:
                    break
                frame = Frame(offset, size + 4, time_ns, ref, time_ns, ref, position, position, 0)
                exchange = PendingExchange(0, key, version, correlation, self.client_id, pairing.losses, frame)
                self._placed(exchange, ref, offset)
                exchange.request_slot = bodies.add(buffer, body, stop, program_index(key, version, REQUEST), exchange)
                self.last_correlation = correlation
                self.frames += 1
                self.framed += size + 4
                pairing.request(exchange)
                if key == PRODUCE and acks_of_produce(buffer, body, stop, version) == 0:
                    exchange.one_way = True
                    pairing.request_done(exchange)
                elif exchange.response is not None:
                    pairing.request_done(exchange)
                offset += size + 4
                at = stop
            captured = length = end - at
            if not length:
                return
        self.slow(offset, buffer, at, captured, length, time_ns, ref, position)

    def _placed(self, exchange: PendingExchange, first_ref: int | None, offset: int) -> None:
        """Stores where a request begins."""
        exchange.first_ref, exchange.place, exchange.behind_loss = first_ref, self.stream.place(offset), self.losses > 0

    # -- what counts as a request -------------------------------------------------------------------------------------
    def sane(self, size: int) -> bool:
        if self.handshake is not None:
            return 0 <= size <= limits.FRAME_BYTES_MAX
        return 8 <= size <= limits.FRAME_BYTES_MAX

    def _accept(self, header: RequestHeader | None) -> bool:
        """Whether a header is accepted. On a Kafka connection, this includes a key or version that the schema does not have."""
        if header is None or header.known or noise(header):
            return header is not None and header.known
        return (names_client(header) and header.client_id in self.client_ids) or (not self.frames and plausible(header))

    def begun(self, frame: OpenFrame, final: bool) -> bool | None:
        size = frame.size - 4
        data = frame.head[4 : 4 + HEADER_BYTES_MAX]
        if len(data) < 8 and not final and self.handshake is None:
            return None
        header = read_header(data, size, expected=True)
        if self.handshake is not None:
            if not final and len(frame.head) < frame.size and len(data) < HEADER_BYTES_MAX:
                return None
            if self._is_token(header):
                exchange = PendingExchange(0, None, None, None, None, self.pairing.losses)
                self._placed(exchange, frame.first_ref, frame.start)
                self.pairing.request(exchange)
                frame.subject = exchange
                return True
            self.handshake = None
        if header is None and len(data) >= 8:
            # the snapshot length cut it in the middle of its header: no row, but the boundary is kept
            return bool(self.frames and self.stream.anchored and not self.losses and final and len(data) < size)
        if header is None:
            return True  # cut before its eighth byte: as above
        if header.body is None and not final:
            return None
        if not (header.known if header.body is None else self._accept(header)):
            return False
        exchange = PendingExchange(
            0, header.api_key, header.api_version, header.correlation_id, header.client_id, self.pairing.losses
        )
        self._placed(exchange, frame.first_ref, frame.start)
        frame.subject = exchange
        if not header.known:
            self.stream.connection.report(
                WeirdKind.API_UNKNOWN,
                f"key {header.api_key} version {header.api_version}",
                frame.first_ref or 0,
                frame.low or 0,
            )
        if header.body is not None:
            self.remember(header.client_id)
        self.last_correlation = header.correlation_id
        self.pairing.request(exchange)
        if header.api_key == SASL_HANDSHAKE and header.api_version == 0:
            self.handshake, self.raw_tokens = header, True
        return True

    def _is_token(self, header: RequestHeader | None) -> bool:
        expected = self.handshake
        return (
            header is None
            or expected is None
            or not header.known
            or header.client_id != expected.client_id
            or header.body is None
            or header.correlation_id <= expected.correlation_id
        )

    def remember(self, client_id: str | None) -> None:
        raw = None if client_id is None else client_id.encode()
        if client_id not in self.client_ids and len(self.client_ids) < limits.CLIENT_IDS_KEPT:
            self.client_ids[client_id] = b"\xff\xff" if raw is None else len(raw).to_bytes(2, "big") + raw
        self.raw_id, self.client_id = raw, client_id

    def resumed(self, frame: OpenFrame, *, light: bool = False) -> Resumable | None:
        exchange, header = frame.subject, read_header(frame.head[4 : 4 + HEADER_BYTES_MAX], frame.size - 4, expected=True)
        if not isinstance(exchange, PendingExchange) or header is None or header.body is None:
            return None
        index = program_index(header.api_key, header.api_version, REQUEST)
        return resumed(index, frame.head, 4 + header.body, counted=frame.small, light=light)

    def completed(self, frame: OpenFrame, whole: bool) -> None:
        exchange = frame.subject
        if not isinstance(exchange, PendingExchange):
            return
        exchange.request = frame.frame()
        key, version = exchange.api_key, exchange.api_version
        if key is not None and version is not None:
            header = read_header(frame.head[4:], frame.size - 4, expected=True)
            if header is not None and header.body is not None:
                low = 4 + header.body
                index = program_index(key, version, REQUEST)
                if frame.rest is not None:
                    exchange.request_slot = self.bodies.carry_large(frame.rest, frame.received, frame.excerpts)
                else:
                    exchange.request_slot = self.bodies.add(frame.head, low, len(frame.head), index, exchange)
                if key == PRODUCE and acks_of_produce(frame.head, low, len(frame.head), version) == 0:
                    exchange.one_way = True
        elif whole:
            exchange.request_slot = self.bodies.add(frame.head, 4, len(frame.head), UNKNOWN, exchange)
        self.pairing.request_done(exchange)

    # -- resync -------------------------------------------------------------------------------------------------------
    def follows(self, frame: OpenFrame, buffer: bytes, at: int, captured: int) -> bool:
        if captured < HEAD or not self.raw_id:
            return False
        size, key, version, _, length = REQUEST_HEAD.unpack_from(buffer, at)
        return (
            8 <= size <= limits.RESYNC_FRAME_MAX
            and (key << 16 | version) in PLAIN_HEADERS
            and length == len(self.raw_id)
            and buffer[at + HEAD : at + min(HEAD + length, captured)] == self.raw_id
        )

    def candidates(self, region: Region, start: int) -> Iterable[int]:
        patterns = [p for p in self.client_ids.values() if len(p) > SHORTEST_ID]
        places = []
        for low, high in region.captured(start):
            if len(patterns) < len(self.client_ids) or not patterns:
                places += [m.start() for m in SHAPE.finditer(region.data, low, high)]
            for pattern in patterns:
                at = region.data.find(pattern, low + CLIENT_ID_AT, high)
                while at >= 0:
                    places.append(at - CLIENT_ID_AT)
                    at = region.data.find(pattern, at + 1, high)
        return places

    def is_boundary(self, region: Region, at: int, final: bool, first: bool) -> bool | None:
        header, size, have = self._header_at(region, at)
        if have < HEAD:
            return None if region.comes(at, HEAD) and not final else False
        if header is None or not header.known or not 0 <= size <= limits.RESYNC_FRAME_MAX:
            return False
        if header.body is None:
            return None if region.comes(at, have + 1) and not final else False
        if not names_client(header):
            # without a name, only the body distinguishes a request from zeros
            if region.have(at) >= 4 + size and (
                self.proof_room(size) < size or not body_fits(region.data[at + 4 : at + 4 + size], header)
            ):
                return False
            if region.comes(at, 4 + size) and size <= limits.FRAME_GATHERED_MAX and not final:
                return None
            if not first and region.have(at) < 4 + size and header.client_id not in self.client_ids:
                return False
        if first:
            return names_client(header) or region.have(at) >= 4 + size
        if self.client_ids and header.client_id not in self.client_ids:
            return False
        if not 0 <= header.correlation_id < 1 << 30:
            return False
        following = at + 4 + size
        after, _, have = self._header_at(region, following)
        if after is not None and after.body is not None:
            if after.client_id == header.client_id:
                return 0 < after.correlation_id - header.correlation_id < 1000
            return after.client_id in self.client_ids
        if region.comes(following, HEAD) and not final:
            return None
        return have < 4 and bool(self.client_ids) and bool(header.client_id)

    @staticmethod
    def _header_at(region: Region, at: int) -> tuple[RequestHeader | None, int, int]:
        """Returns the header and frame size at a position, and how many bytes were captured there."""
        have = region.have(at)
        if have < HEAD:
            return None, -1, have
        data = region.data
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        return (read_header(header_bytes(data, at, min(at + have, len(data))), size) if size >= 8 else None), size, have
