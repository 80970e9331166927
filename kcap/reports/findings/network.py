"""The network between clients and brokers: round trips, losses and interruptions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kcap.limits import HOSTS_MOST, MEANWHILE_MOST, STALLED_MOST
from kcap.reports.definition import at_usual_port, group_of, is_broker, of_brokers
from kcap.reports.findings.columns import SUMMED
from kcap.reports.findings.model import Finding, Found, called, connected, named, rule, seconds, where
from kcap.reports.findings.observed import SERVER, Observed, Row, clients_in, rows_by, server_of, times_of
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted
from kcap.reports.text import size

SEALED = " (TLS without keys)"
UNREAD = 0.6
"""How often TLS without keys is Kafka's."""
CLIENTS, BROKERS, HIDDEN = "its brokers", "the other brokers", f"its servers{SEALED}"
"""Connections of clients, of brokers and controllers among each other, and TLS whose exchanges nothing can read: what stands at
the other end."""
PATH = "See the path between the hosts: routes, firewalls, security groups and NAT, and whether the peer's host is up"
CERTIFICATE = "If only large packets are lost (MTU), handshakes stop at the certificate"
WAITS = "Until request.timeout.ms is over, a client waits for the responses of a host that is gone."
NO_ALPN = "00_"
"""How the first part of a JA4 fingerprint ends whose client offers no application protocol (ALPN)."""
UNFILLED = 3
"""If at least one hole in so many is never filled, the holes are taken for packets that the capture lost."""
REPEATS = 3
"""Segments that were sent again on such a connection: one or two are sent again at any time (RFC 8985)."""
STALL_NS = 1_000_000_000
"""So long before the end the last new data was sent: the first retransmission timeouts take as long (RFC 6298)."""
ENDS = ("client_ip", *SERVER)
"""Columns of connections: the host of the client, and the server."""
LARGE = (
    "Large packets may be lost on the path: compare the MTU of interfaces, tunnels and VPNs between them, let ICMP "
    '"fragmentation needed" through (RFC 1191, RFC 4821), or clamp the MSS.'
)
"""Advice where what is small comes through."""
QUEUES = (
    "Packets wait in long queues on the path: look for a link, a traffic shaper, a VPN or a limit of the host or instance that "
    "carries less than is sent, and for what else fills it. Compression (compression.type) and larger batches send less."
)
"""Advice where acknowledgements come late of data that was not lost."""
LOSSY = (
    "Look for loss on the path first, and only then for an interruption: each time that a segment is lost again, the wait "
    "doubles (RFC 6298). Interface errors, full queues, duplex and MTU are what loses single packets."
)
"""Advice where other connections between the hosts lost segments as well."""
REORDERED = 10
"""With so many segments out of order for one that was repeated, the capture or the path is taken to have reordered them: where
packets are lost, some are lost behind the capture point, which sees them twice."""


@rule(
    "slow-network", "medium", 0.9,
    needs="responses requests",
    looks_at="the shortest round trip between client and broker; how late retransmitted data is acknowledged that had not been "
    "lost (D-SACK)",
    advice="Place the client nearer to the brokers (client.rack, KIP-392), or raise batch.size, linger.ms and fetch "
    "sizes to save round trips.",
    instead="a client that is meant to be far away; if acknowledgements are late, a host that stands still now and then",
    sources="RFC 6298, section 2 (round trips above 1 s are rare), RFC 2883",
    milliseconds=20, most_seconds=10, connections=2, usual_seconds=1, spread=3,
    late_milliseconds=400, late_connections=3, late_segments=10, late_seconds=2, late_times=10, needless=0.8, late=0.7,
)  # fmt: skip
def slow_network(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Clients that are far from their brokers.

    A path has one length. The finding is info if the shortest round trips of connections between the same two hosts differ by
    more than `spread`, or are longer than those of almost any network: packets whose times are not in order are more likely.

    Round trips also grow if packets wait in queues on the path. The rule reports that if at least the part `needless` of the
    retransmitted segments arrived twice, and acknowledgements were late by `late_milliseconds`, and by `late_times` the
    shortest round trip, on `late_connections` over `late_seconds`.
    """
    yield from queued(seen, limit)
    by: dict[str, list[Row]] = {}
    for link in seen.links:
        halves = [link[name] for name in ("rtt_ns", "client_rtt_ns") if link[name] is not None]
        if (
            link["client_id"]
            and link["exchanges"]
            and halves
            and limit["milliseconds"] * 1e6 <= sum(halves) <= limit["most_seconds"] * 1e9
        ):
            by.setdefault(link["client_id"], []).append({**link, "round_ns": sum(halves)})
    quickest = quickest_response(seen) if by else {}
    spreads = spread_of_trips(seen) if by else {}
    alike: dict[tuple[str | None, ...], list[Row]] = {}
    for client, links in by.items():
        if len(links) < sum(link["exchanges"] > 0 for link in seen.links_of[client]):
            continue  # some of its connections are quick: it is not the client's place
        if quickest.get(client, 0) < min(link["rtt_ns"] or 0 for link in links) // 2:
            continue  # a response took less than the way there and back: the times of these packets are not in order
        if sum(link["n"] for link in links) < limit["connections"]:
            continue  # one connection may have lost the packets that show its shortest round trip
        trip, hosts = min(link["round_ns"] for link in links), sorted({link["client_ip"] for link in links})
        usual = spreads.get(client, 1.0) <= limit["spread"] and trip <= limit["usual_seconds"] * 1e9
        first, last = times_of(links)
        alike.setdefault((None if usual else "info", *hosts), []).append(
            {
                "client_id": client,
                "trip": trip,
                "first_ns": first,
                "last_ns": last,
                "n": sum(link["exchanges"] for link in links),
            }
        )
    for (severity, *hosts), some in alike.items():
        one, trips = some[0]["client_id"] if len(some) == 1 else None, sorted(row["trip"] for row in some)
        place = hosts[0] if len(hosts) == 1 else counted(len(hosts), "host")
        who = called(one) if one else f"{counted(len(some), 'client')} of {place} ({named(clients_in(some))})"
        takes = seconds(trips[0]) if seconds(trips[0]) == seconds(trips[-1]) else f"{seconds(trips[0])} to {seconds(trips[-1])}"
        count = sum(row["n"] for row in some)
        yield Finding(
            f"each round trip of {who} takes {takes} on the network",
            {"client_id": one, "client_ids": [] if one else clients_in(some), "client_ips": [] if one else hosts}, count,
            where(client_id=one, client_ip=None if one or len(hosts) > 1 else hosts[0]), *times_of(some),
            sum(row["trip"] * row["n"] for row in some), {"round_trip_ns": trips[0], "exchanges": count}, severity,
        )  # fmt: skip


def queued(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Hosts whose packets wait in long queues on the way: nothing is lost, and acknowledgements come late."""
    links = seen.connections
    links = links.filter(
        links.exchanges > 0, links.client_missing == 0, links.server_missing == 0, links.retransmitted > 0,
        links.client_id.notnull(),
    )  # fmt: skip
    ibis = functions(links)
    links = links.mutate(
        late_ns=ibis.greatest(links.client_resent_ns.fill_null(0), links.server_resent_ns.fill_null(0)),
        at_ns=ibis.greatest(links.client_resent_at_ns.fill_null(0), links.server_resent_at_ns.fill_null(0)),
        needless=ibis.least(links.retransmitted, links.spurious.fill_null(0)),
        trip_ns=links.rtt_min_ns.fill_null(0) + links.client_rtt_min_ns.fill_null(0),
    )
    late = links.late_ns >= ibis.greatest(int(limit["late_milliseconds"] * 1e6), links.trip_ns * int(limit["late_times"]))
    hosts = links.group_by("client_ip").aggregate(
        again=links.retransmitted.sum(), needless=links.needless.sum(), n=links.count(where=late),
        late_ns=links.late_ns.max(where=late), first_ns=links.at_ns.min(where=late), last_ns=links.at_ns.max(where=late),
        trip_ns=links.trip_ns.min(where=links.trip_ns > 0), exchanges=links.exchanges.sum(),
    )  # fmt: skip
    hosts = hosts.filter(
        hosts.n >= int(limit["late_connections"]), hosts.needless >= int(limit["late_segments"]),
        hosts.needless >= hosts.again * limit["needless"], hosts.last_ns - hosts.first_ns >= int(limit["late_seconds"] * 1e9),
    )  # fmt: skip
    for row in seen.first(hosts, ("first_ns", "client_ip"), HOSTS_MOST, "hosts_behind_queues"):
        clients = clients_in(link for link in seen.links if link["client_ip"] == row["client_ip"] and link["exchanges"])
        usual = f"; the shortest round trip takes {seconds(row['trip_ns'])}" if row["trip_ns"] else ""
        yield Finding(
            f"data between {row['client_ip']} ({named(clients)}) and its brokers was acknowledged up to "
            f"{seconds(row['late_ns'])} late on {counted(row['n'], 'connection')}, though it had not been lost{usual}",
            {"client_ips": [row["client_ip"]], "client_ids": clients}, row["n"],
            where(client_ip=row["client_ip"]), row["first_ns"] - row["late_ns"], row["last_ns"], 0,
            {"connections": row["n"], "late_ns": row["late_ns"], "round_trip_ns": row["trip_ns"], "retransmitted": row["again"],
             "spurious": row["needless"]},
            None, limit["late"], QUEUES,
        )  # fmt: skip


def spread_of_trips(seen: Observed) -> dict[str, float]:
    """Client id -> the largest ratio between the shortest round trips of two of its connections to one server."""
    table = seen.connections
    table = table.filter(table.client_id.notnull(), table.exchanges > 0)
    trips = table.mutate(round_ns=table.rtt_min_ns.fill_null(0) + table.client_rtt_min_ns.fill_null(0))
    trips = trips.filter(trips.round_ns > 0)
    ways = trips.group_by("client_id", "client_ip", "server_ip").aggregate(
        least=trips.round_ns.min(), most=trips.round_ns.max()
    )
    found: dict[str, float] = {}
    for row in seen.run(ways):
        found[row["client_id"]] = max(found.get(row["client_id"], 1.0), row["most"] / row["least"])
    return found


def quickest_response(seen: Observed) -> dict[str, int]:
    """Client id -> ns of its quickest response."""
    table = seen.exchanges
    chosen = table.filter(table.outcome == "answered", table.latency_ns.notnull(), table.client_id.notnull())
    rows = seen.run(chosen.group_by("client_id").aggregate(least=chosen.latency_ns.min()))
    return {row["client_id"]: row["least"] for row in rows}


@rule(
    "retransmission-bound", "medium", 0.8,
    needs="requests",
    encrypted=True,
    between_brokers=True,
    looks_at="data segments that TCP retransmitted or that came out of order, those that filled a hole a round trip later, and "
    "holes and duplicates that receivers report (SACK, D-SACK), by host of clients and between brokers; TLS without keys if "
    "the client offers no ALPN, which Kafka's clients do not",
    advice="Look for loss on the path: interface errors, full queues, duplex, MTU. Each lost segment costs between a round "
    "trip and 200 ms.",
    instead="a capture point that saw packets twice and out of order; for TLS without keys, another protocol than Kafka",
    segments=10, share=0.004, holes=2, copies=0.2,
)  # fmt: skip
def retransmission_bound(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Hosts whose packets are lost on the way.

    Retransmitted segments alone prove no loss, since tail loss probes repeat segments as well (RFC 8985). Segments that a
    receiver reports as duplicates (D-SACK) were not lost; others were, if it reports some and the capture lacks nothing. Holes
    prove loss: a capture behind it sees segments out of order that fill a hole a round trip later, and receivers report holes.

    A hole that nothing fills is a packet that the capture lost, so connections with missing bytes prove nothing. Neither do
    segments out of order with hardly any retransmission for a loss: receive queues of a network card and several paths reorder
    as well. If more than the part `copies` of a connection's packets repeats data, the capture has packets twice (several
    interfaces, a mirror port), and retransmissions only prove loss where receivers report holes.
    """
    missing = seen.quality["gaps"]
    stalled = {name: Counter[tuple[str, str]]() for name in ("packets", "retransmitted", "sacked")}
    for row in seen.once(stalled_connections):
        for name, sums in stalled.items():
            sums[row["client_ip"], kind_of(row)] += row[name]
    by: dict[tuple[str, str], list[Row]] = {}
    for link in (*(link for link in seen.links if link["exchanges"]), *other_links(seen)):
        by.setdefault((link["client_ip"], kind_of(link)), []).append(once(link, limit))
    for (host, kind), links in by.items():
        readable = kind != HIDDEN
        names = "packets", "retransmitted", "out_of_order", "filled", "recovered", "sacked", "spurious"
        packets, again, holes, filled, recovered, sacked, spurious = (
            max(sum(link[name] or 0 for link in links) - (stalled[name][host, kind] if name in stalled else 0), 0)
            for name in names
        )
        lost = max(again - spurious, 0) + recovered
        silent = sum(max(link["retransmitted"] - link["spurious"], 0) for link in links if link["spurious"])
        unreported = 0 if missing else min(silent, again - spurious)
        seen_lost = max(sacked, recovered) >= limit["holes"] or unreported >= limit["segments"]
        reported = seen_lost and lost >= limit["segments"] and lost >= limit["share"] * packets
        some = filled >= limit["holes"] and again + filled >= max(limit["segments"], limit["share"] * packets)
        if reported or some:
            clients = sorted(
                {link["client_id"] for link in links if link["client_id"] and link["retransmitted"] + link["out_of_order"]}
            )
            displaced = not reported and filled >= REORDERED * lost
            proven = reported or (UNFILLED * missing < holes and not displaced)
            ends = f"{host} ({named(clients)}) and {kind}" if readable else f"{host} and {kind}"
            reports = f"receivers reported {counted(sacked, 'hole')} and {counted(spurious, 'duplicate')}"
            seen_at = f"{counted(holes, 'segment')} came out of order" if holes else reports
            before = f", {recovered} of them for packets that were lost before the capture point" if recovered else ""
            maybe = f"{counted(lost, 'segment')} may have been lost" if lost else "no segment is known to be lost"
            yield Finding(
                f"{holes} of {packets:,} packets between {ends} came out of order, and {maybe}"
                if displaced
                else f"{again + recovered} of {packets:,} packets between {ends} were retransmissions{before}, {seen_at}",
                {"client_ips": [host], "client_ids": clients}, holes if displaced else again + recovered,
                where(client_ip=host) if readable else "",
                min(link["first_ns"] for link in links), max(link["last_ns"] for link in links), 0,
                {"retransmitted": again, "recovered": recovered, "spurious": spurious, "out_of_order": holes, "filled": filled,
                 "sacked": sacked, "packets": packets, "gaps": missing},
                None if proven else "info", None if readable else UNREAD,
                "Reordering alone costs little. Several paths (ECMP, bonded links), parallel receive queues and the capture "
                "itself reorder packets. If round trips take less than 3 ms, loss looks the same: capture at the sender, too."
                if displaced else None,
            )  # fmt: skip


def once(link: Row, limit: Mapping[str, float]) -> Row:
    """A row of connections, without retransmissions if their packets were captured twice and receivers report no loss."""
    twice = link["retransmitted"] + link["duplicated"] > limit["copies"] * link["packets"]
    return {**link, "retransmitted": 0} if twice and link["sacked"] < limit["segments"] else link


def on_paths(links: Any) -> Any:
    """The connections that show what passes between two hosts: those with exchanges, of brokers among each other as well, and
    `hidden` ones; all of their bytes are in the capture."""
    return links.filter(path_shown(links))


def path_shown(links: Any) -> Any:
    """The same as a condition."""
    return (links.client_missing == 0) & (links.server_missing == 0) & ((links.exchanges > 0) | hidden(links))


def stalled_connections(seen: Observed) -> list[Row]:
    """Connections on which one side sends the same data again and again until the end, and gets no acknowledgement.

    A broker that is slow or stopped acknowledges: its kernel does. What is sent when the capture ends has no acknowledgement
    yet either, so that the last data has to be older than some timeouts. Packets behind the end that the other side gave the
    connection prove nothing: copies of a capture whose clock is behind come then. Data that is lost before the capture point
    shows as a hole that nothing fills: where the receiver reports one (SACK), it lacks the data as well (`hole`: its bytes).
    """
    links, table = seen.every_link, seen.every
    behind_ns = links.last_ns - links.closed_ns.fill_null(links.last_ns)
    links = links.mutate(
        client_unacked_ns=links.client_unacked_ns - (links.closed_by == "server").ifelse(behind_ns, 0),
        server_unacked_ns=links.server_unacked_ns - (links.closed_by == "client").ifelse(behind_ns, 0),
    )
    client, server = links.client_unacked_ns >= STALL_NS, links.server_unacked_ns >= STALL_NS
    lost = (client & (links.client_missing > 0)) | (server & (links.server_missing > 0))
    holed = lost & (links.sacked > 0) & (links.recovered.fill_null(0) == 0) & ((links.exchanges > 0) | hidden(links))
    repeated = path_shown(links) & (links.retransmitted >= REPEATS) & (client | server)
    links = links.mutate(hole=holed.ifelse(links.client_missing + links.server_missing, None))
    chosen = links.filter((holed | repeated).fill_null(False))
    table = table.semi_join(chosen, "connection")
    waiting = table.outcome == "unanswered"
    used = table.group_by("connection").aggregate(
        open_ns=table.request_first_ns.min(where=waiting),
        least=table.request_bytes.min(where=waiting), done_ns=table.response_last_ns.max(),
        one_way_ns=table.request_last_ns.max(where=table.outcome == "one_way"),
        last=table.response_bytes.argmax(table.response_last_ns),
    )  # fmt: skip
    ends = chosen.select(
        "connection", "client_id", "client_ip", "server_ip", "server_port", "client_unacked_ns", "server_pending",
        "retransmitted", "sacked", "packets", "first_ns", "last_ns", "exchanges", "hole",
        "server_captured",
    )  # fmt: skip
    rows = seen.first(ends.left_join(used, "connection"), ("first_ns", "connection"), STALLED_MOST, "stalled_connections")
    return [
        row | {"side": "client" if (row["client_unacked_ns"] or 0) >= STALL_NS else "server", "holed": row["hole"] is not None}
        for row in rows
    ]


@rule(
    "data-not-acknowledged", "medium", 0.8,
    needs="requests responses",
    encrypted=True,
    between_brokers=True,
    looks_at="connections on which one side sends data again and again, up to their end, while the other acknowledges nothing "
    "more or reports a hole (SACK) that nothing fills; of clients, between brokers, and TLS without keys if the client offers "
    "no ALPN",
    advice=f"{PATH}.",
    instead="a capture that lacks the acknowledgements, for example those of one of several paths; for TLS without keys, "
    "another protocol than Kafka",
    sources="RFC 9293, RFC 6298, RFC 2018",
    idle_seconds=5, bytes=1000, connections=2,
)  # fmt: skip
def data_not_acknowledged(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Data that the path drops, or that a host no longer takes because it is down. What the connections have in common may hint
    at the cause.
    """
    rows = seen.once(stalled_connections)
    if not rows:
        return
    through = got_through(seen, rows)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        one = row["holed"] and row["side"] == "server"  # the receiver, which reports the holes, is one end of all of them
        place = (row["client_ip"], None, None) if one else tuple(row[name] for name in ENDS)
        groups.setdefault((*place, row["side"], row["holed"]), []).append(row)
    for (client_ip, *_, side, _), some in groups.items():
        clients, servers = clients_in(some), sorted({server_of(row) for row in some})
        count, readable = len(some), any(row["exchanges"] for row in some)
        server = {name: some[0][name] for name in SERVER} if len(servers) == 1 else {}
        hint = hint_of(some, through.get(tuple(some[0][name] for name in ENDS), {}), side, limit)
        whose = f"of {named(clients) or client_ip}" if clients or side == "client" else f"to {named(servers)}"
        yield Finding(
            f"{servers[0] if side == 'client' else client_ip} acknowledges nothing more on {counted(count, 'connection')} "
            + whose
            + (hint.words if readable else SEALED),
            {"client_ips": [client_ip], "client_ids": clients, "server": servers[0] if server else None}, count,
            where("outcome == unanswered" if side == "client" else "", connected(some), client_ip=client_ip, **server)
            if readable else "",
            min(row["open_ns"] or row["first_ns"] for row in some), max(row["last_ns"] for row in some),
            sum(row["last_ns"] - (row["open_ns"] or row["last_ns"]) for row in some),
            {"connections": count, "retransmitted": sum(row["retransmitted"] for row in some), "quiet_ns": hint.quiet_ns,
             "hole_bytes": hint.hole, "smallest_bytes": hint.smallest, "answered_bytes": hint.largest,
             "servers": None if server else len(servers)},
            hint.severity, 0.7 if hint.words else None if readable else UNREAD,
            (hint.advice or (f"{PATH}. {WAITS}" if side == "client" else None)) if readable else f"{PATH}. {CERTIFICATE}.",
        )  # fmt: skip


@rule(
    "path-interrupted", "medium", 0.75,
    needs="requests responses",
    encrypted=True,
    between_brokers=True,
    looks_at="how long data stayed without an acknowledgement despite retransmissions, on connections that went on afterwards, "
    "of clients, between brokers, and TLS without keys if the client offers no ALPN; what other connections got meanwhile",
    advice="Look at the path between the two hosts at that time (links, switches, firewalls, VPNs, their failover), and "
    "whether the other host or virtual machine stood still. A process that is stopped or slow does not explain it: its kernel "
    "still acknowledges.",
    instead="a host or virtual machine that stood still; a capture that lacks the acknowledgements; for TLS without keys, "
    "another protocol than Kafka",
    sources="RFC 9293, RFC 6298",
    seconds=1, segments=2, beside=0.4, losses=5, share=0.004, lossy=0.2, needless=0.5,
)  # fmt: skip
def path_interrupted(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Data between two hosts that nothing acknowledges for `seconds` or longer, until a retransmitted segment is acknowledged.

    Each timeout is twice the one before (RFC 6298 section 5.5), so for at least the first half of the time nothing came
    through. If other connections of the two hosts got responses in that half, it is not the whole path; if other hosts got
    some, it is not the broker. Hosts that one server is cut off from at the same time are one finding.

    If other connections of the host lost `losses` segments and a `share` of their packets, now and then a segment is lost
    several times: that is info. If the receiver reports that more than the part `needless` of the retransmitted segments
    arrived twice (D-SACK), the data came through late and the rule is silent: long queues on the path delay acknowledgements by
    more than a retransmission timeout.
    """
    by = together(interrupted(seen, limit))
    for rows in by:
        (_, ip, port), hosts = group_of(rows[0], ENDS), sorted({row["client_ip"] for row in rows})
        times = apart(rows)
        longest = max(times, key=lambda some: max(row["resent_ns"] for row in some))
        lasted = max(row["resent_ns"] for row in longest)
        readable = any(row["exchanges"] for row in longest)
        here, elsewhere = meanwhile(seen, longest) if readable and len(by) <= MEANWHILE_MOST else (None, None)
        lost = lost_beside(seen, rows, limit["share"]) if here else 0
        random = lost >= limit["losses"]
        links = list({row["connection"]: row for row in rows}.values())
        clients, count, server = clients_in(links), len({row["connection"] for row in longest}), server_of(rows[0])
        place = hosts[0] if len(hosts) == 1 else counted(len(hosts), "host")
        often = f", in the longest of {len(times)} times" if len(times) > 1 else ""
        who, sealed = f" ({named(clients)})" if clients else "", "" if readable else SEALED
        yield Finding(
            f"data between {place}{who} and {server}{sealed} stayed without an acknowledgement for {seconds(lasted)} on "
            f"{counted(count, 'connection')}{often}, though it was sent again"
            + (f"; {counted(here, 'response')} passed between them on other connections meanwhile" if here else "")
            + (f", and other connections of that host lost {counted(lost, 'segment')}" if random else "")
            + (f"; other hosts got {counted(elsewhere, 'response')} from that broker meanwhile" if elsewhere else ""),
            {"client_ips": hosts, "client_ids": clients, "server": server}, len(links),
            where(f"request_first_ns <= {max(row['until'] for row in longest)}",
                  f"response_last_ns >= {min(row['since'] for row in longest)}", connected(links),
                  client_ip=hosts[0] if len(hosts) == 1 else None, server_ip=ip, server_port=port) if readable else "",
            min(row["since"] for row in rows), max(row["until"] for row in rows), sum(row["resent_ns"] for row in rows),
            {"interruptions": len(times), "longest_ns": lasted, "connections": count, "served_here": here,
             "served_others": elsewhere, "lost_beside": lost if random else None},
            "info" if random else None,
            limit["lossy"] if random else limit["beside"] if here else None if readable else UNREAD,
            LOSSY if random else None,
        )  # fmt: skip


def together(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of `interrupted` by client and server; those of several clients that are cut off from one server at one time are one
    interruption."""
    found: list[list[Row]] = []
    for some in rows_by(rows, SERVER).values():
        by_host = rows_by(some, "client_ip")
        at_once = len(by_host) > 1 and len(apart(some)) == 1 and len({row["exchanges"] > 0 for row in some}) == 1
        found += [some] if at_once else by_host.values()
    return found


def lost_beside(seen: Observed, rows: Sequence[Row], share: float) -> int:
    """How many segments the other connections of the client's host lost, as far as senders and receivers show it; 0 where they
    are fewer than this share of the packets."""
    links = on_paths(seen.every_link)
    links = links.filter(
        links.client_ip == rows[0]["client_ip"],
        ~links.connection.isin(sorted({row["connection"] for row in rows})),
    )  # fmt: skip
    lost = (links.retransmitted - links.spurious.fill_null(0)).clip(lower=0) + links.recovered.fill_null(0)
    (sums,) = seen.run(links.aggregate(lost=lost.sum(), packets=links.packets.sum()))
    return sums["lost"] if sums["lost"] and sums["lost"] >= share * sums["packets"] else 0


def interrupted(seen: Observed, limit: Mapping[str, float]) -> list[Row]:
    """Connections on which data was sent again after `seconds` or more, and which went on: connection, client_id, hosts,
    resent_ns, since and until (ns since the epoch), a row for each side that sent such data.
    """
    chosen = on_paths(seen.every_link)
    needless = chosen.spurious.fill_null(0)
    chosen = chosen.filter(
        chosen.retransmitted - needless >= int(limit["segments"]), needless <= chosen.retransmitted * limit["needless"]
    )
    over = {row["connection"] for row in seen.once(stalled_connections)}
    found: list[Row] = []
    for side in ("client", "server"):
        lasted, until = chosen[f"{side}_resent_ns"], chosen[f"{side}_resent_at_ns"]
        some = chosen.filter((lasted >= int(limit["seconds"] * 1e9)) & until.notnull())
        some = some.select(
            "connection", "client_id", "client_ip", "server_ip", "server_port", "exchanges",
            resent_ns=some[f"{side}_resent_ns"], until=some[f"{side}_resent_at_ns"],
            since=some[f"{side}_resent_at_ns"] - some[f"{side}_resent_ns"],
        )  # fmt: skip
        found += seen.first(some, ("since", "connection"), STALLED_MOST, "interrupted_connections")
    return [row for row in found if row["connection"] not in over]


def apart(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows with `since` and `until` in groups that overlap in time."""
    groups: list[list[Row]] = []
    end = 0
    for row in sorted(rows, key=lambda row: row["since"]):
        if not groups or row["since"] > end:
            groups.append([])
            end = 0
        groups[-1].append(row)
        end = max(end, row["until"])
    return groups


def meanwhile(seen: Observed, rows: Sequence[Row]) -> tuple[int, int]:
    """Responses of the server in the first half of such a time: to the same host on other connections, and to other hosts."""
    row = max(rows, key=lambda row: row["resent_ns"])
    table = seen.every
    since, until = max(one["since"] for one in rows), row["since"] + row["resent_ns"] // 2
    chosen = table.filter(
        table.server_ip == row["server_ip"], table.server_port == row["server_port"],
        table.response_first_ns.between(since, until), ~table.connection.isin(sorted({one["connection"] for one in rows})),
    )  # fmt: skip
    mine = chosen.client_ip == row["client_ip"]
    (found,) = seen.run(chosen.aggregate(here=chosen.count(where=mine), others=chosen.count(where=~mine)))
    return found["here"], found["others"]


@dataclass(frozen=True, slots=True)
class Hint:
    """What connections without acknowledgements have in common; nothing where there is nothing."""

    words: str = ""
    advice: str | None = None
    severity: str | None = None
    quiet_ns: int | None = None
    smallest: int | None = None
    hole: int | None = None
    largest: int | None = None


def hint_of(some: list[Row], through: Row, side: str, limit: Mapping[str, float]) -> Hint:
    """Rest before the data, while other connections work: lost state on the way. Size, where all that is smaller comes through
    and nothing that is larger: a path with a smaller MTU than its ends. Nothing at all from the server: another host accepts.
    """
    if some[0]["holed"]:
        hole = min(row["hole"] for row in some)
        large = len(some) >= limit["connections"] and hole >= limit["bytes"]
        return Hint(
            f": it reports holes of {size(hole)} and more (SACK) that nothing fills", LARGE if large else None,
            "high" if large else None, hole=hole,
        )  # fmt: skip
    most, latest = through.get(side) or 0, through.get("sent_ns") or 0
    quiet = min(map(idle_ns, some))
    if side == "client" and quiet >= limit["idle_seconds"] * 1e9 and latest > min(row["open_ns"] for row in some):
        return Hint(
            f" after {seconds(quiet)} and more without a request, while other connections worked",
            "A firewall, NAT or load balancer between them may have dropped idle connections silently: set "
            "connections.max.idle.ms of the client below its timeout, or switch on TCP keepalive.", quiet_ns=quiet,
        )  # fmt: skip
    least = min((row["least"] if side == "client" else row["server_pending"] or row["last"]) or 0 for row in some)
    if len(some) >= limit["connections"] and least >= limit["bytes"] and 0 < most < least:
        what = "requests" if side == "client" else "responses"
        return Hint(
            f": {what} of {size(least)} and more; the largest that came through has {size(most)}",
            LARGE, "high", smallest=least, largest=most,
        )  # fmt: skip
    if side == "client" and len(some) >= limit["connections"] and not any(row["server_captured"] for row in some):
        return Hint(
            ": it accepted them, and never acknowledged a byte", "Another host may accept connections in the name of the "
            "broker, such as a load balancer, a SYN proxy or a NAT gateway that has no path to it; or a firewall lets only SYN "
            f"pass. {WAITS}",
        )  # fmt: skip
    return Hint()


def idle_ns(row: Row) -> int:
    """How long such a connection carried nothing before the first request that stays without a response; 0 without one."""
    before: int = max(row["done_ns"] or row["first_ns"], row["one_way_ns"] or 0)
    return max((row["open_ns"] or 0) - before, 0)


def got_through(seen: Observed, rows: list[Row]) -> dict[tuple[str, str, int], dict[str, int]]:
    """Of hosts and servers: size of the largest request and response of exchanges with a response, the last responses of such
    connections left out, and when the last of the requests was sent.
    """
    stalled = {
        row["connection"]: row["done_ns"] for row in rows
        if row["side"] == "server" and not row["server_pending"] and row["done_ns"] is not None
    }  # fmt: skip
    table = seen.every
    table = table.filter(table.outcome == "answered", table.client_ip.isin(sorted({row["client_ip"] for row in rows})))
    last = table.connection.isin(sorted(stalled)) & table.response_last_ns.isin(sorted(stalled.values()))
    table = table.filter(~last)
    found = table.group_by(*ENDS).aggregate(
        client=table.request_bytes.max(), server=table.response_bytes.max(), sent_ns=table.request_first_ns.max()
    )
    return {tuple(row[name] for name in ENDS): row for row in seen.run(found)}


def kind_of(link: Row) -> str:
    """Whether a row of connections with `exchanges` and `client_id` is one of CLIENTS, BROKERS or HIDDEN."""
    return HIDDEN if not link["exchanges"] else BROKERS if is_broker(link["client_id"]) else CLIENTS


def hidden(table: Any) -> Any:
    """Which connections are TLS without readable exchanges whose client offers no ALPN, as Kafka's clients do not and browsers
    do; of those that had begun before the capture, which are at a usual port of Kafka.
    """
    no_alpn = (table.tls_ja4.substr(8, 3) == NO_ALPN).fill_null(False)
    begun = (table.began != "syn") & table.tls_ja4.isnull() & at_usual_port(table)
    return (table.phase == "tls") & (table.exchanges == 0) & (no_alpn | begun)


def other_links(seen: Observed) -> list[Row]:
    """Connections of brokers among each other, and `hidden` ones: by host, those with the most repeats first, with the columns
    of `links` that losses need.
    """
    table = seen.every_link
    table = table.filter(((table.exchanges > 0) & of_brokers(table)) | hidden(table))
    hosts = table.group_by("client_ip", "client_id").aggregate(
        **{name: table[name].sum() for name in SUMMED},
        filled=table.out_of_order.sum(where=table.client_missing + table.server_missing == 0),
        first_ns=table.first_ns.min(),
        last_ns=table.last_ns.max(),
    )
    hosts = hosts.filter(hosts.retransmitted + hosts.out_of_order > 0)
    return seen.first(hosts, (hosts.retransmitted.desc(), "client_ip", "client_id"), HOSTS_MOST, "other_hosts")
