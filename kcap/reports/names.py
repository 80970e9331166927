"""Bounds the memory that reports need for names: client ids, groups, topics and all other text from a capture.

In: record batches, or the Parquet files of a report's tables. Out: the same rows with long names shortened; if a column has too
many names, those after the first ones become one name. Law: names change only if they are longer than
`limits.REPORT_NAME_BYTES`, or if a column has more than `limits.REPORT_NAMES_MAX` of them. Shortened names stay distinct, since
each ends with a digest of the whole name. Columns that a filter tests do not change.

A report has a row of Python objects for each name that it groups by, some 5 KB, and its engine holds several copies of each
name. Rows themselves (`kcap rows`, `kcap sql`, saved tables) always have whole names.
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
"""Stands for all names of a column after the first `limits.REPORT_NAMES_MAX`."""
KEPT_CHARACTERS: Final = 160
"""Number of characters that a shortened name retains."""
DIGITS: Final = 12
"""Hexadecimal digits of the digest in a shortened name."""
SHORTENED: Final = re.compile(rf"(?s)(.{{1,{KEPT_CHARACTERS}}})\.{{3}} \([\d,]+ characters, sha256 [0-9a-f]{{{DIGITS}}}\)")
"""Pattern of the names that `shortened` makes."""
KEYS: Final = ("connection", "capture", "response_capture")
"""Columns of text that are not names: reports use them to look up rows."""
COMPRESSED: Final = 8
"""Factor by which the dictionary of a compressed column may exceed its size."""
ENTRY_BYTES: Final = 5
"""Minimum size of a distinct name in the dictionary of a Parquet column: its length and one character."""


def shortened(name: str) -> str:
    """The name; if it is longer than `limits.REPORT_NAME_BYTES`, its beginning, its length and a digest."""
    if len(name) * 4 <= limits.REPORT_NAME_BYTES:
        return name
    data = name.encode(errors="surrogatepass")
    if len(data) <= limits.REPORT_NAME_BYTES:
        return name
    return f"{name[:KEPT_CHARACTERS]}... ({len(name):,} characters, sha256 {sha256(data).hexdigest()[:DIGITS]})"


def beginning(name: str) -> str | None:
    """The characters of a name that `shortened` retains, where the name may be shortened already; None if it retains all."""
    made = SHORTENED.fullmatch(shortened(name))
    return None if made is None else made[1]


def shorter(batch: pa.RecordBatch, whole: Collection[str] = ()) -> pa.RecordBatch:
    """The batch with long names shortened, except in columns named in `whole`; the batch itself if it has none."""
    return changed(batch, [name for name in names_of(batch.schema, whole) if longest(batch.column(name))], lambda _: shortened)


def changed(batch: pa.RecordBatch, columns: Collection[str], by: Callable[[str], Callable[[str], str]]) -> pa.RecordBatch:
    """The batch with the names of some columns replaced by the result of the column's function in `by`."""
    if not columns:
        return batch
    made = [renamed(batch.column(name), by(name)) if name in columns else batch.column(name) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays(made, schema=batch.schema)


def names_of(schema: pa.Schema, whole: Collection[str] = ()) -> list[str]:
    """Columns of names, except those in `whole`."""
    kinds = (pa.string(), CODED, pa.list_(pa.string()))
    return [field.name for field in schema if field.type in kinds and field.name not in KEYS and field.name not in whole]


def longest(array: Array) -> bool:
    """Whether a column has a name longer than `limits.REPORT_NAME_BYTES`. All entries of a list array are examined, also those
    outside its slice."""
    column: Any = array
    texts = column.values if pa.types.is_list(column.type) else column.dictionary if column.type == CODED else column
    if not len(texts):
        return False
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return bool((ends[1:] - ends[:-1]).max() > limits.REPORT_NAME_BYTES)


class FirstNames:
    """The names of a column that remain distinct: the first `limits.REPORT_NAMES_MAX`, shortened."""

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
    """The Parquet files of a table, or rewritten files in `folder` if a column has too many or too long names.

    The sizes in the footers are examined first, which costs nothing; names are counted only if the sizes do not decide it.
    Files that are too small for so many names are not opened. `compressed`: the files may be compressed.
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
    """Number of rows of a Parquet file to read at once, by the size of its rows."""
    footer = file.metadata
    size = sum(footer.row_group(group).total_byte_size for group in range(footer.num_row_groups))
    return int(min(limits.REPORT_NAMES_ROWS, max(1, limits.REPORT_NAMES_BYTES * footer.num_rows // max(size, 1))))


def suspected(footers: Sequence[Any], whole: Collection[str] = ()) -> list[str]:
    """Columns of names whose dictionaries are so large that they may have too many names, except those in `whole`."""
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
    """Upper estimate of the size in bytes of a column's distinct values in a row group."""
    if not chunk.has_dictionary_page:
        return int(chunk.total_uncompressed_size)
    size = int(chunk.data_page_offset - chunk.dictionary_page_offset)
    return size if chunk.compression == "UNCOMPRESSED" else size * COMPRESSED


def too_many(files: Sequence[Any], name: str) -> bool:
    """Whether a column has more than `limits.REPORT_NAMES_MAX` names, or more bytes of names than these could have."""
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
    """The names in a column, deduplicated per batch."""
    for file in files:
        if name not in file.schema_arrow.names:
            continue
        for batch in file.iter_batches(rows_at_once(file), columns=[name]):
            column: Any = batch.column(0)
            found: Any = (column.flatten() if pa.types.is_list(column.type) else column).unique()
            yield from (text for text in found.to_pylist() if text is not None)
