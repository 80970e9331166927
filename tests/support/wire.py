"""Hand-made TCP conversations: what a tap between two endpoints would have seen, as segments."""

import random
import struct
from dataclasses import dataclass, field, replace

from kcap.analyzer import Analyzer, Options
from kcap.model import ROW, SegmentBatch
from kcap.net.connections import reverse_flow
from kcap.net.tcp import ACK, FIN, MASK, PSH, RST, SYN

CLIENT = bytes([10, 0, 0, 1])
SERVER = bytes([10, 0, 0, 2])
MS = 1_000_000


def flow(client_port: int = 40_000, server_port: int = 9092) -> bytes:
    """The flow key of the client's direction."""
    return CLIENT + SERVER + struct.pack(">HH", client_port, server_port)


@dataclass(frozen=True)
class Segment:
    """One segment as a tap sees it; `cut` bytes of the payload are not captured."""

    time_ns: int
    flow: bytes
    seq: int
    ack: int
    flags: int
    payload: bytes = b""
    cut: int = 0
    window: int = 1000


@dataclass
class Tap:
    """Writes down a conversation, segment by segment."""

    client_isn: int = 1000
    server_isn: int = 9000
    port: int = 40_000
    time_ns: int = 1_000_000_000
    step_ns: int = MS
    segments: list[Segment] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.up = flow(self.port)
        self.next = [(self.client_isn + 1) & MASK, (self.server_isn + 1) & MASK]

    def add(self, side: int, flags: int, payload: bytes = b"", seq: int | None = None) -> None:
        """A segment of the client (side 0) or the server (side 1)."""
        mine, other = self.next[side], self.next[1 - side]
        direction = self.up if side == 0 else reverse_flow(self.up)
        at = mine if seq is None else seq
        self.segments.append(Segment(self.time_ns, direction, at, other if flags & ACK else 0, flags, payload))
        self.time_ns += self.step_ns
        if seq is None:
            self.next[side] = (mine + len(payload)) & MASK

    def open(self) -> "Tap":
        """The three-way handshake."""
        self.add(0, SYN, seq=self.client_isn)
        self.add(1, SYN | ACK, seq=self.server_isn)
        self.add(0, ACK)
        return self

    def send(self, side: int, data: bytes, size: int = 1448) -> "Tap":
        """Stream bytes in segments of at most `size`."""
        for at in range(0, len(data), size):
            self.add(side, PSH | ACK, data[at : at + size])
        return self

    def client(self, data: bytes, size: int = 1448) -> "Tap":
        """The client sends."""
        return self.send(0, data, size)

    def server(self, data: bytes, size: int = 1448) -> "Tap":
        """The server sends."""
        return self.send(1, data, size)

    def close(self) -> "Tap":
        """Both sides finish."""
        for side in (0, 1):
            self.add(side, FIN | ACK)
            self.next[side] = (self.next[side] + 1) & MASK
        self.add(0, ACK)
        return self

    def reset(self, side: int = 1) -> "Tap":
        """One side resets."""
        self.add(side, RST | ACK)
        return self


def batch(segments: list[Segment], first_packet: int = 1, file: int = 0) -> SegmentBatch:
    """Segments as the packet layer hands them on."""
    out = SegmentBatch(file, b"".join(s.payload for s in segments))
    at = 0
    for number, s in enumerate(segments):
        out.packet.append(first_packet + number)
        out.time_ns.append(s.time_ns)
        out.position.append(24 + 100 * (first_packet + number - 1))
        out.flow.append(s.flow)
        out.seq.append(s.seq & MASK)
        out.ack.append(s.ack & MASK)
        out.flags.append(s.flags)
        out.window.append(s.window)
        out.payload.append(at)
        out.captured.append(len(s.payload) - s.cut)
        out.length.append(len(s.payload))
        at += len(s.payload)
    return out


def analyze(segments: list[Segment], options: Options | None = None, sizes: int = 0) -> "Seen":
    """Everything the analyzer makes of these segments, fed in batches of `sizes` (0: all at once)."""
    analyzer = Analyzer(options)
    size = sizes or max(1, len(segments))
    seen = Seen()
    for at in range(0, len(segments), size):
        analyzer.feed(batch(segments[at : at + size], at + 1))
        seen.take(analyzer)
    analyzer.finish()
    seen.take(analyzer)
    seen.weirds = {w.kind.value: n for w, n in analyzer.sightings()}
    seen.connections = [c.values for c in analyzer.take_connections()]
    return seen


@dataclass
class Seen:
    """Rows as dicts, connections and weirds of one analysis."""

    rows: list[dict[str, object]] = field(default_factory=list)
    connections: list[dict[str, object]] = field(default_factory=list)
    weirds: dict[str, int] = field(default_factory=dict)

    def take(self, analyzer: Analyzer) -> None:
        """The rows decided by now."""
        got = analyzer.take()
        for row in got.rows:
            values = dict(zip(ROW, row, strict=True))
            values["uid"] = got.identities[row[0]].uid  # type: ignore[index]
            values["client_port"] = got.identities[row[0]].client_port  # type: ignore[index]
            self.rows.append(values)

    def brief(self, *names: str) -> list[tuple[object, ...]]:
        """Some columns of each row, in order of connection and number."""
        rows = sorted(self.rows, key=lambda r: (str(r["uid"]), r["exchange"]))
        return [tuple(r[n] for n in names) for r in rows]


def request(key: int, version: int, correlation: int, body: bytes = b"", client_id: str | None = "app") -> bytes:
    """A request frame with header version 1 and its length prefix."""
    raw = b"\xff\xff" if client_id is None else struct.pack(">h", len(client_id.encode())) + client_id.encode()
    frame = struct.pack(">hhi", key, version, correlation) + raw + body
    return struct.pack(">i", len(frame)) + frame


def response(correlation: int, body: bytes = b"") -> bytes:
    """A response frame with header version 0 and its length prefix."""
    return struct.pack(">ii", 4 + len(body), correlation) + body


def in_turn(taps: list[Tap]) -> list[Segment]:
    """The segments of several connections, one of each in turn."""
    return [segment for turn in zip(*(tap.segments for tap in taps), strict=True) for segment in turn]


def metadata(correlation: int, topic: str = "t", client_id: str | None = "app") -> bytes:
    """A Metadata v1 request."""
    name = topic.encode()
    return request(3, 1, correlation, struct.pack(">ih", 1, len(name)) + name, client_id)


def metadata_answer(correlation: int, brokers: int = 0) -> bytes:
    """A Metadata v1 response with some brokers."""
    one = struct.pack(">ih4sih", 1, 4, b"host", 9092, -1)  # 16 bytes
    return response(correlation, struct.pack(">i", brokers) + one * brokers + struct.pack(">ii", 1, 0))


def produce(correlation: int, acks: int, records: bytes = b"", topic: str = "t", client_id: str | None = "app") -> bytes:
    """A Produce v2 request with one partition."""
    name = topic.encode()
    body = struct.pack(">hiih", acks, 1000, 1, len(name)) + name + struct.pack(">iii", 1, 0, len(records)) + records
    return request(0, 2, correlation, body, client_id)


def produce_answer(correlation: int, error: int = 0, throttle: int = 0, topic: str = "t") -> bytes:
    """A Produce v2 response."""
    name = topic.encode()
    body = struct.pack(">ih", 1, len(name)) + name + struct.pack(">iihqq", 1, 0, error, 5, -1) + struct.pack(">i", throttle)
    return response(correlation, body)


def shuffled(segments: list[Segment], reach: int, seed: int) -> list[Segment]:
    """The same segments, each moved back by at most `reach` places among those with payload; times stay in file order."""
    rng = random.Random(seed)
    order = sorted(range(len(segments)), key=lambda i: i + (rng.uniform(0, reach) if segments[i].payload else 0))
    times = [s.time_ns for s in segments]
    return [replace(segments[i], time_ns=t) for i, t in zip(order, times, strict=True)]
