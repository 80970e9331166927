"""Laws of fetch sessions: what is polled is what the broker's session holds."""

import pickle
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.kafka import sessions
from kcap.kafka.sessions import CLOSE, FULL, NO_SESSION, FetchSessions, Partition, next_epoch

A, B, C = ("a", 0), ("a", 1), ("b", 0)
PARTITIONS = st.sets(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=6)


def begun(*partitions: Partition, session_id: int = 7) -> FetchSessions:
    found = FetchSessions()
    assert found.polled(NO_SESSION, FULL, partitions).partitions == partitions
    found.answered(NO_SESSION, FULL, partitions, session_id)
    return found


def test_an_empty_request_polls_all_of_its_session() -> None:
    found = begun(A, B)
    polled = found.polled(7, 1, [])
    assert (polled.partitions, polled.whole) == ((A, B), True)
    assert found.polled(7, 2, [C], [A]).partitions == (B, C)
    assert found.polled(7, 3, [B]).partitions == (B, C)


def test_without_a_session_a_request_stands_for_itself() -> None:
    found = FetchSessions()
    assert found.polled(NO_SESSION, CLOSE, [A, A, B]).partitions == (A, B)
    found.answered(NO_SESSION, CLOSE, [A, B], NO_SESSION)
    assert found.sessions == {}


def test_closing_and_errors_end_a_session() -> None:
    found = begun(A)
    assert found.polled(7, CLOSE, [B]).partitions == (B,)
    assert not found.polled(7, 2, []).whole
    found = begun(A)
    found.answered(7, 1, [], 7, error=71)
    assert found.polled(7, 1, []) == sessions.Polled((), False)


def test_a_session_that_began_before_the_capture_is_known_in_part() -> None:
    polled = FetchSessions().polled(9, 41, [A])
    assert (polled.partitions, polled.whole) == ((A,), False)


def test_a_request_that_was_not_seen_is_noticed() -> None:
    found = begun(A)
    assert found.polled(7, 1, []).whole
    assert not found.polled(7, 3, []).whole
    assert not found.polled(7, 4, []).whole


def test_epochs_wrap_to_one() -> None:
    assert next_epoch((1 << 31) - 1) == 1
    found = begun(A)
    found.sessions[7].epoch = (1 << 31) - 1
    assert found.polled(7, (1 << 31) - 1, []).whole
    assert found.polled(7, 1, []).whole


@given(PARTITIONS, st.lists(st.tuples(PARTITIONS, PARTITIONS), max_size=8), st.booleans())
def test_it_holds_what_sets_hold(
    first: set[Partition], steps: list[tuple[set[Partition], set[Partition]]], pickled: bool
) -> None:
    """The model: a set that each request takes from and adds to."""
    found, model = begun(*sorted(first)), set(first)
    for epoch, (named, forgotten) in enumerate(steps, 1):
        model = (model - forgotten) | named
        polled = found.polled(7, epoch, sorted(named), sorted(forgotten))
        assert (set(polled.partitions), polled.whole) == (model, True)
        assert found._kept == len(model)
        if pickled:
            found = pickle.loads(pickle.dumps(found))


def test_bounds_hold() -> None:
    with patch.object(sessions, "SESSIONS_KEPT", 2):
        found = FetchSessions()
        for session_id in (1, 2, 3):
            found.answered(NO_SESSION, FULL, [A], session_id)
        assert sorted(found.sessions) == [2, 3]
    with patch.object(sessions, "FETCH_PARTITIONS_KEPT", 3):
        found = begun(A, B)
        found.answered(NO_SESSION, FULL, [A], 8)
        found.polled(8, 1, [B, C])
        assert list(found.sessions) == [8], "the others are forgotten"
    assert limits.SESSIONS_KEPT >= 1000
