"""What can be a request header."""

import pytest

from kcap.kafka.headers import body_fits, names_client, noise, other_protocol, plausible, read_header
from tests.support.wire import metadata, request


def test_a_header_with_all_its_parts() -> None:
    frame = metadata(7)[4:]
    header = read_header(frame, len(frame))
    assert header is not None
    assert (header.api_key, header.api_version, header.correlation_id, header.client_id, header.body) == (3, 1, 7, "app", 13)
    assert header.known
    assert names_client(header)
    assert body_fits(frame, header)


def test_controlled_shutdown_0_has_no_client_id() -> None:
    """Request header version 0, only there (ControlledShutdownRequest.json)."""
    header = read_header(b"\0\7\0\0\0\0\0\1\0\0\0\5", 12)
    assert header is not None
    assert (header.client_id, header.body) == (None, 8)


@pytest.mark.parametrize("cut", range(8, 13))
def test_a_header_cut_short_keeps_what_it_has(cut: int) -> None:
    frame = metadata(7)[4:]
    header = read_header(frame[:cut], len(frame))
    assert header is not None
    assert (header.correlation_id, header.client_id, header.body) == (7, None, None)


@pytest.mark.parametrize(
    "frame",
    [
        b"\0\3\0\1\0\0\0",
        b"\xff\xff\0\0\0\0\0\1\0\0",
        b"\0\3\0\1\0\0\0\1\0\x40abc",
        b"\0\3\0\1\0\0\0\1\xff\xfe",
        b"\0\3\0\1\0\0\0\1\0\2\xff\xff",
    ],
    ids=["short", "negative key", "client id beyond the frame", "client id length -2", "client id not UTF-8"],
)
def test_what_cannot_be_a_header_is_none(frame: bytes) -> None:
    assert read_header(frame, len(frame)) is None


def test_unknown_apis_are_believed_from_a_client_that_says_its_name() -> None:
    for key, version, client_id, good in (
        (999, 0, "app", True),
        (999, 0, "", False),
        (3, 77, "app", True),
        (18, 99, None, True),
    ):
        frame = request(key, version, 1, b"", client_id)[4:]
        header = read_header(frame, len(frame))
        assert header is not None
        assert plausible(header) is good, (key, version, client_id)
    header = read_header(b"\x7f\0\0\0\0\0\0\1\0\1a", 11)
    assert header is not None
    assert noise(header)
    assert not plausible(header)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\x16\x03\x01\x02\0", "tls"),
        (b"GET / HTTP/1.1", "http"),
        (b"HTTP/1.1 400", "http"),
        (b"SSH-2.0-x", "ssh"),
        (b"ruok", "zookeeper command"),
        (b"\0\0\2\x58\x60\x82\2\x54\x06\x09\x2a\x86\x48\x86\xf7\x12\1\2\2\1\0", "gssapi token"),
        (b"\0\0\0\x2d" + bytes(20), "zookeeper"),
        (b"\0\0\0\x14\0\3", None),
    ],
)
def test_other_protocols_are_named(data: bytes, name: str | None) -> None:
    assert other_protocol(data) == name
