"""Cuts a capture down to the packets a story needs; kept packets stay byte for byte as they were.

usage: python pcaps/trim.py IN OUT [--keep IP[:PORT]]... [--drop IP[:PORT]]... [--connections N] [--packets N]

Reads pcap (both byte orders, micro- and nanoseconds) and pcapng; writes the format it read. A packet stays when one of its
ends is in --keep (all are, without it), none is in --drop, and its connection is among the first N seen. --packets counts
what is left. Other blocks of a pcapng (interfaces, name resolution, secrets) stay. Knows Ethernet with VLAN tags, SLL, SLL2,
null and raw IP; of anything but TCP over IPv4 or IPv6 nothing stays once an option looks at addresses. The standard library
is enough.
"""

import argparse
import struct
import sys
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

PCAP_ORDER = {b"\xa1\xb2\xc3\xd4": ">", b"\xa1\xb2\x3c\x4d": ">", b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<"}
INTERFACE, ENHANCED = 1, 6  # pcapng block types

End = tuple[str, int]


def pieces(data: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """(bytes as in the file, link type, packet); link type -1 for what is no packet: a file header, a block."""
    order = PCAP_ORDER.get(data[:4])
    if order:
        link = struct.unpack_from(order + "I", data, 20)[0] & 0x0FFFFFFF
        yield data[:24], -1, b""
        at = 24
        while at + 16 <= len(data):
            size = struct.unpack_from(order + "I", data, at + 8)[0]
            yield data[at : at + 16 + size], link, data[at + 16 : at + 16 + size]
            at += 16 + size
        return
    if data[:4] != b"\x0a\x0d\x0d\x0a":
        sys.exit("neither pcap nor pcapng (unpack a compressed capture first)")
    at, links = 0, list[int]()
    while at + 12 <= len(data):
        if data[at : at + 4] == b"\x0a\x0d\x0d\x0a":
            order, links = ("<" if data[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"), []
        kind, size = struct.unpack_from(f"{order}II", data, at)
        block = data[at : at + size]
        if kind == INTERFACE:
            links.append(struct.unpack_from(f"{order}H", block, 8)[0])
        if kind == ENHANCED:
            interface, captured = struct.unpack_from(f"{order}I8xI", block, 8)
            yield block, links[interface], block[28 : 28 + captured]
        else:
            yield block, -1, b""
        at += max(size, 12)


def ends(link: int, packet: bytes) -> tuple[End, End] | None:
    """The two ends of a TCP segment, None for anything else."""
    if link == 1:
        at = 12
        while packet[at : at + 2] in (b"\x81\x00", b"\x88\xa8"):
            at += 4
        at += 2
    else:
        at = {113: 16, 276: 20, 0: 4, 108: 4, 101: 0, 12: 0, 228: 0, 229: 0}.get(link, len(packet))
    ip = packet[at:]
    if len(ip) >= 24 and ip[0] >> 4 == 4 and ip[9] == 6:
        tcp, addresses = ip[(ip[0] & 15) * 4 :], (ip[12:16], ip[16:20])
    elif len(ip) >= 44 and ip[0] >> 4 == 6 and ip[6] == 6:
        tcp, addresses = ip[40:], (ip[8:24], ip[24:40])
    else:
        return None
    ports = struct.unpack_from(">HH", tcp) if len(tcp) >= 4 else (0, 0)
    return (str(ip_address(addresses[0])), ports[0]), (str(ip_address(addresses[1])), ports[1])


def parse_end(text: str) -> tuple[str, int | None]:
    """IP, IP:PORT or [IPv6]:PORT."""
    host, colon, port = text.rpartition(":")
    if colon and port.isdigit() and (":" not in host or host.startswith("[")):
        return str(ip_address(host.strip("[]"))), int(port)
    return str(ip_address(text.strip("[]"))), None


def trim(data: bytes, options: argparse.Namespace) -> Iterator[bytes]:
    """The pieces of a capture that stay."""

    def among(pair: tuple[End, End], wanted: list[tuple[str, int | None]]) -> bool:
        return any(ip == host and port in (None, number) for ip, number in pair for host, port in wanted)

    by_address = options.keep or options.drop or options.connections is not None
    connections = set[frozenset[End]]()
    left = options.packets
    for raw, link, packet in pieces(data):
        if link < 0:
            yield raw
            continue
        if by_address:
            pair = ends(link, packet)
            if pair is None or (options.keep and not among(pair, options.keep)) or among(pair, options.drop):
                continue
            if options.connections is not None and frozenset(pair) not in connections:
                if len(connections) == options.connections:
                    continue
                connections.add(frozenset(pair))
        if left is not None:
            if left == 0:
                continue
            left -= 1
        yield raw


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--keep", action="append", type=parse_end, default=[], metavar="IP[:PORT]")
    parser.add_argument("--drop", action="append", type=parse_end, default=[], metavar="IP[:PORT]")
    parser.add_argument("--connections", type=int, metavar="N")
    parser.add_argument("--packets", type=int, metavar="N")
    options = parser.parse_args()
    options.target.write_bytes(b"".join(trim(options.source.read_bytes(), options)))


if __name__ == "__main__":
    main()
