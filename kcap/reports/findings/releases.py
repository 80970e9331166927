"""Partitions that members of groups give up late, where the broker assigns them."""

from collections.abc import Mapping
from typing import Any, Final

from kcap.limits import SILENCES_MOST
from kcap.reports.findings.model import Finding, Found, named, rule, seconds, where
from kcap.reports.findings.observed import SENT, Observed, Row, clients_in
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted

OWNED: Final = {"ConsumerGroupHeartbeat": "topicPartitions", "StreamsGroupHeartbeat": "activeTasks"}
"""API of a group in which the broker assigns partitions to one member each -> the field in which a request says what the member
has, and a response (of KIP-848 inside of `assignment`) what it is to have.
"""


@rule(
    "release-slow", "medium", 0.85,
    needs="requests responses bodies messages",
    looks_at="heartbeats of KIP-848 and streams groups: the time from a response whose assignment lacks partitions that the "
    "member has to the request that no longer lists them",
    advice="Until then, no other member gets these partitions. What the consumer does when partitions are revoked must not "
    "take long, nor must its work between two polls: lower max.poll.records.",
    instead="a member that was stopped for a while, for example by garbage collection",
    sources="KIP-848, KIP-1071",
    seconds=5,
)  # fmt: skip
def release_slow(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Members that continue for long with partitions that the coordinator has taken away."""
    if seen.apis.isdisjoint(OWNED):
        return
    table = seen.exchanges
    mine = table.filter(table.api.isin(list(OWNED)), table.group_id.notnull(), table.error == "NONE")
    by = functions(mine).window(group_by=["group_id", "member_id"])  # those that change something are longer
    mine = mine.mutate(least_sent=mine.request_bytes.min().over(by), least_got=mine.response_bytes.min().over(by))
    long = mine.filter((mine.request_bytes > mine.least_sent) | (mine.response_bytes > mine.least_got))
    columns = ("group_id", "member_id", "client_id", "generation", "api", *SENT, "response_last_ns", "connection", "exchange")
    order = ("request_first_ns", "connection", "exchange")
    rows = seen.first(long.filter(long.response_last_ns.notnull()).select(*columns), order, SILENCES_MOST, "heartbeats")
    slow: dict[str, list[Row]] = {}
    has: dict[tuple[str, str], frozenset[tuple[str, int]]] = {}
    due: dict[tuple[str, str], tuple[int, frozenset[tuple[str, int]]]] = {}
    for row in seen.prepared(rows):
        member, field = (row["group_id"], row["member_id"]), OWNED[row["api"]]
        if (row["generation"] or 0) <= 0:  # it joins or leaves, and has nothing
            has.pop(member, None)
            due.pop(member, None)
        now = partitions_in(seen.message(row, "request").get(field))
        if now is not None:
            since, wanted = due.pop(member, (row["request_first_ns"], now))
            took = row["request_first_ns"] - since
            kept = has.get(member, frozenset()) - wanted
            if took >= limit["seconds"] * 1e9 and kept and not kept & now:
                slow.setdefault(row["group_id"], []).append({**row, "since_ns": since, "took_ns": took, "kept": len(kept)})
            has[member] = now
        response = seen.message(row, "response")
        wanted_now = partitions_in((response.get("assignment") or response).get(field))
        if wanted_now is not None and has.get(member, frozenset()) - wanted_now:
            due.setdefault(member, (row["response_last_ns"], wanted_now))
        elif wanted_now is not None:
            due.pop(member, None)
    for group, some in slow.items():
        longest, number = max(row["took_ns"] for row in some), sum(row["kept"] for row in some)
        yield Finding(
            f"{named(clients_in(some))} of group {group} went on for up to {seconds(longest)} with "
            f"{counted(number, 'partition')} that the coordinator had taken away",
            {"group_id": group, "client_ids": clients_in(some)}, len(some),
            where(f"api in {{{', '.join(OWNED)}}}", group_id=group), min(row["since_ns"] for row in some),
            max(row["request_first_ns"] for row in some), sum(row["took_ns"] for row in some),
            {"releases": len(some), "partitions": number, "longest_ns": longest},
        )  # fmt: skip


def partitions_in(value: Any) -> frozenset[tuple[str, int]] | None:
    """Partitions of topics, or of subtopologies, in a list of a heartbeat; None where that is null or absent."""
    if value is None:
        return None
    return frozenset(
        (one.get("topicId", one.get("subtopologyId", "")), number) for one in value for number in one["partitions"]
    )
