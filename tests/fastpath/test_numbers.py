"""Compiled numbers are those of struct."""

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap.fastpath.numbers import int16, int32


@given(st.binary(min_size=6, max_size=6))
def test_signed_numbers(blob: bytes) -> None:
    data = np.frombuffer(blob, np.uint8)
    assert int16.py_func(data, 1) == struct.unpack_from(">h", blob, 1)[0]
    assert int32.py_func(data, 1) == struct.unpack_from(">i", blob, 1)[0]
