"""TLS handshakes that failed: certificates that were not accepted, client certificates, versions and ciphers.

The first alert of a connection is the evidence (RFC 5246 section 7.2.2, RFC 8446 section 6.2); what follows it is a reaction.
Alerts do not name their cause in detail, and implementations choose among them: findings claim no more than the alert does.
Connections with responses are no failed handshakes. A request alone proves nothing: with TLS 1.3, a client sends one before the
server can refuse its certificate (RFC 8446 section 4.4.2.4).
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from kcap.kafka.proxy_header import has_header
from kcap.limits import SERVERS_MOST
from kcap.reports.definition import at_usual_port
from kcap.reports.findings.model import Finding, Found, rule, seconds
from kcap.reports.findings.network import ENDS
from kcap.reports.findings.observed import LASTED, Observed, Row, in_groups, rows_by, server_of, times_of
from kcap.reports.text import NO_PROXY_HEADER
from kcap.reports.text import count as counted

CERTIFICATE_ALERTS: Final = {
    "unknown_ca": "does not trust the issuer of",
    "certificate_expired": "rejects the validity dates of",
    "certificate_revoked": "reports that the issuer revoked",
    "unsupported_certificate": "cannot use the type of",
    "bad_certificate": "does not accept",
    "certificate_unknown": "does not accept",
}
"""Alerts about the peer's certificate, and what their sender does."""
RENEW: Final = {
    "certificate_expired": "Compare the dates of the broker's certificate with the clock of the client's host: renew the "
    "certificate, or set the clock.",
    "certificate_revoked": "Give the broker a new certificate (ssl.keystore.location).",
}
"""Alerts about a certificate -> advice, where a truststore does not help."""
REQUIRED: Final = "certificate_required"
PARAMETER_ALERTS: Final = {
    "protocol_version": "no TLS version that it supports",
    "insufficient_security": "no cipher suite that is strong enough for it",
    "handshake_failure": "no cipher suite, group or signature algorithm that both have",
    "no_application_protocol": "no application protocol (ALPN) that both have",
    "unrecognized_name": "no server of the name that the client requests (SNI)",
    "inappropriate_fallback": "a lower version than both have",
}
"""Alerts that a server sends in place of its hello, and what it found."""
AFTERWARDS: Final = frozenset({"close_notify", "user_canceled", "no_renegotiation"})
"""Alerts that do not say that a handshake failed."""
ENCRYPTED: Final = "encrypted_alert"
"""As `kcap.tls.session` calls an alert of TLS 1.3 that it knows by its length alone."""


def failed(seen: Observed) -> list[Row]:
    """Connections whose handshake ended with an alert, by their ends, first alert and certificates: `by` is the alert's sender,
    `alert` its name, `tries` how many connections of this client to this server ended so.
    """
    if not any(link["tls"] for link in seen.links):
        return []
    table = seen.connections
    # without the beginning of a connection and without a hello nothing shows which side is the client
    begun = (table.began == "syn") | table.tls_ja4.notnull() | table.tls_version.notnull()
    alerts = table.filter(table.tls & (table.response_frames == 0) & (table.tls_alerts.length() > 0) & begun)
    keys = ("client_ip", "server_ip", "server_port", "tls_version", "tls_sni", "tls_server_subject", "tls_client_subject",
            "detail")  # fmt: skip
    alerts = alerts.mutate(first_alert=alerts.tls_alerts[0])
    missing = alerts.client_missing + alerts.server_missing
    rows = seen.run(
        in_groups(
            alerts, (*keys, "first_alert"), LASTED, ja4=alerts.tls_ja4.min(), last_ja4=alerts.tls_ja4.max(),
            lacking=alerts.count(where=(missing > 0) | (alerts.client_captured == 0) | (alerts.server_captured == 0)),
        )
    )  # fmt: skip
    for row in rows:
        row["by"], _, text = row["first_alert"].partition(": ")
        row["alert"] = text.partition(" (")[0]
    rows = [row for row in rows if row["alert"] not in AFTERWARDS]
    tries = Counter[tuple[str, str]]()
    for row in rows:
        tries[row["client_ip"], server_of(row)] += row["n"]
    return [{**row, "tries": tries[row["client_ip"], server_of(row)]} for row in rows]


def probes(rows: Sequence[Row], limit: Mapping[str, float]) -> Iterator[Finding]:
    """Clients that tried too seldom to be Kafka's, which try again until they are stopped: one finding per server and alert."""
    seldom = (row for row in rows if row["tries"] < limit["connections"])
    for (*_, alert), some in rows_by(seldom, ("server_ip", "server_port", "alert")).items():
        server, count = server_of(some[0]), sum(row["n"] for row in some)
        yield Finding(
            f"{server} ended {counted(count, 'TLS handshake')} with {alert} whose clients did not try again, as scanners and "
            "probes do",
            {"server": server, "client_ips": sorted({row["client_ip"] for row in some})}, count, "",
            *times_of(some), 0,
            {"connections": count, "alert": f"server: {alert}"}, "info",
        )  # fmt: skip


def of(seen: Observed, side: str, alerts: Collection[str], *, hello: bool | None = None) -> list[Row]:
    """Failed handshakes whose first alert is one of these, from this side; `hello`: after a ServerHello, or before any."""
    return [
        row for row in seen.once(failed)
        if row["by"] == side and row["alert"] in alerts and (hello is None or (row["tls_version"] is not None) is hello)
    ]  # fmt: skip


def finding(
    row: Row, sentence: str, confidence: float | None = None, severity: str | None = None, advice: str | None = None
) -> Finding:
    """A finding of these connections."""
    count = row["n"]
    how = "by an encrypted alert" if row["alert"] == ENCRYPTED else f"TLS alert {row['alert']}"
    return Finding(
        f"{sentence}: {how}, on {count} connection{'s' if count != 1 else ''}",
        {"server": server_of(row), "client_ips": [row["client_ip"]]}, count, "", row["first_ns"], row["last_ns"], 0,
        {"connections": count, "alert": f"{row['by']}: {row['alert']}", "version": row["tls_version"], "sni": row["tls_sni"],
         "server_subject": row["tls_server_subject"], "client_subject": row["tls_client_subject"],
         "ja4": row["ja4"] if row["ja4"] == row["last_ja4"] else None},
        severity, confidence, advice,
    )  # fmt: skip


def certificate(subject: str | None, owner: str) -> str:
    """A certificate in a sentence."""
    return f"the certificate {subject} of {owner}" if subject else f"the certificate of {owner}"


@rule(
    "tls-certificate-refused", "high", 0.95,
    needs="beginnings",
    encrypted=True,
    looks_at="the first alert of a client after the server's certificate (unknown_ca, bad_certificate and the like); in TLS "
    "1.3 without keys, a record of the length of an alert in place of the client's Finished",
    advice="Put the issuer of the broker's certificate into the client's truststore (ssl.truststore.location, "
    "ssl.ca.location). For bad_certificate and certificate_unknown, also check the certificate's dates, and compare its names "
    "with the host name that the client connects to (ssl.endpoint.identification.algorithm).",
    instead="bad_certificate and certificate_unknown only mean that the client does not accept the certificate, for its "
    "issuer, host name, dates or signature; an encrypted alert may be about anything else in the server's part of the "
    "handshake",
    sources="RFC 8446 section 6.2, RFC 5246 section 7.2.2",
)  # fmt: skip
def tls_certificate_refused(seen: Observed, _limit: Mapping[str, float]) -> Found:
    """A client that does not accept a broker's certificate."""
    for row in of(seen, "client", CERTIFICATE_ALERTS):
        whose = certificate(row["tls_server_subject"], server_of(row))
        sentence = f"a client at {row['client_ip']} {CERTIFICATE_ALERTS[row['alert']]} {whose}"
        confidence = None if row["alert"] not in ("bad_certificate", "certificate_unknown") else 0.9
        yield finding(row, sentence, confidence, advice=RENEW.get(row["alert"]))
    for row in of(seen, "client", (ENCRYPTED,), hello=True):
        server = server_of(row)
        yield finding(row, f"a client at {row['client_ip']} probably does not accept the certificate of {server}: after it, "
                           "the client ends the handshake", 0.7)  # fmt: skip


@rule(
    "tls-client-certificate-refused", "high", 0.9,
    needs="beginnings",
    encrypted=True,
    looks_at="a server's alert about the client's certificate: certificate_required, bad_certificate, unknown_ca and the like",
    advice="Give the client a certificate (ssl.keystore.location, ssl.certificate.location) signed by an issuer in the "
    "broker's truststore, or set ssl.client.auth of the listener to none or requested.",
    instead="a missing certificate and a refused one look the same without the client's Certificate message (TLS 1.3 encrypts "
    "it), unless the alert is certificate_required",
    sources="RFC 8446 section 4.4.2.4",
)  # fmt: skip
def tls_client_certificate_refused(seen: Observed, _limit: Mapping[str, float]) -> Found:
    """A client without a certificate, or with one that the broker does not accept."""
    for row in of(seen, "server", {REQUIRED, *CERTIFICATE_ALERTS}):
        server, client, subject = server_of(row), f"the client at {row['client_ip']}", row["tls_client_subject"]
        if row["alert"] == REQUIRED:
            yield finding(row, f"{server} requires a certificate, and {client} sends none", 0.95)
        elif subject:
            yield finding(row, f"{server} {CERTIFICATE_ALERTS[row['alert']]} {certificate(subject, client)}", 0.95)
        else:
            yield finding(row, f"{server} got no certificate that it accepts from {client}")


@rule(
    "tls-nothing-in-common", "high", 0.9,
    needs="beginnings",
    encrypted=True,
    looks_at="a server's alert in place of its ServerHello (protocol_version, handshake_failure and the like); a client's "
    "protocol_version, insufficient_security, handshake_failure or illegal_parameter alert after the ServerHello",
    advice="Compare ssl.enabled.protocols and ssl.cipher.suites of client and listener, and check that the suites match the "
    "type of the broker's key (RSA, ECDSA). For unrecognized_name, check the name that the client connects to.",
    instead="a server without a usable key in its keystore, which refuses every client with handshake_failure",
    sources="RFC 8446 section 4.1.1",
    connections=2,
)  # fmt: skip
def tls_nothing_in_common(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A client and a broker that have no TLS version or cipher suite in common."""
    refused = of(seen, "server", PARAMETER_ALERTS, hello=False)
    yield from probes(refused, limit)
    for row in refused:
        if row["tries"] < limit["connections"]:
            continue
        yield finding(row, f"{server_of(row)} finds {PARAMETER_ALERTS[row['alert']]} in the hello of a client at "
                           f"{row['client_ip']}")  # fmt: skip
    for row in of(seen, "client", ("protocol_version", "insufficient_security", "handshake_failure", "illegal_parameter")):
        chosen = row["tls_version"]
        yield finding(row, f"a client at {row['client_ip']} refuses what {server_of(row)} chose"
                           + (f" ({chosen})" if chosen else ""), 0.8)  # fmt: skip


@rule(
    "tls-handshake-failed", "medium", 0.8,
    needs="beginnings",
    encrypted=True,
    looks_at="any other alert that ends a connection before its first exchange; whether the connection begins with a PROXY "
    "protocol header",
    advice="Look in the log of the side that sent the alert. The column tls_alerts of the table connections has the meaning of "
    "the alert.",
    instead="an alert in the middle of a connection whose traffic could not be decrypted, or is not Kafka",
)  # fmt: skip
def tls_handshake_failed(seen: Observed, _limit: Mapping[str, float]) -> Found:
    """A TLS handshake that failed for a reason that no other rule reports."""
    elsewhere = {id(row) for row in (
        *of(seen, "client", CERTIFICATE_ALERTS), *of(seen, "client", (ENCRYPTED,), hello=True),
        *of(seen, "server", {REQUIRED, *CERTIFICATE_ALERTS}), *of(seen, "server", PARAMETER_ALERTS, hello=False),
        *of(seen, "client", ("protocol_version", "insufficient_security", "handshake_failure", "illegal_parameter")),
    )}  # fmt: skip
    for row in seen.once(failed):
        if id(row) not in elsewhere:
            one, other = f"a client at {row['client_ip']}", server_of(row)
            sender, peer = (one, other) if row["by"] == "client" else (other, one)
            # where bytes are missing the handshake may have been over, or the alert a reaction to the other side's
            severity = "info" if row["lacking"] else None
            proxied = row["by"] == "server" and row["tls_version"] is None and has_header(row["detail"])
            begins = ", which begins with a PROXY protocol header" if proxied else ""
            sentence = f"{sender} ends the handshake with {peer}{begins}"
            yield finding(row, sentence, None, severity, NO_PROXY_HEADER if proxied else None)


@rule(
    "tls-short-connections", "medium", 0.6,
    needs="beginnings",
    encrypted=True,
    looks_at="TLS connections without keys from a host to a usual port of Kafka: each ends within seconds of a complete "
    "handshake, and the next begins",
    advice="Look in the client's log for authentication errors at these times. With the keys of the sessions (--tls-keylog), "
    "kcap shows how each ended. The table tls_turns has the number and sizes of their requests and responses.",
    instead="all of these look the same: a login that fails (SASL_SSL), a request that the broker refuses, a client "
    "certificate that TLS 1.3 refuses after the handshake, a program that creates a client for each task, and a health check",
    sources="KIP-43, KIP-152",
    connections=20, a_second=0.5, life=5,
)  # fmt: skip
def tls_short_connections(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Encrypted connections that all end soon after they begin, again and again. Which side closes is no evidence: a refused
    client closes as well, and servers close first after a close_notify alert with which the client ends.
    """
    if all(link["phase"] != "tls" for link in seen.links):
        return
    links = seen.connections
    whole = links.filter(
        links.phase == "tls", links.began == "syn", links.exchanges == 0, links.tls_handshake_ns.notnull(),
        links.tls_alerts.length().fill_null(0) == 0, at_usual_port(links),
    )  # fmt: skip
    life_ns = whole.closed_ns.coalesce(whole.last_ns) - whole.first_ns
    groups = in_groups(whole, ENDS, LASTED, longest_ns=life_ns.max())
    short = groups.filter(groups.n >= int(limit["connections"]), groups.longest_ns <= int(limit["life"] * 1e9))
    often = short.filter(short.n * 1e9 >= limit["a_second"] * (short.last_ns - short.first_ns))
    for row in seen.first(often, ("first_ns", *ENDS), SERVERS_MOST, "servers_of_short_connections"):
        rate = row["n"] / max((row["last_ns"] - row["first_ns"]) / 1e9, 1.0)
        yield Finding(
            f"all {row['n']} encrypted connections of {row['client_ip']} to {server_of(row)} ended within "
            f"{seconds(row['longest_ns'])}, {rate:.1f} a second",
            {"server": server_of(row), "client_ips": [row["client_ip"]]}, row["n"], "", row["first_ns"], row["last_ns"], 0,
            {"connections": row["n"], "connections_a_second": round(rate, 1), "longest_ns": row["longest_ns"]},
        )  # fmt: skip
