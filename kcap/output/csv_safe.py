"""Makes record batches safe for spreadsheets, which evaluate texts that look like formulas.

In: a record batch. Out: the same with an apostrophe before such texts (`escaping.csv_safe`). Law: everything else is unchanged.
Programs that read the CSV see the apostrophe, so this is done only on request.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kcap.output.escaping import csv_safe

FIRST = r"^[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]"


class SafeCsv:
    """A writer of CSV or TSV whose batches are made safe first."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write(csv_safe_batch(batch))

    def close(self) -> None:
        self._writer.close()


def csv_safe_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`csv_safe` for all texts of a record batch, including those in lists."""
    arrays = [_safe_column(column) for column in batch.columns]
    schema = pa.schema([field.with_type(array.type) for field, array in zip(batch.schema, arrays)])
    return pa.RecordBatch.from_arrays(arrays, schema=schema.with_metadata(batch.schema.metadata))


def _safe_column(column: Any) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        found = pc.match_substring_regex(column, FIRST)
        if not pc.any(found).as_py():
            return column
        return pa.array([None if text is None else csv_safe(text) for text in column.to_pylist()], column.type)
    if pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type):
        values = [None if some is None else [text and csv_safe(text) for text in some] for some in column.to_pylist()]
        return pa.array(values, column.type)
    return column
