"""The tables of a capture as data frames.

In: a session, paths, a table's name. Out: a data frame with the columns that `kcap.columns` declares. Law: its rows equal those
of `kcap rows --table TABLE -o FILE`, in no particular order.
"""

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from kcap.analyzer import Options
from kcap.columns import TABLES
from kcap.errors import UsageError
from kcap.facts.merge import Facts, tracker_of
from kcap.filter.ast import columns_of
from kcap.filter.parse import parse
from kcap.reports.versions.merge import together
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.table.schema import choose
from kcap.table.side_tables import batch_of, broker_rows, capture_rows, topic_rows
from kcap.table.table_builders import TableRequest
from kcap.weird import WeirdKind
from spark_jobs.scan import Scan, finished, scan
from spark_jobs.table_rows import NUMBER, PROFILE_SCHEMA, PROFILES, TURN, ProfileRequest, Together
from spark_jobs.table_rows import finished as completed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from kcap.filter.ast import Filter

OF_EXCHANGES: Final = ("exchanges", "partitions", "records")
"""Tables that a filter applies to."""
SHIPS: Final = ("auto", "references", "edges", "packets")


STREAM: Final = "stream"
"""The column of exchanges with the number of the connection in the capture, from 0."""


@dataclass(slots=True)
class SparkCapture:
    """A scanned capture, which provides any number of tables."""

    scanned: Scan
    _facts: Facts | None = field(default=None)

    def table(self, name: str, columns: Sequence[str] | None = None, only: str | None = None) -> "DataFrame":
        """A table of the capture.

        Raises UsageError for an unknown table or column, and for a filter on a table without exchanges; FilterError for a
        filter that does not parse.
        """
        if name == "segments" and only is None:
            segments = self.scanned.segments()
            return segments if columns is None else segments.select(*columns)
        wanted = self._wanted(name, columns, only)
        if STREAM in names_of(wanted) and name == "exchanges":
            return self._numbered(wanted, only)
        return self._read([wanted])[name]

    def tables(
        self, columns: Mapping[str, Sequence[str]], only: str | None = None, *, profiles: bool = False
    ) -> "dict[str, DataFrame]":
        """Columns of several tables, built in one pass over the shards; the arguments are those of `table`.

        The filter applies to exchanges and their parts. `profiles`: adds the connection profiles as a frame, `PROFILES`, for
        `merged_profiles`. Raises what `table` raises.
        """
        wanted = [self._wanted(name, some, only if name in OF_EXCHANGES else None) for name, some in columns.items()]
        return self._read(wanted, ProfileRequest(parse(only) if only else None) if profiles else None)

    def merged_profiles(self, frame: "DataFrame | None" = None, only: str | None = None) -> ConnectionProfiles:
        """The connection profiles of the whole capture, which the report `versions` needs; from a frame of `tables`, or from a
        separate pass.

        Raises FilterError for a filter that does not parse.
        """
        if frame is None:
            frame = self._read([], ProfileRequest(parse(only) if only else None))[PROFILES]
        parts: list[ConnectionProfiles] = [pickle.loads(one.profiles) for one in frame.collect()]  # noqa: S301 - what this job's tasks wrote
        return together(parts, tracker_of(self.facts()))

    def _wanted(self, name: str, columns: Sequence[str] | None, only: str | None) -> TableRequest:
        wanted = TableRequest.of(name, columns, only=parse(only) if only else None)
        refuse(wanted.only)
        return wanted

    def _read(self, tables: Sequence[TableRequest], profiles: ProfileRequest | None = None) -> "dict[str, DataFrame]":
        """Builds several tables in one pass over the shards."""
        work = Together.of(tables)
        if profiles is not None:
            work = replace(work, learns=True, profiles=profiles)
        facts = self.facts() if any(maker.primed for maker in work.makers.values()) else None
        made: dict[str, DataFrame] = {}
        if work.makers or profiles is not None:
            packed, found = self.scanned.reduced(work, facts)
            if facts is None and work.learns_all:
                self._facts = found
            tracker = tracker_of(facts or found)
            if profiles is not None:
                made[PROFILES] = finished(packed, PROFILES, iter, PROFILE_SCHEMA)
            for name, maker in work.makers.items():
                made[name] = finished(packed, name, completed(maker, tracker), maker.schema)
        for wanted in tables:
            complete = OF_CAPTURE.get(wanted.table)
            if complete is not None:
                made[wanted.table] = complete(self, wanted, made.get(wanted.table))
        extra = {PROFILES: made[PROFILES]} if profiles is not None else {}
        return {wanted.table: made[wanted.table] for wanted in tables} | extra

    def close(self) -> None:
        """Releases the frames that Spark persisted for the tables; reading a table again builds it again."""
        self.scanned.close()

    def facts(self) -> Facts:
        """The facts of the whole capture: topics, brokers, versions."""
        if self._facts is None:
            self._facts = self.scanned.reduced(Together(learns=True))[1]
        return self._facts

    def _frame(self, batch: "pa.RecordBatch") -> "DataFrame":
        import pyarrow as pa
        from pyspark.sql.pandas.types import from_arrow_schema

        table = pa.Table.from_batches([batch])
        return self.scanned.spark.createDataFrame(table, from_arrow_schema(table.schema))

    def _topic_names(self, wanted: TableRequest, _: "DataFrame | None") -> "DataFrame":
        return self._frame(batch_of(wanted.table, wanted.columns, list(topic_rows(tracker_of(self.facts())))))

    def _brokers(self, wanted: TableRequest, _: "DataFrame | None") -> "DataFrame":
        rows = broker_rows(tracker_of(self.facts()), self.facts().servers)
        return self._frame(batch_of(wanted.table, wanted.columns, list(rows)))

    def _captures(self, wanted: TableRequest, _: "DataFrame | None") -> "DataFrame":
        return self._frame(batch_of(wanted.table, wanted.columns, list(capture_rows(self.scanned.readable))))

    def _connections(self, wanted: TableRequest, rows: "DataFrame") -> "DataFrame":
        """Connections with their numbers, in the order of their first packets."""
        from pyspark.sql import Window
        from pyspark.sql import functions as sql

        if NUMBER in names_of(wanted):
            rows = rows.withColumn(NUMBER, sql.row_number().over(Window.orderBy(*TURN)).cast("long"))
        return rows.select(*names_of(wanted))

    def _numbered(self, wanted: TableRequest, only: str | None) -> "DataFrame":
        """Exchanges joined with the numbers of their connections, which depend on the whole capture."""
        names = [name for name in names_of(wanted) if name != STREAM]
        rows = self.table("exchanges", list(dict.fromkeys([*names, "connection"])), only)
        numbers = self.table("connections", ["connection", NUMBER])
        numbers = numbers.withColumn(STREAM, numbers[NUMBER] - 1).drop(NUMBER)
        return rows.join(numbers, "connection").select(*names_of(wanted))

    def _weirds(self, wanted: TableRequest, rows: "DataFrame") -> "DataFrame":
        """Oddities of connections, from the shards; oddities of files and packets, summed over all ranges."""
        files = self.scanned.files
        kinds: dict[str, dict[str, Any]] = {}
        for index, oddity in sorted(self.scanned.stitched.oddities, key=lambda one: one[1].time_ns):
            add(kinds, {
                "kind": str(oddity.kind), "connection": None, "capture": files[index].name, "packet": oddity.packet or None,
                "position": oddity.position if oddity.packet else None, "detail": oddity.detail, "count": oddity.count,
            })  # fmt: skip
        for path, error in self.scanned.failed:
            name = next(file.name for file in files if file.path == path)
            add(kinds, {"kind": str(WeirdKind.FILE_UNREADABLE), "capture": name, "detail": str(error), "count": 1})
        for one in rows.where(rows.connection.isNull()).collect():
            add(kinds, one.asDict())
        mine = self._frame(batch_of("weirds", choose("weirds", None), list(kinds.values())))
        return rows.where(rows.connection.isNotNull()).unionAll(mine).select(*names_of(wanted))


OF_CAPTURE: "Final[dict[str, Callable[[SparkCapture, TableRequest, Any], DataFrame]]]" = {
    "connections": SparkCapture._connections,
    "weirds": SparkCapture._weirds,
    "captures": SparkCapture._captures,
    "topic_names": SparkCapture._topic_names,
    "brokers": SparkCapture._brokers,
}
"""Tables that depend on the whole capture."""


def names_of(wanted: TableRequest) -> list[str]:
    return [column.name for column in wanted.columns]


def refuse(only: "Filter | None") -> None:
    """Raises UsageError for a filter that one shard cannot decide."""
    if only is not None and STREAM in columns_of(only):
        raise UsageError("tcp.stream is known only for the whole capture: request the column stream and filter the rows by it")


def add(kinds: dict[str, dict[str, Any]], row: dict[str, Any]) -> None:
    """Adds an oddity to the row of its kind, which has the first occurrence and the count."""
    seen = kinds.setdefault(row["kind"], row)
    if seen is not row:
        seen["count"] += row["count"]


def open_capture(
    spark: "SparkSession",
    paths: str | Sequence[str],
    split_bytes: int | None = None,
    partitions: int | None = None,
    *,
    strict: bool = False,
    ship: str = "auto",
    options: Options | None = None,
) -> SparkCapture:
    """Files, folders, patterns and URIs as one capture, scanned once for any number of tables.

    Raises CaptureError if nothing can be read, or with `strict` if any file cannot; UsageError for impossible numbers.
    """
    given = [paths] if isinstance(paths, str) else [str(path) for path in paths]
    for name, value in (("split_bytes", split_bytes), ("partitions", partitions)):
        if value is not None and value < 1:
            raise UsageError(f"{name} is {value}: it takes 1 or more")
    if ship not in SHIPS:
        raise UsageError(f"ship is {ship!r}: it takes {', '.join(SHIPS)}")
    return SparkCapture(scan(spark, given, split_bytes, partitions, strict=strict, ship=ship, options=options))


def read_capture(
    spark: "SparkSession",
    paths: str | Sequence[str],
    table: str = "exchanges",
    split_bytes: int | None = None,
    partitions: int | None = None,
    *,
    columns: Sequence[str] | None = None,
    only: str | None = None,
    strict: bool = False,
    ship: str = "auto",
    options: Options | None = None,
) -> "DataFrame":
    """A table of one or more files as one capture. Rows equal those of `kcap rows --table TABLE -o FILE`; `segments` is also a
    table.

    `split_bytes`: approximate size of the byte ranges that are read in parallel (128 MiB). `partitions`: number of shards of
    the connections (one per core, or one per 8 GiB). `columns`: columns of the table, else all. `only`: a display filter.
    `strict`: a file that cannot be read is an error; otherwise it is omitted and reported in the tables `captures` and
    `weirds`.

    `ship`: what travels between tasks: `references` to packets, which are read a second time; `edges`, the segments of
    connections in several ranges, most of them without records, while other connections are decoded where they are; or all
    `packets`. `auto` chooses `references` on one machine, `edges` on several and for object stores, and `packets` for
    compressed files. docs/scale.md has figures.

    Raises CaptureError if nothing can be read, UsageError for a table or column that does not exist.
    """
    if table not in (*TABLES, "segments"):
        choose(table, None)
    found = open_capture(spark, paths, split_bytes, partitions, strict=strict, ship=ship, options=options)
    return found.table(table, columns, only)
