"""Seeded mutation of real captures: everything a user can run is run over each mutant, in this process. Law: nothing raises.

usage: python tests/fuzz/mutate_captures.py [--seed N] [--count N] [--seconds N] [--front A,B] [--turns]
    [--kinds A,B] [--keep FOLDER] PATH...

In: captures (pcap), and key logs beside them (`*.keys`), which decrypt what they can. Out: one line per distinct find, with
the mutant's number, which makes it again (`--seed N --count 1`). A find is an exception that is no KcapError, rows that differ
between the compiled and the plain way, a ledger that does not add up, an exit code that is not documented, or a table or a
command that takes more than SLOW_SECONDS. A mutant depends on its number and the list of captures alone.
"""

import argparse
import contextlib
import io
import os
import random
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch
from zlib import crc32

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pyarrow as pa

import kcap
from kcap import limits
from kcap.analyzer import Options
from kcap.capture.fileset import FileSet
from kcap.columns import ON_REQUEST, TABLES
from kcap.errors import KcapError
from kcap.session import Capture

SLOW_SECONDS = 2.0
"""Processor time for a table, a command, or a front as a whole, of one mutant."""
PACKETS_MIN, PACKETS_MAX = 10, 120
"""Packets of a mutant: enough for some exchanges of each connection, few enough for hundreds of mutants a minute."""
BYTES_MAX, FILE_MAX = 400_000, 2 << 20
MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 10**6),
    b"\x4d\x3c\xb2\xa1": ("<", 10**9),
    b"\xa1\xb2\xc3\xd4": (">", 10**6),
    b"\xa1\xb2\x3c\x4d": (">", 10**9),
}
LINK_BYTES = {1: 14, 113: 16, 276: 20, 0: 4, 108: 4, 101: 0, 12: 0}
CENTURY = 100 * 365 * 24 * 3600
TIMES = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, CENTURY, 0xFFFFFFFF - CENTURY)
EXTREMES = (
    0,
    1,
    -1,
    127,
    128,
    255,
    0x7FFF,
    -0x8000,
    0x7FFFFFFF,
    -0x80000000,
    0x7FFFFFFFFFFFFFFF,
    -0x8000000000000000,
    4,
    12,
    14,
    16,
    61,
)


@dataclass
class Packet:
    """A record of a pcap file."""

    seconds: int
    fraction: int
    data: bytearray
    cut: int = 0
    """Bytes by which the length on the wire exceeds what was captured."""


@dataclass
class Mutant:
    """A capture to be changed."""

    rng: random.Random
    link: int
    unit: int
    packets: list[Packet]
    what: list[str] = field(default_factory=list)
    instead: tuple[bytes, bytes] = (b"", b"")
    """Bytes, and what stands for them where a piece is moved."""

    # -- where ------------------------------------------------------------------------------------------------------
    def payload_at(self, packet: Packet) -> int | None:
        """Byte at which a TCP payload starts; None where there is none."""
        data, at = packet.data, LINK_BYTES.get(self.link)
        if at is None or len(data) < at + 40:
            return None
        size = (data[at] & 15) * 4 if data[at] >> 4 == 4 else 40
        tcp = at + size
        if len(data) < tcp + 20:
            return None
        start = tcp + (data[tcp + 12] >> 4) * 4
        return start if start < len(data) else None

    def one(self, *, loaded: bool = True) -> tuple[Packet, int]:
        """A packet and where its payload starts; one with a payload if there is any."""
        for _ in range(20):
            packet = self.rng.choice(self.packets)
            start = self.payload_at(packet)
            if start is not None or not loaded:
                return packet, start or 0
        return self.rng.choice(self.packets), 0

    def place(self) -> tuple[Packet, int]:
        """A byte of a payload, likelier near its front."""
        packet, start = self.one()
        room = max(1, len(packet.data) - start)
        return packet, start + (self.rng.randrange(min(room, 160)) if self.rng.random() < 0.7 else self.rng.randrange(room))

    # -- what -------------------------------------------------------------------------------------------------------
    def bits(self) -> None:
        for _ in range(self.rng.choice((1, 1, 2, 8))):
            packet, at = self.place()
            if packet.data:
                packet.data[min(at, len(packet.data) - 1)] ^= 1 << self.rng.randrange(8)

    def octets(self) -> None:
        packet, at = self.place()
        for step in range(self.rng.choice((1, 1, 2, 4, 16))):
            if at + step < len(packet.data):
                packet.data[at + step] = self.rng.choice((0, 1, 2, 127, 128, 255, self.rng.randrange(256)))

    def integer(self) -> None:
        packet, at = self.place()
        form = self.rng.choice("hiq")
        size = struct.calcsize(form)
        value = self.rng.choice(EXTREMES) & (1 << 8 * size) - 1
        if at + size <= len(packet.data):
            packet.data[at : at + size] = value.to_bytes(size, "big")

    def shifted(self) -> None:
        """A 4 byte number that is somewhat off: lengths and counts that lie by a little."""
        packet, at = self.place()
        if at + 4 <= len(packet.data):
            value = int.from_bytes(packet.data[at : at + 4], "big") + self.rng.choice((-100, -8, -4, -1, 1, 4, 8, 100, 1000))
            packet.data[at : at + 4] = (value & 0xFFFFFFFF).to_bytes(4, "big")

    def records(self) -> None:
        """A field of a batch or a message: magic, attributes, lengths, counts, times, offsets."""
        found = [
            (packet, start, at)
            for packet in self.packets
            if (start := self.payload_at(packet)) is not None
            for at in range(start, min(len(packet.data) - 26, start + 300))
            if packet.data[at + 16] <= 2
            and 14 <= int.from_bytes(packet.data[at + 8 : at + 12], "big") <= len(packet.data)
            and packet.data[at : at + 4] == b"\0\0\0\0"
        ]
        if not found:
            self.integer()
            return
        packet, _, at = self.rng.choice(found)
        offset, size = self.rng.choice(
            (
                (0, 8),
                (8, 4),
                (12, 4),
                (16, 1),
                (17, 1),
                (18, 4),
                (21, 2),
                (22, 4),
                (23, 4),
                (26, 4),
                (26, 8),
                (27, 8),
                (35, 8),
                (43, 8),
                (51, 2),
                (53, 4),
                (57, 4),
                (61, 1),
                (62, 1),
            )
        )
        if at + offset + size <= len(packet.data):
            value = self.rng.choice((*EXTREMES, self.rng.randrange(256), self.rng.randrange(5), len(packet.data) - at))
            packet.data[at + offset : at + offset + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "big")

    def other_api(self) -> None:
        """A request becomes one of another API or version; its body stays."""
        packet, start = self.one()
        if start and start + 8 <= len(packet.data):
            at = start + self.rng.choice((4, 6))
            packet.data[at : at + 2] = struct.pack(
                ">h", self.rng.choice((*range(93), -1, 1000, 0x7FFF)) if at == start + 4 else self.rng.randrange(-1, 20)
            )

    def correlation(self) -> None:
        packet, start = self.one()
        at = start + self.rng.choice((4, 8))
        if at + 4 <= len(packet.data):
            packet.data[at : at + 4] = struct.pack(">i", self.rng.choice((-1, 0, 1, 2, 0x7FFFFFFF, -0x80000000)))

    def prefix(self) -> None:
        """The length of a frame."""
        packet, start = self.one()
        if start + 4 <= len(packet.data):
            left = len(packet.data) - start
            packet.data[start : start + 4] = struct.pack(
                ">i", self.rng.choice((-1, 0, 3, 4, 8, left, left - 5, 1 << 20, 1 << 29, 0x7FFFFFFF))
            )

    def headers(self) -> None:
        """Link, IP and TCP headers: options, lengths, fragments, numbers."""
        packet, start = self.one()
        if packet.data:
            at = self.rng.randrange(min(len(packet.data), max(start, 20)))
            packet.data[at] = self.rng.choice((0, 255, self.rng.randrange(256)))

    def cut(self) -> None:
        packet, start = self.one()
        size = (
            self.rng.randrange(len(packet.data) + 1)
            if self.rng.random() < 0.5
            else min(len(packet.data), start + self.rng.randrange(64))
        )
        if self.rng.random() < 0.5:
            packet.cut += len(packet.data) - size
        del packet.data[size:]

    def snapped(self) -> None:
        """A snapshot length for all."""
        size = self.rng.choice((40, 54, 60, 66, 70, 74, 80, 96, 128, 200, 400))
        for packet in self.packets:
            if len(packet.data) > size:
                packet.cut += len(packet.data) - size
                del packet.data[size:]

    def bytes_moved(self) -> None:
        """A range of a payload is doubled, dropped or overwritten by another, sizes kept or not."""
        packet, at = self.place()
        other, start = self.place()
        piece = other.data[start : start + self.rng.choice((1, 4, 16, 100))]
        if self.instead[0]:
            piece = piece.replace(*self.instead)
        size = self.rng.choice((0, len(piece), len(piece), len(piece)))
        packet.data[at : at + size] = piece if self.rng.random() < 0.7 else b""

    def packets_moved(self) -> None:
        low = self.rng.randrange(len(self.packets))
        high = min(len(self.packets), low + self.rng.choice((1, 1, 2, 5, 20)))
        piece = self.packets[low:high]
        way = self.rng.randrange(4)
        if way == 0 and len(piece) < len(self.packets):
            del self.packets[low:high]
        elif way == 1:
            at = self.rng.randrange(len(self.packets) + 1)
            self.packets[at:at] = [Packet(p.seconds, p.fraction, bytearray(p.data), p.cut) for p in piece]
        elif way == 2:
            self.packets[low:high] = piece[::-1]
        else:
            other = self.rng.randrange(len(self.packets))
            self.packets[low], self.packets[other] = self.packets[other], self.packets[low]

    def times(self) -> None:
        """Of one packet, of all from one on, or of all."""
        low = self.rng.randrange(len(self.packets))
        high = self.rng.choice((low + 1, len(self.packets), len(self.packets)))
        moment, way = self.rng.choice(TIMES), self.rng.randrange(3)
        for packet in self.packets[0 if way == 2 and self.rng.random() < 0.2 else low : high]:
            packet.seconds = moment if way else min(0xFFFFFFFF, packet.seconds + moment)
        if self.rng.random() < 0.3:
            self.packets[low].fraction = self.rng.choice((0, 999_999, 999_999_999, 0x7FFFFFFF, 0xFFFFFFFF))

    def unit_of_time(self) -> None:
        self.unit = 10**9 + 10**6 - self.unit

    def lengths(self) -> None:
        """The length on the wire lies."""
        self.one()[0].cut = self.rng.choice((-1, 1, 100, 0x7FFFFFF, 0x7FFFFFFF))

    def mutate(self, only: Sequence[str]) -> None:
        """Some changes of some kinds, or of those that are named alone."""
        kinds: list[tuple[Callable[[], None], int]] = [
            (self.bits, 6), (self.octets, 6), (self.integer, 10), (self.shifted, 8), (self.records, 12), (self.other_api, 5),
            (self.correlation, 2), (self.prefix, 3), (self.headers, 3), (self.cut, 4), (self.snapped, 1), (self.bytes_moved, 5),
            (self.packets_moved, 4), (self.times, 4), (self.unit_of_time, 1), (self.lengths, 1),
        ]  # fmt: skip
        kinds = [one for one in kinds if not only or one[0].__name__ in only]
        for _ in range(self.rng.choice((1, 1, 2, 3, 6, 12))):
            kind = self.rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
            self.what.append(kind.__name__)
            kind()

    def pcap(self) -> bytes:
        """The file, at times itself damaged."""
        magic = 0xA1B2C3D4 if self.unit == 10**6 else 0xA1B23C4D
        parts = [struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 262144, self.link)]
        for p in self.packets:
            size = len(p.data)
            parts += [
                struct.pack("<IIII", p.seconds & 0xFFFFFFFF, p.fraction & 0xFFFFFFFF, size, (size + p.cut) & 0xFFFFFFFF),
                bytes(p.data),
            ]
        data = b"".join(parts)
        if self.rng.random() < 0.05:
            self.what.append("file cut")
            data = data[: self.rng.randrange(len(data) + 1)]
        if self.rng.random() < 0.03:
            self.what.append("file bits")
            blob = bytearray(data)
            for _ in range(4):
                blob[self.rng.randrange(len(blob))] ^= 1 << self.rng.randrange(8)
            data = bytes(blob)
        return data

    def pcapng(self) -> bytes:
        """The same packets in a pcapng file whose interface has any resolution, offset and 64 bit times."""
        resolution = self.rng.choice((6, 6, 9, 3, 0, 0x80, 0x80 | 20, 0x80 | 63, 18, 127))
        offset = self.rng.choice((None, None, 0, 1, -(1 << 40), (1 << 62), -(1 << 63), (1 << 63) - 1))
        options = struct.pack("<HHB3x", 9, 1, resolution)
        if offset is not None:
            options += struct.pack("<HHq", 14, 8, offset)
        options += struct.pack("<HH", 0, 0)

        def block(kind: int, body: bytes) -> bytes:
            body += bytes(-len(body) % 4)
            return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

        parts = [
            block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
            block(1, struct.pack("<HHI", self.link, 0, 0) + options),
        ]
        far = self.rng.random() < 0.3
        for p in self.packets:
            ticks = p.seconds * self.unit + p.fraction
            if far and self.rng.random() < 0.1:
                ticks = self.rng.choice((0, (1 << 63) - 1, 1 << 63, (1 << 64) - 1))
            ticks &= (1 << 64) - 1
            size = len(p.data)
            parts.append(
                block(
                    6,
                    struct.pack("<IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, size, (size + p.cut) & 0xFFFFFFFF)
                    + bytes(p.data),
                )
            )
        return b"".join(parts)


def packets_of(path: Path) -> tuple[int, int, list[Packet]] | None:
    """Link type, units of time in a second, and packets of a pcap file."""
    data = path.read_bytes()
    order, unit = MAGICS.get(data[:4], ("", 0))
    if not order:
        return None
    (link,) = struct.unpack_from(order + "I", data, 20)
    at, packets = 24, []
    while at + 16 <= len(data):
        seconds, fraction, size, length = struct.unpack_from(order + "IIII", data, at)
        packets.append(Packet(seconds, fraction, bytearray(data[at + 16 : at + 16 + size]), length - size))
        at += 16 + size
    return link & 0xFFFF, unit, packets


def sources(paths: Sequence[Path]) -> list[tuple[str, int, int, list[Packet]]]:
    """The captures that mutants are made of."""
    files = [file for path in paths for file in (sorted(path.rglob("*.pcap")) if path.is_dir() else [path])]
    read = ((file, packets_of(file)) for file in files if file.stat().st_size <= FILE_MAX)
    return [(file.name, *found) for file, found in read if found is not None and found[2]]


def mutant_of(number: int, known: list[tuple[str, int, int, list[Packet]]], only: Sequence[str] = ()) -> tuple[str, str, bytes]:
    """Mutant of a number: what it was made of, what was done, the file."""
    rng = random.Random(number)
    name, link, unit, packets = rng.choice(known)
    size = rng.randrange(PACKETS_MIN, PACKETS_MAX)
    low = 0 if rng.random() < 0.3 else rng.randrange(max(1, len(packets) - size))
    some, total = [], 0
    for p in packets[low : low + size]:
        total += len(p.data)
        if total > BYTES_MAX and some:
            break
        some.append(Packet(p.seconds, p.fraction, bytearray(p.data), p.cut))
    mutant = Mutant(rng, link, unit, some)
    mutant.mutate(only)
    data = mutant.pcapng() if rng.random() < 0.12 else mutant.pcap()
    return name, "+".join(mutant.what), data


# -- what is run ---------------------------------------------------------------------------------------------------------


def promptly(what: str, act: Callable[[], Any]) -> Any:
    """What an act gives; one that takes more than SLOW_SECONDS of the processor is a find. Its first time may have loaded
    modules, so that it has a second one.
    """
    for _ in range(2):
        started = time.process_time()
        made = act()
        if time.process_time() - started <= SLOW_SECONDS:
            return made
    raise AssertionError(f"{what} takes more than {SLOW_SECONDS} s")


@contextlib.contextmanager
def compiled(on: bool) -> Iterator[Options]:
    """All compiled parts from the first packet on, or none of them."""
    from kcap import capture_pass
    from kcap.decode import projection

    with (
        patch.object(limits, "FAST_PATH_AFTER_PACKETS", 0 if on else 1 << 60),
        patch.object(capture_pass, "FileSet", partial(FileSet, jit_after=0 if on else None)),
        patch.object(projection, "JIT_AFTER", 0 if on else 1 << 60),
    ):
        yield Options(fast_path=on)


def everything(name: str) -> list[str]:
    """All columns of a table."""
    return [column.name for column in (*TABLES[name], *ON_REQUEST.get(name, ()))]


def tables(path: str, folder: str) -> None:  # noqa: C901 - everything that is made of one capture
    """All tables both ways, and what files are written of them."""
    from kcap.output.time_format import CLOCKS, timed, timed_schema
    from kcap.output.writers import Arrow, Csv, JsonLines, Parquet
    from kcap.table.builder import Table

    made: dict[str, list[pa.Table]] = {}
    for on in (True, False):
        with compiled(on) as options:
            capture = Capture([path], options)
            for name in TABLES:
                if on or name in ("exchanges", "partitions", "connections", "weirds"):
                    made.setdefault(name, []).append(
                        promptly(f"table {name}", lambda: capture.table(name, everything(name)).to_arrow())  # noqa: B023
                    )
    for name, found in made.items():
        for other in found[1:]:
            if as_set(found[0]) != as_set(other):
                raise AssertionError(f"{name} differ between the compiled and the plain way")
    for row in made["connections"][0].to_pylist():
        for side in ("client", "server"):
            if row[f"{side}_captured"] != sum(row[f"{side}_{part}"] for part in ("framed", "skipped", "opaque", "pending")):
                raise AssertionError("the ledger does not add up")
    for table in [found[0] for found in made.values()]:
        for writer in (JsonLines, Csv, Parquet, Arrow):
            sink = io.BytesIO()
            out: Any = writer(sink, table.schema)
            for batch in table.to_batches():
                if writer is not Csv or not any(
                    pa.types.is_nested(kind) and not pa.types.is_list(kind) for kind in table.schema.types
                ):
                    out.write(batch)
            out.close()
    rows = made["exchanges"][0]
    for clock in CLOCKS:
        schema = timed_schema(rows.schema, clock)
        out = JsonLines(io.BytesIO(), schema)
        for batch in timed(rows.to_batches(), clock, lambda: 0):
            out.write(batch)
    nested = Table(lambda: Capture([path]).read(), "exchanges", children=("partitions", "records")).to_arrow()
    out = JsonLines(io.BytesIO(), nested.schema)
    for batch in nested.to_batches():
        out.write(batch)


def as_set(table: pa.Table) -> list[str]:
    """Rows in an order of their own: connections are decided in another order by the fast path."""
    return sorted(map(repr, table.to_pylist()))


def messages(path: str, folder: str) -> None:
    """Every message decoded whole, as iteration over a capture gives it."""
    for at, exchange in enumerate(kcap.open(path)):
        if at >= 60:
            break
        for message in (exchange.request, exchange.response):
            if message is not None:
                message.to_json()
                _ = message.undecoded, message.unknown_tags
                walk(message.tree())
        exchange.packets()
        repr(exchange)


def walk(node: Any) -> None:
    """Opens every node."""
    for child in node.children:
        walk(child)


def cli(*words: str) -> None:
    """A command in this process, which is to be prompt."""
    from kcap.cli.main import main

    try:
        with contextlib.redirect_stderr(io.StringIO()):
            promptly(" ".join(words), lambda: main(words))
    except SystemExit as stop:
        raise RuntimeError(f"exit {stop.code}") from stop


def shown(path: str, folder: str) -> None:
    """`show` of several exchanges, as text and as JSON."""
    rows = kcap.open(path).exchanges(["connection", "exchange"]).to_arrow().to_pylist()
    rng = random.Random(len(rows))
    for row in rng.sample(rows, min(3, len(rows))):
        name = f"{row['connection']}.{row['exchange']}"
        cli("show", path, name, "--hex", "--payloads")
        cli("show", path, name, "--json", "--payloads")


REPORTS = (
    "latency", "stats", "slow", "throttle", "errors", "topics", "clients", "versions", "health", "check", "groups",
    "transactions", "diff", "connections",
)  # fmt: skip
"""Commands that write a table, JSON and a page; `diff` gets the first half of the file as BEFORE."""
COMMANDS: tuple[str, ...] = (
    *(f"{name} PATHS{form}" for name in REPORTS for form in ("", " -o OUT.json", " -o OUT.html")),
    *(f"{name} PATHS -o OUT.{form}" for name in ("diff", "groups", "transactions") for form in ("csv", "md")),
    "check PATHS --format sarif",
    "latency PATHS --by time:10s --plot OUT.svg",
    "latency PATHS --by api,client_id,broker_id",
    *(f"rows PATHS --table {name}" for name in TABLES),
    *(f"rows PATHS -o OUT.{form}" for form in ("parquet", "csv", "jsonl", "arrow", "md", "html")),
    "rows PATHS --table records --payloads json --format jsonl",
    "rows PATHS -T ek", "rows PATHS -T text --partitions", "rows PATHS --sort -latency_ns --limit 5",
    "rows PATHS -Y error||latency>1ms --time-format relative",
    "sql select*from(exchanges) PATHS", "sql select*from(records) PATHS", "sql select*from(tls_turns) PATHS",
    "cut PATHS -Y latency>=0 -o OUT.pcapng --allow-empty", "cut PATHS --redact --anonymize key -o OUT.pcap --allow-empty",
    "cut PATHS -Y api_key==1 --connection -o OUT.pcap --allow-empty",
    "split PATHS --by-time 60s -o OUT.pcap", "split PATHS --by-connection 2 -o OUT.pcap",
    "merge PATHS -o OUT.pcapng", "merge PATHS -o OUT.pcap",
)  # fmt: skip
"""Everything that one command line can do with a capture."""
DOCUMENTED = frozenset({0, 1, 3})
"""Exit codes of commands whose words are right: done, something was found, the capture cannot be read."""


def commands(path: str, folder: str) -> None:
    """One command line of all, chosen by the bytes of the mutant, so that each gets its share."""
    data = Path(path).read_bytes()
    Path(before := f"{folder}/before.pcap").write_bytes(data[: len(data) // 2])
    words = COMMANDS[crc32(data) % len(COMMANDS)]
    paths = (before, path) if words.startswith(("diff ", "merge ")) else (path,)
    full = [part for word in words.split() for part in (paths if word == "PATHS" else (word.replace("OUT", f"{folder}/out"),))]

    def act() -> int:
        for made in Path(folder).glob("out*"):
            made.unlink()
        return run_command(full)

    code = promptly(words, act)
    if code not in DOCUMENTED:
        raise AssertionError(f"{words}: exit code {code}")


def failed(_analyzer: object, _connection: object, error: Exception, *_place: object) -> None:
    """In place of the second line, which would cost the connection alone: what gets that far is a find too."""
    raise error


def run_command(words: Sequence[str]) -> int:
    """The exit code of a command in this process; what it says goes nowhere."""
    from kcap.analyzer import Analyzer
    from kcap.cli.main import main

    with contextlib.redirect_stderr(io.StringIO()) as said, patch.object(Analyzer, "failed", failed):
        code = main(words)
    if code == 2:
        raise AssertionError(f"{' '.join(words[:1])}: usage: {said.getvalue()}")
    return code


def reports(path: str, folder: str) -> None:
    """Some of the reports, as tables, JSON and pages: which of them changes with the mutant."""
    for name in random.Random(os.path.getsize(path)).sample(REPORTS[:9], 3):
        if name == "health":
            cli(name, path, "--format", "json")
            cli(name, path)
            continue
        cli(name, path, "-o", f"{folder}/report.json", *(("--by", "time:10s") if name == "latency" else ()))
        cli(name, path, "-o", f"{folder}/report.html")
        cli(name, path)


def cuts(path: str, folder: str) -> None:
    """cut, split and merge."""
    cli("cut", path, "-Y", "api_key == 1 || error_code > 0", "-o", f"{folder}/cut.pcap", "--allow-empty")
    cli("cut", path, "-o", f"{folder}/cut.pcapng", "--redact", "--anonymize", "key", "--allow-empty")
    cli("merge", path, "-o", f"{folder}/merged.pcap")


class Line:
    """The other end of the reading process."""

    def __init__(self) -> None:
        self.last: Any = None

    def send(self, value: Any) -> None:
        self.last = value


def screen(path: str, folder: str) -> None:
    """What the reading process of the terminal UI does, and what the screen makes of it, without a terminal."""
    import pickle
    import shutil

    from kcap.capture.frame_bytes import read
    from kcap.table.schema import arrow_schema
    from kcap.tui.exchange_tree import anatomy
    from kcap.tui.reader_main import Child, ReadRequest
    from kcap.tui.row_index import RowIndex as Rows
    from kcap.tui.spill import COLUMNS, PROFILES, main_path, read_file
    from kcap.tui.timeline import timeline

    spill = f"{folder}/spill"
    shutil.rmtree(spill, ignore_errors=True)
    os.makedirs(spill)
    line: Any = Line()
    child = Child(ReadRequest([path], spill), line)
    child._read()
    status = line.last
    rows = Rows(read_file(main_path(spill, "exchanges")).to_batches(), arrow_schema("exchanges", COLUMNS))
    made = timeline(rows, None, 80)
    if made is not None:
        for at in range(len(made.counts)):
            made.describe(at)
    for number in random.Random(1).sample(range(len(rows)), min(6, len(rows))):
        for item in anatomy(read(rows.row(number), status.files, status.layouts, {})):
            opened(item)
    with open(os.path.join(spill, PROFILES), "rb") as file:
        pickle.load(file)
    os.makedirs(f"{spill}/p")
    other = Child(ReadRequest([path], f"{spill}/p", partitions=True), line)
    other._beside("partitions", everything("partitions"))


def opened(item: Any) -> None:
    """An item of an outline and all in it."""
    for inner in item.make() if item.make is not None else ():
        opened(inner)


FRONTS: dict[str, Callable[[str, str], None]] = {
    "tables": tables, "messages": messages, "shown": shown, "screen": screen, "cuts": cuts, "reports": reports,
    "commands": commands,
}  # fmt: skip


WHOLE: Final = frozenset({"messages", "screen"})
"""Fronts that are to be prompt as a whole; of the others each table or command is."""


def find_of(error: BaseException) -> str:
    """What tells one find from another: the exception and the innermost lines of kcap on its way."""
    places = [
        f"{Path(f.filename).name}:{f.lineno}:{f.name}"
        for f in traceback.extract_tb(error.__traceback__)
        if "/kcap/" in f.filename
    ]
    return f"{type(error).__name__} {' < '.join(reversed(places[-3:]))}" + ("" if places else f" {error}")


@dataclass
class Outcome:
    """What a run came to."""

    runs: Counter[str] = field(default_factory=Counter)
    finds: dict[str, tuple[int, str, str, str]] = field(default_factory=dict)
    """Find -> number, front, story and traceback of the first mutant that showed it."""
    hits: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str, int] = (0.0, "", 0)

    def note(self, find: str, number: int, front: str, story: str, text: str) -> None:
        self.hits[find] += 1
        self.finds.setdefault(find, (number, front, story, text))


def run(
    paths: Sequence[Path],
    first: int,
    count: int,
    seconds: float,
    fronts: Sequence[str],
    keep: Path | None = None,
    only: Sequence[str] = (),
    turns: bool = False,
) -> Outcome:
    """Runs `count` mutants from number `first` on, as far as the seconds go; over one front each where they take turns."""
    known, outcome = sources(paths), Outcome()
    with tempfile.TemporaryDirectory(prefix="kcap-mutants-") as folder:
        path = Path(folder) / "mutant.pcap"
        keys = Path(folder) / "keys"
        keys.write_bytes(b"# all\n" + b"".join(log.read_bytes() for one in paths for log in sorted(one.rglob("*.keys"))))
        keys.chmod(0o600)
        os.environ["SSLKEYLOGFILE"] = str(keys)
        intact = next(file for one in paths for file in ([one] if one.is_file() else sorted(one.rglob("*.pcap"))))
        FRONTS["tables"](str(intact), folder)  # kernels are compiled here, which is no mutant's time
        begun = time.monotonic()
        for number in range(first, first + count):
            if time.monotonic() - begun > seconds:
                break
            name, what, data = mutant_of(number, known, only)
            path.write_bytes(data)
            os.utime(path, (0, 0))  # a file of this moment is one that grows, which the reading process waits for
            for front in fronts if not turns else (fronts[number % len(fronts)],):
                started = time.monotonic()
                try:
                    if front in WHOLE:
                        promptly(front, partial(FRONTS[front], str(path), folder))
                    else:
                        FRONTS[front](str(path), folder)
                except KcapError:
                    pass
                except Exception as error:  # noqa: BLE001 - that is what is looked for
                    outcome.note(find_of(error), number, front, f"{name} {what}", traceback.format_exc())
                    if keep is not None:
                        (keep / f"{number}.pcap").write_bytes(data)
                outcome.runs[front] += 1
                outcome.slowest = max(outcome.slowest, (time.monotonic() - started, front, number))
    return outcome


def main() -> int:
    """Runs and tells; the exit code is 1 where there was a find."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1 << 40)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--front", default=",".join(FRONTS))
    parser.add_argument("--turns", action="store_true", help="one front for each mutant, by its number")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--kinds", default="")
    options = parser.parse_args()
    said = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    begun = time.monotonic()
    outcome = run(
        options.paths,
        options.seed,
        options.count,
        options.seconds,
        options.front.split(","),
        options.keep,
        [kind for kind in options.kinds.split(",") if kind],
        options.turns,
    )
    for find, (number, front, story, text) in outcome.finds.items():
        print(f"{outcome.hits[find]} x {find}\n  first: --seed {number} --front {front} ({story})\n{text}", file=said)
    took, front, number = outcome.slowest
    print(
        f"{dict(outcome.runs)} in {time.monotonic() - begun:.0f} s, {len(outcome.finds)} finds; "
        f"slowest {took:.2f} s: {front} of {number}",
        file=said,
        flush=True,  # an exception that was found may hold the frame, and the file with it, until the end
    )
    return 1 if outcome.finds else 0


if __name__ == "__main__":
    sys.exit(main())
