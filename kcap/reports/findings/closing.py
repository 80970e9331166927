"""Connections that come to nothing: refused, closed before any response or at the same request each time, no Kafka there."""

from collections.abc import Mapping

from kcap.reports.findings.access import OPENING, served_without_login
from kcap.reports.findings.leaders import gone
from kcap.reports.findings.model import Finding, Found, named, rule, where
from kcap.reports.findings.observed import Observed, Row
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted
from kcap.reports.text import size

Place = tuple[str, int]
SECOND_NS = 1_000_000_000
USUAL_LEAST, USUAL = 9000, (90, 99)
"""Ports that listeners usually have: 9092, 19093 and the like."""
HOSTS_MOST = 100
"""Hosts, or servers, of which there is a finding each."""


@rule(
    "closed-at-request", "high", 0.75,
    needs="requests responses",
    looks_at="connections that a broker closes at the same API of a client, which it hardly ever answers, while it answers "
    "others",
    advice="See the broker's log at these times: it names the request that it does not take, such as one larger than "
    "socket.request.max.bytes (InvalidReceiveException), or one that it cannot read.",
    instead="a proxy between client and broker that closes; a broker that fails at this request",
    connections=5, seconds=2, answered=0.2,
)  # fmt: skip
def closed_at_request(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Requests at which a broker closes the connection each time.

    The first request of a connection without a response is the one that it closed at; those behind it were not looked at.
    """
    if not any(call["reason"] in ("fin", "rst") and call["api"] not in OPENING for call in seen.calls):
        return
    table, links = seen.exchanges, seen.connections
    dead = table.filter(
        (table.outcome == "unanswered") & table.reason.isin(["fin", "rst"]) & table.client_id.notnull(), ~gone(seen),
        ~table.version_verdict.isin(["below_broker_min", "above_broker_max"]),
        table.connection.isin(links.filter(links.closed_by == "server").connection),
    )  # fmt: skip
    order = {"group_by": "connection", "order_by": "exchange"}
    dead = dead.mutate(place=functions(dead).row_number().over(**order))
    dead = dead.filter(dead.place == 0, ~dead.api.isin(list(OPENING)))
    groups = dead.group_by("client_id", "server_ip", "server_port", "api").aggregate(
        n=dead.count(),
        least=dead.request_bytes.min(),
        first_ns=dead.request_first_ns.min(),
        last_ns=dead.request_first_ns.max(),
    )
    rows = seen.run(groups.filter(groups.n >= int(limit["connections"])))
    if not rows:
        return
    answers, open_ = seen.once(answered), served_without_login(seen)
    for row in rows:
        place = row["server_ip"], row["server_port"]
        theirs = answers.get(place, [])
        mine = {one["api"]: one["n"] for one in theirs if one["client_id"] == row["client_id"]}
        lasting = row["last_ns"] - row["first_ns"] >= limit["seconds"] * 1e9
        if not lasting or not lives(theirs, row) or mine.get(row["api"], 0) > limit["answered"] * row["n"]:
            continue
        if place not in open_ and not mine.keys() - set(OPENING):
            continue  # a listener that wants a login
        largest = max((one["most"] for one in theirs if one["api"] == row["api"]), default=0)
        large = f" of {size(row['least'])} or more" if row["least"] > 2 * largest else ""
        server = f"{place[0]}:{place[1]}"
        yield Finding(
            f"{server} closed {counted(row['n'], 'connection')} of client {row['client_id']} at {row['api']} requests{large}"
            f", and answered {mine.get(row['api'], 0) or 'none'}",
            {"client_id": row["client_id"], "server": server}, row["n"],
            where(f"api == {row['api']}", "outcome == unanswered", client_id=row["client_id"], server_ip=place[0]),
            row["first_ns"], row["last_ns"], 0,
            {"closed": row["n"], "smallest_bytes": row["least"], "answered_bytes": largest},
        )  # fmt: skip


@rule(
    "closed-at-once", "medium", 0.7,
    needs="beginnings responses",
    looks_at="connections that a server accepts and closes without any response, while it answers others of the same host",
    advice="See the broker's log for limits (max.connections.per.ip, max.connections, max.connection.creation.rate) "
    "and what the client's host opens connections for.",
    instead="a proxy or load balancer without a broker behind it; a listener that is being shut down",
    sources="KIP-308, KIP-402, KIP-612",
    connections=5,
)  # fmt: skip
def closed_at_once(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A server that takes some connections of a host and closes the others before it answers anything."""
    if not any(call["reason"] in ("fin", "rst") for call in seen.calls):
        return
    links = seen.connections
    dead = links.filter(
        links.phase == "kafka", links.began == "syn", links.closed_by == "server", links.server_captured == 0,
        links.server_missing == 0,
    )  # fmt: skip
    groups = dead.group_by("client_ip", "server_ip", "server_port").aggregate(
        n=dead.count(), first_ns=dead.first_ns.min(), last_ns=dead.last_ns.max(), clients=dead.client_id.collect(distinct=True)
    )
    for row in seen.run(groups.filter(groups.n >= int(limit["connections"]))):
        server = f"{row['server_ip']}:{row['server_port']}"
        theirs = [
            one for one in seen.once(answered).get((row["server_ip"], row["server_port"]), ())
            if one["client_ip"] == row["client_ip"]
        ]  # fmt: skip
        if not lives(theirs, row):
            continue
        clients = sorted(filter(None, row["clients"]))
        yield Finding(
            f"{server} accepted and closed {counted(row['n'], 'connection')} of {row['client_ip']} ({named(clients)}) without "
            "a response, while it answered others",
            {"server": server, "client_ips": [row["client_ip"]], "client_ids": clients[:20]}, row["n"],
            where("outcome == unanswered", server_ip=row["server_ip"], server_port=row["server_port"]),
            row["first_ns"], row["last_ns"], 0, {"connections": row["n"]},
        )  # fmt: skip


@rule(
    "connect-failed", "high", 0.8,
    needs="beginnings",
    looks_at="connections to ports of Kafka that are refused or never answered, where none of the same host is accepted",
    advice="See whether a broker listens at that address and port, whether bootstrap.servers is right, and which firewalls are "
    "between.",
    instead="a broker that was down while the capture ran; a health check or a scanner",
    sources="RFC 9293 section 3.5",
    connections=3,
)  # fmt: skip
def connect_failed(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A host that cannot connect. Addresses that Metadata responses advertise are left to `wrong-advertised-listener`."""
    links = seen.connections
    kafka = {call["server_port"] for call in seen.calls}
    usual = (links.server_port >= USUAL_LEAST) & (links.server_port % 1000).between(*USUAL)
    calls = links.filter(
        (links.phase == "empty") & (links.began == "syn") & (usual | links.server_port.isin(sorted(kafka))),
        (links.server_packets == 0) | ((links.server_packets == 1) & (links.ended == "rst")),
    )  # fmt: skip
    ends = ("client_ip", "server_ip", "server_port")
    groups = calls.group_by(*ends).aggregate(
        n=calls.count(), refused=calls.count(where=calls.server_packets == 1), first_ns=calls.first_ns.min(),
        last_ns=calls.last_ns.max(),
    )  # fmt: skip
    groups = groups.filter(groups.n >= int(limit["connections"]))
    accepted = links.filter(links.server_packets > 1)
    groups = groups.anti_join(accepted, list(ends))
    groups = groups.anti_join(seen.brokers, [groups.server_ip == seen.brokers.host, groups.server_port == seen.brokers.port])
    for row in seen.first(groups, ("first_ns", *ends), HOSTS_MOST, "hosts_without_connections"):
        server = f"{row['server_ip']}:{row['server_port']}"
        how = (
            "refused" if row["refused"] == row["n"] else "did not answer" if not row["refused"] else "refused or did not answer"
        )
        yield Finding(
            f"{server} {how} {counted(row['n'], 'connection')} of {row['client_ip']}, and accepted none",
            {"server": server, "client_ips": [row["client_ip"]]}, row["n"], "", row["first_ns"], row["last_ns"], 0,
            {"connections": row["n"], "refused": row["refused"]}, None, None if row["refused"] == row["n"] else 0.7,
        )  # fmt: skip


@rule(
    "server-not-kafka", "high", 0.85,
    needs="beginnings",
    looks_at="servers whose every byte to a Kafka client is no Kafka response",
    advice="See what listens at that address and port: an HTTP server or proxy, another service, or a load balancer that "
    "answers for a broker that it does not reach. kcap connections shows the bytes in its columns of skipped bytes.",
    instead="a capture without the beginning of the responses",
    connections=2, bytes=8,
)  # fmt: skip
def server_not_kafka(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A Kafka client at a server that speaks something else; TLS alerts are left to `tls-plaintext-confusion`."""
    links = seen.connections
    strange = links.filter(
        (links.phase == "kafka") & ~links.tls & (links.began == "syn") & (links.server_captured >= int(limit["bytes"])),
        (links.server_skipped == links.server_captured) & (links.server_missing == 0),
    )  # fmt: skip
    ends = ("server_ip", "server_port")
    groups = strange.group_by(*ends).aggregate(
        n=strange.count(), most=strange.server_captured.max(), first_ns=strange.first_ns.min(), last_ns=strange.last_ns.max(),
        clients=strange.client_id.nunique(), client_id=strange.client_id.min(), client_ip=strange.client_ip.min(),
    )  # fmt: skip
    groups = groups.filter(groups.n >= int(limit["connections"]))
    spoken = seen.exchanges.filter(seen.exchanges.outcome == "answered")
    for row in seen.first(groups.anti_join(spoken, list(ends)), ("first_ns", *ends), HOSTS_MOST, "servers_without_kafka"):
        server = f"{row['server_ip']}:{row['server_port']}"
        who = f"client {row['client_id']}" if row["clients"] == 1 else counted(row["clients"], "client")
        yield Finding(
            f"{server} answers {who} with up to {size(row['most'])} that are no Kafka response, on "
            f"{counted(row['n'], 'connection')}",
            {"client_id": row["client_id"] if row["clients"] == 1 else None, "server": server,
             "client_ips": [row["client_ip"]]},
            row["n"], where(server_ip=row["server_ip"], server_port=row["server_port"]), row["first_ns"], row["last_ns"], 0,
            {"connections": row["n"], "response_bytes": row["most"]},
        )  # fmt: skip


def answered(seen: Observed) -> dict[Place, list[Row]]:
    """Server -> what it answered, by client, host and API: n, most (bytes of the largest request), first_ns, last_ns."""
    table = seen.exchanges
    chosen = table.filter(table.outcome == "answered")
    rows = seen.run(
        chosen.group_by("server_ip", "server_port", "client_id", "client_ip", "api").aggregate(
            n=chosen.count(), most=chosen.request_bytes.max(), first_ns=chosen.request_first_ns.min(),
            last_ns=chosen.response_last_ns.max(),
        )
    )  # fmt: skip
    found: dict[Place, list[Row]] = {}
    for row in rows:
        found.setdefault((row["server_ip"], row["server_port"]), []).append(row)
    return found


def lives(answers: list[Row], row: Row) -> bool:
    """Whether a server answered from before the first to behind the last connection that it closed, within a second: one that
    is shut down or started does not.
    """
    first = min((one["first_ns"] for one in answers if one["first_ns"] is not None), default=None)
    last = max((one["last_ns"] for one in answers if one["last_ns"] is not None), default=None)
    return (
        first is not None and last is not None and first <= row["first_ns"] + SECOND_NS and row["last_ns"] - SECOND_NS <= last
    )
