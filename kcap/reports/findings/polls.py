"""Polls that end early: connections that are closed equally long after a Fetch each time, while it waits for records.

In: exchanges. Out: findings of `long-poll-misconfigured`. Law: a timeout has a fixed length; what ends at once has another
cause.
"""

from collections.abc import Mapping
from typing import Final

from kcap.limits import EVENTS_MOST
from kcap.reports.findings.model import Finding, Found, called, connected, seconds, where
from kcap.reports.findings.observed import SERVER, Observed, Row, rows_by, server_of, times_of
from kcap.reports.findings.served import waits_for_records
from kcap.reports.text import count as counted

MS: Final = 1_000_000
LATER, LATER_NS = 1.03, 500_000
"""How much later than the soonest of them time-outs of one length end."""
CUT: Final = (
    "Something closes connections that carry no byte for that time, such as a proxy, a load balancer or a firewall with an "
    "idle timeout, or the broker (connections.max.idle.ms). Raise that timeout above fetch.max.wait.ms, or lower "
    "fetch.max.wait.ms below it: each Fetch that finds no record costs a connection."
)
"""Advice where a Fetch is cut while it waits."""


def cut_while_waiting(seen: Observed, limit: Mapping[str, float]) -> Found:
    """The clients whose connections the other side closes, each time equally long after a Fetch, before its longest wait is
    over."""
    table = seen.exchanges
    chosen = table.filter(waits_for_records(table), table.connection.isin(seen.closed_by_server))
    chosen = chosen.select("connection", "client_id", *SERVER, after_ns="age_ns", wait_ns=chosen.max_wait_ms.cast("int64") * MS,
                           first_ns="request_first_ns", last_ns="request_last_ns")  # fmt: skip
    found = seen.first(chosen, ("first_ns", "client_id", "connection"), EVENTS_MOST, "polls_cut")
    for client, rows in rows_by(found, "client_id").items():
        same = alike(rows)
        first, last = times_of(rows)
        after, wait = same[len(same) // 2]["after_ns"], max(row["wait_ns"] for row in rows)
        if len(rows) < limit["timeouts"] or len(same) < limit["held"] or last - first < after:
            continue
        servers = sorted({server_of(row) for row in rows})
        one = servers[0] if len(servers) == 1 else None
        yield Finding(
            f"{one or counted(len(servers), 'server')} closed {counted(len(rows), 'connection')} of {called(client)} after a "
            f"Fetch request, which lets the broker wait up to {seconds(wait)} for records; {len(same)} of them "
            f"{seconds(after)} after it",
            {"client_id": client, "server": one}, len(rows),
            where("api == Fetch", "outcome == unanswered", connected(rows), client_id=client), first, last,
            sum(row["after_ns"] for row in rows), {"closed": len(rows), "alike": len(same), "closed_after_ns": after,
            "may_wait_ns": wait}, "medium", 0.7, CUT,
        )  # fmt: skip


def alike(rows: list[Row]) -> list[Row]:
    """Most of these rows, those closed equally long after their request, in the order of that time."""
    rows = sorted(rows, key=lambda row: row["after_ns"])
    best, end = (0, 0), 0
    for begin, row in enumerate(rows):
        while end < len(rows) and rows[end]["after_ns"] <= row["after_ns"] * LATER + LATER_NS:
            end += 1
        best = max(best, (end - begin, -begin))
    return rows[-best[1] : best[0] - best[1]]
