"""Connections that may be both sides of a proxy: each request is there twice, from the client to the proxy and from it to the
broker, and reports count it twice.

In: the exchanges of a report. Out: pairs of servers, and filters. Law: as in `carried`, of requests that are the same bytes as
well.
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
