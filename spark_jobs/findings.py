"""The reports over several tables on Spark: check, groups, transactions, diff.

In: a scanned capture or the folder that `ingest` wrote. Out: the report as plain values, its JSON form. Law: it equals the
result of `kcap REPORT --format json` over the saved tables: messages are not read again on a cluster, and rules that need one
are listed under `not_judged`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Final

from kcap.reports.definition import Row
from kcap.reports.diff import report as diff_report
from kcap.reports.diff.summaries import COLUMNS as DIFF_COLUMNS
from kcap.reports.diff.summaries import Side, summarized
from kcap.reports.findings.columns import COLUMNS
from kcap.reports.findings.courses import by_engine
from kcap.reports.findings.observed import Observed
from kcap.reports.findings.report import check
from kcap.reports.findings.running import Runner
from kcap.reports.groups import report as group_report
from kcap.reports.transactions import report as transaction_report
from spark_jobs.capture import SparkCapture
from spark_jobs.reports import Saved, SparkEngine

Source = SparkCapture | Saved
WITH_IDS: Final = {"groups": group_report.report, "transactions": transaction_report.report}
"""Report of groups or transactional ids -> the function that makes it from tables."""


@contextmanager
def observed(source: Source) -> Iterator[Observed]:
    """The rules' view of a capture, until the end of the block."""
    frames = source.tables(COLUMNS)
    with closing(SparkEngine(frames["exchanges"].sparkSession)) as engine:
        tables = {name: engine.view(frame) for name, frame in frames.items()}
        seen = Observed(
            Runner(engine.rows), tables["exchanges"], tables["partitions"], tables["connections"], tables["brokers"]
        )
        seen.courses = partial(by_engine, engine.rows, tables["exchanges"])
        yield seen


def names_of(source: Source) -> list[str]:
    return source.captures if isinstance(source, Saved) else [file.name for file in source.scanned.files]


def findings(
    source: Source, only: Collection[str] = (), skip: Collection[str] = (),
    thresholds: Mapping[str, Mapping[str, float]] | None = None,
) -> Row:  # fmt: skip
    with observed(source) as seen:
        return {"report": "check", "captures": names_of(source)} | check(seen, only, skip, thresholds)


def of_ids(source: Source, name: str, only: Sequence[str] = ()) -> Row:
    """The report `groups` or `transactions`, for the ids in `only` if any are named."""
    with observed(source) as seen:
        return WITH_IDS[name](seen, names_of(source), only)


def side(source: Source) -> Side:
    frame = source.table("exchanges", DIFF_COLUMNS)
    with closing(SparkEngine(frame.sparkSession)) as engine:
        return summarized(engine.rows, engine.view(frame), names_of(source))


def diff(before: Source, after: Source) -> Row:
    return diff_report.result(side(before), side(after))
