"""Connections with TLS in the walk over packets, and frames and pairing over their plaintext, compiled.

In: packets of a connection in good order, later the plaintext of its records. Out: a log of its packets and its state before
the first of them; then rows. Law: plaintext gives the rows that the framers make of it, with times and places of the packets
that carried its ciphertext; a connection of which a record or a frame is not simple stops there, for all of the walk.
"""

from typing import Any

from kcap.fastpath.frame_kernels import REQUEST_HEAD, RESPONSE_HEAD, lacks_room, requests, responses
from kcap.fastpath.layout import (
    CLIENT,
    D_CIPHER,
    D_FIRST,
    D_HIGH,
    D_LAST,
    D_LOW,
    D_PLACE,
    D_STREAM,
    ENDING,
    F_FIRST_NS,
    F_FIRST_REF,
    F_LOW,
    FIN_AT,
    FIN_NS,
    FLIGHT_RECORDS,
    FULL_ROOM,
    G_AT,
    G_INDEX,
    G_LENGTH,
    G_OFFSET,
    G_PLACE,
    G_RTT,
    G_TAKEN,
    H_AT,
    H_CONNECTION,
    H_END,
    H_KIND,
    H_NS,
    H_OFFSET,
    H_SIDE,
    HALF,
    LAST,
    LIVE,
    M_FULL,
    M_LOGGED,
    M_ROWS,
    M_TLS,
    M_TOUCHED,
    NEXT,
    NONE,
    OPEN,
    OPEN_LOW,
    OPEN_NS,
    OPEN_REF,
    OPEN_START,
    P_AT,
    P_END,
    P_HIGH,
    P_LENGTH,
    P_LOW,
    P_NS,
    P_ORDER,
    P_POSITION,
    P_REF,
    P_RTT,
    Q_DONE,
    Q_FRAME,
    R_RESPONSE,
    RST_NS,
    RTT_MIN,
    SEALED,
    SHAKING,
    TAIL,
    TALKING,
    TLS,
    TOUCHED,
    U_ENDING,
    U_LAST,
    U_SLOT,
    U_STREAMS,
)  # fmt: skip
from kcap.fastpath.open_kernels import first_request
from kcap.kernels import compiled, int32, routine, uint16
from kcap.tls.handshake import CLIENT_HELLO
from kcap.tls.records import ALERT, APPLICATION, HANDSHAKE, HEADER

SHORTEST, LONGEST = 16, (1 << 14) + 2048
"""Bytes behind the header of a record that is read here."""
FIRST_TYPE, LAST_TYPE = 20, 24
"""Content types of records."""
VERSION = 0x0303
HELLO_HEAD = 43
"""Bytes from the header of the record of a ClientHello to the end of its random."""
FILE_SHIFT = 40


# -- in the walk ----------------------------------------------------------------------------------------------------------
@compiled
def touched(slot: int, connections: Any, streams: Any, undo: Any, meta: Any) -> bool:
    """Notes the state of a connection before its first packet of this walk; True."""
    if connections[slot, TOUCHED]:
        return True
    row = undo[meta[M_TOUCHED]]
    meta[M_TOUCHED] += 1
    connections[slot, TOUCHED] = meta[M_TOUCHED]
    row[U_SLOT], row[U_LAST] = slot, connections[slot, LAST]
    for k in range(ENDING):
        row[U_ENDING + k] = connections[slot, RST_NS + k]
    for side in range(2):
        first = U_STREAMS + side * (OPEN_START + 2)
        for k in range(OPEN_START):
            row[first + k] = streams[2 * slot + side, k]
        row[first + OPEN_START] = streams[2 * slot + side, FIN_AT]
        row[first + OPEN_START + 1] = streams[2 * slot + side, FIN_NS]
    return True


@compiled
def seals(data: Any, numbers: Any, index: int, place: int, connections: Any, streams: Any, undo: Any, meta: Any) -> bool:
    """Whether a packet is one of a connection with TLS, or begins with a ClientHello; notes that connection's state."""
    slot = place >> 1
    live = connections[slot, LIVE]
    if connections[slot, TOUCHED] or (connections[slot, TLS] and live in (TALKING, HALF)):
        return bool(touched(slot, connections, streams, undo, meta))
    at = numbers[4, index]
    if (
        live != OPEN
        or not meta[M_TLS]
        or place & 1 != connections[slot, CLIENT]
        or numbers[5, index] < HELLO_HEAD
        or data[at] != HANDSHAKE
        or data[at + 1] != VERSION >> 8
        or data[at + 5] != CLIENT_HELLO
    ):
        return False
    touched(slot, connections, streams, undo, meta)
    connections[slot, LIVE], connections[slot, TLS] = TALKING, SHAKING
    return True


@compiled
def logged(sealed: bool, numbers: Any, index: int, place: int, connections: Any, streams: Any, log: Any, meta: Any) -> None:
    """Notes a packet that was taken, of a connection with TLS."""
    if not sealed:
        return
    row = log[meta[M_LOGGED]]
    meta[M_LOGGED] += 1
    row[G_INDEX], row[G_PLACE], row[G_AT], row[G_LENGTH] = index, place, numbers[4, index], numbers[6, index]
    row[G_OFFSET] = streams[place, NEXT] - numbers[6, index]
    row[G_RTT] = streams[2 * (place >> 1) + connections[place >> 1, CLIENT], RTT_MIN]
    row[G_TAKEN] = 0


# -- ciphertext -----------------------------------------------------------------------------------------------------------
@routine
def gathered(data: Any, pieces: Any, cipher: Any) -> None:
    """Copies the pieces of this window to where they belong in the ciphertext of all streams."""
    for piece in range(pieces.shape[0]):
        at, length = pieces[piece, P_AT], pieces[piece, P_LENGTH]
        if at >= 0:
            top = pieces[piece, P_END] - length
            for k in range(length):
                cipher[top + k] = data[at + k]


@routine
def framed(cipher: Any, ends: Any, bounds: Any) -> int:
    """Finds the records of application data and alerts in the ciphertext of streams that end at `ends`; how many there are, of
    which those that have room stand in `bounds` as stream, start, end. A record of any other kind has the end -1 and is the
    last of its stream.
    """
    count, start = 0, 0
    for stream in range(ends.size):
        at, end = start, ends[stream]
        start = end
        while end - at >= HEADER:
            size = uint16(cipher, at + 3)
            kind = cipher[at] == APPLICATION or cipher[at] == ALERT
            simple = kind and uint16(cipher, at + 1) == VERSION and size >= SHORTEST and size <= LONGEST
            stop = at + HEADER + size
            if simple and stop > end:
                break
            if count < bounds.shape[0]:
                bounds[count, 0], bounds[count, 1], bounds[count, 2] = stream, at, stop if simple else -1
            count += 1
            if not simple:
                break
            at = stop
    return count


@routine
def flights(
    data: Any, log: Any, mine: Any, lasts: Any, times: Any, rests: Any, sizes: Any, cipher: Any, found: Any
) -> int:  # fmt: skip
    """Cuts the beginnings of both streams of connections into records; how many there are.

    The rows `mine` of `log` are those of each connection in turn, up to `lasts`. `rests` has what earlier walks brought of each
    stream's next record, of these `sizes`. `cipher` has room for all these bytes, which are gathered there, and `found` for
    FLIGHT_RECORDS of each stream.
    """
    count, first, room, passed = 0, 0, 0, 0
    for connection in range(lasts.size):
        last, size0, size1 = lasts[connection], sizes[connection, 0], sizes[connection, 1]
        low0 = room  # streams 0 and 1 of this connection: begin, next record and end in `cipher`, offset of `cipher` in it
        low1 = low0 + size0
        room += size0 + size1
        for k in range(first, last):
            if not log[mine[k], G_PLACE] & 1:
                low1 += log[mine[k], G_LENGTH]
            room += log[mine[k], G_LENGTH]
        for i in range(size0):
            cipher[low0 + i] = rests[passed + i]
        for i in range(size1):
            cipher[low1 + i] = rests[passed + size0 + i]
        passed += size0 + size1
        at0, at1, end0, end1, base0, base1 = low0, low1, low0 + size0, low1 + size1, 0, 0
        left0, left1 = FLIGHT_RECORDS, FLIGHT_RECORDS
        for k in range(first, last):
            row = log[mine[k]]
            side, length = row[G_PLACE] & 1, row[G_LENGTH]
            base, at, end, left = (base1, at1, end1, left1) if side else (base0, at0, end0, left0)
            if not left:
                continue
            if end == (low1 + size1 if side else low0 + size0):
                base = row[G_OFFSET] - end
            for i in range(length):
                cipher[end + i] = data[row[G_AT] + i]
            end += length
            while left and end - at >= HEADER:
                size, kind = uint16(cipher, at + 3), int(cipher[at])
                simple = kind >= FIRST_TYPE and kind <= LAST_TYPE and cipher[at + 1] == VERSION >> 8 and size <= LONGEST
                stop = at + HEADER + size
                if simple and stop > end:
                    break
                out = found[count]
                count += 1
                left -= 1
                out[H_CONNECTION], out[H_SIDE], out[H_KIND] = connection, side, kind if simple else -1
                out[H_AT], out[H_END], out[H_OFFSET], out[H_NS] = at, stop, base + at, times[row[G_INDEX]]
                if not simple:
                    left = 0
                at = stop
            if side:
                base1, at1, end1, left1 = base, at, end, left
            else:
                base0, at0, end0, left0 = base, at, end, left
        first = last
    return count


# -- plaintext ------------------------------------------------------------------------------------------------------------
@compiled
def begins(
    plain: Any, at: int, end: int, place: int, connections: Any, ids: Any, header: Any, names: Any, blobs: Any, sizes: Any,
    meta: Any,
) -> bool:  # fmt: skip
    """Whether the first plaintext of a connection is a request. One that begins with a response is for the reference path."""
    slot = place >> 1
    if place & 1 != connections[slot, CLIENT]:
        connections[slot, TOUCHED] = -connections[slot, TOUCHED]
    elif first_request(plain, at, end, slot, connections, ids, header, names, blobs, sizes, meta):
        connections[slot, TLS] = SEALED
    return bool(connections[slot, TLS] == SEALED)


@routine
def taken(
    plain: Any, at: int, end: int, offset: int, piece: Any, order: int, rtt: int, place: int, connections: Any, streams: Any,
    queues: Any, ids: Any, header: Any, steps: Any, rows: Any, arena: Any, bodies: Any, fresh: Any, meta: Any, big: Any,
    names: Any, blobs: Any, sizes: Any,
) -> Any:  # fmt: skip
    """Takes plaintext of one stream that one packet carried; where it came to."""
    begun = connections[place >> 1, TLS] != SHAKING
    if not begun and not begins(plain, at, end, place, connections, ids, header, names, blobs, sizes, meta):
        return at
    client = connections[place >> 1, CLIENT]
    if place & 1 == client:
        return requests(
            plain, at, end, end, offset, piece[P_NS], piece[P_REF], piece[P_POSITION], order, place, connections, streams,
            queues, ids, header, steps, rows, arena, bodies, fresh, meta, big,
        )  # fmt: skip
    if streams[place ^ 1, FIN_NS] != NONE and piece[P_NS] >= streams[place ^ 1, FIN_NS]:  # late, which is reported in order
        connections[place >> 1, TOUCHED] = -abs(connections[place >> 1, TOUCHED])
        return at
    newest = streams[place ^ 1, RTT_MIN]
    streams[place ^ 1, RTT_MIN] = rtt  # as it was when the packet came
    stop = responses(
        plain, at, end, end, offset, piece[P_NS], piece[P_REF], piece[P_POSITION], order, place, connections, streams, queues,
        rows, arena, bodies, fresh, meta, big,
    )  # fmt: skip
    streams[place ^ 1, RTT_MIN] = newest
    return stop


@compiled
def begun_before(piece: Any, place: int, connections: Any, streams: Any, queues: Any, rows: Any, meta: Any) -> None:
    """The newest frame of a stream began in an earlier packet, which brought a part of its header."""
    slot = place >> 1
    if streams[place, OPEN_START] >= 0:
        streams[place, OPEN_NS], streams[place, OPEN_REF] = piece[P_NS], piece[P_REF]
        streams[place, OPEN_LOW] = min(streams[place, OPEN_LOW], piece[P_POSITION])
    elif place & 1 == connections[slot, CLIENT]:
        entry = queues[connections[slot, TAIL]]
        if entry[Q_DONE]:
            entry[Q_FRAME + F_FIRST_NS], entry[Q_FRAME + F_FIRST_REF] = piece[P_NS], piece[P_REF]
            entry[Q_FRAME + F_LOW] = min(entry[Q_FRAME + F_LOW], piece[P_POSITION])
    else:
        row = rows[meta[M_ROWS] - 1]
        row[R_RESPONSE + F_FIRST_NS], row[R_RESPONSE + F_FIRST_REF] = piece[P_NS], piece[P_REF]
        row[R_RESPONSE + F_LOW] = min(row[R_RESPONSE + F_LOW], piece[P_POSITION])


@routine
def delivered(
    plain: Any, records: Any, first: int, pieces: Any, done: Any, held: Any, bases: Any, spans: Any, count: Any,
    connections: Any, streams: Any, queues: Any, ids: Any, header: Any, steps: Any, rows: Any, arena: Any, bodies: Any,
    fresh: Any, meta: Any, big: Any, names: Any, blobs: Any, sizes: Any,
) -> int:  # fmt: skip
    """Takes the plaintext of records from `first` on; returns where it stopped: there is no room for the next one's frames.

    By stream: `done` is how far its plaintext was taken, `held` the piece that brought the next byte where a frame's header is
    not complete, `bases` the offset of the gathered plaintext's first byte in that of the stream. `spans` gets stream,
    plaintext start and end, and stream start and end of each piece, `count[0]` of them.
    """
    for at in range(first, records.shape[0]):
        stream, place, low, high = records[at, D_STREAM], records[at, D_PLACE], records[at, D_LOW], records[at, D_HIGH]
        slot = place >> 1
        if connections[slot, TOUCHED] < 0:
            continue
        if low < 0:
            connections[slot, TOUCHED] = -connections[slot, TOUCHED]
            continue
        if lacks_room(high - done[stream], rows, bodies, arena, meta):
            meta[M_FULL] = FULL_ROOM
            return at
        piece, position = records[at, D_FIRST], low
        order, rtt = pieces[records[at, D_LAST], P_ORDER], pieces[records[at, D_LAST], P_RTT]
        head = REQUEST_HEAD if place & 1 == connections[slot, CLIENT] else RESPONSE_HEAD
        while position < high:
            end = min(high, pieces[piece, P_END] - records[at, D_CIPHER] + low)
            row = spans[count[0]]
            count[0] += 1
            row[0], row[1], row[2] = stream, bases[stream] + position, bases[stream] + end
            row[3], row[4] = pieces[piece, P_LOW], pieces[piece, P_HIGH]
            while done[stream] < end:
                start, stop = done[stream], end
                early = start < position
                if early:
                    earlier = pieces[held[stream]]
                    if earlier[P_REF] >> FILE_SHIFT != pieces[piece, P_REF] >> FILE_SHIFT:
                        connections[slot, TOUCHED] = -connections[slot, TOUCHED]
                        break
                    if end - start >= 4 and int32(plain, start) >= 0:
                        stop = min(end, start + 4 + int32(plain, start))
                reached = taken(
                    plain, start, stop, bases[stream] + start, pieces[piece], order, rtt, place, connections, streams, queues,
                    ids, header, steps, rows, arena, bodies, fresh, meta, big, names, blobs, sizes,
                )  # fmt: skip
                if early and reached > start:
                    begun_before(pieces[held[stream]], place, connections, streams, queues, rows, meta)
                done[stream] = reached
                if reached == stop:
                    continue
                if end - reached >= head or streams[place, OPEN_START] >= 0 or connections[slot, TOUCHED] < 0:
                    connections[slot, TOUCHED] = -abs(connections[slot, TOUCHED])
                elif reached >= position:
                    held[stream] = piece
                break
            if connections[slot, TOUCHED] < 0:
                break
            position = end
            piece += 1
    return int(records.shape[0])
