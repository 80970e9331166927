"""The report `versions` on Spark: which clients use which versions with which brokers, and what breaks on another release.

usage: python -m spark_jobs.versions --input PATH... [--target RELEASE] [--fail-on removed|deprecated|unjudged]
                                     [--output PATH] [-Y ...]
       spark-submit spark_jobs/versions.py ...
"""

import sys
from typing import TYPE_CHECKING

import click

from kcap.cli.report_formats import style_of
from kcap.errors import UsageError
from kcap.reports.definition import Row
from kcap.reports.versions.readiness import release_of
from kcap.reports.versions.report import FAIL_REASONS, fails, report
from kcap.reports.versions.saved import read
from spark_jobs.capture import SparkCapture
from spark_jobs.files import local
from spark_jobs.job import FAILED, JobInput, job, main
from spark_jobs.report_job import FORMS, write
from spark_jobs.reports import Saved

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def versions(source: SparkCapture | Saved, target: str = "newest", only: str | None = None) -> Row:
    """The report of `kcap versions --format json`, for captures or for what `ingest` saved.

    Raises UsageError for an unknown release, and for a filter on saved data.
    """
    release = release_of(target)
    if isinstance(source, Saved):
        if only:
            raise UsageError("a filter applies while captures are read: give it to ingest, or name the captures")
        profiles, names = read([local(source.folder)])
    else:
        profiles, names = source.merged_profiles(only=only), [file.name for file in source.scanned.files]
    return report(profiles, names, release)


def run(spark: "SparkSession", source: SparkCapture | Saved, given: JobInput, target: str, fail_on: str | None) -> int:
    """Show which client uses which versions with which broker, and what breaks on another release (--target)."""
    from kcap.cli.versions_text import report as report_lines

    result = versions(source, target, given.only)
    print("\n".join(report_lines(result, style_of(None))))
    if given.output is not None:
        write(spark, result, given.output, given.form)
    return FAILED if fail_on is not None and fails(result, fail_on) else 0


command = job("versions", FORMS)(run)
command.params += [
    click.Option(["--target"], metavar="RELEASE", default="newest", help="Check clients against this release."),
    click.Option(
        ["--fail-on"], type=click.Choice(FAIL_REASONS), help="Exit with code 1 for this reason, as kcap versions does."
    ),
]

if __name__ == "__main__":
    sys.exit(main(command))
