"""How often clients learn that the coordinator of their group has moved.

In: NOT_COORDINATOR responses. Out: a number for each group. Law: errors of one client less than a second apart are of one move.
"""

from kcap.reports.findings.observed import Observed

SECOND_NS = 1_000_000_000
"""Errors of a client that are closer together than this are of one move."""


def most_often_refused(seen: Observed) -> dict[str, int]:
    """Group -> how often one of its clients got NOT_COORDINATOR, at most, a second and more behind the last time."""
    table = seen.exchanges.filter(seen.exchanges.error == "NOT_COORDINATOR", seen.exchanges.group_id.notnull())
    at = table.request_first_ns
    last = at.lag().over(group_by=["group_id", "client_id"], order_by=[at, table.connection, table.exchange])
    table = table.mutate(anew=(at - last >= SECOND_NS).fill_null(True))
    each = table.group_by("group_id", "client_id").aggregate(times=table.anew.sum())
    return {row["group_id"]: row["times"] for row in seen.run(each.group_by("group_id").aggregate(times=each.times.max()))}
