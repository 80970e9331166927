"""What the commands of all reports have in common: their options, how they run, the forms in which they tell.

In: what was typed. Out: a report on standard output or in a file, an exit code. Law: the JSON form is the report; all other
forms show parts of it.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from kcap.cli.options import analyzer_options, filters, inputs, paths_of
from kcap.cli.places import Writes

if TYPE_CHECKING:
    from kcap.reports.definition import Report, Row
    from kcap.reports.source import ReportInput
    from kcap.session import CapturePass

FORMS: Final = ("table", "json", "csv", "markdown", "html")
SUFFIXES: Final = {
    ".json": "json", ".csv": "csv", ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html",
    ".txt": "table",
}  # fmt: skip
POLLING: Final = frozenset({"latency", "stats", "slow"})
"""Reports of times: long polls are left out of them unless they are asked for."""
PLOTTED: Final = frozenset({"latency"})


def command(name: str, summary: str, text: str) -> click.Command:
    """The command of a report."""

    def run(**options: Any) -> int:
        return answer(name, options)

    run.__doc__ = text
    made: Callable[..., int] = run
    if name in PLOTTED:
        made = click.option("--plot", metavar="FILE", type=Writes(), help="Draw a chart there too: .svg, .html or .png.")(made)
    if name in POLLING:
        made = click.option("--with-long-polls", is_flag=True, help="Requests that waited for data count as others do.")(made)
    made = click.option(
        "-o", "--output", metavar="FILE", type=Writes(), help="Write there; the file appears when it is whole."
    )(made)
    made = click.option(
        "--format", "form", type=click.Choice(FORMS), help="How it is told. Default: table, or what the name of -o says."
    )(made)
    made = click.option("--top", metavar="N", type=click.IntRange(1), help="So many rows, the first ones.")(made)
    if name != "slow":
        made = click.option(
            "--by", metavar="A,B,...", help="Group by these columns of exchanges; also topic, time:10s for time buckets."
        )(made)
    return click.command(name, short_help=summary)(inputs(filters(made), tables=True))


def report_of(name: str) -> "Report":
    """A report by name."""
    found: Report = import_module(f"kcap.reports.{name}").REPORT
    return found


def answer(name: str, options: dict[str, Any]) -> int:
    """Runs a report; the exit code."""
    from kcap.cli.main import say
    from kcap.cli.output import no_kafka, place, report_failed
    from kcap.filter.parse import parse
    from kcap.output.formats import format_of
    from kcap.reports.definition import ReportRequest, keys_of
    from kcap.reports.run import run
    from kcap.reports.source import ReportInput

    output = None if options["output"] == "-" else options["output"]
    form = format_of(options["form"], output, SUFFIXES, text=())
    plot = options.get("plot")
    if plot is not None:
        from kcap.cli.report_charts import drawer

        drawer(plot)  # what cannot be drawn is said before a long run
    by = tuple(word.strip() for word in (options.get("by") or "").split(",") if word.strip())
    report = report_of(name)
    asked = ReportRequest(by, options["top"], bool(options.get("with_long_polls")))
    keys = [key.name for key in keys_of(report, asked)] if report.groups else []
    paths = paths_of(options["files"], options["more_files"])
    given = ReportInput(paths, analyzer_options(options["decode_as"], options["not_kafka"]), parse(options["only"]))
    with ExitStack() as stack:
        given.watch = watcher(stack)
        health = witness(given) if name == "stats" else None
        result = run(report, given, asked)
    if health is not None and given.reading is not None:
        result = facts(result, health(given.reading))
    with place(output) as sink:
        shown = paths if given.reading is not None else []  # a saved table has no bytes to show
        sink.write(told(result, form, output, keys, shown).encode(errors="replace"))
    if plot is not None:
        from kcap.cli.report_charts import draw

        draw(plot, result, keys)
    if given.reading is None:
        return 0
    if not given.reading.analyzer.kafka_connections:
        say(no_kafka(given.reading))
    return report_failed(given.reading)


def watcher(stack: ExitStack) -> "Callable[[CapturePass], Callable[[], None]]":
    """Shows how far each pass is."""

    def watch(reading: "CapturePass") -> Callable[[], None]:
        from kcap.cli.progress import Progress
        from kcap.runtime import Steps

        return Steps(stack.enter_context(Progress(reading, shown=True)).step)

    return watch


def witness(given: "ReportInput") -> "Callable[[CapturePass], tuple[str, str, list[Any]]]":
    """Looks at the capture's health while its rows go by."""
    from kcap.reports.capture_quality import CaptureQuality, settle, take
    from kcap.reports.health import judge

    evidence = CaptureQuality([], [])
    given.witness = lambda reading, batch: take(evidence, reading, batch)

    def end(reading: "CapturePass") -> tuple[str, str, list[Any]]:
        settle(evidence, reading)
        return judge(evidence)

    return end


def facts(result: "Row", judged: tuple[str, str, list[Any]]) -> "Row":
    """The report with the capture's health before its rows."""
    verdict, sentence, points = judged
    told = [{"name": point.name, "verdict": point.verdict, "sentence": point.sentence, **point.numbers} for point in points]
    head = {"report": result["report"], "captures": result["captures"]}
    return head | {"health": {"verdict": verdict, "sentence": sentence, "points": told}} | result


def told(result: "Row", form: str, output: str | None, keys: Sequence[str], paths: Sequence[str]) -> str:
    """The report in one of its forms."""
    if form == "json":
        return json.dumps(result, ensure_ascii=False) + "\n"
    if form == "csv":
        from kcap.cli.report_pages import csv_text

        return csv_text(result)
    if form in ("markdown", "html"):
        from kcap.cli import report_pages

        return report_pages.markdown(result) if form == "markdown" else report_pages.html(result, keys)
    from kcap.cli.report_text import style_of
    from kcap.cli.report_views import VIEWS

    style = style_of(output)
    return "\n".join(VIEWS[str(result["report"])](result, style, keys, paths)) + "\n"
