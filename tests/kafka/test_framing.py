"""Frames through holes, cuts and damage."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from kcap import limits
from kcap.analyzer import Analyzer
from kcap.kafka.frames import FLAG
from kcap.kafka.framing import OpenFrame
from kcap.kafka.requests import RequestFramer
from tests.fastpath.both import agree
from tests.support.wire import Segment, Tap, analyze, batch, metadata, metadata_answer, produce, produce_answer


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


FACTS = ("correlation_id", "api_key", "outcome", "request_bytes", "response_bytes", "request_first_ns", "response_last_ns")


def in_many_segments() -> Tap:
    """Twelve exchanges, one at a time."""
    tap = Tap().open()
    for at in range(1, 13, 2):
        tap.client(metadata(at)).server(metadata_answer(at, 20), 150)
        tap.client(produce(at + 1, 1, bytes(300)), 200).server(produce_answer(at + 1), 20)
    return tap.close()


def flipped(segments: list[Segment], message: bytes) -> Iterator[list[Segment]]:
    """The segments, with each bit of the length of one message wrong in turn."""
    at = next(at for at, one in enumerate(segments) if one.payload and message.startswith(one.payload))
    for bit in range(32):
        payload = (int.from_bytes(segments[at].payload[:4], "big") ^ 1 << bit).to_bytes(4, "big") + segments[at].payload[4:]
        yield [*segments[:at], replace(segments[at], payload=payload), *segments[at + 1 :]]


@pytest.mark.parametrize(
    ("correlation", "message"),
    [(7, metadata(7)), (7, metadata_answer(7, 20)), (6, produce(6, 1, bytes(300))), (6, produce_answer(6))],
)
def test_a_damaged_length_costs_one_exchange(correlation: int, message: bytes) -> None:
    """Law: on either path all other rows are what they were, whichever bit of a length is wrong."""
    segments = in_many_segments().segments
    others = [row for row in analyze(segments).brief(*FACTS) if row[0] != correlation]
    assert len(others) == 11
    for damaged in flipped(segments, message):
        assert [row for row in analyze(damaged).brief(*FACTS) if row[0] != correlation] == others
        agree(damaged, 7, 3)


def test_records_that_hold_messages_do_not_end_their_frame() -> None:
    """Of a topic to which packets of this very connection are written, whose segments begin with them."""
    tap, followed = Tap().open(), []
    for at in range(1, 40, 4):
        inner = [produce(at + other, 1, bytes(300)) for other in range(1, 9)]
        outer = produce(at + 2, 1, b"".join(inner))
        tap.client(produce(at, 1)).client(produce(at + 1, 1)).client(outer[: -sum(map(len, inner))])
        for message in inner:
            tap.client(message)
        tap.server(b"".join(map(produce_answer, range(at, at + 3))))

    def counted(*given: Any) -> bool:
        followed.append(follows(*given))
        return followed[-1]

    follows = RequestFramer.follows
    with patch.object(RequestFramer, "follows", counted):
        found = agree(tap.close().segments)
    assert any(followed)
    assert len(found.rows) == 30
    assert not found.weirds


def test_looking_for_the_next_frame_is_linear_in_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: however many segments begin with what looks like one, in the midst of a message."""
    monkeypatch.setattr(limits, "RESYNC_SPENT_MAX", 1 << 12)
    monkeypatch.setattr(limits, "RESYNC_SPENT_FACTOR", 2)
    tap = Tap().open().client(produce(1, 1)).server(produce_answer(1)).client(produce(2, 1, bytes(100_000))[:1_000])
    for _ in range(1_000):
        tap.client(produce(3, 1, bytes(40)))
    read, resumed = list[int](), RequestFramer.resumed

    def counted(self: RequestFramer, frame: OpenFrame, *, light: bool = False) -> object:
        read.append(len(frame.head))
        return resumed(self, frame, light=light)

    with patch.object(RequestFramer, "resumed", counted):
        assert len(analyze(tap.segments).rows) == 2
    allowed = (1 << 12) + 2 * sum(len(one.payload) for one in tap.segments)
    assert 3 < len(read) < 100
    assert limits.RESYNC_PROOF_COST * sum(read[:-1]) <= allowed


@pytest.mark.parametrize("waiting", [1, 9, limits.IDS_SEARCHED + 9])
def test_a_damaged_length_while_many_requests_wait(waiting: int) -> None:
    """As many responses as wait come behind the damaged one, on either path."""
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1))
    for number in range(2, 3 + waiting):
        tap.client(metadata(number))
    for number in range(2, 3 + waiting):
        tap.server(metadata_answer(number, 20), 150)
    for damaged in flipped(tap.close().segments, metadata_answer(2, 20)):
        answered = [row[0] for row in analyze(damaged).brief("correlation_id", "outcome") if row[1] == "answered"]
        assert {*answered, 2} == {*range(1, 3 + waiting)}
        agree(damaged, 300, 7)
