"""Frames of IEEE 802.11 raise for no bytes, and what is not data or is encrypted gives nothing."""

from struct import pack

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


RADIOTAP = b"\0\0" + pack("<HI", 8, 0)


@pytest.mark.parametrize(
    ("read", "header"),
    [
        (read_wireless, b"\x08\1" + bytes(22)),
        (read_wireless, b"\x88\1" + bytes(24)),
        (read_wireless, b"\x88\x81" + bytes(28)),
        (read_wireless, b"\x08\3" + bytes(28)),
        (read_radiotap, RADIOTAP + b"\x08\1" + bytes(22)),
        (read_radiotap, b"\0\0" + pack("<HIQB", 17, 3, 7, 0x20) + b"\x88\1" + bytes(26)),
        (read_radiotap, b"\0\0" + pack("<HIIB", 13, 0x80000002, 0, 0) + b"\x08\1" + bytes(22)),
    ],
    ids=["plain", "QoS", "QoS and HT control", "four addresses", "radiotap", "padded to 4 bytes", "two words of flags"],
)
def test_the_cursor_is_on_the_llc_header(read, header: bytes) -> None:
    frame = header + b"\xaa\xaa\3\0\0\0\x08\0"
    cursor = PacketCursor(frame, 0, len(frame), len(frame))
    assert read(cursor)
    assert cursor.at == len(header)
    for size in range(len(header)):
        cut = PacketCursor(frame, 0, size, len(frame))
        assert not read(cut), "a header that the snapshot length cut"


@pytest.mark.parametrize("size", [0, 7, 200])
def test_a_radiotap_header_that_is_shorter_than_itself_or_longer_than_the_packet_gives_nothing(size: int) -> None:
    frame = b"\0\0" + pack("<HI", size, 0) + b"\x08\1" + bytes(40)
    assert not read_radiotap(PacketCursor(frame, 0, len(frame), len(frame)))
