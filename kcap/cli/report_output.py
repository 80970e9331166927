"""Reports that write themselves as documents: their formats, in one place.

In: the plain values of a report and what makes a document of them. Out: its text in a format. Law: the JSON form is the report;
text, Markdown and HTML are made of one document.
"""

import json
from collections.abc import Callable
from typing import Any, Final

from kcap.cli import report_formats
from kcap.cli.report_formats import Document

Row = dict[str, Any]
FORMS: Final = ("text", "json", "csv", "markdown", "html")
SUFFIXES: Final = {
    ".json": "json", ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".csv": "csv", ".txt": "text",
}  # fmt: skip


def formatted(result: Row, form: str, output: str | None, document: Callable[[Row], Document]) -> str:
    """The report in a format; `output` is the file that text goes to, None for standard output."""
    if form == "json":
        return json.dumps(result, ensure_ascii=False) + "\n"
    if form == "csv":
        return report_formats.csv_text(result)
    page = document(result)
    if form == "markdown":
        return report_formats.markdown(page)
    if form == "html":
        return report_formats.html(page)
    return "\n".join(report_formats.text(page, report_formats.style_of(output))) + "\n"
