"""Columns as text, whole columns at a time: what JSON, CSV and the terminal's tables are made of.

In: Arrow arrays. Out: Arrow arrays of strings, null where the value is null. Law: only distinct strings pass through Python.
"""

import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

Quote = Callable[[str], str]


def plain(text: str) -> str:
    """The text itself."""
    return text


def json_text(text: str) -> str:
    """A JSON string."""
    return json.dumps(text, ensure_ascii=False)


def csv_text(text: str) -> str:
    """A CSV field (RFC 4180)."""
    if text == "" or any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def distinct(column: pa.Array, quote: Quote) -> pa.Array:
    """Strings, each different one quoted once."""
    if quote is plain:
        return column
    coded = column.dictionary_encode()
    words = pa.array([quote(word) for word in coded.dictionary.to_pylist()], pa.string())
    return words.take(coded.indices)


def times(column: pa.Array) -> pa.Array:
    """RFC 3339 in UTC with microseconds."""
    naive = column.view(pa.int64()).view(pa.timestamp("us"))
    return pc.replace_substring(pc.cast(naive, pa.string()), " ", "T", max_replacements=1)


def scalar(column: pa.Array, quote: Quote, quoted: bool) -> pa.Array:
    """A column without lists as strings."""
    kind = column.type
    if pa.types.is_null(kind) or column.null_count == len(column):
        return pa.nulls(len(column), pa.string())
    if pa.types.is_timestamp(kind):
        mark = '"' if quoted else ""
        return pc.binary_join_element_wise(mark, times(column), f"Z{mark}", "")
    if pa.types.is_binary(kind):
        from base64 import b64encode

        texts = [None if blob is None else quote(b64encode(blob).decode()) for blob in column.to_pylist()]
        return pa.array(texts, pa.string())
    if pa.types.is_string(kind):
        return distinct(column, quote)
    return pc.cast(column, pa.string())


def joined(column: pa.Array, quote: Quote, quoted: bool, separator: str, null: str) -> pa.Array:
    """A list column as strings, entries joined, `null` for an entry that is null."""
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.string())
    if column.offset:
        column = pa.concat_arrays([column])  # of a slice, Arrow rebuilds no list
    flat = scalar(column.values, quote, quoted)
    lists = pa.ListArray.from_arrays(column.offsets, flat.fill_null(null), mask=column.is_null() if column.null_count else None)
    return pc.binary_join(lists, separator)


def json_column(column: pa.Array) -> pa.Array:
    """Every entry as JSON."""
    if pa.types.is_list(column.type):
        texts = joined(column, json_text, True, ",", "null")
        texts = pc.binary_join_element_wise("[", texts, "]", "")
    else:
        texts = scalar(column, json_text, True)
    return texts.fill_null("null") if texts.null_count else texts


def csv_column(column: pa.Array) -> pa.Array:
    """Every entry as a CSV field: nothing for null, an empty string in quotes; entries of lists are joined by semicolons."""
    if pa.types.is_list(column.type):
        texts = distinct(joined(column, plain, False, ";", ""), lambda text: csv_text(text) if text else text)
    else:
        texts = scalar(column, csv_text, False)
    return texts.fill_null("") if texts.null_count else texts


def readable_column(column: pa.Array) -> pa.Array:
    """Every entry for people: nothing for null."""
    texts = joined(column, plain, False, ",", "-") if pa.types.is_list(column.type) else scalar(column, plain, False)
    return texts.fill_null("") if texts.null_count else texts


def lines(parts: list["str | pa.Array"], size: int) -> memoryview:
    """Rows of text from their parts, constants and columns in turn; every row has to end with its line feed."""
    texts = pc.binary_join_element_wise(*parts, "") if any(not isinstance(part, str) for part in parts) else None
    if texts is None:
        return memoryview(("".join(str(part) for part in parts) * size).encode())
    assert len(texts) == size
    _, offsets, data = texts.buffers()
    assert offsets is not None and data is not None
    return memoryview(data)[: memoryview(offsets).cast("i")[size]]
