"""Reads tables that were saved as Parquet files by `kcap rows -o`, with `--partition-by`, or by Spark.

In: paths of files and folders. Out: the table that each file holds, and the SQL that reads files as one table. Law: file names
may have any bytes; files of several folders give one table, whichever columns each folder encodes in the names of folders; what
cannot be read is a CaptureError.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kcap.columns import TABLES
from kcap.errors import CaptureError, UsageError
from kcap.inputs import is_parquet
from kcap.version import VERSION

PATTERN: Final = frozenset("*?[")
"""Characters that make DuckDB treat a path as a pattern."""


def saved_files(paths: Sequence[str]) -> list[str] | None:
    """The Parquet files among the paths and in folders, each once; None if the paths are captures.

    Raises UsageError if there are both.
    """
    found: dict[tuple[int, int], str] = {}
    others = []
    for path in paths:
        folder = os.path.isdir(path)
        inside = sorted(str(file) for file in Path(path).rglob("*.parquet")) if folder else [path] * is_parquet(path)
        for file in inside:
            status = os.stat(file)
            found.setdefault((status.st_dev, status.st_ino), file)
        others += [] if inside else [path]
    if found and others:
        first = next(iter(found.values()))
        raise UsageError(f"{first} is a saved table and {others[0]} is not: a report is made of captures or of saved rows")
    return list(found.values()) or None


def without_tables(tables: Sequence[str], more: Sequence[str] = ()) -> UsageError:
    """Message for a report that needs tables which were not saved: their names and the command that writes them. `more`:
    optional columns that the report needs."""
    columns = f" --columns +{','.join(more)}" if more else ""
    each = ", ".join(f"kcap rows CAPTURE --table {name}{columns} -o FOLDER/{name}.parquet" for name in tables)
    return UsageError(
        f"not among the saved tables: {', '.join(tables)}, which this report needs: give the capture, or write them beside the "
        f"others: {each}"
    )


def without_column(path: str, name: str) -> UsageError:
    """Message for a saved table without a column that a report needs: the build of kcap that saved it, if the file records
    this, and what to do."""
    schema = schema_of(path)
    table = table_in(path, schema)
    made = (schema.metadata or {}).get(b"kcap.version")
    by = f"kcap {made.decode()}" if made else "an earlier build of kcap, or Spark,"
    return UsageError(
        f"{path} has no column {name!r}: {by} saved it, with other columns or before there was this one; this is kcap "
        f"{VERSION}. Give the capture, or save it again: kcap rows CAPTURE --table {table} -o {table}.parquet"
    )


def schema_of(path: str) -> Any:
    """The Arrow schema of a Parquet file. Raises CaptureError if it cannot be read."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with open(path, "rb") as file:  # Arrow accepts only names in UTF-8
            return parquet.read_schema(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise CaptureError(f"{path}: {error}") from None


def table_of(path: str) -> tuple[str, list[str]]:
    """The table that a Parquet file holds, and its columns. Raises CaptureError if it cannot be read."""
    schema = schema_of(path)
    return table_in(path, schema), schema.names


def table_in(path: str, schema: Any) -> str:
    """The table that a Parquet file with this schema holds."""
    named: str = (schema.metadata or {}).get(b"kcap.table", b"").decode()
    # Spark omits the name of the table when it writes, but `ingest` names a folder for each table.
    above = next((part for part in reversed(Path(path).parts[:-1]) if part in TABLES), None)
    return named or above or ("partitions" if "partition" in schema.names else "exchanges")


def readable(path: str, folder: str) -> str:
    """The path, or a link to it in `folder` if Arrow and DuckDB would not open it: they require UTF-8, and DuckDB expands
    patterns.

    Folders whose names encode a column (`api=Fetch`) are above the link too.
    """
    try:
        path.encode()
        if PATTERN.isdisjoint(path):
            return path
    except UnicodeEncodeError:
        pass
    links = os.path.join(folder, "links")
    os.makedirs(links, exist_ok=True)
    parts = [part.encode(errors="replace").decode() for part in folders_of(path)]
    above = os.path.join(links, str(len(os.listdir(links))), *(part for part in parts if PATTERN.isdisjoint(part)))
    os.makedirs(above)
    link = os.path.join(above, "part.parquet")
    os.symlink(os.path.abspath(path), link)
    return link


def folders_of(path: str) -> list[str]:
    """The names of the folders above a file that may encode a column: `api=Fetch`."""
    return [part for part in os.path.dirname(os.path.abspath(path)).split(os.sep) if "=" in part]


def folder_columns(path: str, names: Collection[str]) -> list[str]:
    """Columns of exchanges that a file leaves to the names of its folders, as `kcap rows --partition-by` writes them."""
    from kcap.output.partitioned import PARTS

    keys = (part.partition("=")[0] for part in folders_of(path))
    return [key for key in keys if PARTS.get(key) == key and key not in names]


def by_folders(files: Sequence[str]) -> dict[tuple[str, ...], list[str]]:
    """Files by the folder columns that DuckDB must add to them. A file that has all of its columns gets none, so that a folder
    with an equals sign in its name does not replace a column."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for path in files:
        folders = folders_of(path)
        relies = bool(folders) and bool(folder_columns(path, table_of(path)[1]))
        groups.setdefault(tuple(part.partition("=")[0] for part in folders) if relies else (), []).append(path)
    return groups


def scan(files: Sequence[str]) -> str:
    """The SQL that reads files as one table."""
    parts = []
    for folders, some in by_folders(files).items():
        places = ", ".join("'" + file.replace("'", "''") + "'" for file in some)
        options = {"union_by_name": len(some) > 1, "hive_partitioning": bool(folders)}
        options |= {"hive_types_autocast": False} if folders else {}
        given = "".join(f", {option} = {str(value).lower()}" for option, value in options.items())
        parts.append(f"SELECT * FROM read_parquet([{places}]{given})")  # noqa: S608 - our own words
    return " UNION ALL BY NAME ".join(parts)


@contextmanager
def faults_named(files: Sequence[str] | None) -> Iterator[None]:
    """Raises CaptureError for errors in the block that come from the content of saved files."""
    try:
        yield
    except Exception as error:
        if files is None or not of_contents(error):
            raise
        more = f" (or one of {len(files) - 1} more)" if len(files) > 1 else ""
        raise CaptureError(f"{files[0]}{more}: {str(error).strip()}") from None


def of_contents(error: Exception) -> bool:
    """Whether Arrow or DuckDB raised the error because of the content of files: no interrupt, no lack of memory."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    where = type(error).__module__.partition(".")[0]
    if where in ("_duckdb", "duckdb"):
        return not kinds & {"InterruptException", "OutOfMemoryException"}
    return "ArrowInvalid" in kinds or (isinstance(error, OSError) and error.errno is None)
