"""`kcap check`: what is wrong in a capture, which clients and brokers it concerns, since when, how certain it is, and what to
do.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from kcap.cli.options import FormatName, analyzer_options, inputs, paths_of
from kcap.cli.places import Writes
from kcap.errors import UsageError, did_you_mean
from kcap.output.escaping import json_text
from kcap.reports.findings.evidence import evidence_line
from kcap.reports.findings.model import EXPLANATIONS, NO_CLIENTS, NO_KAFKA, SEVERITIES, headline, passed
from kcap.reports.text import (
    UNLIMITED,
    Style,
    TextColumn,
    figures,
    in_columns,
    left_out,
    number,
    spark,
    time_of_day,
    wrapped,
)

if TYPE_CHECKING:
    from kcap.cli.report_formats import Document

Row = dict[str, Any]
FORMS: Final = ("text", "json", "markdown", "html", "sarif")
SUFFIXES: Final = {
    ".json": "json", ".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".sarif": "sarif",
    ".txt": "text",
}  # fmt: skip
LEVELS: Final = {"critical": "error", "high": "error", "medium": "warning", "low": "note", "info": "note"}
"""Severity -> level of SARIF 2.1.0."""
PROSE_WIDTH: Final = 100
"""Most columns of the text about a rule, which is wrapped also if it does not go to a terminal."""


@click.command("check")
@inputs
@click.option("--format", "form", type=FormatName(FORMS), help="Output format. Default: text, or by the suffix of -o.")
@click.option("-o", "--output", metavar="FILE", type=Writes(), help="Write to FILE, which appears when it is complete.")
@click.option("--only", metavar="ID,...", default="", help="Run only these rules.")
@click.option("--skip", metavar="ID,...", default="", help="Leave out these rules.")
@click.option("--fail-on", type=click.Choice(SEVERITIES), help="Exit with code 1 if a finding is at least as severe.")
@click.option("--explain", metavar="ID", help="Show what a rule looks at, its thresholds and sources; read no capture.")
@click.option("--list", "listed", is_flag=True, help="List every rule with its severity; read no capture.")
def run(
    files: tuple[str, ...], form: str | None, output: str | None, only: str, skip: str, fail_on: str | None,
    explain: str | None, listed: bool,
) -> int:  # fmt: skip
    """Report what is wrong in a capture: the clients and brokers concerned, since when, the evidence, what to do.

    The findings that cost most come first; healthy traffic has none. FILEs are captures, or a folder of saved tables
    (exchanges, partitions, connections, brokers).
    """
    from kcap.cli.configuration import rule_thresholds
    from kcap.cli.output import place, reported
    from kcap.cli.progress import watcher
    from kcap.cli.report_output import captures_of
    from kcap.output.formats import format_of
    from kcap.runtime import for_tables

    for_tables()
    from kcap.reports.findings.report import check
    from kcap.reports.findings.source import observed
    from kcap.reports.source import ReportInput

    limits = rule_thresholds()
    if explain is not None or listed:
        click.echo(explained(explain, limits) if explain is not None else rules_listed())
        return 0
    target = None if output == "-" else output
    chosen = format_of(form, target, SUFFIXES, text=())
    some, others = known(only), known(skip)
    given = ReportInput(paths_of(files), analyzer_options())
    with ExitStack() as stack:
        given.watch = watcher(stack)
        with observed(given) as seen:
            result = {"report": "check", "captures": given.captures} | check(seen, some, others, limits)
    with place(target) as sink:
        text = formatted(result, "text" if chosen == "table" else chosen, target, captures_of([given]))
        sink.write(text.encode(errors="replace"))
    code = reported(given.reading, found=bool(result["rows"]))
    worst = [row for row in result["rows"] if fail_on and SEVERITIES.index(row["severity"]) <= SEVERITIES.index(fail_on)]
    return code or (1 if worst else 0)


def known(words: str) -> list[str]:
    """Ids of rules from a list. Raises UsageError for an unknown one."""
    from kcap.reports.findings.report import rules

    ids = [word.strip() for word in words.split(",") if word.strip()]
    for one in ids:
        if one not in rules():
            raise UsageError(f"no rule is called {one!r}{did_you_mean(one, rules()) or '; kcap check --list names all'}")
    return ids


def rules_listed() -> str:
    """Every rule: id, severity, what it examines."""
    from kcap.cli.report_formats import screen_width
    from kcap.reports.findings.report import rules

    found = sorted(rules().values(), key=lambda rule: rule.id)
    return "\n".join(in_columns([(rule.id, rule.severity, rule.looks_at) for rule in found], screen_width()))


def explained(name: str, changed: Mapping[str, Mapping[str, float]] | None = None) -> str:
    """A rule in full, wrapped as prose; `changed` has thresholds from the configuration."""
    from kcap.cli.report_formats import screen_width
    from kcap.reports.findings.report import rules

    rule = rules()[known(name)[0]]
    own = (changed or {}).get(rule.id, {})
    limits = [
        f"{key} = {own.get(key, value):g}" + (f" (default {value:g})" if key in own else "")
        for key, value in rule.thresholds.items()
    ]
    example = next(iter(rule.thresholds.items()), None)
    parts = {
        "severity": f"{rule.severity}, confidence {rule.confidence:.0%}", "looks at": rule.looks_at,
        "thresholds": ", ".join(limits) or "none",
        "to change": f"config.toml: [check.{rule.id}] {example[0]} = {example[1]:g}" if example else "",
        "needs": f"{', '.join(rule.needs)} in the capture" if rule.needs else "",
        "next step": rule.advice, EXPLANATIONS: rule.instead, "sources": rule.sources,
    }  # fmt: skip
    width, indent = min(screen_width(limited=True), PROSE_WIDTH), len(EXPLANATIONS) + 2
    out = [part for line in f"{rule.id}: {rule.about}".split("\n") for part in wrapped(line, width) or [""]] + [""]
    for head, text in parts.items():
        out += wrapped(f"{head:<{indent}}{text}", width, " " * indent) if text else []
    return "\n".join(out)


def formatted(result: Row, form: str, output: str | None, files: Sequence[str] = ()) -> str:
    """The report in a format, with commands for the captures `files`."""
    from kcap.cli import report_formats, report_output

    if form == "json":
        return json_text(result, indent=1) + "\n"
    if form == "sarif":
        return json_text(sarif(result), indent=1) + "\n"
    unicode = form != "text" or report_formats.style_of(output).unicode
    return report_output.formatted(result, form, output, partial(document, unicode=unicode), files=files)


def document(result: Row, *, unicode: bool = True) -> "Document":
    """The findings for people: the most severe first, one paragraph each; `unicode`: bars are block characters."""
    from kcap.cli.report_formats import Document, Section, Sentences

    rows = result["rows"]
    blocks: list[Any] = [Sentences([headline(rows, result)], tone="bold")]
    columns = (
        TextColumn("severity", lambda row: row["severity"], right=False, whole=True),
        TextColumn("rule", lambda row: row["id"], right=False),
        TextColumn("who", lambda row: figures(row["who"]), right=False, rank=1),
        TextColumn("since", lambda row: time_of_day(row["first_ns"] or None), right=False, rank=2),
        TextColumn("exchanges", lambda row: number(sum(row["course"]) or None), down=lambda row: row["filter"] or None),
    )
    blocks.append(Section(rows, columns))
    blocks += [Sentences(lines_of(row, unicode=unicode), title=f"{row['severity']}  {row['sentence']}") for row in rows]
    reasons: dict[str, list[str]] = {}
    for rule, why in result["not_judged"].items():
        reasons.setdefault(why, []).append(rule)
    skipped = [f"{why}: {named_rules(why, some)}" for why, some in reasons.items()]
    if "left_out" in result:
        skipped.append(left_out(result["left_out"]))
    if skipped:
        blocks.append(Sentences(skipped, title="not judged", tone="dim"))
    return Document(f"check: {', '.join(result['captures'])}", blocks)


def named_rules(why: str, some: Sequence[str]) -> str:
    """The rules that could not judge for one reason; if it concerns most rules, only their number."""
    many = why.startswith((NO_KAFKA, NO_CLIENTS)) and len(some) > 1
    return f"{len(some)} rules that read exchanges" if many else ", ".join(some)


def lines_of(row: Row, *, unicode: bool = True) -> list[str]:
    """The lines below a finding's sentence."""
    around = f" ({more})" if (more := passed(row)) else ""
    bars = spark(row["course"], Style(UNLIMITED, color=False, unicode=unicode)) if any(row.get("course") or ()) else ""
    return [
        f"who: {figures(row['who'])}", f"when: {when(row['first_ns'], row['last_ns'])}",
        *([f"over the capture: |{bars}|"] if bars else []),
        f"evidence: {evidence_line(row['evidence'])}; confidence {row['confidence']:.0%}",
        f"next step: {row['advice']}", f"{EXPLANATIONS}: {row['instead']}",
        f"rule {row['id']}" + (f"; show: -Y '{row['filter']}'{around}" if row["filter"] else ""),
    ]  # fmt: skip


def when(first: int | None, last: int | None) -> str:
    if first is None:
        return "unknown"
    begin = datetime.fromtimestamp(first / 1e9, UTC)
    end = datetime.fromtimestamp((last or first) / 1e9, UTC)
    return f"{begin:%Y-%m-%d %H:%M:%S} to {end:%H:%M:%S} UTC ({(end - begin).total_seconds():.1f} s)"


def uri(name: str) -> str:
    """A file's name as a relative URI reference (RFC 3986): characters that a URI does not allow are percent-encoded byte by
    byte."""
    from urllib.parse import quote

    return quote(os.fsencode(name.replace("\\", "/")), safe="/")


def sarif(result: Row) -> Row:
    """The findings as SARIF 2.1.0, for code hosts and dashboards."""
    from kcap.reports.findings.report import rules

    ids = sorted({row["id"] for row in result["rows"]})
    described = [
        {
            "id": one,
            "shortDescription": {"text": rules()[one].about},
            "help": {"text": rules()[one].advice},
        }
        for one in ids
    ]
    places: Sequence[Row] = [{"physicalLocation": {"artifactLocation": {"uri": uri(name)}}} for name in result["captures"][:1]]
    results = [
        {
            "ruleId": row["id"], "ruleIndex": ids.index(row["id"]), "level": LEVELS[row["severity"]],
            "message": {"text": row["sentence"]}, "locations": places, "occurrenceCount": max(row["count"], 1),
            "properties": {name: row[name] for name in ("severity", "confidence", "who", "evidence", "filter", "first_ns",
                "last_ns", "course")},
        }
        for row in result["rows"]
    ]  # fmt: skip
    driver = {"name": "kcap", "rules": described}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }  # fmt: skip
