"""SQL over the tables of captures: DuckDB's, on rows that wait in temporary Parquet files.

In: a query and captures, or tables saved from them. Out: record batches of the result. Law: only the tables that the query
names are made, in one pass over the captures; memory is bounded by what DuckDB spills.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

import pyarrow as pa

from kcap import limits
from kcap.columns import TABLES
from kcap.errors import UsageError
from kcap.reports.saved import faults_named, of_contents, readable, saved_files, scan, table_of
from kcap.reports.source import written
from kcap.runtime import enough_room
from kcap.session import Capture
from kcap.table.backfill import BACKFILLED
from kcap.table.schema import arrow_schema, choose
from kcap.table.table_builders import TableRequest

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


Watch = Callable[[Any], Callable[[], None]]
Answer = tuple[pa.Schema, Iterator[pa.RecordBatch]]


def in_pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of `limits.SQL_BYTES_AT_ONCE` at most, or of one row."""
    for batch in batches:
        rows = max(1, batch.num_rows * limits.SQL_BYTES_AT_ONCE // max(batch.nbytes, 1))
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


@contextmanager
def answered(query: str, capture: Capture, watch: Watch | None = None) -> Iterator[Answer]:
    """The result of a query, for as long as the block lasts.

    Raises UsageError for a query that DuckDB does not take, or that is none.
    """
    with tempfile.TemporaryDirectory(prefix="kcap-") as folder, closing(Queries(capture, folder, watch)) as queries:
        yield queries.answer(query)


class Queries:
    """Queries over one capture, or over saved tables: a table is made when the first query names it, and stays."""

    def __init__(self, capture: Capture, folder: str, watch: Watch | None = None) -> None:
        enough_room(limits.ADDRESS_SPACE_DUCKDB)
        import duckdb

        self._capture, self._folder, self._watch = capture, folder, watch
        self._made: set[str] = set()
        self._engine = duckdb.connect()
        self._engine.execute("SET enable_progress_bar = false")
        self._engine.execute(f"SET temp_directory = '{os.path.join(folder, 'spill')}'")
        self._engine.execute("SET TimeZone = 'UTC'")
        saved = saved_files(capture.paths)
        self.saved = saved is not None
        if saved is not None:
            if capture.only is not None:
                raise UsageError("-Y works on captures; over saved tables, select rows in the query")
            found: dict[str, list[str]] = {}
            for path in saved:
                found.setdefault(table_of(path)[0], []).append(readable(path, folder))
            with faults_named(saved):
                for name, files in found.items():
                    self._view(name, files)
        else:
            for name in TABLES:  # for SHOW TABLES, DESCRIBE and suggestions, until a query names them
                self._engine.register(name, arrow_schema(name, choose(name, None)).empty_table())

    def answer(self, query: str) -> Answer:
        """The result, readable until the next query. Raises UsageError for a query that does not run, or that is none."""
        import duckdb

        if not query.strip().lower().startswith((*STATEMENTS, "(")):
            raise UsageError(f"a query begins with {', '.join(STATEMENTS[:3])}...: {query.strip()[:40]!r} does not")
        if not self.saved:
            self._make([name for name in tables_named(query) if name not in self._made])
        try:
            relation: Any = self._engine.sql(query)
            reader: Any = relation.to_arrow_reader(limits.SQL_ROWS_AT_ONCE) if relation is not None else None
        except duckdb.Error as error:
            raise UsageError(f"the query does not run: {str(error).strip()}") from None
        if reader is None:
            raise UsageError("the query has no answer")
        return reader.schema, self._read(reader)

    @staticmethod
    def _read(reader: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of a result, which are made while they are read. Raises UsageError where one cannot be made."""
        try:
            yield from in_pieces(reader)
        except Exception as error:
            if not of_contents(error):
                raise
            raise UsageError(f"the query does not run: {str(error).strip()}") from None

    def columns(self) -> dict[str, list[str]]:
        """Table -> its columns."""
        found: dict[str, list[str]] = {}
        query = "SELECT table_name, column_name FROM information_schema.columns ORDER BY ALL"
        for table, column in self._engine.execute(query).fetchall():
            found.setdefault(table, []).append(column)
        return found

    def close(self) -> None:
        """Ends the engine."""
        self._engine.close()

    def _view(self, name: str, files: list[str]) -> None:
        """Gives Parquet files the name of their table."""
        self._engine.execute(f"CREATE VIEW {name} AS {scan(files)}")

    def _make(self, names: list[str]) -> None:
        """Reads the capture for some tables."""
        if not names:
            return
        only = self._capture.only
        requests = {name: TableRequest.of(name, only=only if name in BACKFILLED else None) for name in names}
        reading = self._capture.read()
        if self._watch is not None:
            reading.watch = self._watch(reading)
        for name, path in written(requests, reading, self._folder).items():
            self._engine.unregister(name)
            self._view(name, [path])
            self._made.add(name)
