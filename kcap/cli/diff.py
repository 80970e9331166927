"""`kcap diff`: what changed between two captures, and what chance explains."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import click

from kcap.cli.options import FormatName, analyzer_options, filter_of, filters, inputs, paths_of
from kcap.cli.places import Writes
from kcap.cli.report_formats import Document, Section, Sentences
from kcap.cli.report_output import FORMS, carried_out
from kcap.errors import UsageError, did_you_mean
from kcap.output.grid import duration
from kcap.reports import drill_down
from kcap.reports.definition import Row, key_of
from kcap.reports.text import Aim, TextColumn, number, words

ANY: Final = "any"
SHOWN: Final = 20
"""Number of rows that text shows of each table of classes."""


@partial(inputs, tables=True)
@click.command("diff", short_help="Show what changed between two captures.")
@filters
@click.option("--format", "form", type=FormatName(FORMS), help="Output format. Default: text, or by the suffix of -o.")
@click.option("-o", "--output", metavar="FILE", type=Writes(), help="Write to FILE, which appears when it is complete.")
@click.option("--fail-on", metavar="WHAT,...", default="", help="Exit with code 1 if one of these differs: any, latency, ...")
def run(
    files: tuple[str, ...], form: str | None, output: str | None, only: str, fail_on: str,
) -> int:  # fmt: skip
    """Show what changed from BEFORE to AFTER: times, rates, errors, versions, settings, clients, brokers, topics.

    FILEs are BEFORE and AFTER: captures, saved exchanges, or folders of these. Differences that chance explains are left out:
    Mann-Whitney tests times, Fisher's test errors, Poisson's rates, and Holm's method corrects for the number of tests.
    """
    from kcap.runtime import for_tables

    for_tables()
    from kcap.reports.diff.report import diff
    from kcap.reports.source import ReportInput

    paths = paths_of(files)
    if len(paths) != 2:
        raise UsageError(f"diff compares two captures, BEFORE and AFTER; {len(paths)} given")
    kinds = kinds_of(fail_on)
    sides = [ReportInput([path], analyzer_options(), filter_of(only)) for path in paths]
    result, code = carried_out(sides, lambda: diff(*sides), form, output, partial(document, only=only))
    failed = any(row["significant"] and (row["what"] in kinds or ANY in kinds) for row in result["rows"])
    return code or (1 if failed else 0)


def kinds_of(words: str) -> list[str]:
    """Kinds of differences from a list. Raises UsageError for one that does not exist."""
    from kcap.reports.diff.compare import ORDER

    kinds = [word.strip() for word in words.split(",") if word.strip()]
    for kind in kinds:
        if kind not in (*ORDER, ANY):
            advice = did_you_mean(kind, [*ORDER, ANY]) or f"; there are {', '.join((ANY, *ORDER))}"
            raise UsageError(f"--fail-on {kind!r} is no kind of difference{advice}")
    return kinds


def document(result: Row, only: str = "") -> Document:
    """The differences in words, then the figures of both captures by class; `only` is the display filter for both."""
    from kcap.reports.diff.summaries import SCOPES

    found = [row for row in result["rows"] if row["significant"]]
    blocks: list[Any] = [Sentences([result["sentence"]], tone="bold")]
    blocks.append(Sentences([row["sentence"] + evidence(row) for row in found], title="differences" if found else ""))
    for scope in SCOPES:
        rows = [row for row in result["classes"] if row["scope"] == scope]
        rows.sort(key=lambda row: -sum((row[side] or {"count": 0})["count"] for side in SIDES))
        blocks.append(Section(rows, COLUMNS, title=f"by {scope}", most=SHOWN))
    names = [", ".join(result[side]["captures"]) for side in SIDES]
    return Document(f"diff: {names[0]} before, {names[1]} after", blocks, only=only)


def evidence(row: Row) -> str:
    """The test behind a difference."""
    if row["p_adjusted"] is None:
        return ""
    effect = f"Cliff's delta {row['effect']:+.2f}" if row["what"] in ("latency", "size") else f"effect {row['effect']:+.3g}"
    return f" ({effect}, p {row['p_adjusted']:.1g})"


def of(side: str, name: str, shown: Callable[[Any], str], head: str, rank: int, *conditions: str) -> TextColumn:
    """A figure of one side, which links to the exchanges of that side's capture that meet the conditions."""

    def down(row: Row) -> Aim:
        keys = [key_of(name) for name in row["who"]]
        return Aim(drill_down.every(*conditions, drill_down.group(keys, row["who"])), SIDES.index(side))

    return TextColumn(head, lambda row: shown(row[side][name]) if row[side] else "", rank=rank, down=down)


def name_of(who: Row) -> str:
    """The subject of a class, besides its API."""
    return ":".join(words(value) for name, value in who.items() if name != "api")


SIDES: Final = ("before", "after")
COLUMNS: Final = (
    TextColumn("api", lambda row: row["who"]["api"], right=False),
    TextColumn("of", lambda row: name_of(row["who"]), right=False),
    TextColumn("", lambda row: "" if row["in"] == "both" else row["in"], right=False),
    *(
        of(side, name, shown, f"{head} {side}", rank, *conditions)
        for name, shown, head, rank, *conditions in (
            ("count", number, "count", 0), ("failed", number, "failed", 3, drill_down.FAILED),
            ("p50_ns", duration, "p50", 0, drill_down.ANSWERED), ("p99_ns", duration, "p99", 1, drill_down.ANSWERED),
            ("service_p50_ns", duration, "broker p50", 2, drill_down.ANSWERED),
        )
        for side in SIDES
    ),
)  # fmt: skip
"""Figures of a class, before and after."""
