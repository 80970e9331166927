"""Rebalances of classic groups that still wait when the capture ends.

In: exchanges. Out: findings of the rule `rebalance-slow`. Law: a coordinator that leaves other requests without a response
says nothing about the members of its groups; a member that the capture does not show is not named.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kcap.limits import SILENCES_MOST
from kcap.reports.findings.model import Finding, Found, named, seconds, where
from kcap.reports.findings.observed import SERVER, Observed, Row, clients_in, in_groups, rows_by
from kcap.reports.findings.served import PROMPT
from kcap.reports.text import count as counted

JOINS: Final = ("JoinGroup", "SyncGroup")
"""Requests whose responses wait for other members (KIP-62)."""
LIVING: Final = (*JOINS, "Heartbeat", "OffsetCommit", "LeaveGroup")
"""Requests by which a member of a classic group shows itself."""
UNSEEN: Final = 0.7
"""How sure it is that members are late where the capture shows none that is, or no response of the coordinator meanwhile."""
DUE_NS: Final = 1_000_000_000
"""A request that waits as long for a response that is sent at once shows that the coordinator is what waits."""


def pending(seen: Observed) -> dict[str, list[Row]]:
    """Group -> its members that wait for a response to JoinGroup or SyncGroup when the capture ends: client_id, member_id,
    first_ns, waited_ns, until_ns; heard_ns is when their coordinator sent its last response, and `due` how many requests wait
    that it answers at once.
    """
    table, every = seen.exchanges, seen.every
    waits = table.filter(
        table.api.isin(list(JOINS)), table.reason == "capture_end", table.group_id.notnull(), table.age_ns.notnull()
    )
    responses = every.filter(every.response_first_ns.notnull()).semi_join(waits, SERVER)
    heard = responses.group_by(*SERVER).aggregate(heard_ns=responses.response_first_ns.max())
    open_ = every.filter(every.reason == "capture_end", every.api.isin(sorted(PROMPT)), every.age_ns >= DUE_NS)
    due = open_.group_by(*SERVER).aggregate(due=open_.count())
    waits = in_groups(
        waits, ("group_id", "client_id", "member_id", *SERVER), waited_ns=waits.age_ns.max(),
        until_ns=(waits.request_last_ns + waits.age_ns).max(), joining=waits.count(where=waits.api == "JoinGroup"),
    )  # fmt: skip
    order = ("first_ns", "group_id", "member_id", "client_id")
    known = waits.inner_join(heard, list(SERVER)).left_join(due, list(SERVER))
    known = known.select(*order, *SERVER, "n", "last_ns", "waited_ns", "until_ns", "joining", "heard_ns", "due")
    rows = seen.first(known, order, SILENCES_MOST, "members_that_wait")
    return rows_by(rows, "group_id")


def unfinished_rebalances(seen: Observed, least: int) -> Found:
    """Findings of the groups of which a member has waited `least` ns, and whose coordinator responded to others until then, or
    owes no response to anyone else."""
    waiting = {
        group: rows for group, rows in pending(seen).items()
        if any(row["waited_ns"] >= least and (heard_for(row) >= least or not row["due"]) for row in rows)
    }  # fmt: skip
    absent = absent_members(seen, waiting) if waiting else {}
    for group, rows in waiting.items():
        late, clients, first = absent.get(group, []), clients_in(rows), min(row["first_ns"] for row in rows)
        longest, until = max(row["waited_ns"] for row in rows), max(row["until_ns"] for row in rows)
        knew, names = sum(row["beats"] > 0 for row in late), clients_in(late)
        those = f"; it waits for {counted(len(late), 'member')} ({named(names)}) that "
        if not late:
            those = "; the capture does not show for which member"
        elif knew == len(late):
            those += "knew of it and did not join"
        else:
            those += f"did not join, and sent nothing for {seconds(quiet(late, until))}" if not knew else "did not join"
        api = "JoinGroup" if any(row["joining"] for row in rows) else "SyncGroup"
        yield Finding(
            f"a rebalance of group {group} was not done when the capture ended: {counted(len(rows), 'member')} "
            f"({named(clients)}) had waited for the response to {api} for up to {seconds(longest)}{those}",
            {"group_id": group, "client_ids": names or clients}, len(rows),
            where(f"api in {{{', '.join(JOINS)}}}", "reason == capture_end", group_id=group), first, until,
            sum(row["waited_ns"] for row in rows),
            {"waiting": len(rows), "late": len(late), "heartbeats": sum(row["beats"] for row in late), "longest_ns": longest},
            None if late or len(rows) > 1 else "low",
            None if late and any(heard_for(row) >= least for row in rows) else UNSEEN,
        )  # fmt: skip


def heard_for(row: Row) -> int:
    """For how long the coordinator responded to others while this member waited, ns."""
    heard: int = row["heard_ns"] - row["first_ns"]
    return heard


def quiet(late: Sequence[Row], until: int) -> int:
    """For how long all of these members have sent nothing, ns."""
    latest: int = max(row["last_ns"] for row in late)
    return until - latest


def absent_members(seen: Observed, waiting: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
    """Group -> the members that neither wait with the others nor left: client_id, member_id, last_ns, beats (Heartbeats that
    got REBALANCE_IN_PROGRESS)."""
    table = seen.exchanges
    mine = table.filter(
        table.api.isin(list(LIVING)), table.group_id.notnull(), (table.member_id != "").fill_null(False)
    )  # fmt: skip
    groups: Any = table.filter(table.api.isin(list(JOINS)), table.reason == "capture_end")
    mine = mine.semi_join(groups, "group_id")
    members = in_groups(
        mine, ("group_id", "member_id"), client_id=mine.client_id.min(), left=mine.count(where=mine.api == "LeaveGroup"),
        beats=mine.count(where=(mine.api == "Heartbeat") & (mine.error == "REBALANCE_IN_PROGRESS")),
        joined=mine.count(where=mine.generation > 0), gone=mine.count(where=mine.error == "UNKNOWN_MEMBER_ID"),
    )  # fmt: skip
    members = members.filter(members.left == 0, members.gone == 0, members.joined > 0)
    found: dict[str, list[Row]] = {}
    for row in seen.first(members, ("first_ns", "group_id", "member_id"), SILENCES_MOST, "members_of_waiting_groups"):
        there = {one["member_id"] for one in waiting.get(row["group_id"], ())}
        if row["group_id"] in waiting and row["member_id"] not in there:
            found.setdefault(row["group_id"], []).append(row)
    return found
