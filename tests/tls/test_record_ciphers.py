"""One record: what authenticates is opened, and nothing else."""

import hmac
import pickle

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from kcap.tls.key_schedule import WriteKeys, fixed_iv_bytes
from kcap.tls.record_ciphers import RecordOpener, block_of, opener_of
from kcap.tls.suites import suite_of
from tests.support.tls import sealed_record

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


def keyed(version: int, number: int) -> RecordOpener:
    cipher = suite_of(number).cipher
    assert cipher is not None
    iv = 12 if version == 0x0304 else fixed_iv_bytes(version, cipher)
    made = opener_of(version, cipher, WriteKeys(b"k" * cipher.key_bytes, b"i" * iv))
    assert made is not None
    return made


AEADS = [
    (0x0304, 0x1301), (0x0304, 0x1303), (0x0304, 0x1305), (0x0303, 0xC02F), (0x0303, 0xCCA8), (0x0303, 0xC0AC),
    (0x0303, 0xC0AE),
]  # fmt: skip
"""GCM, ChaCha20-Poly1305 and CCM with both tags, of TLS 1.3 and 1.2."""


@pytest.mark.parametrize(("version", "number"), AEADS)
@given(st.integers(0, 1 << 40), st.sampled_from([20, 21, 22, 23]), st.binary(max_size=60))
def test_records_of_each_aead_open_in_each_way(version: int, number: int, at: int, kind: int, data: bytes) -> None:
    made = keyed(version, number)
    record = sealed_record(made, at, data, kind)
    opened = made.open(at, record[0], 0x0303, record[5:])
    assert opened is not None
    assert (opened.content_type, opened.plaintext) == (kind, data)
    whole = made.open_whole(at, record)
    if kind == 23:
        assert whole is not None
        assert whole.buffer[: whole.size] == data
    else:
        assert whole is None
    assert made.handshake(at, record) == (data if kind == 22 else None)
    assert made.open_whole(at + 1, record) is None
    assert made.handshake(at + 1, record) is None


@pytest.mark.parametrize(("version", "number"), [pair for pair in AEADS if pair[0] == 0x0304])
def test_packed_keys_open_the_same_records(version: int, number: int) -> None:
    made = keyed(version, number)
    again = RecordOpener.unpacked(made.packed, suite_of(number))
    record = sealed_record(made, 7, b"data")
    assert again.open(7, 23, 0x0303, record[5:]) == made.open(7, 23, 0x0303, record[5:])


def chained(version: int, number: int, records: list[bytes], *, etm: bool) -> tuple[RecordOpener, list[bytes]]:
    """What opens records of CBC, and their bodies (RFC 5246 section 6.2.3.2, RFC 7366)."""
    cipher = suite_of(number).cipher
    assert cipher is not None
    size, iv = cipher.block_bytes, b"i" * cipher.block_bytes
    made = opener_of(version, cipher, WriteKeys(b"k" * cipher.key_bytes, iv, b"m" * 20), etm=etm)
    assert made is not None
    bodies = []
    for at, data in enumerate(records):
        head = at.to_bytes(8, "big") + b"\x17" + version.to_bytes(2, "big")
        mac = hmac.digest(b"m" * 20, head + len(data).to_bytes(2, "big") + data, cipher.mac)
        inner = data if etm else data + mac
        padding = size - 1 - len(inner) % size
        start = bytes([at]) * size if version > 0x0301 else iv
        encryptor = Cipher(block_of(cipher, b"k" * cipher.key_bytes), modes.CBC(start)).encryptor()
        sealed_part = encryptor.update(inner + bytes([padding]) * (padding + 1)) + encryptor.finalize()
        iv = sealed_part[-size:]
        body = (start if version > 0x0301 else b"") + sealed_part
        if etm:
            body += hmac.digest(b"m" * 20, head + len(body).to_bytes(2, "big") + body, cipher.mac)
        bodies.append(body)
    return made, bodies


@pytest.mark.parametrize("etm", [False, True])
@pytest.mark.parametrize("version", [0x0301, 0x0303])
@pytest.mark.parametrize("number", [0x002F, 0x000A], ids=["AES", "3DES"])
def test_records_of_cbc_open_in_their_order(version: int, number: int, etm: bool) -> None:
    wanted = [b"first", b"", b"third" * 20]
    made, bodies = chained(version, number, wanted, etm=etm)
    for at, (data, body) in enumerate(zip(wanted, bodies)):
        assert made.open(at + 1, 23, version, body) is None, "the number is under the MAC"
        opened = made.open(at, 23, version, body)
        assert opened is not None
        assert (opened.content_type, opened.plaintext) == (23, data)
    made, bodies = chained(version, number, wanted, etm=etm)
    made.passed(bodies[0])
    made.passed(bodies[1])
    assert made.open(2, 23, version, bodies[2]) is not None, "records that were passed are chained too"
    for at in range(len(bodies[2])):
        assert made.open(2, 23, version, bodies[2][:at]) is None


def test_a_suite_that_encrypts_nothing_has_a_mac() -> None:
    cipher = suite_of(0x0002).cipher
    made = opener_of(0x0303, cipher, WriteKeys(b"", b"", b"m" * 20))
    assert made is not None
    assert made.aead is None
    head = bytes(8) + b"\x17\x03\x03\0\x05"
    opened = made.open(0, 23, 0x0303, b"plain" + hmac.digest(b"m" * 20, head + b"plain", "sha1"))
    assert opened is not None
    assert opened.plaintext == b"plain"
    assert made.open_whole(0, b"\x17\x03\x03\0\x05plain") is None
