"""`kcap versions`: which clients use which versions with which brokers, and what breaks on another release."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from kcap.cli.options import FormatName, analyzer_options, filters, inputs, paths_of, remembered
from kcap.cli.places import Writes
from kcap.output.escaping import json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kcap.reports.versions.profiles import ConnectionProfiles

FORMS: Final = ("table", "json", "markdown", "html")
FAIL_REASONS: Final = ("removed", "deprecated", "unjudged")
FAILED: Final = 1
"""Exit code if --fail-on is met."""


def explain(
    client: str, targets: list[str], profiles: "ConnectionProfiles | None", form: str, output: str | None
) -> int:  # fmt: skip
    """Writes which versions a client settles on with releases; returns the exit code."""
    from kcap.cli.output import place
    from kcap.cli.report_formats import style_of
    from kcap.cli.versions_text import explanation
    from kcap.errors import UsageError
    from kcap.reports.versions.explain import explanation_of

    if form not in ("table", "json"):
        raise UsageError("--explain writes table or json")
    made = explanation_of(client, targets, profiles)
    text = json_text(made) if form == "json" else "\n".join(explanation(made, style_of(output)))
    with place(output) as sink:
        sink.write((text + "\n").encode("utf-8", "replace"))
    return 0


def refuse_for_saved(paths: "Sequence[str]", only: str) -> None:
    """Raises UsageError for a folder of saved tables beside a capture, or with a filter."""
    from kcap.errors import UsageError
    from kcap.reports.versions.saved import is_saved

    other = next((path for path in paths if not is_saved(path)), None)
    if other is not None:
        saved = next(filter(is_saved, paths))
        raise UsageError(f"{saved} holds saved tables and {other} does not: name captures or saved tables, not both")
    if only:
        raise UsageError("a filter applies while captures are read: give it to ingest, or name the captures")


@click.command("versions", short_help="Show version negotiation: clients, brokers, upgrade readiness, diagnoses.")
@inputs
@filters
@click.option("--target", metavar="RELEASE", default="newest", help="Check clients against this release. Default: the newest.")
@click.option(
    "--fail-on", type=click.Choice(FAIL_REASONS), multiple=True,
    help="Exit with code 1 if a client uses a removed or deprecated version, or if no client could be judged.",
)  # fmt: skip
@click.option("--by", type=click.Choice(("address",)), help="Show a row for each address of a client.")
@click.option(
    "--all", "every", is_flag=True, help="Show each client, version and diagnosis in its own row, however many there are."
)
@click.option("--connection", metavar="UID", help="Show one connection step by step: UID, UID.N or the beginning of a UID.")
@click.option(
    "--explain", "explained", metavar="CLIENT",
    help="Predict the version of each API that a client (its id, or a library such as 'java 2.8') settles on with the "
    "releases of --target, and what is lost. Several targets are the steps of a rolling upgrade: 3.9,4.0.",
)  # fmt: skip
@click.option("--format", "form", type=FormatName(FORMS), help="Output format. Default: table, or by the suffix of -o.")
@click.option("-o", "--output", metavar="FILE", type=Writes(), help="Write to FILE, which appears when it is complete.")
def run(
    files: tuple[str, ...],
    only: str,
    target: str,
    fail_on: tuple[str, ...],
    by: str | None,
    every: bool,
    connection: str | None,
    explained: str | None,
    form: str | None,
    output: str | None,
) -> int:
    """Show which client uses which versions with which broker, what breaks on another release of Kafka (--target), and why
    connections failed. --connection shows the negotiation of one connection step by step. A FILE may also be the folder that
    the job ingest wrote."""
    from kcap.runtime import for_tables, release_reading

    for_tables()
    from kcap.cli.output import place, report_failed, reported
    from kcap.cli.progress import Progress
    from kcap.cli.report_formats import style_of
    from kcap.errors import UsageError
    from kcap.output.formats import DOCUMENTS, format_of
    from kcap.reports.versions.identity import identify
    from kcap.reports.versions.profiles import gather
    from kcap.reports.versions.readiness import release_of
    from kcap.reports.versions.report import fails, report
    from kcap.reports.versions.saved import is_saved, read
    from kcap.reports.versions.simulator import sequence
    from kcap.session import Capture

    targets = [release_of(one) for one in sequence(target)] or [release_of(target)]
    if len(targets) > 1 and explained is None:
        raise UsageError("several releases of --target need --explain CLIENT")
    release = targets[-1]
    form = format_of(form, output, DOCUMENTS, text=())
    if explained is not None and not (files or remembered("more_files")):
        return explain(explained, targets, None, form, output)
    if connection is not None and form not in ("table", "json"):
        raise UsageError("--connection writes table or json")
    paths = paths_of(files)
    reading = None
    if any(map(is_saved, paths)):
        refuse_for_saved(paths, only)
        profiles, names = read(paths)
    else:
        capture = Capture(paths, analyzer_options())
        capture = capture.filter(only) if only else capture
        reading = capture.read(keep_connections=True)
        with Progress(reading, shown=True) as progress:
            reading.watch = progress.step
            profiles = gather(reading, capture.only)
        release_reading()
        names = [file.name for file in reading.capture_files]
    if explained is not None:
        code = explain(explained, targets, profiles, form, output)
        return code or (report_failed(reading) if reading is not None else 0)
    made = report(profiles, names, release, by_address=by is not None)
    result: dict[str, Any] = made
    if connection is not None:
        from kcap.cli.versions_text import story as story_lines
        from kcap.reports.versions.story import of

        story = of(profiles, connection, identify(profiles), made["diagnoses"])
        result = {"report": "versions", "captures": names, "rows": story["apis"], "left_out": {}, "story": story}
        forms: dict[str, Callable[[], str]] = {"table": lambda: "\n".join(story_lines(story, style_of(output))) + "\n"}
    else:
        from kcap.cli import report_formats
        from kcap.cli.versions_page import document
        from kcap.cli.versions_text import report as report_lines

        def page() -> report_formats.Document:
            return replace(document(made, every=every), files=paths if reading is not None else [], only=only)

        forms = {
            "table": lambda: "\n".join(report_lines(made, style_of(output), every=every)) + "\n",
            "markdown": lambda: report_formats.markdown(page()),
            "html": lambda: report_formats.html(page()),
        }
    text = json_text(result) + "\n" if form == "json" else forms[form]()
    with place(output) as sink:
        sink.write(text.encode("utf-8", "replace"))
    return reported(reading) or (FAILED if any(fails(made, what) for what in fail_on) else 0)
