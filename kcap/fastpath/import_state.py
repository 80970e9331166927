"""Imports a connection from the reference path into the fast path.

In: a `Conversation` in good order. Out: its numbers in the fast path's arrays. Law: importing and exporting at once changes
nothing.
"""

from itertools import pairwise

import numpy as np

from kcap import limits
from kcap.fastpath import layout as at
from kcap.fastpath.flow_table import enter_all
from kcap.fastpath.frame_kernels import chain, pass_over
from kcap.fastpath.state import FastPathState
from kcap.kafka.bodies import UNKNOWN
from kcap.kafka.conversation import Conversation
from kcap.kafka.frames import FLAG
from kcap.kafka.requests import RequestFramer
from kcap.kafka.responses import ResponseFramer
from kcap.net.tcp import Connection
from kcap.wire.text import is_client_id

MIDSTREAM, SNAPLEN = FLAG["midstream"], FLAG["snaplen"]
MOVED = (
    (at.NEXT, "next"), (at.NEXT_RAW, "next_raw"), (at.ACKED, "acked"), (at.ACKED_RAW, "acked_raw"), (at.PACKETS, "packets"),
    (at.SEGMENTS, "data_segments"), (at.CAPTURED, "captured"), (at.LAST_START, "last_start"), (at.LAST_NS, "last_ns"),
    (at.TIMED_END, "timed_end"), (at.TIMED_NS, "timed_ns"), (at.RTT_MIN, "rtt_min"), (at.RTT_SUM, "rtt_sum"),
    (at.RTT_COUNT, "rtt_count"), (at.RETRANSMITTED, "retransmitted"), (at.DUPLICATED, "duplicated"),
    (at.SHUT, "zero_since"), (at.STALLS, "zero_stalls"), (at.SHUT_NS, "zero_ns"),
    (at.SACKED, "sacked"), (at.SPURIOUS, "spurious"),
)  # fmt: skip
"""Numbers of a stream by their place."""
assert [place for place, _ in MOVED] == list(range(at.OPEN_START))
UNMOVED = (-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, at.NONE, at.NONE, at.NONE)
"""From OPEN_START to FIN_NS: no open frame, and the values that only own connections use."""


def fits(connection: Connection, conversation: Conversation, most: int = limits.FAST_PATH_OUTSTANDING_MAX) -> bool:
    """Whether the fast path can continue from this state, with `most` outstanding requests."""
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
    return framers_fit(requests, responses) and waiting_fit(conversation, requests)


def packets_until_fit(conversation: Conversation) -> int:
    """Packets of both sides, about, that come before the connection can fit: so many as its holes wait for, and as it stays
    outside where it has left before; 0 where nothing is known.
    """
    packets, least = conversation.packets, 0
    for stream in conversation.tcp.streams:
        if stream.held:
            segments = stream.held[0].mark + limits.REORDER_SEGMENTS - stream.data_segments
            least = max(least, 1 + segments * packets // max(stream.data_segments, 1))
    return min(max(least, conversation.fast_path_retry_at - packets, 0), limits.FAST_PATH_PACKETS)


def framers_fit(requests: RequestFramer, responses: ResponseFramer) -> bool:
    """Whether both framers are at a boundary and requests look like the last one, whose client id rows may have."""
    raw = requests.raw_id
    return (
        requests.open is None
        and responses.open is None
        and requests.search is None
        and responses.search is None
        and not requests.boundary_flags
        and not responses.boundary_flags
        and requests.handshake is None
        and not requests.raw_tokens
        and requests.last_correlation is not None
        and (raw is None or len(raw) <= at.ID_BYTES)
        and is_client_id(requests.client_id)
    )


def waiting_fit(conversation: Conversation, requests: RequestFramer) -> bool:
    """Whether the outstanding requests are complete and ordinary, none of their bytes seen twice."""
    outstanding = conversation.pairing.outstanding
    for exchange in outstanding:
        frame = exchange.request
        if (
            frame is None
            or frame.flags & ~SNAPLEN
            or None in frame
            or exchange.api_key is None
            or exchange.correlation_id is None
            or exchange.response is not None
            or exchange.one_way
            or exchange.client_id != requests.client_id
        ):
            return False
    first = outstanding.first()
    if first is not None and requests.stream.repeats:
        start = first.request.start if first.request is not None else None
        return start is not None and all(high <= start for _, high, _ in requests.stream.repeats)
    return True


def import_connection(state: FastPathState, conversation: Conversation, batch: int) -> bool:
    """Imports a connection that `fits`; False where there is no room."""
    requests, responses, connection, pairing = (
        conversation.requests,
        conversation.responses,
        conversation.connection,
        conversation.pairing,
    )
    assert requests is not None
    assert responses is not None
    bodies, room = conversation.collector.bodies, state.arena.size - int(state.meta[at.M_TOP])
    waiting = (exchange.request_slot for exchange in pairing.outstanding if exchange.request_slot >= 0)
    if pairing.outstanding and sum(bodies.ends[slot] - bodies.starts[slot] for slot in waiting) > room:
        return False
    raw = requests.raw_id
    number = state.name(raw)
    slot = state.slot() if number >= 0 else -1
    if slot < 0:
        return False
    state.conversations[slot] = conversation
    conversation.fast_path_slot = slot
    identity = conversation.identity_index if conversation.identity_batch == batch else -1
    holed, newest = any(stream.lost for stream in connection.streams), pairing.outstanding.last()
    client = 0 if connection.client is connection.streams[0] else 1
    ids = [*(exchange.correlation_id or 0 for exchange in pairing.outstanding), (requests.last_correlation or 0) + 1]
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
        state.keys[place, : len(flow)] = np.frombuffer(flow, np.uint8)
    enter_all(np.array([2 * slot, 2 * slot + 1]), state.table, state.keys, state.streams)
    if conversation.pairing.outstanding:
        _waiting(state, slot, conversation)
    return True


def _waiting(state: FastPathState, slot: int, conversation: Conversation) -> None:
    """Imports the outstanding requests, with the bodies since the last batch."""
    outstanding, bodies, meta = conversation.pairing.outstanding, conversation.collector.bodies, state.meta
    while meta[at.M_SPARE] < len(outstanding):
        state.more_entries(len(state.queues))
    for exchange in outstanding:
        frame, body = exchange.request, exchange.request_slot
        assert frame is not None
        if body >= 0:
            start, end = bodies.starts[body], bodies.ends[body]
            if meta[at.M_BODIES] == state.bodies.shape[1] or meta[at.M_TOP] + end - start > state.arena.size:
                meta[at.M_FULL] = at.FULL_ROOM
                state.more_room(end - start)
            number, top = int(meta[at.M_BODIES]), int(meta[at.M_TOP])
            state.arena[top : top + end - start] = np.frombuffer(bodies.arena[start:end], np.uint8)
            state.bodies[:, number] = top, top + end - start, bodies.programs[body]
            meta[at.M_BODIES], meta[at.M_TOP] = number + 1, top + end - start
            bodies.programs[body], body = UNKNOWN, at.SLOT_BASE + number
        exchange.request_slot = UNKNOWN  # `Bodies` has no more to look after
        place = chain(state.connections, slot, state.queues, meta)
        state.queues[place, at.Q_NUMBER :] = (
            exchange.number, exchange.api_key, exchange.api_version, exchange.correlation_id, body, 1, 0, frame.flags,
            exchange.lost_before, at.NONE, *frame[:8],
        )  # fmt: skip
        if exchange.skipped_ns is not None:
            pass_over(state.connections, slot, state.queues, exchange.skipped_ns)
    outstanding.clear()
    conversation.pairing.count()
