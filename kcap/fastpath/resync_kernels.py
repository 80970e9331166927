"""Resync of responses in the fast path, compiled: the snapshot length cut a length, and a later packet begins with a response.

In: bytes of a broker's stream. Out: where frames continue, or that the search is left to the reference path. Law:
`ResponseFramer` finds the same with the same packet, and would leave the same numbers.
"""

from typing import Any

import numpy as np

from kcap import limits
from kcap.decode.projection_kernels import COMPLETE, SHORT, message
from kcap.fastpath import layout as at
from kcap.kafka.headers import API_VERSIONS, SASL_HANDSHAKE
from kcap.kernels import compiled, int32, routine
from kcap.limits import RESYNC_PIECE_BYTES

PREFIX, RESPONSE_HEAD, VERSIONS_HEAD = 4, 8, 10
HELD_MAX = limits.RESYNC_BYTES_LATER
"""Number of bytes that a search in the fast path may hold. It is so small that no other bound matters."""
SIZE_MAX, PROOF_COST = min(limits.RESYNC_FRAME_MAX, limits.RESPONSE_BYTES_MAX), limits.RESYNC_PROOF_COST
SEARCHED, IDS_IN_FLIGHT = limits.IDS_SEARCHED, limits.IDS_IN_FLIGHT
PARTITIONS, TOPICS = limits.PARTITIONS_OF_MESSAGE, limits.TOPICS_OF_MESSAGE
LOST_KIND, FOUND_KIND = 0, 1
WANTED, UNASKED, NO_PROGRAM = -3, -2, -1
"""Entries of the table of programs: needed, never needed, and without program."""


@compiled
def odd(kind: int, slot: int, value: int, ref: int, position: int, big: Any, meta: Any) -> None:
    """Stores an oddity, which is reported after the walk."""
    row = big.odd[meta[at.M_ODD]]
    meta[at.M_ODD] += 1
    row[at.O_KIND], row[at.O_SLOT], row[at.O_VALUE], row[at.O_REF], row[at.O_POSITION] = kind, slot, value, ref, position


@compiled
def pieces_of(size: int) -> int:
    """Number of pieces that a framer makes of bytes with a length at their beginning."""
    return 2 if size > PREFIX else 1


@routine
def lost(
    data: Any, cursor: int, have: int, end: int, offset: int, time_ns: int, ref: int, position: int, place: int, arrays: Any
) -> bool:
    """Whether the packet has less of the next response's length than was sent, so that the boundary is lost here. The programs
    that read the following responses are requested.
    """
    connections, queues, big, meta = arrays.connections, arrays.queues, arrays.big, arrays.meta
    slot, seen, size = place >> 1, max(have - cursor, 0), end - cursor
    if seen >= min(PREFIX, size) or size > HELD_MAX or not meta[at.M_RESYNCS]:
        return False
    value = 0
    for k in range(seen):
        value = value << 8 | int(data[cursor + k])
    stream = arrays.streams[place]
    stream[at.OPEN_START], stream[at.OPEN_SIZE], stream[at.OPEN_NS], stream[at.OPEN_REF] = offset, size, time_ns, ref
    stream[at.OPEN_LOW], stream[at.OPEN_LEFT], stream[at.OPEN_SLOT] = position, 0, at.SEARCHING
    stream[at.OPEN_HIGH], stream[at.OPEN_AT] = seen, value
    connections[slot, at.LOSSES] += 1
    entry = connections[slot, at.HEAD]
    for _ in range(min(connections[slot, at.COUNT], SEARCHED)):
        if big.answers[queues[entry, at.Q_KEY], queues[entry, at.Q_VERSION]] == UNASKED:
            big.answers[queues[entry, at.Q_KEY], queues[entry, at.Q_VERSION]] = WANTED
            meta[at.M_ANSWER] = 1
        entry = queues[entry, at.Q_NEXT]
    meta[at.M_SEARCHED] += size + RESYNC_PIECE_BYTES * pieces_of(size)
    odd(LOST_KIND, slot, offset, ref, position, big, meta)
    return True


@compiled
def given_up(place: int, connections: Any, streams: Any, meta: Any) -> bool:
    """Ends the search of a connection that is over; returns whether there was one."""
    if streams[place, at.OPEN_START] < 0:
        return False
    found(place, connections, streams, meta)
    return True


@compiled
def found(place: int, connections: Any, streams: Any, meta: Any) -> None:
    """Ends a search: the bytes that it held are skipped."""
    held = streams[place, at.OPEN_SIZE]
    connections[place >> 1, at.SKIPPED] += held
    meta[at.M_SEARCHED] -= held + RESYNC_PIECE_BYTES * pieces_of(held)
    streams[place, at.OPEN_START] = -1


@compiled
def requested(correlation: int, slot: int, connections: Any, queues: Any) -> Any:
    """The outstanding request with an id: the oldest one, or one behind others whose responses were lost. -1 if there is none,
    or if it is left to the reference path because the others did not lose their responses, identify the client, or are too
    many.
    """
    entry, first, missed = connections[slot, at.HEAD], True, False
    for _ in range(min(connections[slot, at.COUNT], SEARCHED + connections[slot, at.ONE_WAYS])):
        if not queues[entry, at.Q_ONE_WAY]:
            if queues[entry, at.Q_CORRELATION] == correlation:
                return entry if first or missed else -1
            key = queues[entry, at.Q_KEY]
            if not connections[slot, at.LOSSES] or connections[slot, at.FALLING] or key in (API_VERSIONS, SASL_HANDSHAKE):
                return -1
            first, missed = False, missed or queues[entry, at.Q_LOSSES] < connections[slot, at.LOSSES]
        entry = queues[entry, at.Q_NEXT]
    return -1


@compiled
def reads(data: Any, body: int, stop: int, whole: bool, key: int, version: int, big: Any) -> bool:
    """Whether the body of a response can be read as one to a request, as far as it was captured."""
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
def resumes(data: Any, cursor: int, have: int, end: int, ref: int, position: int, place: int, arrays: Any) -> bool:
    """Whether the search ends where a packet begins, as `ResponseFramer.is_boundary` decides it for a place where a segment
    begins.
    """
    connections, streams, queues, big, meta = arrays.connections, arrays.streams, arrays.queues, arrays.big, arrays.meta
    slot, seen, length = place >> 1, have - cursor, end - cursor
    held = streams[place, at.OPEN_SIZE]
    if seen < RESPONSE_HEAD or length + held > HELD_MAX or connections[slot, at.FALLING]:
        return False
    size, correlation = int32(data, cursor), int32(data, cursor + PREFIX)
    if size < PREFIX or size > SIZE_MAX:
        return False
    entry = requested(correlation, slot, connections, queues)
    if entry < 0 or not queues[entry, at.Q_DONE]:
        return False
    following = PREFIX + size
    read, behind = min(seen, following), max(seen - following, 0)
    if queues[entry, at.Q_KEY] == API_VERSIONS and read < VERSIONS_HEAD:
        return False
    if behind >= RESPONSE_HEAD:
        apart = int32(data, cursor + following + PREFIX) - correlation
        if int32(data, cursor + following) < PREFIX or apart <= 0 or apart >= IDS_IN_FLIGHT:
            return False
    elif following + behind >= length or behind >= PREFIX:
        return False  # more bytes are needed, or these are not enough evidence
    if read > RESPONSE_HEAD or following == RESPONSE_HEAD:
        body, stop, whole = cursor + RESPONSE_HEAD, cursor + read, read == following
        if not reads(data, body, stop, whole, queues[entry, at.Q_KEY], queues[entry, at.Q_VERSION], big):
            return False
        connections[slot, at.SPENT] += PROOF_COST * (read - RESPONSE_HEAD)
    connections[slot, at.SPENT] += held + length
    odd(FOUND_KIND, slot, held, ref, position, big, meta)
    found(place, connections, streams, meta)
    return True
