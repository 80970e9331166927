"""Makes captures, or tables saved from them, available as tables of DuckDB.

In: paths, the columns that a report needs, a filter. Out: Ibis tables that exist until the end of the block. Law: a capture and
its saved rows give the same tables; a capture is read once; memory is flat, since rows go to temporary Parquet files.
"""

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from kcap import limits
from kcap.analyzer import Options
from kcap.arrays.arrow import with_texts
from kcap.capture.source import STANDARD_INPUT
from kcap.capture_pass import CapturePass
from kcap.columns import EXCHANGES, ON_REQUEST
from kcap.errors import UsageError
from kcap.jobs.cores import AUTO, free_cores
from kcap.reports.definition import KEY, Tables
from kcap.reports.names import bounded_files, shorter
from kcap.reports.saved import (
    by_folders,
    faults_named,
    folder_columns,
    readable,
    saved_files,
    scan,
    table_of,
    without_column,
    without_tables,
)
from kcap.runtime import enough_room, release_reading
from kcap.session import Capture
from kcap.table.backfill import Backfill, companions
from kcap.table.builder import Observer, TableSet
from kcap.table.table_builders import CODED_TABLES, TableRequest

if TYPE_CHECKING:
    import pyarrow as pa

    from kcap.filter.ast import Filter
    from kcap.output.sink import OutputSink


@dataclass(slots=True)
class ReportInput:
    """The input of a report."""

    paths: Sequence[str]
    options: Options | None = None
    only: "Filter | None" = None
    watch: Callable[[CapturePass], Callable[[], None]] | None = None
    """Makes the callback that shows the progress of reading."""
    observers: Sequence[Observer] = ()
    """Objects that receive exchanges and connections beside the tables, if a capture is read."""
    reading: CapturePass | None = None
    """The pass over the captures, once it has begun."""
    captures: list[str] = field(default_factory=list)
    """Names of the files, once they have been read."""

    @property
    def jobs(self) -> int:
        """As of `Options.jobs`."""
        return AUTO if self.options is None else self.options.jobs


class Interrupted(Exception):  # noqa: N818 - no error: its caller cancelled
    """Raised when the report that runs was cancelled."""


def _duckdb() -> Any:
    """DuckDB's compiled module without its Python part, if it can be loaded alone: the Python part is needed only for Ibis and
    Arrow tables and takes a tenth of the time of a small report to load."""
    from importlib import import_module

    try:
        return import_module("_duckdb")
    except ImportError:
        return import_module("duckdb")


SETTINGS: Final = (
    "preserve_insertion_order = false",
    "enable_progress_bar = false",
    "TimeZone = 'UTC'",
    # A report is dozens of statements over the same local files: prefetching is for remote ones, and each statement would
    # decode the footers again. Together they were a sixth of the time of the statements of `check` (1.2 M exchanges).
    "disable_parquet_prefetching = true",
    "parquet_metadata_cache = true",
)
"""Settings of DuckDB."""
QUICK: Final = ("filter_pushdown", "unused_columns")
"""The only optimizers used for statements over small tables, for which planning with all optimizers takes longer than it saves:
67 ms instead of 52 ms on the 20 statements of `stats` over a capture of 90 kB."""
FEW_ROWS: Final = 32
"""Rows of which the times are looked up first, since other columns are then read of few others."""
FEW_CORES: Final = 2
"""Number of processors up to which one thread is faster than several: `check` of 1 GB on two took 18.0 s instead of 20.1 s."""


class Engine:
    """A DuckDB instance with a folder for data that does not fit in memory.

    Ibis is loaded for expressions only; statements whose SQL is known run without it.
    """

    def __init__(self, folder: str, *, jobs: int = AUTO) -> None:
        """`folder`: for data that exceeds `limits.REPORT_ENGINE_BYTES`. `jobs`: as of `Options.jobs`; one means one thread."""
        enough_room(limits.ADDRESS_SPACE_DUCKDB)
        self._stopped, self._bytes = False, limits.REPORT_ENGINE_BYTES
        self._duckdb = _duckdb().connect(config={"temp_directory": os.path.join(folder, "spill")})
        self._duckdb.execute(";".join(f"SET {setting}" for setting in SETTINGS))
        if jobs == 1 or free_cores() <= FEW_CORES:
            self._duckdb.execute("SET threads = 1")
        self._optimized = True
        self._duckdb.execute(f"SET memory_limit = '{self._bytes:d}B'")
        self._kinds: dict[str, str] = {}
        self._columns: dict[str, list[tuple[str, str]]] = {}

    @cached_property
    def _connection(self) -> Any:
        """Ibis on the same DuckDB."""
        import ibis

        return ibis.duckdb.from_connection(self._duckdb)

    def define(self, name: str, files: Sequence[str]) -> None:
        """Makes a view of Parquet files, or a table of small ones, since each statement over a view opens the files anew."""
        small = sum(map(os.path.getsize, files)) < limits.REPORT_TABLE_BYTES
        self._create(name, scan(files), small)

    def derive(self, name: str, sql: str, *, small: bool = False) -> None:
        """Makes a view of a statement, in place of an earlier one of that name; a table if its rows are `small` or all files
        are, since statements over a view plan all of it anew."""
        self._create(name, sql, small or "VIEW" not in self._kinds.values())

    def hold_names(self, name: str, values: Sequence[str]) -> None:
        """Makes a table of strings, in the column `name`."""
        self.rows_with(f'CREATE OR REPLACE TABLE "{name}" AS SELECT unnest($names) AS name', {"names": list(values)})

    @contextmanager
    def table(self, name: str, sql: str | None) -> Iterator[None]:
        """Holds the rows of a statement as a table until the end of the block. Raises Interrupted as `rows` does."""
        if sql is None:
            yield
            return
        self.rows(f'CREATE TABLE "{name}" AS {sql}')
        try:
            yield
        finally:
            self._duckdb.execute(f'DROP TABLE "{name}"')

    def _create(self, name: str, sql: str, small: bool) -> None:
        kind = self._kinds[name] = "TABLE" if small else "VIEW"
        self._columns.pop(name, None)
        self._optimize("VIEW" in self._kinds.values())
        self._fetched(f'CREATE OR REPLACE {kind} "{name}" AS {sql}')

    def _optimize(self, fully: bool) -> None:
        """Selects all optimizers or only `QUICK` for the statements that follow."""
        if fully != self._optimized:
            names = [] if fully else [name for (name,) in self._duckdb.execute("FROM duckdb_optimizers()").fetchall()]
            self._duckdb.execute(f"SET disabled_optimizers = '{','.join(name for name in names if name not in QUICK)}'")
            self._optimized = fully

    def clear(self) -> None:
        """Drops everything that was defined and derived."""
        for name, kind in self._kinds.items():
            self._duckdb.execute(f'DROP {kind} "{name}"')
        self._kinds, self._columns = {}, {}

    def columns(self, name: str) -> list[tuple[str, str]]:
        """Names and types of the columns of a view."""
        found = self._columns.get(name)
        if found is None:
            rows = self._duckdb.execute(f'DESCRIBE "{name}"').fetchall()
            found = self._columns[name] = [(row[0], row[1]) for row in rows]
        return found

    def viewed(self, name: str) -> Any:
        """A view as an Ibis table."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # ibis 12 uses an old name that duckdb 2 renamed
            return self._connection.table(name)

    def register(self, name: str, table: Any) -> None:
        """Makes a view of an Arrow table without copying it."""
        import duckdb  # noqa: F401 - it enters what reads Arrow tables

        self._duckdb.register(name, table)

    def sql(self, expression: Any) -> str:
        """The SQL of an expression. Raises Interrupted if the report was cancelled: compiling a report takes a second."""
        if self._stopped:
            raise Interrupted
        text: str = self._connection.compile(expression.as_table())
        return text

    def rows(self, expression: Any) -> list[dict[str, Any]]:
        """The rows of an expression, or of its SQL. Raises Interrupted if the report was cancelled."""
        if self._stopped:
            raise Interrupted
        if isinstance(expression, str):
            return self._fetched(expression)
        found: list[dict[str, Any]] = self._connection.to_pyarrow(expression).to_pylist()
        return found

    def rows_with(self, sql: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        """The rows of a statement with parameters. Raises Interrupted as `rows` does."""
        if self._stopped:
            raise Interrupted
        return self._fetched(sql, params)

    def rows_of(
        self, name: str, columns: Sequence[str], keys: Collection[tuple[str, int]], between: tuple[int, int] | None = None
    ) -> list[dict[str, Any]]:
        """Columns of the rows of a view that have one of these keys. `between`: times of the first and last of their requests,
        which avoids reading all others."""
        if self._stopped:
            raise Interrupted
        params = {"links": [link for link, _ in keys], "numbers": [number for _, number in keys]}
        chosen = (
            f'FROM "{name}" '
            "JOIN (SELECT unnest($links) AS connection, unnest($numbers) AS exchange) USING (connection, exchange)"
        )
        where = "" if between is None else f" WHERE request_first_ns BETWEEN {between[0]:d} AND {between[1]:d}"
        if between is None and len(keys) <= FEW_ROWS:
            found = [row["request_first_ns"] for row in self._fetched(f"SELECT request_first_ns {chosen}", params)]
            if not found:
                return []
            if None not in found:
                where = f" WHERE request_first_ns IN ({', '.join(map(str, found))})"
        return self._fetched(f"SELECT {', '.join(columns)} {chosen}{where}", params)

    def _fetched(self, sql: str, params: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """The rows of a statement. If they do not fit, the memory is doubled and the statement is run again, repeatedly."""
        while True:
            try:
                return self._executed(sql, params)
            except _duckdb().OutOfMemoryException:
                if self._bytes >= limits.REPORT_ENGINE_BYTES_MAX:
                    raise
            self._bytes *= 2
            self._duckdb.execute(f"SET memory_limit = '{self._bytes:d}B'")

    def _executed(self, sql: str, params: dict[str, Any] | None) -> list[dict[str, Any]]:
        """The rows of a statement. `execute` plans it once; `sql` plans it once for its columns and again to run it, which
        takes most of the time for a small capture."""
        cursor = self._duckdb.execute(sql, params)
        names = [column[0] for column in cursor.description]
        found: list[dict[str, Any]] = []
        while some := cursor.fetchmany(
            limits.REPORT_FETCHED_ROWS
        ):  # tuples of all rows beside their dictionaries would take as much memory again
            found += [dict(zip(names, values)) for values in some]
        return found

    def interrupt(self) -> None:
        """Interrupts the statement that runs and all later ones: they raise Interrupted. Called from another thread."""
        self._stopped = True
        self._duckdb.interrupt()

    def close(self) -> None:
        """Closes the engine."""
        self._duckdb.close()


@contextmanager
def engine_over(
    given: ReportInput,
    columns: Sequence[str],
    partitions: Sequence[str],
    beside: Sequence[str] = (),
    into: Engine | None = None,
) -> Iterator[tuple[Engine, list[str]]]:
    """An engine with views of the tables of a report, and the names of the views: `exchanges`, `partitions` if there are any,
    and `passed` if a filter was applied while a capture was read.

    `beside`: columns of exchanges that partitions of captures have as well, which is quicker than a join and takes no memory;
    saved tables have them in exchanges.
    `into`: an engine that has the views until the end of the block, instead of a new engine.

    Raises UsageError for what the input does not have, CaptureError if nothing can be read.
    """
    with tempfile.TemporaryDirectory(prefix="kcap-") as folder:
        saved = saved_files(given.paths)
        if saved is None:
            places = read(given, folder, columns, partitions, beside)
            release_reading()
        else:
            places = found(given, saved, [*beside, *columns], partitions, folder)
        names: list[str] = [name for name in VIEWS if name in places]
        engine = Engine(folder, jobs=given.jobs) if into is None else into
        try:
            with faults_named(saved):
                for name in names:
                    whole = tested_by(given.only)
                    engine.define(name, bounded(places[name], folder, name, whole, saved=saved is not None))
                yield engine, names
        finally:
            if into is None:
                engine.close()
            else:
                engine.clear()


def tested_by(only: "Filter | None") -> Sequence[str]:
    """Columns that a filter tests; their names must remain whole."""
    if only is None or is_deep(only):
        return ()
    from kcap.filter.ast import columns_of

    return columns_of(only)


def is_deep(only: "Filter | None") -> bool:
    """Whether a filter tests fields of bodies. Most reports have no filter, and its module takes 2 % of their time."""
    if only is None:
        return False
    from kcap.filter import ast

    return ast.is_deep(only)


def tables_of(engine: Engine, names: Sequence[str], given: ReportInput) -> Tables:
    """The tables of views, including the table of the filter."""
    every = engine.viewed("exchanges")
    partitions = engine.viewed("partitions") if "partitions" in names else None
    kept = every
    if "passed" in names:
        kept = every.semi_join(engine.viewed("passed"), list(KEY))
    elif given.only is not None:
        from kcap.filter.ibis_filter import predicate

        kept = every.filter(predicate(given.only, every))
    return Tables.under(every, kept, partitions)


VIEWS: Final = ("exchanges", "partitions", "passed")
ON_REQUEST_NAMES: Final = frozenset(column.name for columns in ON_REQUEST.values() for column in columns)


def found(
    given: ReportInput, files: Sequence[str], columns: Sequence[str], partitions: Sequence[str], folder: str
) -> dict[str, list[str]]:
    """Saved tables by name."""
    if is_deep(given.only):
        raise UsageError("a saved table has no decoded bodies: request.* and response.* fields work while a capture is read")
    places: dict[str, list[str]] = {}
    wanted = {"exchanges": [*columns, *tested_by(given.only)], "partitions": [*partitions]}
    for path in files:
        table, names = table_of(path)
        held = {*names, *ON_REQUEST_NAMES, *folder_columns(path, names)}
        missing = [name for name in wanted.get(table, ()) if name not in held]
        if missing:
            raise without_column(path, missing[0])
        places.setdefault(table, []).append(readable(path, folder))
    if "exchanges" not in places:
        raise without_tables(["exchanges"])
    given.captures = list(files)
    return places


def bounded(files: Sequence[str], folder: str, label: str, whole: Collection[str], *, saved: bool) -> list[str]:
    """As `bounded_files`; files that leave columns to the names of their folders are not changed. `saved`: the files were saved
    by users and may be compressed."""
    return list(files) if any(by_folders(files)) else bounded_files(files, folder, label, whole, compressed=saved)


def read(
    given: ReportInput, folder: str, columns: Sequence[str], partitions: Sequence[str], beside: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Reads captures once and writes one Parquet file per table."""
    deep = is_deep(given.only)
    tested = tested_by(given.only)
    names = list(dict.fromkeys([*KEY, *columns, *tested]))
    order = [column.name for column in (*EXCHANGES, *ON_REQUEST["exchanges"]) if column.name in names]
    requests = {"exchanges": TableRequest.of("exchanges", order, backfill=Backfill.REWRITE)}
    if deep:
        requests["passed"] = TableRequest.of("exchanges", KEY, only=given.only)
    if partitions:
        wanted = list(dict.fromkeys([*KEY, *partitions]))
        more = [column for column in EXCHANGES if column.name in beside and column.name not in KEY]
        requests["partitions"] = TableRequest.of("partitions", wanted, backfill=Backfill.REWRITE, of_exchanges=more)
    paths = list(given.paths)
    if STANDARD_INPUT in paths and (partitions or deep):
        paths[paths.index(STANDARD_INPUT)] = kept_input(folder)
    reading = given.reading = Capture(paths, given.options).read(keep_connections=bool(given.observers))
    if given.watch is not None:
        reading.watch = given.watch(reading)
    files = written(requests, reading, folder, given.observers, partial(shorter, whole=tested))
    given.captures = [file.name for file in reading.capture_files]
    return {label: [path] for label, path in files.items()}


def written(
    requests: Mapping[str, TableRequest],
    reading: Any,
    folder: str,
    observers: Sequence[Observer] = (),
    changed: "Callable[[pa.RecordBatch], pa.RecordBatch] | None" = None,
) -> dict[str, str]:
    """The tables of a pass as Parquet files, with all facts of the capture. `changed`: transforms a batch before it is written,
    and may change its schema."""
    import pyarrow as pa

    from kcap.output.sink import output_errors
    from kcap.output.writers import Parquet
    from kcap.table.backfill import leading, needs_backfill, read_again

    def schema(made: "pa.Schema") -> "pa.Schema":
        return made if changed is None else changed(pa.RecordBatch.from_pylist([], made)).schema

    temporary = partial(Parquet, compression="none", group=limits.REPORT_ROW_GROUP, threaded=reading.processes > 1)
    tables = TableSet.of({label: for_parquet(request) for label, request in requests.items()}, observers)
    tracker = tables.begin(reading)
    reading.patient = True
    places = {label: os.path.join(folder, f"{label}.parquet") for label in requests}
    with ExitStack() as stack:
        stack.enter_context(output_errors(f"temporary files in {folder}"))
        sinks: dict[str, OutputSink] = {label: stack.enter_context(open(path, "wb")) for label, path in places.items()}
        writers = {label: temporary(sinks[label], schema(builder.made_schema)) for label, builder in tables.builders.items()}
        for label, batch in leading(tables.rows(), tracker):
            writers[label].write(batch if changed is None else changed(batch))
            del batch  # otherwise it would live while the next one is built
        for writer in writers.values():
            writer.close()
    for label, builder in tables.builders.items():
        request = builder.request
        columns = [*request.columns, *request.of_exchanges]
        later = request.backfill is Backfill.REWRITE and needs_backfill(request.table, columns) and tracker.knows_better()
        if builder.waits or later:
            first, places[label] = places[label], os.path.join(folder, f"{label}-backfilled.parquet")
            finish = tables.finisher(label)
            with open(first, "rb") as source, open(places[label], "wb") as file:
                again = temporary(file, with_texts(schema(builder.schema), coded=False))
                for batch in read_again("parquet", source):
                    again.write(finish(batch) if changed is None else changed(finish(batch)))
                again.close()
            os.unlink(first)
    return places


def for_parquet(request: TableRequest) -> TableRequest:
    """The request with the columns that a backfill of its rows needs, and with texts encoded for quick writing."""
    more = companions("exchanges", request.of_exchanges)
    columns = companions(request.table, request.columns)
    return replace(request, columns=columns, of_exchanges=more, coded=request.table in CODED_TABLES)


def kept_input(folder: str) -> str:
    """Standard input as a file, for more than one pass."""
    path = os.path.join(folder, "standard-input")
    with open(path, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path
