"""The report `groups`: each group with its members, rebalances, commits and coordinator.

In: captures or saved tables. Out: the report as plain values, which is its JSON form. Law: groups are in the order of the time
that their rebalances cost.
"""

from collections.abc import Sequence
from operator import itemgetter

from kcap.reports.findings.columns import GROUP_TABLES
from kcap.reports.findings.observed import HEARTBEATS, Observed, Row, rows_by
from kcap.reports.findings.source import observed
from kcap.reports.groups.events import Event, events
from kcap.reports.groups.timeline import fences_of, members_of, protocol_of, rebalances_of
from kcap.reports.names import shortened
from kcap.reports.source import ReportInput

COMMITS = ("OffsetCommit", "TxnOffsetCommit")
JOINED = ("JoinGroup", "SyncGroup", "Heartbeat")
"""APIs that only members of classic groups send. LeaveGroup is not among them: others may send it for a member."""


def groups(given: ReportInput, only: Sequence[str] = ()) -> Row:
    """Runs the report, for the groups in `only` if any are named.

    Raises UsageError for missing tables, CaptureError if nothing can be read.
    """
    with observed(given, GROUP_TABLES) as seen:
        return report(seen, given.captures, only)


def report(seen: Observed, captures: Sequence[str], only: Sequence[str] = ()) -> Row:
    """The report over tables of any engine."""
    named = {shortened(name) for name in only}
    rows = [row | where for where, one in seen.each_cluster() for row in rows_of(one) if not only or row["group_id"] in named]
    rows.sort(key=lambda row: (-row["lost_ns"], -len(row["rebalances"]), row["group_id"]))
    return {"report": "groups", "captures": list(captures), "rows": rows, "left_out": seen.left_out}


def rows_of(seen: Observed) -> list[Row]:
    """One row per group, in no particular order."""
    found, committed, present = events(seen), commits(seen), members_seen(seen)
    names = dict.fromkeys([*found, *committed, *present])
    rows = [row_of(name, found.get(name, []), committed.get(name), present.get(name, [])) for name in names]
    by_client = lags(seen)
    for row in rows:
        mine = {member["client_id"] for member in row["members"]}
        row["lag_last"] = lag([by_client[client] for client in mine if client in by_client])
    return rows


def row_of(name: str, mine: list[Event], committed: Row | None, present: list[Row]) -> Row:
    """A group as a row of the report; the caller adds `lag_last`."""
    rebalances, members = rebalances_of(mine), members_of(mine)
    known = {member["member_id"]: member for member in members}
    for one in present:
        member = known.get(one["member_id"])
        if member is not None:
            member["first_ns"] = min(member["first_ns"], one["first_ns"] or member["first_ns"])
            member["last_ns"] = max(member["last_ns"], one["last_ns"] or 0)
        elif one["first_ns"] is not None:
            members.append({
                "member_id": one["member_id"], "instance_id": None,
                "client_id": one["client_id"], "client_ip": one["client_ip"],
                "first_ns": one["first_ns"], "last_ns": one["last_ns"] or one["first_ns"], "assignments": [],
            })  # fmt: skip
    members.sort(key=itemgetter("first_ns"))
    done = committed or {"n": 0, "failed": 0, "server": None}
    places = list(dict.fromkeys(event.coordinator for event in mine))
    apis = {one["api"] for one in present} - {None}
    protocol = protocol_of(mine) if mine else HEARTBEATS.get(max(apis), "classic") if apis else None
    return {
        "group_id": name, "protocol": protocol,
        "protocol_type": next((event.protocol_type for event in reversed(mine) if event.protocol_type), None),
        "coordinator": places[-1] if places else done["server"] or next((one["server"] for one in present), None),
        "coordinators": places, "members": members, "rebalances": rebalances, "fences": fences_of(mine),
        "commits": None if protocol == "share" else done["n"],  # members of share groups acknowledge records instead
        "commit_errors": done["failed"], "lag_last": None, "lost_ns": sum(row["lost_ns"] for row in rebalances),
    }  # fmt: skip


def commits(seen: Observed) -> dict[str, Row]:
    """Group -> number of commits, number of failed ones, the server."""
    table = seen.exchanges
    chosen = table.filter(table.group_id.notnull(), table.api.isin(list(COMMITS)))
    server = chosen.server_ip + ":" + chosen.server_port.cast("string")
    rows = seen.run(
        chosen.group_by("group_id").aggregate(
            n=chosen.count(), failed=(chosen.error != "NONE").fill_null(False).cast("int64").sum(), server=server.max()
        )
    )
    return {row["group_id"]: row for row in rows}


def members_seen(seen: Observed) -> dict[str, list[Row]]:
    """Group -> its members by their requests, including requests that change nothing: members of a stable group may send no
    others.

    `first_ns`, `client_id` and `client_ip` are from requests that a member sends itself, and null if there are none:
    TxnOffsetCommit names a member but comes from a producer, LeaveGroup may come from an admin client. `api` is an API of
    membership, else null.
    """
    table = seen.exchanges
    chosen = table.filter(table.group_id.notnull(), table.member_id.notnull(), table.member_id != "")
    belongs = chosen.api.isin([*JOINED, *HEARTBEATS])
    own = belongs | (chosen.api == "OffsetCommit")
    sent = chosen.request_first_ns
    rows = seen.run(
        chosen.group_by("group_id", "member_id").aggregate(
            first_ns=sent.min(where=own), client_id=chosen.client_id.argmin(sent, where=own),
            client_ip=chosen.client_ip.argmin(sent, where=own), api=chosen.api.argmax(sent, where=belongs),
            last_ns=chosen.response_last_ns.fill_null(chosen.request_last_ns).max(),
            server=(chosen.server_ip + ":" + chosen.server_port.cast("string")).max(),
        )
    )  # fmt: skip
    return {group: sorted(some, key=itemgetter("member_id")) for group, some in rows_by(rows, "group_id").items()}


class Lags:
    """The lags that a client's Fetch responses report."""

    def __init__(self) -> None:
        self.last: dict[tuple[str, int], tuple[int, int]] = {}
        """Partition -> time of the last Fetch that reports a lag, and the lag in records."""
        self.whole = 0
        """Sum of the lags."""


def lags(seen: Observed) -> dict[str, Lags]:
    """Client -> its lags."""
    table = seen.exchanges
    fetches = table.filter(table.api == "Fetch", table.client_id.notnull())
    fetches = fetches.select("connection", "exchange", "client_id", "request_first_ns")
    parts = seen.partitions.select("connection", "exchange", "topic", "partition", "lag")
    chosen = parts.filter(parts.lag.notnull()).inner_join(fetches, ["connection", "exchange"])
    rows = seen.run(
        chosen.group_by("client_id", "topic", "partition").aggregate(
            lag=chosen.lag.argmax(chosen.request_first_ns), at_ns=chosen.request_first_ns.max()
        )
    )
    out: dict[str, Lags] = {}
    for row in rows:
        mine = out.setdefault(row["client_id"], Lags())
        mine.last[row["topic"], row["partition"]] = row["at_ns"] or 0, row["lag"] or 0
        mine.whole += row["lag"] or 0
    return out


def lag(some: Sequence[Lags]) -> int | None:
    """The lags of the last Fetch of each partition by these clients, summed; None if none reports a lag.

    A client with many partitions may be in many groups, so its sum is computed only once.
    """
    if not some:
        return None
    *few, most = sorted(some, key=lambda one: len(one.last))
    last: dict[tuple[str, int], tuple[int, int]] = {}
    for one in few:
        for partition, seen_last in one.last.items():
            last[partition] = max(seen_last, last.get(partition, most.last.get(partition, seen_last)))
    return most.whole + sum(value - most.last.get(partition, (0, 0))[1] for partition, (_, value) in last.items())
