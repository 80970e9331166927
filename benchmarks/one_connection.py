"""A capture of any size that is one connection: a real produce request and its answer, again and again.

usage: python benchmarks/one_connection.py OUT.pcap [--size 4G] [--from pcaps/java-transactions.pcap]

The largest Produce request of the capture that is given is sent in segments of 1,448 bytes, each time with a new correlation
id, sequence numbers and time; the number of exchanges stands in OUT.pcap.json. It shows what a share costs that cannot be
parted.
"""

import argparse
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from grow import HEADER, MAGIC_US, RECORD, size_of

import kcap

SEGMENT = 1448
HEADERS = RECORD.size + 14 + 20 + 20
"""A record's, Ethernet's, IPv4's and TCP's."""
SEQ, ACK, CORRELATION = HEADERS - 16, HEADERS - 12, {True: HEADERS + 8, False: HEADERS + 4}
CLIENT, SERVER = (b"\x0a\0\0\1", 50_000), (b"\x0a\0\0\2", 9092)
BEGAN_US, EVERY_US, GAP_US = 1_700_000_000_000_000, 3000, 10
FIRST = {True: 1000, False: 5000}
"""Sequence numbers of the first bytes, by whether the client sends them."""
AT_ONCE = 20_000_000


def packet(up: bool, flags: int, payload: bytes, time_us: int, seq: int = 0, ack: int = 0) -> bytes:
    """One record of a pcap file."""
    (source, sport), (target, dport) = (CLIENT, SERVER) if up else (SERVER, CLIENT)
    tcp = struct.pack(">HHIIBBHHH", sport, dport, seq, ack, 5 << 4, flags, 65535, 0, 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0, source, target)
    frame = bytes(12) + b"\x08\0" + ip + tcp
    return RECORD.pack(*divmod(time_us, 1_000_000), len(frame), len(frame)) + frame


def largest(path: str) -> tuple[bytes, bytes]:
    """The largest Produce request of a capture that was answered, and the answer, both with their lengths."""
    found = [one for one in kcap.open(path) if one.row["api"] == "Produce" and one.row["outcome"] == "answered"]
    one = max(found, key=lambda exchange: int(exchange.row["request_bytes"]))
    assert one.request is not None
    assert one.response is not None
    frames = (bytes(one.request.frame), bytes(one.response.frame))
    return frames[0], frames[1]


def main() -> None:
    """Writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", default="4G")
    parser.add_argument("--from", dest="source", default="pcaps/java-transactions.pcap")
    options = parser.parse_args()
    size = size_of(options.size)
    request, answer = (struct.pack(">I", len(frame)) + frame for frame in largest(options.source))
    parts: list[tuple[bool, int, int, bytes]] = [
        (True, at, 0, request[at : at + SEGMENT]) for at in range(0, len(request), SEGMENT)
    ]
    parts += [(False, 0, len(request), answer), (True, len(request), len(answer), b"")]
    packets = [packet(up, 0x18 if payload else 0x10, payload, 0) for up, _, _, payload in parts]
    starts = np.cumsum([0, *map(len, packets)])
    template = np.frombuffer(b"".join(packets), np.uint8)
    count = size // len(template)
    with options.out.open("wb") as out:
        out.write(HEADER.pack(MAGIC_US, 2, 4, 0, 0, 1 << 18, 1))
        out.write(packet(True, 2, b"", BEGAN_US, FIRST[True] - 1))
        out.write(packet(False, 0x12, b"", BEGAN_US + 10, FIRST[False] - 1, FIRST[True]))
        step = max(1, AT_ONCE // len(template))
        for low in range(0, count, step):
            numbers = np.arange(low, min(count, low + step))
            rows = np.tile(template, (len(numbers), 1))

            def put(at: int, kind: str, values: Any, rows: Any = rows) -> None:
                rows[:, at : at + 4] = np.asarray(values & 0xFFFFFFFF).astype(kind).view(np.uint8).reshape(-1, 4)

            for at, (start, (up, mine, others, payload)) in enumerate(zip(starts.tolist(), parts)):
                sent, heard = (request, answer) if up else (answer, request)
                time_us = BEGAN_US + 1000 + numbers * EVERY_US + at * GAP_US
                put(start, "<u4", time_us // 1_000_000)
                put(start + 4, "<u4", time_us % 1_000_000)
                put(start + SEQ, ">u4", FIRST[up] + numbers * len(sent) + mine)
                put(start + ACK, ">u4", FIRST[not up] + numbers * len(heard) + others)
                if payload and mine == 0:
                    put(start + CORRELATION[up], ">u4", numbers + 1)
            out.write(rows.tobytes())
    Path(f"{options.out}.json").write_text(json.dumps({"exchanges": count}), encoding="utf-8")
    print(f"{options.out}: {count:,} exchanges of {len(request):,} and {len(answer):,} bytes, {count * len(packets):,} packets")


if __name__ == "__main__":
    main()
