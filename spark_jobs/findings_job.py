"""The jobs check, groups, transactions and diff: options, text on standard output, the report in a file.

In: a report's name. Out: its job. Law: the report is that of `kcap NAME` over the tables that `ingest` saves.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from kcap.cli import check as check_text
from kcap.cli import diff as diff_text
from kcap.cli import groups as groups_text
from kcap.cli import transactions as transactions_text
from kcap.cli.configuration import config_file, settings
from kcap.cli.report_formats import Document, style_of, text
from kcap.errors import UsageError
from kcap.reports.definition import Row
from kcap.reports.findings.model import RULES, SEVERITIES
from kcap.reports.findings.thresholds import thresholds_of
from spark_jobs.capture import SparkCapture
from spark_jobs.findings import diff, findings, of_ids
from spark_jobs.job import FAILED, JobInput, job
from spark_jobs.report_job import FORMS, write
from spark_jobs.reports import Saved

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENTS: Final[dict[str, Callable[[Row], Document]]] = {
    "check": lambda result: check_text.document(result, unicode=style_of(None).unicode),
    "groups": groups_text.document, "transactions": transactions_text.document, "diff": diff_text.document,
}  # fmt: skip
"""Report -> the function that makes its document."""


def finished(spark: "SparkSession", result: Row, given: JobInput) -> None:
    """Prints the report, and writes it if an output is given."""
    print("\n".join(text(DOCUMENTS[str(result["report"])](result), style_of(None))))
    if given.output is not None:
        write(spark, result, given.output, given.form)


def no_filter(given: JobInput) -> None:
    """Refuses a filter. Raises UsageError."""
    if given.only is not None:
        raise UsageError("this job looks at all exchanges; it takes no filter")


def check_job() -> click.Command:
    def run(
        spark: "SparkSession", source: SparkCapture | Saved, given: JobInput, rules: str, skip: str, fail_on: str | None
    ) -> int:
        """Report what is wrong: the findings of `kcap check` over captures of any size, or over tables that ingest saved."""
        no_filter(given)
        limits = thresholds_of(settings().get("check", {}), RULES, f"{config_file()}: [check]")
        result = findings(source, check_text.known(rules), check_text.known(skip), limits)
        finished(spark, result, given)
        limit = SEVERITIES.index(fail_on) if fail_on else -1
        return FAILED if any(SEVERITIES.index(row["severity"]) <= limit for row in result["rows"]) else 0

    made = job("check", FORMS)(run)
    made.params += [
        click.Option(["--only-rules", "rules"], metavar="ID,...", default="", help="Run only these rules."),
        click.Option(["--skip"], metavar="ID,...", default="", help="Leave out these rules."),
        click.Option(["--fail-on"], type=click.Choice(SEVERITIES), help="Exit with code 1 if a finding is at least as severe."),
    ]
    return made


def ids_job(name: str, option: str, help_: str) -> click.Command:
    def run(spark: "SparkSession", source: SparkCapture | Saved, given: JobInput, ids: tuple[str, ...]) -> int:
        no_filter(given)
        finished(spark, of_ids(source, name, ids), given)
        return 0

    run.__doc__ = f"Show the report of `kcap {name}` over captures of any size, or over the tables that ingest saved."
    made = job(name, FORMS)(run)
    made.params.append(click.Option([option, "ids"], metavar="ID", multiple=True, help=help_))
    return made


def diff_job() -> click.Command:
    def run(spark: "SparkSession", source: SparkCapture | Saved, given: JobInput, before: tuple[str, ...]) -> int:
        """Show what changed from --before to --input: the report of `kcap diff` over captures of any size or saved tables."""
        no_filter(given)
        if not before:
            raise UsageError("diff compares two captures: name the earlier one with --before")
        finished(spark, diff(replace(given, paths=list(before)).open(spark), source), given)
        return 0

    made = job("diff", FORMS)(run)
    made.params.append(click.Option(["--before"], metavar="PATH", multiple=True, help="Compare with this capture. May repeat."))
    return made


JOBS: Final[dict[str, Any]] = {
    "check": check_job(),
    "groups": ids_job("groups", "--group", "Show only this group. May repeat."),
    "transactions": ids_job("transactions", "--id", "Show only this transactional id. May repeat."),
    "diff": diff_job(),
}
"""Report -> its job; `spark_jobs/NAME.py` is the entry point."""
