"""The network between clients and brokers: how far, and what is lost on the way."""

from collections.abc import Mapping

from kcap.reports.findings.model import Finding, Found, called, named, rule, seconds, where
from kcap.reports.findings.observed import Observed, Row
from kcap.reports.text import count as counted

NO_ALPN = "00_"
"""How the first part of a JA4 fingerprint ends whose client offers no application protocol (ALPN)."""
HOSTS_MOST = 1000
"""Hosts with TLS connections that are looked at."""
UNFILLED = 3
"""From one hole in so many on that nothing fills, the holes are taken for packets that the capture lost."""
REORDERED = 10
"""From so many segments out of order for one that was repeated on, the order is taken for that of the capture or the path:
where packets are lost, some are lost behind the capture point, which sees them twice."""


@rule(
    "slow-network", "medium", 0.9,
    needs="responses requests",
    looks_at="shortest round trip between client and broker",
    advice="Place the client nearer to the brokers (client.rack, KIP-392), or raise batch.size, linger.ms and fetch "
    "sizes to save round trips.",
    instead="a client that is meant to be far away",
    sources="RFC 6298, section 2 (round trips above 1 s are rare)",
    milliseconds=20, most_seconds=10, connections=2, usual_seconds=1, spread=3,
)  # fmt: skip
def slow_network(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Clients that are far from their brokers.

    A way has one length: connections between the same two hosts whose shortest round trips differ by more than `spread`, and
    round trips that hardly any network has, are more likely packets whose times are not in order.
    """
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
    for client, links in by.items():
        if len(links) < sum(link["exchanges"] > 0 for link in seen.links_of[client]):
            continue  # some of its connections are quick: it is not the client's place
        if quickest.get(client, 0) < min(link["rtt_ns"] or 0 for link in links) // 2:
            continue  # a response took less than the way there and back: the times of these packets are not in order
        if sum(link["n"] for link in links) < limit["connections"]:
            continue  # one connection may have lost the packets that show its shortest round trip
        trip = min(link["round_ns"] for link in links)
        alike = spreads.get(client, 1.0) <= limit["spread"]
        count = sum(link["exchanges"] for link in links)
        yield Finding(
            f"each round trip of {called(client)} takes {seconds(trip)} on the network", {"client_id": client}, count,
            where(client_id=client), min(link["first_ns"] for link in links), max(link["last_ns"] for link in links),
                trip * count,
            {"round_trip_ns": trip, "exchanges": count},
            None if alike and trip <= limit["usual_seconds"] * 1e9 else "info",
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
    looks_at="data segments that TCP sent again or that came out of order, and what receivers report of holes and of bytes "
    "that came twice (SACK, D-SACK), by host of clients; of TLS without keys those of clients that offer no ALPN, as Kafka's "
    "do",
    advice="Look for loss on the path: interface errors, full queues, duplex, MTU. Each lost segment costs a round "
    "trip to 200 ms.",
    instead="a capture point that saw packets twice and out of order; for TLS without keys another protocol than Kafka",
    segments=10, share=0.004, holes=2,
)  # fmt: skip
def retransmission_bound(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Hosts whose packets are lost on the way.

    Repeated segments alone prove no loss, since tail loss probes repeat them as well (RFC 8985); what a receiver says by D-SACK
    to have come twice was not lost. Holes prove it, those that a capture between both ends sees as segments out of order, and
    those that a receiver reports by SACK wherever the capture was taken. A hole that nothing fills is a packet that the capture
    lost: those of a connection with missing bytes prove nothing, and neither do segments out of order next to which hardly one
    is repeated: receive queues of a network card and several paths reorder as well.
    """
    missing = seen.quality["gaps"]
    by: dict[tuple[str, bool], list[Row]] = {}
    for link in (*(link for link in seen.links if link["exchanges"]), *hidden_links(seen)):
        by.setdefault((link["client_ip"], link["exchanges"] > 0), []).append(link)
    for (host, readable), links in by.items():
        names = "packets", "retransmitted", "out_of_order", "filled", "sacked", "spurious"
        packets, again, holes, filled, sacked, spurious = (sum(link[name] or 0 for link in links) for name in names)
        lost = max(again - spurious, 0)
        reported = sacked >= limit["holes"] and lost >= limit["segments"] and lost >= limit["share"] * packets
        some = again + holes >= limit["segments"] and again + holes >= limit["share"] * packets and holes >= limit["holes"]
        if reported or some:
            clients = sorted(
                {link["client_id"] for link in links if link["client_id"] and link["retransmitted"] + link["out_of_order"]}
            )
            proven = UNFILLED * missing < holes and filled >= limit["holes"] and again + filled >= limit["segments"]
            proven = reported or (proven and filled < REORDERED * again)
            ends = f"{host} ({named(clients)}) and its brokers" if readable else f"{host} and its servers (TLS without keys)"
            seen_at = f"{counted(holes, 'segment')} came out of order" if holes else f"receivers reported {sacked} holes"
            yield Finding(
                f"{again} of {packets:,} packets between {ends} were retransmissions, {seen_at}",
                {"client_ips": [host], "client_ids": clients}, again, where(client_ip=host) if readable else "",
                min(link["first_ns"] for link in links), max(link["last_ns"] for link in links), 0,
                {"retransmitted": again, "spurious": spurious, "out_of_order": holes, "filled": filled, "sacked": sacked,
                 "packets": packets, "gaps": missing},
                None if proven else "info", None if readable else 0.6,
            )  # fmt: skip


def hidden_links(seen: Observed) -> list[Row]:
    """TLS connections without readable exchanges whose client offers no ALPN, as Kafka's clients do not and browsers do: by
    host, those with the most repeats first, with the columns of `links` that losses need.
    """
    if all(link["phase"] != "tls" for link in seen.links):
        return []
    table = seen.connections
    table = table.filter((table.phase == "tls") & (table.exchanges == 0) & (table.tls_ja4.substr(8, 3) == NO_ALPN))
    hosts = table.group_by("client_ip").aggregate(
        client_id=table.client_id.min(), exchanges=table.exchanges.sum(), packets=table.packets.sum(),
        retransmitted=table.retransmitted.sum(), out_of_order=table.out_of_order.sum(), sacked=table.sacked.sum(),
        spurious=table.spurious.sum(),
        filled=table.out_of_order.sum(where=table.client_missing + table.server_missing == 0),
        first_ns=table.first_ns.min(), last_ns=table.last_ns.max(),
    )  # fmt: skip
    hosts = hosts.filter(hosts.retransmitted + hosts.out_of_order > 0)
    return seen.first(hosts, (hosts.retransmitted.desc(), "client_ip"), HOSTS_MOST, "tls_hosts")
