"""Reads IP headers and reassembles fragments.

In: a `PacketCursor` on an IPv4 or IPv6 header. Out: the protocol number, with the cursor on the payload's first byte,
`addresses` set, and `stop` at the datagram's end, which excludes padding; 0 (no protocol of interest) if there is nothing to
read. Law: no bytes raise an exception. Checksums are ignored, because offload leaves them wrong at the sender.
"""

from collections.abc import Hashable
from struct import Struct

from kcap.net.fragments import FragmentPlace, FragmentTable
from kcap.net.link import IPV4
from kcap.net.packet_cursor import PacketCursor, Report
from kcap.weird import WeirdKind

HOP, TCP, UDP, ROUTING, FRAGMENT, GRE, AUTHENTICATION, NO_NEXT, DESTINATION = 0, 6, 17, 43, 44, 47, 51, 59, 60
EXTENSIONS = frozenset((HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION, 135, 139, 140))
NONE = NO_NEXT
"""IPv6's number for "no next header". 0 cannot be used: it is the hop-by-hop options."""

V4 = Struct(">HHHxB").unpack_from
V6 = Struct(">HB").unpack_from
FRAGMENT_V6 = Struct(">BxHI").unpack_from
JUMBO = 0xC2


def read_ip(kind: int, cursor: PacketCursor, table: FragmentTable, place: FragmentPlace, report: Report) -> int:
    """Returns the protocol number of the payload; NONE if there is nothing to read (yet)."""
    if kind == IPV4:
        return read_v4(cursor, table, place, report)
    return read_v6(cursor, table, place, report)


def read_v4(cursor: PacketCursor, table: FragmentTable, place: FragmentPlace, report: Report) -> int:
    """Reads an IPv4 header (RFC 791)."""
    if not cursor.have(20, "IPv4"):
        return NONE
    at, buffer = cursor.at, cursor.buffer
    total, ident, fragment, protocol = V4(buffer, at + 2)
    size = (buffer[at] & 15) * 4
    if total == 0:  # segmentation offload: the length was not known yet, or exceeds 16 bits (BIG TCP)
        total = cursor.stop - at
    if buffer[at] >> 4 != 4 or size < 20 or total < size:
        cursor.fail(WeirdKind.PACKET_MALFORMED, "IPv4 header contradicts itself")
        return NONE
    cursor.addresses = buffer[at + 12 : at + 20]
    narrow(cursor, at + total)
    cursor.at = at + size
    if fragment & 0x3FFF:
        key = (cursor.addresses, protocol, ident)
        if not gather(cursor, key, (fragment & 0x1FFF) * 8, bool(fragment & 0x2000), table, place, report):
            return NONE
    if protocol == AUTHENTICATION:
        return read_extensions(protocol, cursor, table, place, report)
    return int(protocol)


def read_v6(cursor: PacketCursor, table: FragmentTable, place: FragmentPlace, report: Report) -> int:
    """Reads an IPv6 header (RFC 8200)."""
    if not cursor.have(40, "IPv6"):
        return NONE
    at, buffer = cursor.at, cursor.buffer
    size, protocol = V6(buffer, at + 4)
    if buffer[at] >> 4 != 6:
        cursor.fail(WeirdKind.PACKET_MALFORMED, "IPv6 header contradicts itself")
        return NONE
    cursor.addresses = buffer[at + 8 : at + 40]
    cursor.at = at + 40
    if size:
        narrow(cursor, cursor.at + size)
    elif protocol == HOP:
        jumbo = jumbo_length(cursor)
        if jumbo:
            narrow(cursor, cursor.at + jumbo)
    return read_extensions(protocol, cursor, table, place, report) if protocol in EXTENSIONS else int(protocol)


def read_extensions(protocol: int, cursor: PacketCursor, table: FragmentTable, place: FragmentPlace, report: Report) -> int:
    """Reads extension headers (RFC 8200 section 4); returns the first protocol that is not one of them."""
    while protocol in EXTENSIONS:
        if not cursor.have(8, "IPv6 extension"):
            return NONE
        buffer, at = cursor.buffer, cursor.at
        if protocol == FRAGMENT:
            protocol, fragment, ident = FRAGMENT_V6(buffer, at)
            cursor.at += 8
            # An atomic fragment (RFC 6946) is a whole datagram.
            if fragment & 0xFFF9 and not gather(
                cursor, (cursor.addresses, ident), fragment & 0xFFF8, bool(fragment & 1), table, place, report
            ):
                return NONE
        else:
            size = (buffer[at + 1] + 2) * 4 if protocol == AUTHENTICATION else (buffer[at + 1] + 1) * 8
            protocol = buffer[at]
            cursor.at += size
    return int(protocol)


def narrow(cursor: PacketCursor, stop: int) -> None:
    """Applies the datagram's length: bytes behind it are padding, and bytes that are missing from it were not captured."""
    cursor.stop = stop
    cursor.end = min(cursor.end, stop)


def jumbo_length(cursor: PacketCursor) -> int:
    """Length from a jumbo payload option (RFC 2675) that is the first option, as Linux writes it; 0 if there is none."""
    at, buffer = cursor.at, cursor.buffer
    if cursor.end - at < 8 or buffer[at + 2] != JUMBO or buffer[at + 3] != 4:
        return 0
    return int.from_bytes(buffer[at + 4 : at + 8], "big")


def gather(
    cursor: PacketCursor, key: Hashable, offset: int, more: bool, table: FragmentTable, place: FragmentPlace, report: Report
) -> bool:
    """Adds a fragment. Returns True if it completes a datagram, on which the cursor then is."""
    size = cursor.stop - cursor.at
    if size <= 0:
        cursor.fail(WeirdKind.PACKET_MALFORMED, "IP fragment of no bytes")
        return False
    whole = table.add(key, offset, more, cursor.buffer[cursor.at : cursor.end], size, place, report)
    if whole is None:
        return False
    cursor.enter(*whole)
    return True
