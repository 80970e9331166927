"""Version negotiation: who speaks what, with whom, what breaks on another release, and what went wrong.

In: one pass over captures. Out: plain values, which are the JSON form: clients, brokers, readiness, diagnoses. Law: counts are
those of the rows of `exchanges`; clients that break come first, brokers last, else in the order of their addresses and ids.
"""

from collections import Counter
from collections.abc import Sequence

from kcap.facts.brokers import Server
from kcap.reports.versions.clients import ClientKey, ClientUsage, Row, clients_of, identify_clients
from kcap.reports.versions.diagnoses import diagnose
from kcap.reports.versions.fingerprints import Software
from kcap.reports.versions.profile_store import StoredProfile
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.readiness import ABSENT, DEPRECATED, NO, REMOVED, UNKNOWN, YES, is_named_though_gone
from kcap.reports.versions.release_guess import Guess, guess
from kcap.schema.registry import api_name


def client_row(key: ClientKey, some: Sequence[StoredProfile], callers: ClientUsage, known: Software) -> tuple[Row, list[Row]]:
    """A client, and what breaks on the release."""
    ip, client_id = key
    usage = callers.usage(some, client_id)
    findings, verdict, why = callers.assessed(usage, known)
    row: Row = {
        "client_ip": ip, "client_id": client_id, "software_name": known.name, "software_version": known.version,
        "guessed": known.guessed, "why": known.why, "family": known.family, "is_broker": known.is_broker,
        "connections": len(some), "count": usage.count, "negotiates": usage.probes,
        "apis": callers.apis(usage), "first_ns": usage.first_ns,
        "last_ns": usage.last_ns, "works_with_target": verdict, "works_why": why,
        "brokers": callers.named(usage.servers),
    }  # fmt: skip
    against = [
        {
            "client_ip": ip, "client_id": client_id, "software": " ".join(filter(None, (known.name, known.version))) or None,
            "api": api_name(f.call.key), "api_key": f.call.key, "version": f.call.version, "what": f.what,
            "would_change": f.steps, "why": f.why, "count": f.call.count, "first_ns": f.call.first_ns,
            "last_ns": f.call.last_ns, "example": f.call.example,
            "named_though_gone": is_named_though_gone(f.call, callers.target),
        }
        for f in findings
    ]  # fmt: skip
    return row, against


def broker_row(server: Server, whole: ConnectionProfiles) -> tuple[Row, list[Guess]]:
    """A broker's address: what it offers, and the releases that offer it."""
    offers = list(whole.offers[server].values())
    guesses = [guess(offer.ranges) for offer, _ in offers]
    last, found = offers[-1][0], guesses[-1]
    node, cluster = whole.tracker.brokers.identify(server)
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


def report(
    whole: ConnectionProfiles, captures: Sequence[str], target: str, known: dict[ClientKey, Software] | None = None
) -> Row:
    """The report. `known`: what `whos` found, where it was asked before."""
    clients, against, callers, found_of = [], [], ClientUsage(whole, target), clients_of(whole)
    known = identify_clients(whole, found_of) if known is None else known
    for key, some in found_of.items():
        row, found = client_row(key, some, callers, known[key])
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
    """How many clients that are no brokers work, do not, or unknown."""
    found = Counter(row["works_with_target"] for row in made["clients"] if not row["is_broker"])
    return {name: found[name] for name in (YES, NO, UNKNOWN)}
