"""Capture files and packets made byte by byte, so that the specifications judge the readers, not another library."""

from dataclasses import dataclass, field
from pathlib import Path
from struct import pack

from kcap.capture.fileset import FileSet
from kcap.model import PacketBatch
from kcap.weird import WeirdKind

START_NS = 1_700_000_000 * 10**9


@dataclass
class Weirds:
    """A `Report` that remembers; picklable, as a parser's report must be to travel with it."""

    seen: list[tuple[WeirdKind, str, int, int, int]] = field(default_factory=list)

    def __call__(self, kind: WeirdKind, detail: str, file: int, packet: int, position: int) -> None:
        self.seen.append((kind, detail, file, packet, position))

    @property
    def kinds(self) -> list[str]:
        return [kind.value for kind, *_ in self.seen]


def pcap(packets, order="<", ns=False, link=1, modified=False, snaplen=262144) -> bytes:
    """packets: (time_ns, data) or (time_ns, data, wire)."""
    magic = 0xA1B2CD34 if modified else 0xA1B23C4D if ns else 0xA1B2C3D4
    out = pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, link)
    for time, data, *wire in packets:
        fraction = time % 10**9 // (1 if ns else 1000)
        out += pack(order + "IIII", time // 10**9, fraction, len(data), wire[0] if wire else len(data))
        out += (bytes(8) if modified else b"") + data
    return out


def block(kind: int, body: bytes, order="<") -> bytes:
    body += bytes(-len(body) % 4)
    return pack(order + "II", kind, len(body) + 12) + body + pack(order + "I", len(body) + 12)


def option(code: int, value: bytes, order="<") -> bytes:
    return pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order="<") -> bytes:
    return block(0x0A0D0D0A, pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link=1, resolution: int | None = None, offset: int | None = None, snaplen=0, order="<") -> bytes:
    options = b"" if resolution is None else option(9, bytes([resolution]), order)
    options += b"" if offset is None else option(14, pack(order + "q", offset), order)
    return block(1, pack(order + "HHI", link, 0, snaplen) + options + (option(0, b"", order) if options else b""), order)


def enhanced(ticks: int, data: bytes, number=0, wire: int | None = None, order="<", options=b"") -> bytes:
    wire = len(data) if wire is None else wire
    head = pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), wire)
    return block(6, head + data + bytes(-len(data) % 4) + options, order)


def simple(data: bytes, wire: int | None = None, order="<") -> bytes:
    return block(3, pack(order + "I", len(data) if wire is None else wire) + data, order)


def old_packet(ticks: int, data: bytes, number=0, order="<") -> bytes:
    head = pack(order + "HHIIII", number, 0, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
    return block(2, head + data, order)


def tcp(payload=b"", seq=1000, ack=2000, flags=0x18, ports=(40000, 9092), window=512, options=b"") -> bytes:
    offset = (20 + len(options)) // 4 << 4
    return pack(">HHIIBBHHH", *ports, seq, ack, offset, flags, window, 0, 0) + options + payload


def ipv4(
    inner: bytes, protocol=6, options=b"", fragment=0x4000, ident=7, total: int | None = None, wire: int | None = None
) -> bytes:
    size = 20 + len(options)
    total = size + (len(inner) if wire is None else wire) if total is None else total
    head = pack(">BBHHHBBH", 0x40 + size // 4, 0, total, ident, fragment, 64, protocol, 0)
    return head + b"\x0a\0\0\x01\x0a\0\0\x02" + options + inner


def ipv6(inner: bytes, protocol=6, size: int | None = None) -> bytes:
    size = len(inner) if size is None else size
    return pack(">IHBB", 6 << 28, size, protocol, 64) + bytes(15) + b"\x01" + bytes(15) + b"\x02" + inner


def ethernet(inner: bytes, kind=0x0800) -> bytes:
    return b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02" + pack(">H", kind) + inner


def batch_of(*packets: bytes, link=1, wire: int | None = None, step_ns=1000) -> PacketBatch:
    """A plain batch with a guard behind each packet, so that a look too far is seen."""
    starts, buffer = [], b""
    for data in packets:
        starts.append(len(buffer))
        buffer += data + b"\xee" * 80
    sizes = [len(data) for data in packets]
    return PacketBatch(
        0,
        1,
        buffer,
        [START_NS + index * step_ns for index in range(len(packets))],
        starts,
        sizes,
        [max(size, wire or 0) for size in sizes],
        [start + 24 for start in starts],
        link,
    )


def rows(batch: PacketBatch) -> list[tuple]:
    """A batch as one tuple a packet: number, time, bytes, length on the wire, position, link."""
    links = [batch.link] * len(batch) if isinstance(batch.link, int) else list(batch.link)
    return [
        (
            batch.first_packet + index,
            int(batch.time_ns[index]),
            bytes(batch.buffer[int(batch.start[index]) : int(batch.start[index]) + int(batch.captured[index])]),
            int(batch.wire[index]),
            int(batch.position[index]),
            int(links[index]),
        )
        for index in range(len(batch))
    ]


def segments(out) -> list[tuple]:
    """A segment batch as one tuple a segment; the last field is the captured payload."""
    return [
        (
            out.packet[index],
            out.time_ns[index],
            out.position[index],
            out.flow[index],
            out.seq[index],
            out.ack[index],
            out.flags[index],
            out.window[index],
            out.length[index],
            bytes(out.buffers.get(index, out.buffer)[out.payload[index] : out.payload[index] + out.captured[index]]),
        )
        for index in range(len(out))
    ]


def save(folder: Path, data: bytes, name="a.pcap") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def read_all(*paths: str, jit_after: int | None = None):
    """All packets of a set, the set, and its weirds."""
    weirds = Weirds()
    found = FileSet(paths, weirds, jit_after)
    return [row for batch in found.batches() for row in rows(batch)], found, weirds
