"""Both sides of a proxy in one capture: each request is there twice, from the client to the proxy and from it to the broker.

In: connections and exchanges. Out: which connections carry on what others brought, and a finding for each pair of servers.
Law: a connection carries on another where its requests are those of the other in their order, each sent after the other's and
answered before it, for the same offsets of the same partitions. A client that does alike at two brokers writes and reads other
partitions at each.
"""

from collections.abc import Collection, Mapping
from operator import sub
from typing import Final

from kcap.limits import CARRIED_LOOKED_AT, CARRIED_REQUESTS
from kcap.reports.carried import PROOF, Carried, Pair, Places, Server, candidates, paired
from kcap.reports.findings.model import Finding, Found, rule, seconds, where
from kcap.reports.findings.observed import Observed, rows_by
from kcap.reports.findings.serving import median
from kcap.reports.text import count as counted


def carried(seen: Observed) -> tuple[Carried, ...]:
    """Every pair of servers of which one carries on what clients send to the other."""
    servers: dict[str, set[Server]] = {}
    for call in seen.calls:
        if call["client_id"] is not None:
            servers.setdefault(call["client_id"], set()).add((call["server_ip"], call["server_port"]))
    if all(len(places) < 2 for places in servers.values()):
        return ()
    links = seen.connections
    links = links.filter(links.phase == "kafka", links.exchanges > 0, links.client_id.notnull())
    links = links.select("connection", "client_id", "began", "exchanges", "server_ip", "server_port", "first_ns", "last_ns")
    rows = seen.run(links.order_by(links.exchanges.desc(), "first_ns", "connection").limit(CARRIED_LOOKED_AT))
    pairs = candidates(rows)
    if not pairs:
        return ()
    table = seen.exchanges
    some = {row["connection"] for pair in pairs for row in pair}
    table = table.filter(seen.among(table.connection, sorted(some), "alike"), table.exchange <= CARRIED_REQUESTS)
    table = table.filter(table.request_first_ns.notnull())
    names = ("connection", "exchange", "api", "api_version", "request_first_ns", "response_last_ns")
    requests = rows_by(seen.run(table.select(*names).order_by("connection", "exchange")), "connection")
    places = positions(seen, some)
    found = paired(pairs, requests, places)
    return tuple(
        made(*ends, some) for ends, some in found.items()
        if max(len(one.requests) for one in some) >= PROOF and any(one.positions for one in some)
    )  # fmt: skip


def positions(seen: Observed, connections: Collection[str]) -> Places:
    """Exchanges by connection and number, with the partitions that they write or read and the offsets there: one server leads a
    partition at a time, so that others do not say the same."""
    parts = seen.parts
    parts = parts.filter(seen.among(parts.connection, sorted(connections), "alike"), parts.exchange <= CARRIED_REQUESTS)
    parts = parts.filter(parts.api.isin(["Produce", "Fetch"]), parts.error == "NONE")
    found: Places = {}
    for row in seen.run(parts.select("connection", "exchange", "topic", "partition", "base_offset", "fetch_offset")):
        place = row["topic"], row["partition"], row["base_offset"], row["fetch_offset"]
        found.setdefault((row["connection"], row["exchange"]), set()).add(place)
    return found


def made(front: Server, back: Server, some: list[Pair]) -> Carried:
    """What is known of a pair of servers."""
    answered = [(one, two) for pair in some for one, two in pair.requests if one["response_last_ns"] is not None]
    behind = [two["response_last_ns"] - two["request_first_ns"] for _, two in answered]
    whole = [one["response_last_ns"] - one["request_first_ns"] for one, _ in answered]
    return Carried(
        front, back, tuple(sorted(pair.back["connection"] for pair in some)), sum(pair.back["exchanges"] for pair in some),
        min(pair.front["first_ns"] for pair in some), max(pair.front["last_ns"] for pair in some),
        tuple(map(sub, whole, behind)), tuple(behind),
    )  # fmt: skip


@rule(
    "proxy-both-sides", "info", 0.95,
    needs="requests responses",
    looks_at="connections whose requests repeat those of another connection to another server, each sent later and answered "
    "earlier, for the same offsets: those of a proxy to the broker behind it",
    advice="All other findings are about the clients' side. Other reports count each request twice: choose one side, for "
    "example with the filter of this finding.",
    instead="address translation on the path (NAT), with both of its sides in the capture",
    milliseconds=50, share=0.5, exchanges=20,
)  # fmt: skip
def proxy_both_sides(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A proxy with both of its sides in the capture, and whether it takes most of the time."""
    for one in seen.carried:
        front, back = (f"{ip}:{port}" for ip, port in (one.front, one.back))
        own, behind = (round(median(times)) if times else None for times in (one.own, one.behind))
        slow, took = False, ""
        if own is not None and behind is not None:
            least = max(limit["milliseconds"] * 1e6, limit["share"] * (own + behind))
            slow = len(one.own) >= limit["exchanges"] and own >= least
            took = f"; it takes {seconds(own)} of its own for a request, the server behind it {seconds(behind)} (medians)"
        yield Finding(
            f"{front} sends the requests of {counted(len(one.connections), 'connection')} on to {back}, and the capture has "
            f"both sides{took}",
            {"server": front}, one.exchanges, where(server_ip=one.front[0], server_port=one.front[1]),
            one.first_ns, one.last_ns, sum(one.own) if slow else 0,
            {"connections": len(one.connections), "exchanges": one.exchanges, "proxy_ns": own, "behind_ns": behind},
            "medium" if slow else None, None, SLOW if slow else None,
        )  # fmt: skip


SLOW: Final = (
    "The time is lost in the proxy and not at the broker: see its load, its limits of connections and requests, and what it "
    "does with each request."
)
"""Advice for a proxy that takes most of the time."""
