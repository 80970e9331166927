"""The compiled search for CRC-verified batches.

In: bytes, and contiguous ranges of them. Out: the spans that `kcap.records.verified` finds without it.
"""

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kcap.kernels import compiled, uint32
from kcap.limits import CHECKSUMS_MOST
from kcap.wire.checksums import crc32c_table
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

    Int64s = NDArray[np.int64]

STRIDE: Final = 8
"""Bytes per step of the checksum."""
HEAD: Final = 1024
"""Initial number of rows of the output array."""


def _tables() -> Any:
    """The CRC tables of a byte, and of a byte followed by one to seven zeros (Intel, slicing-by-8)."""
    tables = np.zeros((STRIDE, 256), np.int64)  # signed, because numba makes floats of mixed operands
    tables[0] = crc32c_table()
    for at in range(1, STRIDE):
        tables[at] = (tables[at - 1] >> 8) ^ tables[0][tables[at - 1] & 255]
    return tables


TABLES: Final = _tables()


def find_batches(data: Any, stretches: Any) -> "Int64s":
    """As `kcap.records.verified.find_verified`."""
    out = np.empty((HEAD, 2), np.int64)
    count = search(data, stretches, TABLES, out)
    if count > len(out):
        out = np.empty((count, 2), np.int64)
        search(data, stretches, TABLES, out)
    found: Int64s = out[:count]
    return found


@compiled
def checksum(data: Any, at: int, end: int, tables: Any) -> int:
    """The CRC-32C of `data[at:end]`."""
    crc = 0xFFFFFFFF
    while at + 8 <= end:
        low = crc ^ (int(data[at]) | int(data[at + 1]) << 8 | int(data[at + 2]) << 16 | int(data[at + 3]) << 24)
        crc = (
            tables[7, low & 255]
            ^ tables[6, low >> 8 & 255]
            ^ tables[5, low >> 16 & 255]
            ^ tables[4, low >> 24]
            ^ tables[3, data[at + 4]]
            ^ tables[2, data[at + 5]]
            ^ tables[1, data[at + 6]]
            ^ tables[0, data[at + 7]]
        )
        at += 8
    while at < end:
        crc = crc >> 8 ^ tables[0, (crc ^ int(data[at])) & 255]
        at += 1
    return crc ^ 0xFFFFFFFF


@compiled
def sums(data: Any, starts: Any, ends: Any, tables: Any, out: Any) -> None:
    """Writes the CRC-32C of each span to `out`."""
    for at in range(starts.size):
        out[at] = checksum(data, starts[at], ends[at], tables)


@compiled
def search(data: Any, stretches: Any, tables: Any, out: Any) -> int:
    """Writes as many rows as fit to `out`, and returns the total number."""
    count = 0
    for row in range(stretches.shape[0]):
        low, high, first = stretches[row, 0], stretches[row, 1], stretches[row, 2]
        work = CHECKSUMS_MOST * (high - low)
        at = low
        while at + BATCH_MIN <= high:
            if (
                data[at + MAGIC_AT] != 2
                or data[at] != 0
                or data[at + BATCH_ATTRIBUTES_AT] != 0
                or data[at + BATCH_ATTRIBUTES_AT + 1] >= 128
                or data[at + BATCH_ATTRIBUTES_AT + 1] & CODEC_MASK >= CODECS_KNOWN
                or data[at + BATCH_ATTRIBUTES_AT + 2] >= 128
            ):
                at += 1
                continue
            size = uint32(data, at + SIZE_AT)
            end = at + OVERHEAD + size
            if size < BATCH_MIN - OVERHEAD or end > high or size > work:
                at += 1
                continue
            work -= size
            if checksum(data, at + BATCH_ATTRIBUTES_AT, end, tables) != uint32(data, at + BATCH_CRC_AT):
                at += 1
                continue
            if at >= first and end > at + BATCH_MIN:
                if count < out.shape[0]:
                    out[count, 0], out[count, 1] = at + BATCH_MIN, end
                count += 1
            at = end
    return count
