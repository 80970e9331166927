"""Partitions of requests and responses put side by side."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap.table.partition_pairs import body_start, joined, nth

numbers = st.lists(st.integers(-5, 5), max_size=30)


@given(numbers)
def test_nth_counts_equal_entries_before(values: list[int]) -> None:
    seen: Counter[int] = Counter()
    wanted = []
    for value in values:
        wanted.append(seen[value])
        seen[value] += 1
    assert nth(np.array(values, np.int64)).tolist() == wanted


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-(1 << 62), 1 << 62)), max_size=30))
def test_joined_numbers_are_equal_where_both_are(pairs: list[tuple[int, int]]) -> None:
    codes, column = (np.array([pair[at] for pair in pairs], np.int64) for at in (0, 1))
    found = joined(codes, column).tolist()
    for a, one in zip(pairs, found, strict=True):
        for b, other in zip(pairs, found, strict=True):
            assert (a == b) == (one == other)


def test_programs_read_behind_the_fixed_header() -> None:
    frame = b"\0\1\0\4\0\0\0\7\0\3abcREST"
    assert frame[body_start(frame, 0, 1) :] == b"REST"
    assert body_start(b"\0\1\0\4\0\0\0\7\xff\xff", 0, 2) == 10
    assert body_start(frame, 0, 0) == 8
    assert body_start(frame, 1, None) == 4
