"""Exports a connection from the fast path; makes the objects of one that never had any.

In: a connection's numbers. Out: the `Conversation`, as if the reference path had taken every packet. Law: no attribute shows
which packets the fast path took.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from kcap import limits
from kcap.fastpath import layout as at
from kcap.fastpath.closed_rows import ClosedRows
from kcap.fastpath.frame_kernels import rejoin, unchain
from kcap.fastpath.import_state import MOVED
from kcap.fastpath.projected import program_of
from kcap.fastpath.resync_kernels import PREFIX
from kcap.fastpath.state import FastPathState, none
from kcap.identities import Identities, Identity
from kcap.kafka.body_values import UNKNOWN, fed
from kcap.kafka.conversation import Collector, Conversation
from kcap.kafka.frames import FLAG, Frame, PendingExchange, PendingResponse
from kcap.kafka.framing import OpenFrame, halves
from kcap.kafka.headers import REQUEST_HEAD
from kcap.kafka.requests import RequestFramer
from kcap.kafka.responses import PAIR, ResponseFramer
from kcap.kafka.resync import BoundarySearch, Piece
from kcap.net.connections import Owner
from kcap.net.tcp import Connection, Stream
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from kcap.fastpath.sealed_connection import SealedConnection

SNAPLEN: Final = FLAG["snaplen"]
REPEAT_FLAGS: Final = ((FLAG["retransmitted"], False), (FLAG["duplicated"], True))
"""A row's flag for repeated bytes, and whether the segment repeated them within DUPLICATE_NS (`Stream.repeats`)."""

Numbers = list[int]
"""A row of `connections` or of `streams`."""


class Host(Owner, Collector, Protocol):
    """The interface of the analyzer that the fast path uses."""

    identities: Identities
    batch: int
    watch: Callable[[int, Connection], None] | None

    @property
    def sighted(self) -> int:
        """Number of oddities that have an entry."""

    @property
    def waiting(self) -> int:
        """Number of rows decided since the last batch."""

    @property
    def rows_per_batch(self) -> int:
        """Number of rows that make a batch full."""

    @property
    def full(self) -> bool:
        """Whether there are enough rows or bodies for a batch."""

    def constants(self, conversation: Conversation) -> Identity:
        """The constants of a connection that has objects."""

    def over(self, closed: ClosedRows) -> None:
        """Takes own connections of the fast path that were closed."""

    def report(
        self, kind: WeirdKind, detail: str, ref: int = 0, position: int = 0, connection: Connection | None = None, *,
        uid: str | None = None,
    ) -> None:  # fmt: skip
        """Counts an oddity of a connection, which is given as an object or by its uid."""

    def reads_handshakes(self) -> bool:
        """Whether TLS handshakes may be read from a walk: there are key logs, and nothing observes the bytes of connections."""

    def takes_all(self) -> bool:
        """Whether every connection that looks like Kafka counts as Kafka, because the user configured no ports."""


def made(
    values: Numbers,
    streams: Sequence[Numbers],
    flows: tuple[bytes, bytes],
    name: str | None,
    keeper: Host,
    sealed: "SealedConnection | None" = None,
) -> Conversation:
    """Makes the objects of a connection that began in the fast path; `filled` sets the rest of their attributes. Returns the
    conversation of its plaintext; if that has not begun, the connection's own conversation.
    """
    place, first_ns, ref, position = values[at.PLACE], values[at.FIRST_NS], values[at.FIRST_REF], values[at.FIRST_POSITION]
    connection = Connection(*flows, place, first_ns, ref, position, keeper)
    connection.client = connection.streams[values[at.CLIENT]]
    connection.began = "syn"
    connection.ended = at.ENDS[values[at.ENDED]]
    connection.syn_ns, connection.rst_ns = none(values[at.SYN_NS]), none(values[at.RST_NS])
    connection.rst_by = None if connection.rst_ns is None else connection.streams[values[at.RST_BY]]
    connection.closing_ns = none(values[at.CLOSING_NS])
    for stream, numbers in zip(connection.streams, streams):
        stream.isn, stream.fin_at, stream.fin_ns = none(numbers[at.ISN]), none(numbers[at.FIN_AT]), none(numbers[at.FIN_NS])
        stream.anchored = stream.started = stream.isn is not None
    connection.in_order = all(stream.started for stream in connection.streams)
    conversation = Conversation(connection, keeper)
    connection.conversation = conversation
    if sealed is not None:
        conversation = sealed.enter(conversation, begun=values[at.TLS] == at.SEALED)
    elif any(numbers[at.SEGMENTS] for numbers in streams):
        conversation.begin(values[at.CLIENT])
    if conversation.requests is not None and values[at.NUMBER]:
        conversation.requests.remember(name)
    return conversation


def filled(conversation: Conversation, values: Numbers, streams: Sequence[Numbers]) -> None:
    """Sets the attributes that the fast path changes."""
    requests, responses, connection = conversation.requests, conversation.responses, conversation.tcp
    connection.last_ns, conversation.rows = values[at.LAST], values[at.ROWS]
    if values[at.NUMBER]:  # otherwise nothing waits, and no pairing is needed
        conversation.pairing.exchanges, conversation.pairing.losses = values[at.NUMBER], values[at.LOSSES]
    if requests is not None and responses is not None:
        requests.last_correlation = none(values[at.CORRELATION])
        responses.last_ns = none(values[at.ANSWERED])
        requests.frames, requests.framed = values[at.REQUEST_FRAMES], values[at.REQUEST_BYTES]
        responses.frames, responses.framed = values[at.RESPONSE_FRAMES], values[at.RESPONSE_BYTES]
        responses.losses, responses.skipped, responses.spent = values[at.LOSSES], values[at.SKIPPED], values[at.SPENT]
    for stream, numbers in zip(connection.streams, streams):
        for place, attribute in MOVED:
            value = numbers[place]
            setattr(stream, attribute, None if value == at.NONE else value)


def export_connection(state: FastPathState, slot: int, keeper: Host) -> Conversation:
    """Exports a connection to the reference path; the caller frees its slot."""
    values: Numbers = state.connections[slot].tolist()
    streams: list[Numbers] = state.streams[2 * slot : 2 * slot + 2].tolist()
    conversation, sealed = state.conversations[slot], state.sealed.get(slot)
    if conversation is None:
        name = state.all_names()[values[at.NAME]]
        low, high = state.flows([2 * slot, 2 * slot + 1])
        conversation = made(values, streams, (low, high), name, keeper, sealed)
    conversation.fast_path_slot = -1
    filled(conversation, values, streams)
    if values[at.IDENTITY] >= 0:
        conversation.identity_batch, conversation.identity_index = keeper.batch, values[at.IDENTITY]
    requests, responses = conversation.requests, conversation.responses
    if requests is not None and responses is not None:
        client = values[at.CLIENT]
        _queue(state, slot, values, conversation, requests, streams[client])
        if streams[1 - client][at.OPEN_START] >= 0:
            _open_response(state, conversation, responses, streams[1 - client])
        if values[at.COUNT] + values[at.PASSED]:
            conversation.pairing.count()
    if conversation.tls is not None:
        plain = conversation.tls.plain
        conversation.tls.resumed(plain.streams if plain is not None else sealed.streams if sealed is not None else ())
    elif sealed is not None:
        state.handshake_bytes -= sealed.held_bytes
        sealed.replay(conversation)
    return conversation


def _queue(
    state: FastPathState, slot: int, values: Numbers, conversation: Conversation, requests: RequestFramer, stream: Numbers
) -> None:
    pairing, queues, outstanding = conversation.pairing, state.queues, list[PendingExchange]()
    rejoin(state.connections, slot, queues)
    for _ in range(values[at.PASSED] + values[at.COUNT]):
        entry = queues[state.connections[slot, at.HEAD]].tolist()
        unchain(state.connections, slot, queues, state.meta)
        number, key, version, correlation, body, done, one_way, flags, losses, passed_ns = entry[at.Q_NUMBER : at.Q_FRAME]
        exchange = PendingExchange(number, key, version, correlation, requests.client_id, losses)
        exchange.skipped_ns = none(passed_ns)
        start, size = entry[at.Q_FRAME : at.Q_FRAME + 2] if done else (stream[at.OPEN_START], received(stream))
        if flags:  # a connection with TLS has none
            _repeats(requests.stream, start, start + size, flags)
        if done and one_way:
            exchange.one_way = True
            pairing.one_way.append(exchange)
        else:
            outstanding.append(exchange)
        if done:
            exchange.request = Frame._make([*entry[at.Q_FRAME :], flags & SNAPLEN])
            _body(state, conversation, exchange, body)
            continue
        raw = requests.raw_id
        size = stream[at.OPEN_SIZE]
        header = REQUEST_HEAD.pack(size - 4, key, version, correlation, -1 if raw is None else len(raw)) + (raw or b"")
        requests.open = _open(state, stream, header, exchange)
        requests.count()
    if outstanding:
        pairing.outstanding.restore(outstanding, values[at.PASSED])


def _body(state: FastPathState, conversation: Conversation, exchange: PendingExchange, slot: int) -> None:
    """Exports the body of an outstanding request."""
    bodies = conversation.collector.bodies
    if slot < at.SLOT_BASE:
        exchange.request_slot = slot
        return
    if slot >= at.LARGE_BASE:
        exchange.request_slot = bodies.carry(state.large.take(slot))
        return
    start, end, index = state.bodies[:, slot - at.SLOT_BASE].tolist()
    state.bodies[2, slot - at.SLOT_BASE] = UNKNOWN
    if index <= -2:
        index = program_of(-2 - index)
    exchange.request_slot = bodies.add(state.arena[start:end].tobytes(), 0, end - start, index, exchange)


def _open(state: FastPathState, stream: Numbers, header: bytes, subject: object) -> OpenFrame:
    """Makes the open frame, whose last byte has not come yet."""
    frame = OpenFrame(stream[at.OPEN_START])
    slot = stream[at.OPEN_SLOT]
    frame.size = stream[at.OPEN_SIZE]
    if slot >= at.LARGE_BASE:
        frame.rest = state.large.reader(slot)
        fed(frame.rest, b"")  # counts the records of complete compressed messages, and drops their bytes
        frame.excerpts = state.large.excerpts(slot)
        frame.head = bytearray(header) + state.large.stored(slot)[: limits.FRAME_HEAD_KEPT].tobytes()
        state.large.release(slot)
    else:
        start = int(state.bodies[0, slot])
        state.bodies[2, slot] = UNKNOWN
        state.meta[at.M_OPEN] -= frame.size
        frame.head = bytearray(header) + state.arena[start : stream[at.OPEN_AT]].tobytes()
    frame.header, frame.subject, frame.pieces = True, subject, None
    frame.received = received(stream)
    frame.first_ns, frame.first_ref = stream[at.OPEN_NS], stream[at.OPEN_REF]
    frame.low, frame.high = stream[at.OPEN_LOW], stream[at.OPEN_HIGH]
    frame.flags = stream[at.OPEN_FLAGS] & SNAPLEN
    frame.contiguous = not frame.flags
    return frame


def received(stream: Numbers) -> int:
    """Number of bytes of the open frame so far, captured or not."""
    return stream[at.OPEN_SIZE] - stream[at.OPEN_LEFT]


def _repeats(stream: Stream, start: int, end: int, flags: int) -> None:
    """Registers the bytes of a row that were repeated, according to its flags."""
    for flag, twice in REPEAT_FLAGS:
        if flags & flag:
            stream.repeat(start, end, twice=twice)


def _open_response(state: FastPathState, conversation: Conversation, responses: ResponseFramer, stream: Numbers) -> None:
    if stream[at.OPEN_SLOT] == at.SEARCHING:
        _search(responses, stream)
        return
    exchange = next(conversation.pairing.outstanding.likely())
    conversation.pairing.outstanding.remove(exchange)
    response = PendingResponse(exchange.correlation_id, responses.requests.stream.data_segments, stream[at.OPEN_NS])
    response.exchange, exchange.response = exchange, response
    header = PAIR.pack(stream[at.OPEN_SIZE] - 4, exchange.correlation_id)
    if stream[at.OPEN_FLAGS]:
        start = stream[at.OPEN_START]
        _repeats(responses.stream, start, start + received(stream), stream[at.OPEN_FLAGS])
    responses.open = _open(state, stream, header, response)
    responses.count()


def _search(responses: ResponseFramer, stream: Numbers) -> None:
    """Restores a search for a frame boundary: the bytes since it was lost, as the snapshot length left them."""
    offset, size, seen = stream[at.OPEN_START], stream[at.OPEN_SIZE], stream[at.OPEN_HIGH]
    search = responses.search = BoundarySearch(responses, refuse=True)
    come = stream[at.OPEN_NS], stream[at.OPEN_REF], stream[at.OPEN_LOW]
    piece = Piece(offset, stream[at.OPEN_AT].to_bytes(seen, "big"), size, *come)
    for part in halves(piece, PREFIX) if size > PREFIX else (piece,):
        search.data(part)
    responses.resync_holds(-search.size)  # the walk has counted them
