"""Link layers: from the first byte of a packet to its IP header.

In: a `PacketCursor` and the link type, or an ethertype met inside a tunnel. Out: IPV4, IPV6 with the cursor on the header, or 0
where the packet carries no IP. Law: raises for no bytes; a header that ends early becomes the cursor's fault.
"""

from kcap.net.packet_cursor import PacketCursor
from kcap.weird import WeirdKind

# Ethertypes (IEEE 802 numbers, IANA). ETHERNET is the one of transparent Ethernet bridging, PPP that of RFC 7799's table.
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
LINK_PPPOE, LINK_HDLC, LINK_PPP_DIRECTED = 51, 104, 204

PPP_PROTOCOLS = {0x0021: IPV4, 0x0057: IPV6, 0x0281: 0x8847, 0x0283: 0x8848}


def read_link(link: int, cursor: PacketCursor) -> int:
    """The network protocol of a packet of link type `link`."""
    if link == LINK_ETHERNET:
        return read_ethertype(ETHERNET, cursor)
    if link == LINK_SLL:
        return read_cooked(cursor, 16, 14)
    if link == LINK_SLL2:
        return read_cooked(cursor, 20, 0)
    if link in LINK_RAW:
        return read_version(cursor)
    if link in LINK_FAMILY:
        # The address family is in the recorder's byte order and its numbers differ by system: the IP version is surer.
        cursor.at += 4
        return read_version(cursor)
    if link in LINK_PPP:
        return read_ethertype(PPP, cursor)
    if link == LINK_PPPOE:
        return read_ethertype(PPPOE_SESSION, cursor)
    if link == LINK_HDLC:
        return read_cooked(cursor, 4, 2)
    if link == LINK_PPP_DIRECTED:
        cursor.at += 1
        return read_ethertype(PPP, cursor)
    return read_other(link, cursor)


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
    """Linux cooked headers: LINUX_SLL and LINUX_SLL2."""
    if not cursor.have(size, "cooked"):
        return 0
    kind = cursor.short(kind_at)
    cursor.at += size
    return read_ethertype(kind, cursor)


def read_version(cursor: PacketCursor) -> int:
    """The protocol by the version field of the IP header."""
    if not cursor.have(1, "IP"):
        return 0
    return {4: IPV4, 6: IPV6}.get(cursor.buffer[cursor.at] >> 4, 0)


def read_mpls(cursor: PacketCursor) -> int:
    """MPLS label stack (RFC 3032); the payload's first bits give its protocol (RFC 4928), 0 is a pseudowire's control word."""
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
    """PPP with or without HDLC framing (RFC 1662), protocol field in one or two bytes (RFC 1661 section 6.5)."""
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
    """IEEE 802.3 length instead of an ethertype: IP then is in a SNAP header (RFC 1042)."""
    if cursor.end - cursor.at < 8 or cursor.buffer[cursor.at : cursor.at + 6] != b"\xaa\xaa\x03\0\0\0":
        return 0
    kind = cursor.short(6)
    cursor.at += 8
    return kind if kind > LENGTH_MAX else 0


def read_other(link: int, cursor: PacketCursor) -> int:
    """Link types left to dpkt's decoders, where they are installed."""
    from kcap.adapters.dpkt import network_layer

    missing = cursor.stop - cursor.end
    found = network_layer(link, cursor.buffer[cursor.at : cursor.end])
    if found is None:
        return cursor.fail(WeirdKind.LINK_UNKNOWN, f"link type {link}")
    kind, data = found
    cursor.enter(data, len(data) + missing)
    return read_ethertype(kind, cursor)
