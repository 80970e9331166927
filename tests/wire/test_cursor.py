"""The readers of Kafka's primitive types."""

from contextlib import suppress
from struct import Struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.wire.cursor import STRING_BYTES_MAX, Cursor
from kcap.wire.varints import DamageError


def test_values() -> None:
    """Big-endian and signed."""
    cursor = Cursor(b"\xff\xff\xfe\xff\xff\xff\xfd" + b"\x05" + b"abc")
    assert [cursor.read_int8(), cursor.read_int16(), cursor.read_int32()] == [-1, -2, -3]
    assert cursor.read_uvarint() == 5
    assert cursor.left == 3
    assert cursor.read_bytes(3) == b"abc"
    assert Cursor(b"\1\0\2").read(Struct(">?h")) == (True, 2)


def test_strings() -> None:
    """Null, empty and text in both forms."""
    assert Cursor(b"\xff\xff").read_string() is None
    assert Cursor(b"\0\0").read_string() == ""
    assert Cursor(b"\0\2hi").read_string() == "hi"
    assert Cursor(b"\0").read_string(compact=True) is None
    assert Cursor(b"\1").read_string(compact=True) == ""
    assert Cursor(b"\3hi").read_string(compact=True) == "hi"


def test_spans() -> None:
    """Bytes are not copied before they are wanted."""
    assert Cursor(b"\0\0\0\2hi").read_span(compact=False, width=4) == (4, 6)
    assert Cursor(b"\xff\xff\xff\xff").read_span(compact=False, width=4) == (-1, -1)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\0\3hi", b"\0", b""])
def test_damage_leaves_the_position(data: bytes) -> None:
    """A value that cannot be read is not begun."""
    cursor = Cursor(data)
    with pytest.raises(DamageError):
        cursor.read_string()
    assert cursor.position == 0


def test_strings_have_kafkas_bound() -> None:
    """A compact string may not be longer than a plain one."""
    size = STRING_BYTES_MAX + 2
    data = bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14]) + bytes(size)
    with pytest.raises(DamageError, match="string of"):
        Cursor(data).read_string(compact=True)
    assert Cursor(data).read_span(compact=True, width=4)[0] == 3


@given(st.binary(max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_nothing_behind_the_end(data: bytes, start: int, end: int) -> None:
    """Law: a reader stays in its span or raises DamageError."""
    end = min(end, len(data))
    start = min(start, end)
    for name in ("read_int8", "read_int16", "read_int32", "read_uvarint", "read_string"):
        cursor = Cursor(data, start, end)
        with suppress(DamageError):
            getattr(cursor, name)()
        assert start <= cursor.position <= end
