"""Varints of Kafka's two kinds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.wire.varints import DamageError, read_uvarint, read_varint, read_varlong
from tests.records.batches import uvarint
from tests.records.batches import varint as zigzag


@given(st.integers(0, 2**32 - 1), st.binary(max_size=3))
def test_unsigned(value: int, tail: bytes) -> None:
    """Law: what was written is read, and nothing behind it."""
    data = uvarint(value)
    assert read_uvarint(b"x" + data + tail, 1, 1 + len(data) + len(tail)) == (value, 1 + len(data))


@given(st.integers(-(2**31), 2**31 - 1))
def test_zigzag_32(value: int) -> None:
    """Small numbers of either sign are short."""
    data = zigzag(value)
    assert read_varint(data, 0, len(data)) == (value, len(data))


@given(st.integers(-(2**63), 2**63 - 1))
def test_zigzag_64(value: int) -> None:
    """The same for int64."""
    data = zigzag(value)
    assert read_varlong(data, 0, len(data)) == (value, len(data))


@pytest.mark.parametrize("read", [read_uvarint, read_varint, read_varlong])
def test_damage(read: type) -> None:
    """Cut and endless varints are told apart."""
    with pytest.raises(DamageError, match="is cut at byte 0"):
        read(b"\xff\xff", 0, 2)
    with pytest.raises(DamageError, match=r"more than .* at byte 0"):
        read(b"\xff" * 20, 0, 20)
    with pytest.raises(DamageError):
        read(b"\x01", 1, 1)
