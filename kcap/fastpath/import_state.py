"""Imports a connection from the reference path into the fast path.

In: a `Conversation` that fits. Out: its numbers in the fast path's arrays. Law: importing a connection and exporting it at once
changes nothing.
"""

from itertools import pairwise

import numpy as np

from kcap import limits
from kcap.decode.programs import program_index
from kcap.decode.projection import acks_of_produce
from kcap.fastpath import layout as at
from kcap.fastpath.flow_table import enter_all
from kcap.fastpath.frame_kernels import HEAD_KEPT, chain, pass_over
from kcap.fastpath.large_frames import light
from kcap.fastpath.state import FastPathState
from kcap.kafka.body_values import REQUEST, RESPONSE, UNKNOWN
from kcap.kafka.conversation import Conversation
from kcap.kafka.frames import FLAG, PendingExchange, PendingResponse
from kcap.kafka.framing import Framer, OpenFrame
from kcap.kafka.headers import HEADER_BYTES_MAX, PRODUCE, read_header
from kcap.kafka.requests import RequestFramer
from kcap.kafka.responses import PAIR, ResponseFramer
from kcap.net.tcp import Connection
from kcap.schema.quirks import MAGIC2_ONLY
from kcap.wire.text import is_client_id

MIDSTREAM, SNAPLEN = FLAG["midstream"], FLAG["snaplen"]
MOVED = (
    (at.NEXT, "next"), (at.NEXT_RAW, "next_raw"), (at.ACKED, "acked"), (at.ACKED_RAW, "acked_raw"), (at.PACKETS, "packets"),
    (at.SEGMENTS, "data_segments"), (at.CAPTURED, "captured"), (at.LAST_START, "last_start"), (at.LAST_NS, "last_ns"),
    (at.TIMED_END, "timed_end"), (at.TIMED_NS, "timed_ns"), (at.RTT_MIN, "rtt_min"), (at.RTT_SUM, "rtt_sum"),
    (at.RTT_COUNT, "rtt_count"), (at.RETRANSMITTED, "retransmitted"), (at.DUPLICATED, "duplicated"),
    (at.SHUT, "zero_since"), (at.STALLS, "zero_stalls"), (at.SHUT_NS, "zero_ns"),
    (at.SACKED, "sacked"), (at.SPURIOUS, "spurious"), (at.RESENT_NS, "resent_ns"), (at.RESENT_AT, "resent_at"),
)  # fmt: skip
"""Numbers of a stream, by column."""
assert [place for place, _ in MOVED] == list(range(at.OPEN_START))
UNMOVED = (-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, at.NONE, at.NONE, at.NONE)
"""Values from OPEN_START to FIN_NS: no open frame, and defaults of values that only own connections use."""
NO_FRAME = (0,) * at.FRAME


def passing(conversation: Conversation, state: FastPathState) -> bool:
    """Whether frames are open, and all of them can have rows of `large`."""
    frames = [framer.open for framer in (conversation.requests, conversation.responses) if framer is not None and framer.open]
    return bool(frames) and conversation.tls is None and all(_passes(frame, state) for frame in frames)


def _passes(frame: OpenFrame, state: FastPathState) -> bool:
    exchange, side = _exchange_of(frame)
    if exchange is None or exchange.api_key is None or exchange.api_version is None:
        return False
    full = not state.meta[at.M_OPEN_MAX] and side == REQUEST and exchange.api_version >= MAGIC2_ONLY[PRODUCE]
    return (
        (frame.rest is not None or frame.size - 4 > (limits.GATHERED_LEAST if full else state.meta[at.M_LARGE_FROM]))
        and frame.contiguous
        and not frame.flags
        and not frame.crossed
        and frame.pieces is None
        and None not in frame.frame()[:4] + frame.frame()[6:8]
        and state.large.enters(exchange.api_key, exchange.api_version, side)
    )


def _exchange_of(frame: OpenFrame) -> tuple[PendingExchange | None, int]:
    """The exchange of an open frame, and its side."""
    subject = frame.subject
    if isinstance(subject, PendingResponse):
        plain = not subject.flags and not subject.number
        return subject.exchange if plain else None, RESPONSE
    return subject if isinstance(subject, PendingExchange) else None, REQUEST


def entered(framer: Framer, state: FastPathState) -> int:
    """Takes a row of `large` for the open frame of a framer for which `passing` is true. Returns its slot; -1 if the row cannot
    hold what is known of the frame.
    """
    frame = framer.open
    assert frame is not None
    exchange, side = _exchange_of(frame)
    assert exchange is not None
    assert exchange.api_key is not None
    assert exchange.api_version is not None
    low = PAIR.size
    if side == REQUEST:
        header = read_header(frame.head[4 : 4 + HEADER_BYTES_MAX], frame.size - 4, expected=True)
        if header is None or header.body is None:
            return -1
        low = 4 + header.body
        if exchange.api_key == PRODUCE and not acks_of_produce(frame.head, low, len(frame.head), exchange.api_version):
            return -1
    program = program_index(exchange.api_key, exchange.api_version, side)
    if frame.rest is None:
        return state.large.enter_bytes(bytes(frame.head[low:]), program, frame.size, HEAD_KEPT if side == REQUEST else 0)
    if not light(frame.rest, frame.size):
        return -1
    head = bytes(frame.head[low:HEAD_KEPT]) if side == REQUEST else b""
    return state.large.enter(frame.rest, program, frame.size, head)


def fits(
    connection: Connection, conversation: Conversation, most: int = limits.FAST_PATH_OUTSTANDING_MAX, *, within: bool = False
) -> bool:
    """Whether the fast path can continue from this state, with up to `most` outstanding requests. With `within`, large frames
    for which `passing` is true may be open.
    """
    requests, responses, client, pairing = (
        conversation.requests,
        conversation.responses,
        connection.client,
        conversation.pairing,
    )
    if not connection.in_order or requests is None or responses is None or client is None or connection.closing_ns is not None:
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
        or len(pairing.outstanding) > most
        or (conversation.tls is not None and not conversation.tls.for_batches)
    ):
        return False
    return (
        (within or not conversation.mid_frame)
        and framers_fit(requests, responses)
        and waiting_fit(conversation, requests, responses)
    )


def packets_until_fit(conversation: Conversation) -> int:
    """Estimated number of packets of both sides until the connection can fit: as many as its holes wait for, and as many as it
    stays outside after it left. 0 if nothing is known, as during the search for a boundary.
    """
    packets, least = conversation.packets, 0
    framers = conversation.requests, conversation.responses
    searching = any(framer is not None and framer.search is not None for framer in framers)
    for stream in () if searching else conversation.tcp.streams:
        if stream.held:
            segments = stream.held[0].mark + limits.REORDER_SEGMENTS - stream.data_segments
            least = max(least, 1 + segments * packets // max(stream.data_segments, 1))
    return min(max(least, conversation.fast_path_retry_at - packets, 0), limits.FAST_PATH_PACKETS)


def framers_fit(requests: RequestFramer, responses: ResponseFramer) -> bool:
    """Whether both framers know the boundary, and requests look like the last one, whose client id rows can hold."""
    raw = requests.raw_id
    return (
        requests.search is None
        and responses.search is None
        and not requests.boundary_flags
        and not responses.boundary_flags
        and requests.handshake is None
        and not requests.raw_tokens
        and requests.last_correlation is not None
        and (raw is None or len(raw) <= at.ID_BYTES)
        and is_client_id(requests.client_id)
    )


def waiting_fit(conversation: Conversation, requests: RequestFramer, responses: ResponseFramer) -> bool:
    """Whether the outstanding requests are ordinary and complete, except for the open one, and no byte was seen twice."""
    waiting, answered = waiting_of(conversation), None if responses.open is None else responses.open.subject
    asking, starts = None if requests.open is None else requests.open.subject, list[int]()
    for exchange in waiting:
        frame = exchange.request
        if (
            exchange.api_key is None
            or exchange.correlation_id is None
            or exchange.response not in (None, answered)
            or exchange.one_way
            or exchange.client_id != requests.client_id
            or (exchange.skipped_ns is not None and answered is not None)
        ):
            return False
        if requests.open is not None and exchange is asking:
            starts.append(requests.open.start)
        elif frame is None or frame.flags & ~SNAPLEN or None in frame:
            return False
        else:
            starts.append(frame.start or 0)
    if starts and not all(high <= starts[0] for _, high, _ in requests.stream.repeats):
        return False
    return responses.open is None or all(high <= responses.open.start for _, high, _ in responses.stream.repeats)


def waiting_of(conversation: Conversation) -> list[PendingExchange]:
    """The requests without a complete response, in the order in which their responses are expected."""
    answered = None if conversation.responses is None or conversation.responses.open is None else conversation.responses.open
    first = [] if answered is None else [_exchange_of(answered)[0]]
    return [exchange for exchange in (*first, *conversation.pairing.outstanding) if exchange is not None]


def import_connection(state: FastPathState, conversation: Conversation, batch: int) -> bool:
    """Imports a connection that `fits`. False if there is no room, or if a row of `large` cannot hold what is known of an open
    frame.
    """
    requests, responses, connection, pairing = (
        conversation.requests,
        conversation.responses,
        conversation.connection,
        conversation.pairing,
    )
    assert requests is not None
    assert responses is not None
    large = _all_entered(state, requests, responses)
    if large is None:
        return False
    bodies, room = conversation.collector.bodies, state.arena.size - int(state.meta[at.M_TOP])
    waiting = waiting_of(conversation)
    taken = [exchange.request_slot for exchange in waiting if exchange.request_slot >= 0]
    fitting = not taken or sum(bodies.ends[slot] - bodies.starts[slot] for slot in taken) <= room
    raw = requests.raw_id
    number = state.name(raw) if fitting else -1
    slot = state.slot() if number >= 0 else -1
    if slot < 0:
        _released(state, large)
        return False
    state.conversations[slot] = conversation
    conversation.fast_path_slot = slot
    identity = conversation.identity_index if conversation.identity_batch == batch else -1
    holed, newest = any(stream.lost for stream in connection.streams), pairing.outstanding.last()
    client = 0 if connection.client is connection.streams[0] else 1
    ids = [*(exchange.correlation_id or 0 for exchange in waiting), (requests.last_correlation or 0) + 1]
    falling = any(first >= second for first, second in pairwise(ids))
    answered = at.NONE if responses.last_ns is None else responses.last_ns
    state.connections[slot] = (
        connection.last_ns, 0 if connection.began == "syn" else MIDSTREAM, client, identity, number, pairing.exchanges,
        conversation.rows, requests.last_correlation, answered, -1 if raw is None else len(raw), 0, 0, 0, 0, 0,
        (newest.correlation_id or 0) if newest is not None else 0,
        requests.frames, requests.framed, responses.frames, responses.framed,
        responses.losses, responses.skipped, responses.spent, falling, 0, 0, 0,
        0, holed, connection.number, 0, 0, 0, at.NONE, at.NONE, 0, at.NONE, 0,
        at.TALKING, at.CLEAR if conversation.tls is None else at.SEALED, 0,
    )  # fmt: skip
    if raw:
        state.ids[slot, : len(raw)] = list(raw)
    for place, (stream, flow) in enumerate(zip(conversation.tcp.streams, connection.flows), 2 * slot):
        numbers = [at.NONE if (value := getattr(stream, attribute)) is None else value for _, attribute in MOVED]
        state.streams[place] = (*numbers, *UNMOVED, len(flow))
        framer, one = (responses, large[1]) if (place & 1) != client else (requests, large[0])
        if framer.open is not None:
            frame = framer.open
            state.streams[place, at.OPEN_START : at.OPEN_AT] = (
                frame.start, frame.size, frame.first_ns, frame.first_ref, frame.low, frame.high, frame.size - frame.received,
                one,
            )  # fmt: skip
        state.keys[place, : len(flow)] = np.frombuffer(flow, np.uint8)
    enter_all(np.array([2 * slot, 2 * slot + 1]), state.table, state.keys, state.streams)
    if conversation.mid_frame or pairing.outstanding:
        _waiting(state, slot, conversation, waiting)
    state.connections[slot, at.TAKEN] = responses.open is not None
    for framer in (requests, responses):
        framer.open = None
        framer.count()
    return True


def _all_entered(state: FastPathState, *framers: Framer) -> list[int] | None:
    """The slots of large frames, -1 for each framer without an open frame; None if one of them cannot have a slot."""
    taken = list[int]()
    if sum(framer.open is not None for framer in framers) > state.meta[at.M_LARGE_FREE]:
        return None
    for framer in framers:
        taken.append(-1 if framer.open is None else entered(framer, state))
        if framer.open is not None and taken[-1] < 0:
            _released(state, taken)
            return None
    return taken


def _released(state: FastPathState, taken: list[int]) -> None:
    """Frees the slots of large frames."""
    for slot in taken:
        if slot >= 0:
            state.large.release(slot)


def _waiting(state: FastPathState, slot: int, conversation: Conversation, waiting: list[PendingExchange]) -> None:
    """Imports the requests of `waiting_of`, with the bodies since the last batch."""
    bodies, meta = conversation.collector.bodies, state.meta
    while meta[at.M_SPARE] < len(waiting):
        state.more_entries(len(state.queues))
    client = int(state.connections[slot, at.CLIENT])
    for exchange in waiting:
        frame, body = exchange.request, exchange.request_slot
        if frame is None:
            body = int(state.streams[2 * slot + client, at.OPEN_SLOT])
        elif body >= 0:
            start, end = bodies.starts[body], bodies.ends[body]
            if meta[at.M_BODIES] == state.bodies.shape[1] or meta[at.M_TOP] + end - start > state.arena.size:
                meta[at.M_FULL] = at.FULL_ROOM
                state.more_room(end - start)
            number, top = int(meta[at.M_BODIES]), int(meta[at.M_TOP])
            state.arena[top : top + end - start] = np.frombuffer(bodies.arena[start:end], np.uint8)
            state.bodies[:, number] = top, top + end - start, bodies.programs[body]
            meta[at.M_BODIES], meta[at.M_TOP] = number + 1, top + end - start
            bodies.programs[body], body = UNKNOWN, at.SLOT_BASE + number
        exchange.request_slot = UNKNOWN  # the body is no longer in `BodyCollector`
        place = chain(state.connections, slot, state.queues, meta)
        state.queues[place, at.Q_NUMBER :] = (
            exchange.number, exchange.api_key, exchange.api_version, exchange.correlation_id, body, frame is not None, 0,
            0 if frame is None else frame.flags, exchange.lost_before, at.NONE, *(NO_FRAME if frame is None else frame[:8]),
        )  # fmt: skip
        if exchange.skipped_ns is not None:
            pass_over(state.connections, slot, state.queues, exchange.skipped_ns)
    conversation.pairing.outstanding.clear()
    conversation.pairing.count()
