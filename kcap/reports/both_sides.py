"""Connections that may be both sides of a proxy: each request is there twice, from the client to the proxy and from it to the
broker, and reports count it twice.

In: connections, and their first requests. Out: which connections may carry on what others brought, by pairs of servers. Law: a
connection carries on another where its requests are those of the other in their order, each sent after the other's and answered
before it.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcap.limits import CARRIED_LOOKED_AT, CARRIED_REQUESTS, CARRIED_TRIED
from kcap.reports.drill_down import quoted

if TYPE_CHECKING:
    from kcap.reports.source import Engine

Row = dict[str, Any]
Server = tuple[str, int]
"""Address and port."""
Places = dict[tuple[str, int], set[tuple[Any, ...]]]
"""Connection and number of an exchange -> topic, partition and offsets that it is for."""
PROOF: Final = 10
"""Requests of a connection that are all carried on, from which on it is no chance: each falls into the time of another."""
UNDER_WAY: Final = 8
"""Requests that one side may have more than the other, since they were under way when the capture began or ended."""


COLUMNS: Final = (
    "connection", "exchange", "client_id", "client_ip", "server_ip", "server_port", "api", "api_version", "correlation_id",
    "request_bytes", "request_first_ns", "response_last_ns",
)  # fmt: skip
"""Columns of exchanges that `suspected` looks at."""
LINKS: Final = """
SELECT connection, client_id, client_ip, server_ip, server_port, 'syn' AS began, count({each}) AS exchanges,
    min(request_first_ns) AS first_ns, max(coalesce(response_last_ns, request_first_ns)) AS last_ns
FROM {rows} WHERE client_id IS NOT NULL AND request_first_ns IS NOT NULL
GROUP BY ALL ORDER BY exchanges DESC, first_ns, connection LIMIT {most:d}
"""
FIRST: Final = """
SELECT DISTINCT connection, exchange, api, api_version, correlation_id, request_bytes, request_first_ns, response_last_ns
FROM {rows} WHERE connection IN (SELECT unnest($links)) AND exchange <= {most:d} AND request_first_ns IS NOT NULL
ORDER BY connection, exchange
"""


class Pair(NamedTuple):
    """A connection to a proxy, the one with which it carries this on, and the requests of both that were compared."""

    front: Row
    back: Row
    requests: list[tuple[Row, Row]]
    positions: int
    """Of how many of them it is known that they are for the same offsets."""


def suspected(engine: "Engine", rows: str = "exchanges") -> list[Row]:
    """Pairs of servers of which one may be a proxy before the other, with how many exchanges the second has from it, and the
    filter that leaves them out: requests of a client id to the two are the same by API, version, correlation id and size as
    well. What they write and where would prove it, which the rule `proxy-both-sides` looks at.

    `rows`: the view that has the columns; of `partitions` the exchanges with some.
    """
    each = "*" if rows == "exchanges" else "DISTINCT exchange"
    links = engine.rows(LINKS.format(rows=rows, each=each, most=CARRIED_LOOKED_AT))
    if len({server(row) for row in links}) < 2:
        return []
    pairs = candidates(links)
    if not pairs:
        return []
    requests: dict[str, list[Row]] = {}
    for row in engine.rows_with(
        FIRST.format(rows=rows, most=CARRIED_REQUESTS), {"links": sorted({row["connection"] for pair in pairs for row in pair})}
    ):
        requests.setdefault(row["connection"], []).append(row)
    found = []
    for (front, back), some in paired(pairs, requests, {}, midstream=True).items():
        if max(len(one.requests) for one in some) >= PROOF:
            hosts = ", ".join(sorted({quoted(one.back["client_ip"]) for one in some}))
            found.append({
                "front": f"{front[0]}:{front[1]}", "back": f"{back[0]}:{back[1]}",
                "exchanges": sum(one.back["exchanges"] for one in some),
                "filter": f"!(client_ip in {{{hosts}}} && server_ip == {quoted(back[0])} && server_port == {back[1]})",
            })  # fmt: skip
    return found


def paired(
    pairs: Iterable[tuple[Row, Row]],
    requests: Mapping[str, list[Row]],
    places: Places,
    *,
    midstream: bool = False,
) -> dict[tuple[Server, Server], list[Pair]]:
    """The pairs of `candidates` of which the second connection carries on the first, by their servers."""
    found: dict[tuple[Server, Server], list[Pair]] = {}
    fronts: set[str] = set()
    backs: set[str] = set()
    for front, back in pairs:  # the nearest first: of a chain of proxies each with the next
        if front["connection"] in fronts or back["connection"] in backs:
            continue
        first, second = requests.get(front["connection"], []), requests.get(back["connection"], [])
        both, known = aligned(first, second, places, midstream or back["began"] != "syn")
        if both:
            fronts.add(front["connection"])
            backs.add(back["connection"])
            found.setdefault((server(front), server(back)), []).append(Pair(front, back, both, known))
    return found


def server(row: Row) -> Server:
    """The server of a connection."""
    return row["server_ip"], row["server_port"]


def candidates(rows: list[Row]) -> list[tuple[Row, Row]]:
    """Connections of one client id and nearly one count of exchanges to two servers, of which the second begins within the
    first: of each the latest few that began before it, those with the most exchanges first. What began before the capture did
    has no order."""
    found: list[tuple[Row, Row]] = []
    by_client: dict[str, list[Row]] = {}
    for row in rows:
        by_client.setdefault(row["client_id"], []).append(row)
    for some in by_client.values():
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
    """Whether the second of two requests may be the first one, sent later and answered earlier; of the same correlation id and
    size, where the rows have these.
    """
    alike = all(one.get(name) == two.get(name) for name in ("api", "api_version", "correlation_id", "request_bytes"))
    until, earlier = one["response_last_ns"], two["response_last_ns"]
    return (
        alike
        and one["request_first_ns"] <= two["request_first_ns"]
        and (until is None or (earlier is not None and earlier <= until))
    )
