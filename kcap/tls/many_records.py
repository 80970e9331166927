"""The records of many directions, opened together.

In: records of application data as they are on the wire, keys and record numbers of their directions. Out: plaintext. Law: a
record counts as `RecordOpener` would have it, and each direction ends before the first record that holds anything else or does
not authenticate.
"""

from typing import Any, NamedTuple

import numpy as np

from kcap.tls.record_ciphers import RecordOpener
from kcap.tls.record_kernels import COUNTED, contents, nonces
from kcap.tls.records import HEADER, NONCE


class OpenedRecords(NamedTuple):
    """The plaintext of records."""

    plain: Any
    """Of all, one behind the other."""
    sizes: Any
    """Of each record."""
    counts: Any
    """Records of each direction that were opened."""
    firsts: Any
    """The first of the given records of each direction."""
    lasts: Any
    """Where those of the next one begin."""
    starts: Any
    """Where the ciphertext of each of the records starts that were given."""


class DecryptedRecords(NamedTuple):
    """What the library gave of records."""

    contents: list[bytes]
    """Of those that opened."""
    counts: Any
    """How many these are of each direction."""
    firsts: Any
    lasts: Any
    starts: Any
    """As in `OpenedRecords`."""
    tags: Any
    """As in `RecordOpener.form`, of each direction."""


def decrypted(data: bytes, bounds: Any, openers: list[RecordOpener], numbers: list[int]) -> DecryptedRecords:
    """Decrypts records of `data`, of suites with an AEAD: rows of direction, start and end in `bounds`, one direction behind
    the other, where the end is -1 for what is no such record; of each direction those up to the first that does not
    authenticate. Each direction has its opener, and the number of its next record.
    """
    wire = np.frombuffer(data, np.uint8)
    salts, carried, tags = zip(*(opener.form for opener in openers))
    of_tags, every = np.array(tags), np.arange(len(openers))
    nonce, header = (np.empty((len(bounds), size), np.uint8) for size in (NONCE, COUNTED))
    starts = np.empty(len(bounds), np.int64)
    of_salts = np.frombuffer(b"".join(salts), np.uint8).reshape(-1, NONCE)
    nonces(wire, bounds, np.array(numbers), of_salts, np.array(carried), of_tags, nonce, header, starts)
    firsts, lasts = (bounds[:, 0].searchsorted(every, side=side) for side in ("left", "right"))
    lows, ends = starts.tolist(), bounds[:, 2].tolist()
    each_nonce = rows_of(nonce)
    short, long = rows_of(np.ascontiguousarray(header[:, :HEADER])), rows_of(header) if max(tags) >= 0 else []
    out: list[bytes] = []
    counts = []
    for opener, tag, first, last in zip(openers, tags, firsts.tolist(), lasts.tolist()):
        before = len(out)
        headers = short if tag < 0 else long
        try:
            bodies = map(data.__getitem__, map(slice, lows[first:last], ends[first:last]))  # nothing of what is no record
            out.extend(map(opener.aead.decrypt, each_nonce[first:last], bodies, headers[first:last]))
        except (opener.refused, ValueError):  # the records before it are there
            pass
        counts.append(len(out) - before)
    return DecryptedRecords(out, np.array(counts), firsts, lasts, starts, of_tags)


def open_records(data: bytes, bounds: Any, openers: list[RecordOpener], numbers: list[int]) -> OpenedRecords:
    """Opens records of application data, as `decrypted` does."""
    out, counts, firsts, lasts, starts, tags = decrypted(data, bounds, openers, numbers)
    sizes, plain = np.fromiter(map(len, out), np.int64, len(out)), joined(out)
    contents(np.frombuffer(data, np.uint8), bounds, firsts, counts, tags, plain, sizes)
    return OpenedRecords(plain, sizes[: counts.sum()], counts, firsts, lasts, starts)


def joined(parts: list[bytes]) -> Any:
    """Byte strings one behind the other, in an array that has a byte at least."""
    return np.frombuffer(bytearray().join(parts) or bytearray(1), np.uint8)


def rows_of(table: Any) -> list[bytes]:
    """The rows of an array of bytes."""
    found: list[bytes] = table.view(f"V{table.shape[1]}").ravel().tolist()
    return found
