"""The commands of the reports: their options, how they run, and the formats in which they write.

In: command line arguments. Out: a report on standard output or in a file, an exit code. Law: the JSON form is the report; text,
Markdown, HTML and CSV are made from it.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import click

from kcap.cli.commands import COMMANDS
from kcap.cli.options import FormatName, analyzer_options, csv_safety, filter_of, filters, inputs, paths_of
from kcap.cli.places import Writes

if TYPE_CHECKING:
    from kcap.capture_pass import CapturePass
    from kcap.reports.definition import Key, Row
    from kcap.reports.source import ReportInput

FORMS: Final = ("table", "json", "csv", "markdown", "html")
SUFFIXES: Final = {
    ".json": "json", ".csv": "csv", ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html",
    ".txt": "table",
}  # fmt: skip
HELP: Final = {
    "stats": """Show which requests take the time: the capture's health first, then all exchanges, then classes by their share.

    FILEs are captures, or Parquet files of kcap rows, for which there is no health.
    """,
    "latency": """Show latency percentiles by API or by the columns of --by, what dominates since when, and where the time went.

    FILEs are captures, or Parquet files of kcap rows. Percentiles are exact. The time that a Fetch waited for data (long poll)
    is subtracted unless you pass --with-long-polls. A request without a response counts with its age.
    """,
    "slow": """Show the slowest exchanges and why: a queue (behind which request), a mute, a throttle, the network, the broker.

    FILEs are captures, or Parquet files of kcap rows.
    """,
    "throttle": """Show which clients were throttled, for how long, in which way, and whether they complied. A client complies
    if it sends nothing on a throttled connection until the throttle time is over (KIP-219).

    FILEs are captures, or Parquet files of kcap rows.
    """,
    "errors": """Show errors by code, API and client, requests without a response, retries, and how leadership errors ended. Use
    --by topic,partition for the errors of single partitions.

    FILEs are captures, or Parquet files of kcap rows, together with those of kcap rows --table partitions.
    """,
    "topics": """Show which clients write and read each topic: records, bytes, batches, formats; busiest partitions; group lag.

    FILEs are captures, or Parquet files of kcap rows, together with those of kcap rows --table partitions.
    """,
    "clients": """Show the clients: software, users, groups, what they request, write and read, and their errors.

    FILEs are captures, or Parquet files of kcap rows.
    """,
}
"""Report -> the text of its help."""
LISTED: Final = 5
"""Number of failed exchanges of each group on a page, and of others."""
TIMES: Final = frozenset({"latency", "stats", "slow"})
"""Reports of times, which subtract long polls."""
OPTIONS: Final = (
    (lambda name: name != "slow", click.option(
        "--by", metavar="A,B,...", help="Group by these columns of exchanges, by topic, or by time:10s (time buckets).")),
    (lambda _name: True, click.option("--top", metavar="N", type=click.IntRange(1), help="Show only the first N rows.")),
    (lambda _name: True, click.option(
        "--format", "form", type=FormatName(FORMS), help="Output format. Default: table, or by the suffix of -o.")),
    (lambda _name: True, click.option(
        "-o", "--output", metavar="FILE", type=Writes(), help="Write to FILE, which appears when it is complete.")),
    (lambda _name: True, csv_safety),
    (lambda name: name in TIMES, click.option(
        "--with-long-polls", is_flag=True, help="Do not subtract the time that a Fetch waited for data.")),
    (lambda name: name == "latency", click.option(
        "--plot", metavar="FILE", type=Writes(), help="Also draw a chart to FILE: .svg, .html or .png.")),
)  # fmt: skip
"""Reports that have an option -> the option, in the order of the help."""


def command(name: str) -> click.Command:
    def run(**options: Any) -> int:
        return execute(name, options)

    run.__doc__ = HELP[name]
    made: Callable[..., int] = run
    for applies, option in reversed(OPTIONS):
        made = option(made) if applies(name) else made
    return click.command(name, short_help=COMMANDS[name].summary)(inputs(filters(made), tables=True))


def execute(name: str, options: dict[str, Any]) -> int:
    """Runs a report. Returns the exit code."""
    from kcap.cli.output import place, reported
    from kcap.cli.progress import watcher
    from kcap.output.formats import format_of
    from kcap.runtime import for_tables

    for_tables()
    from kcap.reports.definition import ReportRequest, keys_of, report_of
    from kcap.reports.run import run
    from kcap.reports.saved import saved_files
    from kcap.reports.source import ReportInput

    output = None if options["output"] == "-" else options["output"]
    form = format_of(options["form"], output, SUFFIXES, text=())
    plot = options.get("plot")
    if plot is not None:
        from kcap.cli.report_charts import drawer

        draw = drawer(plot)  # reports errors before a long run
    by = tuple(word.strip() for word in (options.get("by") or "").split(",") if word.strip())
    report = report_of(name)
    page = form == "html" or str(plot or "").endswith(".html")
    request = ReportRequest(by, options["top"], bool(options.get("with_long_polls")), LISTED if page else 0)
    keys = keys_of(report, request) if report.groups else []
    paths = paths_of(options["files"])
    given = ReportInput(paths, analyzer_options(), filter_of(options["only"]))
    with ExitStack() as stack:
        given.watch = watcher(stack)
        health = witness(given) if report.begins else None
        if report.begins and given.only is None and saved_files(paths) is None:
            from kcap.cli.configuration import rule_thresholds
            from kcap.reports.findings.report import with_findings

            result = with_findings(report, given, request, rule_thresholds())
        else:
            result = run(report, given, request)
    if health is not None and given.reading is not None:
        result = with_health(result, health(given.reading))
    with place(output) as sink:
        shown = paths if given.reading is not None else []  # a saved table has no bytes to show
        sink.write(formatted(result, form, output, keys, shown, options["only"]).encode(errors="replace"))
    if plot is not None:
        draw(plot, result, formatted(result, "html", None, keys, shown, options["only"]))
    return reported(given.reading)


def witness(given: "ReportInput") -> "Callable[[CapturePass], tuple[str, str, list[Any]]]":
    """Collects the capture's quality while its rows are read; returns the function that judges it at the end."""
    from kcap.reports.capture_quality import QualityObserver, settle
    from kcap.reports.health import judge

    observer = QualityObserver()
    given.observers = [observer]

    def end(reading: "CapturePass") -> tuple[str, str, list[Any]]:
        settle(observer.evidence, reading)
        return judge(observer.evidence)

    return end


def with_health(result: "Row", assessed: tuple[str, str, list[Any]]) -> "Row":
    """The report with the capture's health before its rows."""
    verdict, sentence, points = assessed
    found = [{"name": point.name, "verdict": point.verdict, "sentence": point.sentence, **point.numbers} for point in points]
    head = {"report": result["report"], "captures": result["captures"]}
    head |= {"findings": result["findings"]} if "findings" in result else {}
    return head | {"health": {"verdict": verdict, "sentence": sentence, "points": found}} | result


def formatted(result: "Row", form: str, output: str | None, keys: "Sequence[Key]", paths: Sequence[str], only: str) -> str:
    """The report in one of its formats; `only` is its display filter."""
    from dataclasses import replace

    from kcap.cli import report_output
    from kcap.cli.report_formats import Document, style_of
    from kcap.cli.report_views import VIEWS
    from kcap.reports.text import UNLIMITED, Style

    style = style_of(output) if form == "table" else Style(UNLIMITED, color=False, unicode=True)

    def document(made: "Row") -> Document:
        return replace(VIEWS[str(made["report"])](made, style, keys, paths), only=only)

    def charts(made: "Row") -> list[str]:
        from kcap.cli.report_charts import svg

        return [svg(made)] if made["rows"] and "histogram_edges_ns" in made else []

    return report_output.formatted(result, form, output, document, charts, paths)


def __getattr__(name: str) -> click.Command:
    """The command of a report, made when it is requested (PEP 562): a run needs only one of them."""
    if name not in HELP:
        raise AttributeError(name)
    return command(name)
