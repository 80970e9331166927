"""A client's stream as requests."""

import struct

import pytest

from kcap.kafka.frames import FLAG
from kcap.wire.text import decode_text
from tests.support.wire import Tap, analyze, metadata, metadata_answer, produce, produce_answer, request, response

HANDSHAKE = request(17, 0, 1, b"\0\5PLAIN")
HANDSHAKE_ANSWER = response(1, b"\0\0\0\0\0\1\0\5PLAIN")


def test_unknown_apis_of_a_connection_that_began_as_kafka_are_its_requests() -> None:
    tap = (
        Tap()
        .open()
        .client(metadata(1))
        .server(metadata_answer(1))
        .client(request(999, 7, 2, b"what"))
        .server(response(2, b"ever"))
    )
    seen = analyze(tap.segments)
    assert seen.brief("api_key", "api_version", "outcome") == [(3, 1, "answered"), (999, 7, "answered")]
    assert seen.weirds == {"api_unknown": 1}


def test_several_client_ids_on_one_connection() -> None:
    """As a proxy or an inter-broker connection has them."""
    tap = Tap().open()
    for i, name in enumerate(["one", "two", "one", None, "two", ""]):
        tap.client(metadata(i, client_id=name)).server(metadata_answer(i))
    assert [r[0] for r in analyze(tap.segments).brief("client_id")] == ["one", "two", "one", None, "two", ""]


def test_acks_are_read_through_the_schema() -> None:
    """Produce v3 and later have a transactional id in front of acks (KIP-98)."""
    tap = Tap().open()
    for i, acks in enumerate([b"\0\0", b"\0\1", b"\xff\xff"]):
        tap.client(request(0, 3, i, b"\xff\xff" + acks + b"\0\0\3\xe8\0\0\0\0"))
        if acks != b"\0\0":
            tap.server(response(i, b"\0\0\0\0\0\0\0\0"))
    assert [r[0] for r in analyze(tap.segments).brief("outcome")] == ["one_way", "answered", "answered"]


def test_a_token_that_looks_like_a_request_of_somebody_else_is_a_token() -> None:
    fake = metadata(9, client_id="other")
    tap = Tap().open().client(HANDSHAKE).server(HANDSHAKE_ANSWER).client(fake).server(b"\0\0\0\0")
    tap.client(metadata(2)).server(metadata_answer(2))
    assert [r[0] for r in analyze(tap.segments).brief("api_key")] == [17, None, 3]


def test_the_search_for_a_request_believes_only_two_in_a_row() -> None:
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1))
    tap.client(b"\0\0\0\1?" + metadata(7)[:-2] + b"zzzz" + metadata(50) + metadata(51) + metadata(52))
    seen = analyze(tap.segments)
    assert [r[0] for r in seen.brief("correlation_id")] == [1, 50, 51, 52]
    assert seen.brief("request_flags")[1] == (FLAG["resynced"],)


def test_a_request_split_byte_by_byte() -> None:
    tap = Tap().open().client(produce(1, 1, b"r" * 50), 1).server(produce_answer(1), 1)
    seen = analyze(tap.segments)
    assert seen.brief("request_bytes", "response_bytes", "outcome") == [(92, 45, "answered")]
    row = seen.rows[0]
    assert (row["request_last_ns"], row["request_first_ns"]) == (
        row["request_first_ns"] + 91 * 1_000_000,
        row["request_first_ns"],
    )  # type: ignore[operator]


@pytest.mark.parametrize("first", [b"app", b"\xff\xfe\x80"])
@pytest.mark.parametrize("second", [b"app", b"\xff\xfe\x80", b"a\xedb"])
def test_a_client_id_of_any_bytes_is_a_request_where_one_is_expected(first: bytes, second: bytes) -> None:
    """Brokers take any bytes for a name and replace what is not UTF-8 (Java's `new String`)."""

    def named(correlation: int, raw: bytes) -> bytes:
        plain = metadata(correlation, client_id="x" * len(raw))
        return plain.replace(b"x" * len(raw), raw)

    tap = Tap().open()
    for correlation, raw in enumerate((first, second, first, b"app")):
        tap.client(named(correlation, raw)).server(metadata_answer(correlation))
    seen = analyze(tap.close().segments)
    assert seen.brief("correlation_id", "client_id", "outcome") == [
        (at, decode_text(raw), "answered") for at, raw in enumerate((first, second, first, b"app"))
    ]
    assert not seen.weirds


def test_two_headers_without_names_are_no_requests_over_a_hole() -> None:
    """Bodies have zeros and small numbers anywhere, and a body that a hole cuts cannot tell them from a header."""
    inner = struct.pack(">ihhihi", 44, 0, 3, 1, 0, 2)
    after = struct.pack(">ihhihi", 44, 0, 1, 2, 0, 4)
    tap = Tap().open().client(b"lost" * 5).client(b"junk" + inner).client(bytes(16)).client(bytes(48 - 34) + after + bytes(30))
    for number in (7, 8, 9):
        tap.client(metadata(number)).server(metadata_answer(number))
    seen = analyze([segment for at, segment in enumerate(tap.segments) if at not in (3, 5)])
    assert {row[0] for row in seen.brief("api_key")} == {3}, seen.rows
