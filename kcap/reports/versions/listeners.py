"""Diagnoses of listeners: TLS, SASL, other protocols, addresses that do not answer.

In: a `DiagnosisContext`. Out: troubles added to it. Law: a sentence follows from what was seen on the connections it names; a
connection that began before the capture, or shows one direction only, accuses nobody.

Facts: KIP-43 and KIP-152 (SASL), RFC 8446 section 6 for the alert of 7 bytes.
"""

from collections.abc import Callable
from typing import Final

from kcap.facts.brokers import LOCAL, Server
from kcap.reports.definition import uid
from kcap.reports.versions.diagnosis import (
    ENDS,
    ERROR,
    WARNING,
    Diagnosis,
    DiagnosisContext,
    Row,
    call,
    place,
    server_of,
    subject,
    whole_line,
)
from kcap.reports.versions.profile_store import ALERT_BYTES
from kcap.reports.versions.profiles import AUTHENTICATE, HANDSHAKE
from kcap.schema.quirks import API_VERSIONS

UNSUPPORTED_MECHANISM, ILLEGAL_STATE, AUTHENTICATION_FAILED = 33, 34, 58
"""Kafka's error codes of SASL."""


# -- listeners and protocols ----------------------------------------------------------------------------------------------
def protocols(case: DiagnosisContext) -> None:
    """TLS, HTTP and worse on Kafka's ports."""
    for line in case.whole.others:
        server, phase, detail = server_of(line), line["phase"], line["detail"] or ""
        both = line["began"] == "syn" and line["ended"] in ENDS and (line["server_packets"] or 0) > 0
        key, who = (line["client_ip"], server), {"client_ip": line["client_ip"], "client_id": None, "server": place(server)}
        one, there = str(line["connection"]), line["server_captured"] or 0
        clean = not line["server_missing"] and not line["client_missing"]
        if phase == "tls" and both and clean and there == 0:
            proof = "plaintext Kafka is spoken there" if server in case.kafka else "it sends not one byte back"
            case.add(key, one, one, Diagnosis(
                "tls_on_plaintext", ERROR,
                f"{line['client_ip']} opens TLS to {place(server)}, which closes the connection: {proof}, on {{n}}",
                "The client has security.protocol SSL or SASL_SSL and the listener is plaintext: compare it with the broker's "
                "listener.security.protocol.map, and the port with its listeners.", who,
            ))  # fmt: skip
        elif phase == "tls" and both and clean and there == ALERT_BYTES:
            case.add(key, one, one, Diagnosis(
                "tls_refused", ERROR,
                f"{place(server)} answers the TLS hello of {line['client_ip']} with an alert and no hello of its own, on {{n}}",
                "The two have no TLS version or cipher in common: compare ssl.enabled.protocols and ssl.cipher.suites.", who,
            ))  # fmt: skip
        elif phase == "http":
            case.add(key, one, one, Diagnosis(
                "http_on_kafka", WARNING,
                f"{line['client_ip']} speaks HTTP to {place(server)}, on {{n}}",
                "A health check, a browser or a scraper at the wrong port: Kafka closes such connections.", who,
            ))  # fmt: skip
        elif phase == "opaque" and server in case.kafka and line["began"] == "syn" and line["client_captured"]:
            case.add((*key, detail), one, one, Diagnosis(
                "bad_framing", WARNING,
                f"{line['client_ip']} sends {place(server)} what is no Kafka request ({detail}), on {{n}}",
                "A hand-written client with a wrong length or header, or a port scanner: a frame begins with its length "
                "(int32, "
                "without itself), API key, API version and correlation id.", who,
            ))  # fmt: skip


def plaintext_on_tls(case: DiagnosisContext) -> None:
    """Kafka requests that a TLS listener answers with an alert."""
    for profile, client, name in case.profiles():
        line = profile.line
        alert = line.get("server_captured") == ALERT_BYTES and not line.get("server_framed")
        if (
            alert
            and whole_line(profile)
            and profile.opening
            and profile.opening[0].outcome == "unanswered"
            and line.get("ended") in ENDS
        ):
            at = uid(profile.uid, profile.opening[0].exchange)
            case.add((profile.identity.client_ip, client, profile.server), profile.uid, at, Diagnosis(
                "plaintext_on_tls", ERROR,
                f"{name} speaks plaintext to {place(profile.server)}, which answers with {ALERT_BYTES} bytes that are no "
                f"Kafka, the "
                "size of a TLS alert, and closes, on {n}",
                "The listener wants TLS: set security.protocol to SSL or SASL_SSL, or use the plaintext port.",
                subject(profile, client),
            ))  # fmt: skip


def logins(case: DiagnosisContext) -> None:
    """SASL that does not meet."""
    for profile, client, name in case.profiles():
        who, key = subject(profile, client), (profile.identity.client_ip, client, profile.server)
        for api, code in profile.errors:
            at = uid(profile.uid, profile.error_example[api, code])
            if api == HANDSHAKE and code == UNSUPPORTED_MECHANISM:
                has = ", ".join(profile.mechanisms) or "others"
                case.add(key, profile.uid, at, Diagnosis(
                    "sasl_mechanism", ERROR,
                    f"{name} wants SASL {profile.mechanism} and {place(profile.server)} has {has}, on {{n}}",
                    "Set sasl.mechanism to one that the listener has, or add it to sasl.enabled.mechanisms.", who,
                ))  # fmt: skip
            elif api == HANDSHAKE and code == ILLEGAL_STATE:
                case.add(key, profile.uid, at, Diagnosis(
                    "sasl_on_plain", ERROR,
                    f"{name} starts SASL on {place(profile.server)}, a listener without it, on {{n}}",
                    "The listener is PLAINTEXT or SSL: use the SASL port, or drop SASL from security.protocol.", who,
                ))  # fmt: skip
            elif api == AUTHENTICATE and code == AUTHENTICATION_FAILED:
                case.add(key, profile.uid, at, Diagnosis(
                    "sasl_failed", ERROR,
                    f"{place(profile.server)} refuses the credentials of {name} (SASL {profile.mechanism}), on {{n}}",
                    "User, password or token are wrong or unknown to the broker; versions are not the reason.", who,
                ))  # fmt: skip
        if (
            profile.server in case.sasl
            and profile.mechanism is None
            and whole_line(profile)
            and profile.line.get("ended") in ENDS
        ):
            first = next((step for step in profile.opening if step.key != API_VERSIONS), None)
            done = [step for step in profile.opening if step.key != API_VERSIONS and step.outcome == "answered"]
            if (
                first is not None
                and not done
                and first.outcome == "unanswered"
                and first.reason in ENDS
                and first.key != HANDSHAKE
            ):
                case.add(key, profile.uid, uid(profile.uid, first.exchange), Diagnosis(
                    "sasl_missing", ERROR,
                    f"{name} sends {call(first.key, first.version)} to {place(profile.server)}, where others log in with SASL "
                    f"first, "
                    "and is cut off, on {n}",
                    "Set security.protocol to SASL_PLAINTEXT or SASL_SSL.", who,
                ))  # fmt: skip


def unreachable(case: DiagnosisContext) -> None:
    """Addresses that were tried and never answered."""
    tried: dict[Server, list[Row]] = {}
    reached = {stored.server for stored in case.every}
    for line in case.whole.others:
        server = server_of(line)
        if line["began"] != "syn" or (line["client_captured"] or 0) or (line["server_captured"] or 0):
            reached.add(server)
        elif (line["server_packets"] or 0) == 0 or (
            line["ended"] == "rst" and line["packets"] <= 2 * (line["server_packets"] or 0)
        ):
            tried.setdefault(server, []).append(line)
        else:
            reached.add(server)
    told = set(case.whole.tracker.brokers.nodes)
    for server, lines in tried.items():
        listed = any(endpoint in told for endpoint in case.whole.tracker.brokers.endpoints(server))
        if server in reached or not (listed or server[1] in {other[1] for other in case.kafka}):
            continue
        refused = any(line["server_packets"] for line in lines)
        local = server[0] in LOCAL and any(line["client_ip"] not in LOCAL for line in lines)
        wrong = listed and (local or not refused)
        how = "is refused" if refused else "is never answered"
        sentence = f"brokers tell clients to go to {place(server)}, and" if listed else f"of connections to {place(server)},"
        advice = (
            "nothing listens there: see whether that broker runs" if refused else "compare advertised.listeners and firewalls"
        )
        if local:
            advice = "an address of the broker's own machine is advertised: set advertised.listeners to what clients can reach"
        for line in lines:
            one, kind = str(line["connection"]), "wrong_listener" if wrong else "unreachable"
            case.add((server,), one, one, Diagnosis(
                kind, ERROR, f"{sentence} each try {how}, on {{n}}", f"{advice[0].upper()}{advice[1:]}.",
                {"client_ip": line["client_ip"], "client_id": None, "server": place(server)},
            ))  # fmt: skip


RULES: Final[tuple[Callable[[DiagnosisContext], None], ...]] = (protocols, plaintext_on_tls, logins, unreachable)
