"""A report's result: a table for people on standard output, and a file for machines.

In: a report as plain values. Out: text, and JSON, CSV, Parquet or a Delta table. Law: the JSON form is the whole report; the
others have its rows.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kcap.cli.report_text import style_of
from kcap.errors import MissingExtraError
from kcap.inputs import refuse_input
from kcap.reports.definition import Row
from spark_jobs.files import form_of, sink_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMS: Final = ("json", "csv", "parquet", "delta")


def shown(result: Row, keys: Sequence[str]) -> str:
    """The report as a table."""
    from kcap.cli.report_views import VIEWS

    return "\n".join(VIEWS[str(result["report"])](result, style_of(None), keys, []))


def write(spark: "SparkSession", result: Row, output: str, form: str | None) -> None:
    """The report, to a file or a URI; a Delta table to a folder.

    Raises OutputError where it cannot be written, MissingExtraError where there is no Delta.
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
    """The report in a form."""
    if form == "json":
        return (json.dumps(result, ensure_ascii=False) + "\n").encode()
    if form == "csv":
        from kcap.cli.report_pages import csv_text

        return csv_text(result).encode()
    from pyarrow import parquet

    sink: Any = pa.BufferOutputStream()
    writer: Any = parquet
    writer.write_table(table_of(result["rows"]), sink)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table; what is neither number, text nor a list of those is JSON."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [plain(row.get(name)) for row in rows] for name in names}
    return pa.table(columns) if names else pa.table({})


def plain(value: Any) -> Any:
    """A value as a column can have it."""
    if isinstance(value, dict) or (isinstance(value, list | tuple) and any(isinstance(one, dict | list) for one in value)):
        return json.dumps(value, ensure_ascii=False)
    return value


def write_delta(spark: "SparkSession", rows: Sequence[Row], output: str) -> None:
    """The rows as a Delta table, where the cluster has Delta.

    Raises MissingExtraError where it has not.
    """
    try:
        spark.createDataFrame(table_of(rows)).write.format("delta").mode("overwrite").save(output)
    except Exception as error:
        if "delta" in str(error).lower() and "find" in str(error).lower():
            raise MissingExtraError("this Spark has no Delta Lake: start it with the package io.delta:delta-spark") from None
        raise
