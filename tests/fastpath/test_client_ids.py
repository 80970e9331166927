"""Client ids by number."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap.fastpath.client_ids import name_number
from kcap.fastpath.layout import ID_BYTES, M_NAMES, META_WIDTH, NO_NAME


@given(st.lists(st.binary(max_size=5), max_size=30), st.integers(2, 12))
def test_against_a_dict(blobs: list[bytes], room: int) -> None:
    """Few places, so that names meet; beyond the room there is no number, and those known keep theirs."""
    table, kept, sizes = np.zeros(32, np.int64), np.zeros((room, ID_BYTES), np.uint8), np.full(room, -1, np.int64)
    meta = np.zeros(META_WIDTH, np.int64)
    meta[M_NAMES] = NO_NAME + 1
    known: dict[bytes, int] = {}
    for blob in blobs:
        data = np.frombuffer(b"xx" + blob, np.uint8)
        number = name_number(data, 2, len(blob), table, kept, sizes, meta)
        if blob not in known and len(known) == room - 1:
            assert number == -1
            continue
        assert known.setdefault(blob, number) == number
        assert kept[number, : sizes[number]].tobytes() == blob
    assert sorted(known.values()) == list(range(1, len(known) + 1))
