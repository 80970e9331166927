"""Why logins are refused: nonces of SCRAM, and times of tokens."""

import json
from base64 import b64encode, urlsafe_b64encode
from typing import Any

import pytest

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
