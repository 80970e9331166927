"""`kcap health`: is this capture good enough to trust?"""

from typing import TYPE_CHECKING, Any, Final

import click

from kcap.cli.options import FormatName, analyzer_options, inputs, paths_of
from kcap.cli.places import Writes

if TYPE_CHECKING:
    from kcap.cli.report_formats import Document

FORMS: Final = ("table", "json", "markdown", "html")
MARKS: Final = {"good": "ok", "care": "care", "bad": "BAD"}


@click.command("health", short_help="Show how far the capture can be trusted.")
@inputs
@click.option("--format", "form", type=FormatName(FORMS), help="Output format. Default: table, or by the suffix of -o.")
@click.option("-o", "--output", metavar="FILE", type=Writes(), help="Write to FILE, which appears when it is complete.")
def run(
    files: tuple[str, ...],
    form: str | None,
    output: str | None,
) -> int:
    """Show how far the capture can be trusted: holes, drops, cuts, oddities; a verdict for each point and one for all."""
    from kcap.runtime import for_tables

    for_tables()
    from kcap.cli.output import place, report_failed
    from kcap.cli.progress import Progress
    from kcap.cli.report_output import formatted
    from kcap.output.formats import DOCUMENTS, format_of
    from kcap.reports.capture_quality import gather
    from kcap.reports.health import judge
    from kcap.session import Capture

    form = format_of(form, output, DOCUMENTS, text=())
    capture = Capture(paths_of(files), analyzer_options())
    reading = capture.read(keep_connections=True)
    with Progress(reading, shown=True) as progress:
        reading.watch = progress.step
        evidence = gather(reading)
    verdict, sentence, points = judge(evidence)
    result = {
        "report": "health", "captures": [file.name for file in evidence.files], "verdict": verdict, "sentence": sentence,
        "rows": [{"point": p.name, "verdict": p.verdict, "sentence": p.sentence, **p.numbers} for p in points],
        "weirds": [
            {"kind": kind, "count": number, "first": evidence.sightings[kind]} for kind, number in evidence.weirds.most_common()
        ],
        "left_out": {},
    }  # fmt: skip
    with place(output) as sink:
        sink.write(formatted(result, form, output, page).encode(errors="replace"))
    return report_failed(reading)


def page(result: dict[str, Any]) -> "Document":
    """The verdict, a row per point, a row per kind of oddity."""
    from kcap.cli.report_formats import Document, Section, Sentences
    from kcap.reports.text import TextColumn, number

    points = [
        TextColumn("verdict", lambda row: MARKS[row["verdict"]], right=False),
        TextColumn("point", lambda row: row["point"], right=False, whole=True),
        TextColumn("finding", lambda row: row["sentence"], right=False, wraps=True),
    ]
    oddities = [
        TextColumn("count", lambda row: number(row["count"])),
        TextColumn("kind", lambda row: str(row["kind"]), right=False, whole=True),
        TextColumn("first", lambda row: row["first"], right=False, wraps=True),
    ]
    return Document(f"health: {', '.join(result['captures'])}", [
        Sentences([result["sentence"]], tone="bold" if result["verdict"] == "good" else "red"),
        Section(result["rows"], points, empty=""),
        Section(result["weirds"], oddities, "oddities"),
    ])  # fmt: skip
