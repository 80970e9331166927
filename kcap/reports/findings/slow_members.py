"""Members of groups whose programs work for too long between polls, and what follows from that for their groups.

In: exchanges of group members. Out: members that leave and come back, and members that a rebalance waits for. Law: one cause is
one finding: of a group that rebalances again and again it is `rebalance-loop`, which names the member; of others it is
`poll-stall` or `rebalance-slow`. What follows for the member's commits is low.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kcap.reports.findings.model import RULES, called, named, seconds
from kcap.reports.findings.observed import HEARTBEATS, Observed, Row, clients_in, in_groups, rows_by
from kcap.reports.text import count as counted


def returns(seen: Observed) -> list[Row]:
    """Clients that leave a group and join it again on the same connection, by client and group: n, first_ns, last_ns, away_ns,
    and `reason` of the first LeaveGroup request (KIP-800). A member that is unknown to its group when it leaves does not count.
    """
    table = seen.exchanges
    chosen = table.filter(
        table.api.isin(["LeaveGroup", "JoinGroup"]) | (table.api.isin(list(HEARTBEATS)) & (table.generation <= 0)),
        table.group_id.notnull(),
    )
    order = {"group_by": ["connection", "group_id"], "order_by": "exchange"}
    chosen = chosen.mutate(
        then=chosen.api.lead().over(**order), then_generation=chosen.generation.lead().over(**order),
        then_ns=chosen.request_first_ns.lead().over(**order),
    )  # fmt: skip
    classic = (chosen.api == "LeaveGroup") & (chosen.then == "JoinGroup")
    newer = chosen.api.isin(list(HEARTBEATS)) & (chosen.generation < 0) & (chosen.then_generation == 0)
    away = chosen.filter((classic | newer).fill_null(False), (chosen.error != "UNKNOWN_MEMBER_ID").fill_null(True))
    rows = seen.run(
        in_groups(
            away, ("client_id", "group_id"), ("request_first_ns", "then_ns"),
            away_ns=(away.then_ns - away.request_first_ns).sum(), exchange=away.exchange.argmin(away.request_first_ns),
            connection=away.connection.argmin(away.request_first_ns),
        )
    )  # fmt: skip
    for row in seen.prepared(rows):
        row["reason"] = (seen.message(row, "request").get("members") or [{}])[0].get("reason")
    return rows


def late_members(seen: Observed, limit: Mapping[str, float]) -> tuple[list[Row], dict[str, list[Row]]]:
    """Groups with JoinGroup requests that waited for `seconds`: group_id, n, lost, longest, begin and end of the longest wait;
    and by group the members that got REBALANCE_IN_PROGRESS `heartbeats` times and more in a generation.
    """
    table = seen.exchanges.filter(seen.exchanges.group_id.notnull())
    joins = table.filter(table.api == "JoinGroup", table.error == "NONE", table.latency_ns >= int(limit["seconds"] * 1e9))
    waits = seen.run(
        in_groups(
            joins, ("group_id",), ("request_first_ns", "response_first_ns"), lost=joins.latency_ns.sum(),
            longest=joins.latency_ns.max(),
            begin=joins.request_first_ns.argmax(joins.latency_ns), end=joins.response_first_ns.argmax(joins.latency_ns),
        )
    )  # fmt: skip
    beats = table.filter(table.api == "Heartbeat", table.error == "REBALANCE_IN_PROGRESS")
    sent = ("request_first_ns", "request_first_ns")
    members = seen.run(in_groups(beats, ("group_id", "client_id", "member_id", "generation"), sent))
    return waits, rows_by((member for member in members if member["n"] >= limit["heartbeats"]), "group_id")


def waited_for(row: Row, late: Mapping[str, list[Row]]) -> list[Row]:
    """The late members of the group of a wait that heard of the rebalance in the longest of its waits."""
    return [one for one in late.get(row["group_id"], ()) if row["begin"] < one["last_ns"] and one["first_ns"] < row["end"]]


LOOP: Final = "rebalance-loop"


class Slow(NamedTuple):
    """What slow clients of a group do to it."""

    rule: str
    """The rule that looks for such clients."""
    clients: list[str]
    words: str
    """What they did, in a sentence."""
    sure: bool
    """Whether a client itself gives the time between its polls as its reason."""


def slow_members(seen: Observed) -> dict[str, Slow]:
    """Group -> its slow clients, by the limits of the rules `poll-stall` and `rebalance-slow`."""
    found: dict[str, Slow] = {}
    heard = seen.calls_of(api="Heartbeat", error="REBALANCE_IN_PROGRESS")
    waits, late = late_members(seen, RULES["rebalance-slow"].thresholds) if heard else ([], {})
    for row in waits:
        if clients := clients_in(waited_for(row, late)):
            words = f"it waited up to {seconds(row['longest'])} for {named(clients)}, which knew of it and did not join"
            found[row["group_id"]] = Slow("rebalance-slow", clients, words, sure=False)
    least = RULES["poll-stall"].thresholds["stalls"]
    for group, rows in rows_by((row for row in seen.once(returns) if row["n"] >= least), "group_id").items():
        most = max(rows, key=lambda row: row["n"])
        found[group] = Slow("poll-stall", clients_in(rows), left(most), "poll" in (most["reason"] or ""))
    return found


def left(row: Row, group: str = "") -> str:
    """What a client of `returns` did."""
    away = f"away for {seconds(row['away_ns'])} in all" + (f"; its reason: {row['reason']}" if row["reason"] else "")
    return f"{called(row['client_id'])} left{group} {counted(row['n'], 'time')} and came back, {away}"


def looping(seen: Observed) -> set[str]:
    """Groups of which `rebalance-loop` says that slow members are the cause, by its limits; none without that rule."""
    if LOOP not in seen.selected:
        return set()
    groups = {finding.who["group_id"] for finding in seen.once(RULES[LOOP].by_default) if finding.severity is None}
    return groups & seen.once(slow_members).keys()


def explained(seen: Observed, client: str | None, group: str | None) -> str | None:
    """The rule that says why a client of a group is slow."""
    slow = seen.once(slow_members).get(group or "")
    return slow.rule if slow and client in slow.clients else None
