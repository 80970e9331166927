"""Both sides of a proxy in one capture: each request is there twice, from the client to the proxy and from it to the broker.

In: connections and exchanges. Out: which connections carry on what others brought, and a finding for each pair of servers.
Law: a connection carries on another where its requests are those of the other in their order, each sent after the other's and
answered before it, for the same offsets of the same partitions. A client that does alike at two brokers writes and reads other
partitions at each.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from operator import sub
from typing import Any, Final, NamedTuple

from kcap.limits import CARRIED_LOOKED_AT, CARRIED_REQUESTS, CARRIED_TRIED
from kcap.reports.findings.model import Finding, Found, rule, seconds, where
from kcap.reports.findings.observed import Carried, Observed, Row, rows_by
from kcap.reports.findings.serving import median
from kcap.reports.text import count as counted

Server = tuple[str, int]
"""Address and port."""
Places = dict[tuple[str, int], set[tuple[Any, ...]]]
"""Connection and number of an exchange -> topic, partition and offsets that it is for."""
PROOF: Final = 10
"""Requests of a connection that are all carried on, from which on it is no chance: each falls into the time of another."""
UNDER_WAY: Final = 8
"""Requests that one side may have more than the other, since they were under way when the capture began or ended."""


class Pair(NamedTuple):
    """A connection to a proxy, the one with which it carries this on, and the requests of both that were compared."""

    front: Row
    back: Row
    requests: list[tuple[Row, Row]]
    positions: int
    """Of how many of them it is known that they are for the same offsets."""


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
    table = table.filter(table.connection.isin(sorted(some)), table.exchange <= CARRIED_REQUESTS)
    table = table.filter(table.request_first_ns.notnull())
    names = ("connection", "exchange", "api", "api_version", "request_first_ns", "response_last_ns")
    requests = rows_by(seen.run(table.select(*names).order_by("connection", "exchange")), "connection")
    places = positions(seen, some)
    found: dict[tuple[Server, Server], list[Pair]] = {}
    fronts: set[str] = set()
    backs: set[str] = set()
    for front, back in pairs:  # the nearest first: of a chain of proxies each with the next
        if front["connection"] in fronts or back["connection"] in backs:
            continue
        first, second = requests.get(front["connection"], []), requests.get(back["connection"], [])
        both, alike = aligned(first, second, places, back["began"] != "syn")
        if both:
            fronts.add(front["connection"])
            backs.add(back["connection"])
            found.setdefault((server(front), server(back)), []).append(Pair(front, back, both, alike))
    return tuple(
        made(*ends, some) for ends, some in found.items()
        if max(len(one.requests) for one in some) >= PROOF and any(one.positions for one in some)
    )  # fmt: skip


def server(row: Row) -> Server:
    """The server of a connection."""
    return row["server_ip"], row["server_port"]


def candidates(rows: list[Row]) -> list[tuple[Row, Row]]:
    """Connections of one client id and nearly one count of exchanges to two servers, of which the second begins within the
    first: of each the latest few that began before it, those with the most exchanges first. What began before the capture did
    has no order."""
    found: list[tuple[Row, Row]] = []
    for some in rows_by(rows, "client_id").values():
        if len({server(row) for row in some}) < 2:
            continue
        begun = sorted((row for row in some if row["began"] == "syn"), key=lambda row: row["first_ns"])
        for at, back in enumerate(begun):
            found += [(front, back) for front in near(back, reversed(begun[:at])) if front["last_ns"] >= back["first_ns"]]
        before = [row for row in some if row["began"] != "syn"]
        for back in before:
            found += [(front, back) for front in near(back, before)]
    return sorted(
        found, key=lambda pair: (-pair[1]["exchanges"], pair[1]["first_ns"], pair[1]["first_ns"] - pair[0]["first_ns"])
    )


def near(back: Row, others: Iterable[Row]) -> Iterator[Row]:
    """The first few connections to other servers with nearly as many exchanges."""
    alike = (one for one in others if server(one) != server(back) and abs(one["exchanges"] - back["exchanges"]) <= UNDER_WAY)
    return islice(alike, CARRIED_TRIED)


def aligned(first: list[Row], second: list[Row], places: Places, midstream: bool) -> tuple[list[tuple[Row, Row]], int]:
    """The requests of one connection with those of the other that carry them on, and how many of them are for offsets that are
    known; none where one does not. Where the connections began before the capture, a few of one side may be missing.
    """
    for shift in sorted(range(-UNDER_WAY, UNDER_WAY + 1), key=abs) if midstream else (0,):
        both = list(zip(first[max(shift, 0) :], second[max(-shift, 0) :]))
        if all(carries(one, two) for one, two in both):
            alike = same_positions(places, both)
            if alike is not None:
                return both, alike
    return [], 0


def positions(seen: Observed, connections: Collection[str]) -> Places:
    """Exchanges by connection and number, with the partitions that they write or read and the offsets there: one server leads a
    partition at a time, so that others do not say the same."""
    parts = seen.parts
    parts = parts.filter(parts.connection.isin(sorted(connections)), parts.exchange <= CARRIED_REQUESTS)
    parts = parts.filter(parts.api.isin(["Produce", "Fetch"]), parts.error == "NONE")
    found: Places = {}
    for row in seen.run(parts.select("connection", "exchange", "topic", "partition", "base_offset", "fetch_offset")):
        place = row["topic"], row["partition"], row["base_offset"], row["fetch_offset"]
        found.setdefault((row["connection"], row["exchange"]), set()).add(place)
    return found


def same_positions(places: Places, both: list[tuple[Row, Row]]) -> int | None:
    """How many of these pairs of requests are for the same offsets; None where some are for others."""
    count = 0
    for one, two in both:
        first, second = (places.get((row["connection"], row["exchange"]), set()) for row in (one, two))
        if one["response_last_ns"] is not None and first != second:
            return None
        count += bool(first & second)
    return count


def carries(one: Row, two: Row) -> bool:
    """Whether the second of two requests may be the first one, sent later and answered earlier."""
    alike = (one["api"], one["api_version"]) == (two["api"], two["api_version"])
    until, earlier = one["response_last_ns"], two["response_last_ns"]
    return (
        alike
        and one["request_first_ns"] <= two["request_first_ns"]
        and (until is None or (earlier is not None and earlier <= until))
    )


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
    looks_at="connections whose requests are those of another one to another server, each sent later and answered earlier, "
    "for the same offsets: those of a proxy to the broker behind it",
    advice="All other findings are of the clients' side. Other reports count each request twice: choose a side, such as with "
    "the filter of this finding.",
    instead="an address translation on the way (NAT), of which the capture has both sides",
    milliseconds=50, share=0.5, exchanges=20,
)  # fmt: skip
def proxy_both_sides(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A proxy of which the capture has both sides, and whether it is what takes the time."""
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
