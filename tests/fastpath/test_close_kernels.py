"""How connections end: in whatever order FIN, RST and later packets come, the fast path ends as the reference path do."""

from operator import attrgetter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.fastpath import layout as at
from kcap.fastpath.close_kernels import all_settled
from kcap.fastpath.state import FastPathState
from kcap.net.tcp import ACK, FIN, MASK, PSH, RST, SYN
from tests.fastpath.both import agree
from tests.fastpath.test_engine import steady
from tests.support.wire import Tap, metadata, metadata_answer, produce

ENDS = (
    "fin", "fin push", "fin payload", "fin ahead", "fin again", "rst", "rst ack", "rst far", "rst payload", "ack", "ack far",
    "probe", "data", "ask", "answer", "half", "rest", "wait", "linger", "idle", "syn", "call again",
)  # fmt: skip


def turn(tap: Tap, side: int, what: str, number: int) -> None:
    """One packet, or some time."""
    match what:
        case "fin" | "fin push":
            tap.add(side, FIN | ACK | (PSH if what == "fin push" else 0))
            tap.next[side] = (tap.next[side] + 1) & MASK
        case "fin payload":
            tap.add(side, FIN | PSH | ACK, metadata(number))
            tap.next[side] = (tap.next[side] + 1) & MASK
        case "fin ahead":
            tap.add(side, FIN | ACK, seq=tap.next[side] + 7)
        case "fin again":
            tap.add(side, FIN | ACK, seq=tap.next[side] - 1)
        case "rst" | "rst ack":
            tap.add(side, RST | (ACK if what == "rst ack" else 0))
        case "rst far":
            tap.add(side, RST, seq=tap.next[side] + limits.SEQUENCE_FAR)
        case "rst payload":
            tap.add(side, RST | ACK, b"go away", seq=tap.next[side])
        case "ack" | "ack far":
            tap.next[1 - side] = (tap.next[1 - side] + (1 << 30 if what == "ack far" else 0)) & MASK
            tap.add(side, ACK)
            tap.next[1 - side] = (tap.next[1 - side] - (1 << 30 if what == "ack far" else 0)) & MASK
        case "probe":
            tap.add(side, ACK, b"\0", seq=tap.next[side] - 1)
        case "ask":
            tap.client(metadata(number))
        case "answer":
            tap.server(metadata_answer(number - 1))
        case "data" | "half" | "rest":
            frame = metadata_answer(103) if side else metadata(103)
            tap.send(side, {"data": b"\0\0\0", "half": frame[:40]}.get(what, frame[40:]))
        case "wait" | "linger" | "idle":
            tap.time_ns += {"wait": limits.CONNECTION_LINGER_NS // 2, "linger": limits.CONNECTION_LINGER_NS}.get(
                what, limits.CONNECTION_IDLE_NS
            )
        case "syn":
            tap.add(0, SYN, seq=tap.client_isn)
        case _:
            tap.next = [(tap.client_isn + 90_000 * number) & MASK, (tap.server_isn + 70_000 * number) & MASK]
            tap.add(0, SYN, seq=tap.next[0] - 1)
            tap.add(1, SYN | ACK, seq=tap.next[1] - 1)
            tap.add(0, ACK)
            tap.client(metadata(number)).server(metadata_answer(number))


@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from(ENDS)), max_size=9), st.integers(1, 40), st.integers(1, 9))
def test_endings(turns: list[tuple[int, str]], size: int, step: int) -> None:
    tap = steady(4)
    for number, (side, what) in enumerate(turns, 100):
        turn(tap, side, what, number)
    agree(tap.segments, size, step)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from(ENDS)), max_size=4), st.integers(0, 1),
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from(ENDS)), max_size=7), st.integers(1, 40), st.integers(1, 9),
)  # fmt: skip
def test_endings_within_a_frame(
    before: list[tuple[int, str]], cut: int, turns: list[tuple[int, str]], size: int, step: int
) -> None:
    """A request or a response has begun and does not end, or late, or behind a FIN or RST."""
    tap = steady(4)
    tap.client(metadata(103))
    for number, (side, what) in enumerate([*before, (cut, "half"), *turns], 100):
        turn(tap, side, what, number)
    agree(tap.segments, size, step)


@given(st.integers(0, 1), st.sampled_from(("fin", "fin push")), st.booleans(), st.booleans(), st.integers(1, 40))
def test_plain_endings_stay_in_the_fast_path(side: int, first: str, reset: bool, linger: bool, size: int) -> None:
    """FIN and FIN, or a reset, and some time: no object is ever made."""
    tap = steady(4)
    turn(tap, side, first, 0)
    turn(tap, 1 - side, "ack", 0)
    turn(tap, 1 - side, "rst ack" if reset else "fin", 0)
    turn(tap, side, "ack", 0)
    if linger:
        other = Tap(port=50_000, time_ns=tap.time_ns + limits.CONNECTION_LINGER_NS)
        other.add(0, SYN)
        tap.segments += other.segments
    assert agree(tap.segments, size).own == 1 + linger


@given(
    st.lists(st.sampled_from(["ask", "one way"]), min_size=1, max_size=4),
    st.sampled_from(["fin", "fin late", "server", "rst", "server rst", "open"]), st.integers(1, 40),
)  # fmt: skip
def test_what_waits_at_the_end_has_no_response(asked: list[str], end: str, size: int) -> None:
    """Requests of both kinds, one of which may get its response after the client's FIN: no object is ever made."""
    tap = steady(4)
    for number, what in enumerate(asked, 90):
        tap.client(metadata(number) if what == "ask" else produce(number, acks=0))
    if end.startswith("server"):
        turn(tap, 1, "rst" if end == "server rst" else "fin", 0)
    elif end != "open":
        turn(tap, 0, end.removesuffix(" late"), 0)
    if end == "fin late":
        if "ask" in asked:
            tap.server(metadata_answer(90 + asked.index("ask")))
        turn(tap, 1, "fin", 0)
    found = agree(tap.segments, size)
    assert found.own == 1
    late = "late_response" in {weird.kind.value for weird, _ in found.weirds}
    assert late == (end == "fin late" and "ask" in asked)


@pytest.mark.parametrize("size", [3, 1000])
def test_idle_connections_are_closed_a_few_at_a_time(size: int) -> None:
    """Both paths close the same ones next, and what is said of each is as if all were closed at once."""
    taps = [Tap(port=port, time_ns=10**18 + port).open() for port in range(1000, 1020)]
    for tap in taps:
        if tap.port % 4:
            tap.client(metadata(1))
        if tap.port % 3:
            tap.server(metadata_answer(1))
    late = steady(4)
    for number in range(30):
        late.time_ns = max(late.time_ns, 10**18 + 2 * limits.CONNECTION_IDLE_NS) + 1
        late.client(metadata(100 + number)).server(metadata_answer(100 + number))
    segments = sorted((one for tap in (*taps, late) for one in tap.segments), key=attrgetter("time_ns"))
    at_once = agree(segments, size)
    with patch.object(limits, "CLOSED_TOGETHER", 3):
        few = agree(segments, size)
    assert sum(values["ended"] == "idle" for values in few.connections) >= 20
    for one, other in ((few.rows, at_once.rows), (few.connections, at_once.connections)):
        assert sorted(map(repr, one)) == sorted(map(repr, other))


def test_what_is_open_is_decided_by_the_reference_path() -> None:
    """An open frame, bytes that were acknowledged and never seen."""
    within = steady(6)
    within.client(metadata(90)[:-2]).close()
    unseen = steady(6)
    unseen.next[0] += 50
    unseen.add(1, ACK)
    for tap in (within, unseen):
        assert agree(tap.segments).own == 0


def settled(slot: int, state: FastPathState) -> bool:
    found = np.empty(1, np.bool_)
    all_settled(np.array([slot]), found, state.connections, state.streams)
    return bool(found[0])


def test_settled() -> None:
    """Each of the things that may be left to be decided."""
    state = FastPathState()
    slot = state.slot()
    connection, streams = state.connections[slot], state.streams[2 * slot : 2 * slot + 2]
    connection[[at.OWN, at.LIVE]] = 1, at.TALKING
    streams[:, [at.OPEN_START, at.FIN_NS, at.ACKED, at.NEXT]] = -1, at.NONE, 100, 100
    assert settled(slot, state)
    for row, place, value, still in (
        (connection, at.OWN, 0, False),
        (connection, at.COUNT, 1, True),
        (connection, at.LIVE, at.OPEN, False),
        (streams[0], at.OPEN_START, 7, False),
        (streams[0], at.HELD, 7, False),
        (streams[1], at.ACKED, 101, True),
        (streams[1], at.ACKED, 102, False),
        (streams[1], at.ACKED, at.NONE, True),
    ):
        before = row[place]
        row[place] = value
        assert settled(slot, state) is still
        row[place] = before
