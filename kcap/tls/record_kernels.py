"""What is done to each record before the library opens it and after that, compiled for those of many directions.

In: records of many directions as they are on the wire, later what the library gave of them. Out: nonces and additional data;
then application data. Law: as `RecordOpener` does it for one record. Source: RFC 5246 section 6.2.3.3, RFC 6655, RFC 7905, RFC
8446 sections 5.2 and 5.3.
"""

from typing import Any

from kcap.kernels import compiled, routine
from kcap.tls.handshake import CLOSE_NOTIFY, NEW_SESSION_TICKET, USER_CANCELED
from kcap.tls.hello_kernels import message_size
from kcap.tls.records import ALERT, APPLICATION, HANDSHAKE, HEADER, NONCE

COUNTED = 13
"""Bytes of the additional data before TLS 1.3, which begins with the record's number."""


@routine
def nonces(
    wire: Any, bounds: Any, numbers: Any, salts: Any, carried: Any, tags: Any, nonce: Any, header: Any, starts: Any
) -> None:  # fmt: skip
    """Makes nonces and additional data, and finds where the ciphertext starts, of records in `wire`: rows of direction, start
    and end in `bounds`, where the end is -1 for what is no such record.

    By direction: `numbers` of its next record, `salts` is its IV, `carried` how many bytes of a nonce stand before the
    ciphertext, `tags` how many stand behind it, -1 in TLS 1.3, where the header alone is additional data.
    """
    for i in range(bounds.shape[0]):
        direction, at, end = bounds[i, 0], bounds[i, 1], bounds[i, 2]
        number, explicit, tag = numbers[direction], carried[direction], tags[direction]
        numbers[direction] += 1
        starts[i] = min(at + HEADER + explicit, end)
        if end < at:
            continue
        for k in range(NONCE):
            nonce[i, k] = salts[direction, k]
        for k in range(8):
            digit = number >> (56 - 8 * k) & 255
            if explicit:
                nonce[i, 4 + k] = wire[at + HEADER + k]
            else:
                nonce[i, 4 + k] ^= digit
            header[i, k] = digit
        first = 0 if tag < 0 else 8
        for k in range(HEADER):
            header[i, first + k] = wire[at + k]
        if tag >= 0:
            size = end - starts[i] - tag
            header[i, 11], header[i, 12] = size >> 8 & 255, size & 255


@routine
def contents(wire: Any, bounds: Any, firsts: Any, counts: Any, tags: Any, plain: Any, sizes: Any) -> None:
    """Leaves the application data of records in `plain`, where what the library gave stands one behind the other, and nothing
    of those that say nothing (close_notify, and session tickets of TLS 1.3).

    Of each direction `counts` records were opened, the first of which is `firsts` of `bounds`; `sizes` are theirs, and become
    those of the data. `counts` becomes how many there are up to the first one that is anything else.
    """
    low, top, passed, kept = 0, 0, 0, 0
    for direction in range(counts.size):
        count, counts[direction] = counts[direction], 0
        going = True
        for k in range(count):
            size = sizes[passed]
            passed += 1
            at, low = low, low + size
            kind = int(wire[bounds[firsts[direction] + k, 1]])
            if tags[direction] < 0:
                while size > 0 and plain[at + size - 1] == 0:
                    size -= 1
                size -= 1
                kind = int(plain[at + size]) if size >= 0 else -1
            if kind != APPLICATION:
                going = going and says_nothing(plain, at, size, kind, tags[direction] < 0)
                size = 0
            if not going:
                continue
            for i in range(size):
                plain[top + i] = plain[at + i]
            top += size
            sizes[kept] = size
            kept += 1
            counts[direction] += 1


@compiled
def says_nothing(plain: Any, at: int, size: int, kind: int, newest: bool) -> bool:
    """Whether the content of a record is an alert that closes, behind which a FIN follows, or of TLS 1.3 (`newest`) session
    tickets, which say how a later connection may begin (RFC 8446 sections 6.1, 4.6.1).
    """
    if kind == ALERT:
        return size == 2 and (plain[at + 1] == CLOSE_NOTIFY or (newest and plain[at + 1] == USER_CANCELED))
    end = at + size
    if kind != HANDSHAKE or not newest or not size:
        return False
    while at < end and plain[at] == NEW_SESSION_TICKET:
        ticket = message_size(plain, at, end)
        if not ticket:
            return False
        at += ticket
    return at == end
