"""Addresses that brokers advertise and that cannot serve: one for several brokers, or one that clients never try.

In: classes of exchanges, connections, Metadata and FindCoordinator responses. Out: findings of `wrong-advertised-listener`, and
the servers that stand for several brokers, whose errors of leadership are no moves. Law: a message is read only where counts
give a reason to.
"""

from collections.abc import Collection, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final

from kcap.limits import SERVERS_MOST
from kcap.reports.findings.model import Finding, Found, called, named, seconds, where
from kcap.reports.findings.observed import (
    RESPONSES_READ,
    SERVER,
    Observed,
    Row,
    clients_in,
    rows_by,
    server_of,
    times_of,
    totals,
)
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted

WRONG_BROKER: Final = ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "NOT_COORDINATOR")
"""Errors of a broker that is not the one that the client means."""
OWN_ADDRESS: Final = (
    "Give each broker an address of its own in advertised.listeners: clients send a request to the leader or the coordinator, "
    "so that a load balancer may stand before bootstrap.servers, and before the brokers only where each has a name or port of "
    "its own there."
)
"""Advice where several brokers advertise one address."""
UNRESOLVED: Final = (
    "The name may not resolve on the clients' hosts: try it there (getent hosts NAME), and compare advertised.listeners with "
    "what these hosts can resolve and reach. Their logs say which it is."
)
"""Advice where clients never try an address."""


def shared(seen: Observed) -> dict[tuple[str, int], list[int]]:
    """Host and port -> the ids of the brokers, two or more, that one Metadata response has there.

    A broker that gets another id has both in the capture and never in one response.
    """
    ids: dict[tuple[str, int], set[int]] = {}
    for row in seen.run(seen.brokers):
        ids.setdefault((row["host"], row["port"]), set()).add(row["broker_id"])
    several = {place for place, some in ids.items() if len(some) > 1}
    if not several:
        return {}
    found: dict[tuple[str, int], list[int]] = {}
    calls = seen.calls_of(api="Metadata", outcome="answered")
    for call in seen.prepared(sorted(calls, key=lambda call: call["first_ns"])[: 2 * RESPONSES_READ]):
        here: dict[tuple[str, int], set[int]] = {}
        for broker in seen.message(call, "response").get("brokers") or ():
            here.setdefault((broker.get("host"), broker.get("port")), set()).add(broker.get("nodeId"))
        for place, nodes in here.items():
            if place in several and len(nodes) > 1:
                found[place] = sorted({*found.get(place, ()), *nodes})
    return found


def is_address(host: str) -> bool:
    """Whether a host is an IP address."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def servers_shared(seen: Observed) -> dict[tuple[str, int], list[int]]:
    """The same by server of the capture: of an advertised name, the servers with its port."""
    found: dict[tuple[str, int], list[int]] = {}
    advertised = seen.once(shared)
    for call in seen.calls if advertised else ():
        place = call["server_ip"], call["server_port"]
        for (host, port), nodes in advertised.items():
            if place == (host, port) or (place[1] == port and not is_address(host)):
                found[place] = nodes
    return found


def behind_shared(seen: Observed) -> frozenset[str]:
    """Client ids that get errors of such servers: what leaders and coordinators seem to do to them comes of the address."""
    places = seen.once(servers_shared)
    return frozenset(
        call["client_id"] for call in (seen.calls if places else ())
        if call["client_id"] and call["error"] in WRONG_BROKER and (call["server_ip"], call["server_port"]) in places
    )  # fmt: skip


def elsewhere(seen: Observed, parts: Any) -> Any:
    """Partitions without those of such servers."""
    for ip, port in seen.once(servers_shared):
        parts = parts.filter((parts.server_ip != ip) | (parts.server_port != port))
    return parts


def clients_given(seen: Observed, places: Collection[tuple[str, int]]) -> dict[tuple[str, int], set[str]]:
    """Of addresses, as host and port, the clients of servers whose Metadata responses name them; of some responses of each. Who
    sends no Metadata request there gets addresses by FindCoordinator."""
    calls = rows_by(seen.calls_of(api="Metadata", outcome="answered"), SERVER)
    some = [call for mine in list(calls.values())[:SERVERS_MOST] for call in mine[:RESPONSES_READ]]
    found: dict[tuple[str, int], set[str]] = {}
    for call in seen.prepared(some):
        named_here = {(one.get("host"), one.get("port")) for one in seen.message(call, "response").get("brokers") or ()}
        for place in named_here.intersection(places):
            clients = seen.clients_of(server_ip=call["server_ip"], server_port=call["server_port"])
            found.setdefault(place, set()).update(clients)
    return found


def one_for_several(seen: Observed) -> Found:
    """Several brokers that advertise one address, as a load balancer's: a request for one of them reaches any."""
    places = seen.once(servers_shared)
    parts = seen.parts
    for (ip, port), nodes in sorted(places.items())[:SERVERS_MOST]:
        calls = seen.calls_of(server_ip=ip, server_port=port)
        mine = parts.filter(parts.server_ip == ip, parts.server_port == port, parts.error.isin(list(WRONG_BROKER)))
        (refused,) = seen.run(
            mine.aggregate(n=mine.count(), first_ns=mine.request_first_ns.min(), last_ns=mine.request_first_ns.max())
        )
        whole = [call for call in calls if call["error"] in WRONG_BROKER]
        errors = refused["n"] + sum(call["n"] for call in whole if call["error"] == WRONG_BROKER[-1])
        every, clients = totals(calls), clients_in(calls)
        since = refused if refused["n"] else every
        yield Finding(
            f"brokers {named(nodes)} advertise one address, {ip}:{port}: a request for one of them may reach another, and "
            + (f"{counted(errors, 'error')} in responses say so" if errors else "no error shows that one did"),
            {"server": f"{ip}:{port}", "client_ids": clients}, errors or every["n"],
            where(f"error in {{{', '.join(WRONG_BROKER)}}}" if errors else "", server_ip=ip, server_port=port),
            since["first_ns"], since["last_ns"], 0,
            {"brokers": nodes, "errors": errors}, None if errors else "info", 0.95 if errors else 0.6, OWN_ADDRESS,
        )  # fmt: skip


def never_tried(seen: Observed, finds: Sequence[Row], limit: Mapping[str, float]) -> Found:
    """Clients that look for their coordinator again and again, get it, and never connect to it.

    `finds`: the lookups, as classes of exchanges, of clients that send nothing but what comes before such a connection. No
    connection of their hosts leads to another server at that port. In a capture taken at one of several brokers the
    coordinator's connections may be missing. Where all that the responses name are coordinators, the one that gave them is
    among these; otherwise it is a problem where the same one is looked up as often as libraries do that cannot reach it.
    """
    some = {
        client: rows for client, rows in rows_by(finds, "client_id").items()
        if totals(rows)["n"] >= limit["lookups"] and lasting(rows) >= limit["seconds"] * 1e9
    }  # fmt: skip
    by: dict[str, list[Row]] = {}
    for row in seen.prepared([row for rows in some.values() for row in rows]):
        if named_here := coordinators(seen.message(row, "response")):
            by.setdefault(server_of(row), []).append(row | {"places": named_here})
    if not by:
        return
    every = {f"{row['host']}:{row['port']}" for row in seen.run(seen.brokers)}
    links, same = seen.every_link, one_key(seen, sorted(some))
    for server, rows in sorted(by.items())[:SERVERS_MOST]:
        clients, whole = clients_in(rows), totals(rows)
        places = sorted({place for row in rows for place in row["places"]})
        hosts = sorted({link["client_ip"] for one in clients for link in seen.links_of.get(one, ())})
        ports = sorted({int(place.rpartition(":")[2]) for place in places})
        tried = links.filter(links.client_ip.isin(hosts), links.server_port.isin(ports))
        tried = tried.select("server_ip", "server_port").distinct()
        if server in places or any(server_of(row) != server for row in seen.run(tried.limit(2))):
            continue
        proven = every <= {*places}
        again = any(
            one in same and totals(mine)["n"] * 1e9 >= limit["a_second"] * lasting(mine)
            for one, mine in rows_by(rows, "client_id").items()
        )
        who = called(clients[0]) if len(clients) == 1 else f"{counted(len(clients), 'client')} ({named(clients)})"
        yield Finding(
            f"{who} got {'the coordinator' if len(places) == 1 else 'the coordinators'} {named(places)} "
            f"{counted(whole['n'], 'time')} from {server} in {seconds(lasting(rows))}, and never connected there",
            {"server": server, "client_ids": clients, "client_ips": hosts}, whole["n"],
            where("api == FindCoordinator", server_ip=rows[0]["server_ip"], server_port=rows[0]["server_port"]),
            whole["first_ns"], whole["last_ns"], lasting(rows),
            {"lookups": whole["n"], "clients": len(clients), "advertised": places},
            None if proven else "medium" if again else "info", 0.85 if proven else 0.6 if again else 0.4, UNRESOLVED,
        )  # fmt: skip


def lasting(rows: Sequence[Row]) -> int:
    """The time from the first of some classes of exchanges to the last, ns."""
    first, last = times_of(rows)
    return last - first


def one_key(seen: Observed, clients: Sequence[str]) -> set[str]:
    """Of some clients those whose first lookups of coordinators are of one group or transactional id: a tool that lists groups
    looks each up."""
    table = seen.exchanges
    table = table.filter(table.client_id.isin(list(clients)), table.api == "FindCoordinator", table.error == "NONE")
    order = {"group_by": "client_id", "order_by": ["request_first_ns", "connection", "exchange"]}
    table = table.mutate(place=functions(table).row_number().over(**order))
    table = table.filter(table.place < RESPONSES_READ)
    keys: dict[str, set[str]] = {}
    rows = seen.run(table.select("client_id", "connection", "exchange", "request_first_ns"))
    for row in seen.prepared(rows):
        request = seen.message(row, "request")
        keys.setdefault(row["client_id"], set()).update(request.get("coordinatorKeys") or [str(request.get("key"))])
    return {client for client, found in keys.items() if len(found) == 1}


def coordinators(response: Row) -> tuple[str, ...]:
    """Hosts and ports that a FindCoordinator response names."""
    some = response.get("coordinators") or ([response] if response.get("host") else [])
    return tuple(sorted({f"{one['host']}:{one['port']}" for one in some if one.get("host") and one.get("port", -1) > 0}))
