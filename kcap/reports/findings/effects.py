"""Effects of a time in which a broker was away: requests that its clients gave up, batches without a known result.

In: rows of the rules `request-timeout` and `retries-duplicate`. Out: the part of them that such a time explains, as one finding
for each broker. Law: a wait whose longer part lies elsewhere is not explained by it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kcap.limits import EVENTS_MOST
from kcap.reports.findings.absences import Absence, absences, waited_for
from kcap.reports.findings.model import Finding, Found, named, of_clients, these, where
from kcap.reports.findings.observed import Observed, Row, clients_in, rows_by, server_of, times_of
from kcap.reports.text import count as counted

LATE: Final = "outcome == unanswered or error == REQUEST_TIMED_OUT or flags == late"
"""Display filter of requests that are not answered in time."""
AWAY: Final = (
    "See what happened to that broker ({}): its clients did what they are configured to do. If they must not fail meanwhile, "
    "see request.timeout.ms and delivery.timeout.ms, which set how long they wait."
)
"""The next step where the time in which a broker was away explains it."""
REPLICAS_SURE: Final = 0.7
"""How sure it is that writes to other brokers waited for the replicas of one that was away."""


def effects(seen: Observed, held: Mapping[str, list[tuple[Row, Absence]]], limit: Mapping[str, float]) -> Found:
    """One finding of each broker that was away: what its clients gave up meanwhile, there and at brokers that may have waited
    for its replicas.
    """
    for server, pairs in held.items():
        requests, away = [request for request, _ in pairs], pairs[0][1]
        some = [row for one in rows_by(requests, "client_id").values() if goes_on(seen, summed(one)) for row in one]
        if not some:
            continue
        clients, whole = clients_in(some), summed(some)
        between = (
            f"(age_ns >= {limit['milliseconds']:g}ms or outcome != unanswered) and request_first_ns >= {whole['first_ns']} "
            f"and request_first_ns <= {whole['last_ns']}"
        )
        beside = sum(server_of(row) != server for row in some)
        yield Finding(
            f"{counted(len(some), 'request')} of {counted(len(clients), 'client')} ({named(clients)}) "
            f"{'was' if len(some) == 1 else 'were'} not answered in time while {away.words}"
            + (f"; {beside} of them went to other brokers, which may have waited for its replicas" if beside else ""),
            {"server": server, "client_ids": clients}, len(some),
            where(LATE, these(some) or between, of_clients(clients)), whole["first_ns"], whole["last_ns"],
            whole["lost"] + whole["waited"],
            {"requests": len(some), "clients": len(clients), "timed_out": whole["errors"], "longest_wait_ns": whole["longest"],
             "explained_by": away.rule},
            "low", REPLICAS_SURE if 2 * beside > len(some) else None, AWAY.format(away.rule),
        )  # fmt: skip


def apart(
    seen: Observed, chosen: Any, rows: Sequence[Row], away: Sequence[Absence]
) -> tuple[list[Row], dict[str, list[tuple[Row, Absence]]]]:
    """The rows of clients without the requests that waited for a broker that was away, and these requests by that broker."""
    columns = (
        "client_id", "api", "server_ip", "server_port", "connection", "exchange", "request_first_packet", "request_first_ns",
        "request_last_ns", "latency_ns", "age_ns", "error", "acks",
    )  # fmt: skip
    order = ("request_first_ns", "connection", "exchange")
    requests = seen.first(chosen.select(*columns), order, EVENTS_MOST, "requests_given_up")
    held: dict[str, list[tuple[Row, Absence]]] = {}
    rest: dict[str | None, list[Row]] = {}
    known = {row["client_id"] for row in rows}
    brokers = [waited_for(request, away) for request in requests]
    behind = first_held(requests, brokers)
    for request, its in zip(requests, brokers, strict=True):
        if request["client_id"] in known:
            number, before = behind.get(request["connection"], (request["exchange"], None))
            broker = its or (before if number < request["exchange"] else None)
            if broker is None:
                rest.setdefault(request["client_id"], []).append(request)
            else:
                held.setdefault(broker.server, []).append((request, broker))
    concerned = {request["client_id"] for some in held.values() for request, _ in some}
    whole = [row for row in rows if row["client_id"] not in concerned]
    return whole + [summed(some) for client, some in rest.items() if client in concerned], held


def first_held(requests: Sequence[Row], brokers: Sequence[Absence | None]) -> dict[str, tuple[int, Absence | None]]:
    """Connection -> the first of its requests that waited for a broker that was away, and that absence: what was sent behind
    it waits as long, since brokers answer the requests of a connection one after the other."""
    found: dict[str, tuple[int, Absence | None]] = {}
    for request, broker in zip(requests, brokers, strict=True):
        if broker is not None and request["exchange"] <= found.get(request["connection"], (request["exchange"], None))[0]:
            found[request["connection"]] = request["exchange"], broker
    return found


def summed(requests: Sequence[Row]) -> Row:
    """Requests of one client as a row of `request_timeout`, with them as `requests`."""
    first = requests[0]
    ages = [row["age_ns"] for row in requests if row["age_ns"] is not None]
    return {
        "client_id": first["client_id"], "n": len(requests), "requests": requests,
        "errors": sum(row["error"] == "REQUEST_TIMED_OUT" for row in requests),
        "longest": max(ages, default=None), "waited": sum(ages),
        "lost": sum(row["latency_ns"] or 0 for row in requests if row["age_ns"] is None),
        "apis": len({row["api"] for row in requests}), "api": min(row["api"] for row in requests),
        "servers": len({row["server_ip"] for row in requests}), "ports": len({row["server_port"] for row in requests}),
        "server_ip": first["server_ip"], "server_port": first["server_port"],
        "first_ns": min(row["request_first_ns"] for row in requests),
        "last_ns": max(row["request_last_ns"] for row in requests),
        "ended_ns": min((row["request_last_ns"] + row["age_ns"] for row in requests if row["age_ns"] is not None), default=0),
    }  # fmt: skip


def goes_on(seen: Observed, row: Row) -> bool:
    """Whether a client sends a request, or its host tries to connect, after it closed its first connection with requests that
    have no response. One that was stopped closes all at once, and tries no more."""
    hosts, tried = {link["client_ip"] for link in seen.links_of.get(row["client_id"], ())}, seen.once(last_tries)
    later = [call["last_ns"] for call in seen.calls_of(client_id=row["client_id"])]
    later += [tried[host] for host in hosts if host in tried]
    return bool(max(later) > row["ended_ns"])


def last_tries(seen: Observed) -> dict[str, int]:
    """Host -> when the last of its connections began that no request names a client of."""
    links = seen.connections.filter(seen.connections.client_id.isnull())
    return {row["client_ip"]: row["last"] for row in seen.run(links.group_by("client_ip").aggregate(last=links.first_ns.max()))}


def batches_together(seen: Observed, rows: Sequence[Row]) -> tuple[list[Finding], list[Row]]:
    """Findings on batches without a known result of several clients of a broker that was away, and the rows of the others."""
    found: list[Finding] = []
    rest: list[Row] = []
    for one, some in by_absence(rows, seen.once(absences)):
        clients = clients_in(some)
        if one is None or len(clients) < 2:
            rest += some
            continue
        count, records = (sum(row[name] or 0 for row in some) for name in ("n", "records"))
        finding = Finding(
            f"{count} batches of {len(clients)} clients ({named(clients)}) had no known result when others followed, "
            f"while {one.words}; without idempotence they may be in the log twice",
            {"server": one.server, "client_ids": clients}, count, "api == Produce", *times_of(some), 0,
            {"batches": count, "records": records, "clients": len(clients)},
        )  # fmt: skip
        found.append(finding)
    return found, rest


def by_absence(rows: Sequence[Row], away: Sequence[Absence]) -> list[tuple[Absence | None, list[Row]]]:
    """Batches without a known result by the broker that was away when they were sent or waited; None for others."""
    spans: dict[str, Absence] = {}
    for one in away:
        known = spans.get(one.server, one)
        spans[one.server] = one._replace(since=min(one.since, known.since), until=max(one.until, known.until))
    found: dict[str, tuple[Absence | None, list[Row]]] = {}
    for row in rows:
        ended = row["ended_ns"] or row["first_ns"]
        within = next((one for one in spans.values() if one.since <= ended and row["last_ns"] <= one.until), None)
        found.setdefault(within.server if within else "", (within, []))[1].append(row)
    return list(found.values())
