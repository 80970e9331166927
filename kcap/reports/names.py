"""Bounds what reports hold of names: client ids, groups, topics and all other text that a capture brings.

In: record batches, or the Parquet files of a report's tables. Out: the same rows, in which long names are shortened and, where
a column has too many, the ones behind the first are one name. Law: names are changed only where they are longer than
`limits.REPORT_NAME_BYTES`, or where a column has more than `limits.REPORT_NAMES_MAX` of them; a shortened name keeps two names
apart, for it ends with a digest of the whole one; columns that a filter tests stay as they are.

A report has a row of Python objects for each name that it groups by, some 5 KB, and its engine holds several copies of each
name. Rows themselves (`kcap rows`, `kcap sql`, saved tables) always have the whole names.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from hashlib import blake2b, sha256
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kcap import limits
from kcap.arrays.arrow import CODED, Array, parquet_file, renamed

OTHERS: Final = "(other names)"
"""Stands for all names behind the first `limits.REPORT_NAMES_MAX` of a column."""
KEPT_CHARACTERS: Final = 160
"""Characters of a shortened name that stay."""
DIGITS: Final = 12
"""Hexadecimal digits of the digest in a shortened name."""
SHORTENED: Final = re.compile(rf"(?s)(.{{1,{KEPT_CHARACTERS}}})\.{{3}} \([\d,]+ characters, sha256 [0-9a-f]{{{DIGITS}}}\)")
"""What `shortened` makes of a name."""
KEYS: Final = ("connection", "capture", "response_capture")
"""Columns of text that are no names: reports look up rows by them."""
COMPRESSED: Final = 8
"""How many times its size the dictionary of a compressed column may have."""
ENTRY_BYTES: Final = 5
"""Least bytes that a distinct name takes in the dictionary of a Parquet column: its length and one character."""


def shortened(name: str) -> str:
    """The name, or its beginning, its length and a digest where it is longer than `limits.REPORT_NAME_BYTES`."""
    if len(name) * 4 <= limits.REPORT_NAME_BYTES:
        return name
    data = name.encode(errors="surrogatepass")
    if len(data) <= limits.REPORT_NAME_BYTES:
        return name
    return f"{name[:KEPT_CHARACTERS]}... ({len(name):,} characters, sha256 {sha256(data).hexdigest()[:DIGITS]})"


def beginning(name: str) -> str | None:
    """The characters that `shortened` leaves of a name, which may be shortened already; None where it leaves all."""
    made = SHORTENED.fullmatch(shortened(name))
    return None if made is None else made[1]


def shorter(batch: pa.RecordBatch, whole: Collection[str] = ()) -> pa.RecordBatch:
    """The batch with long names shortened, but for columns named in `whole`; the batch itself where it has none."""
    return changed(batch, [name for name in names_of(batch.schema, whole) if longest(batch.column(name))], lambda _: shortened)


def changed(batch: pa.RecordBatch, columns: Collection[str], by: Callable[[str], Callable[[str], str]]) -> pa.RecordBatch:
    """The batch with each name of some columns as the function that `by` gives for the column makes it."""
    if not columns:
        return batch
    made = [renamed(batch.column(name), by(name)) if name in columns else batch.column(name) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(made, schema=batch.schema)


def names_of(schema: pa.Schema, whole: Collection[str] = ()) -> list[str]:
    """Columns of names, but for those in `whole`."""
    kinds = (pa.string(), CODED, pa.list_(pa.string()))
    return [field.name for field in schema if field.type in kinds and field.name not in KEYS and field.name not in whole]


def longest(array: Array) -> bool:
    """Whether a column has a name of more than `limits.REPORT_NAME_BYTES`. A list's entries are looked at even where a slice
    leaves them out."""
    column: Any = array
    texts = column.values if pa.types.is_list(column.type) else column.dictionary if column.type == CODED else column
    if not len(texts):
        return False
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return bool((ends[1:] - ends[:-1]).max() > limits.REPORT_NAME_BYTES)


class FirstNames:
    """The names of a column that are told apart: the first `limits.REPORT_NAMES_MAX`, shortened."""

    def __init__(self) -> None:
        self._kept: set[bytes] = set()

    def __call__(self, name: str) -> str:
        """The name, shortened, or `OTHERS`."""
        key = blake2b(name.encode(errors="surrogatepass"), digest_size=12).digest()
        if key not in self._kept:
            if len(self._kept) >= limits.REPORT_NAMES_MAX:
                return OTHERS
            self._kept.add(key)
        return shortened(name)


def bounded_files(
    files: Sequence[str], folder: str, label: str, whole: Collection[str] = (), *, compressed: bool = True
) -> list[str]:
    """The Parquet files of a table, or others in `folder` in their place where a column has too many names or too long ones.

    That is seen from the sizes in their footers first, which costs nothing: only where these leave it open are names counted.
    Files that are too small for so many names are not opened; `compressed`: they may be.
    """
    if sum(map(os.path.getsize, files)) < limits.REPORT_NAMES_MAX * (1 if compressed else ENTRY_BYTES):
        return list(files)
    from kcap.output.sink import output_errors
    from kcap.output.writers import Parquet

    tables = [parquet_file(path) for path in files]
    columns = [name for name in suspected([file.metadata for file in tables], whole) if too_many(tables, name)]
    if not columns:
        return list(files)
    first, made = {name: FirstNames() for name in columns}, []
    for number, file in enumerate(tables):
        made.append(os.path.join(folder, f"{label}-names-{number}.parquet"))
        with output_errors(f"temporary files in {folder}"), open(made[-1], "wb") as sink:
            writer = Parquet(sink, file.schema_arrow, "none")
            for batch in file.iter_batches(rows_at_once(file)):
                writer.write(changed(batch, [name for name in columns if name in batch.schema.names], first.__getitem__))
            writer.close()
    return made


def rows_at_once(file: Any) -> int:
    """How many rows of a Parquet file are read at once, by what a row of it takes."""
    footer = file.metadata
    size = sum(footer.row_group(group).total_byte_size for group in range(footer.num_row_groups))
    return int(min(limits.REPORT_NAMES_ROWS, max(1, limits.REPORT_NAMES_BYTES * footer.num_rows // max(size, 1))))


def suspected(footers: Sequence[Any], whole: Collection[str] = ()) -> list[str]:
    """Columns of names whose dictionaries are so large that they may have too many, but for those in `whole`."""
    sizes: dict[str, int] = {}
    for footer in footers:
        names = set(names_of(footer.schema.to_arrow_schema(), whole))
        for group in range(footer.num_row_groups):
            row_group = footer.row_group(group)
            for at in range(row_group.num_columns):
                chunk = row_group.column(at)
                name = chunk.path_in_schema.partition(".")[0]
                if name in names:
                    sizes[name] = sizes.get(name, 0) + dictionary_bytes(chunk)
    return [name for name, size in sizes.items() if size > limits.REPORT_NAMES_MAX * ENTRY_BYTES]


def dictionary_bytes(chunk: Any) -> int:
    """About how many bytes the distinct values of a column of a row group have, at most."""
    if not chunk.has_dictionary_page:
        return int(chunk.total_uncompressed_size)
    size = int(chunk.data_page_offset - chunk.dictionary_page_offset)
    return size if chunk.compression == "UNCOMPRESSED" else size * COMPRESSED


def too_many(files: Sequence[Any], name: str) -> bool:
    """Whether a column has more than `limits.REPORT_NAMES_MAX` names, or as many bytes in them as these could have."""
    seen: set[int] = set()
    room = limits.REPORT_NAMES_MAX * limits.REPORT_NAME_BYTES
    for text in texts(files, name):
        key = hash(text)
        if key not in seen:
            seen.add(key)
            room -= len(text)
            if len(seen) > limits.REPORT_NAMES_MAX or room < 0:
                return True
    return False


def texts(files: Sequence[Any], name: str) -> Iterator[str]:
    """The names in a column, those of each batch once."""
    for file in files:
        if name not in file.schema_arrow.names:
            continue
        for batch in file.iter_batches(rows_at_once(file), columns=[name]):
            column: Any = batch.column(0)
            found: Any = (column.flatten() if pa.types.is_list(column.type) else column).unique()
            yield from (text for text in found.to_pylist() if text is not None)
