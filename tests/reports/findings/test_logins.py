"""Why logins are refused: nonces of SCRAM, and times of tokens."""

import json
from base64 import b64encode, urlsafe_b64encode
from typing import Any

import pytest

from kcap.reports.findings.logins import common_life, lifetimes
from tests.reports.findings.tables import START, Row, exchange, found, observed

SECONDS = START // 1_000_000_000


def message(text: bytes) -> Row:
    return {"authBytes": b64encode(text).decode()}


def refused(mechanism: str, messages: dict[tuple[str, int, str], Row]) -> Row:
    """The finding of a login that fails with its second message."""
    rows = [exchange("C1", 1, "SaslAuthenticate", 0, sasl_mechanism=mechanism),
            exchange("C1", 2, "SaslAuthenticate", 1, error="SASL_AUTHENTICATION_FAILED", sasl_mechanism=mechanism)]  # fmt: skip
    (row,) = found("authentication-failed-loop", observed(rows, messages=messages))
    return row


@pytest.mark.parametrize(
    ("given", "sent", "other"),
    [
        (b"r=plumPEAR,s=c2FsdA==,i=4096", b"c=biws,r=plumplumPEAR,p=cHJvb2Y=", True),
        (b"r=plumPEAR,s=c2FsdA==,i=4096", b"c=biws,r=plumPEAR,p=cHJvb2Y=", False),
        (b"e=other-error", b"c=biws,r=plumPEAR,p=cHJvb2Y=", False),
        (b"r=plumPEAR,s=c2FsdA==,i=4096", b"", False),
        (b"r=plumPEAR,s=c2FsdA==,i=4096", b"\xff\xfe", False),
    ],
)
def test_a_nonce_that_is_not_the_servers_is_no_wrong_password(given: bytes, sent: bytes, other: bool) -> None:
    row = refused("SCRAM-SHA-256", {("C1", 1, "response"): message(given), ("C1", 2, "request"): message(sent)})
    assert ("another nonce" in row["sentence"], "Upgrade the client" in row["advice"]) == (other, other)


def test_messages_that_cannot_be_had_say_nothing() -> None:
    for mechanism in ("SCRAM-SHA-512", "OAUTHBEARER", "PLAIN"):
        assert refused(mechanism, {})["sentence"] == f"the login of client app with {mechanism} failed 1 time"


def bearer(claims: Any) -> Row:
    parts = [urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "none"}, claims)]
    return message(b"n,,\x01auth=Bearer " + b".".join(parts) + b".\x01\x01")


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ({"sub": "fig", "exp": SECONDS - 600}, "; its token had expired 10m 1s before"),
        ({"sub": "fig", "exp": SECONDS + 600.5}, ""),
        ({"sub": "fig", "exp": SECONDS + 600, "nbf": SECONDS + 61}, "; its token is valid from 1m 0s later on"),
        ({"sub": "fig", "exp": "soon"}, ""),
        (["exp"], ""),
    ],
)
def test_a_token_says_when_it_is_valid(claims: Any, words: str) -> None:
    row = refused("OAUTHBEARER", {("C1", 1, "request"): bearer(claims), ("C1", 2, "request"): message(b"\x01")})
    assert row["sentence"] == f"the login of client app with OAUTHBEARER failed 1 time{words}"
    assert ("issuer" in row["advice"]) is not bool(words)


def test_an_opaque_token_says_nothing() -> None:
    row = refused("OAUTHBEARER", {("C1", 1, "request"): message(b"n,,\x01auth=Bearer opaque\x01\x01")})
    assert row["sentence"].endswith("failed 1 time")
    row = refused("OAUTHBEARER", {("C1", 1, "request"): message(b"n,,\x01auth=Bearer a.b!c.d\x01\x01")})
    assert row["sentence"].endswith("failed 1 time")


def test_the_life_that_most_connections_have_in_common() -> None:
    limit = {"alike": 3, "share": 0.7, "seconds": 1}
    second = 1_000_000_000
    assert common_life([10 * second, 10 * second + 5, 10 * second + 9], limit) == 10 * second
    assert common_life([10 * second, 10 * second], limit) == 0, "too few"
    assert common_life([second, 5 * second, 10 * second, 10 * second, 20 * second], limit) == 0, "they differ"
    assert common_life([second // 10] * 5, limit) == 0, "so short a session ends for another reason"
    assert common_life([], limit) == 0


def test_the_longest_session_that_a_server_gives() -> None:
    """The last message of a login has it; version 0 has none."""
    rows = [exchange(name, 1 + step, "SaslAuthenticate", at + step / 10, api_version=version, server_ip=server)
            for at, (name, version, server) in enumerate((("C1", 2, "10.0.0.1"), ("C2", 1, "10.0.0.2"), ("C3", 0, "10.0.0.3")))
            for step in (0, 1)]  # fmt: skip
    given = {("C1", 2, "response"): 3_600_000, ("C1", 1, "response"): 0, ("C2", 1, "response"): 5_000, ("C3", 1, "response"): 7}
    seen = observed(rows, messages={place: {"sessionLifetimeMs": life} for place, life in given.items()})
    assert lifetimes(seen) == {("10.0.0.1", 9092): 3_600_000, ("10.0.0.2", 9092): 5_000}
