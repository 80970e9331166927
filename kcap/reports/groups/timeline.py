"""Members and rebalances of a group, from its events.

In: the events of one group. Out: members with their assignments; rebalances with cause, duration and the member that the others
waited for. Law: a cause is what the wire shows before the rebalance (a LeaveGroup, a member that is new or missing, another
coordinator) or the reason that a member gives (KIP-800). If there is neither, the cause is `rejoin`, or `unknown` for the first
rebalance of a capture that began later than the group. Sources: KIP-62, KIP-345, KIP-429, KIP-800, KIP-848, KIP-932.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

from kcap.reports.findings.observed import CONNECT, HEARTBEATS
from kcap.reports.groups.events import ITSELF, Assignment, Event

Row = dict[str, Any]
LEAVING: Final = -1
"""Member epoch of a heartbeat with which a member leaves for good."""
PAUSING: Final = -2
"""Member epoch with which a static member leaves temporarily."""
STREAMS: Final = "StreamsGroupHeartbeat"
"""The API of groups whose assignments have subtopologies instead of topics (KIP-1071)."""
POLL: Final = "poll timeout"
"""Reason of clients that left because the application did not poll within max.poll.interval.ms (KIP-800)."""
REASON_CAUSES: Final = {"revoke": "revocation", "metadata": "metadata change", "subscription": "metadata change"}
"""Word in a JoinGroup's reason -> cause. A revocation is the second step of a cooperative rebalance (KIP-429)."""
MOVED: Final = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS")
BEGIN: Final = attrgetter("first_ns")
"""Sort key of events."""


def protocol_of(events: Sequence[Event]) -> str:
    """Classic, consumer, share or streams; for a group that was converted, the last one."""
    return next((HEARTBEATS.get(event.api, "classic") for event in reversed(events)), "classic")


def members_of(events: Sequence[Event]) -> list[Row]:
    """Members in the order in which they appear; `assignments` has one entry per change."""
    found: dict[str, Row] = {}
    for event in events:
        if event.member_id is None or event.api == "LeaveGroup":
            continue
        row = found.setdefault(event.member_id, {
            "member_id": event.member_id, "instance_id": event.instance_id, "client_id": event.client_id,
            "client_ip": event.client_ip, "first_ns": event.first_ns, "last_ns": event.last_ns, "assignments": [],
        })  # fmt: skip
        row["last_ns"] = max(row["last_ns"], event.last_ns)
        row["instance_id"] = row["instance_id"] or event.instance_id
        last = row["assignments"][-1]["topics"] if row["assignments"] else None
        if event.assignment is not None and (event.assignment != last or event.api == "SyncGroup"):
            change = {"time_ns": event.last_ns, "generation": event.epoch, "topics": event.assignment}
            row["assignments"].append(change | work_of(event, event.assignment))
    return list(found.values())


def work_of(event: Event, assignment: Assignment) -> dict[str, list[str]]:
    """The parts of a member's assignment other than topics, by Kafka's names: `tasks` of a streams group as subtopology and
    partition (TaskId); `connectors` and `tasks` of a Kafka Connect worker (ConnectorTaskId)."""
    each = [(name, number) for name, numbers in assignment.items() for number in numbers]
    if event.api == STREAMS:
        return {"tasks": [f"{name}_{number}" for name, number in each]}
    if event.protocol_type != CONNECT:
        return {}
    return {
        "connectors": [name for name, number in each if number == ITSELF],
        "tasks": [f"{name}-{number}" for name, number in each if number != ITSELF],
    }


def rebalances_of(events: Sequence[Event]) -> list[Row]:
    """Rebalances in order of time."""
    return (classic if protocol_of(events) == "classic" else assigned_by_broker)(events)


# -- classic ----------------------------------------------------------------------------------------------------------
def generations(events: Sequence[Event]) -> dict[int, list[Event]]:
    """Generation -> its successful JoinGroup and SyncGroup requests.

    A static member that resumes its place gets the current generation, which is not a rebalance.
    """
    out: dict[int, list[Event]] = {}
    synced: dict[int, int] = {}
    joined: dict[int, set[str | None]] = {}
    for event in events:
        if event.error != "NONE" or event.api not in ("JoinGroup", "SyncGroup") or not (event.epoch or 0) > 0:
            continue
        generation = event.epoch or 0
        late = event.api == "JoinGroup" and event.first_ns > synced.get(generation, event.first_ns)
        known = joined.setdefault(generation, set())
        if late or (event.api == "SyncGroup" and generation in out and event.member_id not in known):
            continue
        if event.api == "SyncGroup":
            synced[generation] = max(event.last_ns, synced.get(generation, 0))
        else:
            known.add(event.member_id)
        out.setdefault(generation, []).append(event)
    return {generation: found for generation, found in out.items() if any(one.api == "JoinGroup" for one in found)}


def classic(events: Sequence[Event]) -> list[Row]:
    """Rebalances of a classic group, one per generation."""
    names = {event.member_id or "": event.client_id for event in events if event.member_id and event.api != "LeaveGroup"}
    out: list[Row] = []
    before: list[Event] = []
    since = events[0].first_ns if events else 0
    for generation, mine in generations(events).items():
        joins = [event for event in mine if event.api == "JoinGroup"]
        # The intervals of generations do not overlap, so all are examined in one pass.
        since = max([since, *(event.last_ns for event in before)])
        until = max(event.last_ns for event in joins)
        between = events[bisect_left(events, since, key=BEGIN) if before else 0 : bisect_right(events, until, key=BEGIN)]
        causes = causes_of(joins, before, between)
        first = min([event.first_ns for event in joins] + [at for at, _, _ in causes if at >= since])
        last = max(event.last_ns for event in mine)
        lost = stopped(mine)
        latest, answered = max(joins, key=lambda event: event.first_ns), min(event.last_ns for event in joins)
        _, cause, who = min(causes)
        # Responses are sent when all members have joined, or when the missing ones are removed.
        absent = next((names.get(one[0]) for _, cause, one in causes if cause == "timeout" and one), None)
        begun = min(event.first_ns for event in joins)
        # After a generation that is not in the capture, as of a group that was empty, the members of the one before are gone.
        follows = bool(before) and generation == (before[0].epoch or 0) + 1
        given_up = absent is not None and follows and answered - latest.first_ns > latest.first_ns - begun
        out.append({
            "cause": cause, "who": [names.get(one) or one for one in who], "causes": sorted({one for _, one, _ in causes}),
            "first_ns": first, "last_ns": last, "duration_ns": last - first, "generation": generation,
            "waited_for": absent if given_up else latest.client_id if len(joins) > 1 else None,
            "waited_ns": (answered if given_up else latest.first_ns) - begun,
            "lost_ns": sum(lost.values()), "members": len(joins), "reason": reason_of(cause, joins, between),
            "stopped": [{"member_id": one, "client_id": names.get(one), "stopped_ns": ns} for one, ns in lost.items()],
        })  # fmt: skip
        before = mine
    return out


def stopped(mine: Sequence[Event]) -> dict[str, int]:
    """Member -> time from its JoinGroup to the response to its SyncGroup, ns. It does not consume meanwhile, except with a
    cooperative assignor (KIP-429), with which it continues to consume the partitions that it does not revoke."""
    joins = {event.member_id or "": event for event in mine if event.api == "JoinGroup"}
    ends = {name: event.last_ns for name, event in joins.items()}
    for event in mine:
        ends[event.member_id or ""] = max(ends.get(event.member_id or "", 0), event.last_ns)
    return {name: ends[name] - event.first_ns for name, event in joins.items()}


def rejoin(joins: Sequence[Event]) -> str:
    """Why a group with unchanged members rebalances, by the reasons that its members give."""
    reasons = " ".join(event.reason for event in joins)
    return next((cause for word, cause in REASON_CAUSES.items() if word in reasons), "rejoin")


def reason_of(cause: str, joins: Sequence[Event], between: Sequence[Event]) -> str:
    """The reason given by the member that left, or that caused the rebalance of a group without other changes."""
    leaves = [event for event in between if event.api == "LeaveGroup"]
    some = {"leave": leaves, "timeout": leaves, "join": []}.get(cause, joins)
    return next((event.reason for event in some if event.reason), "")


def causes_of(joins: Sequence[Event], before: Sequence[Event], between: Sequence[Event]) -> list[tuple[int, str, list[str]]]:
    """What the wire shows before a generation: time, cause, members; at least one."""
    out: list[tuple[int, str, list[str]]] = []
    old = {event.member_id for event in before if event.api == "JoinGroup"}
    gone = {member for event in between for member in event.left}
    # When its last member leaves, a group takes a generation without members and waits for none (GroupMetadata).
    emptied = bool(before) and old <= gone and (joins[0].epoch or 0) > (before[0].epoch or 0) + 1
    for event in between:
        if event.api == "LeaveGroup" and event.left and not emptied and (not before or old & set(event.left)):
            out.append((event.first_ns, "timeout" if POLL in event.reason else "leave", list(event.left)))
        elif event.error in MOVED and (before or event.member_id):  # a new client looks for it first
            out.append((event.first_ns, "new coordinator", []))
    if before and {event.coordinator for event in before}.isdisjoint(event.coordinator for event in joins):
        out.append((joins[0].first_ns, "new coordinator", []))
    begun = {event.member_id for event in between if event.api == "JoinGroup" and event.error == "MEMBER_ID_REQUIRED"}
    for event in joins:
        member = event.member_id or ""
        if member not in old and (before or member in begun or event.fresh):
            out.append((event.first_ns, "join", [member]))
    missing = sorted(str(one) for one in old - {event.member_id for event in joins} - gone)
    if missing and not any(cause == "leave" and who == missing for _, cause, who in out):
        out.append((max(event.last_ns for event in joins), "timeout", missing))
    if not out:
        first = min(joins, key=lambda event: event.first_ns)
        out.append((first.first_ns, rejoin(joins) if before else "unknown", [first.member_id or ""]))
    return out


# -- assignment by the broker: KIP-848, KIP-932, KIP-1071 -------------------------------------------------------------
def assigned_by_broker(events: Sequence[Event]) -> list[Row]:
    """Rebalances of a group whose broker assigns partitions: a join, a leave, or a new epoch that neither explains.

    Members whose assignment does not change continue: `lost_ns` is the time that a joining member waited for partitions.
    """
    names = {event.member_id or "": event.client_id for event in events}
    ends: dict[str | None, list[Event]] = {}
    for one in events:
        if one.assignment or one.sent_epoch in (LEAVING, PAUSING):
            ends.setdefault(one.member_id, []).append(one)
    triggers = [(event, cause) for event in events if (cause := trigger(event)) is not None]
    out = []
    for at, (event, cause) in enumerate(triggers):
        until = triggers[at + 1][0].first_ns if at + 1 < len(triggers) else None
        start, end = bisect_left(events, event.first_ns, key=BEGIN), len(events)
        after = events[start : end if until is None else bisect_left(events, until, key=BEGIN)]
        changes = [one for one in after if one.assignment is not None and one.error == "NONE"]
        last = max([event.last_ns, *(one.last_ns for one in changes)])
        got, wait = waited(event, ends.get(event.member_id, ())) if cause == "join" else (event, None)
        # Members of share groups read the same partitions, so that none waits until another releases some.
        others = {one.client_id for one in changes if one.member_id != event.member_id and one.api != "ShareGroupHeartbeat"}
        out.append({
            "cause": cause, "who": [names.get(event.member_id or "") or event.member_id], "causes": [cause],
            "first_ns": event.first_ns, "last_ns": last, "duration_ns": last - event.first_ns,
            "generation": event.epoch if cause == "join" else None,
            "waited_for": next(iter(sorted(filter(None, others))), None) if got is not event else None,
            "waited_ns": wait, "lost_ns": wait or 0, "members": len({one.member_id for one in after}), "reason": "",
            "stopped": [{"member_id": event.member_id, "client_id": event.client_id, "stopped_ns": wait}] if wait else [],
        })  # fmt: skip
    return out


def waited(join: Event, ends: Sequence[Event]) -> tuple[Event | None, int | None]:
    """The event that gave a joining member its first partitions, and how long it waited for them, or until it left without any.

    None for a member without partitions at the end of the capture: a group may have more members than partitions. `ends` are
    the member's events that give it partitions or with which it leaves.
    """
    at = bisect_left(ends, join.first_ns, key=BEGIN)
    if at == len(ends):
        return None, None
    return (ends[at] if ends[at].assignment else None), ends[at].last_ns - join.first_ns


def fences_of(events: Sequence[Event]) -> list[Row]:
    """Members that were replaced by another one with the same group.instance.id."""
    return [
        {"time_ns": event.last_ns, "client_id": event.client_id, "member_id": event.member_id, "instance_id": event.instance_id}
        for event in events
        if event.error == "FENCED_INSTANCE_ID"
    ]


def trigger(event: Event) -> str | None:
    """The cause of a rebalance that a heartbeat is; None for a heartbeat that causes none."""
    if event.error in MOVED:
        return "new coordinator"
    if event.error in ("FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"):
        return "timeout"
    if event.error != "NONE":
        return None
    if event.sent_epoch == 0:
        return "join"
    return "leave" if event.sent_epoch in (LEAVING, PAUSING) else None
