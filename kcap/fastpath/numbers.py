"""Numbers in network order, for compiled code.

In: an array of bytes. Out: signed numbers. Importing this module imports numba.
"""

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, inline="always")
def int16(data: Any, at: int) -> Any:
    """A 16 bit number in network order."""
    return np.int64(np.int16((np.uint16(data[at]) << np.uint16(8)) | np.uint16(data[at + 1])))


@njit(cache=True, nogil=True, inline="always")
def int32(data: Any, at: int) -> Any:
    """A 32 bit number in network order."""
    value = (
        (np.uint32(data[at]) << np.uint32(24))
        | (np.uint32(data[at + 1]) << np.uint32(16))
        | (np.uint32(data[at + 2]) << np.uint32(8))
        | np.uint32(data[at + 3])
    )
    return np.int64(np.int32(value))
