"""The phases of a connection, and the flags of its rows."""

import struct

import pytest

from kcap import limits
from kcap.analyzer import Analyzer
from kcap.fastpath import engine
from kcap.fastpath.layout import M_OPEN
from kcap.kafka.conversation import Conversation
from kcap.kafka.frames import FLAG
from kcap.net.segment_columns import columns_of
from kcap.weird import WeirdKind
from tests.fastpath.both import agree
from tests.support.wire import MS, Tap, analyze, batch, in_turn, metadata, metadata_answer, request


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


def topics(count: int) -> bytes:
    """The body of a Metadata v1 request, of 12 bytes each."""
    return struct.pack(">i", count) + b"\0\x0atttttttttt" * count


WHOLE = 29_900
"""A frame of thirty segments."""


@pytest.mark.parametrize("size", [WHOLE, 3 << 20])
def test_unfinished_frames_are_bounded_over_all_connections(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Law: beyond the bound a frame is read as far as it came, and says so; one that holds little goes on. The next frame is
    read. The same on both paths.
    """
    most, least, segment = 200_000, 2_000, 1_000
    monkeypatch.setattr(limits, "GATHERED_OF_ALL", most)
    monkeypatch.setattr(limits, "GATHERED_LEAST", least)
    monkeypatch.setattr(limits, "FRAME_GATHERED_MAX", 1 << 20)
    taps = [Tap(port=40_000 + number, time_ns=MS * (number + 1)).open() for number in range(30)]
    for number, tap in enumerate(taps):
        tap.client(metadata(0)).server(metadata_answer(0))
        whole, step = (request(3, 1, 1, topics(size // 12)), segment) if number else (request(3, 1, 1, topics(120)), 50)
        for at in range(0, 30 * step, step):
            tap.client(whole[at : at + step])
        if size == WHOLE:
            tap.server(metadata_answer(1)).client(metadata(2)).server(metadata_answer(2))
    segments, analyzer, held = in_turn(taps), Analyzer(), 0
    for number, one in enumerate(segments, 1):
        analyzer.feed(batch([one], number))
        held = max(held, analyzer.bodies.gathered_bytes)
    assert most - segment < held <= most + segment
    analyzer.finish()
    assert not analyzer.bodies.gathered_bytes
    said = [count for weird, count in analyzer.sightings() if weird.kind is WeirdKind.FRAMES_LIMIT]
    assert len(said) > 15
    assert {*said} == {1}
    rows = analyze(segments).brief("correlation_id", "outcome")
    assert rows.count((0, "answered")) == 30
    if size == WHOLE:
        assert rows.count((2, "answered")) == 30
    agree(segments, 50, 3)


def test_room_for_unfinished_frames_is_bounded_in_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: frames that announce much and bring little are left to the reference path, which makes no room beforehand."""
    monkeypatch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 0)
    monkeypatch.setattr(limits, "GATHERED_OF_ALL", 4_000_000)
    taps = [Tap(port=40_000 + number, time_ns=MS * (number + 1)).open() for number in range(40)]
    for tap in taps:
        tap.client(metadata(0)).server(metadata_answer(0)).client(metadata(1)).server(metadata_answer(1))
        tap.client(request(3, 1, 2, topics(25_000))[:1_000]).client(bytes(1_000))
    segments, analyzer, most = in_turn(taps), Analyzer(), 0
    monkeypatch.setattr(engine, "STEP", 8)
    for at in range(0, len(segments), 8):
        analyzer.feed(columns_of(batch(segments[at : at + 8], at + 1)))
        if analyzer.fast_path is not None:
            most = max(most, int(analyzer.fast_path.state.meta[M_OPEN]))
    assert 700_000 < most <= 1_000_000
    analyzer.fast_path = None
    agree(segments, 50, 8)


def test_a_conversation_says_whether_a_frame_is_unfinished() -> None:
    tap, analyzer, seen = Tap().open().client(metadata(0)).server(metadata_answer(0)), Analyzer(), []
    tap.client(metadata(1)[:9]).client(metadata(1)[9:]).server(metadata_answer(1)[:6]).server(metadata_answer(1)[6:])
    for at, segment in enumerate(tap.segments):
        analyzer.feed(batch([segment], at + 1))
        for stream in [*analyzer.table.streams.values()][:1]:  # there is none before both ends of a connection spoke
            conversation = stream.connection.conversation
            assert isinstance(conversation, Conversation)
            seen.append(conversation.mid_frame)
    assert seen[-4:] == [True, False, True, False]
    assert not any(seen[:-4])


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


def test_a_client_that_reads_much_is_recognised_by_few_requests() -> None:
    """Without a SYN a stream waits for displaced packets; responses of many packets pass meanwhile."""
    tap = Tap().server(frame_of(0, 100))
    for number in range(1, 13):
        tap.client(metadata(number))
        for part in cut(frame_of(number, limits.MIDSTREAM_BYTES // 5), 1400):
            tap.server(part)
    seen = analyze(tap.segments)
    (c,) = seen.connections
    assert c["phase"] == "kafka"
    assert [r["outcome"] for r in seen.rows].count("answered") == 12


def frame_of(correlation_id: int, size: int) -> bytes:
    """A response with so many bytes behind its correlation id."""
    return struct.pack(">ii", 4 + size, correlation_id) + bytes(size)


def cut(data: bytes, size: int) -> list[bytes]:
    """Parts of so many bytes."""
    return [data[at : at + size] for at in range(0, len(data), size)]
