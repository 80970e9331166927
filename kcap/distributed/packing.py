"""Columns of numbers as bytes.

In: 64 bit numbers. Out: the first one, the others in as few bytes as do for all of them. Law: what was packed comes out.
"""

from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

COLUMN: Final = Struct("<bq")
"""Width of the steps and the first number."""
WIDTHS: "Final[tuple[np.dtype[Any], ...]]" = (np.dtype("<i1"), np.dtype("<i2"), np.dtype("<i4"), np.dtype("<i8"))
CONSTANT: Final = -1


def pack_column(values: "Int64s", *, rising: bool) -> list[bytes]:
    """Numbers, one at least, in as few bytes each as do for all; of rising ones the steps."""
    first = int(values[0])
    steps = np.diff(values, prepend=first) if rising else values - first
    low, high = int(steps.min()), int(steps.max())
    if low == high == 0:
        return [COLUMN.pack(CONSTANT, first)]
    width = next(at for at, kind in enumerate(WIDTHS) if max(~low, high) < 1 << 8 * kind.itemsize - 1)
    return [COLUMN.pack(width, first), steps.astype(WIDTHS[width]).tobytes()]


def unpack_column(packed: bytes, at: int, out: "Int64s", *, rising: bool) -> int:
    """What `pack_column` gave and stands at a place; where the next one does."""
    width, first = COLUMN.unpack_from(packed, at)
    at += COLUMN.size
    if width == CONSTANT:
        out[:] = first
        return at
    kind = WIDTHS[width]
    steps = np.frombuffer(packed, kind, len(out), at).astype(np.int64)
    out[:] = (np.cumsum(steps) if rising else steps) + first
    end: int = at + len(out) * kind.itemsize
    return end
