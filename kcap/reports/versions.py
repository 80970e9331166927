"""Version negotiation: who speaks what, with whom, what breaks on another release, and what went wrong.

In: one pass over captures. Out: plain values, which are the JSON form: clients, brokers, readiness, diagnoses. Law: counts are
those of the rows of `exchanges`; clients that break stand first, brokers last, else in the order of their addresses and ids.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from kcap.kafka.brokers import Server
from kcap.reports.diagnoses import diagnose
from kcap.reports.fingerprints import Who, who
from kcap.reports.readiness import ABSENT, DEPRECATED, NO, REMOVED, UNKNOWN, YES, Call, is_named_though_gone, of, range_in
from kcap.reports.release_guess import Guess, guess
from kcap.reports.shape import uid
from kcap.reports.talks import Talk, Talks, Use
from kcap.schema.registry import api_name
from kcap.schema.releases import deprecated_in, removed_in
from kcap.table.verdicts import VERDICTS

Row = dict[str, Any]
ClientKey = tuple[str, str | None]


def clients_of(talks: Talks) -> dict[ClientKey, list[Talk]]:
    """Address and client id -> connections; in order."""
    out: dict[ClientKey, list[Talk]] = {}
    for talk in talks.talks.values():
        for client_id in {one for one, _, _ in talk.uses}:
            out.setdefault((talk.identity.client_ip, client_id), []).append(talk)
    return dict(sorted(out.items(), key=lambda item: (item[0][0], item[0][1] is None, item[0][1] or "")))


def calls_of(talks: Sequence[Talk], client_id: str | None, whole: Talks) -> list[Call]:
    """What a client used; of connections with different brokers the one that offered most counts."""
    found: dict[tuple[int, int], list[tuple[Talk, Use]]] = {}
    for talk in talks:
        for (one, key, version), use in talk.uses.items():
            if one == client_id and api_name(key) is not None:
                found.setdefault((key, version), []).append((talk, use))
    asks = any(talk.asks for talk in talks)
    return [call_of(key, version, some, whole, asks=asks) for (key, version), some in sorted(found.items())]


def call_of(key: int, version: int, some: list[tuple[Talk, Use]], whole: Talks, *, asks: bool) -> Call:
    """One version."""
    first = min(some, key=lambda pair: pair[1].first_ns)
    ranges = [found for talk, _ in some if (found := range_in(whole.offer(talk), key)) is not None]
    return Call(
        key, version, sum(use.count for _, use in some), first[1].first_ns, max(use.last_ns for _, use in some),
        uid(first[0].uid, first[1].example), asks or any(talk.midstream for talk, _ in some),
        max(ranges, key=lambda found: found[1]) if ranges else None,
    )  # fmt: skip


def apis_of(talks: Sequence[Talk], client_id: str | None, whole: Talks) -> list[Row]:
    """Each API that a client used, with its versions."""
    rows: dict[int, Row] = {}
    counts: dict[int, Counter[str]] = {}
    for talk in talks:
        for (one, key, version), use in talk.uses.items():
            if one != client_id or api_name(key) is None:
                continue
            row = rows.setdefault(
                key, {"api": api_name(key), "api_key": key, "min": version, "max": version, "count": 0, "verdicts": {},
                      "removed_in": None, "deprecated_in": None, "versions": {}, "offered": None}
            )  # fmt: skip
            row["min"], row["max"], row["count"] = min(row["min"], version), max(row["max"], version), row["count"] + use.count
            row["versions"][str(version)] = row["versions"].get(str(version), 0) + use.count
            counts.setdefault(key, Counter()).update(whole.verdicts(talk, key, version, use))
            offered = range_in(whole.offer(talk), key)
            if offered is not None:
                row["offered"] = list(offered)
    for key, row in rows.items():
        row["verdicts"] = {name: counts[key][name] for name in VERDICTS if counts[key][name]}
        row["versions"] = dict(sorted(row["versions"].items(), key=lambda item: int(item[0])))
        used = [int(text) for text in row["versions"]]
        # the oldest version in use goes first, and with it the client's work
        row["removed_in"] = next((text for v in used if (text := removed_in(key, v)) is not None), None)
        row["deprecated_in"] = next((text for v in used if (text := deprecated_in(key, v)) is not None), None)
    return [rows[key] for key in sorted(rows)]


def client_row(key: ClientKey, talks: Sequence[Talk], whole: Talks, target: str, known: Who) -> tuple[Row, list[Row]]:
    """A client, and what stands against the release."""
    ip, client_id = key
    calls = calls_of(talks, client_id, whole)
    findings, verdict, why = of(calls, known, target)
    uses = [use for talk in talks for (one, _, _), use in talk.uses.items() if one == client_id]
    row: Row = {
        "client_ip": ip, "client_id": client_id, "software_name": known.name, "software_version": known.version,
        "guessed": known.guessed, "why": known.why, "family": known.family, "is_broker": known.is_broker,
        "connections": len(talks), "count": sum(call.count for call in calls), "negotiates": any(t.asks for t in talks),
        "apis": apis_of(talks, client_id, whole), "first_ns": min(use.first_ns for use in uses),
        "last_ns": max(use.last_ns for use in uses), "works_with_target": verdict, "works_why": why,
        "brokers": sorted({f"{talk.server[0]}:{talk.server[1]}" for talk in talks}),
    }  # fmt: skip
    against = [
        {
            "client_ip": ip, "client_id": client_id, "software": " ".join(filter(None, (known.name, known.version))) or None,
            "api": api_name(f.call.key), "api_key": f.call.key, "version": f.call.version, "what": f.what,
            "would_change": f.steps, "why": f.why, "count": f.call.count, "first_ns": f.call.first_ns,
            "last_ns": f.call.last_ns, "example": f.call.example,
            "named_though_gone": is_named_though_gone(f.call, target),
        }
        for f in findings
    ]  # fmt: skip
    return row, against


def broker_row(server: Server, whole: Talks) -> tuple[Row, list[Guess]]:
    """A broker's address: what it offers, and what that tells."""
    offers = list(whole.offers[server].values())
    guesses = [guess(offer.ranges) for offer, _ in offers]
    last, found = offers[-1][0], guesses[-1]
    node, cluster = whole.learner.brokers.identify(server)
    features = whole.features.get(server, {})
    row: Row = {
        "server_ip": server[0], "server_port": server[1], "broker_id": node, "cluster_id": cluster, "role": found.role,
        "mode": found.mode, "release_min": found.first, "release_max": found.last, "why": found.why,
        "vendor_suspected": found.vendor, "nearest": found.nearest, "differs": list(found.differs), "answers": len(offers),
        "example": offers[-1][1], "features": features,
        "apis": [
            {"api_key": key, "api": api_name(key), "min": low, "max": high}
            for key, (low, high) in sorted(last.ranges.items())
        ],
    }  # fmt: skip
    if len(offers) > 1:
        row["changed"] = [
            {"release_min": g.first, "release_max": g.last, "example": told} for g, (_, told) in zip(guesses, offers)
        ]
    return row, guesses


def whos(whole: Talks) -> dict[ClientKey, Who]:
    """The library of each client."""
    return {key: who(some, key[1], whole) for key, some in clients_of(whole).items()}


def report(whole: Talks, captures: Sequence[str], target: str) -> Row:
    """The report."""
    clients, against, known = [], [], whos(whole)
    for key, some in clients_of(whole).items():
        row, found = client_row(key, some, whole, target, known[key])
        clients.append(row)
        against += found
    brokers = [broker_row(server, whole)[0] for server in sorted(whole.offers)]
    order = {NO: 0, UNKNOWN: 1, YES: 2}
    clients.sort(key=lambda row: (row["is_broker"], order[row["works_with_target"]]))
    weight = {REMOVED: 0, ABSENT: 1, DEPRECATED: 2}
    against.sort(key=lambda row: (weight[row["what"]], row["would_change"] is True, row["client_ip"], row["client_id"] or ""))
    left_out = {"orphan": whole.orphans} if whole.orphans else {}
    return {
        "report": "versions", "captures": list(captures), "target": target, "rows": clients, "clients": clients,
        "brokers": brokers, "readiness": against, "diagnoses": diagnose(whole, brokers, known), "left_out": left_out,
    }  # fmt: skip


def fails(made: Row, what: str) -> bool:
    """Whether a client that is no broker uses what the target has dropped (or, if asked for, deprecated) and would go on so.

    A client that is known to step to another version does not count.
    """
    levels = {REMOVED: {REMOVED, ABSENT}, DEPRECATED: {REMOVED, ABSENT, DEPRECATED}}[what]
    return any(row["what"] in levels and row["would_change"] is not True for row in made["readiness"]) or any(
        row["works_with_target"] == NO for row in made["clients"]
    )


def tally(made: Row) -> dict[str, int]:
    """How many clients that are no brokers work, do not, or cannot be told."""
    found = Counter(row["works_with_target"] for row in made["clients"] if not row["is_broker"])
    return {name: found[name] for name in (YES, NO, UNKNOWN)}
