"""Laws of integer columns with nulls: they say what a list of Python integers and None says."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kcap.arrays.vectors import Vector, grouped, nothing, occurring, vector

NUMBERS = st.integers(-(1 << 62), 1 << 62)
LISTS = st.lists(st.one_of(st.none(), NUMBERS), max_size=20)
PAIRS = st.lists(st.tuples(st.one_of(st.none(), st.integers(-99, 99)), st.one_of(st.none(), st.integers(-99, 99))), max_size=20)


def made(items: list[int | None]) -> Vector:
    return vector(pa.array(items, pa.int64()))


def listed(found: Vector) -> list[int | None]:
    return found.to_arrow(pa.int64()).to_pylist()


@given(LISTS)
def test_it_goes_there_and_back(items: list[int | None]) -> None:
    assert listed(made(items)) == items
    assert made(items).to_list() == items
    assert made(items).nothing == (not any(item is not None for item in items))


@given(PAIRS)
def test_arithmetic_is_null_where_a_part_is(pairs: list[tuple[int | None, int | None]]) -> None:
    first, second = made([a for a, _ in pairs]), made([b for _, b in pairs])
    assert listed(first.minus(second)) == [None if a is None or b is None else a - b for a, b in pairs]
    assert listed(first.otherwise(second)) == [b if a is None else a for a, b in pairs]
    assert first.filled(7).tolist() == [7 if a is None else a for a, _ in pairs]
    assert listed(first.where(second.values > 0)) == [a if at else None for (a, _), at in zip(pairs, second.values > 0)]


@given(LISTS, LISTS)
def test_entries_are_put_together_and_picked(first: list[int | None], second: list[int | None]) -> None:
    both = made(first).followed_by(made(second))
    assert listed(both) == first + second
    places = np.arange(len(both))[::-1]
    assert listed(both.take(places)) == (first + second)[::-1]


def test_smaller_types_and_nothing() -> None:
    assert made([1, None, -3]).to_arrow(pa.int16()).equals(pa.array([1, None, -3], pa.int16()))
    assert nothing(3).to_arrow(pa.int32()).equals(pa.nulls(3, pa.int32()))
    assert made([1, 2]).mask().tolist() == [True, True]
    assert len(nothing(0)) == 0


@given(st.lists(st.integers(-5, 5), max_size=30))
def test_groups_are_those_of_numpy(items: list[int]) -> None:
    values = np.array(items, np.int64)
    for ours, theirs in zip(grouped(values), np.unique(values, return_index=True, return_inverse=True)):
        assert ours.tolist() == theirs.tolist()


@given(st.lists(st.integers(0, 40), max_size=30), st.booleans())
def test_different_numbers_are_found_by_marking_or_by_sorting(numbers: list[int], many: bool) -> None:
    found, places = occurring(np.array(numbers, np.int64), 1 << 30 if many else 41)
    assert found.tolist() == sorted(set(numbers))
    assert found[places].tolist() == numbers
