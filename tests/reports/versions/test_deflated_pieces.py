"""Laws of deflated pieces: any of them comes out as it went in, and what is looked at costs no memory."""

import pickle
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.reports.versions.deflated_pieces import DeflatedPieces, ValueNumbers


@given(st.lists(st.binary(max_size=400)), st.lists(st.tuples(st.integers(0, 99), st.binary(max_size=400))), st.randoms())
def test_a_piece_comes_out_as_it_went_in(pieces: list[bytes], others: list[tuple[int, bytes]], random: Random) -> None:
    """In any order, after others took their places, and of a copy."""
    made, expected = DeflatedPieces(), list(pieces)
    for piece in pieces:
        made.append(piece)
    for place, piece in others if pieces else ():
        made.set(place % len(pieces), piece)
        expected[place % len(pieces)] = piece
    places = list(range(len(pieces)))
    random.shuffle(places)
    for found in (made, pickle.loads(pickle.dumps(made))):
        assert {place: found.get(place) for place in places} == dict(enumerate(expected))


def test_pieces_that_are_alike_take_a_fraction_of_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    made = DeflatedPieces()
    for number in range(2000):
        made.append(number.to_bytes(8, "little") * 50)
    for place in range(2000):
        assert len(made.get(place)) == 400
    assert len(pickle.dumps(made)) < 2000 * 400 // 8
    assert max(map(len, made._blocks)) <= limits.PROFILE_BLOCK_BYTES


def test_a_value_has_one_number() -> None:
    numbers = ValueNumbers()
    assert [numbers[value] for value in ("a", "b", "a")] == [0, 1, 0]
    assert numbers.known == ["a", "b"]
