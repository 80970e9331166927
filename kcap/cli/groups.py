"""`kcap groups`: consumer groups over time."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import click

from kcap.cli.options import FormatName, analyzer_options, inputs, paths_of
from kcap.cli.places import Writes
from kcap.cli.report_formats import Document, Section, Sentences
from kcap.cli.report_output import FORMS, carried_out
from kcap.cli.report_views import foot
from kcap.cli.timelines import of_groups
from kcap.output.grid import duration
from kcap.reports import drill_down
from kcap.reports.findings.observed import HEARTBEATS
from kcap.reports.groups.events import CONSUMER
from kcap.reports.text import TextColumn, assigned, count, number, time_of_day, words

Row = dict[str, Any]
SHOWN: Final = 40
"""Number of rows that text shows of a group's tables."""


@partial(inputs, tables=True)
@click.command("groups", short_help="Show consumer groups: members, rebalances, commits.")
@click.option("--group", metavar="ID", multiple=True, help="Show only this group. May repeat.")
@click.option("--format", "form", type=FormatName(FORMS), help="Output format. Default: text, or by the suffix of -o.")
@click.option("-o", "--output", metavar="FILE", type=Writes(), help="Write to FILE, which appears when it is complete.")
def run(
    files: tuple[str, ...], group: tuple[str, ...], form: str | None, output: str | None,
) -> int:  # fmt: skip
    """Show consumer groups: members and their assignments, rebalances with their cause and the member they waited for, commits.

    FILEs are captures, or a folder of saved tables (exchanges, partitions, connections, brokers). Saved tables have no message
    bodies, so they lack assignments and reasons.
    """
    from kcap.runtime import for_tables

    for_tables()
    from kcap.reports.groups.report import groups
    from kcap.reports.source import ReportInput

    given = ReportInput(paths_of(files), analyzer_options())
    return carried_out([given], lambda: groups(given, group), form, output, partial(document, wanted=group), of_groups)[1]


def document(result: Row, wanted: Sequence[str] = ()) -> Document:
    """A part for each group: a sentence, its timeline, its members. `wanted`: the groups to which the report was limited."""
    none = f"no consumer group is called {' or '.join(map(repr, wanted))}; without --group all are listed"
    blocks: list[Any] = [Sentences([none if wanted and not result["rows"] else verdict(result["rows"])], tone="bold")]
    blocks.append(Section(result["rows"], GROUPS, most=SHOWN))
    for row in result["rows"]:
        blocks.append(Sentences([sentence(row)], title=f"group {row['group_id']}", tone="bold"))
        blocks.append(Section(row["rebalances"], rebalances_of(row["group_id"]), title="rebalances", most=SHOWN))
        blocks.append(Section(row["fences"], FENCES, title="fenced static members", most=SHOWN))
        blocks.append(Section(row["members"], MEMBERS, title="members", most=SHOWN))
    blocks.append(foot(result))
    return Document(f"groups: {', '.join(result['captures'])}", blocks)


def verdict(rows: list[Row]) -> str:
    """What the first group lost, which is the one with the most expensive rebalances, and how many commits of all groups
    failed."""
    if not rows:
        return "no consumer group was found"
    worst, many = rows[0], len(rows) > 1
    lost = f", {duration(worst['lost_ns'])} of members' time{'' if many else ' lost'}" if worst["lost_ns"] else ""
    most = (
        f"{worst['group_id']} {'lost most ' if many and lost else ''}with {count(len(worst['rebalances']), 'rebalance')}{lost}"
    )
    done, failed = [row["commits"] for row in rows if row["commits"] is not None], sum(row["commit_errors"] for row in rows)
    commits = f"; {failed:,} of {count(sum(done), 'commit')} failed" if sum(done) else "; no commits" if done else ""
    kind = "group" if {row["protocol"] for row in rows} & {"share", "streams"} else "consumer group"
    return f"{count(len(rows), kind)}: {most}{commits}."


def sentence(row: Row) -> str:
    """A group in a sentence: protocol, coordinator, members, rebalances with their causes, commits, lag."""
    rebalances = row["rebalances"]
    causes: dict[str, int] = {}
    for one in rebalances:
        causes[one["cause"]] = causes.get(one["cause"], 0) + 1
    why = f" ({', '.join(f'{times} {cause}' for cause, times in causes.items())})" if causes else ""
    lost = f", {duration(row['lost_ns'])} of members' time lost" if row["lost_ns"] else ""
    failed = f", {row['commit_errors']:,} failed" if row["commit_errors"] else ""
    behind = f", {count(row['lag_last'], 'record')} behind when last fetched" if row["lag_last"] is not None else ""
    of = row["protocol_type"] if row["protocol_type"] != CONSUMER else None
    kind = f"{row['protocol']} protocol{f' of type {of}' if of else ''}, " if row["protocol"] else ""
    commits = f", {count(row['commits'], 'commit')}{failed}" if row["commits"] is not None else ""
    return (
        f"{kind}coordinator {row['coordinator']}, {count(len(row['members']), 'member')}, "
        f"{count(len(rebalances), 'rebalance')}{why}{lost}{commits}{behind}"
    )


def assignments(row: Row) -> str:
    """Assignments of a member in order of time."""
    found = row["assignments"]
    if not found:
        return ""
    shown = found if len(found) <= 3 else [found[0], found[-1]]
    rest = [] if len(found) <= 3 else [f"and {len(found) - 2} more"]
    return " | ".join([*(f"{time_of_day(one['time_ns'])} {assigned(one)}" for one in shown), *rest])


def rebalance(group: str, row: Row) -> str | None:
    """The requests of a rebalance: those that join, leave or get an assignment, from its first byte to its last."""
    first, last = row["first_ns"], row["last_ns"]
    if first is None or last is None:
        return None
    mine = drill_down.every(drill_down.equals("group_id", group), f"api in {{{', '.join((*CLASSIC, *HEARTBEATS))}}}")
    return drill_down.every(mine, drill_down.between(first, last + 1000))


def rebalances_of(group: str) -> tuple[TextColumn, ...]:
    """The columns of a group's rebalances, whose durations link to their requests."""
    down = partial(rebalance, group)
    return tuple(replace(column, down=down) if column.head == "took" else column for column in REBALANCES)


def commits(row: Row, *conditions: str) -> str:
    return drill_down.every(drill_down.equals("group_id", row["group_id"]), f"api in {{{', '.join(COMMITS)}}}", *conditions)


CLASSIC: Final = ("JoinGroup", "SyncGroup", "LeaveGroup")
"""APIs by which members of the classic protocol rebalance."""
COMMITS: Final = ("OffsetCommit", "TxnOffsetCommit")
GROUPS: Final = (
    TextColumn("group", lambda row: words(row["group_id"]), right=False, whole=True),
    TextColumn("protocol", lambda row: words(row["protocol"]), right=False, rank=2),
    TextColumn("coordinator", lambda row: words(row["coordinator"]), right=False, rank=3),
    TextColumn("members", lambda row: number(len(row["members"]))),
    TextColumn("rebalances", lambda row: number(len(row["rebalances"]))),
    TextColumn("lost", lambda row: duration(row["lost_ns"]) if row["lost_ns"] else "", rank=1),
    TextColumn("commits", lambda row: number(row["commits"]), down=commits),
    TextColumn("failed", lambda row: number(row["commit_errors"] or None), down=lambda row: commits(row, drill_down.FAILED)),
    TextColumn("fetch lag", lambda row: number(row["lag_last"]), rank=4),
)
REBALANCES: Final = (
    TextColumn("time", lambda row: time_of_day(row["first_ns"]), right=False, whole=True),
    TextColumn("generation", lambda row: number(row["generation"]), rank=1),
    TextColumn("cause", lambda row: row["cause"], right=False, whole=True),
    TextColumn("who", lambda row: words(row["who"]), right=False),
    TextColumn("took", lambda row: duration(row["duration_ns"])),
    TextColumn("lost", lambda row: duration(row["lost_ns"]) if row["lost_ns"] else ""),
    TextColumn("waited for", lambda row: row["waited_for"] or "", right=False, rank=2),
    TextColumn("reason", lambda row: words(row["reason"]), right=False, rank=3),
)
FENCES: Final = (
    TextColumn("time", lambda row: time_of_day(row["time_ns"]), right=False, whole=True),
    TextColumn("instance", lambda row: words(row["instance_id"]), right=False),
    TextColumn("client", lambda row: words(row["client_id"]), right=False),
)
MEMBERS: Final = (
    TextColumn("client", lambda row: words(row["client_id"]), right=False),
    TextColumn("address", lambda row: words(row["client_ip"]), right=False, rank=2),
    TextColumn("instance", lambda row: words(row["instance_id"]), right=False, rank=3),
    TextColumn("from", lambda row: time_of_day(row["first_ns"]), right=False, whole=True),
    TextColumn("to", lambda row: time_of_day(row["last_ns"]), right=False, whole=True),
    TextColumn("assigned", assignments, right=False),
)
