"""Columns of numbers travel."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.distributed.packing import COLUMN, pack_column, unpack_column

SMALL, WIDE = st.integers(-100, 100), st.integers(-(1 << 62), 1 << 62)


@pytest.mark.parametrize("rising", [False, True])
@given(st.lists(st.lists(st.one_of(SMALL, WIDE), min_size=3, max_size=3), min_size=1, max_size=4))
def test_columns_come_out_as_they_went_in(rising: bool, columns: list[list[int]]) -> None:
    """Law: one behind the other, whatever they hold."""
    packed = b"".join(part for column in columns for part in pack_column(np.array(column, np.int64), rising=rising))
    at, out = 0, np.empty(3, np.int64)
    for column in columns:
        at = unpack_column(packed, at, out, rising=rising)
        assert out.tolist() == column
    assert at == len(packed)


def test_numbers_take_the_bytes_they_need() -> None:
    """Constant ones none, small steps one each."""
    assert sum(map(len, pack_column(np.full(1000, 1 << 40), rising=False))) == COLUMN.size
    assert sum(map(len, pack_column((1 << 40) + 100 * np.arange(1000), rising=True))) == COLUMN.size + 1000
    assert sum(map(len, pack_column((1 << 40) + 100 * np.arange(1000), rising=False))) == COLUMN.size + 4000
