"""Tunnels: packets inside packets.

In: a `PacketCursor` behind an IP header, and the protocol number. Out: the IP protocol inside (IPV4 or IPV6) with the cursor on
its header, or 0 if the packet is not of a known tunnel. Law: no bytes raise an exception; an unknown tunnel is no oddity.
"""

from collections.abc import Callable
from typing import Final

from kcap.net.ip import GRE, UDP
from kcap.net.link import ETHERNET, IPV4, IPV6, MPLS, PPP, VLANS, read_ethertype, read_snap, read_version
from kcap.net.packet_cursor import PacketCursor
from kcap.net.wireless import read_wireless

IP_IN_IP, IPV6_IN_IP, ETHERNET_IN_IP, MPLS_IN_IP = 4, 41, 143, 137
ERSPAN, ERSPAN_III = 0x88BE, 0x22EB
VXLAN_PORTS = frozenset((4789, 8472))
"""IANA's port, and the one that Linux used before (and flannel still does)."""
VXLAN_GPE_PORT, GENEVE_PORT = 4790, 6081
GRE_PORT, GTP_PORT, MPLS_PORT, CAPWAP_PORT = 4754, 2152, 6635, 5247
GTP_PACKET = 255
"""G-PDU: a message that carries a user's packet (3GPP TS 29.281 section 7.1)."""
GPE_PROTOCOLS = {1: IPV4, 2: IPV6, 3: ETHERNET, 5: 0x8847}
CARRIED = frozenset((IPV4, IPV6, ETHERNET, PPP)) | VLANS | MPLS
"""Ethertypes of packets inside packets."""


def read_tunnel(protocol: int, cursor: PacketCursor) -> int:
    """Returns the IP protocol inside the tunnel."""
    kind = 0
    if protocol == IP_IN_IP:
        kind = IPV4
    elif protocol == IPV6_IN_IP:
        kind = IPV6
    elif protocol == UDP:
        kind = read_udp(cursor)
    elif protocol == GRE:
        kind = read_gre(cursor)
    elif protocol == MPLS_IN_IP:
        kind = 0x8847
    elif protocol == ETHERNET_IN_IP and cursor.have(2, "EtherIP"):
        cursor.at += 2
        kind = ETHERNET
    return read_ethertype(kind, cursor) if kind in CARRIED else 0


def read_gre(cursor: PacketCursor) -> int:
    """Reads GRE (RFC 2784, RFC 2890), version 1 with PPP inside (RFC 2637), and ERSPAN by its two protocol types."""
    if not cursor.have(4, "GRE"):
        return 0
    flags, kind = cursor.short(0), cursor.short(2)
    if flags & 0x4000:  # source routing (RFC 1701), deprecated and of variable length
        return 0
    size = 4 + 4 * bool(flags & 0x8000) + 4 * bool(flags & 0x2000) + 4 * bool(flags & 0x1000)
    if flags & 7 == 1:
        size += 4 * bool(flags & 0x0080)
    if kind == ERSPAN:
        # Type I has neither sequence number nor header of its own (draft-foschiano-erspan section 4.1).
        size += 8 if flags & 0x1000 else 0
        kind = ETHERNET
    elif kind == ERSPAN_III:
        if not cursor.have(size + 12, "ERSPAN"):
            return 0
        size += 20 if cursor.buffer[cursor.at + size + 11] & 1 else 12
        kind = ETHERNET
    if not cursor.have(size, "GRE"):
        return 0
    cursor.at += size
    return kind


def read_udp(cursor: PacketCursor) -> int:
    """Reads VXLAN (RFC 7348), VXLAN-GPE, GENEVE (RFC 8926), GRE in UDP (RFC 8086), MPLS in UDP (RFC 7510), GTP-U and CAPWAP.
    They are recognised by their destination port, CAPWAP by either port; other datagrams are not read."""
    if cursor.end - cursor.at < 16:
        return 0
    port, start = cursor.short(2), cursor.at + 8
    flags = cursor.buffer[start]
    if port in VXLAN_PORTS and flags & 0x08:
        cursor.at += 16
        return ETHERNET
    if port == VXLAN_GPE_PORT and flags & 0x08:
        kind = GPE_PROTOCOLS.get(cursor.buffer[start + 3], 0) if flags & 0x04 else ETHERNET
        cursor.at += 16
        return kind
    if port == GENEVE_PORT and flags >> 6 == 0:
        kind, size = cursor.short(10), 16 + (flags & 0x3F) * 4
        if not cursor.have(size, "GENEVE"):
            return 0
        cursor.at += size
        return kind
    if cursor.short(0) == CAPWAP_PORT:  # from the controller to an access point, which uses any port (RFC 5415 section 3.1)
        port = CAPWAP_PORT
    if port in INSIDE_UDP:
        cursor.at += 8
        return INSIDE_UDP[port](cursor)
    return 0


def read_gtp(cursor: PacketCursor) -> int:
    """Reads GTP-U version 1 (3GPP TS 29.281 section 5) that carries a user's packet, with any extension headers."""
    flags, size = cursor.buffer[cursor.at], 8
    if flags >> 4 != 3 or cursor.buffer[cursor.at + 1] != GTP_PACKET:
        return 0
    if flags & 7:
        size = 12
        if not cursor.have(size, "GTP-U"):
            return 0
        while flags & 4 and cursor.buffer[cursor.at + size - 1]:
            if not cursor.have(size + 4, "GTP-U"):
                return 0
            step = 4 * cursor.buffer[cursor.at + size]
            if not step or not cursor.have(size + step, "GTP-U"):
                return 0
            size += step
    cursor.at += size
    return read_version(cursor)


def read_capwap(cursor: PacketCursor) -> int:
    """Reads CAPWAP data (RFC 5415 section 4.3): IEEE 802.3 or (T) 802.11 frames. Encrypted and split ones are not read."""
    word = int.from_bytes(cursor.buffer[cursor.at : cursor.at + 4], "big")
    size = (word >> 19 & 0x1F) * 4
    if word >> 24 or word & 0x80 or size < 8 or not cursor.have(size, "CAPWAP"):
        return 0
    cursor.at += size
    if word & 0x100:
        return read_snap(cursor) if read_wireless(cursor) else 0
    return ETHERNET


INSIDE_UDP: Final[dict[int, Callable[[PacketCursor], int]]] = {
    GRE_PORT: read_gre, MPLS_PORT: lambda _: 0x8847, GTP_PORT: read_gtp, CAPWAP_PORT: read_capwap,
}  # fmt: skip
"""Destination port -> reader of the tunnel's header, which follows the UDP header. MPLS has no header of its own (RFC 7510)."""
