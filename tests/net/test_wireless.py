"""Frames of IEEE 802.11 raise for no bytes, and what is not data or is encrypted gives nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.net.packet_cursor import PacketCursor
from kcap.net.wireless import read_radiotap, read_wireless


@given(st.binary(max_size=80), st.sampled_from([read_radiotap, read_wireless]))
def test_no_bytes_raise_and_the_cursor_stays_within_them(data: bytes, read) -> None:
    cursor = PacketCursor(data, 0, len(data), len(data))
    read(cursor)
    assert 0 <= cursor.at <= len(data)


@pytest.mark.parametrize(
    ("what", "head"),
    [("a beacon", b"\x80\0"), ("an acknowledgement", b"\xd4\0"), ("no data", b"\x48\1"), ("encrypted", b"\x08\x41"),
     ("an aggregate", b"\x88\1" + bytes(22) + b"\x80")],
)  # fmt: skip
def test_what_is_not_readable_data_gives_nothing(what: str, head: bytes) -> None:
    cursor = PacketCursor(head.ljust(80, b"\0"), 0, 80, 80)
    assert not read_wireless(cursor), what
    assert cursor.fault is None
