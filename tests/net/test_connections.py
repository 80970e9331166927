"""Which segment belongs to which connection, and when one is over."""

from collections import deque
from dataclasses import replace
from typing import Any

import pytest

from kcap import limits
from kcap.analyzer import Analyzer
from kcap.net.connections import reverse_flow
from kcap.net.tcp import Connection
from kcap.weird import WeirdKind
from tests.fastpath.both import agree, cut, result_of
from tests.support.wire import MS, Tap, analyze, batch, flow, metadata, metadata_answer


def test_the_reverse_of_a_flow() -> None:
    assert reverse_flow(flow()) == bytes([10, 0, 0, 2, 10, 0, 0, 1]) + (9092).to_bytes(2, "big") + (40_000).to_bytes(2, "big")
    assert reverse_flow(reverse_flow(flow())) == flow()


def test_numbers_far_away_are_another_connection() -> None:
    """Ports used again, the SYN not captured."""
    first = Tap().open().client(metadata(1)).server(metadata_answer(1))
    second = Tap(client_isn=1_500_000_000, server_isn=2_500_000_000, time_ns=first.time_ns)
    second.client(metadata(1)).server(metadata_answer(1))
    seen = analyze(first.segments + second.segments)
    assert [c["began"] for c in seen.connections] == ["syn", "midstream"]
    assert seen.brief("outcome") == [("answered",), ("answered",)]


def test_a_repeated_syn_is_the_same_connection() -> None:
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1))
    tap.segments.insert(1, replace(tap.segments[0], time_ns=tap.segments[0].time_ns + 1))
    seen = analyze(tap.segments)
    assert len(seen.connections) == 1
    assert seen.brief("exchange", "outcome") == [(1, "answered")]


def test_the_same_number_again_after_the_end_is_a_new_connection() -> None:
    first = Tap().open().client(metadata(1)).server(metadata_answer(1)).close()
    second = Tap(time_ns=first.time_ns).open().client(metadata(1)).server(metadata_answer(1)).close()
    assert analyze(first.segments + second.segments).brief("exchange", "outcome") == [(1, "answered")] * 2


def test_a_silent_connection_is_closed_in_capture_time() -> None:
    """However the packets are batched: what comes later is another connection."""
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1))
    tap.time_ns += limits.CONNECTION_IDLE_NS
    tap.client(metadata(2)).server(metadata_answer(2))
    for size in (0, 1, 3):
        seen = analyze(tap.segments, sizes=size)
        assert sorted(str(c["ended"]) for c in seen.connections) == ["idle", "open"]
        assert seen.weirds["connection_idle"] == 1


def test_a_bare_acknowledgement_opens_nothing() -> None:
    tap = Tap()
    tap.add(0, 16)
    tap.add(1, 4)
    assert analyze(tap.segments).connections == []


def test_connections_are_numbered_by_their_first_packet() -> None:
    one, two = Tap(port=1), Tap(port=2)
    for tap in (one, two):
        tap.open()
    segments = sorted(one.segments + two.segments, key=lambda s: (s.time_ns, s.flow))
    assert [(c["number"], c["client_port"]) for c in analyze(segments).connections] == [(1, 1), (2, 2)]


def test_a_refused_connection_is_one_too() -> None:
    tap = Tap()
    tap.add(0, 2, seq=tap.client_isn)
    tap.reset()
    (connection,) = analyze(tap.segments).connections
    assert (connection["ended"], connection["phase"]) == ("rst", "empty")


def test_of_too_many_that_ended_the_first_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was held for a second is let go silently, the second one here is not."""
    monkeypatch.setattr(limits, "LINGERING_MAX", 2)
    analyzer = Analyzer()
    time_ns = limits.SECOND_NS
    for number, (gap_ns, reported) in enumerate(((0, 0), (limits.CONNECTION_LINGER_MIN_NS, 0), (0, 0), (0, 1))):
        tap = Tap(port=40_000 + number, time_ns=time_ns + gap_ns).open().client(metadata(1)).server(metadata_answer(1)).close()
        time_ns = tap.time_ns
        analyzer.feed(batch(tap.segments))
        assert [ended.number for ended in analyzer.table.closing] == list(range(1, number + 2))[-2:]
        assert sum(count for weird, count in analyzer.sightings() if weird.kind is WeirdKind.CONNECTION_LIMIT) == reported
    assert [closed.values["ended"] for closed in analyzer.take_connections()] == ["fin", "fin"]


@pytest.mark.parametrize("fast_path", [False, True])
@pytest.mark.parametrize("size", [1, 4, 100])
def test_a_packet_long_after_the_end_belongs_to_no_connection(fast_path: bool, size: int) -> None:
    """Whether packets before it were of the same batch or not."""
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1)).close()
    tap.time_ns += limits.CONNECTION_LINGER_NS
    tap.add(0, 16)
    (connection,) = result_of(cut(tap.segments, size), fast_path=fast_path).connections
    assert connection["packets"] == len(tap.segments) - 1


class Elsewhere:
    """A connection that its caller keeps, over at a given place."""

    def __init__(self, number: int, closing_ns: int, order: int) -> None:
        self.number, self.closing_ns, self.closing_order = number, closing_ns, order
        self.gone: Connection | None = None
        self.asked = 0

    def close(self) -> Connection | None:
        self.asked += 1
        return self.gone

    def close_with(self, others: "deque[Any]") -> None:
        """Closes no other."""


def test_what_others_keep_ends_in_its_turn() -> None:
    """In the queue of those that are over, in the numbers given, and given back where there is more to do."""
    analyzer = Analyzer()
    table = analyzer.table
    tap = Tap().open().client(metadata(1)).server(metadata_answer(1)).close()
    elsewhere, back = Elsewhere(1, tap.time_ns, 0), Elsewhere(5, tap.time_ns, 1)
    back.gone = Connection(flow(7), reverse_flow(flow(7)), 5, 0, 0, 0, analyzer)
    analyzer.opened(back.gone)
    table.taken.append(-1)
    table.feed(batch(tap.segments))
    assert next(iter(table.streams.values())).connection.number == 2
    table.closing.extendleft((back, elsewhere))
    table.advance(tap.time_ns + limits.CONNECTION_LINGER_NS)
    assert (elsewhere.asked, back.asked, len(table.closing)) == (1, 1, 0)
    assert [closed.values["number"] for closed in analyzer.take_connections()] == [5, 2]
    for _ in table.ends([elsewhere]):
        pass
    assert elsewhere.asked == 2


def test_an_adopted_connection_is_found() -> None:
    analyzer = Analyzer()
    connection = Connection(flow(), reverse_flow(flow()), 1, 0, 0, 0, analyzer)
    analyzer.opened(connection)
    analyzer.table.adopt(connection)
    assert [stream.connection for stream in analyzer.table.streams.values()] == [connection, connection]
    assert connection.streams[0] not in analyzer.table.holes


def test_of_too_many_connections_the_quietest_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also within a moment, also those that had the same ports; each is closed once, and its rows are those of any end."""
    monkeypatch.setattr(limits, "CONNECTIONS_MAX", 16)
    analyzer = Analyzer()
    table = analyzer.table
    for number in range(40):
        tap = Tap(port=40_000 + number // 2, client_isn=1 + number % 2 * 1_000_000_000).open().client(metadata(1))
        analyzer.feed(batch(tap.segments))
        assert (
            table.objects
            == len({stream.connection for stream in table.streams.values()})
            + sum(1 for stream in table.streams.values() if stream.connection.older is not None) // 2
        )
        assert table.objects <= 16
    analyzer.finish()
    assert table.objects == 0
    closed = analyzer.take_connections()
    assert sorted(c.values["number"] for c in closed) == list(range(1, 41))  # type: ignore[type-var]
    assert sum(count for weird, count in analyzer.sightings() if weird.kind.value == "connection_limit") > 0
    assert sorted(row[1] for row in analyzer.take().rows) == [1] * 40


@pytest.mark.parametrize("opened", [True, False])
def test_what_waits_behind_holes_is_bounded_over_all_connections(monkeypatch: pytest.MonkeyPatch, opened: bool) -> None:
    """Law: beyond the bound a stream that holds much gives its hole up, and says so; one that holds little waits on. The same
    on both paths.
    """
    monkeypatch.setattr(limits, "HELD_BYTES_MAX", 60_000)
    monkeypatch.setattr(limits, "HELD_BYTES_LEAST", 2_000)
    monkeypatch.setattr(limits, "REORDER_SEGMENTS", 1 << 20)
    taps = [Tap(port=40_000 + number, time_ns=MS * (number + 1)) for number in range(20)]
    for number, tap in enumerate(taps):
        if opened:
            tap.open()
        for turn in range(3):
            tap.client(metadata(turn)).server(metadata_answer(turn))
        tap.next[0] += 10
        for turn in range(20):
            tap.client(metadata(turn, "t" * 200) if number else b"x")
    segments = [segment for turn in zip(*(tap.segments for tap in taps), strict=True) for segment in turn]
    analyzer, held = Analyzer(), 0
    for number, segment in enumerate(segments, 1):
        analyzer.feed(batch([segment], number))
        held = max(held, analyzer.held_bytes)
    assert 50_000 < held < 60_000 + 20 * 2_000
    assert sum(weird.kind is WeirdKind.REORDER_LIMIT for weird, _ in analyzer.sightings()) > 10
    assert any(stream.held for stream in analyzer.table.streams.values()), "few bytes wait on"
    analyzer.finish()
    assert not analyzer.held_bytes
    agree(segments, 50, 3)
