"""Finds connections that forward the requests of other connections, as a proxy's connections to its broker do.

In: connections, and their first requests. Out: pairs of connections, by their servers. Law: a connection forwards another one
if it has the same requests in the same order, each sent after the other's request and answered before it.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from kcap.limits import CARRIED_TRIED

Row = dict[str, Any]
Server = tuple[str, int]
"""Address and port."""
Places = dict[tuple[str, int], set[tuple[Any, ...]]]
"""Connection and number of an exchange -> the topics, partitions and offsets that it concerns."""
PROOF: Final = 10
"""Number of requests that must all be forwarded before it cannot be chance: each lies within the time of its counterpart."""
UNDER_WAY: Final = 8
"""Number of requests that only one side may have, because they were in flight when the capture began or ended."""


class Pair(NamedTuple):
    """A connection to a proxy, the connection on which the proxy forwards it, and the requests of both that were compared."""

    front: Row
    back: Row
    requests: list[tuple[Row, Row]]
    positions: int
    """Number of compared requests that are known to concern the same offsets."""


class Carried(NamedTuple):
    """Connections to a server `back` with which the proxy `front` carries on those of its clients; of their first exchanges
    with both responses the time that the proxy took, and that from its request to the response that it got, ns."""

    front: Server
    back: Server
    connections: tuple[str, ...]
    exchanges: int
    first_ns: int
    last_ns: int
    own: tuple[int, ...]
    behind: tuple[int, ...]


def paired(
    pairs: Iterable[tuple[Row, Row]],
    requests: Mapping[str, list[Row]],
    places: Places,
    *,
    midstream: bool = False,
) -> dict[tuple[Server, Server], list[Pair]]:
    """The pairs of `candidates`, by their servers, in which the second connection forwards the first."""
    found: dict[tuple[Server, Server], list[Pair]] = {}
    fronts: set[str] = set()
    backs: set[str] = set()
    for front, back in pairs:  # in a chain of proxies, the nearest pair comes first
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
    """Pairs of connections of one client id to two servers, with nearly the same number of exchanges, of which the second
    begins during the first. For each connection these are the latest few that began before it, those with the most exchanges
    first. Connections that began before the capture have no order."""
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
    """The first few connections to other servers with nearly the same number of exchanges."""
    alike = (one for one in others if server(one) != server(back) and abs(one["exchanges"] - back["exchanges"]) <= UNDER_WAY)
    return islice(alike, CARRIED_TRIED)


def aligned(first: list[Row], second: list[Row], places: Places, midstream: bool) -> tuple[list[tuple[Row, Row]], int]:
    """The requests of one connection, each with the request of the other that forwards it, and the number of these pairs that
    are known to concern the same offsets. Nothing if a request is not forwarded. If the connections began before the capture,
    one side may lack a few requests."""
    for shift in sorted(range(-UNDER_WAY, UNDER_WAY + 1), key=abs) if midstream else (0,):
        both = list(zip(first[max(shift, 0) :], second[max(-shift, 0) :]))
        if all(carries(one, two) for one, two in both):
            alike = same_positions(places, both)
            if alike is not None:
                return both, alike
    return [], 0


def same_positions(places: Places, both: list[tuple[Row, Row]]) -> int | None:
    """Number of these pairs of requests that concern the same offsets; None if a pair concerns different ones."""
    count = 0
    for one, two in both:
        first, second = (places.get((row["connection"], row["exchange"]), set()) for row in (one, two))
        if one["response_last_ns"] is not None and first != second:
            return None
        count += bool(first & second)
    return count


def carries(one: Row, two: Row) -> bool:
    """Whether the second of two requests may be the first one forwarded: sent later, answered earlier, and with the same
    correlation id and size where the rows have these."""
    alike = all(one.get(name) == two.get(name) for name in ("api", "api_version", "correlation_id", "request_bytes"))
    until, earlier = one["response_last_ns"], two["response_last_ns"]
    return (
        alike
        and one["request_first_ns"] <= two["request_first_ns"]
        and (until is None or (earlier is not None and earlier <= until))
    )
