"""Makes a capture of any size whose connections last as long as it does: a real Produce request and its response, repeatedly.

usage: python benchmarks/long_lived.py OUT.pcap [--size 4G] [--connections 1] [--from pcaps/aiokafka.pcap]

The largest Produce request of the given capture is sent in segments of 1,448 bytes, each time with a new correlation id,
sequence numbers, time, and random bytes as records, which cannot be compressed, with a correct checksum. The connections
alternate. OUT.pcap.json has the number of exchanges. One connection shows the cost of a shard that cannot be divided; many
connections show what travels between machines if each range of the file has packets of all of them.
"""

import argparse
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from grow import HEADER, MAGIC_US, RECORD, size_of

import kcap
from kcap.records.verified import find_verified
from kcap.wire.checksums import crc32c
from kcap.wire.formats import BATCH_ATTRIBUTES_AT, BATCH_CRC_AT, BATCH_MIN

SEGMENT = 1448
HEADERS = RECORD.size + 14 + 20 + 20
"""Size of the headers: of the record, Ethernet, IPv4 and TCP."""
SEQ, ACK, CORRELATION = HEADERS - 16, HEADERS - 12, {True: HEADERS + 8, False: HEADERS + 4}
PORTS, PORTS_EACH = HEADERS - 20, 10_000
"""Offset of the ports, and number of ports of each client."""
CLIENT, SERVER = (b"\x0a\0\0\1", 50_000), (b"\x0a\0\0\2", 9092)
BEGAN_US, EVERY_US, GAP_US = 1_700_000_000_000_000, 3000, 10
FIRST = {True: 1000, False: 5000}
"""Sequence numbers of the first bytes, by whether the client sends them."""
AT_ONCE = 20_000_000


def client(number: int) -> tuple[bytes, int]:
    """Address and port of a connection's client."""
    return bytes([*CLIENT[0][:3], CLIENT[0][3] + 2 * (number // PORTS_EACH)]), CLIENT[1] + number % PORTS_EACH


def packet(up: bool, flags: int, payload: bytes, time_us: int, seq: int = 0, ack: int = 0, number: int = 0) -> bytes:
    """One record of a pcap file."""
    (source, sport), (target, dport) = (client(number), SERVER) if up else (SERVER, client(number))
    tcp = struct.pack(">HHIIBBHHH", sport, dport, seq, ack, 5 << 4, flags, 65535, 0, 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0, source, target)
    frame = bytes(12) + b"\x08\0" + ip + tcp
    return RECORD.pack(*divmod(time_us, 1_000_000), len(frame), len(frame)) + frame


def largest(path: str) -> tuple[bytes, bytes]:
    """The largest Produce request of a capture that got a response, and the response, both with their length prefixes."""
    found = [one for one in kcap.open(path) if one.row["api"] == "Produce" and one.row["outcome"] == "answered"]
    one = max(found, key=lambda exchange: int(exchange.row["request_bytes"]))
    assert one.request is not None
    assert one.response is not None
    frames = (bytes(one.request.frame), bytes(one.response.frame))
    return frames[0], frames[1]


class Noise:
    """Random bytes in place of the records of a request."""

    def __init__(self, request: bytes, starts: list[int]) -> None:
        data = np.frombuffer(request, np.uint8)
        self._batches = find_verified(data, np.array([[0, len(data), 0]]), compiled=False).tolist()
        places = np.arange(len(request))
        self._where = np.array(starts)[places // SEGMENT] + HEADERS + places % SEGMENT
        self._random = np.random.default_rng(1)

    def __call__(self, rows: Any) -> None:
        """Changes the packets of some requests, one row each."""
        for low, end in self._batches:
            rows[:, self._where[low:end]] = self._random.integers(0, 256, (len(rows), end - low), np.uint8)
            start = low - BATCH_MIN
            covered = np.ascontiguousarray(rows[:, self._where[start + BATCH_ATTRIBUTES_AT : end]])
            sums = np.array([crc32c(memoryview(row)) for row in covered], ">u4")
            rows[:, self._where[start + BATCH_CRC_AT : start + BATCH_ATTRIBUTES_AT]] = sums.view(np.uint8).reshape(-1, 4)


def main() -> None:
    """Writes the capture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", default="4G")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--from", dest="source", default="pcaps/aiokafka.pcap")
    options = parser.parse_args()
    size = size_of(options.size)
    request, response = (struct.pack(">I", len(frame)) + frame for frame in largest(options.source))
    parts: list[tuple[bool, int, int, bytes]] = [
        (True, at, 0, request[at : at + SEGMENT]) for at in range(0, len(request), SEGMENT)
    ]
    parts += [(False, 0, len(request), response), (True, len(request), len(response), b"")]
    packets = [packet(up, 0x18 if payload else 0x10, payload, 0) for up, _, _, payload in parts]
    starts = np.cumsum([0, *map(len, packets)])
    template = np.frombuffer(b"".join(packets), np.uint8)
    count, noise, several = size // len(template), Noise(request, starts[: len(parts) - 2].tolist()), options.connections
    with options.out.open("wb") as out:
        out.write(HEADER.pack(MAGIC_US, 2, 4, 0, 0, 1 << 18, 1))
        for number in range(several):
            out.write(packet(True, 2, b"", BEGAN_US, FIRST[True] - 1, 0, number))
            out.write(packet(False, 0x12, b"", BEGAN_US + 10, FIRST[False] - 1, FIRST[True], number))
        step = max(1, AT_ONCE // len(template))
        for low in range(0, count, step):
            numbers = np.arange(low, min(count, low + step))
            rows = np.tile(template, (len(numbers), 1))
            noise(rows)
            turns, ports = numbers // several, CLIENT[1] + numbers % several % PORTS_EACH

            def put(at: int, kind: str, values: Any, rows: Any = rows) -> None:
                rows[:, at : at + 4] = np.asarray(values & 0xFFFFFFFF).astype(kind).view(np.uint8).reshape(-1, 4)

            for at, (start, (up, mine, others, payload)) in enumerate(zip(starts.tolist(), parts)):
                sent, status = (request, response) if up else (response, request)
                time_us = BEGAN_US + 1000 + numbers * EVERY_US + at * GAP_US
                put(start, "<u4", time_us // 1_000_000)
                put(start + 4, "<u4", time_us % 1_000_000)
                put(start + SEQ, ">u4", FIRST[up] + turns * len(sent) + mine)
                put(start + ACK, ">u4", FIRST[not up] + turns * len(status) + others)
                put(start + PORTS, ">u4", ports << 16 | SERVER[1] if up else SERVER[1] << 16 | ports)
                rows[:, start + PORTS - (5 if up else 1)] = CLIENT[0][3] + 2 * (numbers % several // PORTS_EACH)
                if payload and mine == 0:
                    put(start + CORRELATION[up], ">u4", turns + 1)
            out.write(rows.tobytes())
    Path(f"{options.out}.json").write_text(json.dumps({"exchanges": count}), encoding="utf-8")
    print(
        f"{options.out}: {several:,} connections, {count:,} exchanges of {len(request):,} and {len(response):,} bytes, "
        f"{count * len(packets):,} packets"
    )


if __name__ == "__main__":
    main()
