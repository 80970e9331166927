"""Version negotiation: which clients use which versions with which brokers, what breaks on another release, and what failed.

In: one pass over captures. Out: plain values, which are the JSON form: the summary, clients, brokers, readiness, diagnoses,
facts. Law: counts are those of the rows of `exchanges`; clients that break come first, brokers last, the others in the order of
their ids.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from kcap.facts.api_versions import Offer
from kcap.facts.brokers import Server
from kcap.reports.definition import Row
from kcap.reports.versions.clients import ClientUsage, Usage, calls_of
from kcap.reports.versions.diagnoses import diagnose
from kcap.reports.versions.diagnosis import ERROR
from kcap.reports.versions.features import described
from kcap.reports.versions.fingerprints import Software
from kcap.reports.versions.identity import ClientKey, Clients, identify
from kcap.reports.versions.profile_store import StoredProfile
from kcap.reports.versions.profile_templates import ProfileTemplate
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.readiness import (
    ABSENT,
    DEPRECATED,
    NO,
    REMOVED,
    TRIAL,
    UNKNOWN,
    YES,
    earlier,
    is_named_though_gone,
    partners,
    step_of,
)
from kcap.reports.versions.release_guess import Guess, guess, took
from kcap.schema.facts import Versions
from kcap.schema.registry import api_name

CONNECTIONS_NAMED: Final = 40
"""Number of connections that a client's row names; it counts all."""
WORST: Final = 5
"""Number of clients that the summary names."""
REMOVED_REASON, DEPRECATED_REASON, UNJUDGED_REASON = "removed", "deprecated", "unjudged"
FAIL_REASONS: Final = (REMOVED_REASON, DEPRECATED_REASON, UNJUDGED_REASON)
"""Values of --fail-on."""


def client_row(
    key: ClientKey, some: Sequence[StoredProfile], usage: Usage, callers: ClientUsage, known: Software
) -> tuple[Row, list[Row]]:  # fmt: skip
    """The row of a client, and what breaks on the release."""
    findings, verdict, why = callers.assessed(usage, known)
    oldest, newest, source = partners(known)
    if verdict == YES and newest is not None and earlier(newest, callers.target):
        why += f"; but {source}: what it did not use here may break"
    row: Row = {
        "client_id": key.client_id, "client_ip": usage.addresses[0], "client_ips": list(usage.addresses),
        "addresses": len(usage.addresses), "principal": key.principal, "software_name": known.name,
        "software_version": known.version, "guessed": known.guessed, "confidence": known.confidence, "why": known.why,
        "evidence": list(known.evidence), "family": known.family, "is_broker": known.is_broker, "connections": len(some),
        "count": usage.count, "negotiates": usage.probes, "names_itself": key.software is not None,
        "apis": with_steps(callers.apis(usage), usage, known, callers.target), "first_ns": usage.first_ns,
        "last_ns": usage.last_ns, "works_with_target": verdict, "works_why": why,
        "oldest_broker": oldest, "newest_broker": newest, "brokers_why": source,
        "brokers": callers.named(usage.servers),
        "connection_uids": [one.uid for one in some[:CONNECTIONS_NAMED]],
    }  # fmt: skip
    against = [
        {
            "client_id": key.client_id, "client_ip": usage.addresses[0], "client_ips": list(usage.addresses),
            "addresses": len(usage.addresses), "principal": key.principal, "software": known.text or None,
            "api": api_name(f.call.key), "api_key": f.call.key, "version": f.call.version, "what": f.what,
            "would_change": f.steps, "why": f.why, "count": f.call.count, "first_ns": f.call.first_ns,
            "last_ns": f.call.last_ns, "example": f.call.example,
            "named_though_gone": is_named_though_gone(f.call, callers.target),
        }
        for f in findings
    ]  # fmt: skip
    return row, against


def with_steps(rows: list[Row], usage: Usage, known: Software, target: str) -> list[Row]:
    """Rows of APIs with the step of each on the release."""
    calls: dict[int, list[int]] = {}
    every = calls_of(usage)
    for place, one in enumerate(every):
        calls.setdefault(one.key, []).append(place)
    out = []
    for row in rows:
        step = step_of([every[place] for place in calls[row["api_key"]]], known, target)
        out.append(row | {"step": step.does, "target_version": step.version})
    return out


@lru_cache(maxsize=1024)
def guessed(offer: Offer) -> Guess:
    """The releases that an offer fits; computed once for the equal offers of a cluster's brokers."""
    return guess(offer.ranges)


def row_of_broker(
    server: Server, whole: ConnectionProfiles, found: Guess, example: str, ranges: Mapping[int, Versions], answers: int
) -> Row:
    """The row of a broker's address: its identity, the releases that fit, and its offer."""
    node, cluster = whole.tracker.brokers.identify(server)
    features = whole.features.get(server, {})
    return {
        "server_ip": server[0], "server_port": server[1], "broker_id": node, "cluster_id": cluster, "role": found.role,
        "mode": found.mode, "release_min": found.first, "release_max": found.last, "why": found.why,
        "vendor_suspected": found.vendor, "nearest": found.nearest, "differs": list(found.differs), "answers": answers,
        "example": example, "features": features, "finalized": described(features),
        "apis": [
            {"api_key": key, "api": api_name(key), "min": low, "max": high} for key, (low, high) in sorted(ranges.items())
        ],
    }  # fmt: skip


def broker_row(server: Server, whole: ConnectionProfiles) -> Row:
    """The row of a server with ApiVersions responses: the last one counts, and the others are named."""
    offers = list(whole.offers[server].values())
    guesses = [guessed(offer) for offer, _ in offers]
    last, example = offers[-1]
    row = row_of_broker(server, whole, guesses[-1], example, last.ranges, len(offers))
    if len(offers) > 1:
        row["changed"] = [
            {"release_min": g.first, "release_max": g.last, "example": example} for g, (_, example) in zip(guesses, offers)
        ]
    return row


def silent_broker_rows(whole: ConnectionProfiles) -> list[Row]:
    """Servers without an ApiVersions response: the releases that accept all that they served, unless all releases do."""
    served: dict[Server, dict[tuple[int, int], str]] = {}
    first: dict[tuple[Server, ProfileTemplate], str] = {}
    for stored in whole.profiles.stored():
        if stored.server not in whole.offers:
            where = stored.server, stored.template
            first[where] = min(stored.uid, first.get(where, stored.uid))
    for (server, template), uid in first.items():
        for use in template.uses:
            if use.served:
                calls = served.setdefault(server, {})
                calls[use.key, use.version] = min(uid, calls.get((use.key, use.version), uid))
    rows = []
    for server, calls in sorted(served.items()):
        found = took(calls)
        if found is not None:
            rows.append(row_of_broker(server, whole, found, min(calls.values()), {}, 0))
    return rows


def report(
    whole: ConnectionProfiles, captures: Sequence[str], target: str, known: Clients | None = None, *, by_address: bool = False
) -> Row:
    """The report. `known`: the result of `identify`, if it was called before."""
    clients: list[Row] = []
    against: list[Row] = []
    known = identify(whole, by_address=by_address) if known is None else known
    callers = ClientUsage(whole, target, known.shared)
    ids = Counter(key.client_id for key in known.connections)
    usages = callers.usages((key.client_id, some) for key, some in known.connections.items())
    for (key, some), usage in zip(known.connections.items(), usages):
        row, found = client_row(key, some, usage, callers, known.software[key])
        shared = {"shares_id": ids[key.client_id] > 1}
        clients.append(row | shared)
        if shared["shares_id"]:
            shared |= {"connections": row["connections"], "connection_uids": row["connection_uids"]}
        against += [one | shared for one in found]
    brokers = [broker_row(server, whole) for server in sorted(whole.offers)] + silent_broker_rows(whole)
    order = {NO: 0, UNKNOWN: 1, YES: 2}
    clients.sort(key=lambda row: (row["is_broker"], order[row["works_with_target"]]))
    weight = {REMOVED: 0, ABSENT: 1, TRIAL: 2, DEPRECATED: 3}
    against.sort(key=lambda row: (weight[row["what"]], row["would_change"] is True, row["client_id"] or "", row["client_ip"]))
    diagnoses, facts = diagnose(whole, brokers, known)
    made = {
        "report": "versions", "captures": list(captures), "target": target, "rows": clients, "clients": clients,
        "brokers": brokers, "readiness": against, "diagnoses": diagnoses, "facts": facts, "left_out": dict(whole.left_out),
    }  # fmt: skip
    return made | {"answer": answer(made)}


def answer(made: Row) -> list[str]:
    """The report in three sentences: the clients, those that break, what failed and why."""
    count, target = tally(made), made["target"]
    total = sum(count.values())
    clients = [row for row in made["clients"] if not row["is_broker"]]
    encrypted = "" if total else ": the capture shows no request that can be read"
    first = f"{total:,} client{'' if total == 1 else 's'}{encrypted}"
    if total:
        works, breaks = (f"{count[of]:,} {verb}{'s' * (count[of] == 1)}" for of, verb in ((YES, "work"), (NO, "break")))
        first += f": with Kafka {target}, {works}, {breaks}, {count[UNKNOWN]:,} cannot be judged"
    broken = [row for row in clients if row["works_with_target"] == NO]
    if broken:
        names = list(
            dict.fromkeys(f"'{row['client_id']}'" if row["client_id"] is not None else "one without an id" for row in broken)
        )
        rest = f" and {len(names) - WORST:,} more" if len(names) > WORST else ""
        second = f"Breaks: {', '.join(names[:WORST])}{rest}. First reason: {broken[0]['works_why']}"
    else:
        second = f"No client is known to break on Kafka {target}" if total else ""
    failed = [row for row in made["diagnoses"] if row["level"] == ERROR]
    third = (
        f"Failed: {failed[0]['sentence']}" + (more(len(failed) - 1))
        if failed
        else "No connection failed for its versions, its listener or its login"
    )
    return [f"{text}." for text in (first, second, third) if text]


def more(count: int) -> str:
    """` (and 2 more failures)`; empty for none."""
    return f" (and {count:,} more failure{'' if count == 1 else 's'})" if count else ""


def fails(made: Row, what: str) -> bool:
    """Whether a condition of --fail-on holds.

    `removed`: a client other than a broker uses what the target rejects, and would continue to; a client that is known to step
    to another version does not count. `deprecated`: also what the target calls deprecated. `unjudged`: no client could be
    assessed.
    """
    if what == UNJUDGED_REASON:
        found = tally(made)
        return not found[YES] and not found[NO]
    levels = {REMOVED_REASON: {REMOVED, ABSENT, TRIAL}, DEPRECATED_REASON: {REMOVED, ABSENT, TRIAL, DEPRECATED}}[what]
    return any(row["what"] in levels and row["would_change"] is not True for row in made["readiness"]) or any(
        row["works_with_target"] == NO for row in made["clients"]
    )


def tally(made: Row) -> dict[str, int]:
    """How many clients other than brokers work, do not work, or cannot be assessed."""
    found = Counter(row["works_with_target"] for row in made["clients"] if not row["is_broker"])
    return {name: found[name] for name in (YES, NO, UNKNOWN)}
