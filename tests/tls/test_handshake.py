"""Handshake messages in the open."""

import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace

import pytest
from cramjam import brotli
from hypothesis import given
from hypothesis import strategies as st
from zstandard import ZstdCompressor

from kcap import limits
from kcap.tls.handshake import (
    ALERT_MEANINGS,
    ALERTS,
    CLIENT_HELLO,
    ENCRYPTED_ALERT,
    Hello,
    PackedExtensions,
    alert_text,
    decompressed,
    ja3,
    ja4,
    messages,
    read_certificates,
    read_client_hello,
    read_encrypted_extensions,
    read_server_hello,
    repeated,
    sender12,
    sender13,
    subject_of,
)  # fmt: skip
from tests.fuzz.hostile import wide_hello
from tests.support.tls import CLIENT, converse


def hello() -> bytes:
    """The ClientHello of a real handshake, without its header."""
    made, _ = converse([], version="TLSv1_2", ciphers="AES128-GCM-SHA256")
    return next(data for side, data in made.wire if side == CLIENT)[9:]


def vector(size: int, data: bytes) -> bytes:
    return len(data).to_bytes(size, "big") + data


def extension(number: int, data: bytes) -> bytes:
    return number.to_bytes(2, "big") + vector(2, data)


MADE = (
    b"\x03\x03" + bytes(32) + vector(1, b"") + vector(2, bytes.fromhex("0a0a13011302c02f")) + vector(1, b"\0")
    + vector(2, extension(0, vector(2, b"\0" + vector(2, b"broker.test"))) + extension(0x1A1A, b"")
             + extension(10, vector(2, bytes.fromhex("001d0017"))) + extension(11, vector(1, b"\0"))
             + extension(13, vector(2, bytes.fromhex("04030804"))) + extension(16, vector(2, vector(1, b"h2")))
             + extension(43, vector(1, bytes.fromhex("0a0a03040303"))))
)  # fmt: skip


def test_a_client_hello_is_read() -> None:
    found = read_client_hello(MADE)
    assert found is not None
    assert (found.server_name, found.protocols, found.offered_versions) == ("broker.test", ["h2"], (0x0A0A, 0x0304, 0x0303))


def test_fingerprints_leave_grease_out() -> None:
    """JA3's text is `771,4865-4866-49199,0-10-11-13-16-43,29-23,0`; JA4's parts are counted and hashed as FoxIO says."""
    from hashlib import md5, sha256

    found = read_client_hello(MADE)
    assert found is not None
    assert ja3(found) == md5(b"771,4865-4866-49199,0-10-11-13-16-43,29-23,0").hexdigest()
    suites = sha256(b"1301,1302,c02f").hexdigest()[:12]
    extensions = sha256(b"000a,000b,000d,002b_0403,0804").hexdigest()[:12]
    assert ja4(found) == f"t13d0306h2_{suites}_{extensions}"


@pytest.mark.parametrize(
    ("version", "extensions", "head"),
    [
        (0x0303, {16: b"\0\x03\x02h2"}, "t12i0101h2"),
        (0x0303, {16: b"\0\x02\x01k"}, "t12i0101kk"),
        (0x0303, {16: b"\0\x04\x03\xabcd"}, "t12i0101a4"),
        (0x0303, {16: b"\0\x04\x03h/2"}, "t12i0101h2"),
        (0x0303, {16: b"\0\x03\x02h/"}, "t12i01016f"),
        (0x0303, {16: b"\0\0"}, "t12i010100"),
        (0x0303, {0: b""}, "t12d010100"),
        (0x0300, {}, "ts3i010000"),
        (0x0200, {}, "t00i010000"),
    ],
)
def test_the_first_part_of_ja4_is_as_foxio_says(version: int, extensions: dict[int, bytes], head: str) -> None:
    """SNI counts where the extension is there; of an ALPN that begins or ends with a sign the hexadecimal form is named."""
    assert ja4(Hello(version, bytes(32), b"", (0x1301,), extensions)).partition("_")[0] == head


def test_a_real_hello_and_certificate_are_read() -> None:
    made, _ = converse([], version="TLSv1_2", ciphers="AES128-GCM-SHA256")
    found = read_client_hello(hello())
    assert found is not None
    assert found.server_name == "broker.test"
    flight = bytearray(b"".join(data for side, data in made.wire if side != CLIENT))
    bodies = bytearray()
    while flight[:1] == b"\x16":
        size = int.from_bytes(flight[3:5], "big")
        bodies += flight[5 : 5 + size]
        del flight[: 5 + size]
    reported = {number: body for number, body, _ in messages(bodies)}
    server = read_server_hello(reported[2])
    assert server is not None
    assert (server.version, server.suites) == (0x0303, (0x009C,))
    (certificate,) = read_certificates(reported[11])
    assert (sender12(reported[11]), sender12(vector(3, b"")), sender13(reported[11])) == (certificate, None, None)
    assert sender13(b"\0" + vector(3, vector(3, certificate) + vector(2, b""))) is sender12(reported[11])
    assert subject_of(certificate) == "CN=broker.test"
    for at in range(60):  # versions, numbers, lengths and types of the beginning, damaged
        for flipped in (1, 0x20, 0xFF):
            subject_of(certificate[:at] + bytes([certificate[at] ^ flipped]) + certificate[at + 1 :])


def test_what_repeats_is_read_once_and_neither_many_nor_long_fields_are_held() -> None:
    read: list[bytes] = []

    @repeated
    def taken(data: bytes) -> int:
        read.append(data)
        return len(data)

    short, long = b"s" * limits.TLS_REPEATED_BYTES, b"l" * (limits.TLS_REPEATED_BYTES + 1)
    assert [taken(short), taken(bytes(bytearray(short)))] == [len(short)] * 2
    assert read == [short]
    assert [taken(long), taken(long)] == [len(long)] * 2
    assert read == [short, long, long]
    for number in range(limits.TLS_REPEATS):
        taken(number.to_bytes(2, "big"))
    taken(short)
    assert read[-1] == short


def test_messages_wait_for_their_end() -> None:
    buffer = bytearray(bytes([CLIENT_HELLO, 0, 0, 3]) + b"ab")
    assert list(messages(buffer)) == []
    buffer += b"c" + b"\x0e\0\0\0"
    assert [(number, body) for number, body, _ in messages(buffer)] == [(1, b"abc"), (14, b"")]


@given(st.binary(max_size=120), st.integers(0, len(MADE)))
def test_any_bytes_are_taken(data: bytes, at: int) -> None:
    for text in (data, MADE[:at] + data):
        found = read_client_hello(text)
        if found is not None:
            assert isinstance(ja4(found) + ja3(found) + str(found.server_name) + str(found.protocols), str)
        read_server_hello(text)
        for certificate in read_certificates(text) + read_certificates(text, tls13=True):
            subject_of(certificate)


def test_every_alert_but_close_notify_has_a_meaning() -> None:
    assert set(ALERT_MEANINGS) == set(ALERTS.values()) - {"close_notify"} | {ENCRYPTED_ALERT}


def test_an_alert_is_written_with_its_meaning_where_it_has_one() -> None:
    assert alert_text("client: unknown_ca") == f"client: unknown_ca ({ALERT_MEANINGS['unknown_ca']})"
    assert alert_text("server: alert 199") == "server: alert 199"


def test_encrypted_extensions_name_the_protocol_that_was_chosen() -> None:
    assert read_encrypted_extensions(bytes.fromhex("000c 0010 0008 0006 05") + b"kafka") == ("kafka", False)
    assert read_encrypted_extensions(bytes.fromhex("0004 002a 0000")) == (None, True)


def test_a_hello_of_many_suites_and_extensions_stays_as_small_as_its_bytes() -> None:
    """Law: what such a hello says is what a narrow one with the same fields would; it takes little more than its bytes."""
    data = wide_hello(7)[9:]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    made = [read_client_hello(bytes(bytearray(data))) for _ in range(20)]
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert held < 20 * 1.5 * len(data)
    found = made[-1]
    assert found is not None
    assert list(found.suites) == [49 + n for n in range(2000)]
    assert list(found.extensions) == [0, *range(1000, 2000)]
    assert len(found.extensions) == 1001
    assert found.extensions.get(1001) == b""
    assert 2 not in found.extensions
    assert found.server_name == "00000007" + "n" * 192
    plain = replace(
        found, suites=tuple(found.suites), extensions={number: found.extensions[number] for number in found.extensions}
    )
    assert type(found.unpacked().extensions) is dict
    for each in (found, found.unpacked()):
        assert (ja3(each), ja4(each)) == (ja3(plain), ja4(plain))


@given(
    st.lists(st.tuples(st.sampled_from([0, 13, 42, 43, 44]), st.sampled_from([b"", b"\0", b"\0\x2a\0\x2c", b"\0\x2a" * 3]))),
    st.integers(0, 5),
)
def test_an_extension_is_there_or_not_as_the_objects_say(fields: list[tuple[int, bytes]], lost: int) -> None:
    """Law: what looks like the number of an extension within another one, or is cut off, is none."""
    whole = b"".join(number.to_bytes(2, "big") + len(body).to_bytes(2, "big") + body for number, body in fields)
    packed = PackedExtensions(whole[: len(whole) - lost])
    for number in (0, 13, 42, 43, 44, 45, 70_000, -1, "42"):
        assert (number in packed) == (number in packed.read())


@pytest.mark.parametrize(
    ("algorithm", "compress"),
    [(1, zlib.compress), (2, brotli.compress), (3, ZstdCompressor().compress)],
    ids=["zlib", "brotli", "zstd"],
)
def test_a_compressed_certificate_is_what_was_compressed_or_nothing(algorithm: int, compress: Callable[[bytes], bytes]) -> None:
    message = bytes(range(256)) * 8

    def sent(data: bytes, size: int, number: int = algorithm) -> bytes:
        return number.to_bytes(2, "big") + size.to_bytes(3, "big") + vector(3, data)

    packed = bytes(compress(message))
    assert decompressed(sent(packed, len(message))) == message
    for size in (0, 1, len(message) - 1, len(message) + 1):
        assert decompressed(sent(packed, size)) == b"", "RFC 8879 section 4 has the length agree"
    large = bytes(limits.TLS_HANDSHAKE_BYTES + 1)
    assert decompressed(sent(bytes(compress(large)), len(large))) == b""
    assert decompressed(sent(packed, len(message), 4)) == b""
    for end in range(len(packed)):
        assert decompressed(sent(packed[:end], len(message))) in {b"", message}
