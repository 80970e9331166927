"""A cursor knows what was captured from what was on the wire."""

from kcap.net.packet_cursor import PacketCursor


def test_a_header_that_ends_early_is_cut_or_malformed():
    cursor = PacketCursor(bytes(30), 10, 20, 25)
    assert cursor.have(10, "x")
    assert cursor.fault is None
    assert not cursor.have(11, "x")
    assert cursor.fault == "packet_cut"
    assert not cursor.have(16, "x")
    assert cursor.fault == "packet_malformed"
    assert cursor.fault_detail == "x header ends early"


def test_other_bytes_start_anew():
    cursor = PacketCursor(b"\1\2\3\4", 1, 3, 4)
    assert cursor.short(0) == 0x0203
    cursor.enter(b"\5\6", 9)
    assert (cursor.at, cursor.end, cursor.stop, cursor.short(0)) == (0, 2, 9, 0x0506)
