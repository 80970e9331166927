"""The reports of kcap on Spark: the same expressions, run by another engine.

In: a scanned capture or the folder that `ingest` wrote, a report's name, its parameters. Out: the report as plain values, its
JSON form. Law: it equals the result of `kcap REPORT --format json` for the same files.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from kcap import limits
from kcap.columns import EXCHANGES, ON_REQUEST
from kcap.errors import UsageError
from kcap.filter.ast import columns_of as filter_columns
from kcap.filter.ast import is_deep
from kcap.filter.parse import parse
from kcap.reports.definition import KEY, Report, ReportRequest, Row, Tables, report_of
from kcap.reports.names import DIGITS, KEPT_CHARACTERS, names_of
from kcap.reports.run import columns_of, result
from kcap.reports.source import Engine
from kcap.table.schema import arrow_schema, choose
from spark_jobs.capture import SparkCapture
from spark_jobs.scan import persisted

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
        """A saved table.

        Raises UsageError for a filter on bodies, which are not saved.
        """
        if only is not None:
            raise UsageError(
                "a saved table has no decoded bodies: request.* and response.* fields work while a capture is read"
            )
        from pyspark.sql.pandas.types import from_arrow_schema

        chosen = choose(name, columns)
        schema = from_arrow_schema(arrow_schema(name, chosen))  # otherwise an empty table has no columns
        frame = self.spark.read.schema(schema).parquet(f"{self.folder.rstrip('/')}/{name}")
        return frame.select(*(column.name for column in chosen))

    def tables(self, columns: Mapping[str, Sequence[str]]) -> "dict[str, DataFrame]":
        """Columns of several tables."""
        return {name: self.table(name, some) for name, some in columns.items()}


def counting(expression: Any) -> Any:
    """The expression with counts that are 0 if no row meets their condition, as in SQL.

    Ibis compiles such a count to a sum for Spark, which is null if the condition is null for all rows of a group.
    """
    from ibis.expr import operations as ops

    def counted(node: Any, given: Any) -> Any:
        made = node.__recreate__(given) if given else node
        return ops.Coalesce((made, 0)) if isinstance(made, ops.CountStar) and made.where is not None else made

    return expression.op().replace(counted).to_expr()


class SparkEngine(Engine):
    """Spark as an engine of reports."""

    def __init__(self, spark: "SparkSession") -> None:
        import ibis

        self._stopped = False
        self._session = spark
        self._connection: Any = ibis.pyspark.connect(spark)
        self._views: dict[str, DataFrame] = {}

    def view(self, frame: "DataFrame", whole: Collection[str] = ()) -> Any:
        """A data frame as a table with long names shortened, except in columns named in `whole`.

        It is persisted after shortening: otherwise Spark would analyze, compile and run the expressions of all names again in
        each statement, and `check` has some fifty of them.
        """
        name = f"kcap_{next(NUMBERS)}"
        self._views[name] = persisted(shorter(frame, whole), large=False)
        self._views[name].createOrReplaceTempView(name)
        return self._connection.table(name)

    def rows(self, expression: Any) -> list[dict[str, Any]]:
        """The rows of an expression.

        They are read through Arrow: pandas has no integers beside nulls, so that times in ns would lose their last digits.
        """
        frame = self._session.sql(self._connection.compile(counting(expression)))
        table = frame.toArrow().cast(expression.as_table().schema().to_pyarrow())
        found: list[dict[str, Any]] = table.to_pylist()
        return found

    def close(self) -> None:
        """Drops the views and releases what was persisted for them; the session remains."""
        for name, view in self._views.items():
            self._connection.raw_sql(f"DROP VIEW IF EXISTS {name}")
            view.unpersist()


def shorter(frame: "DataFrame", whole: Collection[str] = ()) -> "DataFrame":
    """The data frame with long names shortened by `kcap.reports.names.shortened`, except in columns named in `whole`."""
    from pyspark.sql import functions as spark
    from pyspark.sql.pandas.types import to_arrow_schema

    def shortened(column: Any) -> Any:
        size, digest = spark.format_number(spark.char_length(column), 0), spark.substring(spark.sha2(column, 256), 1, DIGITS)
        made = spark.concat(
            spark.substring(column, 1, KEPT_CHARACTERS), spark.lit("... ("), size, spark.lit(" characters, sha256 "), digest,
            spark.lit(")"),
        )  # fmt: skip
        return spark.when(spark.octet_length(column) > limits.REPORT_NAME_BYTES, made).otherwise(column)

    names = names_of(to_arrow_schema(frame.schema), whole)
    lists = {field.name for field in frame.schema if field.dataType.typeName() == "array"}
    return frame.withColumns(
        {name: spark.transform(name, shortened) if name in lists else shortened(spark.col(name)) for name in names}
    )


def run_report(source: SparkCapture | Saved, name: str, request: ReportRequest, only: str | None = None) -> Row:
    """A report of a capture.

    Raises UsageError for an invalid grouping, FilterError for a filter that does not parse.
    """
    return dict(run_reports(source, [name], request, only))[name]


def run_reports(
    source: SparkCapture | Saved, names: Sequence[str], request: ReportRequest, only: str | None = None
) -> Iterator[tuple[str, Row]]:
    """Reports of a capture, which is read once for all of them.

    Raises what `run_report` raises.
    """
    reports = [report_of(name) for name in names]
    files = source.captures if isinstance(source, Saved) else [file.name for file in source.scanned.files]
    with opened(source, reports, request, only) as (engine, tables):
        for name, report in zip(names, reports):
            mine = tables if report.partitions else replace(tables, partitions=None)
            yield name, {"report": name, "captures": files} | result(engine, mine, report, request)


@contextmanager
def opened(
    source: SparkCapture | Saved, reports: Sequence[Report], request: ReportRequest, only: str | None
) -> Iterator[tuple[SparkEngine, Tables]]:
    """The tables of reports, until the end of the block."""
    names = {name for report in reports for name in columns_of(report, request)}
    tree = parse(only) if only else None
    deep = tree is not None and is_deep(tree)
    beside = filter_columns(tree) if tree is not None and not deep else ()
    of_partitions = [name for report in reports for name in report.partitions]
    names.update(beside, KEY if deep or of_partitions else ())
    columns = {"exchanges": [one.name for one in (*EXCHANGES, *ON_REQUEST["exchanges"]) if one.name in names]}
    if of_partitions:
        columns["partitions"] = list(dict.fromkeys([*KEY, *of_partitions]))
    frames = source.tables(columns)
    with closing(SparkEngine(frames["exchanges"].sparkSession)) as engine:
        every = engine.view(frames["exchanges"], beside)
        passing = every
        if deep:
            passing = every.semi_join(engine.view(source.table("exchanges", KEY, only)), list(KEY))
        elif tree is not None:
            from kcap.filter.ibis_filter import predicate

            passing = every.filter(predicate(tree, every))
        partitions = engine.view(frames["partitions"]) if of_partitions else None
        yield engine, Tables.under(every, passing, partitions)
