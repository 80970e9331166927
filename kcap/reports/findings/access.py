"""Access that fails: logins, mechanisms, authorization, TLS, listeners, addresses."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kcap.limits import EVENTS_MOST
from kcap.reports.definition import LOCALHOST, is_own, of_brokers
from kcap.reports.findings.model import Finding, Found, called, named, picking, rule, seconds, where
from kcap.reports.findings.observed import (
    LASTED,
    SERVER,
    Observed,
    Row,
    clients_in,
    cut_short,
    in_groups,
    in_wrong_version,
    rows_by,
    server_of,
    times_of,
)
from kcap.reports.text import count as counted

TLS_ALERT_BYTES = 7
"""A TLS alert record: header of 5 bytes, level and description."""
CLIENT_APIS = {0: "Produce", 3: "Metadata"}
"""What every broker offers on a listener for clients, and no controller listener does."""


TOKENS = ("SaslAuthenticate", "SaslToken")
"""What carries the tokens of a login: a Kafka request, or with SaslHandshake v0 a length and the token alone."""
OPENING = ("ApiVersions", "SaslHandshake", *TOKENS)
"""What a listener with SASL answers before a login."""
REFUSED = {
    "GSSAPI": "Check that the broker's keytab holds the current key of its principal (klist -k, kvno), that the client asks "
    "for that principal (sasl.kerberos.service.name, host name), and that the clocks agree; then the client's own principal.",
    "OAUTHBEARER": "Check issuer, audience, expiry and signing key of the client's token against what the broker expects.",
}
"""SASL mechanism -> what to check where it is not a password."""
NO_TOKEN = {
    "GSSAPI": "The client probably had no Kerberos ticket for the broker: check its ticket or keytab (it may have expired), "
    "sasl.kerberos.service.name, the broker's host name, and whether the KDC can be reached; its log says which.",
    "OAUTHBEARER": "The client probably had no token: check whether its token endpoint can be reached and accepts the client's "
    "id and secret; its log says which.",
}
"""SASL mechanism -> what to check where the client cannot create a token."""


LOOKUPS = frozenset({*OPENING, "Metadata", "FindCoordinator", "DescribeCluster", "GetTelemetrySubscriptions"})
"""What clients send before they know, or reach, the broker that they want."""
LISTING = ("Describe", "ListClient", "ListConfig", "ListGroups", "ListPartition", "ListTransactions")
"""Beginnings of the names of APIs with which operators' tools list things."""
ASKING = ("Metadata", "FindCoordinator", "ListOffsets", "OffsetFetch", *LISTING)
"""The same, and APIs that tools use as well as clients before their work."""


def with_mechanism(row: Row) -> str:
    """The SASL mechanism of a client as a clause; empty where the capture does not show it."""
    return f" with {row['sasl_mechanism']}" if row["sasl_mechanism"] else ""


@rule(
    "authentication-failed-loop", "high", 0.95,
    needs="responses",
    looks_at="SASL_AUTHENTICATION_FAILED responses of a client, nonces of SCRAM messages and validity times of OAUTHBEARER "
    "tokens; connections that the server closes after a SASL token, which is how brokers before 1.0 and some other "
    "implementations refuse a login",
    advice="Check the user and password (or token) of this client, and the broker's credentials for that mechanism.",
    instead="credentials that were being rotated; for connections closed without a response, a server that was being stopped, "
    "or one that does not accept this form of login",
    sources="KIP-43, KIP-152, RFC 5802, RFC 7628, CVE-2024-56128",
    failures=3,
)  # fmt: skip
def authentication_failed_loop(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A client whose login fails again and again, or that never gets in.

    SCRAM messages show whether the client repeats the server's nonce: if it does not, no password can succeed. An OAUTHBEARER
    token contains the time until which it is valid.
    """
    let_in = {call["client_id"] for call in seen.calls if call["outcome"] == "answered" and call["api"] not in OPENING}
    refused = seen.errors(["SASL_AUTHENTICATION_FAILED"], ("client_id", "sasl_mechanism"))
    if refused:
        from kcap.reports.findings.logins import why_refused  # for captures with such logins
    for row in seen.prepared(refused):
        text = seen.message(row, "response").get("errorMessage")
        severity = None if row["n"] >= limit["failures"] else "info" if row["client_id"] in let_in else "medium"
        words, advice = why_refused(seen, row) or ("", REFUSED.get(row["sasl_mechanism"]))
        yield Finding(
            f"the login of {called(row['client_id'])}{with_mechanism(row)} failed {counted(row['n'], 'time')}"
            + (f": {text}" if text else "") + words,
            {"client_id": row["client_id"]}, row["n"],
            where("error == SASL_AUTHENTICATION_FAILED", client_id=row["client_id"], sasl_mechanism=row["sasl_mechanism"]),
            row["first_ns"], row["last_ns"], row["latency_ns"] or 0, {"failures": row["n"]}, severity,
            advice=advice,
        )  # fmt: skip
    if not any(call["api"] in TOKENS and call["reason"] in ("fin", "rst") for call in seen.calls):
        return
    links = seen.connections
    links = links.filter(links.closed_by == "server").select("connection", of="client_id")
    table = seen.exchanges.inner_join(links, "connection")
    last = table.filter(cut_short(table) & table.api.isin(list(TOKENS)), ~in_wrong_version(table))
    # a token without a Kafka header has no client id: the connection has
    last = last.mutate(client_id=last.client_id.coalesce(last.of))
    ends = ("client_id", "sasl_mechanism", "server_ip", "server_port")
    closed = in_groups(last, ends, raw=last.count(where=last.api == "SaslToken"))
    picked = picking(seen, last, *ends)
    for row in seen.run(closed.order_by("first_ns", *ends)):
        often, never = row["n"] >= limit["failures"], row["client_id"] not in let_in
        server = server_of(row)
        yield Finding(
            f"{server} closed {counted(row['n'], 'connection')} of {called(row['client_id'])} during its login"
            f"{with_mechanism(row)}, without a response to the SASL token",
            {"client_id": row["client_id"], "server": server}, row["n"],
            where(f"api in {{{', '.join(TOKENS)}}}", "reason in {fin, rst}", picked(row),
                  client_id=None if row["raw"] else row["client_id"], server_ip=row["server_ip"],
                  server_port=row["server_port"]),
            row["first_ns"], row["last_ns"], 0, {"closed": row["n"]},
            None if often and never else "medium" if often or never else "info", 0.75,
        )  # fmt: skip


@rule(
    "login-given-up", "high", 0.8,
    needs="requests responses",
    looks_at="connections that a client closes after the SaslHandshake response without sending a token, though the broker "
    "accepts the mechanism",
    advice="Look in the client's log: it could not create the first token of its login.",
    instead="a client that was stopped each time; a check whether a port accepts SASL",
    sources="KIP-43",
    connections=3,
)  # fmt: skip
def login_given_up(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A client that cannot continue its login, for example without a Kerberos ticket. The broker does not learn why."""
    if seen.most_calls("client_id", ("SaslHandshake",)) < limit["connections"]:
        return
    table, links = seen.exchanges, seen.connections
    whole = (links.closed_by == "client") & (links.client_missing + links.client_skipped == 0)
    ends = ("client_id", "server_ip", "server_port")
    each = table.group_by("connection", *ends).aggregate(
        begun=table.count(where=(table.api == "SaslHandshake") & (table.error == "NONE")),
        more=table.count(where=~table.api.isin(["ApiVersions", "SaslHandshake"])), sasl_mechanism=table.sasl_mechanism.max(),
        first_ns=table.request_first_ns.min(), last_ns=table.request_last_ns.max(),
    )  # fmt: skip
    left = each.filter(each.begun > 0, each.more == 0, each.connection.isin(links.filter(whole).connection))
    groups = in_groups(left, (*ends, "sasl_mechanism"), LASTED)
    for row in seen.run(groups.filter(groups.n >= int(limit["connections"]))):
        mechanism = row["sasl_mechanism"]
        yield Finding(
            f"{called(row['client_id'])} closed {counted(row['n'], 'connection')} to {server_of(row)} before the first token "
            f"of its login{with_mechanism(row)}",
            {"client_id": row["client_id"], "server": server_of(row)}, row["n"],
            where("api == SaslHandshake", client_id=row["client_id"], sasl_mechanism=mechanism, server_ip=row["server_ip"],
                  server_port=row["server_port"]),
            row["first_ns"], row["last_ns"], 0, {"connections": row["n"]}, advice=NO_TOKEN.get(mechanism),
        )  # fmt: skip


@rule(
    "sasl-mechanism-mismatch", "high", 0.95,
    needs="responses",
    looks_at="UNSUPPORTED_SASL_MECHANISM responses; connections that the broker closes at the first request after ApiVersions",
    advice="Set sasl.mechanism of the client to one that the listener enables (sasl.enabled.mechanisms), and "
    "security.protocol to SASL_*.",
    instead="for a client without SASL: a proxy without ACLs or a broker that is shutting down closes connections in the same "
    "way",
    sources="KIP-43, KIP-152",
    closed=3,
)  # fmt: skip
def sasl_mechanism_mismatch(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A client whose SASL mechanism the broker does not enable, or that does not use SASL where the listener requires it."""
    for row in seen.prepared(seen.errors(["UNSUPPORTED_SASL_MECHANISM"], ("client_id",))):
        wanted = seen.message(row, "request").get("mechanism")
        offered = seen.message(row, "response").get("mechanisms")
        detail = f" {wanted}; the broker enables {named(offered)}" if wanted and offered else ""
        yield Finding(
            f"{called(row['client_id'])} requested {counted(row['n'], 'time')} the SASL mechanism{detail}" if detail
            else f"the SASL mechanism of {called(row['client_id'])} was refused {counted(row['n'], 'time')}",
            {"client_id": row["client_id"]}, row["n"], where("api == SaslHandshake", client_id=row["client_id"]),
            row["first_ns"], row["last_ns"], row["latency_ns"] or 0, {"refused": row["n"], "mechanism": wanted,
            "offered": offered},
        )  # fmt: skip
    if not seen.some_cut_short:
        return
    table = seen.exchanges
    per_connection = table.group_by("connection", "client_id", "server_ip", "server_port").aggregate(
        exchanges=table.count(),
        closed=table.connection.count(where=cut_short(table)),
        refused=table.connection.count(where=(table.outcome == "unanswered") & in_wrong_version(table)),
        logins=table.connection.count(where=table.api.isin(["SaslHandshake", *TOKENS])),
        versions=table.connection.count(where=(table.api == "ApiVersions") & (table.outcome == "answered")),
        waited_ns=table.age_ns.max(), first_ns=table.request_first_ns.min(), last_ns=table.request_last_ns.max(),
    )  # fmt: skip
    dead = per_connection.filter(
        per_connection.logins == 0, per_connection.closed > 0, per_connection.refused == 0,
        per_connection.exchanges == per_connection.versions + per_connection.closed, per_connection.waited_ns < 500_000_000,
    )  # fmt: skip
    served = served_without_login(seen)
    rows = seen.run(in_groups(dead, ("client_id", "server_ip", "server_port"), LASTED, versions=dead.versions.max()))
    # A client may request the versions on its first connection alone, as KafkaJS does, or never, as aiokafka 0.8 does.
    kafka = {(call["server_ip"], call["server_port"]) for call in seen.calls_of(api="ApiVersions", outcome="answered")}
    rows = [row for row in rows if (place := (row["server_ip"], row["server_port"])) in kafka and place not in served]
    at = Counter[tuple[str, int]]()
    for row in rows:
        at[row["server_ip"], row["server_port"]] += row["n"]
    unanswered = Counter[tuple[str | None, str, int]]()  # a client may send several requests before it waits
    for call in seen.calls_of(outcome="unanswered"):
        unanswered[call["client_id"], call["server_ip"], call["server_port"]] += call["n"]
    for row in rows:
        if at[row["server_ip"], row["server_port"]] >= limit["closed"]:
            server = server_of(row)
            yield Finding(
                f"{server} closed {counted(row['n'], 'connection')} of {called(row['client_id'])} at the first request"
                + (" after ApiVersions" if row["versions"] else "") + "; the client never began SASL",
                {"client_id": row["client_id"], "server": server},
                unanswered[row["client_id"], row["server_ip"], row["server_port"]],
                where("outcome == unanswered", client_id=row["client_id"]), row["first_ns"], row["last_ns"], 0,
                {"closed": row["n"], "closed_of_all": at[row["server_ip"], row["server_port"]]},
                None if row["n"] >= limit["closed"] else "medium", 0.7,
            )  # fmt: skip


@rule(
    "sasl-session-expired", "medium", 0.9,
    needs="responses bodies",
    looks_at="requests that a client sends after the lifetime in its SaslAuthenticate response, without another login, and at "
    "which the server closes the connection; if no response has a lifetime, connections that the server closes equally long "
    "after their logins",
    advice="Use a library that logs in again on the connection (KIP-368), or raise connections.max.reauth.ms of the broker and "
    "the lifetime of tokens. The broker does not serve the request at which it closes.",
    instead="a server that was being stopped at that time; if no response has a lifetime, a proxy that ends connections after "
    "that time",
    sources="KIP-368",
    connections=2, alike=3, share=0.7, seconds=1,
)  # fmt: skip
def sasl_session_expired(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A client that does not log in again before its SASL session is over, so that the broker closes the connection at its next
    request.

    SaslAuthenticate v0 has no session lifetime. For such clients, the rule uses the longest lifetime that the server gave
    others, or one that `alike` or more connections have in common.
    """
    if not any(call["api"] == "SaslAuthenticate" and call["outcome"] == "answered" for call in seen.calls):
        return
    table = seen.exchanges
    logins = table.filter(table.api == "SaslAuthenticate", table.error == "NONE")
    logins = logins.group_by("connection").aggregate(
        login_ns=logins.response_last_ns.max(), login=logins.exchange.argmax(logins.response_last_ns)
    )
    dead = table.filter(cut_short(table), ~table.api.isin(list(OPENING)), table.connection.isin(seen.closed_by_server))
    ends = ("client_id", "server_ip", "server_port")
    dead = dead.group_by("connection", *ends).aggregate(
        sent_ns=dead.request_first_ns.min(), exchange=dead.exchange.min(), request_first_packet=dead.request_first_packet.min()
    )
    late = dead.inner_join(logins, "connection")
    groups = late.group_by(*ends).aggregate(
        n=late.count(), soonest_ns=(late.sent_ns - late.login_ns).min(), first_ns=late.sent_ns.min(),
        last_ns=late.sent_ns.max(), connection=late.connection.argmin(late.sent_ns), exchange=late.login.argmin(late.sent_ns),
    )  # fmt: skip
    picked = picking(seen, late, *ends)
    rows = seen.run(groups.filter(groups.n >= int(limit["connections"])))
    if not rows:
        return
    from kcap.reports.findings.logins import common_life, lifetimes  # for captures with such connections

    usual = lifetimes(seen)
    each = late.select(*ends, "sent_ns", "connection", life_ns=late.sent_ns - late.login_ns)
    lives = rows_by(seen.first(each, ("sent_ns", "connection"), EVENTS_MOST, "sessions"), ends)
    for row in seen.prepared(rows):
        own = seen.message(row, "response").get("sessionLifetimeMs") or 0
        known = (own or usual.get((row["server_ip"], row["server_port"]), 0)) * 1_000_000
        if known and known > row["soonest_ns"]:
            continue
        server = server_of(row)
        lasts = known or common_life([one["life_ns"] for one in lives.get(tuple(row[name] for name in ends), ())], limit)
        if not lasts:
            continue
        how = "" if own else " as other logins there say" if known else ", as its connections suggest"
        yield Finding(
            f"{server} closed {counted(row['n'], 'connection')} of {called(row['client_id'])} at a request after the end of "
            f"its SASL session, which lasts {seconds(lasts)}{how}; the client does not log in again",
            {"client_id": row["client_id"], "server": server}, row["n"],
            where("reason in {fin, rst}", picked(row), **{name: row[name] for name in ends}),
            row["first_ns"], row["last_ns"], 0, {"closed": row["n"], "lifetime_ns": lasts, "soonest_ns": row["soonest_ns"]},
            None, None if known else 0.7,
        )  # fmt: skip


def served_without_login(seen: Observed) -> set[tuple[str, int]]:
    """Servers that answered more than ApiVersions and logins on connections without a login."""
    return {
        (call["server_ip"], call["server_port"]) for call in seen.calls
        if call["outcome"] == "answered" and call["principal"] is None and call["api"] not in OPENING
    }  # fmt: skip


@rule(
    "authorization-denied", "medium", 0.95,
    needs="responses bodies",
    looks_at="*_AUTHORIZATION_FAILED errors",
    advice="Grant the principal the operation on the resource (kafka-acls.sh), or remove the resource from the client's "
    "configuration.",
    instead="a client that probes what it is allowed to do",
    errors=3, seconds=1,
)  # fmt: skip
def authorization_denied(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A principal that lacks a permission that its client needs.

    Requests that only look things up (Metadata, FindCoordinator, Describe...) may be those of an operator with a tool, or of a
    program that ended at the error. If a client gets fewer than `errors` refusals of such requests, or all of them within
    `seconds`, the finding is low. It is info if all of them are requests that only tools send.
    """
    names = [f"{what}_AUTHORIZATION_FAILED" for what in ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN")]
    by: dict[tuple[str, str], list[Row]] = {}
    denied = seen.errors(names, ("principal", "client_id", "error", "api", "topics", "group_id", "transactional_id"))
    for row in seen.prepared(denied, lambda row: row["api"] == "FindCoordinator"):
        by.setdefault((row["principal"] or "", row["error"]), []).append(row | {"resource": resource(seen, row)})
    if by:
        from kcap.reports.findings.permissions import next_step  # for captures with such errors
    for (principal, error), rows in by.items():
        clients = clients_in(rows)
        count = sum(row["n"] for row in rows)
        asks, lists = (all(row["api"].startswith(names) for row in rows) for names in (ASKING, LISTING))
        again = any(
            sum(row["n"] for row in some) >= limit["errors"] and lasted(some) >= limit["seconds"] * 1e9
            for some in rows_by(rows, "client_id").values()
        )
        kind = error.removesuffix("_AUTHORIZATION_FAILED")
        thing = kind.replace("_", " ").lower()
        refused, apis = sorted({row["resource"] for row in rows} - {None}), sorted({row["api"] for row in rows})
        what = f" ({thing if len(refused) == 1 else thing + 's'} {named(refused)})" if refused else ""
        yield Finding(
            f"{error} for principal {principal or 'unknown'}: {counted(count, 'response')} to "
            f"{named(apis)} of {named(clients)}{what}",
            {"principal": principal or None, "client_ids": clients}, count,
            where(f"error == {error}", "" if principal else "!principal", principal=principal or None),
            *times_of(rows), 0, {"denied": count} | ({"resources": refused} if refused else {}),
            None if again or not asks else "info" if lists else "low",
            advice=next_step(principal, kind, apis, refused),
        )  # fmt: skip


def lasted(rows: Sequence[Row]) -> int:
    """The time from the first of some classes of exchanges to the last, ns."""
    first, last = times_of(rows)
    return int(last - first)


def resource(seen: Observed, row: Row) -> str | None:
    """The topic, group or transactional id that a class of refused requests is about; None where it may be one of several."""
    kind = row["error"].removesuffix("_AUTHORIZATION_FAILED")
    names = {"TOPIC": row["topics"], "GROUP": [row["group_id"]], "TRANSACTIONAL_ID": [row["transactional_id"]]}.get(kind) or []
    if row["api"] == "FindCoordinator":  # no column has its key
        request = seen.message(row, "request")
        names = request.get("coordinatorKeys") or [request.get("key")]
    return str(names[0]) if len(names) == 1 and names[0] else None


@rule(
    "tls-plaintext-confusion", "high", 0.9,
    needs="responses beginnings",
    encrypted=True,
    looks_at="a plaintext request that gets only a TLS alert; a ClientHello to a port whose server sends nothing back and uses "
    "TLS on no other connection, and how soon that host tries again",
    advice="Set security.protocol of the client to what the listener speaks: SSL or SASL_SSL with TLS, PLAINTEXT or "
    "SASL_PLAINTEXT without. If the client is a proxy that terminates TLS or begins it, the listener behind it must speak what "
    "the proxy sends.",
    instead="for a ClientHello without a response: a health check or a scanner that tries TLS, another service that closes, or "
    "a server that drops the client for other reasons",
    connections=2, alerts=1,
)  # fmt: skip
def tls_plaintext_confusion(seen: Observed, limit: Mapping[str, float]) -> Found:
    """One side uses TLS and the other does not.

    Kafka's clients reconnect within a second or two (reconnect.backoff.max.ms), or at growing intervals. A host that tries less
    often, and either at regular intervals or only a few times, is a health check or a person: that is info.
    """
    groups: dict[tuple[object, ...], Row] = {}
    speak_tls = {
        (link["server_ip"], link["server_port"]) for link in seen.links
        if (link["tls"] or link["phase"] == "tls") and link["most_response_bytes"] > TLS_ALERT_BYTES
    }  # fmt: skip
    for link in seen.links:
        plain = link["phase"] == "kafka" and not link["tls"] and 0 < link["most_response_bytes"] <= TLS_ALERT_BYTES
        hello = link["phase"] == "tls" and link["most_response_bytes"] == 0 and link["server_packets"] > 0
        if not (plain or hello) or link["began"] != "syn" or (hello and (link["server_ip"], link["server_port"]) in speak_tls):
            continue
        probe = False
        if hello:
            from kcap.reports.findings.probing import probes

            probe = probes(seen, link)
        ends = plain, link["client_id"], link["server_ip"], link["server_port"], probe
        known = groups.setdefault(ends, {**link, "n": 0, "hosts": set()})
        known["n"] += link["n"]
        known["hosts"].add(link["client_ip"])
        known["first_ns"], known["last_ns"] = min(known["first_ns"], link["first_ns"]), max(known["last_ns"], link["last_ns"])
    for (plain, client, ip, port, even), row in groups.items():
        several = row["n"] >= limit["connections"]
        if row["n"] < limit["alerts" if plain else "connections"]:
            continue
        server, hosts = f"{ip}:{port}", sorted(row["hosts"])
        if plain:
            sentence = (
                f"{called(row['client_id'])} sends plaintext requests to {server}, which responds with a TLS alert "
                f"({counted(row['n'], 'connection')})"
            )
        else:
            closed = counted(row["n"], "connection")
            who = f"a TLS client at {hosts[0]} gets" if len(hosts) == 1 else f"TLS clients at {len(hosts):,} hosts get"
            sentence = f"{who} nothing back from {server}, which closes ({closed})"
            sentence += ", and tries again as a health check does" if even else ""
        yield Finding(
            sentence, {"client_id": client, "server": server, "client_ips": hosts}, row["n"],
            where(server_ip=ip, server_port=port, client_id=client) if plain else "", row["first_ns"], row["last_ns"], 0,
            {"connections": row["n"], "response_bytes": row["most_response_bytes"]},
            "info" if even else None if several else "medium", 0.95 if plain else 0.75,
        )  # fmt: skip


@rule(
    "wrong-advertised-listener", "high", 0.9,
    needs="responses bodies",
    looks_at="connections that are refused or never answered at addresses that Metadata responses advertise; several brokers "
    "with one address in a Metadata response; coordinators that clients look up again and again and never connect to",
    advice="Set advertised.listeners of the broker to a name and port that its clients can reach.",
    instead="a broker that was down while the capture ran, or a firewall; if clients never connect, connections that are not "
    "in the capture, for example because it was taken at another broker",
    refused=2, lookups=3, seconds=2, a_second=0.2,
)  # fmt: skip
def wrong_advertised_listener(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Brokers that send clients to an address that accepts no connection.

    The address of a broker that is down refuses connections as well. The difference is a broker that responds at an address
    that no broker advertises, while the advertised ones are dead: without it, the finding is info. If some advertised addresses
    work, it is medium: the unadvertised one may be a load balancer for bootstrap, and the dead one a broker that is down.
    Several dead addresses are one finding then, as one setting of one listener. `localhost` sends each client to its own host.

    A name that does not resolve leaves no packet: the client looks up its coordinator again and again. If several brokers
    advertise one address, such as that of a load balancer, connections are accepted, but most requests reach a broker that they
    are not meant for, which refuses them.
    """
    brokers = seen.run(seen.brokers)
    advertised = {(row["host"], row["port"]): row for row in brokers}
    yield from of_names(seen, limit, several=len(advertised) < len(brokers))

    def listener(ip: str, port: int) -> tuple[str, int]:
        """A server as brokers advertise it, if they do."""
        return (LOCALHOST, port) if is_own(ip) and (LOCALHOST, port) in advertised else (ip, port)

    alive = {listener(link["server_ip"], link["server_port"]) for link in seen.links if link["response_bytes"]}
    bootstrap = {listener(call["server_ip"], call["server_port"]) for call in seen.calls if call["api"] == "Metadata"}
    elsewhere, working = (alive & bootstrap) - advertised.keys(), alive & advertised.keys()
    named_at: dict[str, set[str]] = {}
    for link in seen.links:
        if link["client_id"]:
            named_at.setdefault(link["client_ip"], set()).add(link["client_id"])
    # who sends requests was accepted, also where the capture has no packet of the server
    accepting = {listener(link["server_ip"], link["server_port"]) for link in seen.links if link["phase"] != "empty"}
    dead: dict[tuple[str, int], Row] = {}
    for link in seen.links:
        place = listener(link["server_ip"], link["server_port"])
        refused = link["ended"] == "rst" and link["server_packets"] <= link["n"]
        if (
            link["phase"] == "empty"
            and link["began"] == "syn"
            and (refused or not link["server_packets"])
            and place in advertised
            and place not in accepting
        ):
            known = dead.setdefault(place, {**link, "n": 0, "hosts": set()})
            known["n"] += link["n"]
            known["hosts"].add(link["client_ip"])
            known["first_ns"], known["last_ns"] = (
                min(known["first_ns"], link["first_ns"]), max(known["last_ns"], link["last_ns"])
            )  # fmt: skip
    if dead:  # connections of brokers are not among those of clients: they too show that an address accepts connections
        every = seen.every_link
        served = every.filter(every.phase != "empty").select(*SERVER).distinct()
        for row in seen.run(served):
            dead.pop(listener(row["server_ip"], row["server_port"]), None)
    given: Mapping[tuple[str, int], set[str]] = {}
    if dead and seen.has_messages:
        from kcap.reports.findings.addresses import clients_given  # for captures with such an address

        given = clients_given(seen, dead)
    beside = f"; brokers respond at {named(sorted(f'{ip}:{port}' for ip, port in elsewhere))}, which none advertises"
    severity, confidence = ("info", 0.4) if not elsewhere else ("medium", 0.5) if working else (None, None)
    every = [(place, row) for place, row in dead.items() if row["n"] >= limit["refused"]]
    # one setting is wrong at all brokers, where they respond elsewhere; otherwise each may be down for its own reason
    for some in [every] if elsewhere and every else [[one] for one in every]:
        rows, servers = [row for _, row in some], sorted(f"{ip}:{port}" for (ip, port), _ in some)
        hosts, count, one = sorted(set.union(*(row["hosts"] for row in rows))), sum(row["n"] for row in rows), len(some) == 1
        most, clients = max(some, key=lambda pair: pair[1]["n"])[0], set[str]()
        for place, row in some:
            there = {client for ip in row["hosts"] for client in named_at.get(ip, ())}
            clients |= there & given.get(place, set()) or there  # others of these hosts may use other brokers
        yield Finding(
            f"brokers advertise {named(servers)}, which accepted none of {counted(count, 'connection')}"
            + (beside if elsewhere else "") + (f"; {'it' if one else 'they'} may be down" if working or not elsewhere else ""),
            {"server": f"{most[0]}:{most[1]}", "broker_id": advertised[most].get("broker_id") if one else None,
             "client_ips": hosts, "client_ids": sorted(clients)},
            count, "", *times_of(rows), 0, {"refused": count, "advertised": None if one else servers},
            severity, confidence,
        )  # fmt: skip


def of_names(seen: Observed, limit: Mapping[str, float], *, several: bool) -> Found:
    """What messages show of addresses; most captures have no reason to read any. `several`: some address is that of two
    brokers, at one time or at two."""
    busy = {call["client_id"] for call in seen.calls if call["api"] not in LOOKUPS}
    finds = [call for call in seen.calls_of(api="FindCoordinator", error="NONE") if call["client_id"] not in busy | {None}]
    if not seen.has_messages or not (several or finds):
        return
    from kcap.reports.findings.addresses import never_tried, one_for_several  # for captures with such a reason

    yield from one_for_several(seen)
    yield from never_tried(seen, finds, limit)


def controllers(seen: Observed) -> dict[tuple[str, int], frozenset[int]]:
    """Listeners of controllers among the servers of clients, by address, with the keys of the APIs that each offers: these have
    neither Produce nor Metadata, and no client got a response to such a request there."""
    served = {(call["server_ip"], call["server_port"]) for api in CLIENT_APIS.values() for call in
              seen.calls_of(api=api, outcome="answered")}  # fmt: skip
    calls = seen.calls_of(api="ApiVersions", error="NONE")
    offered = seen.offered([call for call in calls if (call["server_ip"], call["server_port"]) not in served])
    return {place: frozenset(keys) for place, keys in offered.items() if not keys.keys() & CLIENT_APIS.keys()}


@rule(
    "listener-is-controller", "high", 0.9,
    needs="responses messages beginnings bodies",
    looks_at="connections on which only ApiVersions gets a response, which offers neither Produce nor Metadata; the listener "
    "closes the connection at requests that it does not offer",
    advice="Set bootstrap.servers to a listener of the brokers. The listeners in controller.listener.names are for brokers and "
    "controllers.",
    instead="a tool that connects to controllers on purpose (bootstrap.controllers) and was stopped",
    sources="KIP-919, KIP-500",
)  # fmt: skip
def listener_is_controller(seen: Observed, _limit: Mapping[str, float]) -> Found:
    """A client that connects to a controller's listener."""
    used: dict[tuple[str, str, int], set[str]] = {}
    for call in seen.calls:
        if call["reason"] not in ("fin", "rst"):
            used.setdefault((call["client_id"], call["server_ip"], call["server_port"]), set()).add(call["api"])
    if {"ApiVersions"} not in used.values():
        return
    table = seen.every  # what brokers send a controller on the same connection makes it theirs
    offers = (table.api == "ApiVersions") & (table.error == "NONE")
    closed = cut_short(table) & in_wrong_version(table)
    by = table.group_by("connection", "client_id", "server_ip", "server_port").aggregate(
        versions=table.connection.count(where=offers), exchange=table.exchange.max(where=offers),
        others=table.connection.count(where=(table.api != "ApiVersions") & ~closed),
        first_ns=table.request_first_ns.min(), last_ns=table.request_last_ns.max(),
    )  # fmt: skip
    # raft-client-N are controllers themselves, and other requests may be among bytes that are missing
    links = seen.every_link
    whole = links.filter(links.client_missing + links.client_skipped == 0).select("connection")
    alone = by.filter(by.versions > 0, by.others == 0, ~of_brokers(by)).semi_join(whole, "connection")
    rows = seen.run(
        in_groups(
            alone, ("client_id", "server_ip", "server_port"), LASTED, connection=alone.connection.min(),
            exchange=alone.exchange.argmin(alone.connection),
        )
    )  # fmt: skip
    offered = seen.offered(rows)
    for row in rows:
        keys = offered.get((row["server_ip"], row["server_port"]), {}).keys()
        if keys and not keys & CLIENT_APIS.keys():
            server = server_of(row)
            yield Finding(
                f"{called(row['client_id'])} connected to {server}, a controller's listener: it offers neither Produce "
                "nor Metadata",
                {"client_id": row["client_id"], "server": server}, row["n"], where(client_id=row["client_id"],
                    server_ip=row["server_ip"]),
                row["first_ns"], row["last_ns"], 0, {"connections": row["n"], "apis_offered": len(keys)},
            )  # fmt: skip
