"""Connections that fail: refused, closed before any response or at the same request each time, or without Kafka behind them."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from kcap.kafka.proxy_header import NAME as PROXIED
from kcap.limits import NAMES_MOST, SERVERS_MOST
from kcap.reports.definition import at_localhost, at_usual_port, is_own
from kcap.reports.findings.access import OPENING, served_without_login
from kcap.reports.findings.leaders import gone
from kcap.reports.findings.model import Finding, Found, called, connected, named, picking, rule, where
from kcap.reports.findings.network import ENDS
from kcap.reports.findings.observed import (
    LASTED,
    SERVER,
    Observed,
    Row,
    clients_in,
    cut_short,
    in_groups,
    in_wrong_version,
    rows_by,
    server_of,
)
from kcap.reports.findings.outages import not_accepted
from kcap.reports.findings.served import answering, lives, waits_for_records
from kcap.reports.recorded import functions
from kcap.reports.text import NO_PROXY_HEADER, size
from kcap.reports.text import count as counted

SECOND_NS = 1_000_000_000
HANDSHAKE_PACKETS = 6
"""Packets of a server up to the end of a TLS handshake, few of which are more than acknowledgements."""
NEAR_CLIENT = (
    "Several servers do this to one host: look for what its connections have in common, such as a firewall, a NAT gateway or a "
    "proxy on the way. In Wireshark compare the TTL (ip.ttl) of the RST with that of the server's other packets."
)
"""Advice where connections of one host to several servers are reset."""


@rule(
    "closed-at-request", "high", 0.75,
    needs="requests responses",
    looks_at="connections of a client that a broker closes at requests of the same API, hardly any of which it answers, while "
    "it answers other requests, or soon after Produce requests with acks=0",
    advice="Look in the broker's log at these times for the request that it does not accept, such as one larger than "
    "socket.request.max.bytes (InvalidReceiveException) or one that it cannot read.",
    instead="a proxy between client and broker that closes the connection; a broker that fails at this request",
    connections=5, seconds=2, answered=0.2,
)  # fmt: skip
def closed_at_request(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Requests at which a broker closes the connection each time.

    The broker closed at the first request of a connection that has no response; requests behind it do not count. Nor does a
    Fetch that waits for records: nothing was wrong with it until its connection was closed. A Produce request with acks=0 has
    no response: a broker that refuses one closes its connection at once. More than the share `answered` of a client's requests
    must end so.
    """
    if seen.calls_of(api="Produce", outcome="one_way"):
        from kcap.reports.findings.one_way import closed_at_one_way  # for captures with such requests

        yield from closed_at_one_way(seen, limit)
    if not any(call["reason"] in ("fin", "rst") and call["api"] not in OPENING for call in seen.calls):
        return
    table = seen.exchanges
    dead = table.filter(
        cut_short(table) & table.client_id.notnull(), ~seen.once(gone), ~in_wrong_version(table), ~waits_for_records(table),
        table.connection.isin(seen.closed_by_server),
    )  # fmt: skip
    order = {"group_by": "connection", "order_by": "exchange"}
    dead = dead.mutate(place=functions(dead).row_number().over(**order))
    dead = dead.filter(dead.place == 0, ~dead.api.isin(list(OPENING)))
    sent_ns = dead.request_first_ns
    keys = ("client_id", "server_ip", "server_port", "api")
    groups = dead.group_by(*keys).aggregate(
        n=dead.count(), least=dead.request_bytes.min(), first_ns=sent_ns.min(), last_ns=sent_ns.max()
    )
    open_, picked = served_without_login(seen), picking(seen, dead, *keys)
    lived = cache(partial(answering, seen))
    most = cache(partial(largest_answered, seen))
    for row in seen.run(groups.filter(groups.n >= int(limit["connections"]))):
        place = {"server_ip": row["server_ip"], "server_port": row["server_port"]}
        mine = seen.calls_of(**place, outcome="answered", client_id=row["client_id"])
        served = sum(call["n"] for call in mine if call["api"] == row["api"])
        lasting = row["last_ns"] - row["first_ns"] >= limit["seconds"] * 1e9
        if not lasting or not lives(lived(*place.values()), row) or served > limit["answered"] * row["n"]:
            continue
        if tuple(place.values()) not in open_ and not {call["api"] for call in mine} - set(OPENING):
            continue  # a listener that wants a login
        largest = most(*place.values(), row["api"])
        large = f" of {size(row['least'])} or more" if row["least"] > 2 * largest > 0 else ""
        server = server_of(row)
        yield Finding(
            f"{server} closed {counted(row['n'], 'connection')} of {called(row['client_id'])} at {row['api']} requests{large}"
            f", and answered {served or 'none'}",
            {"client_id": row["client_id"], "server": server}, row["n"],
            where(f"api == {row['api']}", "outcome == unanswered", picked(row), client_id=row["client_id"], **place),
            row["first_ns"], row["last_ns"], 0,
            {"closed": row["n"], "smallest_bytes": row["least"], "answered_bytes": largest},
        )  # fmt: skip


@rule(
    "connection-reset", "medium", 0.6,
    needs="requests responses",
    encrypted=True,
    looks_at="connections in use that a server resets (RST) while requests are in flight and its other connections go on; for "
    "TLS without keys, connections whose last packet is such a RST, with data of the client that was never acknowledged",
    advice="Look in the broker's log at these times. If it has no entry, something on the path may have sent the RST, such as "
    "a firewall, a load balancer or a proxy: in Wireshark, compare its TTL (ip.ttl) with that of the server's other packets.",
    instead="a broker that closes a connection with unread requests, for example at a failed request or a limit of "
    "connections; if TLS hides what was sent, a client that was closing the connection itself",
    sources="RFC 9293 section 3.10.7",
    connections=2, answered=10,
)  # fmt: skip
def connection_reset(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Connections that worked and were then reset.

    A broker that stops ends all of its connections. It did not stop if other connections that were open before got a response
    after the reset. If the broker closes at a request that it never answers for this client, `closed-at-request` reports it.
    """
    yield from sealed_resets(seen, limit)
    if not any(call["reason"] == "rst" and call["api"] not in OPENING for call in seen.calls):
        return
    table, links = seen.exchanges, seen.connections
    links = links.filter((links.ended == "rst") & (links.closed_by == "server")).select("connection", "closed_ns")
    dead = table.filter(
        (table.outcome == "unanswered") & (table.reason == "rst") & table.client_id.notnull(),
        ~seen.once(gone), ~in_wrong_version(table), ~table.api.isin(list(OPENING)),
    ).inner_join(links, "connection")  # fmt: skip
    keys = ("client_id", "client_ip", "server_ip", "server_port", "connection", "closed_ns")
    dead = dead.group_by(*keys).aggregate(
        waiting=dead.count(), first_ns=dead.request_first_ns.min(), api=dead.api.argmin(dead.exchange)
    )
    good = table.filter(table.outcome == "answered")
    spans = good.group_by("connection", "server_ip", "server_port").aggregate(
        answered=good.count(), at_ns=good.request_first_ns.min(), done_ns=good.response_first_ns.max()
    )
    used = dead.inner_join(
        spans.filter(spans.answered >= int(limit["answered"])).select("connection", "answered"), "connection"
    )
    served = {(call["client_id"], call["api"]) for call in seen.calls_of(outcome="answered")}
    found = seen.run(used.semi_join(while_others_went_on(used, spans), "connection"))
    rows = [row for row in found if (row["client_id"], row["api"]) in served]
    often = [
        row for some in rows_by(rows, ("client_id", "client_ip")).values() if len(some) >= limit["connections"] for row in some
    ]
    for some in by_common_end(often):
        clients, servers = clients_in(some), sorted({server_of(row) for row in some})
        hosts = sorted({row["client_ip"] for row in some})
        waiting, one = sum(row["waiting"] for row in some), len(servers) == 1
        client, host = clients[0] if len(clients) == 1 else None, hosts[0] if len(hosts) == 1 < len(clients) else None
        whose = called(client) if client else f"{counted(len(clients), 'client')} ({named(clients)})"
        yield Finding(
            f"{servers[0] if one else counted(len(servers), 'server')} reset {counted(len(some), 'connection')} of {whose} "
            f"with {counted(waiting, 'request')} on the way, while {'its' if one else 'their'} other connections went on",
            {"client_id": client, "client_ids": [] if client else clients,
             "client_ips": hosts, "server": servers[0] if one else None},
            len(some),
            where("outcome == unanswered", connected(some), client_id=client, client_ip=host,
                  **({name: some[0][name] for name in SERVER} if one else {})),
            min(row["first_ns"] for row in some), max(row["closed_ns"] for row in some),
            sum(max(row["closed_ns"] - row["first_ns"], 0) for row in some),
            {"reset": len(some), "unanswered": waiting, "answered_before": sum(row["answered"] for row in some),
             **({} if one else {"servers": len(servers)})},
            advice=None if one else NEAR_CLIENT,
        )  # fmt: skip


def sealed_resets(seen: Observed, limit: Mapping[str, float]) -> Found:
    """`connection_reset` for TLS without keys: data that nothing acknowledged shows that a request was in flight.

    A server that closes in order sends a FIN first. One that closes with unread data acknowledges in its RST what it received
    (RFC 9293 section 3.10.7; tcp_send_active_reset of Linux); one that knows nothing of the connection does not.
    """
    if ("tls", "syn") not in seen.begun and ("tls", "midstream") not in seen.begun:
        return
    links = seen.connections
    links = links.filter(links.phase == "tls", links.exchanges == 0, links.tls_alerts.length().fill_null(0) == 0)
    # a response takes a packet of its own, as most packets of a handshake do
    dead = links.filter(
        links.ended == "rst", links.closed_by == "server", links.last_ns == links.closed_ns, links.client_unacked_ns.notnull(),
        links.server_packets >= int(limit["answered"]) + HANDSHAKE_PACKETS,
    )  # fmt: skip
    alive = links.filter(links.ended != "rst", links.client_unacked_ns.isnull(), links.server_packets > HANDSHAKE_PACKETS)
    spans = alive.select("connection", *SERVER, at_ns="first_ns", done_ns="last_ns")
    dead = dead.semi_join(while_others_went_on(dead, spans), "connection")
    groups = in_groups(dead, ENDS, LASTED, lost_ns=dead.client_unacked_ns.sum(), closed_ns=dead.closed_ns.min())
    groups = groups.filter(groups.n >= int(limit["connections"]))
    for row in seen.first(groups, ("first_ns", *ENDS), SERVERS_MOST, "servers_that_close"):
        yield Finding(
            f"{server_of(row)} reset {counted(row['n'], 'encrypted connection')} of {row['client_ip']} with data of the client "
            "that was not acknowledged, while its other connections went on",
            {"server": server_of(row), "client_ips": [row["client_ip"]]}, row["n"], "", row["closed_ns"], row["last_ns"],
            row["lost_ns"], {"reset": row["n"]}, None, 0.5,
        )  # fmt: skip


def by_common_end(rows: Sequence[Row]) -> list[list[Row]]:
    """Connections in groups by what they have in common: a host of clients that several servers reset, else the server."""
    found: list[list[Row]] = []
    rest: list[Row] = []
    for some in rows_by(rows, "client_ip").values():
        several = len({server_of(row) for row in some}) > 1
        (found.append if several else rest.extend)(some)
    return found + list(rows_by(rest, SERVER).values())


def largest_answered(seen: Observed, ip: str, port: int, api: str) -> int:
    """Bytes of the largest request of an API that a server answered; 0 without any."""
    calls = seen.calls_of(server_ip=ip, server_port=port, outcome="answered", api=api)
    return max((call["most_request_bytes"] or 0 for call in calls), default=0)


def hosts_of(row: Row) -> str:
    """The hosts of a server's finding."""
    return str(row["client_ip"]) if row["hosts"] == 1 else f"{row['hosts']:,} hosts"


def at_server(seen: Observed, links: Any, row: Row, column: str = "client_ip") -> list[str]:
    """The values of a column of connections to the server of a finding, as many as a finding names."""
    mine = links.filter(links.server_ip == row["server_ip"], links.server_port == row["server_port"], links[column].notnull())
    return [one[column] for one in seen.run(mine.select(column).distinct().order_by(column).limit(NAMES_MOST))]


def closed_unanswered(seen: Observed) -> Any:
    """The connections of Kafka clients that a server closed, without a byte of it in the capture or missing there."""
    links = seen.connections
    return links.filter(
        links.phase == "kafka", links.began == "syn", links.closed_by == "server", links.server_captured == 0,
        links.server_missing == 0,
    )  # fmt: skip


def while_others_went_on(resets: Any, spans: Any) -> Any:
    """Of `resets` the connections at whose `closed_ns` some connection of their server was under way: one of `spans` that had
    begun (`at_ns`) and got a response later (`done_ns`). In one order of time, since pairs of connections may be too many.
    """
    ibis = functions(spans)
    server = ["server_ip", "server_port"]
    begun = spans.select(*server, "at_ns", "done_ns", connection=ibis.null("string"))
    ends = resets.select(*server, "connection", at_ns="closed_ns", done_ns=ibis.null("int64"))
    walk = ibis.union(begun, ends.select(*server, "at_ns", "done_ns", "connection"), distinct=False)
    walk = walk.mutate(reached=walk.done_ns.max().over(ibis.window(group_by=server, order_by=["at_ns"], rows=(None, 0))))
    return walk.filter(walk.connection.notnull(), walk.reached > walk.at_ns).select("connection")


@rule(
    "closed-at-once", "medium", 0.7,
    needs="beginnings responses",
    looks_at="connections that a server accepts and closes without a response to their ApiVersions request, or soon and before "
    "the client sends a byte, while it answers other connections of the same host",
    advice="Look in the broker's log for limits (max.connections.per.ip, max.connections, max.connection.creation.rate), and "
    "see what the client's host opens these connections for.",
    instead="a proxy or load balancer without a broker behind it; a listener that is being shut down",
    sources="KIP-308, KIP-402, KIP-511, KIP-612",
    connections=5, seconds=2,
)  # fmt: skip
def closed_at_once(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A server that serves some connections of a host and closes others before it responds to anything.

    The closed connections begin with ApiVersions, which brokers answer in every version (KIP-511); another first request may
    itself be what they refuse. A broker that has reached a limit closes within moments, often before a client has sent
    anything. A broker that closes an idle connection (connections.max.idle.ms) waits for longer than `seconds`.
    """
    if not seen.some_cut_short and ("empty", "syn") not in seen.begun:
        return
    table, links = seen.exchanges, seen.connections
    opening = table.filter((table.api == "ApiVersions") & (table.exchange == 1) & (table.outcome == "unanswered"))
    silent = links.filter(
        links.phase == "empty", links.began == "syn", links.closed_by == "server", links.ended.isin(["fin", "rst"]),
        links.server_packets > 1, links.client_captured + links.client_missing + links.server_captured == 0,
        links.last_ns - links.first_ns <= int(limit["seconds"] * SECOND_NS),
    )  # fmt: skip
    dead = functions(links).union(closed_unanswered(seen).semi_join(opening, "connection"), silent)
    groups = in_groups(dead, ENDS, LASTED, clients=dead.client_id.nunique(), client_id=dead.client_id.min(),
                       early=dead.count(where=dead.phase == "empty"))  # fmt: skip
    groups = groups.filter(groups.n >= int(limit["connections"]))
    answered = seen.exchanges.filter(seen.exchanges.outcome == "answered").semi_join(groups, list(ENDS))
    spans = answered.group_by(*ENDS).aggregate(
        began_ns=answered.request_first_ns.min(), ended_ns=answered.response_last_ns.max()
    )
    both = groups.inner_join(spans, list(ENDS))
    both = both.filter(both.began_ns <= both.first_ns + SECOND_NS, both.ended_ns >= both.last_ns - SECOND_NS)
    servers = both.group_by(*SERVER).aggregate(
        n=both.n.sum(), hosts=both.count(), client_ip=both.client_ip.min(), clients=both.clients.sum(),
        client_id=both.client_id.min(), first_ns=both.first_ns.min(), last_ns=both.last_ns.max(), early=both.early.sum(),
    )  # fmt: skip
    dead = dead.semi_join(both, list(ENDS))
    picked = picking(seen, opening.semi_join(dead, "connection"), *SERVER)
    for row in seen.first(servers, ("first_ns", *SERVER), SERVERS_MOST, "servers_that_close"):
        server, place = server_of(row), {"server_ip": row["server_ip"], "server_port": row["server_port"]}
        more = f" and {row['clients'] - 1} more" if row["clients"] > 1 else ""
        clients = at_server(seen, dead, row, "client_id")
        early = row["early"]  # no request names the client of these
        which = f", {'all' if early == row['n'] else f'{early:,}'} of them before a request" if early else ""
        yield Finding(
            f"{server} accepted and closed {counted(row['n'], 'connection')} of {hosts_of(row)}"
            + ("" if early else f" ({row['client_id']}{more})") + f" without a response{which}, while it answered others",
            {"server": server, "client_ips": at_server(seen, dead, row), "client_ids": clients}, row["n"] - early or row["n"],
            where("api == ApiVersions", "exchange == 1", "outcome == unanswered", picked(row), **place) if clients else "",
            row["first_ns"], row["last_ns"], 0,
            {"connections": row["n"], **({"early": early} if early else {"clients": row["clients"]})},
        )  # fmt: skip


@rule(
    "connect-failed", "high", 0.8,
    needs="beginnings",
    looks_at="connections to Kafka ports that are refused or never answered, from hosts of which the server accepts no "
    "connection",
    advice="See whether a broker listens at that address and port, whether bootstrap.servers is right, and which firewalls are "
    "on the path. If the client uses a name, check all addresses that it resolves to (KIP-235).",
    instead="a broker that was down while the capture ran; a health check or a scanner; if the hosts reach other servers, one "
    "of several addresses of a name, which costs only time",
    sources="RFC 9293 section 3.5",
    connections=3,
)  # fmt: skip
def connect_failed(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A host that cannot connect to a Kafka port. Addresses that Metadata responses advertise belong to
    `wrong-advertised-listener`.

    The capture does not show which program tried to connect. The finding is medium if all of the hosts get responses from other
    servers, since their clients may have continued there. It is also medium if the port responds over the other of IPv4 and
    IPv6, since a name may have addresses of both; for `localhost`, that is info.
    """
    links = seen.connections
    kafka = {call["server_port"] for call in seen.calls}
    calls = links.filter(not_accepted(links), at_usual_port(links) | links.server_port.isin(sorted(kafka)))
    calls = calls.filter(~at_localhost(calls, seen.brokers))
    groups = in_groups(calls, ENDS, LASTED, refused=calls.count(where=calls.server_packets == 1))
    groups = groups.filter(groups.n >= int(limit["connections"]))
    # what sends requests was accepted, also where the capture has no packet of the server; so were brokers and controllers, of
    # which connections without a request cannot be distinguished from those of clients
    every = seen.every_link
    accepted = every.filter((every.server_packets > 1) | (every.phase != "empty"))
    groups = groups.anti_join(accepted, list(ENDS))
    # where no packet comes back though requests are sent, the other direction was not captured
    unheard = links.filter(links.phase != "empty", links.server_packets == 0)
    groups = groups.filter((groups.refused > 0) | ~groups.client_ip.isin(unheard.client_ip))
    groups = groups.anti_join(seen.brokers, [groups.server_ip == seen.brokers.host, groups.server_port == seen.brokers.port])
    servers = groups.group_by(*SERVER).aggregate(
        n=groups.n.sum(), hosts=groups.count(), client_ip=groups.client_ip.min(), refused=groups.refused.sum(),
        first_ns=groups.first_ns.min(), last_ns=groups.last_ns.max(),
    )  # fmt: skip
    calls = calls.semi_join(groups, list(ENDS))
    served = [link for link in seen.links if link["exchanges"] and link["response_bytes"]]
    working = {link["client_ip"] for link in served}
    by_port: dict[tuple[int, bool], set[str]] = {}
    for link in served:
        by_port.setdefault((link["server_port"], ":" in link["server_ip"]), set()).add(link["server_ip"])
    for row in seen.first(servers, ("first_ns", *SERVER), SERVERS_MOST, "servers_that_refuse"):
        server, mine = server_of(row), at_server(seen, calls, row)
        beside = working.issuperset(mine) and row["hosts"] == len(mine)
        other = by_port.get((row["server_port"], ":" not in row["server_ip"]), ())  # of IPv6 beside IPv4, or the reverse
        how = (
            "refused" if row["refused"] == row["n"] else "did not answer" if not row["refused"] else "refused or did not answer"
        )
        yield Finding(
            f"{server} {how} {counted(row['n'], 'connection')} of {hosts_of(row)}, and accepted none"
            + (f"; other brokers respond to {'it' if row['hosts'] == 1 else 'them'}" if beside else "")
            + (f"; this port responds by {'IPv4' if ':' in row['server_ip'] else 'IPv6'}" if other else ""),
            {"server": server, "client_ips": mine}, row["n"], "", row["first_ns"], row["last_ns"], 0,
            {"connections": row["n"], "refused": row["refused"]},
            "info" if is_own(row["server_ip"]) and any(map(is_own, other)) else "medium" if beside or other else None,
            None if row["refused"] == row["n"] else 0.7,
        )  # fmt: skip


@rule(
    "answers-nothing", "high", 0.7,
    needs="beginnings responses",
    looks_at="servers that accept connections, close each at its first request and send no byte in the whole capture; whether "
    "these connections begin with a PROXY protocol header",
    advice="See whether a broker runs behind that address: a proxy or load balancer without one accepts connections and closes "
    "them. Then compare security.protocol of the clients with the listener.",
    instead="a listener that requires SASL or TLS and closes without an alert; a broker that does not accept the version of "
    "the first request; a broker that was being stopped",
    connections=2, often=5, seconds=1,
)  # fmt: skip
def answers_nothing(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A server that accepts connections and never responds. Rules with a more specific cause need a response of some kind."""
    if not seen.some_cut_short:
        return
    links, table = seen.connections, seen.exchanges
    opening = table.filter(cut_short(table) & (table.exchange == 1), ~seen.once(gone))
    dead = closed_unanswered(seen).semi_join(opening, "connection")
    dead = dead.filter(~dead.tls)
    speaks = links.filter((links.server_captured > 0) | (links.server_missing > 0))
    dead = dead.anti_join(speaks, list(SERVER))
    servers = in_groups(
        dead, SERVER, LASTED, clients=dead.client_id.nunique(), client_id=dead.client_id.min(), hosts=dead.client_ip.nunique(),
        client_ip=dead.client_ip.min(), proxied=dead.count(where=dead.detail.fill_null("").startswith(PROXIED)),
    )  # fmt: skip
    lasting = servers.last_ns - servers.first_ns >= int(limit["seconds"] * SECOND_NS)
    servers = servers.filter(servers.n >= int(limit["connections"]), lasting)
    picked = picking(seen, opening.semi_join(dead, "connection"), *SERVER)
    for row in seen.first(servers, ("first_ns", *SERVER), SERVERS_MOST, "servers_that_close"):
        server, one, proxied = server_of(row), row["clients"] == 1, row["proxied"] == row["n"]
        who = called(row["client_id"]) if one else f"{counted(row['clients'], 'client')} of {hosts_of(row)}"
        begin = ", which begin with a PROXY protocol header," if proxied else ""
        yield Finding(
            f"{server} accepted {counted(row['n'], 'connection')} of {who}{begin} and closed each at its first request, "
            "without a response to anything",
            {"client_id": row["client_id"] if one else None, "server": server, "client_ips": at_server(seen, dead, row)},
            row["n"], where("exchange == 1", "outcome == unanswered", picked(row), **{name: row[name] for name in SERVER}),
            row["first_ns"], row["last_ns"], 0, {"connections": row["n"], "clients": row["clients"]},
            None if row["n"] >= limit["often"] else "medium", 0.85 if proxied else None, NO_PROXY_HEADER if proxied else None,
        )  # fmt: skip


@rule(
    "server-not-kafka", "high", 0.85,
    needs="beginnings",
    looks_at="servers that send bytes to Kafka clients, none of which belongs to a Kafka response",
    advice="See what listens at that address and port: an HTTP server or proxy, another service, or a load balancer that "
    "responds in place of a broker that it cannot reach. kcap connections shows the bytes in its columns of skipped bytes.",
    instead="a capture that lacks the beginning of the responses",
    connections=2, bytes=8,
)  # fmt: skip
def server_not_kafka(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A Kafka client whose server speaks another protocol. TLS alerts belong to `tls-plaintext-confusion`."""
    links = seen.connections
    strange = links.filter(
        (links.phase == "kafka") & ~links.tls & (links.began == "syn") & (links.server_captured >= int(limit["bytes"])),
        (links.server_skipped == links.server_captured) & (links.server_missing == 0),
    )  # fmt: skip
    groups = in_groups(
        strange, SERVER, LASTED, most=strange.server_captured.max(), clients=strange.client_id.nunique(),
        client_id=strange.client_id.min(), hosts=strange.client_ip.nunique(), client_ip=strange.client_ip.min(),
    )  # fmt: skip
    groups = groups.filter(groups.n >= int(limit["connections"]))
    spoken = seen.exchanges.filter(seen.exchanges.outcome == "answered")
    for row in seen.first(groups.anti_join(spoken, list(SERVER)), ("first_ns", *SERVER), SERVERS_MOST, "servers_without_kafka"):
        server = server_of(row)
        who = called(row["client_id"]) if row["clients"] == 1 else counted(row["clients"], "client")
        yield Finding(
            f"{server} answers {who} with up to {size(row['most'])} that are no Kafka response, on "
            f"{counted(row['n'], 'connection')}",
            {"client_id": row["client_id"] if row["clients"] == 1 else None, "server": server,
             "client_ips": at_server(seen, strange, row)},
            row["n"], where(server_ip=row["server_ip"], server_port=row["server_port"]), row["first_ns"], row["last_ns"], 0,
            {"connections": row["n"], "response_bytes": row["most"]},
        )  # fmt: skip
