"""Makes a large capture from a small one: the same conversations repeatedly, each time from other client addresses.

usage: python benchmarks/grow.py SOURCE.pcap OUT.pcap --size 300M [--overlap 4]

In: a classic pcap of Ethernet and IPv4. Every replay has its own client addresses (two octets change) and starts when 1/overlap
of the previous one has passed, so that `overlap` replays are on the wire at once. Checksums are not corrected; kcap and tshark
do not verify them. Prints a summary as one line of JSON.
"""

import argparse
import heapq
import json
import struct
from collections.abc import Iterator
from pathlib import Path

HEADER, RECORD = struct.Struct("<IHHiIII"), struct.Struct("<IIII")
MAGIC_US = 0xA1B2C3D4


def size_of(text: str) -> int:
    """Bytes of a size such as `300M`."""
    return int(text[:-1]) * {"K": 10**3, "M": 10**6, "G": 10**9}[text[-1]]


def packets(data: bytes) -> list[tuple[int, int, bytes]]:
    """(time in microseconds, wire length, bytes) of each IPv4 packet."""
    magic, *_, link = HEADER.unpack_from(data)
    if magic != MAGIC_US or link != 1:
        raise SystemExit("a little-endian pcap of Ethernet with microseconds is needed")
    out, at = [], HEADER.size
    while at + RECORD.size <= len(data):
        seconds, micros, size, wire = RECORD.unpack_from(data, at)
        at += RECORD.size
        packet = data[at : at + size]
        at += size
        if packet[12:14] == b"\x08\x00" and packet[14] == 0x45:
            out.append((seconds * 1_000_000 + micros, wire, packet))
    return out


def replay(source: list[tuple[int, int, bytes]], number: int, shift: int) -> Iterator[tuple[int, int, bytes]]:
    """The source once more, later and from other clients."""
    octets = bytes([number >> 8 & 255, number & 255])
    for time, wire, packet in source:
        client = 26 if packet[34:36] > packet[36:38] else 30  # the higher port is the client's
        yield time + shift, wire, packet[: client + 1] + octets + packet[client + 3 :]


def main() -> None:
    """Makes the capture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", default="300M")
    parser.add_argument("--overlap", type=int, default=4)
    options = parser.parse_args()
    wanted = size_of(options.size)
    source = packets(options.source.read_bytes())
    once = sum(RECORD.size + len(p) for _, _, p in source)
    count = max(1, min(65_535, wanted // once))
    step = (source[-1][0] - source[0][0]) // options.overlap + 1
    made = 0
    with options.out.open("wb") as out:
        out.write(HEADER.pack(MAGIC_US, 2, 4, 0, 0, 262_144, 1))
        for time, wire, packet in heapq.merge(*(replay(source, i, i * step) for i in range(count)), key=lambda p: p[0]):
            out.write(RECORD.pack(time // 1_000_000, time % 1_000_000, len(packet), wire) + packet)
            made += 1
    print(json.dumps({"packets": made, "replays": count, "bytes": options.out.stat().st_size}))


if __name__ == "__main__":
    main()
