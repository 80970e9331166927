"""Diagnoses of listeners: TLS, SASL, other protocols.

In: a `DiagnosisContext`. Out: troubles added to it. Law: a sentence follows from what was seen on the connections that it
names; a connection that began before the capture, or shows only one direction, is no evidence.

Sources: KIP-43 and KIP-152 (SASL), RFC 8446 section 6 for the alert of 7 bytes.
"""

from collections.abc import Callable
from typing import Final

from kcap.facts.brokers import Server
from kcap.kafka.headers import GSSAPI
from kcap.reports.definition import uid
from kcap.reports.versions.diagnosis import (
    ENDS,
    ERROR,
    WARNING,
    Diagnosis,
    DiagnosisContext,
    Row,
    call,
    once,
    place,
    server_of,
    subject,
    whole_line,
)
from kcap.reports.versions.profile import AUTHENTICATE, HANDSHAKE, ConnectionProfile
from kcap.reports.versions.profile_templates import ALERT_BYTES
from kcap.reports.versions.profiles import TOKEN
from kcap.schema.quirks import API_VERSIONS
from kcap.tls.handshake import ENCRYPTED_ALERT

UNSUPPORTED_MECHANISM, ILLEGAL_STATE, AUTHENTICATION_FAILED = 33, 34, 58
"""Kafka's error codes of SASL."""


CERTIFICATE_ALERTS: Final = (
    "bad_certificate", "unsupported_certificate", "certificate_revoked", "certificate_expired", "certificate_unknown",
    "unknown_ca",
)  # fmt: skip
"""Alerts by which a client refuses the server's certificate (RFC 8446 section 6.2)."""
FINISHED_LEAST: Final = 58
"""Minimum size in bytes of an encrypted Finished of TLS 1.3 with its record header; an encrypted alert has 24, and 40 from Java
(RFC 8446)."""
CHANGE_CIPHER_BYTES: Final = 6
SEALED_ALERT: Final = 24
FLIGHT_LEAST: Final = 500
"""Minimum size in bytes of a server's flight that contains a certificate."""
REPEATED: Final = 3
WRONG: Final = "User, password or token are wrong or unknown to the broker; its log names the reason."
PERHAPS_WRONG: Final = (
    "A broker closes in this way if it refuses a login, or if it is being stopped. Its log names the reason: user, password or "
    "token may be wrong or unknown to it."
)
"""Advice about logins without success."""


# -- listeners and protocols ----------------------------------------------------------------------------------------------
def protocols(case: DiagnosisContext) -> None:
    """TLS, HTTP and other protocols on Kafka's ports."""
    decrypted = once(lambda profile: bool(profile.line.get("tls_version")))
    encrypted = {server_of(line) for line in case.whole.others if line.get("tls_version")}
    encrypted |= {stored.server for stored in case.every if decrypted(stored)}
    for line in case.whole.others:
        server, phase, detail = server_of(line), line["phase"], line["detail"] or ""
        both = line["began"] == "syn" and line["ended"] in ENDS and (line["server_packets"] or 0) > 0
        one, there = str(line["connection"]), line["server_captured"] or 0
        clean = not line["server_missing"] and not line["client_missing"]
        client, where = line["client_ip"], place(server)
        who = {"client_ip": client, "client_id": None, "server": where}
        silent = phase == "tls" and both and clean and there == 0 and line.get("closed_by") != "client"
        if silent and server not in encrypted:
            proof = "other clients use plaintext Kafka there" if server in case.kafka else "it sends no byte"
            case.add((server,), one, one, Diagnosis(
                "tls_on_plaintext", ERROR,
                f"a TLS client{{at}} connects to {where}, which closes the connection: {proof}, on {{n}}",
                "The client has security.protocol SSL or SASL_SSL, and the listener is probably plaintext: compare it with the "
                "broker's listener.security.protocol.map, and the port with its listeners.", who,
            ))  # fmt: skip
        elif phase == "tls" and both and clean and there == ALERT_BYTES:
            alert = (line.get("alerts") or "").removeprefix("server: ")
            case.add((server, alert), one, one, Diagnosis(
                "tls_refused", ERROR,
                f"{where} responds to the ClientHello of a client{{at}} with an "
                f"alert{f' ({alert})' if alert else ''} and no ServerHello, "
                "on {n}",
                "The alert names the reason: for handshake_failure and protocol_version, compare ssl.enabled.protocols and "
                "ssl.cipher.suites of both sides.", who,
            ))  # fmt: skip
        elif phase == "tls" and both and clean and there > ALERT_BYTES and (said := refused_client(line)) is not None:
            case.add((server, said), one, one, Diagnosis(
                "client_certificate_refused", ERROR,
                f"{where} refuses the certificate of a client{{at}}, or that it sent none: TLS alert {said}, on {{n}}",
                "The listener requires a client certificate (ssl.client.auth): set ssl.keystore.location (or "
                "ssl.certificate.location) of the client to one whose issuer is in the broker's truststore.", who,
            ))  # fmt: skip
        elif phase == "tls" and both and clean and has_certificate(line) and (said := refused_certificate(line)) is not None:
            case.add((server, said), one, one, Diagnosis(
                "certificate_refused", ERROR,
                f"a client{{at}} ends the TLS handshake at the certificate {certificate_of(line)}of {where}: {said}, on {{n}}",
                "The client probably does not trust the issuer, or the certificate does not have the name that it connected "
                "to: compare ssl.truststore.location (or ssl.ca.location), and the certificate's names with the address.", who,
            ))  # fmt: skip
        elif phase == "http" and (server in case.kafka or there == 0):
            case.add((server,), one, one, Diagnosis(
                "http_on_kafka", WARNING,
                f"a client{{at}} sends HTTP to {where}, on {{n}}",
                "A health check, a browser or a scraper may use the wrong port: Kafka closes such connections.", who,
            ))  # fmt: skip
        elif phase == "opaque" and detail == GSSAPI:
            if both and clean and there == 0 and line.get("closed_by") == "server":
                case.add((server, GSSAPI), one, one, Diagnosis(
                    "sasl_failed", ERROR, f"{where} closes the connection after a GSSAPI token of a client{{at}} without a "
                    "response, which refuses the login (SASL of 0.9, without SaslHandshake), on {n}",
                    "Compare keytab, principal and sasl.kerberos.service.name with the broker's. Clients of 0.10 and later "
                    "send SaslHandshake first, after which a broker may report why it refuses.", who,
                ))  # fmt: skip
        elif phase == "opaque" and clean and server in case.kafka and line["began"] == "syn" and line["client_captured"] and (
            "too few" not in detail or line.get("closed_by") == "server"
        ):  # fmt: skip
            case.add((server, detail), one, one, Diagnosis(
                "bad_framing", WARNING,
                f"a client{{at}} sends {where} bytes that are not a Kafka request ({detail}), on {{n}}",
                "A hand-written client with a wrong length or header, or a port scanner: a frame begins with its length "
                "(int32, which does not count itself), API key, API version and correlation id.", who,
            ))  # fmt: skip


def refused_client(line: Row) -> str | None:
    """The alert by which a server refused a client for its certificate or the lack of one; None if it is not the
    first alert."""
    first = (line.get("alerts") or "").partition("; ")[0]
    alert = first.removeprefix("server: ")
    return alert if alert != first and alert in (*CERTIFICATE_ALERTS, "certificate_required") else None


def has_certificate(line: Row) -> bool:
    """Whether a server sent its certificate: it was read, or the flight is as long as one with a certificate."""
    return line.get("tls_server_subject") is not None or (line["server_captured"] or 0) >= FLIGHT_LEAST


def certificate_of(line: Row) -> str:
    """The subject of the server's certificate and a space; empty if it is not known."""
    subject_name = line.get("tls_server_subject")
    return f"{subject_name} " if subject_name else ""


def refused_certificate(line: Row) -> str | None:
    """How a client ended the handshake at the certificate of a server; None if it did not, or if nothing shows it."""
    alerts = [
        alert.removeprefix("client: ")
        for alert in (line.get("alerts") or "").split("; ")
        if alert.startswith("client: ") and alert != f"client: {ENCRYPTED_ALERT}"  # what the bytes say is below
    ]
    for alert in alerts:
        if alert in CERTIFICATE_ALERTS:
            return f"TLS alert {alert}"
    hello = line.get("hello_bytes") or 0
    behind = (line["client_captured"] or 0) - hello
    if alerts or not hello or not 0 <= behind < CHANGE_CIPHER_BYTES + FINISHED_LEAST:
        return None
    if behind >= SEALED_ALERT:
        return "its next record has the size of an encrypted alert and is too small for a Finished"
    return "it closes the connection without a Finished" if line.get("closed_by") == "client" else None


def closed_at_once(case: DiagnosisContext) -> None:
    """Servers that close connections repeatedly before a byte was sent."""
    by: dict[tuple[str, Server], list[Row]] = {}
    for line in case.whole.others:
        bytes_ = (line["client_captured"] or 0) + (line["server_captured"] or 0)
        opened = line["began"] == "syn" and line["ended"] in ENDS and (line["server_packets"] or 0) > 1
        if line["phase"] == "empty" and not bytes_ and opened and line.get("closed_by") == "server":
            by.setdefault((line["client_ip"], server_of(line)), []).append(line)
    for (client, server), lines in by.items():
        if len(lines) < REPEATED:
            continue
        for line in lines:
            case.add((server,), str(line["connection"]), str(line["connection"]), Diagnosis(
                "closed_at_once", WARNING,
                f"{place(server)} accepts connections of a client{{at}} and closes them before a byte is sent, {{n}}",
                "A load balancer without a backend, max.connections or max.connections.per.ip, or a listener that is shutting "
                "down: see the broker's log.",
                {"client_ip": client, "client_id": None, "server": place(server)},
            ))  # fmt: skip


def plaintext_on_tls(case: DiagnosisContext) -> None:
    """Kafka requests to which a TLS listener responds with an alert."""
    for profile, client in case.profiles():
        line = profile.line
        alert = line.get("server_captured") == ALERT_BYTES and not line.get("server_framed")
        unanswered = bool(profile.opening) and profile.opening[0].outcome == "unanswered"
        if alert and whole_line(profile) and unanswered and line.get("ended") in ENDS:
            at = uid(profile.uid, profile.opening[0].exchange)
            case.add((client, *case.group(profile.uid, client), profile.server), profile.uid, at, Diagnosis(
                "plaintext_on_tls", ERROR,
                f"{{servers}} respond{{vs}} to plaintext requests of {{who}} with {ALERT_BYTES} bytes that are not a Kafka "
                "response, "
                "the size of a TLS alert, and close{vs} the connection, on {n}",
                "The listener requires TLS: set security.protocol to SSL or SASL_SSL, or use the plaintext port.",
                subject(profile, client),
            ))  # fmt: skip


def other_protocol(case: DiagnosisContext) -> None:
    """Servers that respond to Kafka requests with something else."""
    for profile, client in case.profiles():
        line = profile.line
        captured, framed = line.get("server_captured") or 0, line.get("server_framed") or 0
        if not whole_line(profile) or framed or captured <= ALERT_BYTES or profile.server in case.kafka or not profile.opening:
            continue
        at = uid(profile.uid, profile.opening[0].exchange)
        case.add((*case.group(profile.uid, client), profile.server), profile.uid, at, Diagnosis(
            "other_protocol", ERROR,
            "{servers} respond{vs} to Kafka requests of {who} with bytes that are not a Kafka response, on {n}",
            "Another service listens there, such as a web server (HTTP) or a proxy: `kcap show` has the bytes. Check host and "
            "port of bootstrap.servers.", subject(profile, client),
        ))  # fmt: skip


def logins(case: DiagnosisContext) -> None:
    """SASL exchanges that do not complete."""
    for profile, client in case.profiles():
        who, key = subject(profile, client), (client, *case.group(profile.uid, client), profile.server)
        for api, code in profile.errors:
            at = uid(profile.uid, profile.error_example[api, code])
            if api == HANDSHAKE and code == UNSUPPORTED_MECHANISM:
                has = ", ".join(profile.mechanisms) or "others"
                case.add((*key, profile.mechanism), profile.uid, at, Diagnosis(
                    "sasl_mechanism", ERROR,
                    f"{{who}} request{{s}} SASL {profile.mechanism}, and {{servers}} offer{{vs}} {has}, on {{n}}",
                    "Set sasl.mechanism to one that the listener has, or add it to sasl.enabled.mechanisms.", who,
                ))  # fmt: skip
            elif api == HANDSHAKE and code == ILLEGAL_STATE:
                case.add(key, profile.uid, at, Diagnosis(
                    "sasl_on_plain", ERROR,
                    "{who} begin{s} SASL on {servers}, a listener without it, on {n}",
                    "The listener is PLAINTEXT or SSL: use the SASL port, or drop SASL from security.protocol.", who,
                ))  # fmt: skip
            elif api == AUTHENTICATE and code == AUTHENTICATION_FAILED:
                refused_login(case, profile, client, at, "refuse{vs} the credentials", WRONG)
        silent = next((step for step in profile.opening if step.outcome == "unanswered" and step.reason in ENDS), None)
        lost = silent is not None and profile.line.get("closed_by") != "client" and whole_line(profile)
        if lost and silent is not None and silent.key in (TOKEN, AUTHENTICATE):
            kind = "SASL token" if silent.key == TOKEN else "SaslAuthenticate"
            refused_login(
                case, profile, client, uid(profile.uid, silent.exchange),
                f"close{{vs}} the connection after a {kind} without a response", PERHAPS_WRONG,
            )  # fmt: skip
        if profile.server in case.sasl and profile.mechanism is None and lost:
            first = next((step for step in profile.opening if step.key != API_VERSIONS), None)
            done = [step for step in profile.opening if step.key != API_VERSIONS and step.outcome == "answered"]
            if first is not None and not done and first == silent and first.key not in (HANDSHAKE, TOKEN):
                case.add((*key, first.key, first.version), profile.uid, uid(profile.uid, first.exchange), Diagnosis(
                    "sasl_missing", ERROR,
                    f"{{servers}} close{{vs}} the connection after {call(first.key, first.version)} of {{who}}: other "
                    "clients log in with SASL "
                    "there first, on {n}",
                    "Set security.protocol to SASL_PLAINTEXT or SASL_SSL.", who,
                ))  # fmt: skip


def refused_login(
    case: DiagnosisContext, profile: ConnectionProfile, client: str | None, example: str, how: str, advice: str
) -> None:
    """A login that the broker refused, or to which it did not respond."""
    mechanism = f" (SASL {profile.mechanism})" if profile.mechanism else ""
    case.add((client, *case.group(profile.uid, client), profile.server, profile.mechanism), profile.uid, example, Diagnosis(
        "sasl_failed", ERROR, f"{{servers}} {how} of {{who}}{mechanism}, on {{n}}",
        advice, subject(profile, client),
    ))  # fmt: skip


RULES: Final[tuple[Callable[[DiagnosisContext], None], ...]] = (
    protocols, closed_at_once, plaintext_on_tls, other_protocol, logins,
)  # fmt: skip
