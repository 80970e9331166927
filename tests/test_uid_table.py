"""A table of uids is a dictionary, one by one and many at a time."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import kernels
from kcap.uid_table import UidTable

KEYS = st.lists(st.tuples(st.integers(0, 3) | st.integers(0, (1 << 64) - 1), st.integers(0, 255)), max_size=400)


@given(KEYS)
def test_entries_of_a_table_are_found_by_uid_and_number(keys: list[tuple[int, int]]) -> None:
    """Law: as in a dictionary, also while it grows and in a copy."""
    table, plain = UidTable(), dict[tuple[int, int], int]()
    for at, key in enumerate(keys):
        if at == len(keys) // 2:
            table = pickle.loads(pickle.dumps(table))
        assert table.find(*key) == plain.get(key, -1)
        assert table.entry(*key) == plain.setdefault(key, len(plain))
    assert [table.find(*key) for key in plain] == list(range(len(plain)))
    assert list(zip(table.uids, table.kinds)) == list(plain)


@pytest.mark.parametrize("compiled", [False, True])
@given(st.data())
def test_many_are_found_as_one_by_one(compiled: bool, data: st.DataObject) -> None:
    """Law: as in a dictionary, beside entries of other numbers and with uids that come twice."""
    table, plain = UidTable(), dict[tuple[int, int], int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "worthwhile", lambda _spared_ns: compiled)
        for keys in data.draw(st.lists(KEYS, max_size=5)):
            uids = np.array([uid for uid, _ in keys], np.uint64)
            assert table.find_all(uids).tolist() == [plain.get((uid, 0), -1) for uid, _ in keys]
            found = table.entries(uids)
            for entry in range(len(plain), len(table)):
                plain[table.uids[entry], table.kinds[entry]] = entry
            assert found.tolist() == [plain[uid, 0] for uid, _ in keys]
            assert set(plain) >= {(uid, 0) for uid, _ in keys}
            for key in keys:
                assert table.entry(*key) == plain.setdefault(key, len(plain))
    assert list(zip(table.uids, table.kinds)) == list(plain)
    assert [table.find(*key) for key in plain] == list(range(len(plain)))
