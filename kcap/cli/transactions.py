"""`kcap transactions`: what each transaction wrote, how long it stayed open, how it ended."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import click

from kcap.cli.options import FormatName, analyzer_options, inputs, paths_of
from kcap.cli.places import Writes
from kcap.cli.report_formats import Document, Section, Sentences
from kcap.cli.report_output import FORMS, carried_out
from kcap.cli.report_views import foot
from kcap.cli.timelines import of_transactions
from kcap.errors import UsageError
from kcap.output.grid import counts, duration
from kcap.reports import drill_down
from kcap.reports.text import TextColumn, number, size, time_of_day, words
from kcap.reports.text import count as counted

Row = dict[str, Any]
OUTCOMES: Final = ("committed", "aborted", "fenced", "timed_out", "open")
AGAIN: Final = "it had ended already (KIP-890)"
"""Reason of a refused EndTxn that does not show another producer."""
SHOWN: Final = 60
"""Number of rows that text shows of a table."""


@partial(inputs, tables=True)
@click.command("transactions", short_help="Show transactions: what they wrote, how long they took, how they ended.")
@click.option("--id", "ids", metavar="ID", multiple=True, help="Show only this transactional id. May repeat.")
@click.option("--format", "form", type=FormatName(FORMS), help="Output format. Default: text, or by the suffix of -o.")
@click.option("-o", "--output", metavar="FILE", type=Writes(), help="Write to FILE, which appears when it is complete.")
@click.option(
    "--fail-on",
    metavar="OUTCOME,...",
    default="",
    help="Exit with code 1 if a transaction has this outcome: committed, aborted, fenced, timed_out or open.",
)
def run(
    files: tuple[str, ...], ids: tuple[str, ...], form: str | None, output: str | None, fail_on: str,
) -> int:  # fmt: skip
    """Show transactions by transactional id: begin, partitions, records, offsets, end, duration, outcome, fences.

    FILEs are captures, or a folder of saved tables (exchanges, partitions, connections, brokers). Saved tables have no message
    bodies, so they do not show which transactions were committed.
    """
    from kcap.runtime import for_tables

    for_tables()
    from kcap.reports.source import ReportInput
    from kcap.reports.transactions.report import transactions

    outcomes = [word.strip() for word in fail_on.split(",") if word.strip()]
    for outcome in outcomes:
        if outcome not in OUTCOMES:
            raise UsageError(f"--fail-on {outcome!r} is no outcome of a transaction; there are {', '.join(OUTCOMES)}")
    given = ReportInput(paths_of(files), analyzer_options())
    result, code = carried_out(
        [given], lambda: transactions(given, ids), form, output, partial(document, wanted=ids), of_transactions
    )
    return code or (1 if any(row["outcome"] in outcomes for row in result["rows"]) else 0)


def document(result: Row, wanted: Sequence[str] = ()) -> Document:
    """Transactional ids in sentences, then transactions and fences. `wanted`: the ids to which the report was limited."""
    ids = result["transactional_ids"]
    none = f"no transactional id is {' or '.join(map(repr, wanted))}; without --id all are listed"
    sentences = [sentence(row) for row in ids] or [none if wanted else "no transaction was found"]
    blocks: list[Any] = [Sentences(sentences, tone="bold")]
    blocks.append(Section(result["rows"], TRANSACTIONS, title="transactions", most=SHOWN))
    blocks.append(Section(result["fences"], FENCES, title="refused as fenced", most=SHOWN))
    blocks += [Section(row["producers"], PRODUCERS, title=f"producers of {row['transactional_id']}", most=SHOWN) for row in ids]
    blocks.append(foot(result))
    return Document(f"transactions: {', '.join(result['captures'])}", blocks)


def sentence(row: Row) -> str:
    """A transactional id in a sentence."""
    ends = counts({outcome: row[outcome] for outcome in OUTCOMES if row[outcome]}).replace("_", " ")
    lasted = f"; median {duration(row['p50_ns'])}, longest {duration(row['max_ns'])}" if row["max_ns"] is not None else ""
    offsets = f"; offsets of group {words(row['group_ids'])}" if row["group_ids"] else ""
    fences = f"; {counted(row['fences'], 'request')} refused as fenced" if row["fences"] else ""
    fences += (
        f"; {counted(row['ended_again'], 'EndTxn request')} for a transaction that had ended already"
        if row["ended_again"]
        else ""
    )
    return (
        f"{row['transactional_id']}: {counted(row['transactions'], 'transaction')}{f' ({ends})' if ends else ''}"
        f"{lasted}{offsets}{fences}"
    )


def written(row: Row) -> str | None:
    """The Produce requests of a transaction that were accepted, from its first request to its end."""
    first, last = row["begin_ns"], row["end_ns"] if row["end_ns"] is not None else row["last_ns"]
    if first is None:
        return None
    mine = drill_down.every("api == Produce", "error_code == 0", drill_down.equals("transactional_id", row["transactional_id"]))
    return drill_down.every(mine, drill_down.between(first, last + 1000))


def refused(row: Row) -> str:
    """The requests of a transactional id that were refused with an error."""
    named = (drill_down.equals(name, row[name]) for name in ("transactional_id", "client_id", "api", "error"))
    return drill_down.every(*named)


TRANSACTIONS: Final = (
    TextColumn("begin", lambda row: time_of_day(row["begin_ns"]), right=False, whole=True),
    TextColumn("transactional id", lambda row: words(row["transactional_id"]), right=False),
    TextColumn("client", lambda row: words(row["client_id"]), right=False, rank=2),
    TextColumn("epoch", lambda row: number(row["producer_epoch"]), rank=3),
    TextColumn("outcome", lambda row: (row["outcome"] or "ended").replace("_", " "), right=False, whole=True),
    TextColumn("took", lambda row: duration(row["duration_ns"])),
    TextColumn("partitions", lambda row: number(len(row["partitions"])), rank=1),
    TextColumn("records", lambda row: number(row["records"]), down=written),
    TextColumn("bytes", lambda row: size(row["bytes"]), rank=4, down=written),
)
FENCES: Final = (
    TextColumn("time", lambda row: time_of_day(row["time_ns"]), right=False, whole=True),
    TextColumn("transactional id", lambda row: words(row["transactional_id"]), right=False),
    TextColumn("client", lambda row: words(row["client_id"]), right=False),
    TextColumn("api", lambda row: row["api"], right=False),
    TextColumn("error", lambda row: row["error"], right=False, down=refused),
    TextColumn("because", lambda row: AGAIN if row["ended_again"] else "", right=False, rank=1),
)
PRODUCERS: Final = (
    TextColumn("time", lambda row: time_of_day(row["time_ns"]), right=False, whole=True),
    TextColumn("client", lambda row: words(row["client_id"]), right=False),
    TextColumn("producer id", lambda row: number(row["producer_id"])),
    TextColumn("epoch", lambda row: number(row["producer_epoch"])),
)
