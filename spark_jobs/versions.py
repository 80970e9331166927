"""The report `versions` on Spark: who speaks which versions with whom, and what breaks on another release.

usage: python -m spark_jobs.versions --input PATH... [--target RELEASE] [--fail-on removed|deprecated|unjudged]
                                     [--output PATH] [-Y ...]
       spark-submit spark_jobs/versions.py ...
"""

import pickle
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click
import pyarrow as pa

from kcap.cli.report_formats import style_of
from kcap.distributed.shard_reader import ShardReader
from kcap.errors import UsageError
from kcap.facts.merge import FactsRecorder, tracker_of
from kcap.facts.tracker import MetadataTracker
from kcap.filter.ast import Filter, is_deep
from kcap.filter.parse import parse
from kcap.reports.definition import Row
from kcap.reports.versions.merge import detached, together
from kcap.reports.versions.profiles import ConnectionProfiles, gather
from kcap.reports.versions.readiness import release_of
from kcap.reports.versions.report import FAIL_REASONS, fails, report
from spark_jobs.capture import SparkCapture
from spark_jobs.job import FAILED, JobInput, job, main
from spark_jobs.report_job import FORMS, write
from spark_jobs.reports import Saved

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROFILES: Final = "profiles"
PROFILE_SCHEMA: Final = pa.schema([pa.field("profiles", pa.binary())])


class ProfileRows:
    """Makes the connection profiles of a shard."""

    def __init__(self, only: Filter | None) -> None:
        self._only = only
        self.looks_inside = only is not None and is_deep(only)

    def share(
        self, portion: ShardReader, tracker: MetadataTracker, witness: FactsRecorder
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """A row for all of them."""
        portion.keep_connections = True
        profiles = detached(gather(portion, self._only))
        yield PROFILES, pa.RecordBatch.from_arrays([pa.array([pickle.dumps(profiles)], pa.binary())], schema=PROFILE_SCHEMA)


def versions(capture: SparkCapture, target: str = "newest", only: str | None = None) -> Row:
    """The report of `kcap versions --format json`.

    Raises UsageError for a release that is not known.
    """
    release, facts = release_of(target), capture.facts()
    maker = ProfileRows(parse(only) if only else None)
    packed = capture.made(maker, PROFILES, PROFILE_SCHEMA)
    parts: list[ConnectionProfiles] = [pickle.loads(one.profiles) for one in packed.collect()]  # noqa: S301 - what this job's tasks wrote
    names = [file.name for file in capture.scanned.files]
    return report(together(parts, tracker_of(facts)), names, release)


def run(spark: "SparkSession", source: SparkCapture | Saved, given: JobInput, target: str, fail_on: str | None) -> int:
    """Which client speaks which versions with which broker, and what breaks on another release (--target)."""
    from kcap.cli.versions_text import report as told

    if isinstance(source, Saved):
        raise UsageError("versions are read from captures: negotiations of saved ones are in the table negotiations")
    result = versions(source, target, given.only)
    print("\n".join(told(result, style_of(None))))
    if given.output is not None:
        write(spark, result, given.output, given.form)
    return FAILED if fail_on is not None and fails(result, fail_on) else 0


command = job("versions", FORMS)(run)
command.params += [
    click.Option(["--target"], metavar="RELEASE", default="newest", help="The release that clients shall work with."),
    click.Option(["--fail-on"], type=click.Choice(FAIL_REASONS), help="Exit 1 where a client uses what is gone."),
]

if __name__ == "__main__":
    sys.exit(main(command))
