"""The encrypted flights of simple TLS 1.3 handshakes, which nearly all connections have, compiled.

In: the first records of connections whose hellos agree, later the contents of those that opened with the handshake keys. Out:
the records to be tried with these keys; the messages up to the Finished of both sides. Law: anything that is not simple is left
to a session: a record that does not open or holds a part of a message, or data before the end. Source: RFC 8446 sections 4 and
5.
"""

from typing import Any, Final

from kcap.kernels import compiled, copied, routine
from kcap.tls.handshake import (
    CERTIFICATE,
    CERTIFICATE_REQUEST,
    CERTIFICATE_VERIFY,
    COMPRESSED_CERTIFICATE,
    ENCRYPTED_EXTENSIONS,
    FINISHED,
)
from kcap.tls.hello_kernels import R_AT, R_END, R_KIND, R_SIDE, message_size
from kcap.tls.records import APPLICATION, CHANGE_CIPHER_SPEC, HANDSHAKE, HEADER

R_OFFSET, R_NS = R_END + 1, R_END + 2
"""Further columns of a record: its stream offset, and the time of the packet that completed it."""
CLIENT, SERVER = 0, 1
HELLOS: Final = 2
"""Number of records before the flights, which are not encrypted."""
F_READ, F_NUMBER, F_SPENT, F_NS, F_TOP, F_ROW, F_CHAIN = 0, 2, 4, 6, 8, 9, 10
"""Columns of a handshake that was read; those before F_TOP exist once per side: stream offset after its records, number of
encrypted records, their bytes, and time of the first one; then where its messages end among all stored ones, their rows and the
chains of certificates. F_READ is -1 if the handshake is not simple.
"""
READ_WIDTH: Final = 11
M_SIDE, M_SIZE, M_RECORD, M_NS = range(4)
"""Columns of a message: its side; its stored bytes (-1 for a chain of certificates, which is stored elsewhere); the bytes of
its record without the header; and the time of the record.
"""
MESSAGE_WIDTH: Final = 4


@routine
def attempts(records: Any, cuts: Any, chosen: Any, lengths: Any, bounds: Any) -> int:
    """Finds the records that may belong to the flights of the connections `chosen`, whose records are between `cuts`: the
    client's up to one as long as a Finished, and the server's before these. Returns their number. `lengths` has two lengths of
    a record with a Finished, and two of one with an alert, which takes its place if the handshake failed.

    `bounds` gets rows of direction, start and end; the direction of the client is twice the index among the chosen ones.
    """
    count = 0
    for place in range(chosen.size):
        first, last = cuts[chosen[place]], cuts[chosen[place] + 1]
        begun, size = first, lengths[place, 2]
        while begun < last and not (records[begun, R_SIDE] == CLIENT and records[begun, R_KIND] == APPLICATION):
            begun += 1
        if begun < last:
            size = records[begun, R_END] - records[begun, R_AT] - HEADER
        if size in (lengths[place, 2], lengths[place, 3]):
            continue
        at, more = begun, True
        while at < last and more:
            if records[at, R_SIDE] == CLIENT and records[at, R_KIND] == APPLICATION:
                bounds[count, 0], bounds[count, 1], bounds[count, 2] = 2 * place, records[at, R_AT], records[at, R_END]
                count += 1
                size = records[at, R_END] - records[at, R_AT] - HEADER
                more = size not in (lengths[place, 0], lengths[place, 1])
            at += 1
        for at in range(first, begun):
            if records[at, R_SIDE] == SERVER and records[at, R_KIND] == APPLICATION:
                bounds[count, 0], bounds[count, 1], bounds[count, 2] = 2 * place + 1, records[at, R_AT], records[at, R_END]
                count += 1
    return count


@routine
def read_flights(
    wire: Any, records: Any, cuts: Any, chosen: Any, plain: Any, firsts: Any, highs: Any, found: Any, kept: Any, rows: Any,
    chains: Any,
) -> None:  # fmt: skip
    """Reads the handshakes of the connections `chosen`, as `attempts` does: `found` gets a row for each.

    The opened records of each direction are those from `firsts` on, up to the next direction's. The content of each ends at its
    entry of `highs` in `plain`. `kept` gets the messages that a session needs, `rows` their descriptions, and `chains` the
    positions in `plain` of those with certificates.
    """
    for place in range(chosen.size):
        out, first, last = found[place], cuts[chosen[place]], cuts[chosen[place] + 1]
        for k in range(READ_WIDTH):
            out[k] = found[place - 1, k] if place and k >= F_TOP else 0
        over0, over1, simple, at = False, False, True, first
        while at < last and simple and not (over0 and over1):
            record = records[at]
            side, kind, start, end = record[R_SIDE], record[R_KIND], record[R_AT] + HEADER, record[R_END]
            if over1 if side else over0:
                simple = side == SERVER  # a request may be here
            elif kind == APPLICATION:
                opened = firsts[2 * place + side] + out[F_NUMBER + side]
                number = -1
                if opened < firsts[2 * place + side + 1]:
                    number = flight_record(
                        plain, highs[opened - 1] if opened else 0, highs[opened], record, out, kept, rows, chains
                    )
                simple = number >= 0
                if side:
                    over1 = number == FINISHED
                else:
                    over0 = number == FINISHED
                out[F_READ + side] = record[R_OFFSET] + end - start + HEADER
            else:
                simple = kind == CHANGE_CIPHER_SPEC or (kind == HANDSHAKE and at - first < HELLOS)
                if simple and kind == HANDSHAKE:
                    keep(wire, start, end - start, record, out, kept, rows)
                out[F_READ + side] = record[R_OFFSET] + end - start + HEADER
            at += 1
        if not (simple and over0 and over1):
            for k in range(F_TOP, READ_WIDTH):
                out[k] = found[place - 1, k] if place else 0
            out[F_READ] = -1


@compiled
def flight_record(plain: Any, low: int, high: int, record: Any, out: Any, kept: Any, rows: Any, chains: Any) -> int:
    """Reads the content of a record, with its type and padding. Returns the number of its last message; -1 if it holds anything
    else than complete messages of a flight, or a message after a Finished.
    """
    side = record[R_SIDE]
    if not out[F_NUMBER + side]:
        out[F_NS + side] = record[R_NS]
    out[F_NUMBER + side] += 1
    out[F_SPENT + side] += record[R_END] - record[R_AT] - HEADER
    end, number = low + content_size(plain, low, high), -1
    while low < end:
        size = message_size(plain, low, end)
        if size == 0 or number == FINISHED or not in_flight(int(plain[low])):
            return -1
        number = int(plain[low])
        if number in (CERTIFICATE, COMPRESSED_CERTIFICATE):
            chains[out[F_CHAIN], 0], chains[out[F_CHAIN], 1] = low, low + size
            out[F_CHAIN] += 1
            keep(plain, low, -1, record, out, kept, rows)
        else:
            keep(plain, low, 0 if number == CERTIFICATE_VERIFY else size, record, out, kept, rows)
        low += size
    return number


@compiled
def keep(data: Any, start: int, size: int, record: Any, out: Any, kept: Any, rows: Any) -> None:
    """Stores a message of a record; `size` is as in M_SIZE."""
    row = rows[out[F_ROW]]
    out[F_ROW] += 1
    row[M_SIDE], row[M_SIZE], row[M_NS] = record[R_SIDE], size, record[R_NS]
    row[M_RECORD] = record[R_END] - record[R_AT] - HEADER
    copied(data, start, start + size, kept, out[F_TOP])
    out[F_TOP] += max(size, 0)


@compiled
def content_size(plain: Any, low: int, high: int) -> int:
    """Bytes of the handshake messages in the content of a record, without its type and the zeros after it; 0 if it holds
    anything else.
    """
    while high > low and plain[high - 1] == 0:
        high -= 1
    return high - 1 - low if high > low and plain[high - 1] == HANDSHAKE else 0


@compiled
def in_flight(number: int) -> bool:
    """Whether a message comes after the hellos (RFC 8446 section 4)."""
    return number in (
        ENCRYPTED_EXTENSIONS, CERTIFICATE, CERTIFICATE_REQUEST, CERTIFICATE_VERIFY, COMPRESSED_CERTIFICATE, FINISHED,
    )  # fmt: skip
