"""Generates captures of several shapes, and compares `kcap rows` with tshark on each of them.

usage: python benchmarks/workloads.py [NAME...] [--size 200M] [--rounds 3] [--kcap .venv/bin/kcap] [--keep FOLDER]

Shapes:
- `small`: pipelined requests with batches of some hundred bytes
- `medium`: producers with batches of 16 kB and connections of a few requests; acks 0, 1 and all
- `mtu`: batches of 900 kB over packets of 1,400 bytes
- `large`: batches of 3 MB over packets of 64 kB, as on loopback
- `partitions`: Fetch responses of 200 partitions
- `short`: one request per connection
- `lossy`: `small` with one packet in 1,000 missing
- `worn`: `lossy` on connections of 6,000 requests
- `snaplen`: `medium` with a snapshot length of 128 bytes
- `refused`: `short`, to brokers that are down at first: nine connections are refused before each accepted one

Prints one line each: packets and megabytes per CPU second, the ratio to tshark if it is installed, peak memory, exchanges found
and generated.
"""

import argparse
import os
import random
import shutil
import statistics
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from grow import size_of
from rows import FIELDS, timed

SYN, ACK, PSH, FIN, RST = 2, 16, 8, 1, 4
Exchanges = Iterator[tuple[bytes, bytes]]
"""Requests, each with its response; empty if there is none."""


@dataclass
class Writer:
    """A pcap file whose packets are TCP segments of conversations, one after another."""

    file: BinaryIO
    mss: int
    snaplen: int = 1 << 18
    loss: float = 0.0
    refusals: int = 0
    """Number of refused connections before each conversation."""
    packets: int = 0
    time_us: int = 1_700_000_000_000_000
    chance: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311 - the same losses each time

    def __post_init__(self) -> None:
        self.file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, self.snaplen, 1))

    def packet(self, ports: tuple[int, ...], sides: tuple[bytes, ...], seq: int, ack: int, flags: int, data: bytes) -> None:
        """One segment from the first side to the second."""
        self.time_us += 20
        self.packets += 1
        if self.loss and data and self.chance.random() < self.loss:
            return
        tcp = struct.pack(">HHIIBBHHH", *ports, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, 0x50, flags, 65535, 0, 0)
        total = min(20 + len(tcp) + len(data), 0xFFFF)
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, total, 0, 0, 64, 6, 0, *sides)
        frame = b"\2" * 12 + b"\x08\x00" + ip + tcp + data
        self.file.write(struct.pack("<IIII", *divmod(self.time_us, 1_000_000), min(len(frame), self.snaplen), len(frame)))
        self.file.write(frame[: self.snaplen])

    def conversation(
        self, number: int, exchanges: Exchanges, depth: int = 4, last: Callable[[], tuple[bytes, bytes]] | None = None
    ) -> int:
        """Writes one connection with up to `depth` requests in flight; returns the number of exchanges. `last`: what the client
        sends before its FIN, and the server after that, to which the client responds with RST, as for a closed socket."""
        client, server = struct.pack(">I", 0x0A400000 + number // 20_000), b"\x0a\x01\0\1"
        sides, ports = (client, server), (20_000 + number % 20_000, 9092)
        seq = [1000, 9000]
        for port in range(9093, 9093 + self.refusals):
            self.packet((ports[0], port), sides, 999, 0, SYN, b"")
            self.packet((port, ports[0]), sides[::-1], 0, 1000, RST | ACK, b"")
        self.packet(ports, sides, 999, 0, SYN, b"")
        self.packet(ports[::-1], sides[::-1], 8999, 1000, SYN | ACK, b"")
        self.packet(ports, sides, 1000, 9000, ACK, b"")

        def send(side: int, data: bytes) -> None:
            step = 1 if side == 0 else -1
            for at in range(0, len(data), self.mss):
                piece = data[at : at + self.mss]
                self.packet(ports[::step], sides[::step], seq[side], seq[1 - side], ACK | PSH, piece)
                seq[side] += len(piece)
                if at // self.mss % 2:
                    self.packet(ports[::-step], sides[::-step], seq[1 - side], seq[side], ACK, b"")

        waiting, count = [], 0
        for request, response in exchanges:
            count += 1
            send(0, request)
            waiting.append(response)
            if len(waiting) == depth:
                send(1, b"".join(waiting))
                waiting.clear()
        send(1, b"".join(waiting))
        if last is not None:
            before, behind = last()
            send(0, before)
            self.packet(ports, sides, seq[0], seq[1], FIN | ACK, b"")
            seq[0] += 1
            send(1, behind)
            self.packet(ports, sides, seq[0], seq[1], RST, b"")
            return count
        for side, step in ((0, 1), (1, -1)):
            self.packet(ports[::step], sides[::step], seq[side], seq[1 - side], FIN | ACK, b"")
            seq[side] += 1
        self.packet(ports, sides, seq[0], seq[1], ACK, b"")
        return count


def request(key: int, version: int, correlation: int, body: bytes) -> bytes:
    """A request frame with header version 1."""
    head = struct.pack(">hhih", key, version, correlation, 5) + b"bench"
    return struct.pack(">i", len(head) + len(body)) + head + body


def response(correlation: int, body: bytes) -> bytes:
    """A response frame with header version 0."""
    return struct.pack(">ii", len(body) + 4, correlation) + body


def batch(size: int) -> bytes:
    """A record batch with `size` bytes of records."""
    return struct.pack(">qiibIhiqqqhii", 0, size + 49, 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1) + b"r" * size


def produced(correlation: int, size: int, acks: int = 1) -> tuple[bytes, bytes]:
    """A Produce request of version 3 with one batch, and its response."""
    data = batch(size)
    body = struct.pack(">hhiih", -1, acks, 30_000, 1, 6) + b"orders" + struct.pack(">iii", 1, 0, len(data)) + data
    answer = struct.pack(">ih", 1, 6) + b"orders" + struct.pack(">iihqqi", 1, 0, 0, 7, -1, 0)
    return request(0, 3, correlation, body), response(correlation, answer) if acks else b""


def fetched(correlation: int, size: int, partitions: int = 1) -> tuple[bytes, bytes]:
    """A Fetch request of version 4 for some partitions, and its response with a batch each."""
    asked = b"".join(struct.pack(">iqi", at, 0, 1 << 20) for at in range(partitions))
    body = struct.pack(">iiiibih", -1, 500, 1, 1 << 26, 0, 1, 6) + b"orders" + struct.pack(">i", partitions) + asked
    data = batch(size)
    given = b"".join(struct.pack(">ihqqii", at, 0, 9, 9, 0, len(data)) + data for at in range(partitions))
    return request(1, 4, correlation, body), response(
        correlation, struct.pack(">iih", 0, 1, 6) + b"orders" + struct.pack(">i", partitions) + given
    )


def produces(count: int, size: int, acks: tuple[int, ...] = (1,)) -> Callable[[int], Exchanges]:
    """Conversations of Produce requests."""
    return lambda number: (produced(at, size, acks[(number + at) % len(acks)]) for at in range(count))


def bulk(count: int, size: int) -> Callable[[int], Exchanges]:
    """Conversations of alternating Produce requests and Fetch responses of the same size."""
    return lambda _: ((produced if at % 2 else fetched)(at, size) for at in range(count))


SHAPES: dict[str, tuple[Callable[[int], Exchanges], int, dict[str, float]]] = {
    "small": (produces(60, 300), 1400, {}),
    "medium": (produces(6, 16_000, (0, 1, -1)), 1400, {}),
    "mtu": (bulk(6, 900_000), 1400, {}),
    "large": (bulk(6, 3_000_000), 65_000, {}),
    "partitions": (lambda _: (fetched(at, 400, 200) for at in range(6)), 1400, {}),
    "short": (produces(1, 300), 1400, {}),
    "lossy": (produces(60, 300), 1400, {"loss": 0.001}),
    "worn": (produces(6000, 300), 1400, {"loss": 0.001}),
    "snaplen": (produces(6, 16_000), 1400, {"snaplen": 128}),
    "refused": (produces(1, 300), 1400, {"refusals": 9}),
}


def made(name: str, path: Path, size: int) -> tuple[int, int]:
    """Writes a capture of one shape; returns the numbers of packets and exchanges."""
    conversation, mss, more = SHAPES[name]
    with path.open("wb") as file:
        writer = Writer(file, mss, int(more.get("snaplen", 1 << 18)), more.get("loss", 0.0), int(more.get("refusals", 0)))
        number = exchanges = written = 0
        while written < size:
            exchanges += writer.conversation(number, conversation(number))
            number, written = number + 1, file.tell()
    return writer.packets, exchanges


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", choices=[[], *SHAPES], metavar="NAME")
    parser.add_argument("--size", default="200M")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kcap", default=".venv/bin/kcap")
    parser.add_argument("--keep", type=Path, help="folder where the captures stay")
    options = parser.parse_args()
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        for name in options.shapes or SHAPES:
            path, out = (options.keep or Path(folder)) / f"{name}.pcap", str(Path(folder, "rows.parquet"))
            packets, exchanges = made(name, path, size_of(options.size))
            rows = [*options.kcap.split(), "rows", str(path), "--jobs", "1", "--format", "parquet", "-o", out]
            peer = ["tshark", "-n", "-r", str(path), "-Y", "kafka", "-T", "fields", "-d", "tcp.port==9092,kafka"]
            peer += [word for one in FIELDS for word in ("-e", one)]
            timed(rows)  # compiles kernels, fills the page cache
            ours, theirs = [], []
            for _ in range(options.rounds):
                ours.append(timed(rows))
                if shutil.which("tshark"):
                    theirs.append(timed(peer))
            found, size = pq.ParquetFile(out).metadata.num_rows, os.path.getsize(path) / 1e6
            cpu, peak = (statistics.median(one[at] for one in ours) for at in (1, 2))
            ratio = f"{statistics.median(one[1] for one in theirs) / cpu:.1f} times tshark" if theirs else "no tshark"
            sys.stdout.write(
                f"{name:10} {packets / cpu:>9,.0f} packets, {size / cpu:>5,.0f} MB a CPU second; {ratio}; peak {peak:,.0f} MB; "
                f"{found:,} of {exchanges:,} exchanges\n"
            )
            sys.stdout.flush()
            if options.keep is None:
                path.unlink()


if __name__ == "__main__":
    main()
