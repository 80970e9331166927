"""The reports of kcap on Spark: the same expressions, run by another engine.

In: a scanned capture or the folder that `ingest` wrote, a report's name, what is asked of it. Out: the report as plain values,
its JSON form. Law: it is what `kcap REPORT --format json` says of the same files.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from kcap.columns import EXCHANGES
from kcap.errors import UsageError
from kcap.filter.nodes import columns_of as filter_columns
from kcap.filter.nodes import is_deep
from kcap.filter.parse import parse
from kcap.reports.run import columns_of, result
from kcap.reports.shape import KEY, Asked, Report, Row, Tables
from kcap.reports.source import Engine, passed
from kcap.table.schema import arrow_schema, choose
from spark_jobs.capture import SparkCapture
from spark_jobs.scan import kept

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NUMBERS: Final = count()


@dataclass(slots=True)
class Saved:
    """Tables that `ingest` wrote."""

    spark: "SparkSession"
    folder: str
    captures: list[str] = field(default_factory=list)

    def table(self, name: str, columns: Sequence[str] | None = None, only: str | None = None) -> "DataFrame":
        """A table as it was saved.

        Raises UsageError for a filter that looks into bodies, which nobody saved.
        """
        if only is not None:
            raise UsageError(
                "a saved table has no decoded bodies: request.* and response.* fields work while a capture is read"
            )
        from pyspark.sql.pandas.types import from_arrow_schema

        chosen = choose(name, columns)
        schema = from_arrow_schema(arrow_schema(name, chosen))  # without it an empty table has no columns
        frame = self.spark.read.schema(schema).parquet(f"{self.folder.rstrip('/')}/{name}")
        return frame.select(*(column.name for column in chosen))


class SparkEngine(Engine):
    """Spark, as reports take an engine."""

    def __init__(self, spark: "SparkSession") -> None:
        import ibis

        self._stopped = False
        self._connection: Any = ibis.pyspark.connect(spark)
        self._views: list[str] = []

    def view(self, frame: "DataFrame") -> Any:
        """A data frame as a table."""
        name = f"kcap_{next(NUMBERS)}"
        frame.createOrReplaceTempView(name)
        self._views.append(name)
        return self._connection.table(name)

    def close(self) -> None:
        """The session stays; its views go."""
        for name in self._views:
            self._connection.raw_sql(f"DROP VIEW IF EXISTS {name}")


def report_of(name: str) -> Report:
    """A report by its name."""
    found: Report = import_module(f"kcap.reports.{name}").REPORT
    return found


def run_report(source: SparkCapture | Saved, name: str, asked: Asked, only: str | None = None) -> Row:
    """A report of a capture.

    Raises UsageError for a grouping that cannot be, FilterError for a filter that does not parse.
    """
    report = report_of(name)
    if asked.by and not report.groups:
        raise UsageError(f"{report.name} has no groups: --by goes with other reports")
    with opened(source, report, asked, only) as (engine, tables):
        made = result(engine, tables, report, asked)
    files = source.captures if isinstance(source, Saved) else [file.name for file in source.scanned.files]
    return {"report": name, "captures": files} | made


@contextmanager
def opened(
    source: SparkCapture | Saved, report: Report, asked: Asked, only: str | None
) -> Iterator[tuple[SparkEngine, Tables]]:
    """The tables of a report, for as long as the block lasts."""
    tree = parse(only) if only else None
    deep = tree is not None and is_deep(tree)
    beside = filter_columns(tree) if tree is not None and not deep else ()
    names = {*columns_of(report, asked), *beside, *(KEY if deep or report.partitions else ())}
    exchanges = kept(source.table("exchanges", [column.name for column in EXCHANGES if column.name in names]), large=False)
    kept_frames = [exchanges]
    engine = SparkEngine(exchanges.sparkSession)
    try:
        every = engine.view(exchanges)
        passing = every
        if deep:
            passing = every.semi_join(engine.view(source.table("exchanges", KEY, only)), list(KEY))
        elif tree is not None:
            from kcap.table.predicate import predicate

            passing = every.filter(predicate(tree, every))
        partitions = None
        if report.partitions:
            frame = kept(source.table("partitions", list(dict.fromkeys([*KEY, *report.partitions]))), large=False)
            kept_frames.append(frame)
            partitions = engine.view(frame)
            if tree is not None:
                partitions = passed(partitions, passing)
        yield engine, Tables(every, passing, partitions)
    finally:
        engine.close()
        for frame in kept_frames:
            frame.unpersist()
