"""The phases of a connection, and the flags of its rows."""

import pytest

from kcap import limits
from kcap.kafka.frames import FLAG
from tests.support.wire import Tap, analyze, metadata, metadata_answer


@pytest.mark.parametrize(
    ("up", "down", "phase", "detail"),
    [
        (b"GET / HTTP/1.1\r\n", b"", "http", "http"),
        (b"\x16\x03\x01\0\x05hello", b"\x16\x03\x03\0\0", "tls", "tls"),
        (b"\x80\x81\x82\x83junk", b"", "opaque", "8 bytes, too few to tell"),
        (b"", b"", "empty", None),
        (b"", b"HTTP/1.1 408\r\n", "opaque", "http"),
    ],
)
def test_what_is_no_kafka_is_named_and_counted(up: bytes, down: bytes, phase: str, detail: str | None) -> None:
    seen = analyze(Tap().open().client(up).server(down).segments)
    (c,) = seen.connections
    assert (c["client_opaque"], c["server_opaque"]) == (len(up), len(down))
    assert seen.rows == []
    if (up, down) != (b"", b"HTTP/1.1 408\r\n"):
        assert (c["phase"], c["detail"]) == (phase, detail)


def test_what_is_not_known_yet_is_bounded() -> None:
    tap = Tap()
    chunk = bytes(range(256)) * 256
    for _ in range(2 * limits.MIDSTREAM_BYTES // len(chunk)):
        tap.client(chunk, len(chunk))
    (c,) = analyze(tap.segments).connections
    assert (c["phase"], c["client_opaque"]) == ("opaque", 2 * limits.MIDSTREAM_BYTES)


def test_rows_say_what_is_odd_about_them() -> None:
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1)).client(metadata(2)).server(metadata_answer(2))
    tap.segments.insert(6, tap.segments[5])
    straight, repeated = analyze(tap.segments[:6]).rows, analyze(tap.segments).rows
    assert straight[0]["flags"] == 0
    assert repeated[1]["flags"] == FLAG["duplicated"]
    assert analyze(tap.segments[3:]).rows[0]["flags"] == FLAG["midstream"]


def test_one_direction_alone_says_so() -> None:
    tap = Tap()
    for i in range(6):
        tap.client(metadata(i))
    rows = analyze(tap.segments).rows
    assert {r["flags"] for r in rows} == {FLAG["midstream"] | FLAG["one_sided"]}
    assert {r["outcome"] for r in rows} == {"unanswered"}
