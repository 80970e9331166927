"""Kafka or not, and which side is the client: decided by the bytes, never by the port."""

from struct import pack

import pytest

from kcap.kafka.recognition import (
    NO_REQUEST,
    NOTHING,
    from_content,
    from_first_request,
    from_pieces,
    requests_anywhere,
    score,
)
from tests.support.wire import Tap, analyze, metadata, metadata_answer, request, response


@pytest.mark.parametrize(
    ("data", "complete", "verdict"),
    [
        (metadata(1), False, True),
        (metadata(1)[:11], False, None),
        (metadata(1)[:11], True, False),
        (metadata(1, client_id=None), False, True),
        (metadata(1, client_id=None)[:-1], False, None),
        (request(3, 1, 1, b"zz", None), False, False),
        (request(18, 99, 1, b"junk"), False, True),
        (b"\x80\0\0\0", False, False),
        (b"\0\0\0\4\0\0\0\0", False, False),
        (b"GET / HTTP/1.1\r\n", False, False),
        (b"\x16\x03\x01\0\x05hello", False, False),
    ],
)
def test_the_first_request_tells(data: bytes, complete: bool, verdict: bool | None) -> None:
    assert from_first_request(bytearray(data), complete) is verdict


def test_the_side_whose_requests_are_answered_is_the_client() -> None:
    up = bytearray(b"".join(metadata(i) for i in range(3)))
    down = bytearray(b"".join(metadata_answer(i) for i in range(3)))
    assert score(up, down) == (3, 3, True)
    assert score(down, up) == NOTHING or score(down, up) < score(up, down)
    assert from_content(up, down, False) == (0, "")
    assert from_content(down, up, False) == (1, "")


def test_an_id_answers_once() -> None:
    """Responses read as requests must not count one id again and again."""
    up = bytearray(metadata(1))
    down = bytearray(response(1, b"x") * 5)
    assert score(up, down).responses == 1


def test_requests_are_found_behind_the_end_of_another() -> None:
    data = bytearray(b"tail of a frame" + metadata(5) + metadata(6))
    assert requests_anywhere(data)
    assert not requests_anywhere(bytearray(b"tail of a frame" + metadata(5)))


def test_noise_is_no_kafka() -> None:
    verdict = from_content(bytearray(b"\x01" * 500), bytearray(b"\x02" * 500), True)
    assert verdict is not None
    assert verdict.client is None


def test_midstream_connections_find_their_direction() -> None:
    tap = Tap()
    for i in range(8):
        tap.client(metadata(i)).server(metadata_answer(i))
    flipped = Tap(port=1)
    flipped.segments = list(tap.segments)
    seen = analyze(tap.segments)
    assert [r["outcome"] for r in seen.rows] == ["answered"] * 8
    assert {r["client_port"] for r in seen.rows} == {40_000}
    assert seen.connections[0]["began"] == "midstream"


def test_requests_behind_a_hole_tell_what_a_connection_is() -> None:
    """A connection seen from a raw SASL token on, whose bytes behind the token are lost."""
    tap = Tap().client(b"\x00\x00\x00\x30" + b"\xfe" * 48)
    tap.next[0] += 77
    for i in range(3):
        tap.client(metadata(i)).server(metadata_answer(i))
    seen = analyze(tap.segments)
    assert [r["outcome"] for r in seen.rows] == ["answered"] * 3
    assert {r["client_port"] for r in seen.rows} == {40_000}


def produce(correlation: int, size: int, client: bytes = b"", body: bytes = b"") -> bytearray:
    """A Produce v0 request that claims `size` bytes behind its prefix."""
    return bytearray(pack(">ihhih", size, 0, 0, correlation, len(client)) + client + body)


def test_zeros_and_huge_claims_of_a_nameless_client_are_no_kafka() -> None:
    """Law: a connection without its beginning, a name and a response needs more than headers that chance makes."""
    zeros = produce(0, 20, body=bytes(10))
    huge = produce(2, 1_966_084, body=bytes(60))
    for up in (zeros, zeros + produce(1, 20, body=bytes(10)) + huge, huge):
        assert from_content(up, bytearray(), True) == (None, NO_REQUEST)
        assert from_pieces([up], []) is None


def test_a_named_request_needs_the_more_bytes_the_more_it_lacks() -> None:
    for have, size, client in ((40, 100, 0), (40, 1_966_084, None), (1448, 1_966_084, 0)):
        up = produce(7, size, b"shop", b"\x00\x01\x00\x00\x75\x30\x00\x00\x00\x01")[:have].ljust(have, b"\x01")
        assert from_content(up, bytearray(), True) == (client, NO_REQUEST if client is None else "")


def test_a_named_request_whose_body_does_not_read_is_no_kafka_by_itself() -> None:
    up = produce(7, 10 + 4 + 9, b"shop", b"\xff" * 9)
    assert from_content(up, bytearray(), True) == (None, NO_REQUEST)
    answer = bytearray(pack(">iii", 8, 7, 0))
    assert from_content(up, answer, True) == (0, "")


def test_a_named_request_whose_body_ends_before_its_frame_is_no_kafka() -> None:
    """The length is one of another protocol: zeros behind what reads as a header are a Produce request of no topics."""
    head = pack(">ihhih", 1_966_080, 0, 3, 7, 3) + b"abc"
    ends = head + pack(">hh", -1, 0) + bytes(160)
    goes_on = head + pack(">hhii", -1, 0, 30_000, 1) + pack(">h", 6) + b"orders" + pack(">iii", 1, 0, 1_966_000) + bytes(140)
    assert from_content(bytearray(ends), bytearray(), True) == (None, NO_REQUEST)
    assert from_content(bytearray(goes_on), bytearray(), True) == (0, "")
    assert not analyze(Tap().client(ends[:98]).client(ends[98:]).segments).rows
