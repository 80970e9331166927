"""Arrow arrays from numpy ones and back, as the tables need them.

Law: nothing is copied that need not be, and nothing here makes pyarrow import pandas, as its own `to_numpy` does. The types
that its stubs give a scalar by scalar end here: an array is an array.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = pa.Array[Any]
else:
    Array = pa.Array
_pa: Any = pa


@lru_cache(64)
def _nulls(room: int, kind: pa.DataType) -> Any:
    return _pa.nulls(room, kind)


def nulls(size: int, kind: pa.DataType) -> Array:
    """Nothing but nulls; columns of them share their memory."""
    made: Array = _nulls(1 << size.bit_length(), kind).slice(0, size)
    return made


def take(array: Array, indices: "NDArray[Any]") -> Array:
    """Entries by their places."""
    made: Array = array.take(_pa.array(indices))
    return made


def picked(array: Array, indices: "NDArray[Any]") -> Array:
    """The same where it is often one entry all the time."""
    if not len(indices) or (indices != indices[0]).any():
        return take(array, indices)
    made: Array = _pa.repeat(array[int(indices[0])], len(indices))
    return made


def numbers(kind: pa.DataType, values: "NDArray[Any]", valid: "NDArray[np.bool_] | None") -> Array:
    """Integers of the kind's own width; what stands where `valid` is False means nothing."""
    bits = None if valid is None else _pa.py_buffer(np.packbits(valid, bitorder="little"))
    made: Array = _pa.Array.from_buffers(kind, len(values), [bits, _pa.py_buffer(values)])
    return made


def lists(offsets: "NDArray[np.int32]", values: Array, absent: "NDArray[np.bool_]") -> Array:
    """Lists of entries that lie one after the other; null where there is none."""
    made: Array = _pa.ListArray.from_arrays(_pa.array(offsets), values, mask=_pa.array(absent))
    return made


def binary(kind: pa.DataType, size: int, *parts: "NDArray[Any]") -> Array:
    """An array without nulls over buffers that are there."""
    made: Array = _pa.Array.from_buffers(kind, size, [None, *map(_pa.py_buffer, parts)])
    return made


def coded(array: Array) -> tuple["NDArray[np.int32]", list[Any]]:
    """Entries as numbers of the distinct ones, and those; what stands for null means nothing."""
    found: Any = array.dictionary_encode()
    return raw(found.indices, np.int32), found.dictionary.to_pylist()


def raw(array: Array, kind: Any) -> "NDArray[Any]":
    """The values of an array that starts at its buffer's beginning; what stands for null means nothing."""
    data: Any = array.buffers()[1]
    values: NDArray[Any] = np.frombuffer(data, kind, len(array)) if data is not None else np.zeros(0, kind)
    return values


def validity(array: Array) -> "NDArray[np.bool_] | None":
    """Which entries of an array that starts at its buffer's beginning are no null; None where none is."""
    bits: Any = array.buffers()[0] if array.null_count else None
    if bits is None:
        return None
    unpacked: NDArray[Any] = np.unpackbits(np.frombuffer(bits, np.uint8), count=len(array), bitorder="little")
    return unpacked.view(np.bool_)
