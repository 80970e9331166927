"""Rewrites TCP, IP and link headers of a packet whose payload or addresses change: checksums, addresses.

In: a packet's bytes and the position of its payload. Out: the packet's bytes, of the same length. Law: a checksum is computed
from the new bytes (RFC 1071) if all of them were captured, else it is updated by the change (RFC 1624).
"""

from dataclasses import dataclass
from struct import pack_into, unpack_from
from typing import Final

from kcap.export.pseudonyms import Pseudonyms
from kcap.net.link import LINK_ETHERNET, LINK_SLL, LINK_SLL2

TCP: Final = 6
OFFSET_AT, CHECKSUM_AT = 12, 16
"""Offsets of the fields "data offset" and "checksum" in a TCP header."""
LINK_HEADER_MAX: Final = 22
"""Maximum number of bytes before the IP header of a packet outside of tunnels: Ethernet with two VLAN tags, or SLL2."""
EXTENSIONS_MAX: Final = 256
HARDWARE: Final = {LINK_ETHERNET: ((0, 6), (6, 12)), LINK_SLL: ((6, 12),), LINK_SLL2: ((12, 18),)}
"""Positions of addresses in link headers."""


@dataclass(frozen=True, slots=True)
class EditablePacket:
    """A TCP packet: its bytes, the start and wire length of its payload, its flow, its link type."""

    data: bytes
    payload: int
    length: int
    flow: bytes
    link: int


def ones_sum(data: bytes | bytearray | memoryview) -> int:
    """Ones' complement sum of 16-bit words, an odd byte padded with zero (RFC 1071)."""
    padded = bytes(data) + b"\0" * (len(data) & 1)
    total: int = sum(unpack_from(f">{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def tcp_start(packet: EditablePacket) -> int | None:
    """Offset of the TCP header."""
    ports = packet.flow[-4:]
    for size in range(20, 64, 4):
        at = packet.payload - size
        if at < 0 or len(packet.data) <= at + OFFSET_AT or packet.data[at : at + 4] != ports:
            continue
        if (packet.data[at + OFFSET_AT] >> 4) * 4 == size:
            return at
    return None


def ip_start(packet: EditablePacket, tcp: int) -> int | None:
    """Offset of the IP header with the flow's addresses."""
    addresses, data = packet.flow[:-4], packet.data
    four = len(addresses) == 8
    last = tcp - (20 if four else 40)
    for at in range(last, max(last - EXTENSIONS_MAX, -1), -1):
        behind = at + (12 if four else 8)
        if data[at] >> 4 == (4 if four else 6) and data[behind : behind + len(addresses)] == addresses:
            return at
    return None


def renew(packet: EditablePacket, payload: bytes, names: Pseudonyms | None) -> bytes | None:
    """The packet with another payload of the same length and, with names, other addresses; None if that is not possible.

    Bytes after the payload, such as a link's padding, become zeros.
    """
    end = packet.payload + len(payload)
    tail = bytes(max(len(packet.data) - end, 0))  # the snapshot length may have cut header options
    if names is None and payload + tail == packet.data[packet.payload :]:
        return packet.data
    tcp = tcp_start(packet)
    if tcp is None:
        return None
    out = bytearray(packet.data)
    out[packet.payload :] = payload + tail
    size = (len(packet.flow) - 4) // 2
    addresses = packet.flow[:-4]
    if names is not None:
        ip = ip_start(packet, tcp)
        if ip is None or ip > LINK_HEADER_MAX:
            return None
        addresses = names.address(addresses[:size]) + names.address(addresses[size:])
        at = ip + (12 if size == 4 else 8)
        out[at : at + 2 * size] = addresses
        if size == 4:
            pack_into(">H", out, ip + 10, 0)
            pack_into(">H", out, ip + 10, ones_sum(out[ip : ip + (out[ip] & 15) * 4]) ^ 0xFFFF)
        for first, last in HARDWARE.get(packet.link, ()):
            if last <= ip:
                out[first:last] = names.hardware(bytes(out[first:last]))
    if len(packet.data) < tcp + CHECKSUM_AT + 2:  # the snapshot length cut the header before it
        return bytes(out)
    if packet.payload + packet.length <= len(packet.data):
        size = packet.payload - tcp + packet.length
        pseudo = addresses + bytes((0, TCP)) + size.to_bytes(4, "big")
        pack_into(">H", out, tcp + CHECKSUM_AT, 0)
        checksum = ones_sum(pseudo + out[tcp : tcp + size]) ^ 0xFFFF
    else:
        (old,) = unpack_from(">H", packet.data, tcp + CHECKSUM_AT)
        rest = tcp + CHECKSUM_AT + 2
        before, after = packet.flow[:-4] + packet.data[rest:end], addresses + bytes(out[rest:end])
        total = (old ^ 0xFFFF) + (ones_sum(before) ^ 0xFFFF) + ones_sum(after)
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        checksum = total ^ 0xFFFF
    pack_into(">H", out, tcp + CHECKSUM_AT, checksum)
    return bytes(out)
