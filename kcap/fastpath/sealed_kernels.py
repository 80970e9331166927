"""Connections with TLS in the walk over packets, and frames and pairing over their plaintext, compiled.

In: packets of a well-behaved connection, later the plaintext of its records. Out: a log of its packets and its state before the
first of them; then rows. Law: plaintext gives the rows that the framers make of it, with times and places of the packets that
carried its ciphertext. A connection with a record or a frame that is not simple stops there, for the whole walk.
"""

from typing import Any

from kcap.fastpath import layout as at
from kcap.fastpath.frame_kernels import REQUEST_HEAD, RESPONSE_HEAD, lacks_room, requests, responses
from kcap.fastpath.open_kernels import first_request
from kcap.kernels import compiled, copied, int32, routine, uint16
from kcap.model import REF_FILE_SHIFT
from kcap.tls.handshake import CLIENT_HELLO
from kcap.tls.records import ALERT, APPLICATION, HANDSHAKE, HEADER

SHORTEST, LONGEST = 16, (1 << 14) + 2048
"""Bytes after the header of a record that can be read here."""
FIRST_TYPE, LAST_TYPE = 20, 24
"""Content types of records (RFC 8446 section 5.1)."""
VERSION = 0x0303
HELLO_HEAD = 43
"""Bytes from the header of a ClientHello's record to the end of its random."""


# -- in the walk ----------------------------------------------------------------------------------------------------------
@compiled
def touched(slot: int, connections: Any, streams: Any, undo: Any, meta: Any) -> bool:
    """Stores the state of a connection before its first packet of this walk; returns True."""
    if connections[slot, at.TOUCHED]:
        return True
    row = undo[meta[at.M_TOUCHED]]
    meta[at.M_TOUCHED] += 1
    connections[slot, at.TOUCHED] = meta[at.M_TOUCHED]
    row[at.U_SLOT], row[at.U_LAST] = slot, connections[slot, at.LAST]
    for k in range(at.ENDING):
        row[at.U_ENDING + k] = connections[slot, at.RST_NS + k]
    for side in range(2):
        first = at.U_STREAMS + side * (at.OPEN_START + 2)
        for k in range(at.OPEN_START):
            row[first + k] = streams[2 * slot + side, k]
        row[first + at.OPEN_START] = streams[2 * slot + side, at.FIN_AT]
        row[first + at.OPEN_START + 1] = streams[2 * slot + side, at.FIN_NS]
    return True


@compiled
def seals(data: Any, numbers: Any, index: int, place: int, connections: Any, streams: Any, undo: Any, meta: Any) -> bool:
    """Whether a packet belongs to a connection with TLS, or begins with a ClientHello; stores that connection's state."""
    slot = place >> 1
    live = connections[slot, at.LIVE]
    if connections[slot, at.TOUCHED] or (connections[slot, at.TLS] and live in (at.TALKING, at.HALF)):
        return bool(touched(slot, connections, streams, undo, meta))
    cursor = numbers[4, index]
    if (
        live != at.OPEN
        or not meta[at.M_TLS]
        or place & 1 != connections[slot, at.CLIENT]
        or numbers[5, index] < HELLO_HEAD
        or data[cursor] != HANDSHAKE
        or data[cursor + 1] != VERSION >> 8
        or data[cursor + 5] != CLIENT_HELLO
    ):
        return False
    touched(slot, connections, streams, undo, meta)
    connections[slot, at.LIVE], connections[slot, at.TLS] = at.TALKING, at.SHAKING
    return True


@compiled
def logged(sealed: bool, numbers: Any, index: int, place: int, connections: Any, streams: Any, log: Any, meta: Any) -> None:
    """Logs a packet that was taken, of a connection with TLS."""
    if not sealed:
        return
    row = log[meta[at.M_LOGGED]]
    meta[at.M_LOGGED] += 1
    row[at.G_INDEX], row[at.G_PLACE], row[at.G_AT], row[at.G_LENGTH] = index, place, numbers[4, index], numbers[6, index]
    row[at.G_OFFSET] = streams[place, at.NEXT] - numbers[6, index]
    row[at.G_RTT] = streams[2 * (place >> 1) + connections[place >> 1, at.CLIENT], at.RTT_MIN]
    row[at.G_TAKEN] = 0


# -- ciphertext -----------------------------------------------------------------------------------------------------------
@routine
def gathered(data: Any, pieces: Any, cipher: Any) -> None:
    """Copies the pieces of this window to their positions in the ciphertext of all streams."""
    for piece in range(pieces.shape[0]):
        cursor, length = pieces[piece, at.P_AT], pieces[piece, at.P_LENGTH]
        if cursor >= 0:
            copied(data, cursor, cursor + length, cipher, pieces[piece, at.P_END] - length)


@routine
def framed(cipher: Any, ends: Any, bounds: Any) -> int:
    """Finds the records of application data and alerts in the ciphertext of streams that end at `ends`. Returns their number;
    those that fit are in `bounds` as stream, start, end. A record of any other kind has the end -1 and is the last one of its
    stream.
    """
    count, start = 0, 0
    for stream in range(ends.size):
        cursor, end = start, ends[stream]
        start = end
        while end - cursor >= HEADER:
            size = uint16(cipher, cursor + 3)
            kind = cipher[cursor] == APPLICATION or cipher[cursor] == ALERT
            simple = kind and uint16(cipher, cursor + 1) == VERSION and size >= SHORTEST and size <= LONGEST
            stop = cursor + HEADER + size
            if simple and stop > end:
                break
            if count < bounds.shape[0]:
                bounds[count, 0], bounds[count, 1], bounds[count, 2] = stream, cursor, stop if simple else -1
            count += 1
            if not simple:
                break
            cursor = stop
    return count


@routine
def flights(
    data: Any, log: Any, mine: Any, lasts: Any, times: Any, rests: Any, sizes: Any, cipher: Any, found: Any
) -> int:  # fmt: skip
    """Splits the beginnings of both streams of connections into records; returns their number.

    The rows `mine` of `log` are those of each connection in turn, up to `lasts`. `rests` has the bytes of each stream's next
    record from earlier walks, of these `sizes`. `cipher` has room for all these bytes, which are gathered there, and `found`
    for FLIGHT_RECORDS of each stream.
    """
    count, first, room, passed = 0, 0, 0, 0
    for connection in range(lasts.size):
        last, size0, size1 = lasts[connection], sizes[connection, 0], sizes[connection, 1]
        low0 = room  # streams 0 and 1: begin, next record and end in `cipher`, and the offset of `cipher`
        low1 = low0 + size0
        room += size0 + size1
        for k in range(first, last):
            if not log[mine[k], at.G_PLACE] & 1:
                low1 += log[mine[k], at.G_LENGTH]
            room += log[mine[k], at.G_LENGTH]
        copied(rests, passed, passed + size0, cipher, low0)
        copied(rests, passed + size0, passed + size0 + size1, cipher, low1)
        passed += size0 + size1
        at0, at1, end0, end1, base0, base1 = low0, low1, low0 + size0, low1 + size1, 0, 0
        left0, left1 = at.FLIGHT_RECORDS, at.FLIGHT_RECORDS
        for k in range(first, last):
            row = log[mine[k]]
            side, length = row[at.G_PLACE] & 1, row[at.G_LENGTH]
            base, cursor, end, left = (base1, at1, end1, left1) if side else (base0, at0, end0, left0)
            if not left:
                continue
            if end == (low1 + size1 if side else low0 + size0):
                base = row[at.G_OFFSET] - end
            copied(data, row[at.G_AT], row[at.G_AT] + length, cipher, end)
            end += length
            while left and end - cursor >= HEADER:
                size, kind = uint16(cipher, cursor + 3), int(cipher[cursor])
                simple = kind >= FIRST_TYPE and kind <= LAST_TYPE and cipher[cursor + 1] == VERSION >> 8 and size <= LONGEST
                stop = cursor + HEADER + size
                if simple and stop > end:
                    break
                out = found[count]
                count += 1
                left -= 1
                out[at.H_CONNECTION], out[at.H_SIDE], out[at.H_KIND] = connection, side, kind if simple else -1
                out[at.H_AT], out[at.H_END], out[at.H_OFFSET] = cursor, stop, base + cursor
                out[at.H_NS] = times[row[at.G_INDEX]]
                if not simple:
                    left = 0
                cursor = stop
            if side:
                base1, at1, end1, left1 = base, cursor, end, left
            else:
                base0, at0, end0, left0 = base, cursor, end, left
        first = last
    return count


# -- plaintext ------------------------------------------------------------------------------------------------------------
@compiled
def begins(plain: Any, cursor: int, end: int, place: int, arrays: Any) -> bool:
    """Whether the first plaintext of a connection is a request. A connection that begins with a response is left to the
    reference path.
    """
    connections = arrays.connections
    slot = place >> 1
    if place & 1 != connections[slot, at.CLIENT]:
        connections[slot, at.TOUCHED] = -connections[slot, at.TOUCHED]
    elif first_request(plain, cursor, end, slot, arrays):
        connections[slot, at.TLS] = at.SEALED
    return bool(connections[slot, at.TLS] == at.SEALED)


@routine
def taken(plain: Any, cursor: int, end: int, offset: int, piece: Any, order: int, rtt: int, place: int, arrays: Any) -> Any:
    """Takes plaintext of one stream that one packet carried; returns how far it got."""
    connections, streams = arrays.connections, arrays.streams
    begun = connections[place >> 1, at.TLS] != at.SHAKING
    if not begun and not begins(plain, cursor, end, place, arrays):
        return cursor
    client = connections[place >> 1, at.CLIENT]
    if place & 1 == client:
        return requests(
            plain, cursor, end, end, offset, piece[at.P_NS], piece[at.P_REF], piece[at.P_POSITION], order, place, arrays
        )
    if (
        streams[place ^ 1, at.FIN_NS] != at.NONE and piece[at.P_NS] >= streams[place ^ 1, at.FIN_NS]
    ):  # late, which has to be reported in order
        connections[place >> 1, at.TOUCHED] = -abs(connections[place >> 1, at.TOUCHED])
        return cursor
    newest = streams[place ^ 1, at.RTT_MIN]
    streams[place ^ 1, at.RTT_MIN] = rtt  # as it was when the packet came
    stop = responses(
        plain, cursor, end, end, offset, piece[at.P_NS], piece[at.P_REF], piece[at.P_POSITION], order, place, arrays
    )
    streams[place ^ 1, at.RTT_MIN] = newest
    return stop


@compiled
def begun_before(piece: Any, place: int, connections: Any, streams: Any, queues: Any, rows: Any, meta: Any) -> None:
    """Corrects the newest frame of a stream, which began in an earlier packet that carried a part of its header."""
    slot = place >> 1
    if streams[place, at.OPEN_START] >= 0:
        streams[place, at.OPEN_NS], streams[place, at.OPEN_REF] = piece[at.P_NS], piece[at.P_REF]
        streams[place, at.OPEN_LOW] = min(streams[place, at.OPEN_LOW], piece[at.P_POSITION])
    elif place & 1 == connections[slot, at.CLIENT]:
        entry = queues[connections[slot, at.TAIL]]
        if entry[at.Q_DONE]:
            entry[at.Q_FRAME + at.F_FIRST_NS], entry[at.Q_FRAME + at.F_FIRST_REF] = piece[at.P_NS], piece[at.P_REF]
            entry[at.Q_FRAME + at.F_LOW] = min(entry[at.Q_FRAME + at.F_LOW], piece[at.P_POSITION])
    else:
        row = rows[meta[at.M_ROWS] - 1]
        row[at.R_RESPONSE + at.F_FIRST_NS], row[at.R_RESPONSE + at.F_FIRST_REF] = piece[at.P_NS], piece[at.P_REF]
        row[at.R_RESPONSE + at.F_LOW] = min(row[at.R_RESPONSE + at.F_LOW], piece[at.P_POSITION])


@routine
def delivered(
    plain: Any, records: Any, first: int, pieces: Any, done: Any, held: Any, bases: Any, spans: Any, count: Any, arrays: Any
) -> int:
    """Takes the plaintext of records from `first` on. Returns where it stopped because there was no room for the next record's
    frames.

    For each stream, `done` is how far its plaintext was taken, `held` is the piece that carried the next byte if a frame's
    header is not complete, and `bases` is the offset of the gathered plaintext's first byte in that of the stream. `spans` gets
    stream, plaintext start and end, and stream start and end of each piece, `count[0]` of them.
    """
    connections, streams, rows, meta = arrays.connections, arrays.streams, arrays.rows, arrays.meta
    for number in range(first, records.shape[0]):
        stream, place = records[number, at.D_STREAM], records[number, at.D_PLACE]
        low, high = records[number, at.D_LOW], records[number, at.D_HIGH]
        slot = place >> 1
        if connections[slot, at.TOUCHED] < 0:
            continue
        if low < 0:
            connections[slot, at.TOUCHED] = -connections[slot, at.TOUCHED]
            continue
        if lacks_room(high - done[stream], rows, arrays.bodies, arrays.arena, meta):
            meta[at.M_FULL] = at.FULL_ROOM
            return number
        piece, position = records[number, at.D_FIRST], low
        order, rtt = pieces[records[number, at.D_LAST], at.P_ORDER], pieces[records[number, at.D_LAST], at.P_RTT]
        head = REQUEST_HEAD if place & 1 == connections[slot, at.CLIENT] else RESPONSE_HEAD
        while position < high:
            end = min(high, pieces[piece, at.P_END] - records[number, at.D_CIPHER] + low)
            row = spans[count[0]]
            count[0] += 1
            row[0], row[1], row[2] = stream, bases[stream] + position, bases[stream] + end
            row[3], row[4] = pieces[piece, at.P_LOW], pieces[piece, at.P_HIGH]
            while done[stream] < end:
                start, stop = done[stream], end
                early = start < position
                if early:
                    earlier = pieces[held[stream]]
                    if earlier[at.P_REF] >> REF_FILE_SHIFT != pieces[piece, at.P_REF] >> REF_FILE_SHIFT:
                        connections[slot, at.TOUCHED] = -connections[slot, at.TOUCHED]
                        break
                    if end - start >= 4 and int32(plain, start) >= 0:
                        stop = min(end, start + 4 + int32(plain, start))
                reached = taken(plain, start, stop, bases[stream] + start, pieces[piece], order, rtt, place, arrays)
                if early and reached > start:
                    begun_before(pieces[held[stream]], place, connections, streams, arrays.queues, rows, meta)
                done[stream] = reached
                if reached == stop:
                    continue
                if end - reached >= head or streams[place, at.OPEN_START] >= 0 or connections[slot, at.TOUCHED] < 0:
                    connections[slot, at.TOUCHED] = -abs(connections[slot, at.TOUCHED])
                elif reached >= position:
                    held[stream] = piece
                break
            if connections[slot, at.TOUCHED] < 0:
                break
            position = end
            piece += 1
    return int(records.shape[0])
