"""Static members (KIP-345): two processes with one group.instance.id."""

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from kcap.limits import READ_ALL_MOST, READ_MOST
from kcap.reports.findings.model import Finding, Found, named, rule, where
from kcap.reports.findings.observed import Observed, Row, clients_in, in_groups, rows_by, times_of
from kcap.reports.text import count as counted

REFUSED: Final = ("FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID")
STATIC: Final = 5
"""The first version of JoinGroup that carries group.instance.id."""


@rule(
    "static-member-fenced", "high", 0.95,
    needs="responses bodies",
    looks_at="FENCED_INSTANCE_ID in responses of group APIs; UNRELEASED_INSTANCE_ID, with which a group of the consumer "
    "protocol refuses a second member; JoinGroup requests with one group.instance.id that alternate between connections",
    advice="Two processes share one group.instance.id. Give each its own, or stop the old process before the new one starts.",
    instead="a restart so quick that the old process still sent a request; with the consumer protocol, a restart after a "
    "crash, until the session timeout is over",
    sources="KIP-345, KIP-848",
    session=45, seconds=5, turns=3,
)  # fmt: skip
def static_member_fenced(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Two members that share one group.instance.id.

    If each instance is fenced once, its next process may have started before the last one ended, as in a rolling restart. The
    rule assumes so if the connection of the last process ended within `seconds`. For several instances, the finding is then
    info; for one, it is low, since a second process may just as well have made the first one end. If both processes continue,
    they fence each other again, or the fenced one retries for `seconds`.

    Clients whose requests other than JoinGroup do not carry the instance id, such as aiokafka, get UNKNOWN_MEMBER_ID instead:
    their joins take turns.
    """
    table = seen.exchanges
    refused = table.filter(table.error.isin(list(REFUSED)), table.group_id.notnull())
    some = any(call["error"] in REFUSED for call in seen.calls)
    example = {"exchange": refused.exchange.argmin(refused.request_first_ns),
               "connection": refused.connection.argmin(refused.request_first_ns)}  # fmt: skip
    members = in_groups(
        refused, ("group_id", "error", "client_id", "member_id"), ("request_first_ns", "response_last_ns"), **example
    )
    rows = seen.first(members, ("first_ns", "group_id", "member_id"), READ_ALL_MOST, "fenced_members") if some else []
    ended = ends(seen, refused) if rows else {}
    for row in seen.prepared(rows):
        request = seen.message(row, "request")
        row["instance"] = request.get("groupInstanceId") or request.get("instanceId")
        row["ended"] = ended.get(row["connection"], seen.span[1]) <= row["first_ns"] + limit["seconds"] * 1e9
    for (group, error), mine in rows_by(rows, ("group_id", "error")).items():
        yield refusal(group, error, mine, limit)
    yield from in_turns(seen, {row["group_id"] for row in rows}, limit)


def refusal(group: str, error: str, rows: list[Row], limit: Mapping[str, float]) -> Finding:
    """The finding on the members of a group that got one of these errors."""
    instances = sorted({row["instance"] for row in rows if row["instance"]})
    instance = instances[0] if len(instances) == 1 else None
    (first, last), number, clients = times_of(rows), sum(row["n"] for row in rows), clients_in(rows)
    each = rows_by(rows, "instance" if instances else "client_id").values()
    lasted = max(row["last_ns"] - row["first_ns"] for row in rows) >= limit["seconds"] * 1e9
    fenced, times = error == REFUSED[0], counted(number, "time")
    # the broker keeps the instance of a member that crashed until its session ends: 45 s by default
    alone = last - first < limit["session"] * 1e9 if not fenced else not lasted and all(len(mine) == 1 for mine in each)
    ended = fenced and alone and all(row["ended"] for row in rows)
    severity = ("info" if len(each) > 1 else "low") if ended else "medium" if alone else None
    subject = f"instance {instance} of " if instance else f"{counted(len(instances), 'instance')} of " if instances else ""
    return Finding(
        f"{subject}group {group} {'was' if len(instances) < 2 else 'were'} fenced {times}: another member took that "
        f"group.instance.id from {named(clients)}"
        if fenced
        else f"group {group} refused {named(clients)} {times}: another member has "
        f"{f'group.instance.id {instance}' if instance else 'that group.instance.id'}",
        {"group_id": group, "instance_id": instance, "client_ids": clients}, number,
        where(f"error == {error}", group_id=group), first, last, 0,
        {"fenced": number, "clients": len(clients)}, severity, 0.6 if alone else None,
        ONCE if alone and fenced else None,
    )  # fmt: skip


def ends(seen: Observed, refused: Any) -> dict[str, int]:
    """Connections of these exchanges -> when the last packet passed, ns; of as many as are looked at."""
    chosen = seen.connections.semi_join(refused.select("connection").distinct(), "connection")
    rows = seen.first(chosen.select("connection", "last_ns"), ("last_ns", "connection"), READ_ALL_MOST, "fenced_connections")
    return {row["connection"]: row["last_ns"] for row in rows}


ONCE: Final = (
    "See whether the fenced process ended soon after: then its successor had started before, and nothing else is wrong. If it "
    "continued or is started again, two processes share one group.instance.id: give each its own."
)
"""The next step where each instance was fenced once."""


def in_turns(seen: Observed, known: set[str], limit: Mapping[str, float]) -> Found:
    """Instances that join from one connection, from another, and from the first again; of groups but the `known` ones."""
    unknown = {call["group_id"] for call in seen.calls_of(error="UNKNOWN_MEMBER_ID")} - known
    if not unknown or not seen.has_messages:
        return
    table = seen.exchanges
    joins = table.filter(
        table.api == "JoinGroup", table.api_version >= STATIC, table.error == "NONE", table.group_id.isin(sorted(unknown))
    )
    joins = joins.select(
        "group_id", "client_id", "connection", "exchange", first_ns="request_first_ns", last_ns="response_last_ns"
    )
    rows = seen.first(joins, ("first_ns", "connection", "exchange"), READ_MOST, "static_joins")
    for row in seen.prepared(rows):
        row["instance"] = seen.message(row, "request").get("groupInstanceId")
    for (group, instance), mine in rows_by(rows, ("group_id", "instance")).items():
        turns = [connection for connection, _ in groupby(mine, key=itemgetter("connection"))]
        if instance and len(turns) >= limit["turns"] and len(set(turns)) < len(turns):
            clients = clients_in(mine)
            yield Finding(
                f"instance {instance} of group {group} joined from {counted(len(set(turns)), 'connection')} in turns, "
                f"{counted(len(mine), 'time')} ({named(clients)}): each takes that group.instance.id from the other",
                {"group_id": group, "instance_id": instance, "client_ids": clients}, len(mine),
                where("api == JoinGroup", "error == NONE", group_id=group),
                *times_of(mine), 0, {"joins": len(mine), "clients": len(clients)}, None, 0.9,
            )  # fmt: skip
