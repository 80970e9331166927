"""Opens the records of many directions in compiled code: keys, nonces, additional data, calls of libcrypto, application data.

In: records of many directions as they are on the wire, and traffic secrets. Out: keys; application data. Law: the results equal
those of `traffic_keys` and `RecordOpener` for each one. Source: RFC 5246 section 6.2.3.3, RFC 6655, RFC 7905, RFC 8446 sections
5.2, 5.3 and 7.3.
"""

from typing import Any

from kcap.kernels import called, compiled, copied, routine
from kcap.tls.handshake import CLOSE_NOTIFY, NEW_SESSION_TICKET, USER_CANCELED
from kcap.tls.hello_kernels import message_size
from kcap.tls.libcrypto import SET_TAG, TAG_BYTES
from kcap.tls.records import ALERT, APPLICATION, HANDSHAKE, HEADER, NONCE

COUNTED = 13
"""Bytes of the additional data before TLS 1.3, which begins with the record's number."""
KEY_BYTES, KEYS_WIDTH = 32, 48
K_IV, K_CIPHER, K_CARRIED, K_TAG = 32, 44, 45, 46
"""Columns of a row of keys after the key itself: the IV, as long as a nonce; the index of the cipher in `suites.CIPHERS`; the
number of nonce bytes before the ciphertext of a record; and that of tag bytes after it, 0 in TLS 1.3, where the header is the
only additional data.
"""
DIGEST_ROOM, ROOM = 64, 72
"""Bytes of the longest digest, and of the room that `derived` writes to: the digest, followed by its length."""


@routine
def derived(hmac: int, deriving: Any, secrets: int, hash_bytes: int, infos: int, info_sizes: Any, room: Any, at: int,
            keys: Any, key_bytes: int) -> bool:  # fmt: skip
    """Derives key and IV of traffic secrets of TLS 1.3, which are `hash_bytes` long and adjacent; False if libcrypto fails.

    `hmac` and `deriving` come from `libcrypto`. `secrets`, `infos` and `at` are the addresses of the secrets, of the HkdfLabels
    of key and IV, and of `room`, which has ROOM bytes.
    """
    init, update, final = deriving[0], deriving[1], deriving[2]
    for row in range(keys.shape[0]):
        secret, size, info = secrets + row * hash_bytes, hash_bytes, infos
        for which in range(2):
            good = called(init, hmac, secret, size, 0) > 0 and called(update, hmac, info, info_sizes[which]) > 0
            if not (good and called(final, hmac, at, at + DIGEST_ROOM, DIGEST_ROOM) > 0):
                return False
            if which:
                copied(room, 0, NONCE, keys[row], K_IV)
            else:
                copied(room, 0, key_bytes, keys[row], 0)
            secret, size, info = 0, 0, info + info_sizes[0]  # the same key again
    return True


@routine
def deciphered(
    context: int, opening: Any, ciphers: Any, addresses: Any, keys: Any, bounds: Any, firsts: Any, lasts: Any, starts: Any,
    sizes: Any, counts: Any,
) -> None:  # fmt: skip
    """Makes libcrypto decrypt records of GCM and ChaCha20-Poly1305, up to the first one of each direction that does not
    authenticate. `sizes` gets the sizes of the contents, `counts` their number per direction.

    `context` and `opening` come from `libcrypto`, and `ciphers` has the address of the cipher of each direction. `addresses`
    are those of `keys`, nonces, additional data, the wire, the output of all contents, and room for an integer.
    """
    init, update, control, final = opening[0], opening[1], opening[2], opening[3]
    of_keys, nonce, header = addresses[0], addresses[1], addresses[2]
    wire, out, written = addresses[3], addresses[4], addresses[5]
    before, passed = 0, 0
    for direction in range(counts.size):
        counts[direction] = 0
        if firsts[direction] == lasts[direction]:
            continue
        cipher = ciphers[direction]
        good = called(init, context, 0 if cipher == before else cipher, 0, of_keys + KEYS_WIDTH * direction, 0) > 0
        before = cipher
        aside = COUNTED if keys[direction, K_TAG] else HEADER
        i = firsts[direction]
        while good and i < lasts[direction]:
            size, at = bounds[i, 2] - starts[i] - TAG_BYTES, wire + starts[i]
            good = (
                size >= 0
                and called(init, context, 0, 0, 0, nonce + NONCE * i) > 0
                and called(update, context, 0, written, header + COUNTED * i, aside) > 0
                and (size == 0 or called(update, context, out, written, at, size) > 0)
                and called(control, context, SET_TAG, TAG_BYTES, at + size) > 0
                and called(final, context, out + size, written) > 0
            )
            if good:
                sizes[passed] = size
                passed, out, i = passed + 1, out + size, i + 1
                counts[direction] += 1


@routine
def nonces(wire: Any, bounds: Any, numbers: Any, keys: Any, nonce: Any, header: Any, starts: Any) -> None:
    """Makes nonces and additional data of records in `wire`, and finds where their ciphertext starts. `bounds` has rows of
    direction, start and end; the end is -1 for anything that is no such record. `numbers` has the number of the next record of
    each direction, and `keys` its keys.
    """
    for i in range(bounds.shape[0]):
        direction, at, end = bounds[i, 0], bounds[i, 1], bounds[i, 2]
        number, explicit, tag = numbers[direction], int(keys[direction, K_CARRIED]), int(keys[direction, K_TAG])
        numbers[direction] += 1
        starts[i] = min(at + HEADER + explicit, end)
        if end < at:
            continue
        for k in range(NONCE):
            nonce[i, k] = keys[direction, K_IV + k]
        for k in range(8):
            digit = number >> (56 - 8 * k) & 255
            if explicit:
                nonce[i, 4 + k] = wire[at + HEADER + k]
            else:
                nonce[i, 4 + k] ^= digit
            header[i, k] = digit
        first = 8 if tag else 0
        for k in range(HEADER):
            header[i, first + k] = wire[at + k]
        if tag:
            size = end - starts[i] - tag
            header[i, 11], header[i, 12] = size >> 8 & 255, size & 255


@routine
def contents(wire: Any, bounds: Any, firsts: Any, counts: Any, keys: Any, plain: Any, sizes: Any) -> None:
    """Reduces the concatenated contents in `plain` to the application data. Records without data (close_notify, and session
    tickets of TLS 1.3) leave nothing.

    For each direction, `counts` records were opened, the first of which is `firsts` of `bounds`. `sizes` has the sizes of the
    contents, and gets those of the data. `counts` gets their number up to the first record that is anything else.
    """
    low, top, passed, kept = 0, 0, 0, 0
    for direction in range(counts.size):
        count, counts[direction] = counts[direction], 0
        going, newest = True, keys[direction, K_TAG] == 0
        for k in range(count):
            size = sizes[passed]
            passed += 1
            at, low = low, low + size
            kind = int(wire[bounds[firsts[direction] + k, 1]])
            if newest:
                while size > 0 and plain[at + size - 1] == 0:
                    size -= 1
                size -= 1
                kind = int(plain[at + size]) if size >= 0 else -1
            if kind != APPLICATION:
                going = going and says_nothing(plain, at, size, kind, newest)
                size = 0
            if not going:
                continue
            copied(plain, at, at + size, plain, top)
            top += size
            sizes[kept] = size
            kept += 1
            counts[direction] += 1


@compiled
def says_nothing(plain: Any, at: int, size: int, kind: int, newest: bool) -> bool:
    """Whether the content of a record is a closing alert, which a FIN follows, or in TLS 1.3 (`newest`) a session ticket, which
    is for a later connection (RFC 8446 sections 6.1, 4.6.1).
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
