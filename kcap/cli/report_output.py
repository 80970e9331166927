"""Runs reports that have documents of their own and writes them.

In: inputs, a function that makes the plain values of a report, a function that makes a document of these. Out: the report in a
format, and an exit code. Law: the JSON form is the report; text, Markdown and HTML are made from one document.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kcap.cli import report_formats
from kcap.cli.options import csv_is_safe
from kcap.cli.report_formats import Document
from kcap.output.escaping import json_text

if TYPE_CHECKING:
    from kcap.reports.source import ReportInput

Row = dict[str, Any]
FORMS: Final = ("text", "json", "csv", "markdown", "html")
SUFFIXES: Final = {
    ".json": "json", ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".csv": "csv", ".txt": "text",
}  # fmt: skip


def formatted(
    result: Row, form: str, output: str | None, document: Callable[[Row], Document],
    pictures: Callable[[Row], Sequence[str]] = lambda _result: (), files: Sequence[str] = (),
) -> str:  # fmt: skip
    """The report in a format. `output` is the file for text, None for standard output. HTML has the pictures, and commands for
    the captures `files`."""
    if form == "json":
        return json_text(result) + "\n"
    if form == "csv":
        return report_formats.csv_text(result, safe=csv_is_safe())
    page = replace(document(result), files=files)
    if form == "markdown":
        return report_formats.markdown(page)
    if form == "html":
        return report_formats.html(page, pictures(result))
    return "\n".join(report_formats.text(page, report_formats.style_of(output))) + "\n"


def captures_of(inputs: "Sequence[ReportInput]") -> list[str]:
    """The captures among inputs that were read, one for each input; empty for saved tables, which have no bytes."""
    if len(inputs) == 1:
        return list(inputs[0].paths) if inputs[0].reading is not None else []
    return [given.paths[0] if given.reading is not None else "" for given in inputs]


def carried_out(
    inputs: "Sequence[ReportInput]", make: Callable[[], Row], form: str | None, output: str | None,
    document: Callable[[Row], Document], pictures: Callable[[Row], Sequence[str]] = lambda _result: (),
) -> tuple[Row, int]:  # fmt: skip
    """Makes a report of some inputs and writes it; returns the report, and the exit code for what could not be read.

    Raises UsageError for a format that `output` contradicts, before anything is read.
    """
    from kcap.cli.output import place, reported
    from kcap.cli.progress import watcher
    from kcap.output.formats import format_of

    target = None if output == "-" else output
    chosen = format_of(form, target, SUFFIXES, default="text", text=())
    with ExitStack() as stack:
        for given in inputs:
            given.watch = watcher(stack)
        result = make()
    with place(target) as sink:
        sink.write(formatted(result, chosen, target, document, pictures, captures_of(inputs)).encode(errors="replace"))
    codes = [reported(given.reading) for given in inputs]
    return result, max(codes)
