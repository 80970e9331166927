"""SQL over the tables of captures: DuckDB's, on rows that wait in temporary Parquet files.

In: a query and captures, or tables saved from them. Out: record batches of the result. Law: only the tables that the query
names are made, in one pass over the captures; memory is bounded by what DuckDB spills.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from kcap.columns import TABLES
from kcap.errors import UsageError
from kcap.reports.source import hive, saved_files, table_of, written
from kcap.session import Capture
from kcap.table.backfill import BACKFILLED
from kcap.table.schema import arrow_schema, choose
from kcap.table.table_builders import TableRequest

ROWS_AT_ONCE: Final = 1 << 13
STATEMENTS: Final = (
    "select",
    "with",
    "from",
    "describe",
    "summarize",
    "explain",
    "values",
    "show",
    "table",
    "pivot",
    "unpivot",
)
"""How a query may begin: captures are read, not written."""


def tables_named(query: str) -> list[str]:
    """The tables whose names occur in a query; one too many costs time, none is left out."""
    words = set(re.findall(r"[a-z_]+", query.lower()))
    return [name for name in TABLES if name in words]


@contextmanager
def answered(
    query: str, capture: Capture, watch: Callable[[Any], Callable[[], None]] | None = None
) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """The result of a query, for as long as the block lasts.

    Raises UsageError for a query that DuckDB does not take, or that is none.
    """
    import duckdb

    if not query.strip().lower().startswith((*STATEMENTS, "(")):
        raise UsageError(f"a query begins with {', '.join(STATEMENTS[:3])}...: {query.strip()[:40]!r} does not")
    with tempfile.TemporaryDirectory(prefix="kcap-") as folder, duckdb.connect() as engine:
        engine.execute("SET enable_progress_bar = false")
        engine.execute(f"SET temp_directory = '{os.path.join(folder, 'spill')}'")
        engine.execute("SET TimeZone = 'UTC'")
        made = _files(query, capture, folder, watch)
        for name, files in made.items():
            places = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
            folders = "".join(f", {key} = {str(value).lower()}" for key, value in hive(files).items())
            engine.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{places}], union_by_name = true{folders})")  # noqa: S608
        if saved_files(capture.paths) is None:
            for name in TABLES.keys() - made.keys():  # tables that the query does not name: for SHOW TABLES and suggestions
                engine.register(name, arrow_schema(name, choose(name, None)).empty_table())
        try:
            relation: Any = engine.sql(query)
            reader: Any = relation.to_arrow_reader(ROWS_AT_ONCE) if relation is not None else None
        except duckdb.Error as error:
            raise UsageError(f"the query does not run: {str(error).strip()}") from None
        if reader is None:
            raise UsageError("the query has no answer")
        yield reader.schema, iter(reader)


def _files(
    query: str, capture: Capture, folder: str, watch: Callable[[Any], Callable[[], None]] | None
) -> dict[str, list[str]]:
    """Table -> the Parquet files that hold it."""
    saved = saved_files(capture.paths)
    if saved is not None:
        if capture.only is not None:
            raise UsageError("-Y goes with captures; over saved tables the query says which rows")
        found: dict[str, list[str]] = {}
        for path in saved:
            found.setdefault(table_of(path)[0], []).append(path)
        return found
    names = tables_named(query)
    if not names:
        return {}
    requests = {name: TableRequest.of(name, only=capture.only if name in BACKFILLED else None) for name in names}
    reading = capture.read()
    if watch is not None:
        reading.watch = watch(reading)
    return {name: [path] for name, path in written(requests, reading, folder).items()}
