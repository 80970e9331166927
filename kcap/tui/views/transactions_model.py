"""Shows transactions as sheets: transactions, transactional ids, fences. Free of widgets.

In: the result of the report `transactions`. Out: sheets. Law: a transaction leads to the exchanges of its transactional id
during its time.
"""

from typing import Final

from kcap.reports import drill_down
from kcap.reports.common_columns import bold, clocked, counted, lasting, named, sized
from kcap.reports.definition import Row
from kcap.reports.text import TextColumn, number, words
from kcap.tui.views.sheet import Line, Sheet, paragraph
from kcap.tui.views.spans import Span, timeline

TONES: Final = {
    "committed": "good", "aborted": "care", "fenced": "bad", "timed_out": "bad", "open": "bad",
}  # fmt: skip
"""Outcome -> its tone."""
OUTCOMES: Final = tuple(TONES)


def sheets(result: Row) -> list[Sheet]:
    return [transactions(result["rows"]), ids(result["transactional_ids"], result["rows"]), fences(result["fences"])]


def named_id(row: Row) -> str:
    """Exchanges of a transactional id."""
    return drill_down.equals("transactional_id", row["transactional_id"])


def span(row: Row) -> Span | None:
    """The time span of a transaction, as far as the capture has it."""
    first = row["begin_ns"] if row["begin_ns"] is not None else row["end_ns"]
    if first is None:
        return None
    last = row["end_ns"] if row["end_ns"] is not None else first + (row["duration_ns"] or 0)
    return Span(first, max(first, last), TONES.get(row["outcome"], "one"))


def during(row: Row) -> str:
    """Exchanges of a transaction: of its id, between its beginning and its end."""
    found = span(row)
    return drill_down.every(
        named_id(row), drill_down.between(found.first_ns, found.last_ns + 1000) if found is not None else None
    )  # fmt: skip


def outcome(row: Row) -> str:
    """How a transaction ended, in words."""
    return (row["outcome"] or "ended").replace("_", " ")


def transactions(rows: list[Row]) -> Sheet:
    """One line per transaction."""
    fields = [
        clocked("begin_ns", "begin"),
        named("transactional_id", "transactional id", tone=bold), named("client_id", "client", 2),
        TextColumn("outcome", outcome, right=False, whole=True, tone=lambda row: TONES.get(row["outcome"], "")),
        lasting("duration_ns", "took"), counted("records"), sized("bytes", "bytes", 4),
        TextColumn("partitions", lambda row: number(len(row["partitions"])), rank=1, key=lambda row: len(row["partitions"])),
        named("producer_id", "producer id", 5, right=True), named("producer_epoch", "epoch", 3, right=True),
        named("group_id", "group", 6), named("coordinator", rank=7),
    ]  # fmt: skip
    return Sheet("transactions", fields, rows, during, "no transactions", detail=detail)


def detail(row: Row, width: int) -> list[Line]:
    """A transaction in full."""
    out: list[Line] = [[(f"{words(row['transactional_id'])}: {outcome(row)}"[:width], "bold")]]
    for text in (
        f"producer {words(row['producer_id'])}, epoch {words(row['producer_epoch'])}",
        f"coordinator {words(row['coordinator'])}" if row["coordinator"] else "",
        f"offsets of group {words(row['group_id'])}" if row["group_id"] else "",
        f"partitions: {', '.join(row['partitions'])}" if row["partitions"] else "",
    ):
        out += paragraph(text, width, indent="  ")
    return [*out, [("", "")]]


def ids(rows: list[Row], every: list[Row]) -> Sheet:
    """One line per transactional id; its details are its transactions over time, colored by their outcome."""

    def course(row: Row, width: int) -> list[Line]:
        mine = [one for one in every if one["transactional_id"] == row["transactional_id"]]
        spans = [found for one in mine if (found := span(one)) is not None]
        return [[("transactions over time", "bold")], *timeline([(words(row["transactional_id"]), spans)], width)]

    fields = [
        named("transactional_id", "transactional id", tone=bold), counted("transactions"),
        *(counted(name, name.replace("_", " "), at, zero=False, tone=lambda _row, name=name: TONES[name])
          for at, name in enumerate(OUTCOMES)),
        lasting("p50_ns", "median", 6), lasting("max_ns", "longest", 5), counted("fences", "refused as fenced", 7, zero=False),
    ]  # fmt: skip
    return Sheet("transactional ids", fields, rows, named_id, "no transactional ids", detail=course)


def fences(rows: list[Row]) -> Sheet:
    """One line per request that was refused because its epoch is not the latest."""

    def around(row: Row) -> str:
        return drill_down.every(named_id(row), drill_down.equals("error", row["error"]))

    fields = [
        clocked("time_ns", "time"),
        named("transactional_id", "transactional id", tone=bold), named("client_id", "client", 1), named("api"),
        TextColumn("error", lambda row: words(row["error"]), right=False, whole=True,
                   tone=lambda row: "" if row["ended_again"] else "bad"),
        TextColumn("ended before", lambda row: "yes" if row["ended_again"] else "", right=False, rank=2),
    ]  # fmt: skip
    return Sheet("fences", fields, rows, around, "no producers were fenced")
