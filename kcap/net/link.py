"""Link layers: from the first byte of a packet to its IP header.

In: a `PacketCursor` and the link type, or an ethertype found inside a tunnel. Out: IPV4 or IPV6 with the cursor on the header,
or 0 if the packet carries no IP. Law: no bytes raise an exception; a header that ends early becomes the cursor's fault.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import Final, Literal

from kcap.net.packet_cursor import PacketCursor
from kcap.net.wireless import read_radiotap, read_wireless
from kcap.weird import WeirdKind

# Ethertypes (IEEE 802 numbers, IANA). ETHERNET is that of transparent Ethernet bridging; PPP is from the table of RFC 7799.
IPV4, IPV6 = 0x0800, 0x86DD
IP = frozenset((IPV4, IPV6))
ETHERNET, PPP = 0x6558, 0x880B
VLANS = frozenset((0x8100, 0x88A8, 0x9100))
MPLS = frozenset((0x8847, 0x8848))
PPPOE_SESSION = 0x8864
LENGTH_MAX = 1500

# Link types (tcpdump.org/linktypes.html).
LINK_NULL, LINK_ETHERNET, LINK_LOOP, LINK_SLL, LINK_SLL2 = 0, 1, 108, 113, 276
LINK_FAMILY = frozenset((LINK_NULL, LINK_LOOP))
LINK_RAW = frozenset((12, 14, 101, 228, 229))
LINK_PPP = frozenset((9, 50))
LINK_PPPOE, LINK_HDLC, LINK_HDLC_DIRECTED = 51, 104, 205
LINK_PPP_DIRECTED = frozenset((166, 204))
LINK_WIRELESS, LINK_RADIOTAP, LINK_ATM, LINK_ENC, LINK_PFLOG = 105, 127, 100, 109, 117
LINK_PPI, LINK_NFLOG, LINK_NETANALYZER = 192, 239, 240
LINK_PKTAP, LINK_PKTAP_OLD = 258, 149
ENC_BYTES, NETANALYZER_BYTES = 12, 4
NFLOG_PAYLOAD = 9
"""NFULA_PAYLOAD (Linux' nfnetlink_log.h)."""

PPP_PROTOCOLS = {0x0021: IPV4, 0x0057: IPV6, 0x0281: 0x8847, 0x0283: 0x8848}


def read_link(link: int, cursor: PacketCursor) -> int:
    """Returns the network protocol of a packet of link type `link`."""
    if link in HEADED:
        found = HEADED[link](cursor)
        return 0 if found is None else read_link(found, cursor) if found not in HEADED else unknown(found, cursor)
    if link == LINK_ETHERNET:
        return read_ethertype(ETHERNET, cursor)
    if link == LINK_SLL:
        return read_cooked(cursor, 16, 14)
    if link == LINK_SLL2:
        return read_cooked(cursor, 20, 0)
    if link in LINK_RAW:
        return read_version(cursor)
    if link in LINK_FAMILY:
        # The address family is in the recorder's byte order and its numbers differ by system; the IP version is more reliable.
        cursor.at += 4
        return read_version(cursor)
    if link in LINK_PPP:
        return read_ethertype(PPP, cursor)
    if link == LINK_PPPOE:
        return read_ethertype(PPPOE_SESSION, cursor)
    if link == LINK_HDLC:
        return read_cooked(cursor, 4, 2)
    if link in LINK_PPP_DIRECTED:
        cursor.at += 1
        return read_ethertype(PPP, cursor)
    if link == LINK_HDLC_DIRECTED:
        cursor.at += 1
        return read_cooked(cursor, 4, 2)
    return READERS[link](cursor) if link in READERS else unknown(link, cursor)


@cache
def is_read(link: int) -> bool:
    """Whether packets of a link type can be read. For a link type that only wraps others, this depends on each packet."""
    cursor = PacketCursor(b"", 0, 0, 0)
    read_link(link, cursor)
    return cursor.fault is not WeirdKind.LINK_UNKNOWN


def unknown(link: int, cursor: PacketCursor) -> int:
    """Reports a link type that cannot be read, or not in this place."""
    from kcap.net.link_names import link_name  # few captures have such a link

    return cursor.fail(WeirdKind.LINK_UNKNOWN, link_name(link))


def read_ethertype(kind: int, cursor: PacketCursor) -> int:
    """Steps over all headers between an ethertype and the IP header."""
    while kind not in IP:
        if kind in VLANS:
            if not cursor.have(4, "VLAN"):
                return 0
            kind = cursor.short(2)
            cursor.at += 4
        elif kind == ETHERNET:
            if not cursor.have(14, "Ethernet"):
                return 0
            kind = cursor.short(12)
            cursor.at += 14
        elif kind in MPLS:
            kind = read_mpls(cursor)
        elif kind == PPPOE_SESSION:
            if not cursor.have(6, "PPPoE"):
                return 0
            cursor.at += 6
            kind = PPP
        elif kind == PPP:
            kind = read_ppp(cursor)
        elif 0 < kind <= LENGTH_MAX:
            kind = read_snap(cursor)
        else:
            return 0
    return kind


def read_cooked(cursor: PacketCursor, size: int, kind_at: int) -> int:
    """Reads a Linux cooked header: LINUX_SLL or LINUX_SLL2."""
    if not cursor.have(size, "cooked"):
        return 0
    kind = cursor.short(kind_at)
    cursor.at += size
    return read_ethertype(kind, cursor)


def read_version(cursor: PacketCursor) -> int:
    """Returns the protocol by the version field of the IP header."""
    if not cursor.have(1, "IP"):
        return 0
    return {4: IPV4, 6: IPV6}.get(cursor.buffer[cursor.at] >> 4, 0)


def read_mpls(cursor: PacketCursor) -> int:
    """Reads an MPLS label stack (RFC 3032). The payload's first bits give its protocol (RFC 4928); 0 is a control word."""
    bottom = 0
    while not bottom:
        if not cursor.have(4, "MPLS"):
            return 0
        bottom = cursor.buffer[cursor.at + 2] & 1
        cursor.at += 4
    if not cursor.have(4, "MPLS"):
        return 0
    if cursor.buffer[cursor.at] >> 4 == 0:
        cursor.at += 4
        return ETHERNET
    return read_version(cursor)


def read_ppp(cursor: PacketCursor) -> int:
    """Reads PPP with or without HDLC framing (RFC 1662); the protocol field has one or two bytes (RFC 1661 section 6.5)."""
    if not cursor.have(2, "PPP"):
        return 0
    if cursor.short(0) == 0xFF03:
        cursor.at += 2
        if not cursor.have(2, "PPP"):
            return 0
    protocol, size = cursor.short(0), 2
    if protocol & 0x100:
        protocol, size = protocol >> 8, 1
    cursor.at += size
    return PPP_PROTOCOLS.get(protocol, 0)


def read_snap(cursor: PacketCursor) -> int:
    """Reads an IEEE 802.3 frame with a length in place of the ethertype; it carries IP in a SNAP header (RFC 1042)."""
    if cursor.end - cursor.at < 8 or cursor.buffer[cursor.at : cursor.at + 6] != b"\xaa\xaa\x03\0\0\0":
        return 0
    kind = cursor.short(6)
    cursor.at += 8
    return kind if kind > LENGTH_MAX else 0


def read_llc(cursor: PacketCursor) -> int:
    """Reads an LLC header with SNAP (RFC 1042, RFC 2684), and what follows."""
    return read_ethertype(read_snap(cursor), cursor)


def read_behind(size: int, what: str) -> Callable[[PacketCursor], int]:
    """Makes a reader for IP behind a header of `size` bytes."""

    def read(cursor: PacketCursor) -> int:
        if not cursor.have(size, what):
            return 0
        cursor.at += size
        return read_version(cursor)

    return read


def read_pflog(cursor: PacketCursor) -> int:
    """Reads OpenBSD's pflog header, whose first byte is its length without padding."""
    if not cursor.have(1, "pflog"):
        return 0
    size = (cursor.buffer[cursor.at] + 3) & ~3
    if size < 4 or not cursor.have(size, "pflog"):
        return 0
    cursor.at += size
    return read_version(cursor)


def read_netanalyzer(cursor: PacketCursor) -> int:
    """Reads a header of four bytes, then Ethernet."""
    if not cursor.have(NETANALYZER_BYTES, "netANALYZER"):
        return 0
    cursor.at += NETANALYZER_BYTES
    return read_ethertype(ETHERNET, cursor)


def read_nflog(cursor: PacketCursor) -> int:
    """Reads Linux' NFLOG: attributes in the recorder's byte order, one of which is the packet from its IP header on."""
    if not cursor.have(4, "NFLOG"):
        return 0
    cursor.at += 4
    while cursor.at < cursor.end:
        if not cursor.have(4, "NFLOG"):
            return 0
        # No type is above 255, so one byte of a type is zero; which one shows the byte order.
        little = cursor.buffer[cursor.at + 3] == 0
        size, kind = (int.from_bytes(cursor.buffer[cursor.at + at : cursor.at + at + 2], ORDERS[little]) for at in (0, 2))
        if size < 4:
            return cursor.fail(WeirdKind.PACKET_MALFORMED, "NFLOG attribute without a length")
        if kind == NFLOG_PAYLOAD:
            cursor.at += 4
            return read_version(cursor)
        cursor.at += (size + 3) & ~3
    return 0


def read_wrapper(layout: Struct, what: str) -> Callable[[PacketCursor], int | None]:
    """Makes a reader for a header that begins with its length and the link type of what follows."""

    def read(cursor: PacketCursor) -> int | None:
        if not cursor.have(layout.size, what):
            return None
        size, link = layout.unpack_from(cursor.buffer, cursor.at)
        if size < layout.size or not cursor.have(size, what):
            return None
        cursor.at += size
        return int(link)

    return read


ORDERS: Final[dict[bool, Literal["little", "big"]]] = {True: "little", False: "big"}
READERS: Final[dict[int, Callable[[PacketCursor], int]]] = {
    LINK_WIRELESS: lambda cursor: read_llc(cursor) if read_wireless(cursor) else 0,
    LINK_RADIOTAP: lambda cursor: read_llc(cursor) if read_radiotap(cursor) else 0, LINK_ATM: read_llc, LINK_PFLOG: read_pflog,
    LINK_ENC: read_behind(ENC_BYTES, "ENC"), LINK_NFLOG: read_nflog, LINK_NETANALYZER: read_netanalyzer,
}  # fmt: skip
"""Reader of each rarer link type."""
HEADED: Final = {
    LINK_PPI: read_wrapper(Struct("<2xHI"), "PPI"),
    **dict.fromkeys((LINK_PKTAP, LINK_PKTAP_OLD), read_wrapper(Struct("<I4xI"), "PKTAP")),
}
"""Link types that only wrap another one -> reader of the inner link type: PPI (CACE Technologies, 2008) and Apple's PKTAP
(XNU's bsd/net/pktap.h), which older systems wrote as 149 (USER2)."""
