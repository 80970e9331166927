"""Arrow schemas of the tables, and the selection of columns.

In: `kcap.columns`. Out: Arrow schemas whose metadata have the table's name, its schema version, the version of kcap and each
column's meaning. Law: a table has the columns that `kcap.columns` declares, or the requested ones of these, in the order of the
request.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from kcap.columns import ON_REQUEST, SCHEMA_VERSION, TABLES, Column
from kcap.errors import UsageError, did_you_mean
from kcap.version import VERSION

TYPES: Final[dict[str, pa.DataType]] = {
    "string": pa.string(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "binary": pa.binary(),
    "list<string>": pa.list_(pa.string()),
    "list<int8>": pa.list_(pa.int8()),
    "list<int64>": pa.list_(pa.int64()),
}
"""Arrow's type for each spelling of `kcap.columns.TYPES`."""


def columns_of(table: str) -> dict[str, Column]:
    """The declared columns of a table by name, including optional ones.

    Raises UsageError for a table that does not exist.
    """
    declared = TABLES.get(table)
    if declared is None:
        raise UsageError(f"no table is called {table!r}{did_you_mean(table, TABLES)}; there are {', '.join(TABLES)}")
    return {column.name: column for column in (*declared, *ON_REQUEST.get(table, ()))}


def choose(table: str, names: Sequence[str] | None) -> list[Column]:
    """The requested columns; all columns if none were requested.

    Raises UsageError for names that the table does not have, or that are repeated.
    """
    declared = columns_of(table)
    if names is None:
        return list(TABLES[table])
    unknown = [name for name in names if name not in declared]
    if unknown:
        raise UsageError(f"{table} has no column {unknown[0]!r}{did_you_mean(unknown[0], declared)}")
    twice = next((name for name in names if list(names).count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"column {twice!r} is requested twice")
    if not names:
        raise UsageError("no column is requested")
    return [declared[name] for name in names]


def is_body_field(name: str) -> bool:
    """Whether a name is meant as a field of a decoded body, not as a column."""
    return name.startswith(("request.", "response."))


def arrow_schema(table: str, columns: Sequence[Column]) -> pa.Schema:
    fields = [
        pa.field(column.name, TYPES[column.type], column.nullable, {"doc": column.doc})  # Parquet and Arrow files store it
        for column in columns
    ]
    return pa.schema(fields, {"kcap.table": table, "kcap.schema_version": str(SCHEMA_VERSION), "kcap.version": VERSION})
