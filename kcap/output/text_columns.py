"""Converts whole columns to text for JSON, CSV and the terminal's tables.

In: Arrow arrays. Out: Arrow arrays of strings, null where the value is null. Law: only distinct strings pass through Python.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from kcap.arrays.arrow import Array, nulls
from kcap.output.escaping import json_text

Quote = Callable[[str], str]


def functions() -> Any:
    """Arrow's compute functions. Importing them takes 0.06 s, which tables in binary formats do not need."""
    import pyarrow.compute

    return pyarrow.compute


def plain(text: str) -> str:
    return text


def csv_text(text: str, separator: str = ",") -> str:
    """A CSV field (RFC 4180); the separator is a comma or another character."""
    if text == "" or any(mark in text for mark in (separator, '"', "\r", "\n")):
        return '"' + text.replace('"', '""') + '"'
    return text


def distinct(column: Array, quote: Quote) -> Array:
    """Strings, each distinct one quoted once."""
    if quote is plain:
        return column
    coded: Any = column.dictionary_encode()
    words = pa.array([quote(word) for word in coded.dictionary.to_pylist()], pa.string())
    made: Array = words.take(coded.indices)
    return made


def times(column: Array) -> Array:
    """RFC 3339 in UTC with microseconds."""
    pc = functions()
    naive = column.view(pa.int64()).view(pa.timestamp("us"))
    made: Array = pc.replace_substring(pc.cast(naive, pa.string()), " ", "T", max_replacements=1)
    return made


def scalar(column: Array, quote: Quote, quoted: bool) -> Array:
    """A column without lists as strings."""
    pc = functions()
    kind = column.type
    if pa.types.is_null(kind) or column.null_count == len(column):
        return nulls(len(column), pa.string())
    if pa.types.is_timestamp(kind):
        mark = '"' if quoted else ""
        return glued(mark, times(column), f"Z{mark}")
    if pa.types.is_binary(kind):
        from base64 import b64encode

        blobs: Any = column.to_pylist()
        return pa.array([None if blob is None else quote(b64encode(blob).decode()) for blob in blobs], pa.string())
    if pa.types.is_string(kind):
        return distinct(column, quote)
    made: Array = pc.cast(column, pa.string())
    return made


def glued(*parts: str | Array) -> Array:
    """The parts of each row as one string; null if a part is null."""
    pc = functions()
    made: Array = pc.binary_join_element_wise(*parts, "")
    return made


def joined(column: Array, quote: Quote, quoted: bool, separator: str, null: str) -> Array:
    """A list column as strings of joined entries, with `null` for a null entry."""
    pc = functions()
    if column.null_count == len(column):
        return nulls(len(column), pa.string())
    if column.offset:
        column = pa.concat_arrays([column])  # Arrow cannot rebuild a list from a slice
    whole: Any = column
    flat: Any = json_column(whole.values) if is_nested(whole.type) else scalar(whole.values, quote, quoted)
    arrow: Any = pa.ListArray
    absent = whole.is_null() if whole.null_count else None
    made: Array = pc.binary_join(arrow.from_arrays(whole.offsets, flat.fill_null(null), mask=absent), separator)
    return made


def is_nested(kind: pa.DataType) -> bool:
    """Whether entries are lists of rows of another table."""
    return pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)


def json_column(column: Array) -> Array:
    """Every entry as JSON."""
    if pa.types.is_struct(column.type):
        fields: Any = column
        names = [f"{',' if at else '{'}{json_text(field.name)}:" for at, field in enumerate(column.type)]
        return glued(*(part for pair in zip(names, map(json_column, fields.flatten())) for part in pair), "}")
    if pa.types.is_list(column.type):
        texts = glued("[", joined(column, json_text, True, ",", "null"), "]")
    else:
        texts = scalar(column, json_text, True)
    return texts.fill_null("null") if texts.null_count else texts


def csv_column(column: Array, separator: str = ",") -> Array:
    """Every entry as a CSV field: empty for null, quotes for an empty string; entries of lists are joined by semicolons."""
    quoted = partial(csv_text, separator=separator)
    if pa.types.is_list(column.type):
        texts = distinct(joined(column, plain, False, ";", ""), lambda text: quoted(text) if text else text)
    else:
        texts = scalar(column, quoted, False)
    return texts.fill_null("") if texts.null_count else texts


def readable_column(column: Array) -> Array:
    """Every entry as text for people; empty for null."""
    texts = joined(column, plain, False, ",", "-") if pa.types.is_list(column.type) else scalar(column, plain, False)
    return texts.fill_null("") if texts.null_count else texts


def lines(parts: Sequence[str | Array], size: int) -> memoryview:
    """Rows of text from alternating constants and columns; the last part ends the line."""
    if all(isinstance(part, str) for part in parts):
        return memoryview(("".join(map(str, parts)) * size).encode())
    _, offsets, data = glued(*parts).buffers()
    assert offsets is not None
    assert data is not None
    return memoryview(data)[: memoryview(offsets).cast("i")[size]]
