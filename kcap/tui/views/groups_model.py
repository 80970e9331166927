"""Shows consumer groups as sheets: groups, rebalances, members. Free of widgets.

In: the result of the report `groups`. Out: sheets. Law: each row leads to the exchanges of its group, or of its client in it.
"""

from collections import Counter
from typing import Final

from kcap.output.grid import counts
from kcap.reports import drill_down
from kcap.reports.common_columns import bold, clocked, counted, lasting, named
from kcap.reports.definition import Row
from kcap.reports.text import TextColumn, assigned, clock, number, words
from kcap.tui.views.sheet import Line, Sheet, paragraph
from kcap.tui.views.spans import Span, timeline

ASSIGNMENTS: Final = 40
"""Maximum number of a member's assignments in its details."""


def sheets(result: Row) -> list[Sheet]:
    rows = result["rows"]
    rebalances = [{"group_id": row["group_id"]} | one for row in rows for one in row["rebalances"]]
    members = [{"group_id": row["group_id"]} | one for row in rows for one in row["members"]]
    return [groups(rows), rebalanced(rebalances), member(members)]


def group(row: Row) -> str:
    """Exchanges of a group."""
    return drill_down.equals("group_id", row["group_id"])


def groups(rows: list[Row]) -> Sheet:
    """One line per group."""
    fields = [
        named("group_id", "group", tone=bold), named("protocol", rank=5), named("coordinator", rank=4),
        TextColumn("members", lambda row: number(len(row["members"])), rank=2, key=lambda row: len(row["members"])),
        TextColumn("rebalances", lambda row: number(len(row["rebalances"])), key=lambda row: len(row["rebalances"])),
        TextColumn("causes", causes, right=False, rank=1), lasting("lost_ns", "lost", 3), counted("commits", rank=6),
        counted("commit_errors", "failed commits", 7, zero=False, tone=lambda _row: "bad"), counted("lag_last", "lag", 8),
    ]  # fmt: skip
    return Sheet("groups", fields, rows, group, "no consumer groups", detail=detail)


def causes(row: Row) -> str:
    """The causes of a group's rebalances, with their counts."""
    return counts(Counter(one["cause"] for one in row["rebalances"]))


def detail(row: Row, width: int) -> list[Line]:
    """A group over time: its members, and its rebalances across them."""
    marks = [
        Span(one["first_ns"], one["last_ns"] or one["first_ns"], "bad", "┃")
        for one in row["rebalances"] if one["first_ns"] is not None
    ]  # fmt: skip
    lines = [
        (words(one["client_id"] or one["member_id"]), [Span(one["first_ns"], one["last_ns"])])
        for one in row["members"] if one["first_ns"] is not None
    ]  # fmt: skip
    out: list[Line] = [[("members", "bold")], *timeline([*lines, ("rebalances", marks)], width)]
    for one in row["fences"]:
        fenced = f"static member {one['instance_id']} of client {words(one['client_id'])} was fenced"
        out += paragraph(f"{clock(one['time_ns'])} {fenced}", width, "bad")
    return out


def rebalanced(rows: list[Row]) -> Sheet:
    """One line per rebalance."""

    def during(row: Row) -> str:
        if row["first_ns"] is None:
            return group(row)
        return drill_down.every(group(row), drill_down.between(row["first_ns"], (row["last_ns"] or row["first_ns"]) + 1000))

    fields = [
        clocked("first_ns", "time"),
        named("group_id", "group", tone=bold), counted("generation", rank=4),
        TextColumn("cause", lambda row: words(row["cause"]), right=False, whole=True), named("who", "who", 1),
        lasting("duration_ns", "took"), lasting("lost_ns", "lost", 3), named("waited_for", "waited for", 2),
        named("reason", rank=5),
    ]  # fmt: skip
    return Sheet("rebalances", fields, rows, during, "no rebalances")


def member(rows: list[Row]) -> Sheet:
    """One line per member."""

    def mine(row: Row) -> str:
        return drill_down.every(group(row), drill_down.equals("client_id", row["client_id"]))

    fields = [
        named("client_id", "client", tone=bold), named("group_id", "group", 1), named("client_ip", "address", 3),
        named("instance_id", "instance", 5),
        clocked("first_ns", "from"),
        clocked("last_ns", "to"),
        TextColumn("assigned last", lambda row: assigned(row["assignments"][-1]) if row["assignments"] else "",
                   right=False, rank=2),
        named("member_id", "member id", 6),
    ]  # fmt: skip
    return Sheet("members", fields, rows, mine, "no members", detail=assignments)


def assignments(row: Row, width: int) -> list[Line]:
    """Assignments of a member in order of time."""
    out: list[Line] = [[(f"member {words(row['member_id'])}"[:width], "bold")]]
    for one in row["assignments"][:ASSIGNMENTS]:
        text = f"{clock(one['time_ns'])} generation {one['generation']}: {assigned(one)}"
        out += paragraph(text, width, indent="  ")
    rest = len(row["assignments"]) - ASSIGNMENTS
    return [*out, *([[(f"and {rest:,} more", "dim")]] if rest > 0 else []), [("", "")]]
