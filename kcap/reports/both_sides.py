"""Finds connections that may be the two sides of a proxy: the capture has each request twice, from the client to the proxy and
from the proxy to the broker, and reports count it twice.

In: the exchanges of a report. Out: pairs of servers, and filters. Law: the conditions of `carried` hold, and the requests have
the same size.
"""

from typing import TYPE_CHECKING, Any, Final

from kcap.limits import CARRIED_LOOKED_AT, CARRIED_REQUESTS
from kcap.reports.carried import PROOF, candidates, paired, server
from kcap.reports.drill_down import quoted

if TYPE_CHECKING:
    from kcap.reports.source import Engine

Row = dict[str, Any]
COLUMNS: Final = (
    "connection", "exchange", "client_id", "client_ip", "server_ip", "server_port", "api", "api_version", "correlation_id",
    "request_bytes", "request_first_ns", "response_last_ns",
)  # fmt: skip
"""Columns of exchanges that `suspected` needs."""
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


def suspected(engine: "Engine", rows: str = "exchanges") -> list[Row]:
    """Pairs of servers of which the first may be a proxy for the second, with the number of exchanges that the second server
    has from it, and the filter that excludes them. Requests of one client id to both servers are equal by API, version,
    correlation id and size. The topics and offsets of the requests would prove it; the rule `proxy-both-sides` compares those.

    `rows`: the view that has the columns. The partitions of `partitions` restrict it to exchanges that have some.
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
