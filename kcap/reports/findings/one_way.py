"""Produce requests with acks=0, which have no response, at which a broker closes the connection.

In: exchanges and connections. Out: those that a broker refused, and a finding for each client. Law: a broker that closes a
connection later than it handles the request refuses none.
"""

from collections.abc import Mapping
from typing import Any

from kcap.reports.findings.model import Finding, Found, called, named, picking, where
from kcap.reports.findings.observed import Observed, in_groups, server_of
from kcap.reports.findings.served import WAITED_NS, answering, lives
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted

ONE_WAY = (
    "Set acks to 1: the responses then have the error. With 0, a broker has no response to refuse a request, and its log says "
    "why it closed the connection (Closing connection due to error during produce request). These records are lost."
)
"""The next step where connections end at Produce requests that have no response."""


def refused_one_way(seen: Observed) -> Any:
    """Of `exchanges`: the last Produce request with acks=0 before a broker closed its connection, no later than `WAITED_NS`
    behind it. A broker that refuses one has no response to say so, and closes the connection (KafkaApis).
    """
    ends = seen.connections.filter(seen.connections.closed_by == "server").select("connection", "closed_ns")
    rows = seen.exchanges.filter(seen.exchanges.api == "Produce", seen.exchanges.outcome == "one_way")
    rows = rows.filter(rows.client_id.notnull()).inner_join(ends, "connection")
    rows = rows.filter(rows.request_last_ns <= rows.closed_ns)
    rows = rows.mutate(later=functions(rows).row_number().over(group_by="connection", order_by=rows.exchange.desc()))
    return rows.filter(rows.later == 0, rows.closed_ns - rows.request_last_ns <= WAITED_NS)


def closed_at_one_way(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Clients whose connections a broker closes soon after Produce requests with acks=0."""
    keys = ("client_id", "server_ip", "server_port")
    dead = seen.once(refused_one_way)
    picked = picking(seen, dead, *keys)
    topics = dead.select("connection", "exchange").inner_join(seen.parts, ["connection", "exchange"])
    topics = topics.filter(topics.topic.notnull())
    groups = in_groups(dead, keys).left_join(topics.group_by(*keys).aggregate(topics=topics.topic.collect(distinct=True)), keys)
    for row in seen.run(groups.filter(groups.n >= int(limit["connections"]))):
        place = {"server_ip": row["server_ip"], "server_port": row["server_port"]}
        mine = seen.calls_of(**place, client_id=row["client_id"], outcome="one_way")
        lasting = row["last_ns"] - row["first_ns"] >= limit["seconds"] * 1e9
        often = row["n"] > limit["answered"] * sum(call["n"] for call in mine)
        if not lasting or not often or not lives(answering(seen, *place.values()), row):
            continue
        topics_of, server = sorted(row["topics"] or ()), server_of(row)
        yield Finding(
            f"{server} closed {counted(row['n'], 'connection')} of {called(row['client_id'])} right after a Produce request "
            f"with acks=0{f' for topic {named(topics_of)}' if topics_of else ''}, as a broker does that refuses one",
            {"client_id": row["client_id"], "server": server}, row["n"],
            where("api == Produce", "outcome == one_way", picked(row), client_id=row["client_id"], **place),
            row["first_ns"], row["last_ns"], 0, {"closed": row["n"]}, advice=ONE_WAY,
        )  # fmt: skip
