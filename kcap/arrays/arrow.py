"""Converts numpy arrays to Arrow arrays and back, as the tables need them.

Law: nothing is copied unnecessarily, and nothing here makes pyarrow import pandas, as its own `to_numpy` does. pyarrow's stubs
have a type for each scalar type; here an array is simply an array.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow._compute import CastOptions, DictionaryEncodeOptions, TakeOptions, call_function  # see TAKE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Array: TypeAlias = pa.Array[Any]
else:
    Array = pa.Array
_pa: Any = pa
_call: Any = call_function
TAKE: Final[Any] = TakeOptions(boundscheck=True)
"""Options of `take`. Functions are called by name here, because `pyarrow.compute`, which the methods of arrays import, makes a
Python function with a docstring for each of three hundred functions. That would take 0.05 s of every run."""
INT64: Final[Any] = CastOptions(pa.int64())
ENCODE: Final[Any] = DictionaryEncodeOptions("mask"), DictionaryEncodeOptions("encode")
INDEX: Final = {np.dtype(kind).num: getattr(pa, kind)() for kind in ("int32", "int64", "uint32", "uint64")}
"""Arrow's index types, by numpy's type number."""


@lru_cache(64)
def _nulls(room: int, kind: pa.DataType) -> Any:
    return _pa.nulls(room, kind)


def nulls(size: int, kind: pa.DataType) -> Array:
    """An array of nulls; such columns share their memory."""
    made: Array = _nulls(1 << size.bit_length(), kind).slice(0, size)
    return made


def joined(batches: "Sequence[pa.RecordBatch]", schema: pa.Schema) -> "list[pa.RecordBatch]":
    """The rows of many small batches as one batch, which takes some 40 KB less for each of them; empty if there are no rows."""
    made: list[pa.RecordBatch] = _pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
    return made


def take(array: Array, indices: "NDArray[Any]") -> Array:
    made: Array = _call("take", [array, numbers(INDEX[indices.dtype.num], np.ascontiguousarray(indices), None)], TAKE)
    return made


def picked(array: Array, indices: "NDArray[Any]") -> Array:
    """`take`, optimised for the case that all indices are the same."""
    if not len(indices) or (indices != indices[0]).any():
        return take(array, indices)
    made: Array = _pa.repeat(array[int(indices[0])], len(indices))
    return made


@dataclass(frozen=True, slots=True)
class Coded:
    """Texts as indexes into known texts. Some may be null, and two known texts may be equal."""

    known: Array
    places: "NDArray[Any]"

    def take(self, places: "NDArray[Any]") -> "Coded":
        return Coded(self.known, self.places.take(places))

    def plain(self) -> Array:
        """The texts as a plain array."""
        return picked(self.known, self.places)

    def dictionary(self) -> Array:
        """The texts as indexes, and the known texts without null; if there are many, only those that occur."""
        few, codes, valid = self.known, self.places, None
        there = ~absent(few) if few.null_count else None
        if len(few) > FEW:
            occurs = np.zeros(len(few), np.bool_)
            occurs[codes] = True
            there = occurs if there is None else there & occurs
        if there is not None:
            few = take(few, np.flatnonzero(there))
            if not len(few):
                return nulls(len(codes), CODED)
            number = np.maximum(np.cumsum(there, dtype=np.int32) - 1, 0, dtype=np.int32)
            codes, valid = number.take(codes), there.take(codes)
            valid = None if valid.all() else valid
        made: Array = _pa.DictionaryArray.from_arrays(numbers(_pa.int32(), codes.astype(np.int32), valid), few, safe=False)
        return made


FEW: Final = 1024
"""Number of known texts up to which a dictionary has all of them, without a check which ones occur."""
CODED: Final = pa.dictionary(pa.int32(), pa.string())
"""The type of `Coded.dictionary`."""


def of_type(made: "Array | Coded", kind: pa.DataType) -> Array:
    """A column with the type of its table, which is `CODED` or the column's own type."""
    if isinstance(made, Coded):
        return made.dictionary() if kind == CODED else made.plain()
    if kind == CODED and made.type != CODED:
        if made.null_count == len(made):
            return nulls(len(made), kind)
        encoded: Array = _call("dictionary_encode", [made], ENCODE[0])
        return encoded
    if kind != CODED and made.type == CODED:
        texts: Any = made
        decoded: Array = texts.dictionary_decode()
        return decoded
    return made


def batch_of_types(made: "Sequence[Array | Coded]", schema: pa.Schema) -> pa.RecordBatch:
    """Columns as a batch of a schema, with texts in the schema's form."""
    return pa.RecordBatch.from_arrays([of_type(column, kind) for column, kind in zip(made, schema.types)], schema=schema)


def as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with its texts in the form of a schema, which has the same columns."""
    return batch if batch.schema.types == schema.types else batch_of_types(batch.columns, schema)


def with_texts(schema: pa.Schema, *, coded: bool) -> pa.Schema:
    """The schema with its texts dictionary-encoded or plain."""
    old, new = (pa.string(), CODED) if coded else (CODED, pa.string())
    fields = [field.with_type(new) if field.type == old else field for field in schema]
    return pa.schema(fields).with_metadata(schema.metadata)


def renamed(array: Array, name_of: "Callable[[str], str]") -> Array:
    """Texts, or lists of texts, each replaced by the result of `name_of`, which is called once per distinct text, in order."""
    if _pa.types.is_list(array.type):
        parts: Any = array
        valid, offsets = parts.buffers()[:2]
        children = [renamed(parts.values, name_of)]
        lists_: Array = _pa.Array.from_buffers(
            array.type, len(array), [valid, offsets], array.null_count, array.offset, children
        )
        return lists_
    if array.type == CODED:
        whole: Any = array
        made: Array = _pa.DictionaryArray.from_arrays(whole.indices, renamed(whole.dictionary, name_of))
        return made
    coded_: Any = _call("dictionary_encode", [array], ENCODE[0])
    texts = [None if text is None else name_of(text) for text in coded_.dictionary.to_pylist()]
    named: Array = _call("take", [_pa.array(texts, array.type), coded_.indices], TAKE)
    return named


def numbers(kind: pa.DataType, values: "NDArray[Any]", valid: "NDArray[np.bool_] | None") -> Array:
    """Integers of the type's own width; values where `valid` is False have no meaning."""
    bits = None if valid is None else _pa.py_buffer(np.packbits(valid, bitorder="little"))
    made: Array = _pa.Array.from_buffers(kind, len(values), [bits, _pa.py_buffer(values)])
    return made


def booleans(values: "NDArray[np.bool_]", valid: "NDArray[np.bool_] | None" = None) -> Array:
    """Truth values; null where `valid` is False. `pyarrow.array` imports numpy's masked arrays, which takes 0.01 s."""
    bits = [None if some is None else _pa.py_buffer(np.packbits(some, bitorder="little")) for some in (valid, values)]
    made: Array = _pa.Array.from_buffers(_pa.bool_(), len(values), bits)
    return made


def lists(offsets: "NDArray[np.int32]", values: Array, absent: "NDArray[np.bool_]") -> Array:
    """Lists whose entries are adjacent in `values`; null where `absent` is True."""
    bits = _pa.py_buffer(np.packbits(~absent, bitorder="little")) if absent.any() else None
    kind = _pa.list_(values.type)
    made: Array = _pa.Array.from_buffers(kind, len(absent), [bits, _pa.py_buffer(offsets)], children=[values])
    return made


def binary(kind: pa.DataType, size: int, *parts: "NDArray[Any]") -> Array:
    """An array without nulls over existing buffers."""
    made: Array = _pa.Array.from_buffers(kind, size, [None, *map(_pa.py_buffer, parts)])
    return made


def coded(array: Array, nulls_too: bool = False) -> tuple["NDArray[np.int32]", list[Any]]:
    """Entries as indexes of the distinct values, and these values. The index of a null has no meaning; with `nulls_too`, null
    is one of the values.

    For a dictionary-encoded array, these are the texts of its dictionary, of which two may be equal.
    """
    if array.type == CODED:
        return _recoded(array, nulls_too)
    found: Any = _call("dictionary_encode", [array], ENCODE[nulls_too])
    return raw(found.indices, np.int32), found.dictionary.to_pylist()


def _recoded(array: Any, nulls_too: bool) -> tuple["NDArray[np.int32]", list[Any]]:
    texts = array.dictionary.to_pylist()
    codes, valid = raw(array.indices, np.int32), validity(array.indices)
    if valid is None or not nulls_too:
        return codes, texts
    return np.where(valid, codes, np.int32(len(texts))), [*texts, None]


def flattened(array: Array) -> Array:
    """The entries of lists, concatenated."""
    made: Array = _call("list_flatten", [array])
    return made


def parents(array: Array) -> "NDArray[np.int64]":
    """The indexes of the lists to which the entries of `flattened` belong."""
    found: NDArray[np.int64] = _call("list_parent_indices", [array]).to_numpy()
    return found


def filled(array: Array, value: int) -> Array:
    """The entries, with nulls replaced by a value."""
    return coalesced(array, _pa.repeat(_pa.scalar(value, array.type), len(array)))


def absent(array: Array) -> "NDArray[np.bool_]":
    """Which entries are null."""
    found: NDArray[np.bool_] = _call("is_null", [array]).to_numpy(zero_copy_only=False)
    return found


def coalesced(array: Array, others: Array) -> Array:
    """The entries of `array`, with nulls replaced by the entries of `others`."""
    made: Array = _call("coalesce", [array, others])
    return made


def raw(array: Array, kind: Any) -> "NDArray[Any]":
    """The values of an array that starts at its buffer's beginning; values of nulls have no meaning."""
    data: Any = array.buffers()[1]
    values: NDArray[Any] = np.frombuffer(data, kind, len(array)) if data is not None else np.zeros(0, kind)
    return values


def validity(array: Array) -> "NDArray[np.bool_] | None":
    """Which entries of an array that starts at its buffer's beginning are not null; None if all are."""
    bits: Any = array.buffers()[0] if array.null_count else None
    if bits is None:
        return None
    unpacked: NDArray[Any] = np.unpackbits(np.frombuffer(bits, np.uint8), count=len(array), bitorder="little")
    return unpacked.view(np.bool_)


def values(column: Any) -> list[Any]:
    """A column as Python values; times as microseconds since the epoch."""
    found: list[Any] = (_call("cast", [column], INT64) if _pa.types.is_timestamp(column.type) else column).to_pylist()
    return found


def parquet_file(source: Any, **options: Any) -> Any:
    """A `pyarrow.parquet.ParquetFile` to be read from front to end, from a path or an open file; `options` are its own.

    Data that Arrow reads ahead, by default from version 20 on, is held until the file is closed; this reads nothing ahead.
    """
    from pyarrow.parquet import ParquetFile

    return ParquetFile(source, pre_buffer=False, **options)
