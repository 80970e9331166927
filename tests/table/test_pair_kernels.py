"""Pairs as a kernel finds them; the law that they are those of the plain path is in `test_partition_pairs`."""

from typing import TYPE_CHECKING

import numpy as np
import pytest

from kcap.table.pair_kernels import pair

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s

COUNT = 3000


def pairs(asked: "Int64s", given: "Int64s", seed: int = 7) -> "Int64s":
    """The entries of one exchange's request and response, by partition."""
    size = len(asked) + len(given)
    keys = np.zeros((4, size), np.int64)
    keys[3] = np.concatenate([asked, given])
    row, at = np.empty(size, np.int64), np.empty((2, size), np.int64)
    table = np.empty((2, 2 << len(asked).bit_length()), np.int64)
    count = pair(np.zeros(size, np.int64), len(asked), keys, row, at, table, np.empty(size, np.int64), seed)
    return at[:, :count]


@pytest.mark.parametrize("seed", [0, 1, (1 << 56) - 1])
def test_a_response_in_reverse_finds_its_requests(seed: int) -> None:
    """No entry is compared with all others: three thousand in reverse order take no time."""
    numbers = np.arange(COUNT)
    at = pairs(numbers, numbers[::-1].copy(), seed)
    assert at[0].tolist() == list(range(COUNT))
    assert at[1].tolist() == list(range(2 * COUNT - 1, COUNT - 1, -1))


def test_the_same_partition_many_times() -> None:
    """The n-th mention goes with the n-th, and what is left over stands alone."""
    at = pairs(np.array([5, 1, 5, 5]), np.array([5, 5, 9, 5, 5, 1]))
    assert at.T.tolist() == [[0, 4], [1, 9], [2, 5], [3, 7], [-1, 6], [-1, 8]]
