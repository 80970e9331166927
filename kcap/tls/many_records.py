"""Opens the records of many directions together.

In: records of application data as they are on the wire, keys and record numbers of their directions. Out: plaintext. Law: the
result for a record is that of `RecordOpener`. Each direction ends before the first record that holds anything else or does not
authenticate.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from kcap.tls.key_schedule import info_of, traffic_keys
from kcap.tls.libcrypto import functions
from kcap.tls.record_ciphers import KEYS, RecordOpener, place_of
from kcap.tls.record_kernels import COUNTED, K_CIPHER, K_TAG, KEYS_WIDTH, ROOM, contents, deciphered, derived, nonces
from kcap.tls.records import HEADER, NONCE, TLS13
from kcap.tls.suites import CIPHERS, Suite


class OpenedRecords(NamedTuple):
    """The plaintext of records."""

    plain: Any
    """The plaintext of all records, concatenated."""
    sizes: Any
    """Size of each record's plaintext, bytes."""
    counts: Any
    """Number of records of each direction that were opened."""
    firsts: Any
    """Index of the first of the given records of each direction."""
    lasts: Any
    """Index at which those of the next direction begin."""
    starts: Any
    """Offset at which the ciphertext of each given record starts."""


class DecryptedRecords(NamedTuple):
    """Records as the library decrypted them."""

    plain: Any
    """Contents of the records that opened, concatenated."""
    sizes: Any
    """Size of each of these contents, bytes."""
    counts: Any
    """Number of them in each direction."""
    firsts: Any
    lasts: Any
    starts: Any
    """As in `OpenedRecords`."""


def decrypted(
    data: bytes, bounds: Any, keys: Any, numbers: list[int], opener: Callable[[int], RecordOpener]
) -> DecryptedRecords:
    """Decrypts records of `data`, of suites with an AEAD, up to the first one of each direction that does not authenticate.
    `bounds` has rows of direction, start and end, one direction after the other; the end is -1 for anything that is no such
    record. Each direction has its row of `keys` and the number of its next record. `opener` returns that of a direction, and is
    called if libcrypto lacks one of the ciphers.
    """
    wire, every = np.frombuffer(data, np.uint8), np.arange(len(keys))
    nonce, header = (np.empty((len(bounds), size), np.uint8) for size in (NONCE, COUNTED))
    starts = np.empty(len(bounds), np.int64)
    nonces(wire, bounds, np.array(numbers), keys, nonce, header, starts)
    firsts, lasts = (bounds[:, 0].searchsorted(every, side=side) for side in ("left", "right"))
    library, ciphers = functions(), _ciphers()[keys[:, K_CIPHER]]
    if library is None or not ciphers.all():
        plain, sizes, counts = _one_by_one(data, bounds, keys, opener, nonce, header, firsts, lasts, starts)
        return DecryptedRecords(plain, sizes, counts, firsts, lasts, starts)
    plain, sizes, counts = np.empty(len(wire) + 1, np.uint8), np.empty(len(bounds), np.int64), np.empty(len(keys), np.int64)
    written = np.empty(1, np.int64)
    addresses = np.array([table.ctypes.data for table in (keys, nonce, header, wire, plain, written)])
    with library.opener() as context:
        deciphered(context, library.opening, ciphers, addresses, keys, bounds, firsts, lasts, starts, sizes, counts)
    return DecryptedRecords(plain, sizes[: counts.sum()], counts, firsts, lasts, starts)


def _one_by_one(
    data: bytes, bounds: Any, keys: Any, opener: Callable[[int], RecordOpener], nonce: Any, header: Any, firsts: Any,
    lasts: Any, starts: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The same with `cryptography`: contents, their sizes, and their number per direction."""
    lows, ends = starts.tolist(), bounds[:, 2].tolist()
    each_nonce, newest = rows_of(nonce), (keys[:, K_TAG] == 0).tolist()
    short, long = rows_of(np.ascontiguousarray(header[:, :HEADER])), rows_of(header)
    out: list[bytes] = []
    counts = []
    for direction, (first, last) in enumerate(zip(firsts.tolist(), lasts.tolist())):
        before, made = len(out), opener(direction)
        headers = short if newest[direction] else long
        try:
            bodies = map(data.__getitem__, map(slice, lows[first:last], ends[first:last]))  # empty for what is no record
            out.extend(map(made.aead.decrypt, each_nonce[first:last], bodies, headers[first:last]))
        except (made.refused, ValueError):  # the records before it were opened
            pass
        counts.append(len(out) - before)
    plain = np.frombuffer(bytearray().join(out) or bytearray(1), np.uint8)
    return plain, np.fromiter(map(len, out), np.int64, len(out)), np.array(counts)


def open_records(
    data: bytes, bounds: Any, keys: Any, numbers: list[int], opener: Callable[[int], RecordOpener]
) -> OpenedRecords:
    """Opens records of application data, as `decrypted` does."""
    plain, sizes, counts, firsts, lasts, starts = decrypted(data, bounds, keys, numbers, opener)
    contents(np.frombuffer(data, np.uint8), bounds, firsts, counts, keys, plain, sizes)
    return OpenedRecords(plain, sizes[: counts.sum()], counts, firsts, lasts, starts)


def rows_of(table: Any) -> list[bytes]:
    found: list[bytes] = table.view(f"V{table.shape[1]}").ravel().tolist()
    return found


def key_table(rows: Sequence[bytes]) -> Any:
    """Keys of directions in the form of `record_kernels`."""
    return np.frombuffer(b"".join(rows), np.uint8).reshape(-1, KEYS_WIDTH)


def traffic_table(suite: Suite, secrets: Sequence[bytes]) -> Any:
    """The keys of traffic secrets of TLS 1.3, one row each, as `traffic_keys` derives them."""
    cipher, library = suite.cipher, functions()
    assert cipher is not None
    if library is not None:
        labels = info_of(b"key", cipher.key_bytes), info_of(b"iv", NONCE)
        row = KEYS.pack(b"", b"", place_of(cipher.kind, cipher.algorithm, cipher.key_bytes), 0, 0)
        keys, room = np.frombuffer(bytearray(row * len(secrets)), np.uint8).reshape(-1, KEYS_WIDTH), np.empty(ROOM, np.uint8)
        packed, infos = (np.frombuffer(b"".join(some), np.uint8) for some in (secrets, labels))
        places = packed.ctypes.data, suite.hash_bytes, infos.ctypes.data, np.array([len(label) for label in labels])
        with library.hmac(suite.hash) as context:
            if context and derived(context, library.deriving, *places, room, room.ctypes.data, keys, cipher.key_bytes):
                return keys
    return key_table([RecordOpener(TLS13, cipher, traffic_keys(secret, suite)).packed for secret in secrets])


@cache
def _ciphers() -> Any:
    """The addresses of libcrypto's ciphers in CIPHERS with which it opens records in batches; 0 for the others."""
    library, found = functions(), []
    for cipher in CIPHERS.values():
        names = {"gcm": f"{cipher.algorithm}-{8 * cipher.key_bytes}-GCM", "chacha": "ChaCha20-Poly1305"}
        found.append(library.cipher(names[cipher.kind]) if library is not None and cipher.kind in names else 0)
    return np.array(found, np.int64)
