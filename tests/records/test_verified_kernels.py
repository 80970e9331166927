"""The compiled sums and the compiled search."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap.records.verified_kernels import HEAD, TABLES, checksum, find_batches
from kcap.wire.checksums import crc32c
from tests.records.batches import batch


@given(st.binary(max_size=100), st.integers(0, 20), st.integers(0, 20))
def test_sums_are_those_of_the_library(data: bytes, low: int, less: int) -> None:
    """Law: CRC-32C of any part."""
    low = min(low, len(data))
    high = max(low, len(data) - less)
    assert checksum(np.frombuffer(data, np.uint8), low, high, TABLES) == crc32c(data[low:high])


def test_more_finds_than_there_is_room_for_at_first() -> None:
    one, count = batch(b"a"), HEAD + 5
    data = np.frombuffer(one * count, np.uint8)
    found = find_batches(data, np.array([[0, len(data), 0]]))
    assert found[:, 1].tolist() == [len(one) * (at + 1) for at in range(count)]
