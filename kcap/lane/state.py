"""The lane's arrays, and the way of a connection into them and back.

In: a `Conversation` in good order. Out: the same `Conversation`, as if the machines had taken every packet. Law: entering and
leaving
at once changes nothing.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from kcap import limits
from kcap.decode import ops
from kcap.decode.projection import acks_steps, program_index
from kcap.kafka.bodies import REQUEST, UNKNOWN
from kcap.kafka.conversation import Conversation
from kcap.kafka.frames import FLAG, Answer, Exchange, Frame
from kcap.kafka.framing import OpenFrame
from kcap.kafka.headers import PLAIN_HEADERS, REQUEST_HEAD
from kcap.kafka.requests import RequestFramer
from kcap.kafka.responses import PAIR, ResponseFramer
from kcap.lane import layout as at
from kcap.lane.flows import drop, enter
from kcap.lane.talk import chain, unchain
from kcap.net.tcp import Connection, Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

MIDSTREAM = FLAG["midstream"]
ROWS_ROOM, BODIES_ROOM = 2 * limits.ROWS_PER_BATCH, 4 * limits.ROWS_PER_BATCH
ARENA_ROOM = limits.BODIES_BYTES + 4 * limits.LANE_FRAME_MAX
FIRST_SLOTS, FIRST_ENTRIES = 128, 1024
STEP_OF = {
    ops.FIXED: at.STEP_FIXED,
    ops.STRING: at.STEP_STRING,
    ops.COMPACT_STRING: at.STEP_COMPACT_STRING,
    ops.TAGS: at.STEP_TAGS,
}
MOVED = (
    (at.NEXT, "next"), (at.NEXT_RAW, "next_raw"), (at.ACKED, "acked"), (at.ACKED_RAW, "acked_raw"), (at.PACKETS, "packets"),
    (at.SEGMENTS, "data_segments"), (at.CAPTURED, "captured"), (at.LAST_START, "last_start"), (at.LAST_NS, "last_ns"),
    (at.TIMED_END, "timed_end"), (at.TIMED_NS, "timed_ns"), (at.RTT_MIN, "rtt_min"), (at.RTT_SUM, "rtt_sum"),
    (at.RTT_COUNT, "rtt_count"),
)  # fmt: skip
"""Numbers of a stream by their place."""
assert [place for place, _ in MOVED] == list(range(at.OPEN_START))


@cache
def header_tables() -> "tuple[NDArray[np.bool_], NDArray[np.int64]]":
    """Which (key, version) take the short way, and the steps to a Produce request's acks by version."""
    plain = np.zeros((at.KEYS, at.VERSIONS), np.bool_)
    for code in PLAIN_HEADERS:
        if code >> 16 < at.KEYS and code & 0xFFFF < at.VERSIONS:
            plain[code >> 16, code & 0xFFFF] = True
    steps = np.full((at.VERSIONS, at.STEPS, 2), at.STEP_OTHER, np.int64)
    for version in range(at.VERSIONS):
        known = acks_steps(version)
        if known is not None and len(known) < at.STEPS:
            for place, (op, size) in enumerate(known):
                steps[version, place] = STEP_OF.get(op, at.STEP_OTHER), size
            steps[version, len(known)] = at.STEP_NONE, 0
    return plain, steps


def fits(connection: Connection, talk: Conversation) -> bool:
    """Whether the lane can go on from here."""
    requests, responses, client, pairing = talk.requests, talk.responses, connection.client, talk.pairing
    if not connection.calm or requests is None or responses is None or client is None or connection.closing_ns is not None:
        return False
    server = client.peer
    if (
        connection.rst_ns is not None
        or client.held
        or server.held
        or not client.packets
        or not server.packets
        or client.fin_at is not None
        or server.fin_at is not None
        or client.fin_ns is not None
        or server.fin_ns is not None
        or client.next_raw is None
        or server.next_raw is None
        or pairing.early
        or pairing.one_way
        or pairing.losses != responses.losses
        or len(pairing.outstanding) > limits.LANE_OUTSTANDING_MAX
    ):
        return False
    return framers_fit(requests, responses) and waiting_fit(client, talk, requests)


def framers_fit(requests: RequestFramer, responses: ResponseFramer) -> bool:
    """Both stand at a boundary, and requests look like the last one."""
    raw = requests.raw_id
    return (
        requests.open is None
        and responses.open is None
        and requests.hunter is None
        and responses.hunter is None
        and not requests.boundary_flags
        and not responses.boundary_flags
        and requests.handshake is None
        and not requests.raw_tokens
        and requests.last_correlation is not None
        and (raw is None or len(raw) <= at.ID_BYTES)
    )


def waiting_fit(client: Stream, talk: Conversation, requests: RequestFramer) -> bool:
    """The requests that wait are whole and ordinary; nothing of them was seen twice."""
    outstanding, losses = talk.pairing.outstanding, talk.pairing.losses
    for exchange in outstanding:
        frame = exchange.request
        if (
            frame is None
            or frame.flags
            or None in frame
            or exchange.api_key is None
            or exchange.correlation_id is None
            or exchange.response is not None
            or exchange.skipped_ns is not None
            or exchange.one_way
            or exchange.lost_before != losses
            or exchange.client_id != requests.client_id
        ):
            return False
    if client.repeats and outstanding:
        start = outstanding[0].request.start if outstanding[0].request is not None else None
        return start is not None and all(high <= start for _, high, _ in client.repeats)
    return True


class LaneState:
    """The arrays."""

    def __init__(self) -> None:
        self.slots = 0
        self.talks: list[Conversation | None] = []
        self.free: list[int] = []
        self.names: list[str | None] = []
        """Client ids, by the number rows give."""
        self.name_of: dict[str | None, int] = {}
        self.rows: Any = np.empty((ROWS_ROOM, at.ROW_WIDTH), np.int64)
        self.bodies: Any = np.empty((3, BODIES_ROOM), np.int64)
        self.arena: Any = np.empty(ARENA_ROOM, np.uint8)
        self.meta: Any = np.zeros(at.META_WIDTH, np.int64)
        self.meta[at.M_FREE] = -1
        self.connections: Any = np.zeros((0, at.CONNECTION_WIDTH), np.int64)
        self.streams: Any = np.zeros((0, at.STREAM_WIDTH), np.int64)
        self.queues: Any = np.zeros((0, at.REQUEST_WIDTH), np.int64)
        self.ids: Any = np.zeros((0, at.ID_BYTES), np.uint8)
        self.keys: Any = np.zeros((0, at.FLOW_BYTES), np.uint8)
        self.table: Any = np.zeros(8 * FIRST_SLOTS, np.int64)
        self.dropped = 0
        """Places of the table that are marked as left."""
        self._more_slots(FIRST_SLOTS)
        self._more_entries(FIRST_ENTRIES)

    def __getstate__(self) -> dict[str, Any]:
        rows, bodies, top = (int(self.meta[place]) for place in (at.M_ROWS, at.M_BODIES, at.M_TOP))
        used = {"rows": self.rows[:rows].copy(), "bodies": self.bodies[:, :bodies].copy(), "arena": self.arena[:top].copy()}
        return self.__dict__ | used

    # -- room ---------------------------------------------------------------------------------------------------------
    def _more_slots(self, count: int) -> None:
        first, self.slots = self.slots, count
        self.talks += [None] * (count - first)
        self.free += range(count - 1, first - 1, -1)
        for name, size in (("connections", count), ("streams", 2 * count), ("ids", count), ("keys", 2 * count)):
            old = getattr(self, name)
            new = np.zeros((size, *old.shape[1:]), old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        self._fill_table()

    def _more_entries(self, count: int) -> None:
        """Room for more requests that wait."""
        old, free = len(self.queues), int(self.meta[at.M_FREE])
        more = np.zeros((count, at.REQUEST_WIDTH), np.int64)
        more[:, at.Q_NEXT] = [*range(old + 1, old + count), free]
        self.queues = np.concatenate([self.queues, more])
        self.meta[at.M_FREE] = old
        self.meta[at.M_SPARE] += count

    def _fill_table(self) -> None:
        self.table = np.zeros(8 * self.slots, np.int64)
        self.dropped = 0
        for slot in np.flatnonzero(self.connections[:, at.LIVE]).tolist():
            enter(2 * slot, self.table, self.keys, self.streams)
            enter(2 * slot + 1, self.table, self.keys, self.streams)

    def more_room(self, length: int) -> None:
        """The kernel stopped before a packet of this payload: rows, bodies or the arena have no room for it."""
        frames, meta = length + 2, self.meta
        if meta[at.M_ROWS] + frames > len(self.rows):
            self.rows = np.concatenate([self.rows, np.empty((max(len(self.rows), ROWS_ROOM) + frames, at.ROW_WIDTH), np.int64)])
        if meta[at.M_SPARE] < frames:
            self._more_entries(len(self.queues) + frames)
        if meta[at.M_BODIES] + frames > self.bodies.shape[1]:
            more = max(self.bodies.shape[1], BODIES_ROOM) + frames
            self.bodies = np.concatenate([self.bodies, np.empty((3, more), np.int64)], axis=1)
        if meta[at.M_TOP] + length + limits.LANE_FRAME_MAX > self.arena.size:
            self.arena = np.concatenate([self.arena, np.empty(max(self.arena.size, ARENA_ROOM) + length, np.uint8)])

    # -- client ids ---------------------------------------------------------------------------------------------------
    def _name(self, name: str | None) -> int:
        number = self.name_of.get(name)
        if number is None:
            number = self.name_of[name] = len(self.names)
            self.names.append(name)
        return number

    def forget_names(self) -> None:
        """Keeps the client ids of those who are in the lane; rows that were taken have the list as it was."""
        self.names, self.name_of = [], {}
        for slot in np.flatnonzero(self.connections[:, at.LIVE]).tolist():
            talk = self.talks[slot]
            assert talk is not None
            assert talk.requests is not None
            self.connections[slot, at.NAME] = self._name(talk.requests.client_id)

    # -- in -----------------------------------------------------------------------------------------------------------
    def promote(self, talk: Conversation, batch: int) -> bool:
        """Takes over a connection that `fits`; False where there is no room for more."""
        if not self.free:
            if self.slots >= limits.LANE_CONNECTIONS:
                return False
            self._more_slots(2 * self.slots)
        requests, responses, connection, pairing = talk.requests, talk.responses, talk.connection, talk.pairing
        assert requests is not None
        assert responses is not None
        slot = self.free.pop()
        self.talks[slot] = talk
        talk.lane = slot
        raw, number = requests.raw_id, self._name(requests.client_id)
        identity = talk.identity_index if talk.identity_batch == batch else -1
        client = 0 if connection.client is connection.streams[0] else 1
        self.connections[slot] = (
            connection.last_ns, 0 if connection.began == "syn" else MIDSTREAM, client, identity, number, pairing.exchanges,
            talk.rows,
            requests.last_correlation, at.NONE if responses.last_ns is None else responses.last_ns, -1 if raw is None else
            len(raw),
            0, 0, 0, 0, requests.frames, requests.framed, responses.frames, responses.framed, 1,
        )  # fmt: skip
        if raw:
            self.ids[slot, : len(raw)] = list(raw)
        for place, (stream, flow) in enumerate(zip(connection.streams, connection.flows), 2 * slot):
            self.streams[place] = [
                at.NONE if (value := getattr(stream, attribute)) is None else value for _, attribute in MOVED
            ] + [-1, 0, 0, 0, 0, 0, 0, 0, 0, len(flow)]
            self.keys[place, : len(flow)] = np.frombuffer(flow, np.uint8)
            enter(place, self.table, self.keys, self.streams)
        if pairing.outstanding:
            self._waiting(slot, talk)
        return True

    def _waiting(self, slot: int, talk: Conversation) -> None:
        """Takes the requests that wait, with the bodies that were gathered since the last batch."""
        outstanding, bodies, meta = talk.pairing.outstanding, talk.collector.bodies, self.meta
        while meta[at.M_SPARE] < len(outstanding):
            self._more_entries(len(self.queues))
        connection = self.connections[slot]
        for exchange in outstanding:
            frame, body = exchange.request, exchange.request_slot
            assert frame is not None
            if body >= 0:
                start, end = bodies.starts[body], bodies.ends[body]
                if meta[at.M_BODIES] == self.bodies.shape[1] or meta[at.M_TOP] + end - start > self.arena.size:
                    self.more_room(end - start)
                number, top = int(meta[at.M_BODIES]), int(meta[at.M_TOP])
                self.arena[top : top + end - start] = np.frombuffer(bodies.arena[start:end], np.uint8)
                self.bodies[:, number] = top, top + end - start, bodies.programs[body]
                meta[at.M_BODIES], meta[at.M_TOP] = number + 1, top + end - start
                bodies.programs[body], body = UNKNOWN, at.SLOT_BASE + number
            exchange.request_slot = UNKNOWN  # `Bodies` no longer has to look after it
            place = chain(connection, self.queues, meta)
            self.queues[place, at.Q_NUMBER :] = (
                exchange.number, exchange.api_key, exchange.api_version, exchange.correlation_id, body, 1, *frame[:8]
            )  # fmt: skip
        outstanding.clear()

    # -- out ----------------------------------------------------------------------------------------------------------
    def demote(self, slot: int, batch: int) -> Conversation:
        """Gives a connection back to the machines."""
        talk = self.talks[slot]
        assert talk is not None
        requests, responses, connection, pairing = talk.requests, talk.responses, talk.connection, talk.pairing
        assert requests is not None
        assert responses is not None
        if self.connections[slot, at.LIVE]:
            self.connections[slot, at.LIVE] = 0
            drop(2 * slot, self.table, self.keys, self.streams)
            drop(2 * slot + 1, self.table, self.keys, self.streams)
        self.talks[slot], talk.lane = None, -1
        self.free.append(slot)
        self.dropped += 2
        if 2 * self.dropped > len(self.table):
            self._fill_table()
        values = self.connections[slot].tolist()
        if values[at.IDENTITY] >= 0:
            talk.identity_batch, talk.identity_index = batch, values[at.IDENTITY]
        connection.last_ns, pairing.exchanges, talk.rows = values[at.LAST], values[at.NUMBER], values[at.ROWS]
        requests.last_correlation = values[at.CORRELATION]
        responses.last_ns = none(values[at.ANSWERED])
        requests.frames, requests.framed = values[at.REQUEST_FRAMES], values[at.REQUEST_BYTES]
        responses.frames, responses.framed = values[at.RESPONSE_FRAMES], values[at.RESPONSE_BYTES]
        frames = []
        for stream, numbers in zip(connection.streams, self.streams[2 * slot : 2 * slot + 2].tolist()):
            if numbers[at.PACKETS] != stream.packets:
                stream.zero_window = False
            for place, attribute in MOVED:
                setattr(stream, attribute, none(numbers[place]))
            frames.append(numbers)
        client = values[at.CLIENT]
        self._queue(slot, values, talk, requests, frames[client])
        if frames[1 - client][at.OPEN_START] >= 0:
            self._open_response(talk, responses, frames[1 - client])
        return talk

    def _queue(self, slot: int, values: list[int], talk: Conversation, requests: RequestFramer, stream: list[int]) -> None:
        pairing, connection, queues = talk.pairing, self.connections[slot], self.queues
        for _ in range(values[at.COUNT]):
            entry = queues[connection[at.HEAD]].tolist()
            unchain(connection, queues, self.meta)
            number, key, version, correlation, body, done = entry[at.Q_NUMBER : at.Q_FRAME]
            exchange = Exchange(number, key, version, correlation, requests.client_id, pairing.losses)
            pairing.outstanding.append(exchange)
            if done:
                exchange.request = Frame._make([*entry[at.Q_FRAME :], 0])
                self._body(talk, exchange, body)
                continue
            raw = requests.raw_id
            size = stream[at.OPEN_SIZE]
            header = REQUEST_HEAD.pack(size - 4, key, version, correlation, -1 if raw is None else len(raw)) + (raw or b"")
            requests.open = self._open(stream, header, exchange)

    def _body(self, talk: Conversation, exchange: Exchange, slot: int) -> None:
        """The body of a request that waits."""
        bodies = talk.collector.bodies
        if slot < at.SLOT_BASE:
            exchange.request_slot = slot
            return
        start, end, index = self.bodies[:, slot - at.SLOT_BASE].tolist()
        self.bodies[2, slot - at.SLOT_BASE] = UNKNOWN
        if index <= -2:
            code = -2 - index >> 1
            index = program_index(code >> 16, code & 0xFFFF, REQUEST)
        exchange.request_slot = bodies.add(self.arena[start:end].tobytes(), 0, end - start, index, exchange)

    def _open(self, stream: list[int], header: bytes, subject: object) -> OpenFrame:
        """A frame of which bytes are still to come."""
        frame = OpenFrame(stream[at.OPEN_START])
        slot = stream[at.OPEN_SLOT]
        start = int(self.bodies[0, slot])
        self.bodies[2, slot] = UNKNOWN
        frame.size = stream[at.OPEN_SIZE]
        frame.head = bytearray(header) + self.arena[start : stream[at.OPEN_AT]].tobytes()
        frame.header, frame.subject, frame.pieces = True, subject, None
        frame.received = frame.size - stream[at.OPEN_LEFT]
        frame.first_ns, frame.first_ref = stream[at.OPEN_NS], stream[at.OPEN_REF]
        frame.low, frame.high = stream[at.OPEN_LOW], stream[at.OPEN_HIGH]
        return frame

    def _open_response(self, talk: Conversation, responses: ResponseFramer, stream: list[int]) -> None:
        exchange = talk.pairing.outstanding.popleft()
        answer = Answer(exchange.correlation_id, responses.requests.stream.data_segments, stream[at.OPEN_NS])
        answer.exchange, exchange.response = exchange, answer
        header = PAIR.pack(stream[at.OPEN_SIZE] - 4, exchange.correlation_id)
        responses.open = self._open(stream, header, answer)


def none(value: int) -> int | None:
    """The number, or what it stands for."""
    return None if value == at.NONE else value
