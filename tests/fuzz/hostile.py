"""Captures made to cost much, one class each, of any size; and the curve of what they cost.

usage: python tests/fuzz/hostile.py write CLASS UNITS FILE
       python tests/fuzz/hostile.py curve [--only A,B] [--doublings 3] [--scale 1.0] [--limit 60] [--command "rows"]
                                     [--rounds 1]
       python tests/fuzz/hostile.py matrix [--only A,B] [--scale 1.0] [--limit 60] [--commands "health|stats|..."] [--all]

`curve` doubles each class's size, runs `kcap COMMAND` over it in a process of its own, and prints processor seconds, peak
memory and the slope of log CPU over log size; what an empty capture costs is taken off first. With `--rounds` the fastest of
so many runs counts at each size: other programs on the machine only ever add. The promise (SECURITY.md): a
slope of at most 1.1 and less than 500 MB. Nothing here is random but by a fixed seed.

`matrix` does so with every command that reads a capture, in forks of one process, so that nothing is imported again: at the
smallest size and at two to eight times that, so that it takes about two seconds, at two and four times as much again where the
slope is too steep, and prints what breaks the promise where it takes a second.
"""

import argparse
import gzip
import hmac
import math
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

SYN, RST, PSH, ACK, FIN = 2, 4, 8, 16, 1
CLIENT, SERVER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
RAW_IP = 101
SECOND = 10**9
CENTURY = 100 * 365 * 86400
Packet = tuple[int, bytes]
"""Time in microseconds and an IP packet."""
Maker = Callable[[int], bytes]

CLASSES: dict[str, tuple[Maker, int, tuple[str, ...]]] = {}
"""Name -> maker of a file of n units, units of the smallest size of a curve, options of `kcap rows`."""


def hostile(units: int, *options: str) -> Callable[[Maker], Maker]:
    """Registers a class."""

    def register(make: Maker) -> Maker:
        CLASSES[make.__name__] = make, units, options
        return make

    return register


# --- packets and files -------------------------------------------------------------------------------------------------
def ip(payload: bytes, source: bytes = CLIENT, target: bytes = SERVER, ident: int = 0, fragment: int = 0) -> bytes:
    """An IPv4 packet of protocol TCP."""
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), ident, fragment, 64, 6, 0) + source + target + payload


def tcp(
    sport: int, dport: int, seq: int, ack: int, flags: int, data: bytes = b"", source: bytes = CLIENT, target: bytes = SERVER
) -> bytes:
    """An IPv4 packet with a TCP segment."""
    head = struct.pack(">HHIIBBHHH", sport, dport, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, 0x50, flags, 1000, 0, 0)
    return ip(head + data, source, target)


def pcap(packets: Iterator[Packet], link: int = RAW_IP) -> bytes:
    """A pcap file."""
    out = bytearray(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, link))
    for when, data in packets:
        out += struct.pack("<IIII", when // 10**6 & 0xFFFFFFFF, when % 10**6, len(data), len(data)) + data
    return bytes(out)


def block(kind: int, body: bytes) -> bytes:
    """A pcapng block."""
    body += bytes(-len(body) % 4)
    size = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + size + body + size


SECTION = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
INTERFACE = block(1, struct.pack("<HHI", RAW_IP, 0, 0))


def packet_block(interface: int, when: int, data: bytes) -> bytes:
    """An enhanced packet block."""
    return block(6, struct.pack("<IIIII", interface, when >> 32, when & 0xFFFFFFFF, len(data), len(data)) + data)


class Connection:
    """One connection from its SYN on, a packet a microsecond."""

    def __init__(self, port: int = 40_000, when: int = 10**12, step: int = 1) -> None:
        self.port, self.when, self.step = port, when, step
        self.next = [1001, 9001]
        self.packets: list[Packet] = []

    def add(self, side: int, flags: int, data: bytes = b"", seq: int | None = None) -> None:
        """A segment of the client (0) or the server (1); `seq` given leaves the next number alone."""
        ports = (self.port, 9092) if side == 0 else (9092, self.port)
        ends = (CLIENT, SERVER) if side == 0 else (SERVER, CLIENT)
        at = self.next[side] if seq is None else seq
        self.packets.append((self.when, tcp(*ports, at, self.next[1 - side], flags, data, *ends)))
        self.when += self.step
        if seq is None:
            self.next[side] += len(data)

    def open(self) -> "Connection":
        """The handshake."""
        self.add(0, SYN, seq=1000)
        self.add(1, SYN | ACK, seq=9000)
        self.add(0, ACK)
        return self

    def send(self, side: int, data: bytes, size: int = 1400) -> None:
        """Stream bytes."""
        for at in range(0, len(data), size):
            self.add(side, PSH | ACK, data[at : at + size])

    def file(self) -> bytes:
        """A pcap file of it."""
        return pcap(iter(self.packets))


def request(correlation: int, key: int = 18, version: int = 0, body: bytes = b"", client: bytes = b"client") -> bytes:
    """A request with header version 1; by default ApiVersions v0."""
    head = struct.pack(">hhih", key, version, correlation, len(client)) + client
    return struct.pack(">i", len(head) + len(body)) + head + body


def response(correlation: int, body: bytes = bytes(6)) -> bytes:
    """A response; by default to ApiVersions v0."""
    return struct.pack(">ii", 4 + len(body), correlation) + body


def spoken() -> Connection:
    """A connection that is recognised as Kafka."""
    connection = Connection().open()
    for number in (1, 2):
        connection.send(0, request(number))
        connection.send(1, response(number))
    return connection


def noise(size: int, seed: int) -> bytes:
    """Random bytes."""
    return random.Random(seed).randbytes(size)


# --- connections -------------------------------------------------------------------------------------------------------
def scattered(n: int, seed: int = 1) -> Iterator[tuple[bytes, int]]:
    """Addresses and ports of n strangers."""
    rng = random.Random(seed)
    for _ in range(n):
        yield rng.randbytes(4), rng.randrange(1024, 65536)


@hostile(100_000)
def syn_flood(n: int) -> bytes:
    """SYNs of made-up senders."""
    return pcap((10**12 + i, tcp(port, 9092, i * 7919, 0, SYN, b"", who)) for i, (who, port) in enumerate(scattered(n)))


@hostile(50_000)
def port_sweep(n: int) -> bytes:
    """One sender tries port after port of one host after the other; each is refused."""

    def packets() -> Iterator[Packet]:
        for i in range(n):
            target, port = struct.pack(">I", 0x0A010000 + (i >> 15)), 1 + (i & 0x7FFF)
            yield 10**12 + 2 * i, tcp(50_000, port, i, 0, SYN, b"", CLIENT, target)
            yield 10**12 + 2 * i + 1, tcp(port, 50_000, 0, i + 1, RST | ACK, b"", target, CLIENT)

    return pcap(packets())


@hostile(25_000)
def connect_scan(n: int) -> bytes:
    """Connections that open and close without a byte, as health checks do."""

    def packets() -> Iterator[Packet]:
        when = 10**12
        for i, (who, port) in enumerate(scattered(n)):
            for source, flags, seq, ack in (
                (0, SYN, i, 0), (1, SYN | ACK, 7 * i, i + 1), (0, ACK, i + 1, 7 * i + 1), (0, FIN | ACK, i + 1, 7 * i + 1),
                (1, FIN | ACK, 7 * i + 1, i + 2), (0, ACK, i + 2, 7 * i + 2),
            ):  # fmt: skip
                when += 1
                if source:
                    yield when, tcp(9092, port, seq, ack, flags, b"", SERVER, who)
                else:
                    yield when, tcp(port, 9092, seq, ack, flags, b"", who, SERVER)

    return pcap(packets())


@hostile(1_000)
def one_port(n: int) -> bytes:
    """The same two ports again and again, each SYN with another number."""
    return pcap((10**12 + i, tcp(40_000, 9092, i * 0x01234567, 0, SYN)) for i in range(n))


@hostile(1_000)
def one_port_data(n: int) -> bytes:
    """The same two ports, data from far-away sequence numbers each time."""
    return pcap((10**12 + i, tcp(40_000, 9092, i * 0x3234567 * 16, 1, ACK, b"x" * 20)) for i in range(n))


@hostile(20_000)
def holed_connections(n: int) -> bytes:
    """Many connections, each with one segment behind a hole."""

    def packets() -> Iterator[Packet]:
        for i, (who, port) in enumerate(scattered(n)):
            yield 10**12 + 2 * i, tcp(port, 9092, i, 0, SYN, b"", who)
            yield 10**12 + 2 * i + 1, tcp(port, 9092, i + 100, 1, ACK, b"data", who)

    return pcap(packets())


@hostile(20_000)
def headless_connections(n: int) -> bytes:
    """Many connections without a SYN, one segment of noise each."""
    return pcap((10**12 + i, tcp(p, 9092, i, 1, ACK, b"noise", w)) for i, (w, p) in enumerate(scattered(n)))


@hostile(40_000)
def headless_pieces(n: int) -> bytes:
    """A hundred connections without a SYN, a byte a segment and a hole in front of each."""
    return pcap((10**12 + i, tcp(40_000 + i % 100, 9092, 2 * i, 1, ACK, b"x")) for i in range(n))


@hostile(20_000)
def headless_noise(n: int) -> bytes:
    """Five hundred connections without a SYN, all of noise."""
    data = [noise(1400, i) for i in range(64)]
    return pcap((10**12 + i, tcp(40_000 + i % 500, 9092, 1400 * (i // 500), 1, ACK, data[i * 7 % 64])) for i in range(n))


def in_many(n: int, segment: Callable[[int], bytes], lost: int = 0, side: int = 0) -> bytes:
    """Five hundred connections of Kafka, which go on in turn, `lost` bytes later, with n segments of one side."""

    def packets() -> Iterator[Packet]:
        connections = [Connection(20_000 + at, 10**12 + 10 * at).open() for at in range(500)]
        for connection in connections:
            for number in (1, 2):
                connection.send(0, request(number))
                connection.send(1, response(number))
            connection.next[side] += lost
            yield from connection.packets
        for at in range(n):
            connection = connections[at % 500]
            connection.when, connection.packets = 10**12 + 10_000 + at, []
            connection.add(side, ACK, segment(at // 500))
            yield from connection.packets

    return pcap(packets())


@hostile(20_000)
def searches_of_many(n: int) -> bytes:
    """Many connections that search a boundary in noise at once."""
    data = [noise(1400, at) for at in range(97)]
    return in_many(n, lambda at: data[at % 97])


@hostile(100_000)
def requests_of_many(n: int) -> bytes:
    """Many connections whose requests all wait for a response."""
    return in_many(n, lambda at: request(3 + at))


@hostile(100_000)
def responses_of_many(n: int) -> bytes:
    """The same with responses that wait for their requests."""
    return in_many(n, lambda at: struct.pack(">ii", 4, 100 + at), side=1)


@hostile(100_000)
def bytes_of_many(n: int) -> bytes:
    """The same with segments of a byte behind a hole that is never acknowledged."""
    return in_many(n, lambda _at: b"x", lost=10)


@hostile(20_000)
def segments_of_many(n: int) -> bytes:
    """The same with whole segments."""
    data = [noise(1400, at) for at in range(97)]
    return in_many(n, lambda at: data[at % 97], lost=10)


@hostile(20_000)
def frames_of_many(n: int) -> bytes:
    """Many connections whose next request says to have a million bytes, and goes on and on."""
    begin = struct.pack(">i", 1_000_000) + request(3)[4:]
    return in_many(n, lambda at: b"\0" * 1400 if at else begin)


def bodies_of_many(n: int, size: int, key: int, version: int, head: bytes, entry: bytes) -> bytes:
    """Many connections whose next request says to have `size` bytes, a body that begins so and goes on in equal entries."""
    begin = struct.pack(">i", size) + request(3, key, version, head)[4:]
    whole = begin + entry * (size // len(entry))
    return in_many(n, lambda at: whole[1400 * at : 1400 * at + 1400])


@hostile(10_000)
def reserved_of_many(n: int) -> bytes:
    """Connections each of which announces a Metadata request of a megabyte, and brings little of it."""
    begin = struct.pack(">i", 1_000_000) + request(2, 3, 1, struct.pack(">i", 300_000))[4:]
    return greetings(n, lambda i: request(1) + begin, answer=response(1))


@hostile(20_000)
def topics_of_many(n: int) -> bytes:
    """The same with Metadata requests of 300,000 topics without a letter."""
    return bodies_of_many(n, 1_000_000, 3, 1, struct.pack(">i", 300_000), b"\0\0")


@hostile(20_000)
def large_topics_of_many(n: int) -> bytes:
    """The same with frames that are read as they pass."""
    return bodies_of_many(n, 3_000_000, 3, 1, struct.pack(">i", 300_000), b"\0\1t")


@hostile(20_000)
def long_names_of_many(n: int) -> bytes:
    """The same with Produce requests whose topics have names of 30 KB."""
    head = struct.pack(">hhii", -1, 1, 1000, 100_000)
    return bodies_of_many(n, 1_000_000, 0, 3, head, struct.pack(">h", 30_000) + b"t" * 30_000 + bytes(4))


@hostile(20_000)
def wrapped_of_many(n: int) -> bytes:
    """The same with Produce requests of compressed messages of format 1 without a byte in them."""
    wrapper = struct.pack(">qiIbbqii", 0, 22, 0, 1, 1, 0, -1, 0)
    head = struct.pack(">hhii", -1, 1, 1000, 1) + string(b"t") + struct.pack(">iii", 1, 0, 2_900_000)
    return bodies_of_many(n, 3_000_000, 0, 3, head, wrapper)


@hostile(20_000)
def slow_connections(n: int) -> bytes:
    """SYNs a tenth of a second apart: idle connections are swept again and again."""
    return pcap((10**12 + i * 100_000, tcp(port, 9092, i, 0, SYN, b"", who)) for i, (who, port) in enumerate(scattered(n)))


@hostile(20_000)
def late_reuse(n: int) -> bytes:
    """Connections that were reset, and a minute later packets of the newest of them first."""

    def packets() -> Iterator[Packet]:
        who = list(scattered(n))
        for i, (address, port) in enumerate(who):
            yield 10**12 + i, tcp(port, 9092, i, 0, SYN, b"", address)
            yield 10**12 + i, tcp(9092, port, 0, i + 1, RST | ACK, b"", SERVER, address)
        for i, (address, port) in enumerate(reversed(who)):
            yield 10**12 + 60 * 10**6 + n + i, tcp(port, 9092, n - i, 0, SYN, b"", address)

    return pcap(packets())


# --- streams -----------------------------------------------------------------------------------------------------------
def holes(side: int, n: int, size: int = 40) -> bytes:
    """A Kafka connection, one side of which goes on in noise between holes, all of it acknowledged."""
    connection = spoken()
    connection.next[side] += 50
    for i in range(n):
        connection.add(side, PSH | ACK, noise(size, i))
        connection.next[side] += size
        if i % 16 == 15:
            connection.add(1 - side, ACK)
    return connection.file()


@hostile(4_000)
def request_search_holes(n: int) -> bytes:
    """Holes while the boundary of requests is searched."""
    return holes(0, n)


@hostile(4_000)
def response_search_holes(n: int) -> bytes:
    """Holes while the boundary of responses is searched, with requests outstanding."""
    connection = spoken()
    for number in range(3, 70):
        connection.send(0, request(number))
    connection.next[1] += 50
    for i in range(n):
        connection.add(1, PSH | ACK, noise(40, i))
        connection.next[1] += 40
        if i % 16 == 15:
            connection.add(0, ACK)
    return connection.file()


@hostile(4_000)
def headless_search_holes(n: int) -> bytes:
    """Requests without a SYN between holes, so that nothing is in a row."""
    connection = Connection()
    for i in range(n):
        connection.add(0, PSH | ACK, request(i * 3)[:20] + noise(20, i))
        connection.next[0] += 30
        if i % 16 == 15:
            connection.add(1, ACK)
    return connection.file()


@hostile(8_000)
def tiny_segments(n: int) -> bytes:
    """Segments of one byte behind a hole, in random order."""
    connection = spoken()
    places = list(range(n))
    random.Random(2).shuffle(places)
    first = connection.next[0]
    for place in places:
        connection.add(0, ACK, b"x", seq=first + 1 + place)
    return connection.file()


@hostile(8_000)
def tiny_segments_apart(n: int) -> bytes:
    """The same with a hole between any two."""
    connection = spoken()
    places = list(range(n))
    random.Random(2).shuffle(places)
    first = connection.next[0]
    for place in places:
        connection.add(0, ACK, b"x", seq=first + 1 + 2 * place)
    return connection.file()


@hostile(8_000)
def tiny_headless(n: int) -> bytes:
    """Segments of one byte without a SYN, from the end to the beginning."""
    connection = Connection()
    for place in range(n, 0, -1):
        connection.add(0, ACK, b"x", seq=10**6 + place)
    return connection.file()


@hostile(8_000)
def overlaps(n: int) -> bytes:
    """Large segments behind a hole, each a byte further, each with other bytes."""
    connection = spoken()
    first = connection.next[0]
    for i in range(n):
        connection.add(0, ACK, bytes([i & 255]) * 200, seq=first + 1 + i)
    return connection.file()


@hostile(4_000)
def gaps(n: int) -> bytes:
    """A hole in front of every request, all acknowledged."""
    connection = spoken()
    for i in range(n):
        connection.next[0] += 100
        connection.send(0, request(3 + i))
        connection.send(1, response(3 + i))
    return connection.file()


@hostile(4_000)
def zero_windows(n: int) -> bytes:
    """Retransmissions of one request without end."""
    connection = spoken()
    first = connection.next[0]
    connection.send(0, request(3))
    for _ in range(n):
        connection.add(0, ACK, request(3), seq=first)
    return connection.file()


@hostile(8_000)
def swapped_segments(n: int) -> bytes:
    """Each second segment of 100 bytes comes before the one in front of it."""
    connection = spoken()
    data = b"".join(request(3 + i) for i in range(n * 100 // 24 + 1))[: n * 100]
    first = connection.next[0]
    for at in range(0, n - 1, 2):
        for place in (at + 1, at):
            connection.add(0, PSH | ACK, data[100 * place : 100 * place + 100], seq=first + 100 * place)
    return connection.file()


@hostile(8_000)
def old_copies(n: int) -> bytes:
    """Each request comes again when a thousand others came."""
    connection = spoken()
    sent: list[tuple[int, bytes]] = []
    for i in range(n):
        sent.append((connection.next[0], request(3 + i)))
        connection.send(0, sent[-1][1])
        connection.send(1, response(3 + i))
        if i >= 1_000:
            connection.add(0, PSH | ACK, sent[i - 1_000][1], seq=sent[i - 1_000][0])
    return connection.file()


@hostile(4_000)
def clock_jumps(n: int) -> bytes:
    """Connections that wait for a response, and as many packets of one of them, ten minutes and a bit apart."""
    first = greetings(n, lambda i: request(1))
    connection = Connection(when=10**12 + 10**9, step=601 * 10**6).open()
    for i in range(n):
        connection.send(0, request(i))
    return first + connection.file()[24:]


# --- frames ------------------------------------------------------------------------------------------------------------
@hostile(2_000)
def lying_prefixes(n: int) -> bytes:
    """Requests each followed by an impossible length."""
    connection = spoken()
    connection.send(0, b"".join(request(3 + i) + b"\xff\xff\xff\xff" for i in range(n)))
    return connection.file()


@hostile(2_000)
def lying_lengths(n: int) -> bytes:
    """Lengths of megabytes in front of headers that are fine, and an invalid one: what was held is read again."""
    connection = spoken()
    lie = request(0, body=b"")[4:]
    connection.send(0, b"".join(b"\xff\xff\xff\xff" + struct.pack(">i", 3_000_000 + i) + lie for i in range(n)))
    return connection.file()


@hostile(2_000)
def lying_responses(n: int) -> bytes:
    """Responses each followed by an impossible length."""
    connection = spoken()
    for i in range(n):
        connection.send(0, request(3 + i))
    connection.send(1, b"".join(response(3 + i) + b"\xff\xff\xff\xff" for i in range(n)))
    return connection.file()


@hostile(2_000)
def random_ids(n: int) -> bytes:
    """Requests with random correlation ids, and responses to them in another order."""
    rng = random.Random(3)
    ids = [rng.randrange(1 << 31) for _ in range(n)]
    connection = spoken()
    connection.send(0, b"".join(map(request, ids)))
    rng.shuffle(ids)
    connection.send(1, b"".join(map(response, ids)))
    return connection.file()


@hostile(2_000)
def unknown_ids(n: int) -> bytes:
    """Outstanding requests, and responses to none of them."""
    connection = spoken()
    connection.send(0, b"".join(request(10**6 + i) for i in range(n)))
    connection.send(1, b"".join(response(10**6 + n + i) for i in range(n)))
    return connection.file()


@hostile(2_000)
def one_id(n: int) -> bytes:
    """All requests have the same correlation id."""
    connection = spoken()
    connection.send(0, request(3) * n)
    connection.send(1, response(3) * n)
    return connection.file()


@hostile(2_000)
def early_responses(n: int) -> bytes:
    """Responses without requests."""
    connection = Connection()
    for i in range(5):
        connection.send(0, request(i))
        connection.send(1, response(i))
    connection.send(1, b"".join(response(100 + i) for i in range(n)))
    return connection.file()


@hostile(2_000)
def one_way(n: int) -> bytes:
    """Produce with acks=0 behind requests that wait."""
    connection = spoken()
    produce = struct.pack(">hii", 0, 1000, 0)
    connection.send(0, b"".join(request(10 + i) + request(10**6 + i, 0, 2, produce) for i in range(n)))
    return connection.file()


@hostile(2_000)
def near_requests(n: int) -> bytes:
    """Behind a lost boundary: heads of requests whose bodies nearly fit, each with a length of much that follows."""
    connection = Connection()
    head = struct.pack(">hhih", 3, 1, 5, -1)
    body = head + struct.pack(">i", 50_000)
    entry = b"\x00\x01\x00\x00"
    part = struct.pack(">i", 100_000) + body
    connection.send(0, b"".join(part + entry * 10 for _ in range(n)))
    return connection.file()


@hostile(2_000)
def near_requests_known(n: int) -> bytes:
    """The same on a connection whose requests carry no client id, behind an invalid length."""
    connection = Connection().open()
    first = struct.pack(">ihhih", 10, 18, 0, 1, -1)
    connection.send(0, first)
    connection.send(1, response(1))
    part = struct.pack(">ihhihi", 100_000, 3, 1, 5, -1, 50_000)
    connection.send(0, b"\xff\xff\xff\xff" + b"".join(part + b"\x00\x01\x00\x00" * 10 for _ in range(n)))
    return connection.file()


@hostile(2_000)
def client_ids(n: int) -> bytes:
    """Every request has another client id."""
    connection = spoken()
    for i in range(n):
        connection.send(0, request(3 + i, client=b"c%d" % i))
        connection.send(1, response(3 + i))
    return connection.file()


@hostile(8_000)
def bytewise(n: int) -> bytes:
    """Requests in segments of one byte."""
    connection = spoken()
    connection.send(0, b"".join(request(3 + i, client=b"c" * 200) for i in range(n // 214 + 1))[:n], size=1)
    return connection.file()


@hostile(8_000)
def unrecognised_bytewise(n: int) -> bytes:
    """Bytes that might still become a request, one by one."""
    connection = Connection().open()
    connection.send(0, request(1, client=b"x" * 32_000)[:n].ljust(n, b"\0"), size=1)
    return connection.file()


# --- datagrams ---------------------------------------------------------------------------------------------------------
@hostile(4)
def joined_fragments(n: int) -> bytes:
    """Datagrams of n * 1,000 fragments that overlap, the first one missing until the end."""

    def packets() -> Iterator[Packet]:
        when = 10**12
        for ident in range(n):
            yield when, ip(bytes(8), ident=ident, fragment=4000)
            for i in range(4000):
                when += 1
                yield when, ip(bytes(16), ident=ident, fragment=0x2000 | 4000 - i)
            yield when, ip(bytes(8), ident=ident, fragment=0x2000)

    return pcap(packets())


@hostile(10_000)
def open_fragments(n: int) -> bytes:
    """Datagrams of which only one fragment comes."""
    return pcap((10**12 + i, ip(bytes(64), struct.pack(">I", i >> 16), ident=i & 0xFFFF, fragment=0x2001)) for i in range(n))


# --- files -------------------------------------------------------------------------------------------------------------
@hostile(20_000)
def interfaces(n: int) -> bytes:
    """pcapng: interfaces, a packet in each."""
    data = tcp(1, 2, 0, 0, ACK)
    parts = [SECTION]
    for i in range(n):
        parts += [INTERFACE, packet_block(i, 10**15 + i, data)]
    return b"".join(parts)


@hostile(10_000)
def sections(n: int) -> bytes:
    """pcapng: sections, a packet in each."""
    return (SECTION + INTERFACE + packet_block(0, 10**15, tcp(1, 2, 0, 0, ACK))) * n


@hostile(10_000)
def names(n: int) -> bytes:
    """pcapng: name resolution blocks of one name each."""
    record = (block(4, struct.pack("<HHI", 1, 8, i) + b"nam\0" + struct.pack("<HH", 0, 0)) for i in range(n))
    return SECTION + INTERFACE + b"".join(record) + packet_block(0, 10**15, tcp(1, 2, 0, 0, ACK))


@hostile(10_000)
def statistics(n: int) -> bytes:
    """pcapng: interface statistics, each of another interface."""
    option = struct.pack("<HHQ", 5, 8, 1) + bytes(4)
    parts = (block(5, struct.pack("<III", i, 0, 0) + option) for i in range(n))
    return SECTION + INTERFACE + b"".join(parts) + packet_block(0, 10**15, tcp(1, 2, 0, 0, ACK))


@hostile(10_000)
def secrets_blocks(n: int) -> bytes:
    """pcapng: key logs of one line each."""
    line = b"CLIENT_RANDOM %064x %096x\n"
    parts = (block(10, struct.pack("<II", 0x544C534B, 178) + (line % (i, i)).ljust(178)) for i in range(n))
    return SECTION + INTERFACE + b"".join(parts) + packet_block(0, 10**15, tcp(1, 2, 0, 0, ACK))


@hostile(2_000)
def centuries(n: int) -> bytes:
    """Each packet of a connection a century from the one before, back and forth."""
    connection = Connection(step=0)
    for i in range(n):
        connection.when = (10**9 + (i % 2) * CENTURY) * 10**6
        connection.send(0, request(i))
        connection.send(1, response(i))
    return connection.file()


@hostile(10_000)
def times_back(n: int) -> bytes:
    """Each packet a second before the one in front."""
    return pcap(((10**6 + n - i) * 10**6, tcp(40_000 + i % 100, 9092, i, 1, ACK, b"x")) for i in range(n))


# --- records -----------------------------------------------------------------------------------------------------------
def varint(value: int) -> bytes:
    """A zigzag varint."""
    return unsigned((value << 1) ^ (value >> 63))


def unsigned(value: int) -> bytes:
    """A varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


@hostile(100_000, "--table", "records")
def tiny_records(n: int) -> bytes:
    """One Produce request with a compressed batch of n records without key or value."""
    bodies = (b"\0\0" + varint(i) + b"\1\1\0" for i in range(n))
    data = gzip.compress(b"".join(varint(len(b)) + b for b in bodies), 9)
    rest = struct.pack(">hiqqqhii", 1, n - 1, 0, 0, -1, -1, -1, n) + data
    batch = struct.pack(">qiibI", 0, 9 + len(rest), 0, 2, 0) + rest
    topic = struct.pack(">h", 1) + b"t" + struct.pack(">iii", 1, 0, len(batch)) + batch
    body = struct.pack(">hhii", -1, 1, 1000, 1) + topic
    connection = spoken()
    connection.send(0, request(3, 0, 3, body))
    connection.send(1, response(3, struct.pack(">ih", 1, 1) + b"t" + struct.pack(">iihqqi", 1, 0, 0, 0, -1, 0)))
    return connection.file()


@hostile(500)
def tiny_batches(n: int) -> bytes:
    """Fetch-like bodies of n empty partitions in a request."""
    body = struct.pack(">hii", -1, 1000, n) + (struct.pack(">h", 1) + b"t" + struct.pack(">i", 0)) * n
    connection = spoken()
    connection.send(0, request(3, 0, 2, body))
    return connection.file()


# --- many connections that speak a little -------------------------------------------------------------------------------
def greetings(n: int, first: Callable[[int], bytes], *, answer: bytes = b"", close: bool = False) -> bytes:
    """Connections of strangers, each with a handshake and its first bytes; with an answer and an end where that is said."""

    def packets() -> Iterator[Packet]:
        when = 10**12
        for i, (who, port) in enumerate(scattered(n)):
            data = first(i)
            sent, got = 1001 + len(data), 9001 + len(answer)
            steps = [
                (0, 1000, 0, SYN, b""), (1, 9000, 1001, SYN | ACK, b""), (0, 1001, 9001, PSH | ACK, data),
                *([(1, 9001, sent, PSH | ACK, answer)] if answer else []),
                *([(0, sent, got, FIN | ACK, b""), (1, got, sent + 1, FIN | ACK, b"")] if close else []),
            ]  # fmt: skip
            for side, seq, ack, flags, payload in steps:
                when += 1
                ports, ends = ((port, 9092), (who, SERVER)) if side == 0 else ((9092, port), (SERVER, who))
                yield when, tcp(*ports, seq, ack, flags, payload, *ends)

    return pcap(packets())


@hostile(10_000)
def lone_requests(n: int) -> bytes:
    """Many connections with one request each, which gets no response."""
    return greetings(n, lambda i: request(1))


@hostile(10_000)
def short_lives(n: int) -> bytes:
    """Many connections with one exchange each, which end at once."""
    return greetings(n, lambda i: request(1, client=b"c%d" % i), answer=response(1), close=True)


@hostile(10_000)
def half_requests(n: int) -> bytes:
    """Many connections that send the beginning of a request each."""
    return greetings(n, lambda i: request(1, client=b"c" * 100)[:60])


@hostile(10_000)
def other_protocols(n: int) -> bytes:
    """Many connections with the request line of another protocol each."""
    return greetings(n, lambda i: b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")


def client_hello(seed: int) -> bytes:
    """A ClientHello of TLS 1.2 with one cipher suite."""
    body = b"\x03\x03" + noise(32, seed) + b"\0\0\x02\x13\x01\x01\0"
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + struct.pack(">H", len(message)) + message


@hostile(10_000)
def client_hellos(n: int) -> bytes:
    """Many connections with a ClientHello each."""
    return greetings(n, client_hello)


@hostile(1_000)
def ports_in_use(n: int) -> bytes:
    """Each of n port pairs is opened 30 times with other numbers, in one round after the other."""
    who = list(scattered(n))
    return pcap(
        (10**12 + turn * n + i, tcp(port, 9092, turn * 0x07654321, 0, SYN, b"", address))
        for turn in range(30)
        for i, (address, port) in enumerate(who)
    )


@hostile(200_000)
def fin_flood(n: int) -> bytes:
    """FINs of connections that were never seen."""
    return pcap((10**12 + i, tcp(port, 9092, i, 7, FIN | ACK, b"", who)) for i, (who, port) in enumerate(scattered(n)))


@hostile(4_000)
def far_acks(n: int) -> bytes:
    """Acknowledgements far ahead of what was sent, each further, between requests."""
    connection = spoken()
    for i in range(n):
        connection.send(0, request(3 + i))
        connection.add(0, ACK)
        connection.next[0], old = connection.next[0] + 1_000_000 * (i % 200), connection.next[0]
        connection.add(1, ACK)
        connection.next[0] = old
        connection.send(1, response(3 + i))
    return connection.file()


@hostile(4_000)
def wraps(n: int) -> bytes:
    """Sequence numbers that leap by nearly as much as one connection may, and wrap again and again."""
    connection = spoken()
    for i in range(n):
        connection.next[0] += (1 << 28) - 100_000
        connection.send(0, request(3 + i))
        connection.add(1, ACK)
    return connection.file()


@hostile(4_000)
def overlapping_pairs(n: int) -> bytes:
    """Two connections take turns; each repeats the request before with its own."""
    pair = [Connection(port).open() for port in (40_000, 40_001)]
    packets = [p for connection in pair for p in connection.packets]
    before = b""
    for i in range(n):
        both = request(1 + i)
        for connection in pair:
            connection.packets.clear()
            connection.when = 10**12 + 100 + 4 * i
            start = connection.next[0]
            connection.add(0, PSH | ACK, before + both, seq=start - len(before))
            connection.next[0] = start + len(both)
            connection.send(1, response(1 + i))
            packets += connection.packets
        before = both
    return pcap(iter(packets))


# --- TLS ---------------------------------------------------------------------------------------------------------------
def tls_record(kind: int, body: bytes) -> bytes:
    """A record of TLS 1.2."""
    return bytes([kind]) + b"\x03\x03" + struct.pack(">H", len(body)) + body


@hostile(20_000)
def tls_tiny_records(n: int) -> bytes:
    """Behind a ClientHello application records of one byte."""
    connection = Connection().open()
    connection.send(0, client_hello(1) + tls_record(23, b"x") * n)
    return connection.file()


@hostile(20_000)
def tls_empty_records(n: int) -> bytes:
    """Behind a ClientHello handshake records without a byte, and alerts."""
    connection = Connection().open()
    connection.send(0, client_hello(1) + (tls_record(22, b"") + tls_record(21, b"\x01\x00")) * n)
    return connection.file()


@hostile(5_000)
def tls_hellos(n: int) -> bytes:
    """ClientHellos without end on one connection, each cut into two records."""
    connection = Connection().open()
    hello = client_hello(1)[5:]
    connection.send(0, client_hello(1) + (tls_record(22, hello[:9]) + tls_record(22, hello[9:])) * n)
    return connection.file()


@hostile(20_000)
def tls_turns_flood(n: int) -> bytes:
    """An encrypted connection whose sides take turns with records of one byte, as packets of their own."""
    connection = Connection().open()
    connection.send(0, client_hello(1))
    for _ in range(n):
        connection.send(0, tls_record(23, b"x" * 30))
        connection.send(1, tls_record(23, b"y" * 30))
    return connection.file()


# --- bodies ------------------------------------------------------------------------------------------------------------
def string(text: bytes) -> bytes:
    """A STRING."""
    return struct.pack(">h", len(text)) + text


def array(entries: list[bytes]) -> bytes:
    """An ARRAY."""
    return struct.pack(">i", len(entries)) + b"".join(entries)


def exchange(key: int, version: int, body: bytes, answer: bytes) -> bytes:
    """One exchange with a large body on either side."""
    connection = spoken()
    connection.send(0, request(3, key, version, body))
    connection.send(1, response(3, answer))
    return connection.file()


@hostile(20_000)
def metadata_names(n: int) -> bytes:
    """A Metadata response v1 with n topics of three letters, none with a partition."""
    topics = [struct.pack(">h", 0) + string(b"%03x" % (i & 0xFFF)) + b"\0" + array([]) for i in range(n)]
    return exchange(3, 1, array([]), array([]) + struct.pack(">i", 1) + array(topics))


@hostile(20_000)
def metadata_brokers(n: int) -> bytes:
    """A Metadata response v1 with n brokers."""
    brokers = [struct.pack(">i", i) + string(b"h%d" % i) + struct.pack(">i", 9092) + string(b"") for i in range(n)]
    return exchange(3, 1, array([]), array(brokers) + struct.pack(">i", 1) + array([]))


@hostile(20_000)
def described_configs(n: int) -> bytes:
    """A DescribeConfigs response v0 with n settings."""
    entries = [string(b"name%d" % i) + string(b"v%d" % i) + bytes(3) for i in range(n)]
    result = struct.pack(">h", 0) + string(b"") + b"\x04" + string(b"1") + array(entries)
    return exchange(32, 0, array([b"\x04" + string(b"1") + struct.pack(">i", -1)]), bytes(4) + array([result]))


@hostile(50)
def config_looks(n: int) -> bytes:
    """An IncrementalAlterConfigs request v0 with values of 30,000 characters, in each of which a credential might begin."""
    pieces = (b"/" + b":" * 29_999, b"eyJ" * 10_000, b";user=&" * 4_000, b"token " * 5_000, b"aA1+" * 7_500)
    entries = [string(b"name%d" % i) + b"\0" + string(pieces[i % len(pieces)]) for i in range(n)]
    return exchange(44, 0, array([b"\2" + string(b"t") + array(entries)]) + b"\0", bytes(4) + array([]))


@hostile(20_000)
def tagged_fields(n: int) -> bytes:
    """A request of a flexible version with n unknown tagged fields."""
    tags = b"".join(unsigned(1_000 + i) + b"\1x" for i in range(n))
    body = b"\0" + b"\4lib\0021" + unsigned(n) + tags
    connection = spoken()
    head = struct.pack(">hhih", 18, 3, 3, 1) + b"c"
    connection.send(0, struct.pack(">i", len(head) + len(body)) + head + body)
    connection.send(1, response(3, bytes(2) + b"\1" + bytes(5)))
    return connection.file()


@hostile(20_000, "--table", "records")
def record_headers(n: int) -> bytes:
    """A Produce request with one record of n headers of one letter without a value."""
    inner = b"\0\0\0\1\1" + varint(n) + b"\2h\1" * n
    rest = struct.pack(">hiqqqhii", 0, 0, 0, 0, -1, -1, -1, 1) + varint(len(inner)) + inner
    batch = struct.pack(">qiibI", 0, 9 + len(rest), 0, 2, 0) + rest
    parts = array([struct.pack(">ii", 0, len(batch)) + batch])
    body = struct.pack(">hhi", -1, 1, 1000) + array([string(b"t") + parts])
    return exchange(0, 3, body, array([string(b"t") + array([struct.pack(">ihqq", 0, 0, 0, -1)])]) + bytes(4))


@hostile(4_000)
def sasl_tokens(n: int) -> bytes:
    """SCRAM tokens without end on one connection."""
    connection = spoken()
    connection.send(0, request(3, 17, 1, string(b"SCRAM-SHA-256")))
    connection.send(1, response(3, struct.pack(">h", 0) + array([string(b"SCRAM-SHA-256")])))
    for i in range(n):
        token = b"n,,n=user%d,r=%032x" % (i, i)
        connection.send(0, request(4 + i, 36, 0, struct.pack(">i", len(token)) + token))
        connection.send(1, response(4 + i, struct.pack(">hh", 58, -1) + struct.pack(">i", len(token)) + token))
    return connection.file()


def pairs(n: int, key: int, version: int, body: Callable[[int], bytes], answer: Callable[[int], bytes]) -> bytes:
    """A connection of n exchanges."""
    connection = spoken()
    for i in range(n):
        connection.send(0, request(3 + i, key, version, body(i)))
        connection.send(1, response(3 + i, answer(i)))
    return connection.file()


@hostile(4_000)
def group_names(n: int) -> bytes:
    """Heartbeats, each of another group and member."""
    return pairs(n, 12, 0, lambda i: string(b"g%d" % i) + struct.pack(">i", i) + string(b"m%d" % i), lambda i: b"\0\x19")


@hostile(4_000)
def joins(n: int) -> bytes:
    """JoinGroup v0 of one group without end, each time another member."""

    def member(i: int) -> bytes:
        return string(b"m%d" % i)

    return pairs(
        n, 11, 0,
        lambda i: string(b"g") + struct.pack(">i", 1000) + member(i) + string(b"consumer") + array([string(b"r") + array([])]),
        lambda i: struct.pack(">hi", 0, i) + string(b"r") + member(i) + member(i) + array([member(i) + array([])]),
    )  # fmt: skip


@hostile(4_000)
def topic_names(n: int) -> bytes:
    """Produce requests v2, each to another topic, each refused."""
    return pairs(
        n, 0, 2,
        lambda i: struct.pack(">hi", 1, 1000) + array([string(b"t%d" % i) + array([struct.pack(">ii", i, 0)])]),
        lambda i: array([string(b"t%d" % i) + array([struct.pack(">ihqq", i, i % 90, -1, -1)])]) + bytes(4),
    )  # fmt: skip


@hostile(4_000)
def transactional_ids(n: int) -> bytes:
    """InitProducerId v0, each of another transaction and producer."""
    return pairs(n, 22, 0, lambda i: string(b"x%d" % i) + bytes(4), lambda i: bytes(6) + struct.pack(">qh", i, 0))


@hostile(4_000)
def negotiated_clients(n: int) -> bytes:
    """Connections of n clients that ask for versions 0 of another API each and end."""
    return greetings(n, lambda i: request(1, i % 60, 0, bytes(20), client=b"c%d" % i), answer=response(1), close=True)


# --- many of what reports keep ------------------------------------------------------------------------------------------
@hostile(10_000)
def software_names(n: int) -> bytes:
    """ApiVersions v3, each connection with another client library."""

    def first(i: int) -> bytes:
        body = b"\0" + b"".join(bytes([len(text) + 1]) + text for text in (b"lib%d" % i, b"1.%d" % i)) + b"\0"
        head = struct.pack(">hhih", 18, 3, 1, 1) + b"c\0" + body[1:]
        return struct.pack(">i", len(head)) + head

    return greetings(n, first, answer=response(1, bytes(2) + b"\1" + bytes(5)), close=True)


@hostile(50)
def offered_ranges(n: int) -> bytes:
    """ApiVersions responses v0 of 4,000 ranges each, no two alike."""

    def offer(i: int) -> bytes:
        return b"\0\0" + array([struct.pack(">hhh", key, i & 0xFF, i & 0x7FFF) for key in range(4000)])

    return pairs(n, 18, 0, lambda i: b"", offer)


@hostile(4_000)
def brokers(n: int) -> bytes:
    """One client, an exchange each with n brokers at addresses of their own."""

    def packets() -> Iterator[Packet]:
        when = 10**12
        for i in range(n):
            host = struct.pack(">I", 0x0A010000 + i)
            sent, got = request(1), response(1)
            for source, flags, seq, ack, data in (
                (0, SYN, 1000, 0, b""), (1, SYN | ACK, 9000, 1001, b""), (0, ACK | PSH, 1001, 9001, sent),
                (1, ACK | PSH, 9001, 1001 + len(sent), got),
            ):  # fmt: skip
                when += 1
                ports, ends = ((40_000, 9092), (CLIENT, host)) if source == 0 else ((9092, 40_000), (host, CLIENT))
                yield when, tcp(*ports, seq, ack, flags, data, *ends)

    return pcap(packets())


@hostile(4_000)
def leaders(n: int) -> bytes:
    """Metadata responses v1, each with another broker that leads another topic."""

    def answer(i: int) -> bytes:
        broker = struct.pack(">i", i) + string(b"h%d" % i) + struct.pack(">i", 9092) + string(b"")
        part = struct.pack(">hii", 0, 0, i) + array([struct.pack(">i", i)]) * 2
        return (
            array([broker]) + struct.pack(">i", 1) + array([struct.pack(">h", 0) + string(b"t%d" % i) + b"\0" + array([part])])
        )

    return pairs(n, 3, 1, lambda i: array([string(b"t%d" % i)]), answer)


@hostile(4_000)
def error_codes(n: int) -> bytes:
    """FindCoordinator v0, each refused with another code, of another group."""
    return pairs(
        n, 10, 0, lambda i: string(b"g%d" % i), lambda i: struct.pack(">hi", i % 30_000 - 1, -1) + string(b"") + bytes(4)
    )


@hostile(4_000)
def commits(n: int) -> bytes:
    """OffsetCommit v2, each of another group, topic and partition."""
    return pairs(
        n, 8, 2,
        lambda i: string(b"g%d" % i) + struct.pack(">i", i) + string(b"m%d" % i) + bytes(8)
        + array([string(b"t%d" % i) + array([struct.pack(">iq", i, i) + string(b"")])]),
        lambda i: array([string(b"t%d" % i) + array([struct.pack(">ih", i, 27)])]),
    )  # fmt: skip


@hostile(4_000)
def commits_of_one(n: int) -> bytes:
    """OffsetCommit v2 of one group, each of another partition, by turns ahead and back."""
    return pairs(
        n, 8, 2,
        lambda i: string(b"g") + struct.pack(">i", 1) + string(b"m") + bytes(8)
        + array([string(b"t") + array([struct.pack(">iq", i, i * 7919 % 1000) + string(b"")])]),
        lambda i: array([string(b"t") + array([struct.pack(">ih", i, 0)])]),
    )  # fmt: skip


@hostile(4_000)
def rebalances(n: int) -> bytes:
    """JoinGroup v0 by turns of as many groups as there are members."""

    def member(i: int) -> bytes:
        return string(b"m%d" % i)

    width = max(1, int(n**0.5))
    return pairs(
        n, 11, 0,
        lambda i: string(b"g%d" % (i % width)) + struct.pack(">i", 1000) + string(b"") + string(b"consumer")
        + array([string(b"r") + array([])]),
        lambda i: struct.pack(">hi", 0, i) + string(b"r") + member(i) + member(i)
        + array([member(j) + array([]) for j in range(8)]),
    )  # fmt: skip


@hostile(4_000)
def fetched_partitions(n: int) -> bytes:
    """Fetch v4, each of another partition of another topic, each out of range."""
    return pairs(
        n, 1, 4,
        lambda i: struct.pack(">iiiib", -1, 500, 1, 1 << 20, 0)
        + array([string(b"t%d" % i) + array([struct.pack(">iqi", i, i, 1 << 20)])]),
        lambda i: bytes(4) + array([string(b"t%d" % i) + array([struct.pack(">ihqqii", i, 1, -1, -1, -1, 0)])]),
    )  # fmt: skip


def batch_v2(producer: int, epoch: int, sequence: int, *, attributes: int = 0) -> bytes:
    """A record batch of one record without key or value."""
    record = varint(6) + b"\0\0\0\1\1\0"
    rest = struct.pack(">hiqqqhii", attributes, 0, 10**12, 10**12, producer, epoch, sequence, 1) + record
    return struct.pack(">qiibI", 0, 9 + len(rest), 0, 2, 0) + rest


@hostile(4_000)
def producers(n: int) -> bytes:
    """Produce v3, each by another transactional producer to another partition, that none commits."""

    def body(i: int) -> bytes:
        batch = batch_v2(i, i & 0x7FFF, i, attributes=0x10)
        parts = array([struct.pack(">ii", i, len(batch)) + batch])
        return string(b"x%d" % i) + struct.pack(">hi", -1, 1000) + array([string(b"t") + parts])

    return pairs(n, 0, 3, body, lambda i: array([string(b"t") + array([struct.pack(">ihqq", i, 0, 0, -1)])]) + bytes(4))


@hostile(4_000)
def sequences(n: int) -> bytes:
    """Produce v3 of one idempotent producer to one partition, with sequence numbers out of order."""

    def body(i: int) -> bytes:
        batch = batch_v2(1, 0, i * 7919 & 0xFFFF)
        return struct.pack(">hhi", -1, -1, 1000) + array([string(b"t") + array([struct.pack(">ii", 0, len(batch)) + batch])])

    return pairs(n, 0, 3, body, lambda i: array([string(b"t") + array([struct.pack(">ihqq", 0, 45, -1, -1)])]) + bytes(4))


@hostile(4_000)
def transaction_partitions(n: int) -> bytes:
    """AddPartitionsToTxn v0 of one transaction that adds partition after partition and never ends."""
    return pairs(
        n, 24, 0,
        lambda i: string(b"x") + struct.pack(">qh", 1, 0) + array([string(b"t%d" % i) + array([struct.pack(">i", i)])]),
        lambda i: bytes(4) + array([string(b"t%d" % i) + array([struct.pack(">ih", i, 0)])]),
    )  # fmt: skip


@hostile(4_000)
def transaction_ends(n: int) -> bytes:
    """One transactional id whose producer gets another number each time, and ends what it did not begin."""
    connection = spoken()
    for i in range(n):
        connection.send(0, request(3 + 2 * i, 22, 0, string(b"x") + bytes(4)))
        connection.send(1, response(3 + 2 * i, bytes(6) + struct.pack(">qh", i, i & 0x7FFF)))
        connection.send(0, request(4 + 2 * i, 26, 0, string(b"x") + struct.pack(">qhb", i, i & 0x7FFF, i & 1)))
        connection.send(1, response(4 + 2 * i, struct.pack(">ih", 0, 47 if i % 3 else 0)))
    return connection.file()


@hostile(4_000)
def throttles(n: int) -> bytes:
    """Heartbeats v1 each throttled for another time, much longer than the capture."""
    return pairs(
        n, 12, 1, lambda i: string(b"g") + struct.pack(">i", 1) + string(b"m"), lambda i: struct.pack(">ih", 10**6 + i, 0)
    )


@hostile(2_000)
def logins(n: int) -> bytes:
    """Connections that log in as another user each, and are refused."""

    def first(i: int) -> bytes:
        token = b"\0user%d\0secret" % i
        return request(1, 17, 1, string(b"PLAIN")) + request(2, 36, 0, struct.pack(">i", len(token)) + token)

    refused = struct.pack(">hh", 58, -1) + struct.pack(">i", 0)
    both = response(1, struct.pack(">h", 0) + array([string(b"PLAIN")])) + response(2, refused)
    return greetings(n, first, answer=both, close=True)


@hostile(4_000)
def fetch_sessions(n: int) -> bytes:
    """Fetch v7, each of which opens another session with another partition, and one that goes on with it."""

    def body(i: int) -> bytes:
        topics = array([string(b"t%d" % i) + array([struct.pack(">iqqi", i, 0, 0, 1 << 20)])]) if i % 2 == 0 else array([])
        return struct.pack(">iiiibii", -1, 500, 1, 1 << 20, 0, i // 2 * (i % 2), i % 2) + topics + array([])

    return pairs(n, 1, 7, body, lambda i: struct.pack(">ihi", 0, 0, i // 2 + 1) + array([]))


@hostile(100)
def long_client_ids(n: int) -> bytes:
    """Heartbeats of another client each, whose names have 30,000 characters."""
    connection = spoken()
    for i in range(n):
        body = string(b"g") + struct.pack(">i", i) + string(b"m")
        connection.send(0, request(3 + i, 12, 0, body, client=b"%d" % i + b"c" * 30_000))
        connection.send(1, response(3 + i, b"\0\x19"))
    return connection.file()


@hostile(100)
def long_names(n: int) -> bytes:
    """Heartbeats of another group, member and client each, whose names have 30,000 characters."""
    connection = spoken()
    for i in range(n):
        name = b"%d" % i + b"n" * 30_000
        body = string(name) + struct.pack(">i", i) + string(name)
        connection.send(0, request(3 + i, 12, 0, body, client=name))
        connection.send(1, response(3 + i, b"\0\x19"))
    return connection.file()


@hostile(2_000)
def many_names(n: int) -> bytes:
    """Heartbeats of another group, member and client each, whose names have 200 characters."""
    connection = spoken()
    for i in range(n):
        name = b"%d" % i + b"n" * 200
        connection.send(0, request(3 + i, 12, 0, string(name) + struct.pack(">i", i) + string(name), client=name))
        connection.send(1, response(3 + i, b"\0\x19"))
    return connection.file()


@hostile(100)
def long_topics(n: int) -> bytes:
    """Produce requests v2, each to another topic whose name has 30,000 characters, each refused."""
    names = [b"%d" % i + b"t" * 30_000 for i in range(n)]
    return pairs(
        n, 0, 2,
        lambda i: struct.pack(">hi", 1, 1000) + array([string(names[i]) + array([struct.pack(">ii", i, 0)])]),
        lambda i: array([string(names[i]) + array([struct.pack(">ihqq", i, 17, -1, -1)])]) + bytes(4),
    )  # fmt: skip


@hostile(2_000)
def principals(n: int) -> bytes:
    """Connections that log in as another user each, whose names have 200 characters."""

    def first(i: int) -> bytes:
        token = b"\0%d" % i + b"u" * 200 + b"\0secret"
        return request(1, 17, 1, string(b"PLAIN")) + request(2, 36, 0, struct.pack(">i", len(token)) + token)

    accepted = struct.pack(">hh", 0, -1) + struct.pack(">i", 0)
    both = response(1, struct.pack(">h", 0) + array([string(b"PLAIN")])) + response(2, accepted)
    return greetings(n, first, answer=both, close=True)


@hostile(2_000)
def protocol_turns(n: int) -> bytes:
    """One connection that speaks Kafka, HTTP and TLS by turns."""
    connection = spoken()
    for i in range(n):
        connection.send(0, request(3 + i))
        connection.send(1, response(3 + i))
        connection.send(0, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.send(1, b"HTTP/1.1 200 OK\r\n\r\n")
        connection.send(0, client_hello(i % 100))
    return connection.file()


# --- packets within packets ---------------------------------------------------------------------------------------------
def ip6(payload: bytes, following: int) -> bytes:
    """An IPv6 packet."""
    return struct.pack(">IHBB", 6 << 28, len(payload), following, 64) + bytes(15) + b"\1" + bytes(15) + b"\2" + payload


@hostile(2_000)
def extension_chains(n: int) -> bytes:
    """IPv6 packets of 1,400 bytes of extension headers."""
    chain = (b"\x3c" + bytes(7)) * 174 + b"\6" + bytes(7)
    segment = struct.pack(">HHIIBBHHH", 40_000, 9092, 1, 0, 0x50, ACK, 1000, 0, 0)
    return pcap((10**12 + i, ip6(chain + segment, 60)) for i in range(n))


@hostile(2_000)
def nested_ip(n: int) -> bytes:
    """IP in IP, 70 deep."""
    packet = tcp(40_000, 9092, 1, 0, ACK)
    for _ in range(70):
        packet = wrapped(packet)
    return pcap((10**12 + i, packet) for i in range(n))


def wrapped(packet: bytes) -> bytes:
    """An IPv4 packet in another one."""
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(packet), 0, 0, 64, 4, 0) + CLIENT + SERVER + packet


@hostile(10_000)
def open_fragments6(n: int) -> bytes:
    """IPv6 datagrams of which only one fragment comes, over an hour."""
    return pcap((10**12 + i * 10**4, ip6(struct.pack(">BBHI", 6, 0, 0x9, i) + bytes(64), 44)) for i in range(n))


@hostile(10_000)
def option_floods(n: int) -> bytes:
    """Segments with 40 bytes of options: selective acknowledgements, scales and no-ops, changing all the time."""

    def packets() -> Iterator[Packet]:
        for i in range(n):
            options = b"\3\3" + bytes([i & 255]) + b"\1" * 4 + b"\5\x1a" + struct.pack(">IIIIII", *range(i, i + 6)) + b"\1" * 7
            head = struct.pack(">HHIIBBHHH", 40_000, 9092, i, 1, 0xF0, ACK | (SYN if i % 9 == 0 else 0), 1000, 0, 0)
            yield 10**12 + i, ip(head + options + b"x")

    return pcap(packets())


# --- blocks -------------------------------------------------------------------------------------------------------------
ONE_PACKET = packet_block(0, 10**15, tcp(1, 2, 0, 0, ACK))


@hostile(100_000)
def unknown_blocks(n: int) -> bytes:
    """pcapng: blocks of unknown types without a body."""
    return SECTION + INTERFACE + b"".join(block(0x1000 + (i & 0xFFFF), b"") for i in range(n)) + ONE_PACKET


@hostile(20_000)
def comments(n: int) -> bytes:
    """pcapng: packets with a comment each."""

    def one(i: int) -> bytes:
        data, text = tcp(40_000, 9092, i, 1, ACK, b"x"), b"comment %07d" % i
        body = (
            struct.pack("<IIIII", 0, 10**15 >> 32, (10**15 + i) & 0xFFFFFFFF, len(data), len(data))
            + data
            + bytes(-len(data) % 4)
        )
        return block(6, body + struct.pack("<HH", 1, len(text)) + text + bytes(-len(text) % 4) + bytes(4))

    return SECTION + INTERFACE + b"".join(map(one, range(n)))


@hostile(100)
def many_comments(n: int) -> bytes:
    """pcapng: packets with 1,000 comments each."""
    data = tcp(40_000, 9092, 1, 1, ACK, b"x")
    head = struct.pack("<IIIII", 0, 10**15 >> 32, 10**15 & 0xFFFFFFFF, len(data), len(data)) + data + bytes(-len(data) % 4)
    options = b"".join(struct.pack("<HH", 1, 8) + b"%08d" % i for i in range(1000)) + bytes(4)
    return SECTION + INTERFACE + block(6, head + options) * n


@hostile(20_000)
def name_records(n: int) -> bytes:
    """pcapng: one block of n names, of as many addresses."""
    records = b"".join(struct.pack("<HHI", 1, 12, i) + b"n%06d\0" % i for i in range(n))
    return SECTION + INTERFACE + block(4, records + bytes(4)) + ONE_PACKET


@hostile(20_000)
def interface_names(n: int) -> bytes:
    """pcapng: interfaces with a name and a filter each; packets change from one to another."""
    parts = [SECTION]
    for i in range(n):
        text = b"interface %06d" % i
        parts.append(
            block(
                1,
                struct.pack("<HHI", RAW_IP, 0, 0)
                + struct.pack("<HH", 2, 16)
                + text
                + struct.pack("<HH", 11, 16)
                + text
                + bytes(4),
            )
        )
    parts += [packet_block(i * 7919 % n, 10**15 + i, tcp(40_000, 9092, i, 1, ACK, b"x")) for i in range(n)]
    return b"".join(parts)


@hostile(20_000)
def drop_counts(n: int) -> bytes:
    """pcapng: packets that say each how many were dropped before them, and interface statistics after each."""

    def one(i: int) -> bytes:
        data = tcp(40_000, 9092, i, 1, ACK, b"x")
        body = (
            struct.pack("<IIIII", 0, 10**15 >> 32, (10**15 + i) & 0xFFFFFFFF, len(data), len(data))
            + data
            + bytes(-len(data) % 4)
        )
        return block(6, body + struct.pack("<HHQ", 4, 8, i) + bytes(4)) + block(
            5, struct.pack("<III", 0, 0, i) + struct.pack("<HHQ", 5, 8, i) + bytes(4)
        )

    return SECTION + INTERFACE + b"".join(map(one, range(n)))


# --- TLS with keys ------------------------------------------------------------------------------------------------------
@hostile(5_000)
def tls_with_keys(n: int) -> bytes:
    """pcapng: connections of TLS 1.3 with a key log of all their secrets in front; no record is of these keys."""

    def answer(i: int) -> bytes:
        hello = b"\x03\x03" + noise(32, i + 1) + b"\0\x13\x01\0" + b"\0\x06\0\x2b\0\x02\x03\x04"
        return tls_record(22, b"\2" + len(hello).to_bytes(3, "big") + hello) + tls_record(23, bytes(100)) * 3

    flights = [answer(i) for i in range(4)]
    plain = greetings(n, lambda i: client_hello(i) + tls_record(23, bytes(60)) * 2, answer=flights[0], close=True)
    labels = (b"CLIENT_HANDSHAKE", b"SERVER_HANDSHAKE", b"CLIENT", b"SERVER")
    log = b"".join(
        b"%s_TRAFFIC_SECRET%s %s %s\n" % (label, b"" if b"HAND" in label else b"_0", noise(32, i).hex().encode(), b"0f" * 32)
        for i in range(n)
        for label in labels
    )

    def packets() -> Iterator[Packet]:
        at = 24
        while at < len(plain):
            seconds, fraction, size, _ = struct.unpack_from("<IIII", plain, at)
            yield seconds * 10**6 + fraction, plain[at + 16 : at + 16 + size]
            at += 16 + size

    return with_keys(log, packets())


def with_keys(log: bytes, packets: Iterator[Packet]) -> bytes:
    """A pcapng file with a key log in front."""
    parts = [SECTION, block(10, struct.pack("<II", 0x544C534B, len(log)) + log), INTERFACE]
    return b"".join([*parts, *(packet_block(0, when, data) for when, data in packets)])


def server_hello(version: int, suite: int) -> bytes:
    """A ServerHello, as a record."""
    extensions = b"\0\x06\0\x2b\0\x02\x03\x04" if version == 0x0304 else b""
    body = b"\x03\x03" + noise(32, 99) + b"\0" + struct.pack(">H", suite) + b"\0" + extensions
    return tls_record(22, b"\2" + len(body).to_bytes(3, "big") + body)


class Sealed:
    """A connection of TLS 1.3 whose keys a key log gives, at the first record of the client's application data."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self.aead, self.secret, self.number = AESGCM, bytes([1]) * 32, 0
        self.connection = Connection().open()
        self.connection.send(0, client_hello(1))
        self.connection.send(1, server_hello(0x0304, 0x1301))
        self.log = b"CLIENT_TRAFFIC_SECRET_0 %s %s\n" % (noise(32, 1).hex().encode(), self.secret.hex().encode())

    def expanded(self, label: bytes, size: int) -> bytes:
        """HKDF-Expand-Label of the secret."""
        full = b"tls13 " + label
        info = struct.pack(">HB", size, len(full)) + full + b"\0\1"
        return hmac.digest(self.secret, info, "sha256")[:size]

    def record(self, kind: int, data: bytes) -> bytes:
        """The next record; behind a KeyUpdate with the next keys."""
        header = b"\x17\x03\x03" + struct.pack(">H", len(data) + 17)
        nonce = (int.from_bytes(self.expanded(b"iv", 12), "big") ^ self.number).to_bytes(12, "big")
        sealed = self.aead(self.expanded(b"key", 16)).encrypt(nonce, data + bytes([kind]), header)
        self.number += 1
        if kind == 22 and data[:1] == b"\x18":
            self.secret, self.number = self.expanded(b"traffic upd", 32), 0
        return header + sealed

    def file(self) -> bytes:
        """A pcapng file of it."""
        return with_keys(self.log, iter(self.connection.packets))


@hostile(5_000)
def tls_key_updates(n: int) -> bytes:
    """TLS 1.3 with keys: KeyUpdates without end, each under the keys of the one before."""
    made = Sealed()
    made.connection.send(0, b"".join(made.record(22, b"\x18\0\0\1\0") for _ in range(n)))
    return made.file()


@hostile(5_000)
def tls_updates_and_data(n: int) -> bytes:
    """The same, between them requests in records of their own packets."""
    made = Sealed()
    for i in range(n):
        made.connection.send(0, made.record(23, request(i)))
        made.connection.send(0, made.record(22, b"\x18\0\0\1\0"))
    return made.file()


@hostile(20_000)
def tls_sealed_fragments(n: int) -> bytes:
    """TLS 1.3 with keys: a message of the handshake in records of one byte, and empty records between them."""
    made = Sealed()
    beginning = made.record(22, b"\4\xff\xff\xff")
    made.connection.send(0, beginning + b"".join(made.record(22, b"x") + made.record(23, b"") for _ in range(n)))
    return made.file()


@hostile(20_000)
def tls_sealed_alerts(n: int) -> bytes:
    """TLS 1.3 with keys: alerts without end."""
    made = Sealed()
    made.connection.send(0, b"".join(made.record(21, b"\1\x28") for _ in range(n)))
    return made.file()


@hostile(20_000)
def tls_tiny_data(n: int) -> bytes:
    """TLS 1.3 with keys: requests in records of one byte each."""
    made = Sealed()
    plain = b"".join(request(i) for i in range(n // 20 + 1))[:n]
    made.connection.send(0, b"".join(made.record(23, plain[at : at + 1]) for at in range(n)))
    return made.file()


@hostile(40_000, "--partitions")
def tls_frames_in_bits(n: int) -> bytes:
    """TLS 1.3 with keys: frames that are read as they pass, and again, in records of eight bytes each."""
    made = Sealed()
    part = noise(200_000, 1)
    body = struct.pack(">hhi", -1, 1, 1000) + array([string(b"t") + struct.pack(">iii", 1, 0, len(part)) + part])
    plain = b"".join(request(at, 0, 3, b"\xff\xff" + body[2:]) for at in range(8 * n // len(body) + 1))[: 8 * n]
    made.connection.send(0, b"".join(made.record(23, plain[at : at + 8]) for at in range(0, len(plain), 8)))
    return made.file()


@hostile(2_000)
def tls_one_random(n: int) -> bytes:
    """Connections of TLS with one client random, and a key log with as many secrets of it."""
    line = b"CLIENT_TRAFFIC_SECRET_0 %s %064x\n"
    log = b"".join(line % (noise(32, 1).hex().encode(), i) for i in range(n))
    packets: list[Packet] = []
    for i in range(n):
        connection = Connection(10_000 + i % 50_000, 10**12 + 20 * i).open()
        connection.send(0, client_hello(1))
        connection.send(1, server_hello(0x0304, 0x1301))
        connection.send(0, tls_record(23, noise(60, i)))
        packets += connection.packets
    return with_keys(log, iter(packets))


@hostile(5_000)
def tls_foreign_records(n: int) -> bytes:
    """TLS 1.3 with keys: behind a record with a hole such under other keys, whose numbers are not known."""
    made = Sealed()
    made.connection.send(0, made.record(23, request(1)) + b"\x17\x03\x03\x40\0")
    made.connection.next[0] += 0x4000
    made.connection.send(0, b"".join(b"\x17\x03\x03\0\x22" + noise(34, i) for i in range(n)))
    made.connection.add(1, ACK)
    return made.file()


@hostile(20_000)
def tls_lying_lengths(n: int) -> bytes:
    """Behind a hole headers of records of 16 KB each, five bytes apart."""
    connection = Connection().open()
    connection.send(0, client_hello(1) + tls_record(23, bytes(30)))
    connection.next[0] += 100
    connection.send(0, b"\x17\x03\x03\x40\x00" * n)
    connection.add(1, ACK)
    return connection.file()


@hostile(20_000)
def tls_lying_sealed(n: int) -> bytes:
    """The same with keys."""
    made = Sealed()
    made.connection.send(0, made.record(23, request(1)))
    made.connection.next[0] += 100
    made.connection.send(0, b"\x17\x03\x03\x40\x00" * n)
    made.connection.add(1, ACK)
    return made.file()


@hostile(20_000)
def tls_long_records(n: int) -> bytes:
    """Records that are longer than any may be, each a reason to search for the next."""
    connection = Connection().open()
    connection.send(0, client_hello(1) + b"\x17\x03\x03\xff\xff" * n)
    return connection.file()


MASTER = b"CLIENT_RANDOM %s %s\n" % (noise(32, 1).hex().encode(), b"0f" * 48)
"""A line of a key log for the first client_hello."""


@hostile(20_000)
def tls_tickets(n: int) -> bytes:
    """TLS 1.2 with keys: session tickets without end, each of which might be resumed."""
    connection = Connection().open()
    connection.send(0, client_hello(1))
    tickets = (b"\4\0\0\x0a" + struct.pack(">IHI", 0, 4, i) for i in range(n))
    connection.send(1, server_hello(0x0303, 0x009C) + b"".join(tls_record(22, ticket) for ticket in tickets))
    return with_keys(MASTER, iter(connection.packets))


@hostile(5_000)
def tls_renegotiations(n: int) -> bytes:
    """TLS 1.2 with keys: ChangeCipherSpecs without end, each under the keys that the one before began."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    seed, block_ = b"key expansion" + noise(32, 99) + noise(32, 1), b""
    step = seed
    while len(block_) < 40:
        step = hmac.digest(b"\x0f" * 48, step, "sha256")
        block_ += hmac.digest(b"\x0f" * 48, step + seed, "sha256")
    sealed = AESGCM(block_[:16]).encrypt(block_[32:36] + bytes(8), b"\1", bytes(8) + b"\x14\x03\x03\0\1")
    connection = Connection().open()
    connection.send(0, client_hello(1))
    connection.send(1, server_hello(0x0303, 0x009C))
    connection.send(0, tls_record(20, b"\1") + tls_record(20, bytes(8) + sealed) * n)
    return with_keys(MASTER, iter(connection.packets))


# --- more of blocks, headers and options --------------------------------------------------------------------------------
def enhanced(interface: int, when: int, data: bytes, options: bytes) -> bytes:
    """An enhanced packet block with options, the last of which need not be the end of options."""
    head = struct.pack("<IIIII", interface, when >> 32, when & 0xFFFFFFFF, len(data), len(data))
    return block(6, head + data + bytes(-len(data) % 4) + options)


@hostile(20_000)
def lying_options(n: int) -> bytes:
    """pcapng: packets with an option that says to be longer than its block, by turns with one of no length."""
    lies = (struct.pack("<HH", 1, 0xFFFF), struct.pack("<HH", 4, 0), struct.pack("<HH", 2, 0xFFFC) + b"abcd")
    parts = (enhanced(0, 10**15 + i, tcp(40_000, 9092, i, 1, ACK, b"x"), lies[i % 3]) for i in range(n))
    return SECTION + INTERFACE + b"".join(parts)


@hostile(20_000)
def resolutions(n: int) -> bytes:
    """pcapng: interfaces of another resolution and offset of time each, and a packet in each."""
    parts = [SECTION]
    for i in range(n):
        options = struct.pack("<HHB3x", 9, 1, i & 0xFF) + struct.pack("<HHq", 14, 8, (i * 7919 << 20) - (1 << 62)) + bytes(4)
        parts.append(block(1, struct.pack("<HHI", RAW_IP, 0, 0) + options))
        parts.append(packet_block(i, 10**15 + i, tcp(40_000, 9092, i, 1, ACK, b"x")))
    return b"".join(parts)


@hostile(20_000)
def foreign_interfaces(n: int) -> bytes:
    """pcapng: packets of interfaces that were not described, and packets in blocks without a time."""
    data = tcp(40_000, 9092, 1, 1, ACK, b"x")
    simple = block(3, struct.pack("<I", len(data)) + data)
    return SECTION + INTERFACE + b"".join(packet_block(1 + i, 10**15 + i, data) + simple for i in range(n))


@hostile(10_000)
def turned_sections(n: int) -> bytes:
    """pcapng: sections of both byte orders by turns, with names of their own for the same address."""
    big = struct.pack(">IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    return b"".join(
        big + SECTION + INTERFACE + block(4, struct.pack("<HHI", 1, 12, 7) + b"n%06d\0" % i + bytes(4)) + ONE_PACKET
        for i in range(n)
    )


@hostile(20_000)
def ip_options(n: int) -> bytes:
    """Fragments with 40 bytes of IP options each, whose lengths lie."""

    def packets() -> Iterator[Packet]:
        for i in range(n):
            options = bytes([7, i & 0xFF, 4]) + noise(37, i)
            head = struct.pack(">BBHHHBBH", 0x4F, 0, 60 + 16, i >> 1 & 0xFFFF, (0x2000, 0x0002)[i & 1], 64, 6, 0)
            yield 10**12 + i, head + CLIENT + SERVER + options + struct.pack(">HHIIHH", 40_000, 9092, i, 1, 0x5010, 1000)

    return pcap(packets())


@hostile(20_000)
def lying_tcp_options(n: int) -> bytes:
    """Segments whose options have the length 0, 1 or 255."""

    def packets() -> Iterator[Packet]:
        for i in range(n):
            options = bytes([i & 0xFF, (0, 1, 255)[i % 3]]) * 20
            flags = SYN if i % 5 == 0 else ACK
            yield 10**12 + i, ip(struct.pack(">HHIIBBHHH", 40_000, 9092, i, 1, 0xF0, flags, 1000, 0, 0) + options + b"x")

    return pcap(packets())


@hostile(20_000)
def sack_floods(n: int) -> bytes:
    """Acknowledgements with four blocks of SACK each, of bytes that never came, came twice, or are anywhere."""

    def packets() -> Iterator[Packet]:
        connection = spoken()
        yield from connection.packets
        (seq, ack), rng = connection.next, random.Random(1)
        for i in range(n):
            edges = [(0, rng.getrandbits(32), seq + rng.randrange(-2000, 1 << 20))[i % 3] for _ in range(4)]
            blocks = b"".join(struct.pack(">II", at & 0xFFFFFFFF, at + 1000 & 0xFFFFFFFF) for at in edges)
            head = struct.pack(">HHIIBBHHH", 9092, 40_000, ack, seq, 0xE0, ACK, 1000, 0, 0)
            yield connection.when + i, ip(head + b"\1\1\5\x22" + blocks, SERVER, CLIENT)

    return pcap(packets())


@hostile(10_000)
def keys_of_tunnels(n: int) -> bytes:
    """The same SYN in another VXLAN network each."""

    def packets() -> Iterator[Packet]:
        inner = bytes(12) + b"\x08\0" + tcp(40_000, 9092, 1, 0, SYN)
        for i in range(n):
            body = struct.pack(">HHHHII", 1, 4789, 16 + len(inner), 0, 0x08000000, i << 8) + inner
            head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, 17, 0)
            yield 10**12 + i, head + CLIENT + SERVER + body

    return pcap(packets())


# --- more of handshakes ---------------------------------------------------------------------------------------------------
@hostile(200)
def tls_certificates(n: int) -> bytes:
    """Certificate messages of TLS 1.2 without end, of 1,000 certificates of ten bytes each."""
    entries = b"".join(b"\0\0\x0a" + noise(10, i) for i in range(1000))
    body = len(entries).to_bytes(3, "big") + entries
    message = b"\x0b" + len(body).to_bytes(3, "big") + body
    connection = Connection().open()
    connection.send(0, client_hello(1))
    connection.send(1, server_hello(0x0303, 0x009C) + tls_record(22, message) * n)
    return connection.file()


def wide_hello(seed: int) -> bytes:
    """A ClientHello of 2,000 cipher suites, 1,000 extensions, and a server name of 200 characters."""
    name = b"%08d" % seed + b"n" * 192
    names = b"\0" + struct.pack(">H", len(name)) + name
    extensions = struct.pack(">HHH", 0, len(names) + 2, len(names)) + names
    extensions += b"".join(struct.pack(">HH", 1000 + i, 0) for i in range(1000))
    suites = struct.pack(">2000H", *(seed * 7 + i & 0xFFFF for i in range(2000)))
    body = b"\x03\x03" + noise(32, seed) + b"\0" + struct.pack(">H", len(suites)) + suites + b"\x01\0"
    body += struct.pack(">H", len(extensions)) + extensions
    return tls_record(22, b"\x01" + len(body).to_bytes(3, "big") + body)


@hostile(500)
def tls_wide_hellos(n: int) -> bytes:
    """Connections whose ClientHellos have 2,000 suites and 1,000 extensions each, no two alike."""
    return greetings(n, wide_hello, close=True)


@hostile(20_000)
def tls_plain_alerts(n: int) -> bytes:
    """Alerts and ChangeCipherSpecs by turns, in front of any key."""
    connection = Connection().open()
    connection.send(
        0, client_hello(1) + b"".join(tls_record(21, bytes([2, i & 0xFF])) + tls_record(20, b"\1") for i in range(n))
    )
    return connection.file()


@hostile(2_000)
def tls_half_records(n: int) -> bytes:
    """Connections of TLS each of which holds 14 KB of a record whose end never comes."""
    return greetings(n, lambda i: client_hello(i) + b"\x17\x03\x03\x40\0" + bytes(14_000))


# --- more of frames -------------------------------------------------------------------------------------------------------
@hostile(20_000)
def empty_frames(n: int) -> bytes:
    """Frames of the lengths 0 to 7, too short for any header."""
    connection = spoken()
    connection.send(0, b"".join(struct.pack(">i", i & 7) + bytes(i & 7) for i in range(n)))
    return connection.file()


@hostile(4_000)
def announced_frames(n: int) -> bytes:
    """Connections each of which announces a Produce request of half a gigabyte."""

    def first(i: int) -> bytes:
        head = struct.pack(">hhih", 0, 3, 1, 1) + b"c" + struct.pack(">hhii", -1, 1, 1000, 1)
        return request(1) + struct.pack(">i", 500 << 20) + head + bytes(400)

    return greetings(n, first, answer=response(1))


@hostile(4_000)
def unknown_apis(n: int) -> bytes:
    """Requests of APIs and versions that do not exist, each answered."""
    return pairs(n, 99, 9, lambda i: noise(50, i), lambda i: noise(50, n + i))


# --- more of records ------------------------------------------------------------------------------------------------------
def produced(n: int, records: Callable[[int], bytes]) -> bytes:
    """Produce requests v3 with this records field."""

    def body(i: int) -> bytes:
        data = records(i)
        return struct.pack(">hhi", -1, 1, 1000) + array([string(b"t") + array([struct.pack(">ii", 0, len(data)) + data])])

    return pairs(n, 0, 3, body, lambda i: array([string(b"t") + array([struct.pack(">ihqq", 0, 0, 0, -1)])]) + bytes(4))


@hostile(2_000, "--table", "records")
def lying_counts(n: int) -> bytes:
    """Batches of two thousand million records, of which there are none, with lengths and offsets that lie too."""

    def records(i: int) -> bytes:
        rest = struct.pack(">hiqqqhii", 0, 0x7FFFFFFF, -1, 1 << 62, -1, -1, -1, 0x7FFFFFFF) + varint(-1) * 20
        return struct.pack(">qiibI", (1 << 63) - 1 - i, 9 + len(rest), 0, 2, 0) + rest

    return produced(n, records)


@hostile(50, "--table", "records")
def wrapped_bombs(n: int) -> bytes:
    """Messages of format 1 in a compressed one, each of which inflates to 15 MB of such messages of no length."""
    inner = struct.pack(">qiIbbqii", 0, 22, 0, 1, 0, 0, -1, -1) * 400_000
    data = gzip.compress(inner, 9)
    wrapper = struct.pack(">IbbqiI", 0, 1, 1, 0, -1, len(data)) + data
    whole = struct.pack(">qi", 0, len(wrapper)) + wrapper
    return produced(n, lambda i: whole)


@hostile(100_000)
def wrapped_messages(n: int) -> bytes:
    """A Produce request with compressed messages of format 1 around n in all, 100,000 of a byte each in one of them."""
    data = gzip.compress(struct.pack(">qiIbbqiic", 0, 23, 0, 1, 0, 0, -1, 1, b"v") * 100_000, 9)
    wrapper = struct.pack(">IbbqiI", 0, 1, 1, 0, -1, len(data)) + data
    return produced(1, lambda i: (struct.pack(">qi", 9, len(wrapper)) + wrapper) * (n // 100_000))


@hostile(4_000, "--table", "records")
def tiny_sets(n: int) -> bytes:
    """Produce requests with fifty batches of one record each, every one of another producer."""
    return produced(n, lambda i: b"".join(batch_v2(50 * i + j, 0, 0) for j in range(50)))


# --- blobs of the consumer protocol ---------------------------------------------------------------------------------------
def member_blob(entries: list[bytes]) -> bytes:
    """A subscription or an assignment of version 0, as BYTES."""
    blob = struct.pack(">h", 0) + array(entries) + struct.pack(">i", -1)
    return struct.pack(">i", len(blob)) + blob


@hostile(100)
def subscriptions(n: int) -> bytes:
    """JoinGroup v0 whose member subscribes to 1,000 topics, no two alike."""
    return pairs(
        n, 11, 0,
        lambda i: string(b"g") + struct.pack(">i", 1000) + string(b"m%d" % i) + string(b"consumer")
        + array([string(b"r") + member_blob([string(b"t%d" % (1000 * i + j)) for j in range(1000)])]),
        lambda i: struct.pack(">hi", 0, i) + string(b"r") + string(b"m%d" % i) * 2
        + array([string(b"m%d" % i) + member_blob([string(b"t%d" % (1000 * i + j)) for j in range(1000)])]),
    )  # fmt: skip


@hostile(100)
def assignments(n: int) -> bytes:
    """SyncGroup v0 that gives 100 members 100 partitions each, in another order each time."""

    def blob(i: int) -> bytes:
        return member_blob([string(b"t%d" % (i % 7)) + array([struct.pack(">i", (i * j) & 0x7FFF) for j in range(100)])])

    return pairs(
        n, 14, 0,
        lambda i: string(b"g") + struct.pack(">i", i) + string(b"m0")
        + array([string(b"m%d" % j) + blob(i + j) for j in range(100)]),
        lambda i: b"\0\0" + blob(i),
    )  # fmt: skip


@hostile(2_000)
def lying_blobs(n: int) -> bytes:
    """SyncGroup v0 whose assignments claim two thousand million topics, or are cut."""
    lies = (struct.pack(">hi", 0, 0x7FFFFFFF), struct.pack(">hi", 0, -2), b"\0", struct.pack(">hih", 3, 1, 0x7FFF) + b"t")

    def blob(i: int) -> bytes:
        return struct.pack(">i", len(lies[i % 4])) + lies[i % 4]

    return pairs(
        n, 14, 0,
        lambda i: string(b"g%d" % i) + struct.pack(">i", i) + string(b"m")
        + array([string(b"m") + blob(i + j) for j in range(9)]),
        lambda i: b"\0\0" + blob(i),
    )  # fmt: skip


@hostile(100)
def described_groups(n: int) -> bytes:
    """DescribeGroups v0 with 200 members each, no two alike."""

    def member(i: int) -> bytes:
        name = string(b"m%d" % i)
        return name * 2 + string(b"/10.0.0.1") + member_blob([name]) + member_blob([name + array([struct.pack(">i", i)])])

    return pairs(
        n, 15, 0,
        lambda i: array([string(b"g%d" % i)]),
        lambda i: array([b"\0\0" + string(b"g%d" % i) + string(b"Stable") + string(b"consumer") + string(b"r")
                         + array([member(200 * i + j) for j in range(200)])]),
    )  # fmt: skip


# --- pairs: what reports compare with each other --------------------------------------------------------------------------
def produced_to(topic: bytes, partition: int, transactional: bytes = b"", producer: int = -1) -> bytes:
    """A Produce request v3 of one record."""
    batch = batch_v2(producer, 0, 0, attributes=0x10 if transactional else 0)
    parts = array([struct.pack(">ii", partition, len(batch)) + batch])
    name = string(transactional) if transactional else struct.pack(">h", -1)
    return name + struct.pack(">hi", -1, 1000) + array([string(topic) + parts])


def taken(topic: bytes, partition: int, error: int = 0) -> bytes:
    """Its response."""
    return array([string(topic) + array([struct.pack(">ihqq", partition, error, 0, -1)])]) + bytes(4)


def fetch_of(topic: bytes, partition: int, isolation: int = 0) -> bytes:
    """A Fetch request v4."""
    part = array([struct.pack(">iqi", partition, 0, 1 << 20)])
    return struct.pack(">iiiib", -1, 500, 1, 1 << 20, isolation) + array([string(topic) + part])


def fetched(topic: bytes, partition: int, high: int, stable: int) -> bytes:
    """Its response, without records."""
    return bytes(4) + array([string(topic) + array([struct.pack(">ihqqii", partition, 0, high, stable, -1, 0)])])


class Calls:
    """Exchanges one behind the other on one connection, some time apart."""

    def __init__(self, connection: Connection | None = None) -> None:
        self.connection, self.number = spoken() if connection is None else connection, 2

    def call(self, key: int, version: int, body: bytes, answer: bytes, client: bytes = b"client") -> None:
        """An exchange."""
        self.number += 1
        self.connection.send(0, request(self.number, key, version, body, client))
        self.connection.send(1, response(self.number, answer))


@hostile(2_000)
def leader_turns(n: int) -> bytes:
    """Produce requests for one partition, by turns refused as their broker leads it no more and taken, Metadata in between."""
    calls = Calls()
    for _ in range(n):
        calls.call(0, 3, produced_to(b"t", 0), taken(b"t", 0, 6))
        calls.call(3, 1, array([]), array([]) + struct.pack(">i", 1) + array([]))
        calls.call(0, 3, produced_to(b"t", 0), taken(b"t", 0))
    return calls.connection.file()


@hostile(1_000)
def commits_and_ends(n: int) -> bytes:
    """Groups that commit offsets of one partition three times each, over seconds; Fetch responses that say where it ends."""
    calls = Calls()
    for turn in range(3):
        calls.connection.when += 4 * SECOND // 1000
        for i in range(n):
            offset = array([string(b"t") + array([struct.pack(">iq", 0, turn) + string(b"")])])
            who = string(b"g%d" % i) + struct.pack(">i", 1) + string(b"m") + bytes(8)
            calls.call(8, 2, who + offset, array([string(b"t") + array([struct.pack(">ih", 0, 0)])]))
            calls.call(1, 4, fetch_of(b"t", 0), fetched(b"t", 0, 1000 * turn + i, 0))
    return calls.connection.file()


@hostile(500)
def groups_that_begin_again(n: int) -> bytes:
    """As many groups as Fetch responses with records, on three connections: each gets one offset of one partition each time."""
    packets: list[Packet] = []
    records = batch_v2(-1, 0, 0)
    part = struct.pack(">ihqqii", 0, 0, 1000, 1000, -1, len(records)) + records
    for turn in range(3):
        calls = Calls(Connection(40_000 + turn, 10**12 + turn * 10**9).open())
        for i in range(n):
            offset = array([string(b"t") + array([struct.pack(">iq", 0, 0) + string(b"") + bytes(2)])])
            calls.call(9, 1, string(b"g%d" % i) + array([string(b"t") + array([bytes(4)])]), offset)
            calls.call(1, 4, fetch_of(b"t", 0), bytes(4) + array([string(b"t") + array([part])]))
        packets += calls.connection.packets
    return pcap(iter(packets))


@hostile(1_000)
def standing_offsets(n: int) -> bytes:
    """Transactional ids that write to one partition, whose last stable offset stands at as many offsets, while one is open."""
    calls = Calls()
    names = array([string(b"t") + array([struct.pack(">i", 0)])])
    calls.call(24, 0, string(b"x") + struct.pack(">qh", 1, 0) + names, bytes(4) + array([string(b"t") + array([bytes(6)])]))
    for i in range(n):
        calls.call(0, 3, produced_to(b"t", 0, b"x%d" % i, i), taken(b"t", 0))
        for _ in range(2):
            calls.call(1, 4, fetch_of(b"t", 0, 1), fetched(b"t", 0, 1 << 40, i))
    calls.connection.when += 9 * SECOND // 1000
    calls.call(26, 0, string(b"x") + struct.pack(">qhb", 1, 0, 1), bytes(6))
    return calls.connection.file()


@hostile(4_000)
def refused_hellos(n: int) -> bytes:
    """ClientHellos of strangers, each answered by an alert."""
    return greetings(n, client_hello, answer=tls_record(21, b"\2\x28"), close=True)


@hostile(300)
def busy_brokers(n: int) -> bytes:
    """As many brokers, each of which one client asks often enough to be compared with the others."""
    packets: list[Packet] = []
    for i in range(n):
        calls = Calls(Connection(when=10**12 + i * 1000).open())
        for _ in range(25):
            calls.call(3, 1, array([]), array([]) + struct.pack(">i", 1) + array([]))
        packets += [(when, moved(data, struct.pack(">I", 0x0A010000 + i))) for when, data in calls.connection.packets]
    return pcap(iter(sorted(packets)))


def moved(data: bytes, host: bytes, instead: bytes = SERVER) -> bytes:
    """A packet of a `Connection`, to or from another server or client."""
    return data[:16] + host + data[20:] if data[16:20] == instead else data[:12] + host + data[16:]


@hostile(1_000)
def idle_ends(n: int) -> bytes:
    """Connections of one client that the server closes when they were idle for seconds, and as many that were busy."""
    packets: list[Packet] = []
    for i in range(2 * n):
        calls = Calls(Connection(10_000 + i, 10**12 + i * 400_000).open())
        calls.call(3, 1, array([]), array([]) + struct.pack(">i", 1) + array([]))
        calls.connection.when += 2 * SECOND // 1000 if i % 2 else 0
        calls.connection.add(1, FIN | ACK)
        calls.connection.add(0, FIN | ACK)
        packets += calls.connection.packets
    return pcap(iter(sorted(packets)))


@hostile(2_000)
def dead_listeners(n: int) -> bytes:
    """A Metadata response with as many brokers, each of which refuses, and as many servers that it does not name."""
    hosts = [struct.pack(">I", 0x0A010000 + i) for i in range(n)]
    listed = [
        struct.pack(">i", i) + string(b"%d.%d.%d.%d" % tuple(host)) + struct.pack(">i", 9092) + string(b"")
        for i, host in enumerate(hosts)
    ]
    calls = Calls()
    calls.call(3, 1, array([]), array(listed) + struct.pack(">i", 1) + array([]))
    packets = calls.connection.packets
    for i, host in enumerate(hosts):
        for port in (50_000, 50_001):
            packets.append((10**12 + 10**6 + 4 * i, tcp(port, 9092, 1, 0, SYN, b"", CLIENT, host)))
            packets.append((10**12 + 10**6 + 4 * i + 1, tcp(9092, port, 0, 2, RST | ACK, b"", host, CLIENT)))
        other = Calls(Connection(40_000, 10**12 + 2 * 10**6 + 100 * i).open())
        other.call(3, 1, array([]), array([]) + struct.pack(">i", 1) + array([]), b"c%d" % i)
        packets += [(when, moved(data, struct.pack(">I", 0x0A800000 + i))) for when, data in other.connection.packets]
    return pcap(iter(sorted(packets)))


@hostile(2_000)
def principals_of_one_host(n: int) -> bytes:
    """Connections of one host and client id that name their software and log in as another user each; others name nothing."""
    head = struct.pack(">hhih", 18, 3, 1, 1) + b"c\0" + b"\4lib" + b"\0021\0"
    version = struct.pack(">i", len(head)) + head
    packets: list[Packet] = []
    for i in range(n):
        token = b"\0user%d\0secret" % i
        connection = Connection(10_000 + i, 10**12 + i * 1000).open()
        calls = Calls(connection)
        if i % 2:
            connection.send(0, version)
            connection.send(1, response(1, bytes(2) + b"\1" + bytes(5)))
            calls.call(17, 1, string(b"PLAIN"), struct.pack(">h", 0) + array([string(b"PLAIN")]), b"c")
            calls.call(36, 0, struct.pack(">i", len(token)) + token, struct.pack(">hhi", 0, -1, 0), b"c")
        calls.call(3, 1, array([]), array([]) + struct.pack(">i", 1) + array([]), b"c")
        packets += connection.packets
    return pcap(iter(sorted(packets)))


@hostile(1_000)
def generations(n: int) -> bytes:
    """Generations of one group, by turns one whose member gets its response at once and one whose member waits to the end."""
    calls, other = Calls(), Calls(Connection(40_001).open())

    def join(i: int) -> tuple[bytes, bytes]:
        member = string(b"m%d" % i)
        body = string(b"g") + struct.pack(">i", 1000) + member + string(b"consumer") + array([string(b"r") + array([])])
        return body, struct.pack(">hi", 0, i + 1) + string(b"r") + member + member + array([])

    late: list[bytes] = []
    for i in range(n):
        body, answer = join(i)
        if i % 2:
            calls.call(11, 0, body, answer)
            other.connection.when = calls.connection.when
        else:
            other.connection.send(0, request(100 + i, 11, 0, body))
            late.append(response(100 + i, answer))
            calls.connection.when = other.connection.when
    for answer in late:
        other.connection.send(1, answer)
    return pcap(iter(sorted(calls.connection.packets + other.connection.packets)))


@hostile(1_000)
def waiting_members(n: int) -> bytes:
    """ConsumerGroupHeartbeat v0: one member joins again and again and gets no partition."""
    body = b"\0\2g\2m" + struct.pack(">i", 0) + b"\0\0" + struct.pack(">i", 1000) + b"\2\2t\0\0\0"
    calls = Calls()
    for i in range(n):
        calls.call(68, 0, body, b"\0" + bytes(6) + b"\0\2m" + struct.pack(">iib", i + 1, 1000, -1) + b"\0")
    return calls.connection.file()


@hostile(1_000)
def open_transactions(n: int) -> bytes:
    """Transactions of one transactional id by as many producers, all open before the first one ends."""
    calls = Calls()
    names = array([string(b"t") + array([struct.pack(">i", 0)])])
    for i in range(n):
        producer = string(b"x") + struct.pack(">qh", i, 0)
        calls.call(24, 0, producer + names, bytes(4) + array([string(b"t") + array([bytes(6)])]))
    for i in range(n):
        calls.call(26, 0, string(b"x") + struct.pack(">qhb", i, 0, 1), bytes(6))
    return calls.connection.file()


@hostile(1_000)
def groups_of_one_client(n: int) -> bytes:
    """As many groups as partitions, all of one client."""
    calls = Calls()
    for i in range(n):
        member = string(b"m%d" % i)
        body = string(b"g%d" % i) + struct.pack(">i", 1000) + member + string(b"consumer") + array([string(b"r") + array([])])
        calls.call(11, 0, body, struct.pack(">hi", 0, 1) + string(b"r") + member + member + array([]))
        calls.call(1, 4, fetch_of(b"t", i), fetched(b"t", i, 5, 5))
    return calls.connection.file()


@hostile(10_000)
def wide_transactions(n: int) -> bytes:
    """A transaction that adds 2,000 partitions at a time, no two alike, and sends nothing to 1,000 of them."""
    calls = Calls()
    for i in range((n + 99) // 100):
        new = range(2000 * i, 2000 * i + 2000)
        added, errors = array([struct.pack(">i", j) for j in new]), array([struct.pack(">ih", j, 0) for j in new])
        calls.call(
            24, 0, string(b"x") + struct.pack(">qh", 1, 0) + array([string(b"t") + added]),
            bytes(4) + array([string(b"t") + errors]),
        )  # fmt: skip
        parts = array([struct.pack(">ii", j, 0) for j in new[:1000]])
        answers = array([struct.pack(">ihqq", j, 0, 0, -1) for j in new[:1000]])
        calls.call(
            0, 3, string(b"x") + struct.pack(">hi", -1, 1000) + array([string(b"t") + parts]),
            array([string(b"t") + answers]) + bytes(4),
        )  # fmt: skip
    return calls.connection.file()


# --- more of versions ---------------------------------------------------------------------------------------------------
def reported(nodes: Sequence[tuple[int, bytes, int]], cluster: bytes = b"C") -> bytes:
    """A Metadata response v2."""
    listed = (struct.pack(">i", node) + string(host) + struct.pack(">i", port) + string(b"") for node, host, port in nodes)
    return array(list(listed)) + string(cluster) + struct.pack(">i", 1) + array([])


OFFERED = struct.pack(">h", 0) + array([struct.pack(">hhh", key, 0, 9) for key in (0, 1, 3, 18)])
"""An ApiVersions response v0."""


def host_of(i: int) -> bytes:
    """An address of its own."""
    return struct.pack(">I", 0x0A020000 + i)


@hostile(500)
def programs_of_one_id(n: int) -> bytes:
    """Hosts with one client id, which name no software; each sends an API in a version that no other sends."""
    packets: list[Packet] = []
    for i in range(n):
        calls = Calls(Connection(40_000, 10**12 + 1000 * i).open())
        calls.call(3, 1, array([]), array([]) + struct.pack(">i", 1) + array([]))
        calls.call(12, i, bytes(8), bytes(8))
        packets += [(when, moved(data, host_of(i), CLIENT)) for when, data in calls.connection.packets]
    return pcap(iter(packets))


@hostile(500)
def servers_without_offers(n: int) -> bytes:
    """Brokers of a cluster that offer versions, and as many that do not and close each connection at a request."""
    packets: list[Packet] = []
    for i in range(2 * n):
        calls = Calls(Connection(40_000, 10**12 + 1000 * i).open())
        if i < n:
            calls.call(18, 0, b"", OFFERED)
        calls.call(3, 2, array([]), reported([(i, b"b%d" % i, 9092)]))
        if i >= n:
            calls.connection.send(0, request(9, 0, 3, produced_to(b"t", 0)))
            calls.connection.add(1, FIN | ACK)
            calls.connection.add(0, FIN | ACK)
        packets += [(when, moved(data, host_of(i))) for when, data in calls.connection.packets]
    return pcap(iter(packets))


@hostile(500)
def claiming_servers(n: int) -> bytes:
    """Servers each of which is the broker of the same name by its own list, in a cluster of its own."""
    packets: list[Packet] = []
    for i in range(n):
        calls = Calls(Connection(40_000, 10**12 + 1000 * i).open())
        calls.call(18, 0, b"", OFFERED)
        calls.call(3, 2, array([]), reported([(1, b"kafka", 9092)], b"C%d" % i))
        packets += [(when, moved(data, host_of(i))) for when, data in calls.connection.packets]
    return pcap(iter(packets))


@hostile(500)
def useless_lists(n: int) -> bytes:
    """A list of loopback brokers, as many connections of one client that request it again, and other ports that refuse."""
    packets: list[Packet] = []
    for i in range(n):
        calls = Calls(Connection(10_000 + i, 10**12 + 1000 * i).open())
        for turn in range(6):
            nodes = [] if i or turn else [(j, b"127.0.0.1", 10_000 + j) for j in range(n)]
            calls.call(3, 2, array([]), reported(nodes))
        packets += calls.connection.packets
        packets.append((10**12 + 1000 * i + 500, tcp(9, 10_000 + n + i, 1, 0, SYN)))
        packets.append((10**12 + 1000 * i + 501, tcp(10_000 + n + i, 9, 0, 2, RST | ACK, b"", SERVER, CLIENT)))
    return pcap(iter(packets))


@hostile(500)
def refused_beside(n: int) -> bytes:
    """A machine that serves one connection after the other, and then refuses as many of its brokers' ports."""
    packets: list[Packet] = []
    for i in range(n):
        calls = Calls(Connection(10_000 + i, 10**12 + 1000 * i).open())
        calls.call(3, 2, array([]), reported([] if i else [(j, b"10.0.0.2", 10_000 + j) for j in range(n)]))
        packets += calls.connection.packets
    for i in range(n):
        packets.append((2 * 10**12 + 2 * i, tcp(9, 10_000 + i, 1, 0, SYN)))
        packets.append((2 * 10**12 + 2 * i + 1, tcp(10_000 + i, 9, 0, 2, RST | ACK, b"", SERVER, CLIENT)))
    return pcap(iter(packets))


@hostile(400)
def shared_client_ids(n: int) -> bytes:
    """Connections each of which has all of the same client ids, and no two of which are alike."""
    packets: list[Packet] = []
    for i in range(70):
        calls = Calls(Connection(10_000 + i, 10**12 + 2000 * n * i).open())
        for j in range(n // 5):
            calls.call(18, 0, b"", bytes(6), b"c%d" % j)
        calls.call(12, i, bytes(8), bytes(8), b"c0")
        packets += calls.connection.packets
    return pcap(iter(packets))


# --- what facts of the capture and records keep -----------------------------------------------------------------------------
TAGS = b"\0"
"""No tagged fields."""


def compact(text: bytes) -> bytes:
    """A COMPACT_STRING."""
    return unsigned(len(text) + 1) + text


def compact_array(entries: list[bytes]) -> bytes:
    """A COMPACT_ARRAY."""
    return unsigned(len(entries) + 1) + b"".join(entries)


class FlexibleCalls(Calls):
    """Exchanges of flexible versions."""

    def call(self, key: int, version: int, body: bytes, answer: bytes, client: bytes = b"client") -> None:
        """An exchange, whose headers have tagged fields."""
        self.number += 1
        head = struct.pack(">hhih", key, version, self.number, len(client)) + client + TAGS
        self.connection.send(0, struct.pack(">i", len(head) + len(body)) + head + body)
        self.connection.send(1, struct.pack(">ii", 5 + len(answer), self.number) + TAGS + answer)


def packed_batch(data: bytes, codec: int, count: int = 1) -> bytes:
    """A batch of magic 2 with compressed records."""
    rest = struct.pack(">hiqqqhii", codec, count - 1, 0, 0, -1, -1, -1, count) + data
    return struct.pack(">qiibI", 0, 9 + len(rest), 0, 2, 0) + rest


@hostile(20_000, "--table", "records")
def gzip_members(n: int) -> bytes:
    """A Produce request with a batch of n empty gzip members."""
    batch = packed_batch(gzip.compress(b"", mtime=0) * n, 1)
    return produced(1, lambda _i: batch)


@hostile(100_000, "--table", "records")
def lz4_blocks(n: int) -> bytes:
    """A Produce request with a batch of n linked lz4 blocks of one byte, each of up to 4 MB as it says."""
    batch = packed_batch(b"\x04\x22\x4d\x18\x40\x70\0" + (struct.pack("<I", 2) + b"\x10x") * n + bytes(4), 3)
    return produced(1, lambda _i: batch)


NO_TOPICS = bytes(4) + compact_array([]) + compact(b"c") + struct.pack(">i", 1) + compact_array([]) + TAGS
"""A Metadata response v12 without brokers and topics."""


@hostile(2_000)
def halved_topics(n: int) -> bytes:
    """A Metadata request v12 with n topics by name and n others by id, by turns."""
    calls = FlexibleCalls()
    halves = [
        entry
        for i in range(n)
        for entry in (bytes(16) + compact(b"t%d" % i) + TAGS, struct.pack(">QQ", 9, i + 5) + b"\0" + TAGS)
    ]
    calls.call(3, 12, compact_array(halves) + b"\0\0" + TAGS, NO_TOPICS)
    return calls.connection.file()


@hostile(500_000)
def one_letter_names(n: int) -> bytes:
    """DeleteTopics requests v4 with 100,000 topics each, of one letter, no two beside one another alike."""
    calls = FlexibleCalls()
    for at in range(0, n, 100_000):
        names = compact_array([compact(b"ab"[i % 2 : i % 2 + 1]) for i in range(min(n - at, 100_000))])
        calls.call(20, 4, names + bytes(4) + TAGS, bytes(4) + compact_array([]) + TAGS)
    return calls.connection.file()


@hostile(1_000_000)
def empty_names(n: int) -> bytes:
    """Such requests with 100,000 topics each that have a name of no letter, a byte each."""
    calls = FlexibleCalls()
    for at in range(0, n, 100_000):
        names = compact_array([compact(b"")] * min(n - at, 100_000))
        calls.call(20, 4, names + bytes(4) + TAGS, bytes(4) + compact_array([]) + TAGS)
    return calls.connection.file()


@hostile(500_000)
def waiting_names(n: int) -> bytes:
    """Requests as of `one_letter_names` with 20,000 topics each, all of which were sent before the first response."""
    calls, numbers = FlexibleCalls(), list[int]()
    for at in range(0, n, 20_000):
        names = compact_array([compact(b"ab"[i % 2 : i % 2 + 1]) for i in range(min(n - at, 20_000))])
        calls.connection.send(0, request(len(numbers) + 3, 20, 4, TAGS + names + bytes(4) + TAGS))
        numbers.append(len(numbers) + 3)
    for number in numbers:
        calls.connection.send(1, response(number, TAGS + bytes(4) + compact_array([]) + TAGS))
    return calls.connection.file()


@hostile(20_000)
def waiting_halves(n: int) -> bytes:
    """Metadata requests v12 with 500 topics each, every other one by an id, all of which were sent before the first
    response.
    """
    calls, numbers = FlexibleCalls(), list[int]()
    for at in range(0, n, 500):
        halves = [
            bytes(16) + compact(b"t%d" % i) + TAGS if i % 2 else struct.pack(">QQ", 9, i + 5) + b"\0" + TAGS
            for i in range(at, min(n, at + 500))
        ]
        calls.connection.send(0, request(len(numbers) + 3, 3, 12, TAGS + compact_array(halves) + b"\0\0" + TAGS))
        numbers.append(len(numbers) + 3)
    for number in numbers:
        calls.connection.send(1, response(number, TAGS + NO_TOPICS))
    return calls.connection.file()


@hostile(100_000)
def named_ids(n: int) -> bytes:
    """Metadata responses v12 with 50,000 topics each, of a name and an id."""
    calls = FlexibleCalls()
    for at in range(0, n, 50_000):
        topics = [
            bytes(2) + compact(b"t%d" % i) + struct.pack(">QQ", 9, i + 5) + b"\0" + compact_array([]) + bytes(4) + TAGS
            for i in range(at, min(n, at + 50_000))
        ]
        answer = bytes(4) + compact_array([]) + compact(b"c") + struct.pack(">i", 1) + compact_array(topics) + TAGS
        calls.call(3, 12, bytes(3) + TAGS, answer)
    return calls.connection.file()


@hostile(10_000)
def halved_lists(n: int) -> bytes:
    """Metadata requests v12 as that of `halved_topics`, with 60,000 topics each of either kind."""
    calls = FlexibleCalls()
    for at in range(0, n, 60_000):
        halves = [
            bytes(16) + compact(b"t%d" % i) + TAGS + struct.pack(">QQ", 9, i + 5) + b"\0" + TAGS
            for i in range(min(n - at, 60_000))
        ]
        calls.call(3, 12, unsigned(2 * len(halves) + 1) + b"".join(halves) + b"\0\0" + TAGS, NO_TOPICS)
    return calls.connection.file()


@hostile(100_000)
def nameless_ids(n: int) -> bytes:
    """Metadata requests v12 with 1,000 topics each, all by ids that no message names."""
    calls = FlexibleCalls()
    for at in range(0, n, 1000):
        topics = [noise(16, i) + b"\0" + TAGS for i in range(at, at + 1000)]
        calls.call(3, 12, compact_array(topics) + b"\0\0" + TAGS, NO_TOPICS)
    return calls.connection.file()


def far_servers(n: int, calls_of: Callable[[int, Calls], None]) -> bytes:
    """Connections to n servers, each with some exchanges."""
    packets: list[Packet] = []
    for i in range(n):
        calls = Calls(Connection(40_000, 10**12 + 100 * i).open())
        calls.call(18, 0, b"", bytes(6))
        calls_of(i, calls)
        there = struct.pack(">I", 0x0B000000 + i)
        packets += [
            (when, data[:12] + data[12:20].replace(SERVER, there) + data[20:]) for when, data in calls.connection.packets
        ]
    return pcap(iter(packets))


@hostile(2_000)
def many_servers(n: int) -> bytes:
    """Servers with one exchange each."""
    return far_servers(n, lambda _i, _calls: None)


@hostile(2_000)
def listing_servers(n: int) -> bytes:
    """Servers, each of which lists itself under a host name of its own."""
    return far_servers(n, lambda i, calls: calls.call(3, 2, array([]), reported([(i, b"host%d" % i, 9092)])))


@hostile(10_000)
def names_and_rows(n: int) -> bytes:
    """pcapng: host names of n addresses, and two exchanges for each."""
    parts = [SECTION, INTERFACE]
    for i in range(n):
        entry = struct.pack(">I", 0x0A000000 + i) + b"host%d.example\0" % i
        parts.append(block(4, struct.pack("<HH", 1, len(entry)) + entry + bytes(-len(entry) % 4) + bytes(4)))
    connection = spoken()
    for i in range(2 * n):
        connection.send(0, request(3 + i))
        connection.send(1, response(3 + i))
    return b"".join([*parts, *(packet_block(0, when, data) for when, data in connection.packets)])


@hostile(20_000)
def topic_records(n: int) -> bytes:
    """KRaft's log: n TopicRecords, no two of one topic, 100,000 in a gzip batch."""
    calls = Calls()
    for at in range(0, n, 100_000):
        values = [b"\1\2\0" + compact(b"t") + struct.pack(">QQ", 7, i) + TAGS for i in range(at, min(n, at + 100_000))]
        inner = [b"\0\0" + varint(i) + b"\1" + varint(len(value)) + value + b"\0" for i, value in enumerate(values)]
        records = packed_batch(gzip.compress(b"".join(varint(len(one)) + one for one in inner)), 1, len(values))
        part = struct.pack(">ihqq", 0, 0, n, n) + array([]) + struct.pack(">i", len(records)) + records
        answer = bytes(4) + array([string(b"__cluster_metadata") + array([part])])
        calls.call(1, 4, fetch_of(b"__cluster_metadata", 0), answer)
    return calls.connection.file()


@hostile(100_000, "--table", "partitions")
def growing_session(n: int) -> bytes:
    """A fetch session to which each request adds 100 partitions, while its responses have another one."""
    calls = Calls()
    for epoch in range(n // 100):
        parts = [struct.pack(">iiqqi", 100 * epoch + j, -1, j, -1, 1 << 20) for j in range(100)]
        session = struct.pack(">iiiibii", -1, 500, 1, 1 << 20, 0, 77 if epoch else 0, epoch)
        part = struct.pack(">ihqqq", 50 * epoch, 0, 5, 5, 0) + array([]) + struct.pack(">i", 0)
        answer = bytes(4) + struct.pack(">hi", 0, 77) + array([string(b"t") + array([part])])
        calls.call(1, 9, session + array([string(b"t") + array(parts)]) + array([]), answer)
    return calls.connection.file()


def wide_fetch(calls: Calls, n: int) -> None:
    """A Fetch v4 of n partitions, none with records."""
    parts = [struct.pack(">iqi", j, j, 1) for j in range(n)]
    answers = [struct.pack(">ihqqii", j, 0, 5, 5, -1, -1) for j in range(n)]
    calls.call(
        1, 4, struct.pack(">iiiib", -1, 500, 1, 1 << 20, 0) + array([string(b"t") + array(parts)]),
        bytes(4) + array([string(b"t") + array(answers)]),
    )  # fmt: skip


@hostile(100, "--partitions")
def wide_fetches(n: int) -> bytes:
    """Fetches of 1,000 partitions each."""
    calls = Calls()
    for _ in range(n):
        wide_fetch(calls, 1000)
    return calls.connection.file()


@hostile(100_000, "--partitions")
def one_wide_fetch(n: int) -> bytes:
    """A Fetch of n partitions."""
    calls = Calls()
    wide_fetch(calls, n)
    return calls.connection.file()


# --- findings: what makes a rule of `check` match again and again ----------------------------------------------------------
@hostile(2_000)
def errors_of_topics(n: int) -> bytes:
    """Produce requests of topics that each fail with another error, of another client and group of versions each."""
    calls = Calls()
    for i in range(n):
        calls.call(0, 3, produced_to(b"t%d" % i, i), taken(b"t%d" % i, i, 1 + i % 100), b"c%d" % i)
    return calls.connection.file()


@hostile(2_000)
def missing_topics(n: int) -> bytes:
    """Metadata requests for topics that do not exist, of another client each, again and again."""
    calls = Calls()
    for i in range(n):
        name = string(b"t%d" % (i // 2))
        answer = array([]) + struct.pack(">i", 1) + array([struct.pack(">h", 3) + name + b"\0" + array([])])
        calls.call(3, 1, array([name]), answer, b"c%d" % i)
    return calls.connection.file()


@hostile(1_000)
def fenced_producers(n: int) -> bytes:
    """Producers that are fenced, and sequence numbers that go back, in another partition each."""
    calls = Calls()
    for i in range(n):
        for sequence, error in ((5, 0), (0, 45), (9, 47)):
            batch = batch_v2(i, 0, sequence)
            parts = array([struct.pack(">ii", i, len(batch)) + batch])
            calls.call(0, 3, struct.pack(">hhi", -1, -1, 1000) + array([string(b"t") + parts]), taken(b"t", i, error))
    return calls.connection.file()


@hostile(2_000)
def refused_commits(n: int) -> bytes:
    """Groups whose commits are refused, by turns as the member is unknown, the generation is old or it rebalances."""
    calls = Calls()
    for i in range(n):
        offset = array([string(b"t%d" % i) + array([struct.pack(">iq", 0, i) + string(b"")])])
        who = string(b"g%d" % i) + struct.pack(">i", 1) + string(b"m%d" % i) + bytes(8)
        answer = array([string(b"t%d" % i) + array([struct.pack(">ih", 0, (25, 22, 27)[i % 3])])])
        calls.call(8, 2, who + offset, answer, b"c%d" % i)
    return calls.connection.file()


@hostile(2_000)
def refused_logins(n: int) -> bytes:
    """Connections whose login fails, of another host, client and mechanism each."""
    packets: list[Packet] = []
    for i in range(n):
        calls = Calls(Connection(10_000 + i % 50_000, 10**12 + i * 1000).open())
        token = b"\0user%d\0secret" % i
        calls.call(17, 1, string(b"PLAIN"), struct.pack(">h", 0) + array([string(b"PLAIN")]), b"c%d" % i)
        answer = struct.pack(">h", 58) + string(b"no %d" % i) + struct.pack(">i", -1)
        calls.call(36, 0, struct.pack(">i", len(token)) + token, answer, b"c%d" % i)
        packets += [(when, moved(data, struct.pack(">I", 0x0A010000 + i), CLIENT)) for when, data in calls.connection.packets]
    return pcap(iter(packets))


@hostile(2_000)
def oldest_offsets(n: int) -> bytes:
    """Fetches of partitions behind their log's end, each refused, and ListOffsets behind each."""
    calls = Calls()
    for i in range(n):
        name = string(b"t%d" % i)
        part = struct.pack(">ihqqii", i, 1, -1, -1, -1, 0)
        calls.call(1, 4, fetch_of(b"t%d" % i, i), bytes(4) + array([name + array([part])]), b"c%d" % i)
        times = struct.pack(">i", -1) + array([name + array([struct.pack(">iq", i, -2)])])
        calls.call(2, 1, times, array([name + array([struct.pack(">ihqq", i, 0, -1, i)])]), b"c%d" % i)
    return calls.connection.file()


@hostile(2_000)
def small_batches(n: int) -> bytes:
    """Two Produce requests a millisecond, a record each, for another topic, of another client."""
    calls = Calls()
    for i in range(n):
        for _ in range(2):
            calls.call(0, 3, produced_to(b"t%d" % i, 0), taken(b"t%d" % i, 0), b"c%d" % i)
    return calls.connection.file()


@hostile(2_000)
def election_storm(n: int) -> bytes:
    """Metadata in which a partition has another leader and epoch each time, and a broker a new address."""
    calls = Calls()
    for i in range(n):
        nodes = [struct.pack(">i", j) + string(b"h%d" % (i + j)) + struct.pack(">i", 9092) + string(b"") for j in range(2)]
        part = struct.pack(">hii", (0, 5, 9)[i % 3], 0, i % 2) + array([struct.pack(">i", 0)]) * 2
        topic = b"\0\0" + string(b"t%d" % (i % 7)) + b"\0" + array([part])
        calls.call(3, 1, array([]), array(nodes) + struct.pack(">i", i % 2) + array([topic]))
    return calls.connection.file()


def in_turn(n: int, records: bytes, answer: bytes = b"") -> bytes:
    """A Produce request with these records on each of n connections, whose packets take turns, and so a response."""
    head = struct.pack(">hhi", -1, 1, 1000) + array([string(b"t") + struct.pack(">iii", 1, 0, len(records)) + records])
    whole = request(3, 0, 3, head)
    connections = [Connection(10_000 + at % 50_000, 10**12 + 10 * at).open() for at in range(n)]
    packets: list[Packet] = []
    for connection in connections:
        connection.send(0, request(1))
        connection.send(1, response(1))
        connection.send(0, request(2))
        connection.send(1, response(2))
        packets += connection.packets
    begin = 10**12 + 10**6
    for side, data in enumerate((whole, answer)):
        for at in range(0, len(data), 1400):
            for number, connection in enumerate(connections):
                connection.when, connection.packets = begin + at * 1000 + number, []
                connection.add(side, ACK, data[at : at + 1400])
                packets += connection.packets
        begin += len(data) * 1000 + 10**6
    return pcap(iter(packets))


@hostile(4, "--table", "records")
def interleaved_sides(n: int) -> bytes:
    """Requests and responses of 1.1 MB on connections that take turns: each of either side lies across the whole file."""
    parts = [struct.pack(">ihqq", at, 0, at, -1) for at in range(50_000)]
    return in_turn(n, noise(1_100_000, 1), response(3, array([string(b"t") + array(parts)]) + bytes(4)))


@hostile(1_000, "--partitions")
def interleaved_frames(n: int) -> bytes:
    """Frames of 150 KB on connections that take turns: each lies across the whole file."""
    return in_turn(n // 10, noise(140_000, 1))


@hostile(20, "--partitions")
def interleaved_messages(n: int) -> bytes:
    """The same with frames of 900 KB, of compressed messages of format 1 of a record each."""
    value = noise(3_000, 1)
    inner = struct.pack(">bbqii", 1, 0, 0, -1, len(value)) + value
    packed = gzip.compress(struct.pack(">qiI", 0, 4 + len(inner), zlib.crc32(inner)) + inner, 0)
    wrapper = struct.pack(">bbqii", 1, 1, 0, -1, len(packed)) + packed
    return in_turn(n, (struct.pack(">qiI", 0, 4 + len(wrapper), zlib.crc32(wrapper)) + wrapper) * (900_000 // len(wrapper)))


@hostile(200_000, "--table", "records")
def message_of_bytes(n: int) -> bytes:
    """One Produce request of batches of a record each, in segments of 24 bytes."""
    record = b"\0\0\0\1" + varint(5_000) + bytes(5_000) + b"\0"
    one = packed_batch(varint(len(record)) + record, 0)
    records = one * max(1, 24 * n // len(one))
    head = struct.pack(">hhi", -1, 1, 1000) + array([string(b"t") + struct.pack(">iii", 1, 0, len(records)) + records])
    connection, whole = Connection(10_000, 10**12).open(), request(2, 0, 3, head)
    connection.send(0, request(1))
    connection.send(1, response(1))
    for at in range(0, len(whole), 24):
        connection.add(0, ACK, whole[at : at + 24])
    return pcap(iter(connection.packets))


@hostile(5_000)
def hosts_refused(n: int) -> bytes:
    """Hosts that try to connect three times each and are refused."""

    def packets() -> Iterator[Packet]:
        for i in range(3 * n):
            who = struct.pack(">I", 0x0A010000 + i // 3)
            yield 10**12 + 2 * i, tcp(50_000 + i % 3, 9092, i, 0, SYN, b"", who, SERVER)
            yield 10**12 + 2 * i + 1, tcp(9092, 50_000 + i % 3, 0, i + 1, RST | ACK, b"", SERVER, who)

    return pcap(packets())


@hostile(500)
def hosts_closed(n: int) -> bytes:
    """Hosts of which the broker answers one connection and closes five, of another client id each, before it answers."""
    packets: list[Packet] = []
    for i in range(n):
        served = Calls(Connection(10_000, 10**12 + i * 100).open())
        for _ in range(2):
            served.call(3, 1, array([]), array([]) + struct.pack(">i", 1) + array([]), b"c%d" % i)
        connections = [served.connection]
        for number in range(5):
            connection = Connection(20_000 + number, 10**12 + i * 100 + 3).open()
            connection.send(0, request(1, client=b"c%d-%d" % (i, number)))
            connection.add(1, RST | ACK)
            connections.append(connection)
        host = struct.pack(">I", 0x0A010000 + i)
        packets += [(when, moved(data, host, CLIENT)) for connection in connections for when, data in connection.packets]
    return pcap(iter(sorted(packets)))


@hostile(500)
def strange_servers(n: int) -> bytes:
    """Servers that answer Kafka's requests with HTTP."""
    packets: list[Packet] = []
    for i in range(2 * n):
        connection = Connection(10_000 + i % 50_000, 10**12 + i * 20).open()
        connection.send(0, request(1))
        connection.send(1, b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
        connection.add(1, FIN | ACK)
        packets += [(when, moved(data, struct.pack(">I", 0x0A010000 + i // 2))) for when, data in connection.packets]
    return pcap(iter(packets))


@hostile(500)
def lost_members(n: int) -> bytes:
    """Groups of two members, of which one goes silent and the other goes on to the next generation."""
    packets: list[Packet] = []
    for i in range(n):
        group = string(b"g%d" % i)
        for member in (b"a", b"b"):
            calls = Calls(Connection(10_000 + (2 * i + (member == b"b")) % 50_000, 10**12 + i * 1000).open())
            for generation in (1, 2) if member == b"a" else (1,):
                joined = struct.pack(">hi", 0, generation) + string(b"range") + string(b"a") + string(member) + array([])
                calls.call(
                    11, 1, group + struct.pack(">ii", 10_000, 10_000) + string(member) + string(b"consumer") + array([]), joined
                )
                calls.call(12, 0, group + struct.pack(">i", generation) + string(member), struct.pack(">h", 0))
                calls.connection.when += 20 * SECOND // 1000
            packets += calls.connection.packets
    return pcap(iter(sorted(packets)))


@hostile(200)
def clients_closed_at_requests(n: int) -> bytes:
    """Clients each of which opens five connections to one broker, which closes at their Heartbeat and answers all else."""
    packets: list[Packet] = []
    for i in range(5 * n):
        calls = Calls(Connection(10_000 + i % 50_000, 10**12 + i // n * 10**6 + i % n * 20).open())
        name = b"c%d" % (i % n)
        calls.call(18, 0, b"", bytes(6), name)
        calls.call(3, 1, array([]), array([]) + struct.pack(">i", 1) + array([]), name)
        calls.connection.send(0, request(9, 12, 0, string(b"g") + struct.pack(">i", 1) + string(b"m"), name))
        calls.connection.add(1, RST | ACK)
        packets += calls.connection.packets
    return pcap(iter(sorted(packets)))


@hostile(500)
def refused_versions_of_one(n: int) -> bytes:
    """Connections of one client, each with another API and version that the broker does not name, at which it closes."""
    packets: list[Packet] = []
    offered = struct.pack(">h", 0) + array([struct.pack(">hhh", key, 0, 0) for key in range(20)])
    for i in range(n):
        calls = Calls(Connection(10_000 + i % 50_000, 10**12 + i * 1000).open())
        calls.call(18, 0, b"", offered)
        calls.connection.send(0, request(9, i % 17, 1 + i // 17, bytes(20), b"client"))
        calls.connection.add(1, RST | ACK)
        packets += calls.connection.packets
    return pcap(iter(packets))


@hostile(5_000)
def tag_stacks(n: int) -> bytes:
    """Ethernet frames of nothing but VLAN tags, and of nothing but MPLS labels, of which each third ends in a segment."""
    segment = tcp(40_000, 9092, 1, 1, ACK, request(1))
    tags, labels = (b"\x81\0\0\1" * 340)[2:], bytes(4 * 340)
    ends = (b"\x81\0" + tags + b"\x08\0" + segment, b"\x88\x47" + labels, b"\x88\xa8" + tags * 40)
    return pcap(((10**12 + i, bytes(12) + ends[i % 3]) for i in range(n)), 1)


@hostile(2_000)
def nested_tunnels(n: int) -> bytes:
    """VXLAN in VXLAN, and GRE in GRE, 60 deep."""
    kinds = [tcp(40_000, 9092, 1, 0, ACK), tcp(40_000, 9092, 1, 0, ACK)]
    for _ in range(60):
        inner = bytes(12) + b"\x08\0" + kinds[0]
        body = struct.pack(">HHHHII", 1, 4789, 16 + len(inner), 0, 0x08000000, 1 << 8) + inner
        for at, (protocol, data) in enumerate(((17, body), (47, b"\0\0\x08\0" + kinds[1]))):
            kinds[at] = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(data), 0, 0, 64, protocol, 0) + CLIENT + SERVER + data
    return pcap((10**12 + i, kinds[i % 2]) for i in range(n))


@hostile(20_000)
def interleaved_fragments(n: int) -> bytes:
    """Datagrams of three fragments by a thousand senders at once, which take turns, the last fragment first."""
    segment = tcp(40_000, 9092, 1, 1, ACK, request(1) * 3)[20:]
    pieces = [
        (segment[at : at + 24], (at // 8) | (0x2000 if at + 24 < len(segment) else 0)) for at in range(0, len(segment), 24)
    ]

    def packets() -> Iterator[Packet]:
        for i in range(n):
            turn, who = divmod(i, 1000)
            data, place = pieces[-1 - turn % len(pieces)]
            yield 10**12 + i, ip(data, struct.pack(">I", 0x0A010000 + who), SERVER, turn // len(pieces) & 0xFFFF, place)

    return pcap(packets())


@hostile(20_000)
def cooked_interfaces(n: int) -> bytes:
    """Linux cooked frames (SLL2) of one connection, each of another interface, twice."""
    connection = Calls()
    while len(connection.connection.packets) < n // 2:
        connection.call(18, 0, b"", bytes(6))

    def packets() -> Iterator[Packet]:
        for i, (when, data) in enumerate(connection.connection.packets):
            for turn in range(2):
                head = struct.pack(">HHIHBB8s", 0x0800, 0, 2 * i + turn, 1, 0, 6, bytes(8))
                yield when + turn, head + data

    return pcap(packets(), 276)


@hostile(500)
def urgent_windows(n: int) -> bytes:
    """Segments with urgent pointers, windows of zero and back, and probes of a byte, one connection."""
    connection = spoken()
    for i in range(n):
        connection.send(0, request(3 + i))
        for window in (0, 1, 65535):
            data = connection.packets[-1][1]
            head = bytearray(data[:40])
            head[34:36] = struct.pack(">H", window)
            head[33] |= 0x20
            head[38:40] = struct.pack(">H", i & 0xFFFF)
            connection.packets.append((connection.when, bytes(head) + data[40:]))
            connection.when += 1
    return connection.file()


@hostile(4)
def large_tokens(n: int) -> bytes:
    """SASL tokens of a megabyte, each way."""
    calls = Calls()
    for i in range(n):
        token = noise(1 << 20, i)
        calls.call(17, 1, string(b"SCRAM-SHA-512"), struct.pack(">h", 0) + array([]))
        answer = struct.pack(">hhi", 0, -1, len(token)) + token
        calls.call(36, 0, struct.pack(">i", len(token)) + token, answer)
    return calls.connection.file()


@hostile(20)
def pushed_metrics(n: int) -> bytes:
    """Metrics that clients push, compressed to a thousandth: messages in messages, and a hundred thousand empty ones."""
    deep = b""
    for _ in range(2_000):
        deep = b"\x0a" + unsigned(len(deep)) + deep
    packed = gzip.compress(deep + b"\x0a\0" * 100_000 + bytes([0x0A]) + unsigned(1 << 20) + bytes(1 << 20))
    calls = Calls()
    for _ in range(n):
        body = b"\0" + bytes(16) + struct.pack(">i", 1) + b"\0\1" + unsigned(len(packed) + 1) + packed + b"\0"
        calls.call(72, 0, body, b"\0" + bytes(4) + b"\0\0" + b"\0")
    return calls.connection.file()


# --- the curve ---------------------------------------------------------------------------------------------------------
def cost(command: list[str], seconds: float) -> tuple[float, float, int]:
    """Processor seconds, peak MB and exit code of a command; an exit code of -1 where it took too long."""

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))

    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=bound)  # noqa: PLW1509
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        if b"Traceback" in errors.read():
            child.returncode = 1
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, child.returncode


def curve(
    name: str, folder: Path, doublings: int, scale: float, seconds: float, words: list[str], base: float, rounds: int = 1
) -> str:
    """One class's line, of the fastest of `rounds` runs at each size: other programs on the machine only ever add."""
    make, units, options = CLASSES[name]
    points: list[tuple[int, float]] = []
    peak, codes = 0.0, set()
    for step in range(doublings + 1):
        path = folder / "hostile.pcap"
        written(make, int(units * scale) << step, path)
        size = path.stat().st_size
        extra = options if words[:1] == ["rows"] else ()
        runs = [cost([sys.executable, "-m", "kcap", *words, str(path), *extra], seconds) for _ in range(rounds)]
        spent = min(run[0] for run in runs)
        points.append((size, max(spent - base, 0.02)))
        peak = max(peak, *(run[1] for run in runs))
        codes.update(run[2] for run in runs)
        if spent > seconds / 2:
            break
    ends = points[max(len(points) - 3, 0)], points[-1]
    slope = slope_of(ends)
    size, last = points[-1]
    seen = " ".join(f"{s:.2f}" for _, s in points)
    return f"{name:<24} {size / 1e6:7.2f} MB  {last:7.2f} s  {peak:6.0f} MB  slope {slope:5.2f}  [{seen}] exit {sorted(codes)}"


COMMANDS = (
    "rows -q -o OUT.parquet", "rows -q --table records --format jsonl", "rows -q --partitions -T text", "connections", "health",
    "stats", "latency", "latency -o OUT.html", "slow", "throttle", "errors", "topics", "clients", "versions",
    "versions -o OUT.html", "check", "check --format html -o OUT.html", "groups", "transactions", "groups -o OUT.html",
    "sql select*from(exchanges)",
    "cut -Y latency>=0 --allow-empty -o OUT.pcap", "cut --redact --anonymize k --allow-empty -o OUT.pcapng",
    "split --by-connection 1000 -o OUT.pcap", "merge -o OUT.pcapng", "diff CAPTURE",
    "show CAPTURE NAME", "show CAPTURE NAME --hex", "show CAPTURE NAME --json --payloads", "decode REQUEST",
    "decode --json REQUEST", "decode --response --api KEY --api-version VERSION RESPONSE", "decode --jsonl FRAMES",
)  # fmt: skip
"""Every command that reads a capture, which follows where nothing of EXCHANGE is named; CAPTURE is it too, OUT is a name in a
folder of the run."""
EXCHANGE = ("NAME", "REQUEST", "RESPONSE", "KEY", "VERSION", "FRAMES")
"""The name of the capture's largest exchange, files with the bytes of its messages, its API and version, and a file with a line
for each request of the capture."""


def exchange_of(path: str, folder: str) -> None:
    """Writes a file for each of EXCHANGE into the folder; none where the capture has no exchange."""
    import kcap

    largest: dict[str, bytes] = {}
    with open(f"{folder}/lines", "wb") as lines:
        for exchange in kcap.open(path):
            row, frame, answer = exchange.row, exchange.frame("request"), exchange.frame("response")
            if frame:
                lines.write(b'{"kind": "request", "hex": "%s"}\n' % frame.hex().encode())
            if len(frame) + len(answer) > len(largest.get("REQUEST", b"")) + len(largest.get("RESPONSE", b"")):
                name = f"{row['connection']}.{row['exchange']}"
                words = zip(("NAME", "KEY", "VERSION"), (name, row["api_key"], row["api_version"]))
                largest = {"REQUEST": frame, "RESPONSE": answer, **{word: str(value).encode() for word, value in words}}
    for word, value in largest.items():
        Path(folder, word).write_bytes(value)
    os.rename(f"{folder}/lines", f"{folder}/FRAMES")


def command_line(command: str, path: Path, folder: str) -> list[str] | None:
    """The words of a command of COMMANDS; None where the capture has no exchange and it needs one."""
    words = [word.replace("OUT", f"{folder}/out").replace("CAPTURE", str(path)) for word in command.split()]
    places = [number for number, word in enumerate(words) if word in EXCHANGE]
    for number in places:
        made = Path(folder, words[number])
        if not made.exists():
            return None
        words[number] = made.read_text() if words[number] in ("NAME", "KEY", "VERSION") else str(made)
    return words if places else [*words, str(path)]


def forked(words: list[str], seconds: float) -> tuple[float, float, int]:
    """As `cost`, of a command of kcap in a fork of this process."""

    def command() -> int:
        from kcap.cli.main import main as kcap

        return kcap(words)

    return in_fork(command, seconds)


def in_fork(work: Callable[[], int], seconds: float) -> tuple[float, float, int]:
    """As `cost`, of a function in a fork of this process."""
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        code = TRACEBACK
        try:
            code = work()
            sys.stdout.flush()
        finally:
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)


def written(make: Maker, units: int, path: Path) -> None:
    """Makes a file in a fork: the peak of a process counts what its parent held when it was forked."""
    code = in_fork(lambda: path.write_bytes(make(units)) * 0, 600)[2]
    if code:
        raise RuntimeError(f"{path} was not made: exit {code}")


TRACEBACK = 99
"""Exit code of a fork whose command raised."""


def slope_of(points: Sequence[tuple[float, ...]]) -> float:
    """The slope of log CPU over log size between the two largest sizes; not a number where these are equal."""
    (low, first, *_), (high, last, *_) = points[-2:]
    return math.log(last / first) / math.log(high / low) if high != low else math.nan


def steep(points: Sequence[tuple[int, float, float, int]]) -> bool:
    """Whether the slope breaks the promise, or may once more than a third of a second is taken."""
    return slope_of(points) > 1.1 and points[-1][1] > 0.3


def matrix(names: list[str], scale: float, seconds: float, commands: list[str], every: bool = False) -> None:
    """Prints commands and classes with a slope above 1.1 where they take a second, 500 MB, a traceback or no end."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    import duckdb  # noqa: F401 - what commands import, once for all
    import ibis.backends.duckdb  # noqa: F401

    from kcap.cli.commands import COMMANDS as ENTRIES
    from kcap.runtime import for_tables

    for_tables()
    for entry in ENTRIES.values():
        entry.load()
    runs = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hostile.pcap"
        named = any(word in EXCHANGE for command in commands for word in command.split())

        def write(make: Maker, units: int) -> None:
            written(make, units, path)
            for word in EXCHANGE:
                Path(folder, word).unlink(missing_ok=True)
            if named:
                in_fork(lambda: exchange_of(str(path), folder) or 0, 600)

        def run(command: str) -> tuple[float, float, int]:
            words = command_line(command, path, folder)
            return (0.0, 0.0, 0) if words is None else forked(words, seconds)

        write(lambda _: spoken().file(), 0)
        base = {command: min(run(command)[0] for _ in range(2)) for command in commands}
        for name in names:
            make, units, _ = CLASSES[name]
            points: dict[str, list[tuple[int, float, float, int]]] = {command: [] for command in commands}
            step = 0
            for turn in range(4):
                going = [
                    command for command in commands if turn < 2 or (steep(points[command]) and points[command][-1][1] < 30)
                ]
                if not going:
                    break
                if turn == 1:
                    most = sorted(found[0][1] for found in points.values())[len(points) // 2]
                    step = 1 if most > 0.5 else 2 if most > 0.25 else 3
                elif turn:
                    step += 1
                write(make, int(units * scale) << step)
                for command in going:
                    runs += 1
                    spent, peak, code = run(command)
                    points[command].append((path.stat().st_size, max(spent - base[command], 0.02), peak, code))
                    for made in Path(folder).glob("out*"):
                        made.unlink()
            for command, found in points.items():
                size, last, peak, code = found[-1]
                if every or (steep(found) and last > 1) or peak > 500 or code not in (0, 1, 3):
                    seen = " ".join(f"{spent:.2f}" for _, spent, _, _ in found)
                    figures = f"{size / 1e6:6.2f} MB {peak:5.0f} MB slope {slope_of(found):5.2f}"
                    print(f"{name:<22} {command:<48} {figures} [{seen}] exit {code}", flush=True)
            print(f"{name}: done, {runs} runs", time.strftime("%H:%M:%S"), file=sys.stderr, flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("write")
    one.add_argument("name", choices=CLASSES)
    one.add_argument("units", type=int)
    one.add_argument("file", type=Path)
    many = verbs.add_parser("curve")
    many.add_argument("--only", type=lambda text: text.split(","), default=list(CLASSES))
    many.add_argument("--doublings", type=int, default=3)
    many.add_argument("--scale", type=float, default=1.0)
    many.add_argument("--limit", type=float, default=60)
    many.add_argument("--command", default="rows -q --format jsonl")
    many.add_argument("--rounds", type=int, default=1, help="runs of each size, of which the fastest counts")
    every = verbs.add_parser("matrix")
    every.add_argument("--only", type=lambda text: text.split(","), default=list(CLASSES))
    every.add_argument("--scale", type=float, default=1.0)
    every.add_argument("--limit", type=float, default=60)
    every.add_argument("--commands", type=lambda text: text.split("|"), default=list(COMMANDS))
    every.add_argument("--all", action="store_true", help="prints what keeps the promise, too")
    args = parser.parse_args()
    if args.verb == "matrix":
        matrix(args.only, args.scale, args.limit, args.commands, args.all)
        return
    if args.verb == "write":
        args.file.write_bytes(CLASSES[args.name][0](args.units))
        return
    words = args.command.split()
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.pcap"
        empty.write_bytes(spoken().file())
        base = min(cost([sys.executable, "-m", "kcap", *words, str(empty)], args.limit)[0] for _ in range(2))
        print(f"{base:.2f} s for a capture of 7 packets, taken off", time.strftime("%H:%M"), flush=True)
        for name in args.only:
            print(curve(name, Path(folder), args.doublings, args.scale, args.limit, words, base, args.rounds), flush=True)


if __name__ == "__main__":
    main()
