"""Connections that were never more than numbers: their order among the others, and what they say of themselves."""

import pickle
from collections import deque
from dataclasses import replace
from itertools import takewhile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.analyzer import Analyzer
from kcap.fastpath.closed_connections import EndedSlots, OwnConnection
from kcap.fastpath.closed_rows import ClosedRow
from kcap.net.segment_columns import columns_of
from kcap.net.tcp import ACK, FIN, MASK, PSH, RST, SYN
from tests.fastpath.both import agree, cut, result_of
from tests.fastpath.test_engine import steady
from tests.support.wire import MS, Segment, Tap, batch, metadata, metadata_answer

LINGER = limits.CONNECTION_LINGER_NS


@st.composite
def crowds(draw: st.DrawFn) -> list[Segment]:
    """Connections on few ports, some of them odd, that begin and end while others do; time goes on in leaps."""
    segments: list[Segment] = []
    time_ns = 1_000_000_000
    open_taps: list[Tap] = []
    for number in range(draw(st.integers(1, 14))):
        time_ns += draw(st.sampled_from((MS, 50 * MS, LINGER // 3, LINGER)))
        isn = draw(st.integers(0, MASK))
        tap = Tap(isn, (isn * 3) & MASK, port=40_000 + draw(st.integers(0, 4)), time_ns=time_ns)
        if draw(st.integers(0, 4)):
            tap.open()
        tap.client(metadata(number, client_id=f"app-{number % 3}")).server(metadata_answer(number))
        open_taps.append(tap)
        if draw(st.booleans()):
            other = open_taps.pop(draw(st.integers(0, len(open_taps) - 1)))
            other.time_ns = max(other.time_ns, time_ns)
            match draw(st.integers(0, 4)):
                case 0:
                    other.close()
                case 4:
                    other.client(metadata(99)).server(metadata_answer(99)[:40]).reset(draw(st.integers(0, 1)))
                case 1:
                    other.reset(draw(st.integers(0, 1)))
                case 2:
                    other.client(metadata(99)).close()
                case _:
                    other.close().reset(0)
            segments += other.segments
    segments += [s for tap in open_taps for s in tap.segments]
    return sorted(segments, key=lambda s: s.time_ns)


@given(crowds(), st.integers(1, 40), st.integers(1, 9), st.frozensets(st.integers(0, 60), max_size=4))
def test_crowds(segments: list[Segment], size: int, step: int, slow: frozenset[int]) -> None:
    agree(segments, size, step, slow)


@given(crowds(), st.integers(1, 40), st.integers(1, 9), st.integers(0, 3))
def test_crowds_of_which_few_are_held(segments: list[Segment], size: int, step: int, held: int) -> None:
    """Connections that ended are let go early, the same on both paths."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "LINGERING_MAX", held)
        agree(segments, size, step)


@given(crowds(), st.integers(1, 40))
def test_crowds_restored(segments: list[Segment], size: int) -> None:
    """Pickle and restore after any batch."""
    batches = cut(segments, size)
    result_of(batches, fast_path=True, pickled=True).same(result_of(batches, fast_path=False))


@st.composite
def quiet_crowds(draw: st.DrawFn) -> list[Segment]:
    """Connections of which most carry no byte, over hours: SYNs alone, handshakes, refusals, what health checks send, and
    acknowledgements of what never came."""
    segments: list[Segment] = []
    time_ns = 1_000_000_000
    for number in range(draw(st.integers(1, 16))):
        time_ns += draw(st.sampled_from((MS, limits.SWEEP_NS, limits.CONNECTION_IDLE_NS // 3, limits.CONNECTION_IDLE_NS)))
        tap = Tap(number * 7919, number * 104_729, port=40_000 + draw(st.integers(0, 12)), time_ns=time_ns)
        match draw(st.integers(0, 5)):
            case 0 | 1:
                tap.add(0, SYN, seq=tap.client_isn)
            case 2 | 3:
                tap.open()
            case 4:
                tap.open()
                tap.next[0] += draw(st.integers(1, 5))
                tap.add(1, ACK)
            case _:
                tap.open().client(metadata(1)).server(metadata_answer(1))
        segments += tap.segments
    return sorted(segments, key=lambda s: s.time_ns)


@given(quiet_crowds(), st.integers(1, 20), st.integers(1, 9), st.sampled_from((2, limits.CLOSED_TOGETHER)))
def test_crowds_without_a_byte(segments: list[Segment], size: int, step: int, together: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "CLOSED_TOGETHER", together)
        agree(segments, size, step)


@st.composite
def ends_without_a_byte(draw: st.DrawFn) -> list[Segment]:
    """Handshakes of which parts are missing, refusals, probes that open and close, each with anything behind it."""
    taps: list[Tap] = []
    for number in range(draw(st.integers(1, 4))):
        tap = Tap(number * 7919, number * 104_729, port=40_000 + number, time_ns=1_000_000_000 + number * MS)
        taps.append(tap)
        tap.add(0, SYN, seq=tap.client_isn)
        if draw(st.booleans()):
            tap.add(1, SYN | ACK, seq=tap.server_isn)
        for _ in range(draw(st.integers(0, 5))):
            side = draw(st.integers(0, 1))
            match draw(st.integers(0, 7)):
                case 0:
                    tap.add(side, ACK)
                case 1:
                    tap.add(side, FIN | ACK)
                    tap.next[side] = (tap.next[side] + 1) & MASK
                case 2:
                    tap.reset(side)
                case 3:
                    tap.add(side, RST)
                case 4:
                    tap.add(side, RST | ACK, seq=0)
                case 5:
                    tap.client(metadata(1)).server(metadata_answer(1))
                case 6:
                    tap.add(side, draw(st.sampled_from((SYN, SYN | ACK, FIN, FIN | PSH | ACK))))
                case _:
                    tap.time_ns += draw(st.sampled_from((LINGER // 2, LINGER, limits.CONNECTION_IDLE_NS)))
    segments = [replace(s, window=0) if s.flags & RST and draw(st.booleans()) else s for tap in taps for s in tap.segments]
    return sorted(segments, key=lambda s: s.time_ns)


@given(ends_without_a_byte(), st.integers(1, 20), st.integers(1, 9))
def test_ends_without_a_byte(segments: list[Segment], size: int, step: int) -> None:
    agree(segments, size, step)


def test_refused_and_probed_connections_have_no_objects() -> None:
    """A port where no one listens, a probe that opens and closes, and one that resets."""
    segments: list[Segment] = []
    for number in range(9):
        tap = Tap(port=1000 + number, time_ns=(1 + number) * 10**9)
        match number % 3:
            case 0:
                tap.add(0, SYN, seq=tap.client_isn)
                tap.add(1, RST | ACK, seq=0)
            case 1:
                tap.open().close()
            case _:
                tap.open().reset(0)
        segments += tap.segments
    found = agree(segments)
    assert [(row["ended"], row["phase"], row["closed_by"]) for row in found.connections] == [
        ("rst", "empty", "server"), ("fin", "empty", "client"), ("rst", "empty", "client")
    ] * 3  # fmt: skip
    assert found.own == 9


def without_a_byte() -> list[Segment]:
    """Of three connections one an hour a SYN, a handshake, and a request with its response; then the same once more."""
    segments: list[Segment] = []
    for number in range(6):
        tap = Tap(port=1000 + number, time_ns=(1 + number * 3601) * 10**9)
        if number % 3:
            tap.open()
        else:
            tap.add(0, SYN, seq=tap.client_isn)
        if number % 3 == 2:
            tap.client(metadata(1)).server(metadata_answer(1))
        segments += tap.segments
    return segments


def test_connections_without_a_byte_have_no_objects() -> None:
    """Neither where they are idle nor at the capture's end."""
    found = agree(without_a_byte())
    assert [row["phase"] for row in found.connections] == ["empty", "empty", "kafka"] * 2
    assert [row["ended"] for row in found.connections] == ["idle"] * 5 + ["open"]
    assert [(weird.kind, count) for weird, count in found.weirds if weird.kind == "connection_idle"] == [
        ("connection_idle", 1)
    ] * 5
    assert found.own == 5  # an idle one with an exchange is the reference path's


def own_and_others() -> list[Segment]:
    """Twelve connections one after the other, every third of which began before the capture."""
    segments: list[Segment] = []
    for number in range(12):
        tap = Tap(port=1000 + number, time_ns=(number + 1) * 100 * MS)
        if number % 3:
            tap.open()
        segments += tap.client(metadata(1)).server(metadata_answer(1)).segments
    return segments


def test_open_ones_are_closed_by_number_at_the_end() -> None:
    found = agree(own_and_others())
    assert [row["number"] for row in found.connections] == list(range(1, 13))
    assert found.own == 8


def test_what_is_kept_can_be_pickled() -> None:
    analyzer = Analyzer()
    tap = steady(4).close()
    later = Tap(port=50_000, time_ns=tap.time_ns + LINGER)
    later.add(0, SYN)
    analyzer.feed(columns_of(batch(tap.segments + later.segments)))
    again = pickle.loads(pickle.dumps(analyzer))
    (ours,), (theirs,) = analyzer.take_connections(), again.take_connections()
    assert isinstance(ours, ClosedRow)  # its row is made of its numbers
    assert ours.values == theirs.values
    assert ours.values["ended"] == "fin"


def test_ports_again_while_the_first_lingers() -> None:
    """The queue of those that are over has the objects in the place of the numbers."""
    first = steady(4).close()
    second = [
        replace(s, time_ns=s.time_ns + first.time_ns, seq=s.seq + 9_000_000, ack=s.ack + 9_000_000) for s in steady(4).segments
    ]
    other = [replace(s, flow=s.flow[:8] + bytes(4)) for s in steady(4).close().segments[:0]]
    assert len(agree([*first.segments, *second, *other]).connections) == 2


class FastPathCloser:
    """Notes which slots are closed, up to one that is refused."""

    def __init__(self, refused: int = -1) -> None:
        self.closed: list[int] = []
        self.refused = refused

    def close(self, slot: int) -> None:
        self.closed.append(slot)

    def close_many(self, slots: Any) -> int:
        found = list(takewhile(self.refused.__ne__, slots.tolist()))
        self.closed += found
        return len(found)


def test_connections_of_one_kind_are_closed_together() -> None:
    """Up to one that has to be closed alone, or is of another kind; each is closed once."""
    closer = FastPathCloser(refused=50)
    first, *others = (OwnConnection(number, number, closer) for number in range(60))
    queue = deque[object]([*others, "another"])
    first.close_with(queue)
    assert closer.closed == list(range(50))
    assert len(queue) == 11
    assert first.close() is None
    assert others[49].close() is None
    assert closer.closed == list(range(51))


def test_ended_slots_are_due_in_order() -> None:
    """Before a packet, up to the first that is held for longer, which holds those behind it."""
    ended = EndedSlots()
    ended.add(np.array([7, 3]), np.array([10, 12]), np.array([100, 300]))
    ended.add(np.array([9]), np.array([15]), np.array([200]))
    assert ended.due(300, 16).tolist() == [7, 3, 9]
    assert ended.due(250, 16).tolist() == [7]
    assert ended.due(300, 12).tolist() == [7]
    assert ended.due(99, 16).tolist() == []
    assert list(ended.ends()) == [(10, 100), (12, 300), (15, 200)]
    assert ended.take(3) == 12
    assert ended.due(250, 16).tolist() == [7, 9]
    ended.drop(1)
    assert (len(ended), ended.begin_before(15), ended.begin_before(16)) == (1, False, True)
    ended.drop(1)
    assert not ended.begin_before(1 << 62)


def test_an_early_acknowledgement_is_never_taken_back() -> None:
    """Bytes acknowledged before they were captured say nothing about a round trip; a later, lower number changes nothing."""
    tap = Tap().open().client(metadata(1))
    ahead, now = tap.segments[-1], tap.time_ns
    answer = metadata_answer(1)
    tap.segments += [replace(ahead, payload=b"", seq=tap.next[0], ack=tap.next[1] + len(answer), flags=16, time_ns=now + MS)]
    tap.time_ns += 2 * MS
    tap.client(metadata(2)).server(answer)
    tap.time_ns += 40 * MS
    tap.add(0, 16)
    found = agree(tap.segments)
    assert found.connections[0]["client_rtt_min_ns"] is None
