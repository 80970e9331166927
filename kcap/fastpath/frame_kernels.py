"""Frames and pairing of a connection in good order, compiled.

In: stream bytes in order. Out: outstanding requests, and rows. Law: the same as framers and pairing; where these would leave
their short way, the offset in the packet at which the reference path takes over.
"""

from typing import Any

import numpy as np

from kcap import limits
from kcap.fastpath.body_kernels import add_body, close_frame, go_on, open_frame, whole_frame
from kcap.fastpath.close_kernels import settled
from kcap.fastpath.large_kernels import open_large, take_large, too_much
from kcap.fastpath.layout import (
    ANSWERED,
    CLIENT,
    CLOSING_NS,
    CORRELATION,
    COUNT,
    CUT_REQUEST,
    CUT_RESPONSE,
    ENDED,
    F_FIRST_NS,
    F_LAST_NS,
    F_SIZE,
    FALLING,
    FIN_NS,
    FLAGS,
    FRAME,
    HEAD,
    ID_LENGTH,
    IDENTITY,
    KEYS,
    LARGE_BASE,
    LOSSES,
    M_BODIES,
    M_FREE,
    M_FRESH,
    M_IDENTITIES,
    M_LARGE_FREE,
    M_LARGE_FROM,
    M_LARGE_WANTED,
    M_LATE,
    M_OPEN,
    M_ROWS,
    M_SPARE,
    M_TOP,
    M_WAITING_MAX,
    NAME,
    NONE,
    NUMBER,
    ONE_WAYS,
    OPEN_FLAGS,
    OPEN_LEFT,
    OPEN_SIZE,
    OPEN_SLOT,
    OPEN_START,
    OUTCOMES,
    PASSED,
    PASSED_HEAD,
    PASSED_TAIL,
    Q_CORRELATION,
    Q_DONE,
    Q_FLAGS,
    Q_FRAME,
    Q_KEY,
    Q_LOSSES,
    Q_NEXT,
    Q_NUMBER,
    Q_ONE_WAY,
    Q_PASSED_NS,
    Q_SLOT,
    Q_VERSION,
    R_AGE,
    R_CORRELATION,
    R_CUT,
    R_FLAGS,
    R_IDENTITY,
    R_IN_FLIGHT,
    R_KEY,
    R_NAME,
    R_NUMBER,
    R_ORDER,
    R_OUTCOME,
    R_PREVIOUS,
    R_REQUEST,
    R_REQUEST_SLOT,
    R_RESPONSE,
    R_RESPONSE_SLOT,
    R_RTT,
    R_VERSION,
    REASONS,
    REQUEST_BYTES,
    REQUEST_FRAMES,
    RESPONSE_BYTES,
    RESPONSE_FRAMES,
    RESYNCED_RESPONSE,
    ROWS,
    RTT_MIN,
    SEARCHING,
    SLOT_BASE,
    STEP_COMPACT_STRING,
    STEP_FIXED,
    STEP_NONE,
    STEP_STRING,
    STEP_TAGS,
    STEPS,
    TAIL,
    TAKEN,
    VERSIONS,
    WAITING,
)  # fmt: skip
from kcap.fastpath.resync_kernels import given_up, lost, requested, resumes
from kcap.kafka.frames import FLAG, NO_BODY
from kcap.kafka.headers import API_VERSIONS, PRODUCE
from kcap.kernels import compiled, int16, int32
from kcap.schema.quirks import DOWNGRADES

FRAME_MAX = limits.FAST_PATH_FRAME_MAX
FRAME_BYTES_MAX, RESPONSE_BYTES_MAX = limits.FRAME_BYTES_MAX, limits.RESPONSE_BYTES_MAX
HEAD_KEPT = limits.FRAME_HEAD_KEPT
"""First bytes of a request's body that stay, since its acks are among them."""
REQUEST_HEAD = 14
RESPONSE_HEAD = 8
REFUSED = DOWNGRADES[API_VERSIONS][0]
REFUSED_VERSION = DOWNGRADES[API_VERSIONS][1]
UNKNOWN = -1
GATHERED, TOO_LARGE = -1, -2
UNREAD = -100
LATE, SNAPLEN, RESYNCED = FLAG["late"], FLAG["snaplen"], FLAG["resynced"]
ANSWERED_ROW, ONE_WAY, UNANSWERED = map(OUTCOMES.index, ("answered", "one_way", "unanswered"))
LOST_ROW, SKIPPED_ROW = map(REASONS.index, ("lost_in_capture", "skipped"))
IN_FLIGHT_DATED = limits.IN_FLIGHT_DATED
ONE_WAY_MAX = limits.ONE_WAY_KEPT
"""Rows that a response may decide beside its own."""


@compiled
def lacks_room(size: int, rows: Any, bodies: Any, arena: Any, meta: Any) -> bool:
    """Whether rows, bodies, entries or the arena may have no room for the frames in `size` bytes of a stream."""
    frames = size // RESPONSE_HEAD + 2
    return bool(
        meta[M_ROWS] + frames + ONE_WAY_MAX > rows.shape[0]
        or meta[M_BODIES] + frames > bodies.shape[1]
        or meta[M_SPARE] < frames
        or meta[M_TOP] + size + FRAME_MAX > arena.size
    )


@compiled
def acks_of(data: Any, at: int, end: int, steps: Any, version: int) -> int:
    """Acks of a Produce request; UNREAD where they cannot be read, which is for the reference path."""
    for step in range(STEPS):
        if at + 2 > end:
            return UNREAD
        kind = steps[version, step, 0]
        if kind == STEP_NONE:
            return int(int16(data, at))
        if kind == STEP_FIXED:
            at += steps[version, step, 1]
        elif kind == STEP_STRING:
            length = int16(data, at)
            at += 2 + (length if length > 0 else 0)
        elif kind == STEP_COMPACT_STRING and data[at] < 128:
            at += int(data[at]) if data[at] else 1
        elif kind == STEP_TAGS and data[at] == 0:
            at += 1
        else:
            return UNREAD
    return UNREAD


@compiled
def chain(connections: Any, slot: int, queues: Any, meta: Any) -> Any:
    """Appends an entry to the outstanding requests."""
    entry = meta[M_FREE]
    meta[M_FREE] = queues[entry, Q_NEXT]
    meta[M_SPARE] -= 1
    linked(entry, connections, slot, queues, HEAD, TAIL, COUNT)
    return entry


@compiled
def linked(entry: int, connections: Any, slot: int, queues: Any, head: int, tail: int, count: int) -> None:
    """Puts an entry at the end of the chain that these columns of a connection hold."""
    if connections[slot, count]:
        queues[connections[slot, tail], Q_NEXT] = entry
    else:
        connections[slot, head] = entry
    connections[slot, tail] = entry
    connections[slot, count] += 1


@compiled
def unchain(connections: Any, slot: int, queues: Any, meta: Any) -> None:
    """Removes the first entry."""
    entry = taken_out(connections, slot, queues)
    queues[entry, Q_NEXT] = meta[M_FREE]
    meta[M_FREE] = entry
    meta[M_SPARE] += 1


@compiled
def taken_out(connections: Any, slot: int, queues: Any) -> Any:
    """Takes the first entry out of the chain."""
    entry = connections[slot, HEAD]
    connections[slot, HEAD] = queues[entry, Q_NEXT]
    connections[slot, COUNT] -= 1
    return entry


@compiled
def pass_over(connections: Any, slot: int, queues: Any, time_ns: int) -> None:
    """Moves the first entry to the chain of those that a later one's response has passed over."""
    entry = taken_out(connections, slot, queues)
    queues[entry, Q_PASSED_NS] = time_ns
    linked(entry, connections, slot, queues, PASSED_HEAD, PASSED_TAIL, PASSED)


@compiled
def rejoin(connections: Any, slot: int, queues: Any) -> None:
    """Puts the entries that were passed over before the others again, all of which are newer."""
    if not connections[slot, PASSED]:
        return
    if connections[slot, COUNT]:
        queues[connections[slot, PASSED_TAIL], Q_NEXT] = connections[slot, HEAD]
    else:
        connections[slot, TAIL] = connections[slot, PASSED_TAIL]
    connections[slot, HEAD] = connections[slot, PASSED_HEAD]
    connections[slot, COUNT] += connections[slot, PASSED]
    connections[slot, PASSED] = 0


@compiled
def large_program(key: int, version: int, side: int, size: int, is_open: bool, big: Any, meta: Any) -> int:
    """The program by which a frame is read as it passes, GATHERED where its bytes are gathered instead, TOO_LARGE where they
    are too many for that, alone or with those of other frames, and no row of `large` is free; only a frame that `is_open`
    continues in the next packet.
    """
    if not is_open:
        return GATHERED
    program = np.int64(GATHERED)
    full = too_much(size, meta)
    if size > meta[M_LARGE_FROM] or full:
        program = big.programs[key, version, side]
        if not meta[M_LARGE_FREE]:
            meta[M_LARGE_WANTED] += 1
            program = np.int64(GATHERED)
    return TOO_LARGE if program < 0 and (size > FRAME_MAX or full) else int(program)


@compiled
def reserved(streams: Any, place: int) -> int:
    """Bytes of the arena that a frame has while it is open."""
    return 0 if streams[place, OPEN_SLOT] >= LARGE_BASE else int(streams[place, OPEN_SIZE])


@compiled
def begun(streams: Any, place: int, data: Any, body: int, end: int, big: Any) -> Any:
    """Takes the first bytes of a large frame's body; where it came to."""
    reached = take_large(data, body, end, streams[place, OPEN_SLOT] - LARGE_BASE, big)
    streams[place, OPEN_LEFT] += end - reached
    return reached


@compiled
def expected(
    data: Any, at: int, size: int, length: int, correlation: int, slot: int, connections: Any, queues: Any, ids: Any, meta: Any
) -> bool:  # fmt: skip
    """Whether a request may be as large, has the client id of those before it, and another correlation id than the last that
    waits.
    """
    if size > FRAME_BYTES_MAX or length != connections[slot, ID_LENGTH]:
        return False
    if connections[slot, COUNT] + connections[slot, PASSED] >= meta[M_WAITING_MAX]:
        return False
    for k in range(length):
        if ids[slot, k] != data[at + REQUEST_HEAD + k]:
            return False
    waiting = connections[slot, COUNT] - connections[slot, ONE_WAYS] - connections[slot, TAKEN]
    if waiting > 0:
        return bool(connections[slot, WAITING] != correlation)
    return not (connections[slot, PASSED] and queues[connections[slot, PASSED_TAIL], Q_CORRELATION] == correlation)


@compiled
def is_one_way(data: Any, body: int, end: int, steps: Any, key: int, version: int) -> int:
    """1 for a Produce request with acks=0, 0 for other requests, -1 where that cannot be read."""
    if key != PRODUCE:
        return 0
    acks = acks_of(data, body, end, steps, version)
    if acks == UNREAD:
        return -1
    return 1 if acks == 0 else 0


@compiled
def requests(
    data: Any, at: int, have: int, end: int, offset: int, time_ns: int, ref: int, position: int, order: int, place: int,
    connections: Any, streams: Any, queues: Any, ids: Any, plain: Any, steps: Any, rows: Any, arena: Any, bodies: Any,
    fresh: Any, meta: Any, big: Any,
) -> Any:  # fmt: skip
    """Takes bytes of the client, of which those before `have` were captured; returns the offset at which the reference path
    takes over.
    """
    slot = place >> 1
    if streams[place, OPEN_START] >= 0:
        before = at
        at = go_on(streams, place, data, at, have, end, position, arena, bodies, big)
        offset += at - before
        if streams[place, OPEN_LEFT]:
            return at
        entry = connections[slot, TAIL]
        close_frame(streams, place, queues, entry, Q_FRAME, time_ns, ref)
        meta[M_OPEN] -= reserved(streams, place)
        queues[entry, Q_FLAGS] |= streams[place, OPEN_FLAGS]
        queues[entry, Q_DONE] = 1
        connections[slot, REQUEST_FRAMES] += 1
        connections[slot, REQUEST_BYTES] += queues[entry, Q_FRAME + F_SIZE]
    while have - at >= REQUEST_HEAD:
        size, key, version = int32(data, at), int16(data, at + 4), int16(data, at + 6)
        correlation, length = int32(data, at + 8), int16(data, at + 12)
        if key < 0 or key >= KEYS or version < 0 or version >= VERSIONS or not plain[key, version]:
            return at
        body, stop = at + REQUEST_HEAD + max(length, 0), at + 4 + size
        if body > min(stop, have) or not expected(
            data, at, size, length, correlation, slot, connections, queues, ids, meta
        ):  # fmt: skip
            return at
        seen = min(stop, have)
        cut = SNAPLEN if seen < min(stop, end) else 0
        program = large_program(key, version, 0, size, stop > end and not cut, big, meta)
        if program == TOO_LARGE:
            return at
        one_way = is_one_way(data, body, seen, steps, key, version)
        if one_way < 0:
            return at
        if one_way and connections[slot, ONE_WAYS] == ONE_WAY_MAX:
            if not queues[connections[slot, HEAD], Q_ONE_WAY]:
                return at
            emit_one_way(order, place, connections, queues, rows, fresh, meta)
        entry = chain(connections, slot, queues, meta)
        queues[entry, Q_ONE_WAY] = one_way
        queues[entry, Q_FLAGS] = cut
        if one_way:
            connections[slot, ONE_WAYS] += 1
        else:
            connections[slot, WAITING] = correlation
        connections[slot, NUMBER] += 1
        if correlation <= connections[slot, CORRELATION]:
            connections[slot, FALLING] = 1
        connections[slot, CORRELATION] = correlation
        queues[entry, Q_LOSSES], queues[entry, Q_PASSED_NS] = connections[slot, LOSSES], NONE
        if program >= 0:
            kept, filled = open_large(program, size + 4, HEAD_KEPT, big, meta) + LARGE_BASE, 0
            queues[entry, Q_SLOT] = kept
        else:
            room = seen if cut else stop
            kept = add_body(data, body, seen, room, -2 - ((key << 16 | version) << 1), arena, bodies, meta)
            filled = bodies[0, kept] + seen - body
            queues[entry, Q_SLOT] = SLOT_BASE + kept
        queues[entry, Q_NUMBER] = connections[slot, NUMBER]
        queues[entry, Q_KEY] = key
        queues[entry, Q_VERSION] = version
        queues[entry, Q_CORRELATION] = correlation
        if stop > end:
            queues[entry, Q_DONE] = 0
            open_frame(streams, place, offset, size + 4, time_ns, ref, position, stop - end, kept, filled, cut)
            meta[M_OPEN] += reserved(streams, place)
            if program >= 0:
                return begun(streams, place, data, body, end, big)
            return end
        queues[entry, Q_DONE] = 1
        whole_frame(queues, entry, Q_FRAME, offset, size + 4, time_ns, ref, position)
        connections[slot, REQUEST_FRAMES] += 1
        connections[slot, REQUEST_BYTES] += size + 4
        offset += size + 4
        at = stop
    return at


@compiled
def responses(
    data: Any, at: int, have: int, end: int, offset: int, time_ns: int, ref: int, position: int, order: int, place: int,
    connections: Any, streams: Any, queues: Any, rows: Any, arena: Any, bodies: Any, fresh: Any, meta: Any, big: Any,
) -> Any:  # fmt: skip
    """Takes bytes of the broker, of which those before `have` were captured; returns the offset at which the reference path
    takes over.
    """
    slot, resynced = place >> 1, 0
    if streams[place, OPEN_START] >= 0 and streams[place, OPEN_SLOT] == SEARCHING:
        if not resumes(data, at, have, end, ref, position, place, connections, streams, queues, big, meta):
            return at
        resynced = RESYNCED
    elif streams[place, OPEN_START] >= 0:
        before = at
        at = go_on(streams, place, data, at, have, end, position, arena, bodies, big)
        offset += at - before
        if streams[place, OPEN_LEFT]:
            return at
        close_frame(streams, place, rows, meta[M_ROWS], R_RESPONSE, time_ns, ref)
        meta[M_OPEN] -= reserved(streams, place)
        flags = streams[place, OPEN_FLAGS]
        response(rows, streams[place, OPEN_SLOT], flags, order, place, connections, streams, queues, arena, bodies, fresh, meta)
    while have - at >= RESPONSE_HEAD and connections[slot, COUNT] > connections[slot, ONE_WAYS]:
        size, correlation = int32(data, at), int32(data, at + 4)
        stop, entry = at + 4 + size, requested(correlation, slot, connections, queues)
        if size < 4 or size > RESPONSE_BYTES_MAX or entry < 0 or not queues[entry, Q_DONE]:
            return at
        seen = min(stop, have)
        cut = SNAPLEN if seen < min(stop, end) else 0
        program = large_program(queues[entry, Q_KEY], queues[entry, Q_VERSION], 1, size, stop > end and not cut, big, meta)
        if program == TOO_LARGE:
            return at
        if seen - at < RESPONSE_HEAD + 2 and queues[entry, Q_KEY] == API_VERSIONS:
            return at
        while connections[slot, HEAD] != entry:
            if queues[connections[slot, HEAD], Q_ONE_WAY]:
                emit_one_way(order, place, connections, queues, rows, fresh, meta)
            else:
                pass_over(connections, slot, queues, time_ns)
        body = at + RESPONSE_HEAD
        if program >= 0:
            kept = open_large(program, size + 4, 0, big, meta) + LARGE_BASE
            open_frame(streams, place, offset, size + 4, time_ns, ref, position, stop - end, kept, 0, 0)
            connections[slot, TAKEN] = 1
            return begun(streams, place, data, body, end, big)
        kept = add_body(data, body, seen, seen if cut else stop, UNKNOWN, arena, bodies, meta)
        if stop > end:
            filled = bodies[0, kept] + seen - body
            open_frame(streams, place, offset, size + 4, time_ns, ref, position, stop - end, kept, filled, cut)
            meta[M_OPEN] += reserved(streams, place)
            connections[slot, TAKEN] = 1
            return end
        whole_frame(rows, meta[M_ROWS], R_RESPONSE, offset, size + 4, time_ns, ref, position)
        flags = cut | resynced
        response(rows, kept, flags, order, place, connections, streams, queues, arena, bodies, fresh, meta)
        offset, resynced = offset + size + 4, 0
        at = stop
    if at < end and have < end and lost(
        data, at, have, end, offset, time_ns, ref, position, place, connections, streams, queues, big, meta
    ):  # fmt: skip
        return end
    return at


@compiled
def add_row(outcome: int, order: int, place: int, connections: Any, queues: Any, rows: Any, fresh: Any, meta: Any) -> Any:
    """Moves the oldest request to the table of rows; returns its entry. The row's response is for the caller."""
    slot, row = place >> 1, meta[M_ROWS]
    entry = connections[slot, HEAD]
    unchain(connections, slot, queues, meta)
    meta[M_ROWS] += 1
    if connections[slot, IDENTITY] < 0:
        connections[slot, IDENTITY] = meta[M_IDENTITIES]
        meta[M_IDENTITIES] += 1
        fresh[meta[M_FRESH]] = slot
        meta[M_FRESH] += 1
    rows[row, R_ORDER] = order
    rows[row, R_IDENTITY] = connections[slot, IDENTITY]
    rows[row, R_NAME] = connections[slot, NAME]
    rows[row, R_NUMBER] = queues[entry, Q_NUMBER]
    rows[row, R_KEY] = queues[entry, Q_KEY]
    rows[row, R_VERSION] = queues[entry, Q_VERSION]
    rows[row, R_CORRELATION] = queues[entry, Q_CORRELATION]
    rows[row, R_FLAGS] = connections[slot, FLAGS] | queues[entry, Q_FLAGS]
    rows[row, R_REQUEST_SLOT] = queues[entry, Q_SLOT]
    rows[row, R_OUTCOME], rows[row, R_AGE] = outcome, NONE
    rows[row, R_CUT] = CUT_REQUEST if queues[entry, Q_FLAGS] & SNAPLEN else 0
    for part in range(FRAME):
        rows[row, R_REQUEST + part] = queues[entry, Q_FRAME + part]
    connections[slot, ROWS] += 1
    return entry


@compiled
def emit_one_way(order: int, place: int, connections: Any, queues: Any, rows: Any, fresh: Any, meta: Any) -> None:
    """The oldest request, which expects no response, is decided: as `Pairing._emit_one_way`."""
    without_response(ONE_WAY, order, place, connections, queues, rows, fresh, meta)
    connections[place >> 1, ONE_WAYS] -= 1


@compiled
def without_response(
    outcome: int, order: int, place: int, connections: Any, queues: Any, rows: Any, fresh: Any, meta: Any
) -> None:
    """The oldest request is decided and has no response."""
    row = meta[M_ROWS]
    add_row(outcome, order, place, connections, queues, rows, fresh, meta)
    rows[row, R_RTT] = rows[row, R_PREVIOUS] = rows[row, R_IN_FLIGHT] = NONE
    rows[row, R_RESPONSE_SLOT] = NO_BODY
    for part in range(FRAME):
        rows[row, R_RESPONSE + part] = NONE


@compiled
def response(
    rows: Any, kept: int, flags: int, order: int, place: int, connections: Any, streams: Any, queues: Any, arena: Any,
    bodies: Any, fresh: Any, meta: Any,
) -> None:  # fmt: skip
    """The oldest request has its response, whose frame is in the row: as `Conversation.emit`."""
    slot, row = place >> 1, meta[M_ROWS]
    entry = add_row(ANSWERED_ROW, order, place, connections, queues, rows, fresh, meta)
    connections[slot, TAKEN] = 0
    key, version = queues[entry, Q_KEY], queues[entry, Q_VERSION]
    if kept >= LARGE_BASE:
        rows[row, R_RESPONSE_SLOT] = kept
    else:
        rows[row, R_RESPONSE_SLOT] = SLOT_BASE + kept
        if key == API_VERSIONS and int16(arena, bodies[0, kept]) == REFUSED:
            version = REFUSED_VERSION
        bodies[2, kept] = -2 - ((key << 16 | version) << 1 | 1)
    closed = streams[place ^ 1, FIN_NS]
    if closed != NONE and rows[row, R_RESPONSE + F_FIRST_NS] > closed:
        flags |= LATE
        meta[M_LATE] += 1
    rows[row, R_FLAGS] |= flags
    if flags & SNAPLEN:
        rows[row, R_CUT] |= CUT_RESPONSE
    if flags & RESYNCED:
        rows[row, R_CUT] |= RESYNCED_RESPONSE
    rows[row, R_RTT] = streams[place ^ 1, RTT_MIN]
    rows[row, R_PREVIOUS] = connections[slot, ANSWERED]
    rows[row, R_IN_FLIGHT] = 1 + without_response_yet(slot, rows[row, R_RESPONSE + F_LAST_NS], connections, queues)
    connections[slot, ANSWERED] = rows[row, R_RESPONSE + F_LAST_NS]
    connections[slot, RESPONSE_FRAMES] += 1
    connections[slot, RESPONSE_BYTES] += rows[row, R_RESPONSE + F_SIZE]


@compiled
def without_response_yet(slot: int, until_ns: int, connections: Any, queues: Any) -> Any:
    """Whole requests that wait for a response: as `Pairing.waiting`."""
    if connections[slot, COUNT] == 0:
        return 0
    entry, last, came = connections[slot, HEAD], connections[slot, TAIL], 0
    end = queues[entry, Q_NUMBER] + IN_FLIGHT_DATED if until_ns != NONE else NONE
    while queues[entry, Q_NUMBER] < end:
        if not queues[entry, Q_ONE_WAY]:
            if not queues[entry, Q_DONE] or queues[entry, Q_FRAME + F_LAST_NS] > until_ns:
                return came
            came += 1
        if entry == last:
            return came
        entry = queues[entry, Q_NEXT]
    begun = not queues[last, Q_DONE] and not queues[last, Q_ONE_WAY]
    return connections[slot, COUNT] - connections[slot, ONE_WAYS] - begun


@compiled
def emit_outstanding(
    order: int, time_ns: int, slot: int, losing: bool, connections: Any, queues: Any, rows: Any, fresh: Any, meta: Any
) -> None:
    """A connection ends, now or when it was closed: its outstanding requests are decided, as in `Pairing.finish`."""
    ended = connections[slot, ENDED]
    decided = connections[slot, CLOSING_NS] if ended and connections[slot, CLOSING_NS] != NONE else time_ns
    rejoin(connections, slot, queues)
    while connections[slot, COUNT]:
        entry = connections[slot, HEAD]
        if queues[entry, Q_ONE_WAY]:
            emit_one_way(order, 2 * slot, connections, queues, rows, fresh, meta)
            continue
        row, passed_ns = meta[M_ROWS], queues[entry, Q_PASSED_NS]
        outcome = UNANSWERED + ended if passed_ns == NONE else SKIPPED_ROW
        if connections[slot, LOSSES] > queues[entry, Q_LOSSES] or (losing and passed_ns == NONE):
            outcome = LOST_ROW
        without_response(outcome, order, 2 * slot, connections, queues, rows, fresh, meta)
        rows[row, R_AGE] = (decided if passed_ns == NONE else passed_ns) - rows[row, R_REQUEST + F_LAST_NS]


@compiled
def settled_run(
    slots: Any, order: int, time_ns: int, behind: bool, connections: Any, streams: Any, queues: Any, rows: Any, fresh: Any,
    meta: Any,
) -> int:  # fmt: skip
    """How many of these own connections, from the first on, are settled and end here. Their outstanding requests are decided;
    one that has any is none of them where a row of the reference path comes first (`behind`) or there is no room.
    """
    for at in range(slots.size):
        slot = slots[at]
        if not settled(slot, connections, streams):
            return at
        count = connections[slot, COUNT] + connections[slot, PASSED]
        if count and (behind or meta[M_ROWS] + count > rows.shape[0]):
            return at
        losing = given_up(2 * slot + 1 - connections[slot, CLIENT], connections, streams, meta)
        emit_outstanding(order, time_ns, slot, losing, connections, queues, rows, fresh, meta)
    return int(slots.size)
