"""One record: what authenticates is opened, and nothing else."""

import pickle

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from kcap.tls.key_schedule import WriteKeys, fixed_iv_bytes
from kcap.tls.record_ciphers import RecordOpener, opener_of
from kcap.tls.suites import suite_of

KEYS = WriteKeys(b"k" * 16, b"i" * 12)


def sealed(number: int, data: bytes, padding: int = 0, content_type: bytes = b"\x17") -> bytes:
    """A record of TLS 1.3, with application data if nothing else is said (RFC 8446 section 5.2)."""
    nonce = (int.from_bytes(KEYS.iv, "big") ^ number).to_bytes(12, "big")
    inner = data + content_type + bytes(padding)
    return AESGCM(KEYS.key).encrypt(nonce, inner, b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2, "big"))


def opener() -> RecordOpener:
    made = opener_of(0x0304, suite_of(0x1301).cipher, KEYS)
    assert made is not None
    return made


@given(st.integers(0, 1 << 40), st.binary(max_size=60), st.integers(0, 9), st.integers(0, 1 << 20))
def test_a_record_opens_under_its_own_number_alone(number: int, data: bytes, padding: int, flip: int) -> None:
    body = sealed(number, data, padding)
    opened = opener().open(number, 23, 0x0303, body)
    assert opened is not None
    assert (opened.content_type, opened.plaintext) == (23, data)
    assert opener().open(number + 1, 23, 0x0303, body) is None
    broken = bytearray(body)
    broken[flip % len(body)] ^= 1
    assert opener().open(number, 23, 0x0303, bytes(broken)) is None


@given(st.sampled_from([0x1301, 0xC02F, 0xCCA8, 0x002F, 0xC028, 0xC0A0, 0x0002]), st.binary(max_size=80), st.integers(20, 24))
def test_any_bytes_are_taken(number: int, body: bytes, content_type: int) -> None:
    suite = suite_of(number)
    assert suite.cipher is not None
    version = 0x0304 if number == 0x1301 else 0x0303
    iv = 12 if version == 0x0304 else fixed_iv_bytes(version, suite.cipher)
    made = opener_of(version, suite.cipher, WriteKeys(b"k" * suite.cipher.key_bytes, b"i" * iv, b"m" * 20))
    assert made is not None
    made.passed(body)
    assert made.open(0, content_type, 0x0303, body) is None


def test_an_opener_is_a_value() -> None:
    again = pickle.loads(pickle.dumps(opener()))
    assert again.open(3, 23, 0x0303, sealed(3, b"x")) is not None


def test_a_cipher_that_is_not_there_gives_no_opener() -> None:
    assert opener_of(0x0303, suite_of(0x0005).cipher, KEYS) is None  # RC4


@pytest.mark.parametrize("number", [0x0002, 0x002F, 0xC028])
def test_tls_13_has_ciphers_with_an_aead_alone(number: int) -> None:
    """A damaged ServerHello may name any suite beside the version."""
    cipher = suite_of(number).cipher
    assert cipher is not None
    assert opener_of(0x0304, cipher, WriteKeys(b"k" * cipher.key_bytes, b"i" * 12, b"m" * 20)) is None


def test_what_was_released_is_made_again() -> None:
    made = opener()
    made.release()
    assert made.opens_many
    assert made.open(3, 23, 0x0303, sealed(3, b"x")) is not None
