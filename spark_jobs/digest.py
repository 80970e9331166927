"""What there is to know of a capture on one page: latencies, throttling, errors, topics, versions.

usage: python -m spark_jobs.digest --input PATH... [--output PATH] [--top N] [-Y FILTER]
       spark-submit spark_jobs/digest.py ...

The result is JSON with a report under each name.
"""

import json
import sys
from typing import TYPE_CHECKING, Final

import click

from kcap.output.sink import new_file
from kcap.reports.definition import ReportRequest, Row
from spark_jobs.capture import SparkCapture
from spark_jobs.files import local
from spark_jobs.job import JobInput, job, main, tell
from spark_jobs.reports import Saved, report_of, run_reports
from spark_jobs.result import shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPORTS: Final = ("latency", "throttle", "errors", "topics", "clients", "slow")


def run(_spark: "SparkSession", source: SparkCapture | Saved, given: JobInput, top: int) -> int:
    """All reports of captures, the first rows of each."""
    found: dict[str, Row] = {}
    for name, made in run_reports(source, REPORTS, ReportRequest((), top), given.only):
        found[name] = made
        tell(name)
        print(f"== {name}\n{shown(made, report_of(name).by)}\n")
    if isinstance(source, SparkCapture):
        from kcap.cli.report_text import style_of
        from kcap.cli.versions_text import report as told
        from spark_jobs.versions import versions

        found["versions"] = versions(source, only=given.only)
        print("\n".join(["== versions", *told(found["versions"], style_of(None))]))
    if given.output is not None:
        with new_file(local(given.output)) as file:
            file.write((json.dumps({"report": "digest", "reports": found}, ensure_ascii=False) + "\n").encode())
    return 0


command = job("digest", ("json",))(run)
command.params.append(click.Option(["--top"], metavar="N", type=click.IntRange(1), default=10, show_default=True))

if __name__ == "__main__":
    sys.exit(main(command))
