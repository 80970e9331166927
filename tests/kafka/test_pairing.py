"""Which response answers which request, and why one has none."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.analyzer import Analyzer
from kcap.limits import EARLY_RESPONSE_BYTES
from kcap.model import ROW
from kcap.net.tcp import ACK, FIN, MASK
from kcap.weird import WeirdKind
from tests.fastpath.both import agree
from tests.support.wire import (
    MS,
    Tap,
    analyze,
    batch,
    in_turn,
    metadata,
    metadata_answer,
    produce,
    produce_answer,
    request,
    response,
)


def test_pipelined_requests_are_answered_in_order() -> None:
    tap = Tap().open().client(metadata(1) + metadata(2) + metadata(3)).server(metadata_answer(1) + metadata_answer(2))
    tap.server(metadata_answer(3))
    assert analyze(tap.segments).brief("correlation_id", "outcome") == [(1, "answered"), (2, "answered"), (3, "answered")]


def test_requests_in_flight_are_whole_and_wait_for_a_response() -> None:
    tap = Tap().open().client(metadata(1) + metadata(2) + produce(3, 0) + metadata(4) + metadata(5)[:20])
    tap.server(metadata_answer(1)).client(metadata(5)[20:]).server(metadata_answer(2) + metadata_answer(4))
    tap.server(metadata_answer(5))
    seen = analyze(tap.segments).brief("correlation_id", "in_flight")
    assert sorted(seen) == [(1, 3), (2, 3), (3, None), (4, 2), (5, 1)]


def test_a_request_that_was_passed_over_is_not_in_flight() -> None:
    tap = Tap().open().client(metadata(1) + metadata(2) + metadata(3)).server(metadata_answer(2)).server(metadata_answer(3))
    seen = analyze(tap.close().segments).brief("correlation_id", "in_flight")
    assert sorted(seen) == [(1, None), (2, 2), (3, 1)]


@pytest.mark.parametrize("deep", [1, 5, 40])
def test_a_gap_that_delays_responses_adds_no_request_in_flight(deep: int) -> None:
    tap = Tap().open()
    for number in range(1, deep):
        tap.client(metadata(number))
    for number in range(deep, 300):
        tap.client(metadata(number)).server(metadata_answer(number - deep + 1))
    lossy = [segment for segment in tap.segments if segment.payload != metadata_answer(100)]
    assert len(lossy) == len(tap.segments) - 1
    agree(lossy)
    whole, seen = (dict(analyze(segments).brief("correlation_id", "in_flight")) for segments in (tap.segments, lossy))
    assert seen == {**whole, 100: None}
    assert whole[150] == deep


def test_the_same_id_many_times_is_first_in_first_out() -> None:
    tap = Tap().open()
    for size in (0, 1, 2):
        tap.client(metadata(7, "t" * (size + 1)))
    for size in (0, 1, 2):
        tap.server(metadata_answer(7, size))
    seen = analyze(tap.segments)
    assert seen.brief("request_bytes", "response_bytes") == [(24, 20), (25, 36), (26, 52)]
    assert seen.weirds == {"correlation_reused": 2}


def test_a_response_whose_request_is_lost_is_an_orphan_once_a_later_request_has_its_own() -> None:
    """Not so one that came before it out of order: its request is still to come."""
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1))
    tap.server(metadata_answer(2) + metadata_answer(4) + metadata_answer(3)).client(metadata(3) + metadata(4))
    analyzer = Analyzer()
    analyzer.feed(batch(tap.segments))
    outcomes = [dict(zip(ROW, row))["outcome"] for row in analyzer.take().rows]
    assert outcomes == ["answered", "orphan", "answered", "answered"]


def test_acks_0_wants_no_answer() -> None:
    """Read through the schema: at v2 acks comes first, in later versions a transactional id stands before it."""
    tap = Tap().open().client(produce(1, 0) + metadata(2)).server(metadata_answer(2)).client(produce(3, 0))
    assert analyze(tap.segments).brief("correlation_id", "outcome") == [(1, "one_way"), (2, "answered"), (3, "one_way")]


def test_some_brokers_answer_acks_0_all_the_same() -> None:
    tap = Tap().open().client(metadata(0)).server(metadata_answer(0)).client(produce(1, 0)).server(produce_answer(1))
    seen = analyze(tap.segments)
    assert seen.brief("outcome") == [("answered",), ("answered",)]
    assert seen.weirds == {"acks0_answered": 1}


def test_a_request_passed_over_stays_outstanding() -> None:
    tap = Tap().open().client(metadata(1) + metadata(2)).server(metadata_answer(2)).server(metadata_answer(1))
    seen = analyze(tap.segments)
    assert seen.brief("correlation_id", "outcome") == [(1, "answered"), (2, "answered")]
    assert seen.weirds == {"out_of_order_response": 1}


def test_a_request_never_answered_says_why() -> None:
    ends = {"capture_end": lambda t: t, "fin": lambda t: t.close(), "rst": lambda t: t.reset()}
    for reason, end in ends.items():
        tap = Tap().open().client(metadata(1)).server(metadata_answer(1)).client(metadata(2))
        seen = analyze(end(tap).segments)
        assert seen.brief("outcome", "reason")[1] == ("unanswered", reason)


def test_a_request_skipped_for_good_says_so() -> None:
    tap = Tap().open().client(metadata(1) + metadata(2)).server(metadata_answer(2)).close()
    seen = analyze(tap.segments)
    assert seen.brief("outcome", "reason") == [("unanswered", "skipped"), ("answered", None)]
    assert seen.brief("age_ns")[0][0] == 1_000_000


def test_an_answer_lost_in_the_capture_is_told_from_one_never_sent() -> None:
    tap = Tap().open().client(metadata(1) + metadata(2)).server(metadata_answer(1)).server(metadata_answer(2))
    tap.add(0, 16)
    del tap.segments[4]
    seen = analyze(tap.segments)
    assert seen.brief("correlation_id", "outcome", "reason") == [(1, "unanswered", "lost_in_capture"), (2, "answered", None)]


def test_an_answer_captured_before_its_request_waits_for_it() -> None:
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1)).client(metadata(2)).server(metadata_answer(2))
    tap.segments[5], tap.segments[6] = tap.segments[6], tap.segments[5]
    seen = analyze(tap.segments)
    assert seen.brief("correlation_id", "outcome", "exchange") == [(1, "answered", 1), (2, "answered", 2)]


def test_an_answer_to_nothing_is_an_orphan() -> None:
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1)).server(response(99, b"xyz"))
    seen = analyze(tap.segments)
    assert seen.brief("correlation_id", "outcome", "api_key", "client_id") == [
        (1, "answered", 3, "app"),
        (99, "orphan", None, None),
    ]


def test_an_answer_behind_the_clients_fin_is_late() -> None:
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1)).client(metadata(2))
    tap.add(0, 17)
    tap.next[0] += 1
    tap.server(metadata_answer(2))
    assert analyze(tap.segments).weirds == {"late_response": 1}


def test_a_handshake_behind_other_requests_is_one_too() -> None:
    """Its header is like that of the request before, and yet it may not take the short way."""
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1))
    tap.client(request(17, 0, 2, b"\0\5PLAIN")).server(response(2, b"\0\0\0\0\0\1\0\5PLAIN"))
    tap.client(b"\0\0\0\4abcd").server(b"\0\0\0\0").client(metadata(3)).server(metadata_answer(3))
    seen = analyze(tap.segments)
    assert seen.brief("api_key", "outcome") == [(3, "answered"), (17, "answered"), (None, "answered"), (3, "answered")]
    assert seen.weirds == {}


def test_tokens_after_handshake_v0_are_rows_of_their_own() -> None:
    """Brokers before 1.0: length-prefixed tokens without a Kafka header, the last one perhaps unanswered."""
    handshake = request(17, 0, 1, b"\0\5PLAIN")
    token, empty = b"\0\0\0\x0b\0user\0secret"[:15], b"\0\0\0\0"
    tap = Tap().open().client(handshake).server(response(1, b"\0\0\0\0\0\1\0\5PLAIN"))
    tap.client(token).server(empty).client(metadata(2)).server(metadata_answer(2))
    assert analyze(tap.segments).brief("api_key", "correlation_id", "outcome", "request_bytes", "response_bytes") == [
        (17, 1, "answered", 24, 21),
        (None, None, "answered", 15, 4),
        (3, 2, "answered", 24, 20),
    ]


def test_a_request_that_was_passed_over_leaves_the_responses_of_its_id_to_others() -> None:
    """Java clients authenticate again with the same few ids: one lost response must not move all later ones by a place."""
    again = (1 << 31) - 8
    tap = Tap().open()
    for i in range(3):
        tap.client(metadata(again)).server(metadata_answer(again, i)).client(metadata(i)).server(metadata_answer(i))
    seen = analyze([segment for at, segment in enumerate(tap.segments) if at != 4])
    assert sorted(seen.brief("exchange", "correlation_id", "outcome", "response_bytes")) == [
        (1, again, "unanswered", None),
        (2, 0, "answered", 20),
        (3, again, "answered", 36),
        (4, 1, "answered", 20),
        (5, again, "answered", 52),
        (6, 2, "answered", 20),
    ]


def test_responses_that_wait_are_bounded_over_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: beyond the bound a connection lets go of its oldest ones, and says so; few may wait on each."""
    least = 4 * EARLY_RESPONSE_BYTES
    monkeypatch.setattr(limits, "EARLY_BYTES_OF_ALL", 100 * EARLY_RESPONSE_BYTES)
    monkeypatch.setattr(limits, "EARLY_BYTES_LEAST", least)
    taps = [Tap(port=40_000 + number, time_ns=MS * (number + 1)).open() for number in range(20)]
    for number, tap in enumerate(taps):
        tap.client(metadata(0)).server(metadata_answer(0))
        for turn in range(1, 41):
            tap.server(metadata_answer(turn)) if number else tap.client(metadata(turn))
        tap.client(metadata(40))
    segments, analyzer, held = in_turn(taps), Analyzer(), 0
    for number, segment in enumerate(segments, 1):
        analyzer.feed(batch([segment], number))
        held = max(held, analyzer.bodies.early_bytes)
    assert 90 * EARLY_RESPONSE_BYTES < held < 101 * EARLY_RESPONSE_BYTES + 20 * (least + 100)
    analyzer.finish()
    assert not analyzer.bodies.early_bytes
    assert sum(count for weird, count in analyzer.sightings() if weird.kind is WeirdKind.EARLY_LIMIT) > 400
    answered = [row for row in analyze(segments).brief("correlation_id", "outcome") if row == (40, "answered")]
    assert len(answered) == 19
    agree(segments, 50, 3)


@pytest.mark.parametrize("acks", [0, 1])
def test_requests_that_wait_are_bounded_over_all_connections(monkeypatch: pytest.MonkeyPatch, acks: int) -> None:
    """Law: beyond the bound a connection lets go of its oldest one with each new one, and says so; few may wait on each, of
    those that have no response coming too. The same on both paths.
    """
    monkeypatch.setattr(limits, "OUTSTANDING_OF_ALL", 100)
    monkeypatch.setattr(limits, "OUTSTANDING_LEAST", 4)
    taps = [Tap(port=40_000 + number, time_ns=MS * (number + 1)).open() for number in range(20)]
    for tap in taps:
        tap.client(metadata(0)).server(metadata_answer(0))
        for turn in range(1, 41):
            tap.client(produce(turn, acks))
        tap.client(metadata(41)).server(metadata_answer(41))
        for turn in range(42, 45):
            tap.client(metadata(turn)).server(metadata_answer(turn))
    segments, analyzer, held = in_turn(taps), Analyzer(), 0
    for number, segment in enumerate(segments, 1):
        analyzer.feed(batch([segment], number))
        held = max(held, analyzer.bodies.outstanding)
    assert 90 < held <= 100 + 20 * 4
    analyzer.finish()
    assert not analyzer.bodies.outstanding
    rows = analyze(segments).brief("outcome")
    assert len(rows) == 20 * 45
    assert rows.count(("answered",)) == 20 * 5
    if acks:
        assert sum(count for weird, count in analyzer.sightings() if weird.kind is WeirdKind.OUTSTANDING_LIMIT) > 500
    agree(segments, 50, 3)


@given(st.integers(0, 1 << 30), st.integers(8, 60), st.integers(2, 6), st.integers(1, 60))
def test_what_waits_on_many_connections_is_the_same_on_both_paths(seed: int, of_all: int, least: int, size: int) -> None:
    """Law: connections come and go between the paths with more or fewer requests than the bounds allow."""
    random = Random(seed)
    taps = [Tap(port=40_000 + number, time_ns=MS * (number + 1)).open() for number in range(8)]
    sent, answered = [0] * len(taps), [0] * len(taps)
    depths = [random.randint(0, 40) for _ in taps]
    segments = in_turn(taps)
    for _ in range(random.randint(50, 600)):
        at = random.randrange(len(taps))
        tap = taps[at]
        before = len(tap.segments)
        if sent[at] - answered[at] <= random.randint(0, depths[at]):
            sent[at] += 1
            tap.client(metadata(sent[at]) if random.random() < 0.8 else produce(sent[at], random.choice((0, 0, 1))))
        elif random.random() < 0.7:
            answered[at] += 1
            tap.server(metadata_answer(answered[at]))
        else:
            answered[at] = sent[at]
        segments += tap.segments[before:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "OUTSTANDING_OF_ALL", of_all)
        patch.setattr(limits, "OUTSTANDING_LEAST", least)
        patch.setattr(limits, "EARLY_BYTES_OF_ALL", of_all * EARLY_RESPONSE_BYTES)
        patch.setattr(limits, "EARLY_BYTES_LEAST", least * EARLY_RESPONSE_BYTES)
        patch.setattr(limits, "FAST_PATH_WAIT", 4)
        agree(segments, size, 3)


@pytest.mark.parametrize(("behind_ns", "late"), [(0, False), (1, True)])
def test_a_response_is_late_from_behind_the_fin_on(behind_ns: int, late: bool) -> None:
    tap = Tap().open().client(metadata(1))
    tap.add(0, FIN | ACK)
    tap.next[0] = (tap.next[0] + 1) & MASK
    tap.time_ns += behind_ns - tap.step_ns
    tap.server(metadata_answer(1))
    assert analyze(tap.segments).weirds == ({"late_response": 1} if late else {})


@pytest.mark.parametrize(("between", "decided"), [(limits.EARLY_SEGMENTS - 1, False), (limits.EARLY_SEGMENTS, True)])
def test_a_response_waits_for_its_request_for_so_many_segments_of_the_client(between: int, decided: bool) -> None:
    """Its id is higher than those of the requests that pass, so that its own may still come; the next one that has no request
    looks whether it has waited long enough."""
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1)).server(response(9999, b"xyz"))
    for number in range(2, 2 + between):
        tap.client(metadata(number)).server(metadata_answer(number))
    tap.server(response(10_000, b"xyz")).client(metadata(5000)).server(metadata_answer(5000))
    ids = [row["correlation_id"] for row in analyze(tap.segments, sizes=1).rows]
    assert (ids.index(9999) < ids.index(5000)) is decided
