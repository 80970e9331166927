"""Jobs that tell a report.

In: a report's name. Out: its job. Law: the report is that of `kcap NAME`.
"""

from typing import TYPE_CHECKING, Final

import click

from kcap.reports.definition import ReportRequest, keys_of
from spark_jobs.capture import SparkCapture
from spark_jobs.job import JobInput, job
from spark_jobs.reports import Saved, report_of, run_report
from spark_jobs.result import FORMS, shown, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLLING: Final = frozenset({"latency"})
"""Reports of times: long polls are left out of them unless they are asked for."""


def report_job(name: str) -> click.Command:
    """The job of a report."""

    def run(
        spark: "SparkSession", source: SparkCapture | Saved, given: JobInput, top: int | None, with_long_polls: bool = False
    ) -> int:
        asked, report = ReportRequest(given.by, top, with_long_polls), report_of(name)
        result = run_report(source, name, asked, given.only)
        print(shown(result, [key.name for key in keys_of(report, asked)]))
        if given.output is not None:
            write(spark, result, given.output, given.form)
        return 0

    run.__doc__ = f"The report of `kcap {name}` over captures of any size, or over what ingest saved of them."
    made = job(name, FORMS, by=True)(run)
    made.params.append(click.Option(["--top"], metavar="N", type=click.IntRange(1), help="So many rows, the first ones."))
    if name in POLLING:
        made.params.append(click.Option(["--with-long-polls"], is_flag=True, help="Requests that waited for data count too."))
    return made
