"""Topics: those that are not there, those that were deleted and created again, and the metadata that clients ask for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from kcap.reports.definition import uids
from kcap.reports.findings.model import (
    RULES,
    Finding,
    Found,
    called,
    equal_to,
    erring,
    named,
    of_clients,
    rule,
    seconds,
    where,
    without_response,
)  # fmt: skip
from kcap.reports.findings.observed import AWAY, Observed, Row, rows_by
from kcap.reports.findings.unavailable import STATES
from kcap.reports.text import count as counted

UNKNOWN: Final = ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")
"""Errors of requests for a topic that the cluster does not have."""
MEMBERS: Final = ("Heartbeat", "ConsumerGroupHeartbeat")
"""APIs that members of groups call all the time."""


@rule(
    "topic-recreated", "medium", 0.95,
    needs="responses bodies",
    looks_at="a topic id that a server refuses for good, and later requests for the topic, by name or by another id, that "
    "succeed",
    advice="Stop the clients of a topic before you delete it: its records and the offsets that groups committed are gone. To "
    "empty a topic, delete its records (kafka-delete-records.sh) and keep the topic.",
    instead="another cluster that took over the same address",
    sources="KIP-516",
    errors=3, seconds=3,
)  # fmt: skip
def topic_recreated(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A topic that was deleted and created again under the same name. A client that keeps the id of the first one is refused
    from then on.
    """
    known = seen.recreated
    if not known:
        return
    parts = seen.parts.filter(seen.parts.topic.isin(list(known)))
    errors = parts.filter(parts.error.isin([*AWAY, "OFFSET_OUT_OF_RANGE"]))
    rows = seen.run(
        errors.group_by("client_id", "topic", "topic_id", "error").aggregate(
            n=uids(errors).nunique(), first_ns=errors.request_first_ns.min(), last_ns=errors.request_first_ns.max(),
            latency_ns=errors.latency_ns.sum(),
        )
    )  # fmt: skip
    refused = rows_by(rows, "topic")
    for topic, (gone_ns, back_ns, olds) in known.items():
        mine = refused.get(topic, [])
        if gone_ns is not None:
            yield Finding(
                f"topic {topic} was deleted and created again: for {seconds(back_ns - gone_ns)} no request for it succeeded",
                {"topic": topic}, 1, where(erring(seen, [*AWAY, "OFFSET_OUT_OF_RANGE"]), topic=topic),
                gone_ns, back_ns, back_ns - gone_ns,
                {"clients": len({row["client_id"] for row in mine}), "errors": sum(row["n"] for row in mine),
                 "topic_id": olds[-1]},
            )  # fmt: skip
        for row in mine:
            late = row["last_ns"] - max(back_ns, row["first_ns"])
            if row["topic_id"] in olds and row["n"] >= limit["errors"] and late >= limit["seconds"] * 1e9:
                yield Finding(
                    f"{called(row['client_id'])} still used the id of the deleted topic {topic} {seconds(late)} after there "
                    f"was a new one: {counted(row['n'], 'response')} with {row['error']}",
                    {"client_id": row["client_id"], "topic": topic}, row["n"],
                    where(f"error == {row['error']}", client_id=row["client_id"], topic=topic), row["first_ns"], row["last_ns"],
                    row["latency_ns"] or 0, {"errors": row["n"], "topic_id": row["topic_id"]}, "high",
                    advice="Restart the client. After UNKNOWN_TOPIC_ID, a client should request metadata and continue with the "
                    "new id: look for a release of its library that does, or for a setting (ConsumeRecreatedTopics of "
                    "franz-go).",
                )  # fmt: skip


@rule(
    "unknown-topic-loop", "medium", 0.95,
    needs="responses bodies",
    looks_at="UNKNOWN_TOPIC_OR_PARTITION and UNKNOWN_TOPIC_ID responses that a client gets again and again, or that a member "
    "of a group gets once and then continues without the topic",
    advice="Create the topic, or correct its name in the client's configuration.",
    instead="a topic that was being created or deleted, or was created again under another id",
    errors=5, few=3, seconds=1, after=10,
)  # fmt: skip
def unknown_topic_loop(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A client that keeps requesting a topic that does not exist.

    The client must request the same topics again and again: one that creates a topic now and then gets an error or two for
    each. From `few` errors on, the finding is low if no client in the capture writes or reads the topic. If the client started
    before its topics were created and has records of all of them afterwards, it waited for them: that is info.

    A library may request a topic once, as kafka-go does for members of a group. If the client is still a member `after` seconds
    later and no Metadata response has the topic, it gets nothing of it. What several clients keep requesting is one finding of
    the topic.
    """
    found = list(loops(seen, limit))
    by: dict[str, list[Finding]] = {}
    for finding in found:
        if finding.severity is None and len(finding.evidence["topics"]) == 1:
            by.setdefault(finding.who["topic"], []).append(finding)
    several = {topic: some for topic, some in by.items() if len({finding.who["client_id"] for finding in some}) > 1}
    merged = {id(finding) for some in several.values() for finding in some}
    yield from (finding for finding in found if id(finding) not in merged)
    for topic, some in several.items():
        clients = sorted({finding.who["client_id"] or "" for finding in some})
        count = sum(finding.count for finding in some)
        yield Finding(
            f"{len(clients)} clients ({named(clients)}) got {counted(count, 'response')} that topic {topic} does not exist"
            + ("; it was there before" if was_there(seen, topic, some) else ""),
            {"topic": topic, "client_ids": [client for client in clients if client]}, count,
            where(erring(seen, UNKNOWN), of_clients(clients), topic=topic), min(finding.first_ns or 0 for finding in some),
            max(finding.last_ns or 0 for finding in some), sum(finding.lost_ns for finding in some),
            {"errors": count, "clients": len(clients), "topics": [topic]},
        )  # fmt: skip


def was_there(seen: Observed, topic: str, some: Sequence[Finding]) -> bool:
    """Whether clients wrote or read records of a topic before they were refused."""
    times = (at for (_, name), at in seen.once(last_records).items() if name == topic)
    return 0 < max(times, default=0) <= max(finding.last_ns or 0 for finding in some)


def loops(seen: Observed, limit: Mapping[str, float]) -> Found:
    """The findings of `unknown_topic_loop`, of each client by itself."""
    rows = seen.errors(UNKNOWN, ("client_id", "topics"))
    some = [row for row in rows if row["n"] >= limit["few"]]
    some += in_vain(seen, [row for row in rows if row["n"] < limit["few"]], limit["after"])
    for row in seen.prepared(some):
        if row["n"] < limit["few"] or row["last_ns"] - row["first_ns"] >= limit["seconds"] * 1e9:
            names = [one.get("name") for one in seen.message(row, "response").get("topics", ()) if one.get("errorCode") == 3]
            names = [name for name in names if name]
            if not names and len(row["topics"] or ()) == 1:
                names = [name for name in row["topics"] if name]
            if names and (seen.recreated.keys() >= set(names) or set(names) <= STATES):
                continue  # `topic-recreated` says it, or `no-coordinator`
            again = row["n"] >= limit["errors"]
            used = [seen.once(last_records).get((row["client_id"], name), 0) for name in names]
            over = bool(names) and min(used) > row["last_ns"]
            if not again and (not names or not seen.once(served_topics).isdisjoint(names)):
                continue
            same = [equal_to("topic", name) for name in row["topics"] or ()]
            yield Finding(
                f"{called(row['client_id'])} got {counted(row['n'], 'response')} that "
                + (f"topic {named(names)}" if names else "a topic")
                + " does not exist" + ("; later it was there" if over else "")
                + ("; as a member of a group it went on without the topic" if row["n"] < limit["few"] else ""),
                {"client_id": row["client_id"], "topic": names[0] if names else None}, row["n"],
                where(erring(seen, UNKNOWN), *same, client_id=row["client_id"]), row["first_ns"], row["last_ns"],
                row["latency_ns"] or 0, {"errors": row["n"], "topics": names},
                "info" if over else None if again else "low", None if row["n"] >= limit["few"] else 0.8,
                advice="See that topics exist before their clients start." if over else None,
            )  # fmt: skip


def in_vain(seen: Observed, rows: list[Row], after: float) -> list[Row]:
    """Those of clients whose few Metadata requests name one topic, and are members of groups for `after` seconds from
    then on, while no Metadata response has the topic."""
    found = []
    for row in rows:
        calls = seen.calls_of(client_id=row["client_id"])
        beat_ns = max((call["last_ns"] for call in calls if call["api"] in MEMBERS), default=0)
        alone = {call["api"] for call in calls if call["error"] == row["error_name"]} == {"Metadata"}
        if alone and len(row["topics"] or ()) == 1 and row["topics"][0] and beat_ns - row["last_ns"] >= after * 1e9:
            found.append(row)
    if not found:
        return []
    parts = seen.parts
    there = parts.filter(parts.api == "Metadata", parts.topic.isin(sorted({row["topics"][0] for row in found})))
    known = {row["topic"] for row in seen.run(there.select("topic").distinct())}
    return [row for row in found if row["topics"][0] not in known]


def last_records(seen: Observed) -> dict[tuple[str | None, str], int]:
    """Client and topic -> when the client last wrote or read records of it."""
    found: dict[tuple[str | None, str], int] = {}
    for flow in seen.flows:
        if flow["topic"] and flow["records"]:
            key = flow["client_id"], flow["topic"]
            found[key] = max(found.get(key, 0), flow["last_ns"])
    return found


def served_topics(seen: Observed) -> set[str]:
    """Topics that Produce or Fetch requests name."""
    return {flow["topic"] for flow in seen.flows if flow["topic"]}


FOUND: Final = (
    "No response has an error: look in the client's log for what it does again and again, and do not create a new client for "
    "each task."
)
"""The next step for a client that finds what it asks for."""
MISSING: Final = 0.7
"""The part of a client's Metadata requests from which on the topic that is not there is why it sends so many."""
LISTENER: Final = "wrong-advertised-listener"
ABSENT: Final = (
    "See what it cannot find (unknown-topic-loop): create the topic, or correct its name in the client's configuration."
)
"""The next step for one that asks for a topic that is not there."""


@rule(
    "metadata-storm", "medium", 0.85,
    needs="requests",
    looks_at="Metadata requests per second of a client, on connections that carry more of them than connecting needs",
    advice="See what the client cannot find (unknown topics, leaders). Raise retry.backoff.ms, and do not create a new client "
    "for each task.",
    instead="an inventory tool; a Java admin client of Kafka 4 after an outage of all its brokers, which then sends the "
    "requests that it queued while it looked for a broker (KIP-1102)",
    requests=50, a_second=5, each=2,
)  # fmt: skip
def metadata_storm(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A client that requests metadata all the time.

    If most of its requests are for a topic that does not exist, the finding is low, and `unknown-topic-loop` has the cause. So
    it is for clients that brokers send to addresses that accept no connection (`wrong-advertised-listener`). If most get no
    response, the rule is silent: a client that learns nothing requests again, and other rules have the cause.
    Clients request metadata when they connect: up to `each` requests per connection are those of short-lived clients. If the
    packets that begin and end connections are missing, the ApiVersions requests show how many connections there were.
    """
    if seen.most_calls("client_id", ("Metadata",)) < limit["requests"]:
        return
    chosen = seen.exchanges.filter(seen.exchanges.api.isin(["Metadata", "ApiVersions"]))
    metadata = chosen.api == "Metadata"
    one = chosen.group_by("client_id", "connection").aggregate(
        n=chosen.count(where=metadata), opened=chosen.count(where=chosen.api == "ApiVersions"),
        errors=chosen.count(where=metadata & (chosen.error != "NONE")),
        lost=chosen.latency_ns.sum(where=metadata), first_ns=chosen.request_first_ns.min(where=metadata),
        last_ns=chosen.request_last_ns.max(where=metadata),
    )  # fmt: skip
    often = one.filter(one.n > int(limit["each"]), one.n > int(limit["each"]) * one.opened)
    rows = seen.run(
        often.group_by("client_id").aggregate(
            n=often.n.sum(),
            lost=often.lost.sum(),
            first_ns=often.first_ns.min(),
            last_ns=often.last_ns.max(),
            errors=often.errors.sum(),
        )
    )
    from kcap.reports.findings.addresses import behind_shared  # for captures with as many Metadata requests

    missing: Counter[str | None] = Counter()
    unanswered: Counter[str | None] = Counter()
    for call in seen.calls_by("api", ("Metadata",)).get("Metadata", ()):
        missing[call["client_id"]] += call["n"] * (call["error"] in UNKNOWN)
        unanswered[call["client_id"]] += call["n"] * without_response(call)
    for row in rows:
        rate = row["n"] / max((row["last_ns"] - row["first_ns"]) / 1e9, 1.0)
        if unanswered[row["client_id"]] >= MISSING * row["n"]:
            continue
        if row["n"] >= limit["requests"] and rate >= limit["a_second"] and row["client_id"] not in seen.once(behind_shared):
            absent = missing[row["client_id"]] >= MISSING * row["n"]
            sent_away = row["client_id"] in seen.once(sent_to_dead)
            yield Finding(
                f"{called(row['client_id'])} sent {row['n']} Metadata requests, {rate:.0f} a second"
                + ("; most are for a topic that does not exist" if absent else ""),
                {"client_id": row["client_id"]}, row["n"], where("api == Metadata", client_id=row["client_id"]),
                row["first_ns"], row["last_ns"], row["lost"] or 0,
                {"requests": row["n"], "requests_a_second": round(rate, 1), "errors": row["errors"],
                 "explained_by": LISTENER if sent_away else None},
                "low" if absent or sent_away else None, advice=ABSENT if absent else None if row["errors"] else FOUND,
            )  # fmt: skip


def sent_to_dead(seen: Observed) -> set[str]:
    """Clients of which `wrong-advertised-listener` says that brokers send them to addresses that accept no connection."""
    some = (finding for finding in seen.once(RULES[LISTENER].by_default) if finding.severity != "info")
    return {client for finding in some for client in finding.who["client_ids"]}
