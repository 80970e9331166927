"""The most important facts about a capture in one result: latencies, throttling, errors, topics, versions.

usage: python -m spark_jobs.digest --input PATH... [--output PATH] [--top N] [-Y FILTER]
       spark-submit spark_jobs/digest.py ...

The result is JSON with a report under each name.
"""

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from kcap.cli.standard_streams import say_lines
from kcap.inputs import refuse_input
from kcap.output.escaping import json_text
from kcap.output.formats import format_of
from kcap.reports.definition import ReportRequest, Row, keys_of, report_of
from spark_jobs.capture import SparkCapture
from spark_jobs.files import sink_at
from spark_jobs.job import JobInput, job, main
from spark_jobs.report_job import shown
from spark_jobs.reports import Saved, run_reports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPORTS: Final = ("latency", "throttle", "errors", "topics", "clients", "slow")


def run(_spark: "SparkSession", source: SparkCapture | Saved, given: JobInput, top: int) -> int:
    """Show the first rows of all reports of captures."""
    found: dict[str, Row] = {}
    for name, made in run_reports(source, REPORTS, ReportRequest((), top), given.only):
        found[name] = made
        say_lines(name)
        print(f"== {name}\n{shown(made, keys_of(report_of(name), ReportRequest()))}\n")
    from kcap.cli.report_formats import style_of
    from kcap.cli.versions_text import report as report_lines
    from spark_jobs.versions import versions

    if isinstance(source, SparkCapture) or given.only is None:  # saved profiles cannot be filtered
        found["versions"] = versions(source, only=given.only)
        print("\n".join(["== versions", *report_lines(found["versions"], style_of(None))]))
    if given.output is not None:
        with sink_at(given.output) as file:
            file.write((json_text({"report": "digest", "reports": found}) + "\n").encode())
    return 0


def only_json(given: JobInput, _options: dict[str, Any]) -> None:
    """Refuses an output that is an input, or whose name implies another format than JSON. Raises UsageError."""
    if given.output is not None:
        refuse_input(given.output)
        format_of(given.form or "json", given.output, {".json": "json"}, text=())


command = job("digest", ("json",), refuse=only_json)(run)
command.params.append(click.Option(["--top"], metavar="N", type=click.IntRange(1), default=10, show_default=True))

if __name__ == "__main__":
    sys.exit(main(command))
