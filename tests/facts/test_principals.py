"""Laws of logins: names come from where mechanisms put them, and nothing secret ever is a name."""

from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.facts.principals import principal_of_token
from kcap.limits import PRINCIPAL_BYTES_MAX

NAMES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=40)
SECRETS = st.text("0123456789abcdef", min_size=12, max_size=20)


def jwt(claims: bytes) -> bytes:
    return b".".join((b"eyJhbGciOiJub25lIn0", urlsafe_b64encode(claims).rstrip(b"="), b"signature"))


@given(NAMES, SECRETS)
def test_plain(name: str, secret: str) -> None:
    assert principal_of_token("PLAIN", f"\0{name}\0{secret}".encode()) == name
    assert principal_of_token("PLAIN", f"other\0{name}\0{secret}".encode()) == name


@given(NAMES, SECRETS)
def test_scram(name: str, nonce: str) -> None:
    escaped = name.replace("=", "=3D").replace(",", "=2C")
    assert principal_of_token("SCRAM-SHA-512", f"n,,n={escaped},r={nonce}".encode()) == name


@pytest.mark.parametrize(
    ("mechanism", "token", "name"),
    [
        ("SCRAM-SHA-256", b"c=biws,r=nonce,p=proof", None),
        ("SCRAM-SHA-256", b"n,,n=4zkBcrHSR,r=nonce,tokenauth=true", None),
        ("SCRAM-SHA-256", b"n,,", None),
        ("PLAIN", b"alice", None),
        ("PLAIN", b"\0\xff\0secret", None),
        ("PLAIN", b"\0\0secret", None),
        ("PLAIN", b"\0" + b"x" * (PRINCIPAL_BYTES_MAX + 1) + b"\0secret", None),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer " + jwt(b'{"sub":"robot","exp":1}') + b"\x01\x01", "robot"),
        ("OAUTHBEARER", b"n,a=robot,\x01auth=Bearer opaque\x01\x01", "robot"),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer opaque\x01\x01", None),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer " + jwt(b'{"sub":5}') + b"\x01\x01", None),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer " + jwt(b'["sub"]') + b"\x01\x01", None),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer a.!!!.c\x01\x01", None),
        ("GSSAPI", b"\0alice\0secret", None),
        (None, b"\0alice\0secret", None),
    ],
)
def test_by_hand(mechanism: str | None, token: bytes, name: str | None) -> None:
    assert principal_of_token(mechanism, token) == name


@given(st.sampled_from(["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI", "X", None]), st.binary(max_size=80))
def test_nothing_raises(mechanism: str | None, token: bytes) -> None:
    name = principal_of_token(mechanism, token)
    assert name is None or (name and len(name.encode()) <= PRINCIPAL_BYTES_MAX)
