"""Fetch sessions as the sources of offsets."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.facts import fetch_positions
from kcap.facts.fetch_positions import Positions

A, B = (b"a", 0), (b"b", 3)


def test_a_session_holds_what_was_named_last() -> None:
    held = Positions()
    assert held.fetched("C1", 0, 0, {A: 5, B: 7}, 99) == {A: 5, B: 7}
    assert held.fetched("C1", 99, 1, {}, 99) == {A: 5, B: 7}
    assert held.fetched("C1", 99, 2, {A: 6}, 99) == {A: 6, B: 7}
    assert held.fetched("C2", 99, 2, {}, 99) == {}, "of another connection"
    assert held.fetched("C1", 99, -1, {}, 0) == {}, "closed"
    assert held.fetched("C1", 99, 3, {B: 1}, 99) == {B: 1}


def test_a_session_that_began_before_the_capture() -> None:
    held = Positions()
    assert held.fetched("C1", 4, 17, {B: 9}, 4) == {B: 9}
    assert held.fetched("C1", 4, 18, {}, 4) == {B: 9}


Step = tuple[int, int, dict[tuple[bytes, int], int]]
named = st.dictionaries(st.tuples(st.sampled_from([b"a", b"b"]), st.integers(0, 3)), st.integers(0, 99), max_size=4)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(-1, 5), named)))
def test_pickling_changes_nothing(steps: list[Step]) -> None:
    """Law: a state that was written and read again answers as the one that was not; what was just named is held."""
    one, other = Positions(), Positions()
    for session, epoch, offsets in steps:
        answers = [state.fetched("C", session, epoch, offsets, session) for state in (one, other)]
        assert dict(answers[0]) == dict(answers[1])
        assert offsets.items() <= answers[0].items()
        other = pickle.loads(pickle.dumps(other))


def test_memory_is_bounded() -> None:
    """The session that was not used for longest is forgotten first."""
    assert fetch_positions.FETCH_PARTITIONS_KEPT == limits.FETCH_PARTITIONS_KEPT
    held = Positions()
    many = {(b"t", number): 0 for number in range(limits.FETCH_PARTITIONS_KEPT // 2)}
    for session in (1, 2, 3):
        held.fetched("C", 0, 0, many, session)
    assert held.fetched("C", 1, 1, {}, 1) == {}
    assert len(held.fetched("C", 3, 1, {}, 3)) == len(many)


def test_the_number_of_sessions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Consumers that come and go leave sessions without end, however few partitions each has."""
    assert fetch_positions.FETCH_SESSIONS_KEPT == limits.FETCH_SESSIONS_KEPT
    monkeypatch.setattr(fetch_positions, "FETCH_SESSIONS_KEPT", 3)
    held = Positions()
    for session in range(1, 5):
        held.fetched("C", 0, 0, {A: session} if session % 2 else {}, session)
        held.fetched("C", 2, 1, {B: 1}, 2)
    assert [len(held.fetched("C", session, 1, {}, session)) for session in (4, 3, 2)] == [0, 1, 1]
    assert held.fetched("C", 1, 1, {}, 1) == {}, "not used for longest"


def test_one_session_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a session that grows without end the partitions named first are forgotten."""
    monkeypatch.setattr(fetch_positions, "FETCH_PARTITIONS_KEPT", 80)
    held = Positions()
    for epoch in range(1, 50):
        some = held.fetched("C", 1, epoch, {(b"t", epoch * 10 + number): 0 for number in range(10)}, 1)
        assert len(some) <= 80
        assert {(b"t", epoch * 10 + number) for number in range(10)} <= some.keys()
