"""The compiled search; the law that it finds what Python finds is in `test_uid_table`."""

import numpy as np
import pytest

from kcap.uid_kernels import enter_each, find_each

COUNT = 1 << 14


@pytest.mark.parametrize("spread", [1 | 1 << 40, (1 << 62) - 1])
def test_uids_that_lie_near_each_other_are_found(spread: int) -> None:
    uids = np.arange(COUNT) - COUNT // 2
    places, kinds, found = np.zeros(2 * COUNT, np.int32), np.zeros(COUNT, np.uint8), np.empty(COUNT + 1, np.int64)
    enter_each(places, uids, kinds, spread, 0)
    find_each(places, uids, kinds, spread, np.append(uids, COUNT), found)
    assert found.tolist() == [*range(COUNT), -1]


def test_entries_of_another_number_are_not_found() -> None:
    uids, kinds = np.array([5, 5]), np.array([3, 0], np.uint8)
    places, found = np.zeros(8, np.int32), np.empty(1, np.int64)
    enter_each(places, uids, kinds, 1 | 1 << 40, 0)
    find_each(places, uids, kinds, 1 | 1 << 40, uids[:1], found)
    assert found.tolist() == [1]
