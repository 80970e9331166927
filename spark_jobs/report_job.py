"""The reports as Spark jobs, and the output of jobs: a report as text, or in a file.

In: a report's name; a report as plain values. Out: its job; text, and JSON, CSV, Parquet or a Delta table. Law: the report is
that of `kcap NAME`; JSON and CSV have the whole report, Parquet and Delta have its rows.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click
import pyarrow as pa

from kcap.cli.report_formats import csv_text, style_of, text
from kcap.cli.report_views import VIEWS
from kcap.errors import MissingExtraError
from kcap.inputs import refuse_input
from kcap.output.escaping import json_text
from kcap.reports.definition import Key, ReportRequest, Row, keys_of, report_of
from spark_jobs.capture import SparkCapture
from spark_jobs.files import form_of, sink_at
from spark_jobs.job import JobInput, job
from spark_jobs.reports import Saved, run_report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMS: Final = ("json", "csv", "parquet", "delta")
REPORTS: Final = {
    "errors": "Which errors brokers responded with, to which client, how often.",
    "latency": "Latency percentiles, what dominates, where the time went.",
    "throttle": "Which clients were throttled, by how much, and whether they complied.",
    "topics": "Which clients write and read which topic, how much, and the lag.",
}
"""Reports that are separate jobs -> their line in the help."""
TIMES: Final = frozenset({"latency"})
"""Reports of times, which subtract long polls."""


def shown(result: Row, keys: Sequence[Key]) -> str:
    """The report as text for standard output."""
    style = style_of(None)
    return "\n".join(text(VIEWS[str(result["report"])](result, style, keys, []), style))


def write(spark: "SparkSession", result: Row, output: str, form: str | None) -> None:
    """Writes the report to a file or a URI; a Delta table to a folder.

    Raises OutputError if it cannot be written, MissingExtraError if Delta is not available.
    """
    form = form_of(output, form)
    if form == "delta":
        refuse_input(output, folder=True)
        write_delta(spark, result["rows"], output)
        return
    data = bytes_of(result, form)
    with sink_at(output) as sink:
        sink.write(data)


def bytes_of(result: Row, form: str) -> bytes:
    if form == "json":
        return (json_text(result) + "\n").encode()
    if form == "csv":
        return csv_text(result).encode()
    from pyarrow import parquet

    sink: Any = pa.BufferOutputStream()
    writer: Any = parquet
    writer.write_table(table_of(result["rows"]), sink)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table; values other than numbers, texts and lists of those become JSON."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [plain(row.get(name)) for row in rows] for name in names}
    return pa.table(columns) if names else pa.table({})


def plain(value: Any) -> Any:
    """A value as a type that a column can have."""
    if isinstance(value, dict) or (isinstance(value, list | tuple) and any(isinstance(one, dict | list) for one in value)):
        return json_text(value)
    return value


def write_delta(spark: "SparkSession", rows: Sequence[Row], output: str) -> None:
    """Writes the rows as a Delta table, if the cluster has Delta.

    Raises MissingExtraError otherwise.
    """
    try:
        spark.createDataFrame(table_of(rows)).write.format("delta").mode("overwrite").save(output)
    except Exception as error:
        if "delta" in str(error).lower() and "find" in str(error).lower():
            raise MissingExtraError("this Spark has no Delta Lake: start it with the package io.delta:delta-spark") from None
        raise


def report_job(name: str) -> click.Command:
    def run(
        spark: "SparkSession", source: SparkCapture | Saved, given: JobInput, top: int | None, with_long_polls: bool = False
    ) -> int:
        request, report = ReportRequest(given.by, top, with_long_polls), report_of(name)
        result = run_report(source, name, request, given.only)
        print(shown(result, keys_of(report, request)))
        if given.output is not None:
            write(spark, result, given.output, given.form)
        return 0

    run.__doc__ = (
        f"{REPORTS[name]} The report of `kcap {name}` over captures of any size, or over the tables that ingest saved."
    )
    made = job(name, FORMS, by=True)(run)
    made.params.append(click.Option(["--top"], metavar="N", type=click.IntRange(1), help="Show only the first N rows."))
    if name in TIMES:
        made.params.append(
            click.Option(["--with-long-polls"], is_flag=True, help="Do not subtract the time that a Fetch waited for data.")
        )
    return made


JOBS: Final = {name: report_job(name) for name in REPORTS}
"""Report -> its job; `spark_jobs/NAME.py` is the entry point."""
