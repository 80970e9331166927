"""Frames through holes, cuts and damage."""

from dataclasses import replace

from kcap.analyzer import Analyzer
from kcap.kafka.frames import FLAG
from tests.support.wire import Tap, analyze, batch, metadata, metadata_answer, produce, produce_answer


def pairs(tap: Tap, ids: range, brokers: int = 0) -> Tap:
    for i in ids:
        tap.client(metadata(i)).server(metadata_answer(i, brokers), 100)
    return tap


def test_a_hole_inside_a_frame_keeps_the_row_and_the_boundary() -> None:
    tap = pairs(Tap().open(), range(1, 4), brokers=60)
    middle = [i for i, s in enumerate(tap.segments) if len(s.payload) == 100][3]
    del tap.segments[middle]
    seen = analyze(tap.segments)
    assert seen.brief("correlation_id", "outcome", "response_bytes") == [(i, "answered", 980) for i in (1, 2, 3)]
    assert [bool(f[0] & FLAG["gap"]) for f in seen.brief("response_flags")] == [True, False, False]  # type: ignore[operator]
    assert seen.connections[0]["server_missing"] == 100


def test_a_last_byte_that_was_lost_has_no_time() -> None:
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1, 60), 490).client(metadata(2)).server(metadata_answer(2))
    tap.add(0, 16)
    del tap.segments[5]
    first, second = analyze(tap.segments).brief("response_first_ns", "response_last_ns", "response_bytes")
    assert first[0] is not None
    assert first[1] is None
    assert first[2] == 980
    assert second[1] is not None


def test_a_hole_over_a_boundary_is_searched_out() -> None:
    tap = pairs(Tap().open(), range(1, 8))
    lost = next(i for i, s in enumerate(tap.segments) if s.payload == metadata_answer(3))
    del tap.segments[lost]
    seen = analyze(tap.segments)
    assert [r[0] for r in seen.brief("outcome")] == ["answered"] * 2 + ["unanswered"] + ["answered"] * 4
    assert seen.brief("reason")[2] == ("lost_in_capture",)


def test_packets_whose_bytes_are_searched_are_named() -> None:
    """All of a search, from the hole to the boundary, and the first ones, by which it is known what the connection is."""
    tap = Tap().open()
    for i in range(1, 8):
        tap.client(produce(i, 1, bytes(100)), 50)
    requests = [at for at, one in enumerate(tap.segments, 1) if one.payload]
    lost, analyzer = requests[9], Analyzer()
    per_request = len(requests) // 7
    looked: list[int] = []
    analyzer.watch = lambda ref, _: looked.append(ref)
    analyzer.feed(batch([one for at, one in enumerate(tap.segments, 1) if at != lost]))
    analyzer.finish()
    assert requests[0] in looked
    searched = [ref for ref in looked if ref >= lost]
    assert lost % per_request == requests[0] % per_request
    assert min(searched) == lost
    assert per_request <= len(set(searched)) < 3 * per_request


def test_a_length_that_cannot_be_is_told_and_stepped_over() -> None:
    tap = pairs(Tap().open(), range(1, 3)).client(b"\xff\xff\xff\xff" + b"garbage " * 10)
    tap = pairs(tap, range(3, 6))
    seen = analyze(tap.segments)
    assert [r[0] for r in seen.brief("correlation_id")] == [1, 2, 3, 4, 5]
    assert seen.weirds["frame_length_invalid"] == 1
    assert seen.connections[0]["client_skipped"] == 84
    assert seen.brief("request_flags")[2][0] == FLAG["resynced"]


def test_header_only_captures_keep_every_row_whose_header_was_caught() -> None:
    """Snapshot length: reassembly goes by the length on the wire."""
    tap = Tap().open()
    for i in range(1, 6):
        tap.client(produce(i, 1, bytes(3000))).server(produce_answer(i))
    cut = [replace(s, cut=max(0, len(s.payload) - 40)) for s in tap.segments]
    whole, seen = analyze(tap.segments), analyze(cut)
    names = ("correlation_id", "client_id", "outcome", "request_bytes", "response_bytes", "request_first_ns", "request_last_ns")
    assert seen.brief(*names) == whole.brief(*names)
    assert {r[0] for r in seen.brief("request_flags")} == {FLAG["snaplen"]}


def test_half_a_frame_is_a_row_that_says_so() -> None:
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1)).client(produce(2, 1, bytes(500))[:100])
    seen = analyze(tap.segments)
    assert seen.brief("correlation_id", "outcome", "request_bytes", "request_last_ns")[1] == (2, "unanswered", 542, None)
    assert seen.brief("request_flags")[1] == (FLAG["truncated"],)
    assert seen.connections[0]["client_pending"] == 100


def test_bytes_that_say_too_little_are_no_row() -> None:
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1)).client(metadata(2)[:9])
    seen = analyze(tap.segments)
    assert len(seen.rows) == 1
    assert seen.connections[0]["client_pending"] == 9
