"""Resync of responses in the fast path, compiled: the snapshot length cut a length off, a later packet begins with a response.

In: bytes of a broker's stream. Out: where frames go on, or that this is for the reference path. Law: what is found here,
`ResponseFramer` finds with the same packet, and it would leave the same numbers.
"""

from typing import Any

import numpy as np

from kcap import limits
from kcap.decode.projection_kernels import COMPLETE, SHORT, message
from kcap.fastpath.layout import (
    COUNT,
    FALLING,
    HEAD,
    LOSSES,
    M_ANSWER,
    M_ODD,
    M_RESYNCS,
    M_SEARCHED,
    O_KIND,
    O_POSITION,
    O_REF,
    O_SLOT,
    O_VALUE,
    ONE_WAYS,
    OPEN_AT,
    OPEN_HIGH,
    OPEN_LEFT,
    OPEN_LOW,
    OPEN_NS,
    OPEN_REF,
    OPEN_SIZE,
    OPEN_SLOT,
    OPEN_START,
    Q_CORRELATION,
    Q_DONE,
    Q_KEY,
    Q_LOSSES,
    Q_NEXT,
    Q_ONE_WAY,
    Q_VERSION,
    SEARCHING,
    SKIPPED,
    SPENT,
)  # fmt: skip
from kcap.kafka.headers import API_VERSIONS, SASL_HANDSHAKE
from kcap.kernels import compiled, int32, routine
from kcap.limits import RESYNC_PIECE_BYTES

PREFIX, RESPONSE_HEAD, VERSIONS_HEAD = 4, 8, 10
HELD_MAX = limits.RESYNC_BYTES_LATER
"""Bytes of a search in the fast path, so few that it may hold them whatever others hold and whatever it has spent."""
SIZE_MAX, PROOF_COST = min(limits.RESYNC_FRAME_MAX, limits.RESPONSE_BYTES_MAX), limits.RESYNC_PROOF_COST
SEARCHED, IDS_IN_FLIGHT = limits.IDS_SEARCHED, limits.IDS_IN_FLIGHT
PARTITIONS, TOPICS = limits.PARTITIONS_OF_MESSAGE, limits.TOPICS_OF_MESSAGE
LOST_KIND, FOUND_KIND = 0, 1
WANTED, UNASKED, NO_PROGRAM = -3, -2, -1
"""In the table of programs: one that is wanted, one that was never, and none."""


@compiled
def odd(kind: int, slot: int, value: int, ref: int, position: int, big: Any, meta: Any) -> None:
    """Notes an oddity, to be reported behind the walk."""
    row = big.odd[meta[M_ODD]]
    meta[M_ODD] += 1
    row[O_KIND], row[O_SLOT], row[O_VALUE], row[O_REF], row[O_POSITION] = kind, slot, value, ref, position


@compiled
def pieces_of(size: int) -> int:
    """Pieces that a framer makes of bytes with a length at their beginning."""
    return 2 if size > PREFIX else 1


@routine
def lost(
    data: Any, at: int, have: int, end: int, offset: int, time_ns: int, ref: int, position: int, place: int, connections: Any,
    streams: Any, queues: Any, big: Any, meta: Any,
) -> bool:  # fmt: skip
    """Whether the packet has less of the next response's length than was sent, so that the boundary is lost here. The programs
    that read the responses to come are wanted.
    """
    slot, seen, size = place >> 1, max(have - at, 0), end - at
    if seen >= min(PREFIX, size) or size > HELD_MAX or not meta[M_RESYNCS]:
        return False
    value = 0
    for k in range(seen):
        value = value << 8 | int(data[at + k])
    stream = streams[place]
    stream[OPEN_START], stream[OPEN_SIZE], stream[OPEN_NS], stream[OPEN_REF] = offset, size, time_ns, ref
    stream[OPEN_LOW], stream[OPEN_LEFT], stream[OPEN_SLOT] = position, 0, SEARCHING
    stream[OPEN_HIGH], stream[OPEN_AT] = seen, value
    connections[slot, LOSSES] += 1
    entry = connections[slot, HEAD]
    for _ in range(min(connections[slot, COUNT], SEARCHED)):
        if big.answers[queues[entry, Q_KEY], queues[entry, Q_VERSION]] == UNASKED:
            big.answers[queues[entry, Q_KEY], queues[entry, Q_VERSION]] = WANTED
            meta[M_ANSWER] = 1
        entry = queues[entry, Q_NEXT]
    meta[M_SEARCHED] += size + RESYNC_PIECE_BYTES * pieces_of(size)
    odd(LOST_KIND, slot, offset, ref, position, big, meta)
    return True


@compiled
def given_up(place: int, connections: Any, streams: Any, meta: Any) -> bool:
    """Ends the search of a connection that is over; whether there was one."""
    if streams[place, OPEN_START] < 0:
        return False
    found(place, connections, streams, meta)
    return True


@compiled
def found(place: int, connections: Any, streams: Any, meta: Any) -> None:
    """What a search held is skipped."""
    held = streams[place, OPEN_SIZE]
    connections[place >> 1, SKIPPED] += held
    meta[M_SEARCHED] -= held + RESYNC_PIECE_BYTES * pieces_of(held)
    streams[place, OPEN_START] = -1


@compiled
def requested(correlation: int, slot: int, connections: Any, queues: Any) -> Any:
    """The outstanding request with an id: the oldest, or one behind others whose responses were lost; -1 where there is none or
    it is for the reference path: others did not lose their responses, they identify the client, or are too many.
    """
    entry, first, missed = connections[slot, HEAD], True, False
    for _ in range(min(connections[slot, COUNT], SEARCHED + connections[slot, ONE_WAYS])):
        if not queues[entry, Q_ONE_WAY]:
            if queues[entry, Q_CORRELATION] == correlation:
                return entry if first or missed else -1
            key = queues[entry, Q_KEY]
            if not connections[slot, LOSSES] or connections[slot, FALLING] or key in (API_VERSIONS, SASL_HANDSHAKE):
                return -1
            first, missed = False, missed or queues[entry, Q_LOSSES] < connections[slot, LOSSES]
        entry = queues[entry, Q_NEXT]
    return -1


@compiled
def reads(data: Any, body: int, stop: int, whole: bool, key: int, version: int, big: Any) -> bool:
    """Whether the body of a response reads as one to a request, as far as it was captured."""
    program = big.answers[key, version]
    if program < 0:
        return bool(program == NO_PROGRAM)
    proof, one = big.proof, np.int64(0)
    for k in range(proof.values.shape[0]):
        proof.values[k, 0] = 0
    for k in range(proof.loops.size):
        proof.loops[k] = 0
    proof.part[0] = proof.part[1] = proof.part[2] = 0
    proof.part[3], proof.part[4] = PARTITIONS, TOPICS
    status = message(
        data, body, stop, big.rows, program, one, one - 1, one, proof.values, proof.topics, one, proof.wrapped, one,
        big.elements, proof.part, proof.loops, proof.ends,
    )[0]  # fmt: skip
    return bool(status == COMPLETE or (status == SHORT and not whole))


@routine
def resumes(
    data: Any, at: int, have: int, end: int, ref: int, position: int, place: int, connections: Any, streams: Any, queues: Any,
    big: Any, meta: Any,
) -> bool:  # fmt: skip
    """Whether the search ends where a packet begins, as `ResponseFramer.is_boundary` says of a place where a segment begins."""
    slot, seen, length = place >> 1, have - at, end - at
    held = streams[place, OPEN_SIZE]
    if seen < RESPONSE_HEAD or length + held > HELD_MAX or connections[slot, FALLING]:
        return False
    size, correlation = int32(data, at), int32(data, at + PREFIX)
    if size < PREFIX or size > SIZE_MAX:
        return False
    entry = requested(correlation, slot, connections, queues)
    if entry < 0 or not queues[entry, Q_DONE]:
        return False
    following = PREFIX + size
    read, behind = min(seen, following), max(seen - following, 0)
    if queues[entry, Q_KEY] == API_VERSIONS and read < VERSIONS_HEAD:
        return False
    if behind >= RESPONSE_HEAD:
        apart = int32(data, at + following + PREFIX) - correlation
        if int32(data, at + following) < PREFIX or apart <= 0 or apart >= IDS_IN_FLIGHT:
            return False
    elif following + behind >= length or behind >= PREFIX:
        return False  # more bytes have to come, or these are not enough
    if read > RESPONSE_HEAD or following == RESPONSE_HEAD:
        body, stop, whole = at + RESPONSE_HEAD, at + read, read == following
        if not reads(data, body, stop, whole, queues[entry, Q_KEY], queues[entry, Q_VERSION], big):
            return False
        connections[slot, SPENT] += PROOF_COST * (read - RESPONSE_HEAD)
    connections[slot, SPENT] += held + length
    odd(FOUND_KIND, slot, held, ref, position, big, meta)
    found(place, connections, streams, meta)
    return True
