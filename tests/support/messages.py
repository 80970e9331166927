"""Kafka messages written field by field, and captures of the conversations they make up."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import kcap
from kcap.capture.writer import PcapngWriter, PcapWriter
from tests.records.batches import batch, record
from tests.support.wire import MS, Segment, Tap, produce, produce_answer, request, response
from tests.support.wire import metadata as asked

NO_TAGS = b"\0"
HEARTBEAT, FETCH, METADATA, API_VERSIONS, HANDSHAKE, AUTHENTICATE = 12, 1, 3, 18, 17, 36
Node = tuple[int, str, int]
"""Node id, host, port."""
ORDERS = bytes(range(16))
"""Id of a topic."""


def text(value: str | None) -> bytes:
    """A string with a length of two bytes."""
    return b"\xff\xff" if value is None else struct.pack(">h", len(value.encode())) + value.encode()


def compact(value: str | None) -> bytes:
    """A string with a length of one byte (KIP-482)."""
    return b"\0" if value is None else bytes([len(value.encode()) + 1]) + value.encode()


def many(entries: Iterable[bytes]) -> bytes:
    """An array with a count of four bytes."""
    listed = list(entries)
    return struct.pack(">i", len(listed)) + b"".join(listed)


def few(entries: Iterable[bytes]) -> bytes:
    """An array with a count of one byte (KIP-482)."""
    listed = list(entries)
    return bytes([len(listed) + 1]) + b"".join(listed)


def api_versions(correlation: int, name: str = "lib", version: str = "1.0", *, asked: int = 3, client: str = "app") -> bytes:
    """A request v3 or later."""
    body = NO_TAGS + compact(name) + compact(version) + NO_TAGS
    return request(API_VERSIONS, asked, correlation, body, client)


def api_versions_answer(correlation: int, ranges: Mapping[int, tuple[int, int]]) -> bytes:
    """An answer v3 or later."""
    entries = (struct.pack(">hhh", key, *versions) + NO_TAGS for key, versions in ranges.items())
    return response(correlation, b"\0\0" + few(entries) + bytes(4) + NO_TAGS)


def refused_answer(correlation: int) -> bytes:
    """UNSUPPORTED_VERSION, as brokers before 2.4 say it."""
    return response(correlation, b"\0\x23" + bytes(4))


def metadata(correlation: int, client: str = "app") -> bytes:
    """A request v12 for all topics."""
    return request(METADATA, 12, correlation, NO_TAGS + b"\0" + b"\0\0" + NO_TAGS, client)


def metadata_answer(
    correlation: int, nodes: Sequence[Node], cluster: str | None = "C", topics: Mapping[bytes, str | None] | None = None
) -> bytes:
    """An answer v12; topics by id."""
    brokers = (struct.pack(">i", n) + compact(host) + struct.pack(">i", port) + b"\0" + NO_TAGS for n, host, port in nodes)
    listed = (
        b"\0\0" + compact(name) + uuid + b"\0" + few([]) + struct.pack(">i", -1) + NO_TAGS
        for uuid, name in (topics or {}).items()
    )
    body = NO_TAGS + bytes(4) + few(brokers) + compact(cluster) + struct.pack(">i", nodes[0][0] if nodes else -1)
    return response(correlation, body + few(listed) + NO_TAGS)


def fetch(correlation: int, *, wait_ms: int = 500, least: int = 1, uuid: bytes = ORDERS, client: str = "app") -> bytes:
    """A request v13 of one partition."""
    partition = struct.pack(">iiqiqi", 0, -1, 0, -1, 0, 1000) + NO_TAGS
    head = struct.pack(">iiiibii", -1, wait_ms, least, 1000, 0, 0, -1)
    body = NO_TAGS + head + few([uuid + few([partition]) + NO_TAGS]) + few([]) + compact("") + NO_TAGS
    return request(FETCH, 13, correlation, body, client)


def fetch_answer(correlation: int, *, records: bytes = b"", uuid: bytes = ORDERS, throttle: int = 0) -> bytes:
    """An answer v13."""
    partition = struct.pack(">ihqqq", 0, 0, 5, 5, 0) + b"\0" + struct.pack(">i", -1) + bytes([len(records) + 1]) + records
    body = NO_TAGS + struct.pack(">ihi", throttle, 0, 0) + few([uuid + few([partition + NO_TAGS]) + NO_TAGS]) + NO_TAGS
    return response(correlation, body)


def heartbeat(correlation: int, version: int) -> bytes:
    """A request v1 or v2; from v2 on brokers mute (KIP-219)."""
    return request(HEARTBEAT, version, correlation, text("group") + struct.pack(">i", 1) + text("member"))


def heartbeat_answer(correlation: int, throttle: int = 0) -> bytes:
    """Its answer."""
    return response(correlation, struct.pack(">ih", throttle, 0))


def handshake(correlation: int, mechanism: str, version: int = 1) -> bytes:
    """Which SASL mechanism."""
    return request(HANDSHAKE, version, correlation, text(mechanism))


def handshake_answer(correlation: int, error: int = 0) -> bytes:
    """That one."""
    return response(correlation, struct.pack(">h", error) + many([]))


def authenticate(correlation: int, token: bytes) -> bytes:
    """A token in a request v0."""
    return request(AUTHENTICATE, 0, correlation, struct.pack(">i", len(token)) + token)


def authenticate_answer(correlation: int, error: int = 0) -> bytes:
    """What the broker says to it."""
    return response(correlation, struct.pack(">h", error) + text(None) + bytes(4))


def raw(token: bytes) -> bytes:
    """A token without a header, as after SaslHandshake v0."""
    return struct.pack(">i", len(token)) + token


class Story(Tap):
    """A connection, exchange by exchange."""

    def ask(self, question: bytes, answer: bytes, after_ms: float = 1) -> "Story":
        """A request, and its answer some time later."""
        self.client(question)
        self.time_ns += round(after_ms * MS) - self.step_ns
        self.server(answer)
        return self


def began(port: int = 40_000, time_ns: int = 1_000_000_000) -> Story:
    """A connection that is open; its round trip at the tap is 1 ms."""
    story = Story(port=port, client_isn=port, time_ns=time_ns)
    story.open()
    return story


def frame(segment: Segment) -> bytes:
    """The segment as an Ethernet frame."""
    source, destination, ports = segment.flow[:4], segment.flow[4:8], segment.flow[8:]
    tcp = ports + struct.pack(
        ">IIBBHHH", segment.seq & 0xFFFFFFFF, segment.ack & 0xFFFFFFFF, 5 << 4, segment.flags, segment.window, 0, 0
    )
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(segment.payload), 0, 0, 64, 6, 0) + source + destination
    return bytes(12) + b"\x08\0" + ip + tcp + segment.payload


def saved(path: Path, *stories: Tap, cut: Mapping[int, int] | None = None) -> Path:
    """The stories as a capture file, in order of time; of some packets, by number from 0, the last bytes are cut off."""
    segments = sorted((s for story in stories for s in story.segments), key=lambda s: s.time_ns)
    with path.open("wb") as file:
        writer = PcapWriter(file, 1) if path.suffix == ".pcap" else PcapngWriter(file)
        for at, segment in enumerate(segments):
            data = frame(segment)
            writer.write(segment.time_ns, data[: len(data) - (cut or {}).get(at, 0)], len(data), 1)
    return path


def far_from_a_boundary(path: Path) -> Path:
    """A capture in which a length prefix is lost, and the next boundary is far behind it; on the way there a record looks like
    eight requests."""
    tap = Tap().open()
    values = [bytes([at]) * 3000 for at in range(80)]
    values[60] = b"".join(asked(correlation) for correlation in range(4, 12))
    records = b"".join(batch(record(value=value)) for value in values)
    for correlation in range(3):
        tap.client(produce(correlation, 1, batch(record(value=b"a" * 3000)))).server(produce_answer(correlation))
    lost = len(tap.segments)
    tap.client(produce(3, 1, records)).server(produce_answer(3))
    for correlation in range(4, 9):
        tap.client(produce(correlation, 1, batch(record(value=b"b" * 3000)))).server(produce_answer(correlation))
    del tap.close().segments[lost]
    return saved(path, tap)


def rows_of(path: Path, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The exchanges of a file, in order of connection and number."""
    rows: list[dict[str, Any]] = kcap.open(path).exchanges(columns).to_arrow().to_pylist()
    return rows
