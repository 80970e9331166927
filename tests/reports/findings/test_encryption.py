"""Rules on handshakes that failed."""

import pytest

from kcap.reports.findings.report import check
from tests.reports.findings.tables import CONNECTION, SECOND, START, Row, found, observed

RULES = ("tls-certificate-refused", "tls-client-certificate-refused", "tls-nothing-in-common", "tls-handshake-failed")


def failed(*alerts: str, **more: object) -> Row:
    """A TLS connection without an exchange."""
    return CONNECTION | {
        "connection": "C1", "phase": "tls", "tls": True, "client_id": None, "exchanges": 0, "response_frames": 0,
        "server_port": 9093, "tls_version": "TLS 1.2", "tls_alerts": list(alerts),
    } | more  # fmt: skip


def rules_of(*connections: Row) -> dict[str, list[Row]]:
    """Findings by rule, of rules that find any; each connection is tried twice."""
    again = [row | {"connection": f"{row['connection']}b"} for row in connections]
    seen = observed([], connections=[*connections, *again])
    return {rule: rows for rule in RULES if (rows := found(rule, seen))}


@pytest.mark.parametrize(
    ("alerts", "more", "rule", "words"),
    [
        (["client: unknown_ca (the issuer)"], {"tls_server_subject": "CN=broker"}, RULES[0],
         "does not trust the issuer of the certificate CN=broker of 10.0.0.1:9093: TLS alert unknown_ca"),
        (["client: certificate_unknown"], {}, RULES[0], "does not accept the certificate of 10.0.0.1:9093"),
        (["client: unknown_ca", "server: handshake_failure"], {}, RULES[0], "does not trust"),
        (["client: encrypted_alert"], {"tls_version": "TLS 1.3"}, RULES[0], "probably does not accept"),
        (["server: certificate_required"], {"tls_version": "TLS 1.3"}, RULES[1], "requires a certificate"),
        (["server: bad_certificate"], {}, RULES[1], "got no certificate that it accepts"),
        (["server: unknown_ca"], {"tls_client_subject": "CN=app"}, RULES[1],
         "the certificate CN=app of the client at 10.0.0.9"),
        (["server: protocol_version"], {"tls_version": None}, RULES[2], "no TLS version that it supports"),
        (["server: handshake_failure"], {"tls_version": None}, RULES[2], "no cipher suite"),
        (["client: protocol_version"], {}, RULES[2], "refuses what 10.0.0.1:9093 chose (TLS 1.2)"),
        (["server: handshake_failure"], {}, RULES[3], "10.0.0.1:9093 ends the handshake with a client at 10.0.0.9"),
        (["client: decode_error"], {"tls_version": None}, RULES[3], "a client at 10.0.0.9 ends the handshake"),
    ],
)  # fmt: skip
def test_each_alert_has_one_finding_by_what_it_says(alerts: list[str], more: Row, rule: str, words: str) -> None:
    """The first alert counts; one connection never has findings of two rules."""
    by = rules_of(failed(*alerts, **more))
    assert list(by) == [rule]
    (row,) = by[rule]
    assert words in row["sentence"]
    assert (row["count"], row["who"]["server"], row["who"]["client_ips"]) == (2, "10.0.0.1:9093", ["10.0.0.9"])


def test_what_a_capture_lacks_accuses_nobody() -> None:
    midstream = failed("server: unknown_ca", tls_version=None, began="midstream")
    assert rules_of(midstream) == {}, "nothing tells which side is the server"
    assert list(rules_of(midstream | {"tls_ja4": "t12i1"})) == [RULES[1]]
    assert rules_of(failed("client: decode_error", client_missing=40)) == {}, "the handshake may have been over"
    assert rules_of(failed("server: handshake_failure", client_captured=0)) == {}, "it may be a reaction to the client's alert"


def test_a_request_before_the_refusal_of_a_certificate_hides_nothing() -> None:
    """A client of TLS 1.3 sends its first request before the server's alert, which keys show."""
    refused = failed("server: bad_certificate", tls_version="TLS 1.3", phase="kafka", client_id="app", exchanges=1)
    assert list(rules_of(refused)) == [RULES[1]]


def test_advice_is_about_what_the_alert_reports() -> None:
    (row,) = rules_of(failed("client: certificate_expired"))[RULES[0]]
    assert "truststore" not in row["advice"]
    assert "dates" in row["advice"]
    mixed = failed("client: unknown_ca", tls_ja4="t13i1"), failed("client: unknown_ca", connection="C2", tls_ja4="t13i2")
    (row,) = rules_of(*mixed)[RULES[0]]
    assert "ja4" not in row["evidence"], "several clients have no fingerprint in common"


def test_what_is_surer_has_more_confidence() -> None:
    rows = [rules_of(failed(f"client: {alert}"))[RULES[0]][0] for alert in ("unknown_ca", "bad_certificate", "encrypted_alert")]
    sure = [row["confidence"] for row in rows]
    assert sure == sorted(sure, reverse=True)
    assert len(set(sure)) == 3


def test_the_same_failure_again_and_again_is_one_finding() -> None:
    again = [failed("client: unknown_ca", connection=f"C{at}") for at in range(5)]
    (row,) = rules_of(*again)[RULES[0]]
    assert (row["count"], row["evidence"]["connections"]) == (10, 10)


def test_clients_that_try_once_are_one_finding_for_information() -> None:
    """A scanner's hello that a broker refuses is nobody's misconfiguration."""
    scans = [
        failed("server: handshake_failure", connection=f"C{at}", client_ip=f"10.9.0.{at}", tls_version=None) for at in range(9)
    ]
    (row,) = check(observed([], connections=scans))["rows"]
    assert (row["id"], row["severity"], row["count"]) == (RULES[2], "info", 9)
    assert len(row["who"]["client_ips"]) == 9


def test_connections_that_worked_or_only_closed_are_silent() -> None:
    assert not rules_of(
        failed("client: certificate_unknown", exchanges=3, response_frames=3, phase="kafka"),
        failed(), failed("client: user_canceled"),
        CONNECTION | {"connection": "C9"},
    )  # fmt: skip


def short(count: int, step: float, **more: object) -> list[Row]:
    """Whole handshakes, one each `step` seconds, on connections of a second."""
    times = [START + int(at * step * SECOND) for at in range(count)]
    return [
        failed(connection=f"C{at}", tls_handshake_ns=1_000_000, first_ns=first, last_ns=first + SECOND) | more
        for at, first in enumerate(times)
    ]


def test_encrypted_connections_that_all_end_soon_are_said_and_one_that_lives_speaks_for_the_host() -> None:
    rule = "tls-short-connections"
    (row,) = found(rule, observed([], connections=short(30, 1.0)))
    assert (row["count"], row["severity"], row["filter"]) == (30, "medium", "")
    assert row["confidence"] < 0.7, "nothing shows why"
    lives = short(1, 1.0, connection="D", closed_ns=START + 30 * SECOND)
    silent = {
        "one lives": [*short(30, 1.0), *lives], "few": short(19, 1.0), "seldom, as a health check": short(30, 10.0),
        "no whole handshake": short(30, 1.0, tls_handshake_ns=None), "read with keys": short(30, 1.0, exchanges=4),
        "another service": short(30, 1.0, server_port=443),
        "the handshake's end is known": short(30, 1.0, tls_alerts=["client: unknown_ca (the issuer)"]),
    }  # fmt: skip
    for why, links in silent.items():
        assert found(rule, observed([], connections=links)) == [], why


def test_a_handshake_behind_a_proxy_protocol_header_that_a_broker_does_not_know() -> None:
    """What SSLEngine of Java sends where the first bytes are no TLS record."""
    other = "server: internal_error (80)"
    behind = failed(other, tls_version=None, detail="PROXY protocol v2")
    (row,) = rules_of(behind)["tls-handshake-failed"]
    assert "which begins with a PROXY protocol header" in row["sentence"]
    assert "send-proxy" in row["advice"]
    for link in (failed(other, tls_version=None, detail="tls"), behind | {"tls_version": "TLS 1.3"}):
        (row,) = rules_of(link)["tls-handshake-failed"]
        assert "PROXY" not in row["sentence"] + row["advice"]
