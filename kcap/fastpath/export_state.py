"""The way of a connection out of the lane, and how objects are made of one that never had any.

In: a connection's numbers. Out: the `Conversation`, as if the machines had taken every packet. Law: nothing that can be asked
of a connection tells which of its packets the lane took.
"""

from collections.abc import Sequence
from typing import Protocol

from kcap.decode.projection import program_index
from kcap.fastpath import layout as at
from kcap.fastpath.frame_kernels import unchain
from kcap.fastpath.import_state import MOVED
from kcap.fastpath.state import FastPathState, none
from kcap.kafka.bodies import REQUEST, UNKNOWN
from kcap.kafka.conversation import Collector, Conversation
from kcap.kafka.frames import Frame, PendingExchange, PendingResponse
from kcap.kafka.framing import OpenFrame
from kcap.kafka.headers import REQUEST_HEAD
from kcap.kafka.requests import RequestFramer
from kcap.kafka.responses import PAIR, ResponseFramer
from kcap.net.connections import Owner
from kcap.net.tcp import Connection

Numbers = list[int]
"""A row of `connections` or of `streams`."""


class ConnectionOwner(Owner, Collector, Protocol):
    """Who has all connections and what is made of them: the analyzer."""


def made(
    values: Numbers, streams: Sequence[Numbers], flows: tuple[bytes, bytes], name: str | None, keeper: ConnectionOwner
) -> Conversation:
    """The objects of a connection that the lane opened, up to the point from which on `filled` says the rest."""
    place, first_ns, ref, position = values[at.PLACE], values[at.FIRST_NS], values[at.FIRST_REF], values[at.FIRST_POSITION]
    connection = Connection(*flows, place, first_ns, ref, position, keeper)
    connection.client = connection.streams[values[at.CLIENT]]
    connection.began = "syn"
    connection.ended = at.ENDS[values[at.ENDED]]
    connection.syn_ns, connection.rst_ns = none(values[at.SYN_NS]), none(values[at.RST_NS])
    connection.closing_ns = none(values[at.CLOSING_NS])
    connection.calm = values[at.LIVE] != at.CALLED
    for stream, numbers in zip(connection.streams, streams):
        stream.isn, stream.fin_at, stream.fin_ns = none(numbers[at.ISN]), none(numbers[at.FIN_AT]), none(numbers[at.FIN_NS])
        stream.anchored = stream.started = stream.isn is not None
    talk = Conversation(connection, keeper)
    connection.talk = talk
    if values[at.LIVE] not in (at.CALLED, at.OPEN):
        talk.begin(values[at.CLIENT])
        assert talk.requests is not None
        if values[at.NUMBER]:
            talk.requests.remember(name)
    return talk


def filled(talk: Conversation, values: Numbers, streams: Sequence[Numbers]) -> None:
    """Gives the objects the numbers that the lane changes."""
    requests, responses, connection, pairing = talk.requests, talk.responses, talk.connection, talk.pairing
    connection.last_ns, pairing.exchanges, talk.rows = values[at.LAST], values[at.NUMBER], values[at.ROWS]
    if requests is not None and responses is not None:
        requests.last_correlation = none(values[at.CORRELATION])
        responses.last_ns = none(values[at.ANSWERED])
        requests.frames, requests.framed = values[at.REQUEST_FRAMES], values[at.REQUEST_BYTES]
        responses.frames, responses.framed = values[at.RESPONSE_FRAMES], values[at.RESPONSE_BYTES]
    for stream, numbers in zip(connection.streams, streams):
        for place, attribute in MOVED:
            setattr(stream, attribute, none(numbers[place]))


def export_connection(state: FastPathState, slot: int, keeper: ConnectionOwner) -> Conversation:
    """Gives a connection to the machines."""
    values: Numbers = state.connections[slot].tolist()
    streams: list[Numbers] = state.streams[2 * slot : 2 * slot + 2].tolist()
    talk = state.talks[slot]
    if talk is None:
        name = state.all_names()[values[at.NAME]]
        talk = made(values, streams, (state.flow(2 * slot), state.flow(2 * slot + 1)), name, keeper)
    talk.lane = -1
    filled(talk, values, streams)
    if values[at.IDENTITY] >= 0:
        talk.identity_batch, talk.identity_index = keeper.batch, values[at.IDENTITY]
    requests, responses = talk.requests, talk.responses
    if requests is not None and responses is not None:
        client = values[at.CLIENT]
        _queue(state, slot, values, talk, requests, streams[client])
        if streams[1 - client][at.OPEN_START] >= 0:
            _open_response(state, talk, responses, streams[1 - client])
    state.release(slot)
    return talk


def _queue(
    state: FastPathState, slot: int, values: Numbers, talk: Conversation, requests: RequestFramer, stream: Numbers
) -> None:
    pairing, queues = talk.pairing, state.queues
    for _ in range(values[at.COUNT]):
        entry = queues[state.connections[slot, at.HEAD]].tolist()
        unchain(state.connections, slot, queues, state.meta)
        number, key, version, correlation, body, done = entry[at.Q_NUMBER : at.Q_FRAME]
        exchange = PendingExchange(number, key, version, correlation, requests.client_id, pairing.losses)
        pairing.outstanding.append(exchange)
        if done:
            exchange.request = Frame._make([*entry[at.Q_FRAME :], 0])
            _body(state, talk, exchange, body)
            continue
        raw = requests.raw_id
        size = stream[at.OPEN_SIZE]
        header = REQUEST_HEAD.pack(size - 4, key, version, correlation, -1 if raw is None else len(raw)) + (raw or b"")
        requests.open = _open(state, stream, header, exchange)


def _body(state: FastPathState, talk: Conversation, exchange: PendingExchange, slot: int) -> None:
    """The body of a request that waits."""
    bodies = talk.collector.bodies
    if slot < at.SLOT_BASE:
        exchange.request_slot = slot
        return
    start, end, index = state.bodies[:, slot - at.SLOT_BASE].tolist()
    state.bodies[2, slot - at.SLOT_BASE] = UNKNOWN
    if index <= -2:
        code = -2 - index >> 1
        index = program_index(code >> 16, code & 0xFFFF, REQUEST)
    exchange.request_slot = bodies.add(state.arena[start:end].tobytes(), 0, end - start, index, exchange)


def _open(state: FastPathState, stream: Numbers, header: bytes, subject: object) -> OpenFrame:
    """A frame of which bytes are still to come."""
    frame = OpenFrame(stream[at.OPEN_START])
    slot = stream[at.OPEN_SLOT]
    start = int(state.bodies[0, slot])
    state.bodies[2, slot] = UNKNOWN
    frame.size = stream[at.OPEN_SIZE]
    frame.head = bytearray(header) + state.arena[start : stream[at.OPEN_AT]].tobytes()
    frame.header, frame.subject, frame.pieces = True, subject, None
    frame.received = frame.size - stream[at.OPEN_LEFT]
    frame.first_ns, frame.first_ref = stream[at.OPEN_NS], stream[at.OPEN_REF]
    frame.low, frame.high = stream[at.OPEN_LOW], stream[at.OPEN_HIGH]
    return frame


def _open_response(state: FastPathState, talk: Conversation, responses: ResponseFramer, stream: Numbers) -> None:
    exchange = talk.pairing.outstanding.popleft()
    answer = PendingResponse(exchange.correlation_id, responses.requests.stream.data_segments, stream[at.OPEN_NS])
    answer.exchange, exchange.response = exchange, answer
    header = PAIR.pack(stream[at.OPEN_SIZE] - 4, exchange.correlation_id)
    responses.open = _open(state, stream, header, answer)
