"""TLS probes of listeners that do not speak TLS: health checks and people, as their tries are far apart and even, or few.

In: connections. Out: whether those of a host are probes. Law: a try again within a second or two is that of a client.
"""

from typing import Final

from kcap.reports.findings.observed import Observed, Row

PROBES_APART_NS: Final = 2_000_000_000
PROBES_SPREAD: Final = 0.25
PROBES_FEW: Final = 4
"""Tries of a health check: how far apart at least, by which part of the longest time between two these times differ, and up to
how many (not included) they may differ by more."""


def probes(seen: Observed, link: Row) -> bool:
    """Whether the tries of a host at a server are too far apart and too even for a Kafka client."""
    gaps = seen.once(between_hellos).get((link["client_ip"], link["server_ip"], link["server_port"]))
    if gaps is None or gaps["least"] is None:
        return False
    least, most = gaps["least"], gaps["most"]
    even = gaps["n"] < PROBES_FEW or most - least <= PROBES_SPREAD * most
    return bool(least >= PROBES_APART_NS and even)


def between_hellos(seen: Observed) -> dict[tuple[str, str, int], Row]:
    """Host and server -> of its TLS connections that the server sent nothing on: n, and the least and the most time between
    the beginnings of two that follow each other, ns."""
    links = seen.connections
    ends = ("client_ip", "server_ip", "server_port")
    links = links.filter(links.phase == "tls", links.server_captured == 0)
    gap_ns = links.first_ns - links.first_ns.lag().over(group_by=list(ends), order_by=["first_ns", "connection"])
    links = links.mutate(gap_ns=gap_ns)
    rows = seen.run(links.group_by(*ends).aggregate(n=links.count(), least=links.gap_ns.min(), most=links.gap_ns.max()))
    return {(row["client_ip"], row["server_ip"], row["server_port"]): row for row in rows}
