"""The constants of connections, compiled: records of `kcap.identities` from the fast path's arrays.

In: slots. Out: a record for each. Law: it equals the record of the identity that the reference path gives to the connection.
Its uid is `identities.uid_of`, a BLAKE2b (RFC 7693) of one block.
"""

from typing import Any, Final

import numpy as np

from kcap.fastpath import layout as at
from kcap.identities import ENDPOINT, ENDPOINTS_AT, NUMBER_AT, PORT_AT, RECORD, TLS_AT, UID_BYTES
from kcap.kernels import compiled

BLOCK, WORDS, ROUNDS = 128, 16, 12
MASK: Final = (1 << 64) - 1
BAR, MINUS, DIGIT = b"|-0"
SQUARES: Final = (
    0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1, 0x510E527FADE682D1, 0x9B05688C2B3E6C1F,
    0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
)  # fmt: skip
"""The initial values of the hash: bits of the square roots of the first primes."""
FIRST: Final = SQUARES[0] ^ 0x01010000 ^ UID_BYTES
"""The first of them combined with the parameters: no key, and the size of the digest."""
START: Final = np.array([FIRST, *SQUARES[1:], *SQUARES[:6], SQUARES[6] ^ MASK, SQUARES[7]], np.uint64)
"""The words of the hash at the beginning of its last block."""
ORDER: Final = np.array([list(map(int, row, [16] * WORDS)) for row in (
    "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
    "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
)], np.int64)  # fmt: skip
"""Order in which each round takes the words of the block. The first row follows the last one."""


def records_of(slots: Any, connections: Any, streams: Any, keys: Any) -> Any:
    """The records of these connections, as one row of bytes each."""
    made = np.zeros((len(slots), RECORD.size), np.uint8)
    identify(slots, connections, streams, keys, np.zeros(BLOCK, np.uint8), np.zeros(2 * WORDS, np.uint64), made)
    return made


@compiled
def identify(slots: Any, connections: Any, streams: Any, keys: Any, seed: Any, words: Any, made: Any) -> None:
    """Writes the record of each connection to a row of `made`, which holds zeros. `seed` and `words` are scratch space for
    uids.
    """
    for k in range(slots.size):
        slot = slots[k]
        client = 2 * slot + connections[slot, at.CLIENT]
        size = streams[client, at.FLOW_SIZE]
        half = size // 2 - 2
        for side in range(2):
            first = ENDPOINTS_AT + side * ENDPOINT
            made[k, first] = half
            for place in range(half):
                made[k, first + 1 + place] = keys[client, side * half + place]
            for place in range(2):
                made[k, first + PORT_AT + place] = keys[client, 2 * (half + side) + place]
        number = connections[slot, at.PLACE]
        for place in range(8):
            made[k, NUMBER_AT + place] = number >> 56 - 8 * place & 0xFF
        made[k, TLS_AT] = connections[slot, at.TLS] != at.CLEAR
        for place in range(size):
            seed[place] = keys[2 * slot, place]
        isn = streams[client, at.ISN]
        top = appended(connections[slot, at.FIRST_NS], seed, size)
        top = appended(-1 if isn == at.NONE else isn, seed, top)
        uid = hashed(seed, top, words)
        for place in range(UID_BYTES):
            made[k, place] = uid >> 8 * place & 0xFF


@compiled
def appended(value: int, seed: Any, top: int) -> int:
    """Writes a bar and a number in decimal digits to `seed[top:]`; returns where they end."""
    seed[top] = BAR
    top += 1
    if value < 0:
        seed[top] = MINUS
        top += 1
    rest = value = abs(value)
    size = 1
    while rest >= 10:
        rest //= 10
        size += 1
    for place in range(top + size - 1, top - 1, -1):
        seed[place] = DIGIT + value % 10
        value //= 10
    return top + size


@compiled
def hashed(seed: Any, size: int, words: Any) -> Any:
    """BLAKE2b of `seed[:size]`, of which eight bytes are the digest, the lowest first. `words` holds state and block."""
    for place in range(size, BLOCK):
        seed[place] = 0
    for place in range(WORDS):
        word = 0
        for byte in range(8 * place + 7, 8 * place - 1, -1):
            word = word << 8 | int(seed[byte])
        words[place], words[WORDS + place] = START[place], word
    words[12] = int(START[12]) ^ size
    for step in range(ROUNDS):
        for k in range(8):
            turn, order = k >> 2, step % len(ORDER)  # the columns of the state, then its diagonals
            mix(
                words, k & 3, 4 + (k + turn & 3), 8 + (k + 2 * turn & 3), 12 + (k + 3 * turn & 3),
                WORDS + ORDER[order, 2 * k], WORDS + ORDER[order, 2 * k + 1],
            )  # fmt: skip
    return int(START[0]) ^ int(words[0]) ^ int(words[8])


@compiled
def mix(words: Any, a: int, b: int, c: int, d: int, x: int, y: int) -> None:
    """The function G of the hash (RFC 7693 section 3.1)."""
    one, two, three, four = int(words[a]), int(words[b]), int(words[c]), int(words[d])
    one = (one + two + int(words[x])) & MASK
    four = turned(four ^ one, 32)
    three = (three + four) & MASK
    two = turned(two ^ three, 24)
    one = (one + two + int(words[y])) & MASK
    four = turned(four ^ one, 16)
    three = (three + four) & MASK
    words[a], words[b], words[c], words[d] = one, turned(two ^ three, 63), three, four


@compiled
def turned(word: int, count: int) -> Any:
    """A 64-bit word, rotated to the right."""
    return (word >> count | word << 64 - count) & MASK
