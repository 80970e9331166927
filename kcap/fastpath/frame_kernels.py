"""Frames and pairing of well-behaved connections, compiled.

In: stream bytes in order. Out: outstanding requests, and rows. Law: the result equals that of framers and pairing. Where these
would leave their short path, the result is the offset in the packet at which the reference path takes over.
"""

from typing import Any

import numpy as np

from kcap import limits
from kcap.fastpath import layout as at
from kcap.fastpath.body_kernels import add_body, close_frame, go_on, open_frame, program_code, whole_frame
from kcap.fastpath.close_kernels import settled, unended
from kcap.fastpath.large_kernels import open_large, take_large, too_much
from kcap.fastpath.resync_kernels import given_up, lost, requested, resumes
from kcap.kafka.frames import FLAG, NO_BODY
from kcap.kafka.headers import API_VERSIONS, PRODUCE
from kcap.kernels import compiled, int16, int32
from kcap.schema.quirks import DOWNGRADES

FRAME_MAX = limits.FAST_PATH_FRAME_MAX
FRAME_BYTES_MAX, RESPONSE_BYTES_MAX = limits.FRAME_BYTES_MAX, limits.RESPONSE_BYTES_MAX
RESYNC_FRAME_MAX, IDS_SEARCHED = limits.RESYNC_FRAME_MAX, limits.IDS_SEARCHED
HEAD_KEPT = limits.FRAME_HEAD_KEPT
"""Number of first bytes of a request's body that are retained, because its acks are among them."""
REQUEST_HEAD = 14
RESPONSE_HEAD = 8
REFUSED = DOWNGRADES[API_VERSIONS][0]
REFUSED_VERSION = DOWNGRADES[API_VERSIONS][1]
UNKNOWN = -1
GATHERED, TOO_LARGE = -1, -2
UNREAD = -100
LATE, SNAPLEN, RESYNCED, TRUNCATED = FLAG["late"], FLAG["snaplen"], FLAG["resynced"], FLAG["truncated"]
ANSWERED_ROW, ONE_WAY, UNANSWERED = map(at.OUTCOMES.index, ("answered", "one_way", "unanswered"))
LOST_ROW, SKIPPED_ROW = map(at.REASONS.index, ("lost_in_capture", "skipped"))
IN_FLIGHT_DATED = limits.IN_FLIGHT_DATED
ONE_WAY_MAX = limits.ONE_WAY_KEPT
"""Number of rows that a response may decide besides its own."""


@compiled
def lacks_room(size: int, rows: Any, bodies: Any, arena: Any, meta: Any) -> bool:
    """Whether rows, bodies, entries or the arena may lack room for the frames in `size` bytes of a stream."""
    frames = size // RESPONSE_HEAD + 2
    return bool(
        meta[at.M_ROWS] + frames + ONE_WAY_MAX > rows.shape[0]
        or meta[at.M_BODIES] + frames > bodies.shape[1]
        or meta[at.M_SPARE] < frames
        or meta[at.M_TOP] + size + FRAME_MAX > arena.size
    )


@compiled
def acks_of(data: Any, cursor: int, end: int, steps: Any, version: int) -> int:
    """Acks of a Produce request; UNREAD if they cannot be read, so that the reference path has to read them."""
    for step in range(at.STEPS):
        if cursor + 2 > end:
            return UNREAD
        kind = steps[version, step, 0]
        if kind == at.STEP_NONE:
            return int(int16(data, cursor))
        if kind == at.STEP_FIXED:
            cursor += steps[version, step, 1]
        elif kind == at.STEP_STRING:
            length = int16(data, cursor)
            cursor += 2 + (length if length > 0 else 0)
        elif kind == at.STEP_COMPACT_STRING and data[cursor] < 128:
            cursor += int(data[cursor]) if data[cursor] else 1
        elif kind == at.STEP_TAGS and data[cursor] == 0:
            cursor += 1
        else:
            return UNREAD
    return UNREAD


@compiled
def chain(connections: Any, slot: int, queues: Any, meta: Any) -> Any:
    """Appends an entry to the outstanding requests; returns it."""
    entry = meta[at.M_FREE]
    meta[at.M_FREE] = queues[entry, at.Q_NEXT]
    meta[at.M_SPARE] -= 1
    linked(entry, connections, slot, queues, at.HEAD, at.TAIL, at.COUNT)
    return entry


@compiled
def linked(entry: int, connections: Any, slot: int, queues: Any, head: int, tail: int, count: int) -> None:
    """Appends an entry to the chain that these columns of a connection hold."""
    if connections[slot, count]:
        queues[connections[slot, tail], at.Q_NEXT] = entry
    else:
        connections[slot, head] = entry
    connections[slot, tail] = entry
    connections[slot, count] += 1


@compiled
def unchain(connections: Any, slot: int, queues: Any, meta: Any) -> None:
    """Removes the first entry."""
    entry = taken_out(connections, slot, queues)
    queues[entry, at.Q_NEXT] = meta[at.M_FREE]
    meta[at.M_FREE] = entry
    meta[at.M_SPARE] += 1


@compiled
def taken_out(connections: Any, slot: int, queues: Any) -> Any:
    """Removes the first entry from the chain without freeing it; returns it."""
    entry = connections[slot, at.HEAD]
    connections[slot, at.HEAD] = queues[entry, at.Q_NEXT]
    connections[slot, at.COUNT] -= 1
    return entry


@compiled
def pass_over(connections: Any, slot: int, queues: Any, time_ns: int) -> None:
    """Moves the first entry to the chain of requests that were passed over."""
    entry = taken_out(connections, slot, queues)
    queues[entry, at.Q_PASSED_NS] = time_ns
    linked(entry, connections, slot, queues, at.PASSED_HEAD, at.PASSED_TAIL, at.PASSED)


@compiled
def rejoin(connections: Any, slot: int, queues: Any) -> None:
    """Puts the requests that were passed over in front of the others, all of which are newer."""
    if not connections[slot, at.PASSED]:
        return
    if connections[slot, at.COUNT]:
        queues[connections[slot, at.PASSED_TAIL], at.Q_NEXT] = connections[slot, at.HEAD]
    else:
        connections[slot, at.TAIL] = connections[slot, at.PASSED_TAIL]
    connections[slot, at.HEAD] = connections[slot, at.PASSED_HEAD]
    connections[slot, at.COUNT] += connections[slot, at.PASSED]
    connections[slot, at.PASSED] = 0


@compiled
def large_program(key: int, version: int, side: int, size: int, is_open: bool, big: Any, meta: Any) -> int:
    """The program by which a frame is read piece by piece. GATHERED if its bytes are gathered instead; TOO_LARGE if they are
    too many for that, alone or with those of other frames, and no row of `large` is free. Only a frame that `is_open` continues
    in the next packet.
    """
    if not is_open:
        return GATHERED
    program = np.int64(GATHERED)
    full = too_much(size, meta)
    if size > meta[at.M_LARGE_FROM] or full:
        program = big.programs[key, version, side]
        if not meta[at.M_LARGE_FREE]:
            meta[at.M_LARGE_WANTED] += 1
            program = np.int64(GATHERED)
    return TOO_LARGE if program < 0 and (size > FRAME_MAX or full) else int(program)


@compiled
def reserved(streams: Any, place: int) -> int:
    """Bytes of the arena that are reserved for an open frame."""
    return 0 if streams[place, at.OPEN_SLOT] >= at.LARGE_BASE else int(streams[place, at.OPEN_SIZE])


@compiled
def begun(streams: Any, place: int, data: Any, body: int, end: int, big: Any) -> Any:
    """Takes the first bytes of a large frame's body; returns how far it got."""
    reached = take_large(data, body, end, streams[place, at.OPEN_SLOT] - at.LARGE_BASE, big)
    streams[place, at.OPEN_LEFT] += end - reached
    return reached


@compiled
def has_id(data: Any, cursor: int, length: int, slot: int, connections: Any, ids: Any) -> bool:
    """Whether a request has the client id of the earlier ones, which has `length` bytes."""
    same = length == connections[slot, at.ID_LENGTH]
    for k in range(length if same else 0):
        same &= ids[slot, k] == data[cursor + REQUEST_HEAD + k]
    return bool(same)


@compiled
def is_plain(key: int, version: int, header: Any) -> bool:
    """Whether requests of a version have a header that takes the short path."""
    return bool(0 <= key < at.KEYS and 0 <= version < at.VERSIONS and header[key, version])


@compiled
def next_request(data: Any, cursor: int, have: int, slot: int, arrays: Any) -> bool:
    """Whether a packet begins with what looks like a request although one is open, as `RequestFramer.follows`."""
    if have - cursor < REQUEST_HEAD:
        return False
    size, key, version = int32(data, cursor), int16(data, cursor + 4), int16(data, cursor + 6)
    length = int16(data, cursor + 12)
    if size < 8 or size > RESYNC_FRAME_MAX or length <= 0 or cursor + REQUEST_HEAD + length > have:
        return False
    return bool(is_plain(key, version, arrays.header) and has_id(data, cursor, length, slot, arrays.connections, arrays.ids))


@compiled
def waits(correlation: int, entry: int, count: int, queues: Any) -> bool:
    """Whether an id is that of one of `count` requests, from an entry of their chain on."""
    for _ in range(count):
        if queues[entry, at.Q_CORRELATION] == correlation:
            return True
        entry = queues[entry, at.Q_NEXT]
    return False


@compiled
def next_response(data: Any, cursor: int, have: int, slot: int, connections: Any, queues: Any) -> bool:
    """Whether a packet may begin with a response to a waiting request although one is open: if `ResponseFramer.follows` says
    so, or if so many requests wait that searching their ids takes longer than the reference path.
    """
    passed, behind = connections[slot, at.PASSED], connections[slot, at.COUNT] - 1  # the first one has the open response
    if have - cursor < RESPONSE_HEAD or int32(data, cursor) < 4 or int32(data, cursor) > RESYNC_FRAME_MAX:
        return False
    if passed + behind > IDS_SEARCHED:
        return True
    correlation, following = int32(data, cursor + 4), queues[connections[slot, at.HEAD], at.Q_NEXT]
    head = connections[slot, at.PASSED_HEAD]
    return bool(waits(correlation, following, behind, queues) or waits(correlation, head, passed, queues))


@compiled
def expected(
    data: Any, cursor: int, size: int, length: int, correlation: int, slot: int, connections: Any, queues: Any, ids: Any,
    meta: Any,
) -> bool:  # fmt: skip
    """Whether a request may have this size, has the client id of the earlier ones, and has another correlation id than the last
    one that waits.
    """
    if size > FRAME_BYTES_MAX or not has_id(data, cursor, length, slot, connections, ids):
        return False
    if connections[slot, at.COUNT] + connections[slot, at.PASSED] >= meta[at.M_WAITING_MAX]:
        return False
    waiting = connections[slot, at.COUNT] - connections[slot, at.ONE_WAYS] - connections[slot, at.TAKEN]
    if waiting > 0:
        return bool(connections[slot, at.WAITING] != correlation)
    return not (connections[slot, at.PASSED] and queues[connections[slot, at.PASSED_TAIL], at.Q_CORRELATION] == correlation)


@compiled
def is_one_way(data: Any, body: int, end: int, steps: Any, key: int, version: int) -> int:
    """1 for a Produce request with acks=0, 0 for other requests, -1 if that cannot be read."""
    if key != PRODUCE:
        return 0
    acks = acks_of(data, body, end, steps, version)
    if acks == UNREAD:
        return -1
    return 1 if acks == 0 else 0


@compiled
def requests(
    data: Any, cursor: int, have: int, end: int, offset: int, time_ns: int, ref: int, position: int, order: int, place: int,
    arrays: Any,
) -> Any:  # fmt: skip
    """Takes bytes of the client from `offset` of its stream on, of which those before `have` were captured. Returns where the
    reference path takes over.
    """
    connections, streams, queues, meta, big = arrays.connections, arrays.streams, arrays.queues, arrays.meta, arrays.big
    arena, bodies = arrays.arena, arrays.bodies
    slot, base = place >> 1, offset - cursor
    if streams[place, at.OPEN_START] >= 0:
        if next_request(data, cursor, have, slot, arrays):
            return cursor
        cursor = go_on(streams, place, data, cursor, have, end, position, arena, bodies, big)
        if streams[place, at.OPEN_LEFT]:
            return cursor
        entry = connections[slot, at.TAIL]
        close_frame(streams, place, queues, entry, at.Q_FRAME, time_ns, ref)
        meta[at.M_OPEN] -= reserved(streams, place)
        queues[entry, at.Q_FLAGS] |= streams[place, at.OPEN_FLAGS]
        queues[entry, at.Q_DONE] = 1
        connections[slot, at.REQUEST_FRAMES] += 1
        connections[slot, at.REQUEST_BYTES] += queues[entry, at.Q_FRAME + at.F_SIZE]
    while have - cursor >= REQUEST_HEAD:
        size, key, version = int32(data, cursor), int16(data, cursor + 4), int16(data, cursor + 6)
        correlation, length = int32(data, cursor + 8), int16(data, cursor + 12)
        body, stop = cursor + REQUEST_HEAD + max(length, 0), cursor + 4 + size
        if not is_plain(key, version, arrays.header) or body > min(stop, have) or not expected(
            data, cursor, size, length, correlation, slot, connections, queues, arrays.ids, meta
        ):  # fmt: skip
            return cursor
        seen = min(stop, have)
        cut = SNAPLEN if seen < min(stop, end) else 0
        program = large_program(key, version, 0, size, stop > end and not cut, big, meta)
        if program == TOO_LARGE:
            return cursor
        one_way = is_one_way(data, body, seen, arrays.steps, key, version)
        if one_way < 0:
            return cursor
        if one_way and connections[slot, at.ONE_WAYS] == ONE_WAY_MAX:
            if not queues[connections[slot, at.HEAD], at.Q_ONE_WAY]:
                return cursor
            emit_one_way(order, place, connections, queues, arrays.rows, arrays.fresh, meta)
        entry = chain(connections, slot, queues, meta)
        queues[entry, at.Q_ONE_WAY] = one_way
        queues[entry, at.Q_FLAGS] = cut
        if one_way:
            connections[slot, at.ONE_WAYS] += 1
        else:
            connections[slot, at.WAITING] = correlation
        connections[slot, at.NUMBER] += 1
        if correlation <= connections[slot, at.CORRELATION]:
            connections[slot, at.FALLING] = 1
        connections[slot, at.CORRELATION] = correlation
        queues[entry, at.Q_LOSSES], queues[entry, at.Q_PASSED_NS] = connections[slot, at.LOSSES], at.NONE
        if program >= 0:
            kept, filled = open_large(program, size + 4, HEAD_KEPT, big, meta) + at.LARGE_BASE, 0
            queues[entry, at.Q_SLOT] = kept
        else:
            room = seen if cut else stop
            kept = add_body(data, body, seen, room, program_code(key, version, 0), arena, bodies, meta)
            filled = bodies[0, kept] + seen - body
            queues[entry, at.Q_SLOT] = at.SLOT_BASE + kept
        queues[entry, at.Q_NUMBER] = connections[slot, at.NUMBER]
        queues[entry, at.Q_KEY] = key
        queues[entry, at.Q_VERSION] = version
        queues[entry, at.Q_CORRELATION] = correlation
        if stop > end:
            queues[entry, at.Q_DONE] = 0
            open_frame(streams, place, base + cursor, size + 4, time_ns, ref, position, stop - end, kept, filled, cut)
            meta[at.M_OPEN] += reserved(streams, place)
            if program >= 0:
                return begun(streams, place, data, body, end, big)
            return end
        queues[entry, at.Q_DONE] = 1
        whole_frame(queues, entry, at.Q_FRAME, base + cursor, size + 4, time_ns, ref, position)
        connections[slot, at.REQUEST_FRAMES] += 1
        connections[slot, at.REQUEST_BYTES] += size + 4
        cursor = stop
    return cursor


@compiled
def responses(
    data: Any, cursor: int, have: int, end: int, offset: int, time_ns: int, ref: int, position: int, order: int, place: int,
    arrays: Any,
) -> Any:  # fmt: skip
    """Takes bytes of the broker from `offset` of its stream on, of which those before `have` were captured. Returns where the
    reference path takes over.
    """
    connections, streams, queues, meta, big = arrays.connections, arrays.streams, arrays.queues, arrays.meta, arrays.big
    rows, arena, bodies = arrays.rows, arrays.arena, arrays.bodies
    slot, base, resynced = place >> 1, offset - cursor, 0
    if streams[place, at.OPEN_START] >= 0 and streams[place, at.OPEN_SLOT] == at.SEARCHING:
        if not resumes(data, cursor, have, end, ref, position, place, arrays):
            return cursor
        resynced = RESYNCED
    elif streams[place, at.OPEN_START] >= 0:
        if next_response(data, cursor, have, slot, connections, queues):
            return cursor
        cursor = go_on(streams, place, data, cursor, have, end, position, arena, bodies, big)
        if streams[place, at.OPEN_LEFT]:
            return cursor
        close_frame(streams, place, rows, meta[at.M_ROWS], at.R_RESPONSE, time_ns, ref)
        meta[at.M_OPEN] -= reserved(streams, place)
        flags = streams[place, at.OPEN_FLAGS]
        response(streams[place, at.OPEN_SLOT], flags, order, place, arrays)
    while have - cursor >= RESPONSE_HEAD and connections[slot, at.COUNT] > connections[slot, at.ONE_WAYS]:
        size, correlation = int32(data, cursor), int32(data, cursor + 4)
        stop, entry = cursor + 4 + size, requested(correlation, slot, connections, queues)
        if size < 4 or size > RESPONSE_BYTES_MAX or entry < 0 or not queues[entry, at.Q_DONE]:
            return cursor
        seen = min(stop, have)
        cut = SNAPLEN if seen < min(stop, end) else 0
        program = large_program(
            queues[entry, at.Q_KEY], queues[entry, at.Q_VERSION], 1, size, stop > end and not cut, big, meta
        )
        if program == TOO_LARGE:
            return cursor
        if seen - cursor < RESPONSE_HEAD + 2 and queues[entry, at.Q_KEY] == API_VERSIONS:
            return cursor
        while connections[slot, at.HEAD] != entry:
            if queues[connections[slot, at.HEAD], at.Q_ONE_WAY]:
                emit_one_way(order, place, connections, queues, rows, arrays.fresh, meta)
            else:
                pass_over(connections, slot, queues, time_ns)
        body = cursor + RESPONSE_HEAD
        if program >= 0:
            kept = open_large(program, size + 4, 0, big, meta) + at.LARGE_BASE
            open_frame(streams, place, base + cursor, size + 4, time_ns, ref, position, stop - end, kept, 0, 0)
            connections[slot, at.TAKEN] = 1
            return begun(streams, place, data, body, end, big)
        kept = add_body(data, body, seen, seen if cut else stop, UNKNOWN, arena, bodies, meta)
        if stop > end:
            filled = bodies[0, kept] + seen - body
            open_frame(streams, place, base + cursor, size + 4, time_ns, ref, position, stop - end, kept, filled, cut)
            meta[at.M_OPEN] += reserved(streams, place)
            connections[slot, at.TAKEN] = 1
            return end
        whole_frame(rows, meta[at.M_ROWS], at.R_RESPONSE, base + cursor, size + 4, time_ns, ref, position)
        flags = cut | resynced
        response(kept, flags, order, place, arrays)
        cursor, resynced = stop, 0
    if cursor < end and have < end and lost(data, cursor, have, end, base + cursor, time_ns, ref, position, place, arrays):
        return end
    return cursor


@compiled
def add_row(outcome: int, order: int, place: int, connections: Any, queues: Any, rows: Any, fresh: Any, meta: Any) -> Any:
    """Moves the oldest request to the table of rows; returns its entry. The caller adds the row's response."""
    slot, row = place >> 1, meta[at.M_ROWS]
    entry = connections[slot, at.HEAD]
    unchain(connections, slot, queues, meta)
    meta[at.M_ROWS] += 1
    if connections[slot, at.IDENTITY] < 0:
        connections[slot, at.IDENTITY] = meta[at.M_IDENTITIES]
        meta[at.M_IDENTITIES] += 1
        fresh[meta[at.M_FRESH]] = slot
        meta[at.M_FRESH] += 1
    rows[row, at.R_ORDER] = order
    rows[row, at.R_IDENTITY] = connections[slot, at.IDENTITY]
    rows[row, at.R_NAME] = connections[slot, at.NAME]
    rows[row, at.R_NUMBER] = queues[entry, at.Q_NUMBER]
    rows[row, at.R_KEY] = queues[entry, at.Q_KEY]
    rows[row, at.R_VERSION] = queues[entry, at.Q_VERSION]
    rows[row, at.R_CORRELATION] = queues[entry, at.Q_CORRELATION]
    rows[row, at.R_FLAGS] = connections[slot, at.FLAGS] | queues[entry, at.Q_FLAGS]
    rows[row, at.R_REQUEST_SLOT] = queues[entry, at.Q_SLOT]
    rows[row, at.R_OUTCOME], rows[row, at.R_AGE] = outcome, at.NONE
    rows[row, at.R_CUT] = at.CUT_REQUEST if queues[entry, at.Q_FLAGS] & SNAPLEN else 0
    for part in range(at.FRAME):
        rows[row, at.R_REQUEST + part] = queues[entry, at.Q_FRAME + part]
    connections[slot, at.ROWS] += 1
    return entry


@compiled
def emit_one_way(order: int, place: int, connections: Any, queues: Any, rows: Any, fresh: Any, meta: Any) -> None:
    """Decides the oldest request, which expects no response, as `Pairing._emit_one_way`."""
    without_response(ONE_WAY, order, place, connections, queues, rows, fresh, meta)
    connections[place >> 1, at.ONE_WAYS] -= 1


@compiled
def without_response(
    outcome: int, order: int, place: int, connections: Any, queues: Any, rows: Any, fresh: Any, meta: Any
) -> None:
    """Decides the oldest request, which has no response."""
    row = meta[at.M_ROWS]
    add_row(outcome, order, place, connections, queues, rows, fresh, meta)
    rows[row, at.R_RTT] = rows[row, at.R_PREVIOUS] = rows[row, at.R_IN_FLIGHT] = at.NONE
    rows[row, at.R_RESPONSE_SLOT] = NO_BODY
    for part in range(at.FRAME):
        rows[row, at.R_RESPONSE + part] = at.NONE


@compiled
def response(kept: int, flags: int, order: int, place: int, arrays: Any) -> None:
    """Decides the oldest request with its response, whose frame is in the row, as `Conversation.emit`."""
    connections, streams, queues, meta = arrays.connections, arrays.streams, arrays.queues, arrays.meta
    rows, bodies = arrays.rows, arrays.bodies
    slot, row = place >> 1, meta[at.M_ROWS]
    entry = add_row(ANSWERED_ROW, order, place, connections, queues, rows, arrays.fresh, meta)
    connections[slot, at.TAKEN] = 0
    key, version = queues[entry, at.Q_KEY], queues[entry, at.Q_VERSION]
    if kept >= at.LARGE_BASE:
        rows[row, at.R_RESPONSE_SLOT] = kept
    else:
        rows[row, at.R_RESPONSE_SLOT] = at.SLOT_BASE + kept
        if key == API_VERSIONS and int16(arrays.arena, bodies[0, kept]) == REFUSED:
            version = REFUSED_VERSION
        bodies[2, kept] = program_code(key, version, 1)
    closed = streams[place ^ 1, at.FIN_NS]
    if closed != at.NONE and rows[row, at.R_RESPONSE + at.F_FIRST_NS] > closed:
        flags |= LATE
        meta[at.M_LATE] += 1
    rows[row, at.R_FLAGS] |= flags
    if flags & SNAPLEN:
        rows[row, at.R_CUT] |= at.CUT_RESPONSE
    if flags & RESYNCED:
        rows[row, at.R_CUT] |= at.RESYNCED_RESPONSE
    if flags & TRUNCATED:
        rows[row, at.R_CUT] |= at.UNENDED_RESPONSE
    rows[row, at.R_RTT] = streams[place ^ 1, at.RTT_MIN]
    rows[row, at.R_PREVIOUS] = connections[slot, at.ANSWERED]
    rows[row, at.R_IN_FLIGHT] = 1 + without_response_yet(slot, rows[row, at.R_RESPONSE + at.F_LAST_NS], connections, queues)
    if flags & TRUNCATED:
        return
    connections[slot, at.ANSWERED] = rows[row, at.R_RESPONSE + at.F_LAST_NS]
    connections[slot, at.RESPONSE_FRAMES] += 1
    connections[slot, at.RESPONSE_BYTES] += rows[row, at.R_RESPONSE + at.F_SIZE]


@compiled
def response_without_end(order: int, place: int, arrays: Any) -> None:
    """Ends a connection within a response, as `Framer.finish`."""
    streams, rows, meta = arrays.streams, arrays.rows, arrays.meta
    body = streams[place, at.OPEN_SLOT]
    arrays.bodies[1, body] = streams[place, at.OPEN_AT]
    meta[at.M_OPEN] -= streams[place, at.OPEN_SIZE]
    close_frame(streams, place, rows, meta[at.M_ROWS], at.R_RESPONSE, at.NONE, at.NONE)
    response(body, TRUNCATED, order, place, arrays)


@compiled
def without_response_yet(slot: int, until_ns: int, connections: Any, queues: Any) -> Any:
    """Counts complete requests that wait for a response, as `Pairing.waiting`."""
    if connections[slot, at.COUNT] == 0:
        return 0
    entry, last, came = connections[slot, at.HEAD], connections[slot, at.TAIL], 0
    end = queues[entry, at.Q_NUMBER] + IN_FLIGHT_DATED if until_ns != at.NONE else at.NONE
    while queues[entry, at.Q_NUMBER] < end:
        if not queues[entry, at.Q_ONE_WAY]:
            if not queues[entry, at.Q_DONE] or queues[entry, at.Q_FRAME + at.F_LAST_NS] > until_ns:
                return came
            came += 1
        if entry == last:
            return came
        entry = queues[entry, at.Q_NEXT]
    begun = not queues[last, at.Q_DONE] and not queues[last, at.Q_ONE_WAY]
    return connections[slot, at.COUNT] - connections[slot, at.ONE_WAYS] - begun


@compiled
def emit_outstanding(
    order: int, time_ns: int, slot: int, losing: bool, connections: Any, queues: Any, rows: Any, fresh: Any, meta: Any
) -> None:
    """Decides the outstanding requests of a connection that ends, now or when it was closed, as `Pairing.finish`."""
    ended = connections[slot, at.ENDED]
    decided = connections[slot, at.CLOSING_NS] if ended and connections[slot, at.CLOSING_NS] != at.NONE else time_ns
    rejoin(connections, slot, queues)
    while connections[slot, at.COUNT]:
        entry = connections[slot, at.HEAD]
        if queues[entry, at.Q_ONE_WAY]:
            emit_one_way(order, 2 * slot, connections, queues, rows, fresh, meta)
            continue
        row, passed_ns = meta[at.M_ROWS], queues[entry, at.Q_PASSED_NS]
        outcome = UNANSWERED + ended if passed_ns == at.NONE else SKIPPED_ROW
        if connections[slot, at.LOSSES] > queues[entry, at.Q_LOSSES] or (losing and passed_ns == at.NONE):
            outcome = LOST_ROW
        without_response(outcome, order, 2 * slot, connections, queues, rows, fresh, meta)
        rows[row, at.R_AGE] = (decided if passed_ns == at.NONE else passed_ns) - rows[row, at.R_REQUEST + at.F_LAST_NS]


@compiled
def settled_run(slots: Any, order: int, time_ns: int, behind: bool, arrays: Any) -> int:
    """Returns how many of these own connections, from the first on, are settled and end here. Their outstanding requests are
    decided. The run stops at a connection with outstanding requests if a row of the reference path comes first (`behind`) or
    there is no room.
    """
    connections, streams, queues, rows, meta = arrays.connections, arrays.streams, arrays.queues, arrays.rows, arrays.meta
    for k in range(slots.size):
        slot = slots[k]
        if not settled(slot, connections, streams):
            return k
        count = connections[slot, at.COUNT] + connections[slot, at.PASSED]
        if count and (behind or meta[at.M_ROWS] + count > rows.shape[0]):
            return k
        server = 2 * slot + 1 - connections[slot, at.CLIENT]
        if unended(server, connections, streams):
            response_without_end(order, server, arrays)
        losing = given_up(server, connections, streams, meta)
        emit_outstanding(order, time_ns, slot, losing, connections, queues, rows, arrays.fresh, meta)
    return int(slots.size)
