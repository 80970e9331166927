"""The phases of a connection, and the flags of its rows."""

import pytest

from kcap import limits
from kcap.analyzer import Analyzer
from kcap.kafka.frames import FLAG
from kcap.weird import WeirdKind
from tests.support.wire import MS, Tap, analyze, batch, metadata, metadata_answer


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


def test_what_is_not_known_yet_is_bounded_over_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: beyond the bound a connection is decided by what it brought, and says so; one that brought little waits on."""
    monkeypatch.setattr(limits, "UNRECOGNISED_BYTES_MAX", 200_000)
    monkeypatch.setattr(limits, "UNRECOGNISED_BYTES_LEAST", 2_000)
    analyzer, held = Analyzer(), 0
    taps = [Tap(port=40_000 + number, time_ns=MS * (number + 1)) for number in range(30)]
    for number, tap in enumerate(taps):
        for turn in range(150):
            tap.client(bytes(range(200, 256)) * 10 if number else metadata(turn))
    for step in range(150):
        for tap in taps:
            analyzer.feed(batch(tap.segments[step : step + 1], 1 + step))
            held = max(held, analyzer.unrecognised_bytes)
    assert 190_000 < held <= 200_000 + 30 * 2_000
    analyzer.finish()
    assert not analyzer.unrecognised_bytes
    said = [n for w, n in analyzer.sightings() if w.kind is WeirdKind.RECOGNITION_LIMIT]
    assert 20 < len(said) < 30
    assert {*said} == {1}
    assert analyzer.kafka_connections == 1


def test_what_resyncs_hold_is_bounded_over_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: beyond the bound each search goes on with less; a boundary behind it is found."""
    monkeypatch.setattr(limits, "SEARCHED_BYTES_MAX", 200_000)
    analyzer, held, noise = Analyzer(), 0, bytes(range(200, 256)) * 25
    taps = [Tap(port=40_000 + number, time_ns=MS * (number + 1)).open() for number in range(10)]
    for tap in taps:
        for turn in range(3):
            tap.client(metadata(turn)).server(metadata_answer(turn))
        for _ in range(60):
            tap.client(noise)
        tap.client(metadata(3)).client(metadata(4)).server(metadata_answer(3)).server(metadata_answer(4))
    for step in range(len(taps[0].segments)):
        for tap in taps:
            analyzer.feed(batch(tap.segments[step : step + 1], 1 + step))
            held = max(held, analyzer.bodies.searched_bytes)
    assert 200_000 < held < 200_000 + 10 * limits.RESYNC_BYTES_LATER + len(noise)
    analyzer.finish()
    assert not analyzer.bodies.searched_bytes
    assert len(analyzer.take().rows) == 50
    assert {w.kind.value for w, _ in analyzer.sightings()} >= {"hunt_limit"}


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
