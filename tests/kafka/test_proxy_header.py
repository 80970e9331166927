"""Load balancers that name the client before its first byte (HAProxy's PROXY protocol)."""

from ipaddress import ip_address
from struct import pack

import pytest

from kcap.analyzer import Options
from kcap.kafka.proxy_header import BINARY, begins_one, proxy_header
from tests.support.wire import Tap, analyze, metadata, metadata_answer

TEXT = b"PROXY TCP4 10.0.0.7 10.0.0.9 40001 9092\r\n"


def binary(source: str = "10.0.0.7", target: str = "10.0.0.9", command: int = 1, more: bytes = b"") -> bytes:
    """A header of version 2."""
    ends = [ip_address(source).packed, ip_address(target).packed]
    body = b"".join(ends) + pack(">HH", 40_001, 9092) + more
    return BINARY + pack(">BBH", 0x20 | command, 0x11 if len(ends[0]) == 4 else 0x21, len(body)) + body


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (TEXT, "PROXY protocol v1: 10.0.0.7 port 40001 to 10.0.0.9 port 9092"),
        (b"PROXY UNKNOWN\r\n", "PROXY protocol v1"),
        (b"PROXY TCP6 2001:db8::7 2001:db8::9 1 2\r\n", "PROXY protocol v1: 2001:db8::7 port 1 to 2001:db8::9 port 2"),
        (binary(), "PROXY protocol v2: 10.0.0.7 port 40001 to 10.0.0.9 port 9092"),
        (binary("2001:db8::7", "2001:db8::9"), "PROXY protocol v2: 2001:db8::7 port 40001 to 2001:db8::9 port 9092"),
        (binary(more=b"\x03\x00\x04\xa9\xb8\x7e\x8f"), "PROXY protocol v2: 10.0.0.7 port 40001 to 10.0.0.9 port 9092"),
        (binary(command=0), "PROXY protocol v2"),
        (BINARY + b"\x21\x00\x00\x00", "PROXY protocol v2"),
    ],
)
def test_a_header_names_the_client_and_is_as_long_as_it_says(data: bytes, text: str) -> None:
    for behind in (b"", metadata(1)):
        header = proxy_header(data + behind)
        assert header is not None
        assert (header.size, header.text) == (len(data), text)
    for size in range(1, len(data)):
        assert proxy_header(data[:size]) is None
        assert begins_one(data[:size])


@pytest.mark.parametrize("data", [b"", b"PROXY nobody\r\n", b"PROXY " + b"x" * 120, BINARY + b"\x31" + bytes(9), metadata(1)])
def test_other_bytes_are_no_header(data: bytes) -> None:
    assert proxy_header(data) is None


@pytest.mark.parametrize("said", [False, True], ids=["recognised", "set"])
@pytest.mark.parametrize("size", [1448, 1])
@pytest.mark.parametrize("header", [TEXT, binary()], ids=["v1", "v2"])
def test_requests_behind_a_header_are_read(header: bytes, size: int, said: bool) -> None:
    first = header + metadata(1)
    tap = Tap().open().client(first, size if not said else 1448).server(metadata_answer(1))
    for number in range(2, 9):
        tap.client(metadata(number)).server(metadata_answer(number))
    options = Options(kafka_ports=frozenset({9092}) if said else frozenset())
    tap.close()
    for sizes in (0, 3):
        seen = analyze(tap.segments, options, sizes)
        assert [row["outcome"] for row in seen.rows] == ["answered"] * 8
        assert seen.rows[0]["request_bytes"] == len(metadata(1))
        (link,) = seen.connections
        assert (link["phase"], link["client_opaque"], link["client_skipped"]) == ("kafka", len(header), 0)
        assert link["client_captured"] == link["client_framed"] + link["client_opaque"]
        assert link["detail"].startswith("PROXY protocol v")
        assert list(seen.weirds) == ["proxy_header"]


def test_a_header_without_a_request_is_no_kafka() -> None:
    for behind, detail in ((b"", "PROXY protocol v1"), (b"GET / HTTP/1.1\r\n\r\n", "http"), (bytes(40), "PROXY protocol v1")):
        seen = analyze(Tap().open().client(TEXT + behind).close().segments)
        (link,) = seen.connections
        assert (link["phase"] != "kafka", link["detail"]) == (True, detail)
        assert link["client_opaque"] == len(TEXT + behind)
        assert list(seen.weirds) == ["proxy_header", "not_kafka"]


def test_tls_behind_a_header_is_tls() -> None:
    hello = b"\x16\x03\x01\x00\x2a\x01\x00\x00\x26\x03\x03" + bytes(32) + b"\x00\x00\x02\x13\x01\x01"
    (link,) = analyze(Tap().open().client(TEXT + hello).close().segments).connections
    assert (link["phase"], link["tls"], link["client_opaque"]) == ("tls", True, len(TEXT + hello))
    assert link["detail"] == "PROXY protocol v1"
