"""Record batches that their own checksum proves, wherever they stand in some bytes.

In: bytes of streams, and which stretches of them follow each other on the wire. Out: where the records of each proven batch
stand, behind its header. Law: what is found is a batch of magic 2 as its CRC-32C says (KIP-98, DefaultRecordBatch.java), so
it is the same whoever looks; the compiled search finds what the plain one finds.
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from kcap.wire.checksums import crc32c, has_fast_crc32c
from kcap.wire.formats import BATCH_ATTRIBUTES_AT, BATCH_MIN, CODEC_MASK, MAGIC_AT, OVERHEAD, SIZE_AT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Int64s = NDArray[np.int64]

CRC_AT: Final = 17
CODECS: Final = 5
HIGH_BYTES: Final = ((0, 1), (BATCH_ATTRIBUTES_AT, 1), (BATCH_ATTRIBUTES_AT + 2, 128))
"""High bytes of the base offset, the attributes and the last offset's delta, and what they are below."""
WORK: Final = 4
"""Times its own bytes that a stretch is summed up at most: bytes that look like headers may stand one behind the other."""


def can_prove(*, compiled: bool) -> bool:
    """Whether checksums are quick enough: three thousand times slower is not."""
    return compiled or has_fast_crc32c()


def proven(data: "Bytes", stretches: "Int64s", *, compiled: bool) -> "Int64s":
    """The records of proven batches, a row of start and end each; `stretches` has a row of start, end and where batches that
    count may begin."""
    if compiled:
        from kcap.records.verified_kernels import find_batches

        return find_batches(data, stretches)
    found: list[tuple[int, int]] = []
    for low, high, first in stretches.tolist():
        found += _in_stretch(data[low:high], low, first)
    return np.array(found, np.int64).reshape(-1, 2)


def _in_stretch(data: "Bytes", base: int, first: int) -> list[tuple[int, int]]:
    """As `proven`, for one stretch that begins at `base`."""
    found: list[tuple[int, int]] = []
    room = len(data) - BATCH_MIN + 1
    if room <= 0:
        return found
    codec = data[BATCH_ATTRIBUTES_AT + 1 : BATCH_ATTRIBUTES_AT + 1 + room]
    likely = (data[MAGIC_AT : MAGIC_AT + room] == 2) & (codec < 128) & (codec & CODEC_MASK < CODECS)
    for at, bound in HIGH_BYTES:
        likely &= data[at : at + room] < bound
    view = memoryview(data.tobytes())
    behind, work = 0, WORK * len(data)
    for at in np.flatnonzero(likely).tolist():
        size = int.from_bytes(view[at + SIZE_AT : at + OVERHEAD], "big")
        end = at + OVERHEAD + size
        if at < behind or size < BATCH_MIN - OVERHEAD or end > len(data) or size > work:
            continue
        work -= size
        if crc32c(view[at + BATCH_ATTRIBUTES_AT : end]) != int.from_bytes(view[at + CRC_AT : at + BATCH_ATTRIBUTES_AT], "big"):
            continue
        behind = end
        if base + at >= first and end > at + BATCH_MIN:
            found.append((base + at + BATCH_MIN, base + end))
    return found
