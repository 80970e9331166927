"""Finds record batches anywhere in some bytes, and verifies each by its own CRC-32C.

In: bytes of streams, and which ranges of them are contiguous on the wire. Out: the span of the records of each verified batch,
after its header. Law: every span belongs to a batch of magic 2 whose CRC-32C is right (KIP-98, DefaultRecordBatch.java). The
compiled search and the plain one find the same.
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from kcap import kernels
from kcap.limits import CHECKSUMS_MOST
from kcap.wire.checksums import crc32c, has_fast_crc32c
from kcap.wire.formats import (
    BATCH_ATTRIBUTES_AT,
    BATCH_CRC_AT,
    BATCH_MIN,
    CODEC_MASK,
    CODECS_KNOWN,
    MAGIC_AT,
    OVERHEAD,
    SIZE_AT,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Int64s = NDArray[np.int64]

HIGH_BYTES: Final = ((0, 1), (BATCH_ATTRIBUTES_AT, 1), (BATCH_ATTRIBUTES_AT + 2, 128))
"""(place, bound): the high bytes of the base offset, the attributes and the last offset's delta are below these bounds."""
MANY: Final = 64
"""Number of spans from which a kernel is called."""
SHORT: Final = 1 << 10
"""Span size, in bytes, up to which the kernel is faster than the library."""


def can_verify(*, compiled: bool) -> bool:
    """Whether a fast CRC-32C is available; the one in plain Python is three thousand times slower."""
    return compiled or has_fast_crc32c()


def checksums(data: "Bytes", starts: "Int64s", ends: "Int64s") -> "Int64s":
    """The CRC-32C of each span `data[start:end]`.

    The library processes a byte twenty times as fast as a kernel, but each of its calls takes a thousand times as long.
    """
    found, places = np.empty(len(starts), np.int64), np.arange(len(starts))
    if len(starts) >= MANY and kernels.usable():
        from kcap.records.verified_kernels import TABLES, sums

        places = np.flatnonzero(ends - starts > SHORT)
        small = np.flatnonzero(ends - starts <= SHORT)
        own = np.empty(len(small), np.int64)
        sums(data, starts[small], ends[small], TABLES, own)
        found[small] = own
    view = data.data
    spans = zip(places.tolist(), starts[places].tolist(), ends[places].tolist())
    for place, start, end in spans:
        found[place] = crc32c(view[start:end])
    return found


def find_verified(data: "Bytes", stretches: "Int64s", *, compiled: bool) -> "Int64s":
    """The records of verified batches as rows (start, end), int64.

    `stretches`: rows (start, end, first), int64; batches that begin before `first` do not count.
    """
    if compiled:
        from kcap.records.verified_kernels import find_batches

        return find_batches(data, stretches)
    found: list[tuple[int, int]] = []
    for low, high, first in stretches.tolist():
        found += _in_stretch(data[low:high], low, first)
    return np.array(found, np.int64).reshape(-1, 2)


def _in_stretch(data: "Bytes", base: int, first: int) -> list[tuple[int, int]]:
    """As `find_verified`, for one contiguous range that begins at `base`."""
    found: list[tuple[int, int]] = []
    room = len(data) - BATCH_MIN + 1
    if room <= 0:
        return found
    codec = data[BATCH_ATTRIBUTES_AT + 1 : BATCH_ATTRIBUTES_AT + 1 + room]
    likely = (data[MAGIC_AT : MAGIC_AT + room] == 2) & (codec < 128) & (codec & CODEC_MASK < CODECS_KNOWN)
    for at, bound in HIGH_BYTES:
        likely &= data[at : at + room] < bound
    view = memoryview(data.tobytes())
    after, work = 0, CHECKSUMS_MOST * len(data)
    for at in np.flatnonzero(likely).tolist():
        size = int.from_bytes(view[at + SIZE_AT : at + OVERHEAD], "big")
        end = at + OVERHEAD + size
        if at < after or size < BATCH_MIN - OVERHEAD or end > len(data) or size > work:
            continue
        work -= size
        said = int.from_bytes(view[at + BATCH_CRC_AT : at + BATCH_ATTRIBUTES_AT], "big")
        if crc32c(view[at + BATCH_ATTRIBUTES_AT : end]) != said:
            continue
        after = end
        if base + at >= first and end > at + BATCH_MIN:
            found.append((base + at + BATCH_MIN, base + end))
    return found
