"""Wrapped messages as a kernel counts them."""

import gzip

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap.records.legacy import span_of_messages
from kcap.records.wrapped_kernels import wrapped_messages
from tests.records.batches import batch, message, record

LYING = message(b"value", key=b"key")
"""A message; below, one with a key and one with a value that is longer than it says."""
PIECES = (
    message(b"v", 0), message(b"w", 1), message(None, 1), message(b"x", 0, key=b"k"), message(b"y", 1, key=b"key"), b"",
    bytes(40), b"\xff" * 40, message(gzip.compress(b""), codec=1), batch(record(0)), LYING[:26] + b"\x7f" + LYING[27:],
    LYING[:33] + b"\x7f" + LYING[34:], message(b"z")[:-1],
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=6), st.integers(0, 50), st.integers(0, 300), st.integers(0, 7))
def test_the_count_is_that_of_python(pieces: list[bytes], cut: int, place: int, bit: int) -> None:
    """Law: of any messages, cut anywhere and with one bit damaged."""
    blob = bytearray(b"".join(pieces))
    del blob[max(0, len(blob) - cut) :]
    if place < len(blob):
        blob[place] ^= 1 << bit
    assert wrapped_messages(np.frombuffer(bytes(blob), np.uint8)) == span_of_messages(bytes(blob))
