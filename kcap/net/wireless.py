"""IEEE 802.11: data frames, with or without the header that the recorder put before them.

In: a `PacketCursor` at the frame. Out: whether an LLC header follows, with the cursor on it. Law: no bytes raise an exception;
encrypted frames, management frames and frames without data are no oddity.
"""

from typing import Final

from kcap.net.packet_cursor import PacketCursor

HEADER_BYTES, ADDRESS_BYTES, QOS_BYTES, HT_BYTES = 24, 6, 2, 4
DATA: Final = 0x08
"""Frame control field for version 0 and type data; the bits of the subtype show what the frame has."""
NO_DATA, QOS = 0x40, 0x80
BOTH_DISTRIBUTED, PROTECTED, ORDER = 0x03, 0x40, 0x80
AGGREGATE: Final = 0x80
"""Bit of the QoS control field: the body is an A-MSDU, which is several frames with headers of their own."""
TSFT, FLAGS, MORE, PADDED = 0x01, 0x02, 0x80, 0x20
"""Bits of radiotap: the fields that are present, whether another word follows, whether the header is padded to 4 bytes."""


def read_radiotap(cursor: PacketCursor) -> bool:
    """Reads the radiotap header (radiotap.org), then the frame."""
    if not cursor.have(8, "radiotap"):
        return False
    buffer, start = cursor.buffer, cursor.at
    size = buffer[start + 2] | buffer[start + 3] << 8
    if size < 8 or not cursor.have(size, "radiotap"):
        return False
    present, at = buffer[start + 4], start + 8
    while buffer[at - 1] & MORE and at + 4 <= start + size:
        at += 4
    if present & TSFT:
        at += -(at - start) % 8 + 8
    padded = bool(present & FLAGS and at < start + size and buffer[at] & PADDED)
    cursor.at += size
    return read_wireless(cursor, padded)


def read_wireless(cursor: PacketCursor, padded: bool = False) -> bool:
    """Reads an IEEE 802.11 frame (IEEE 802.11-2020 section 9.2.3)."""
    if not cursor.have(HEADER_BYTES, "802.11"):
        return False
    control, flags = cursor.buffer[cursor.at], cursor.buffer[cursor.at + 1]
    if control & 0x0F != DATA or control & NO_DATA or flags & PROTECTED:
        return False
    size = HEADER_BYTES + ADDRESS_BYTES * (flags & BOTH_DISTRIBUTED == BOTH_DISTRIBUTED)
    if control & QOS:
        if not cursor.have(size + QOS_BYTES, "802.11") or cursor.buffer[cursor.at + size] & AGGREGATE:
            return False
        size += QOS_BYTES + HT_BYTES * bool(flags & ORDER)
    size += -size % 4 if padded else 0
    if not cursor.have(size, "802.11"):
        return False
    cursor.at += size
    return True
