"""Frames whose packets lie among those of others are read by place."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kcap import limits
from kcap.capture import frame_index, packet_source
from kcap.capture.fileset import ignore
from kcap.capture.frame_index import FrameIndex
from kcap.capture.frame_location import location
from kcap.capture.frame_reader import FrameReader
from kcap.capture.packet_source import PacketSource
from kcap.capture_pass import CapturePass
from kcap.model import PART, CaptureFile, SegmentBatch
from kcap.net.segments import SegmentParser
from tests.distributed.test_shard_reader import fragmented
from tests.laws.test_interleaved import CONNECTIONS, SIZE, capture, records
from tests.support.messages import saved
from tests.support.wire import MS, Tap, metadata, metadata_answer, produce, produce_answer

Payload = tuple[int, bytes, int, bytes, int]
"""Position, flow, sequence number, data and time."""


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of the ranges that are read again, as they are read; frames of the captures here are read as they pass."""
    found: list[int] = []
    placed = PacketSource.placed

    def counted(self: PacketSource, file: int, first: int, last: int) -> Iterator[Any]:
        found.append(last - first)
        return placed(self, file, first, last)

    monkeypatch.setattr(PacketSource, "placed", counted)
    monkeypatch.setattr(limits, "GATHERED_OF_ALL", 10_000)
    return found


def source_of(path: Path) -> PacketSource:
    """The packets of one file."""
    reading = CapturePass([str(path)])
    for _ in reading.batches():
        pass
    (file,) = reading.capture_files
    return PacketSource([CaptureFile(file.path, file.name, format=file.format, size=file.size)])


def payloads(source: PacketSource) -> list[Payload]:
    """All that packets of the first file carry, as the parser gives it."""
    parser, found = SegmentParser(ignore), list[Payload]()
    for batch in source.whole(0):
        segments = parser.columns(batch)
        segments = segments if isinstance(segments, SegmentBatch) else segments.all()
        for at, length in enumerate(segments.length):
            if length:
                buffer, first = segments.buffers.get(at, segments.buffer), segments.payload[at]
                data = bytes(buffer[first : first + segments.captured[at]])
                found.append((segments.position[at], segments.flow[at], segments.seq[at], data, segments.time_ns[at]))
    return found


FILES = ["go-franz.pcap", "any-interface.pcap", "tls13.pcapng"]


@pytest.mark.parametrize("run", [16, 1 << 18])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_the_index_gives_what_packets_carry(
    pcaps: Path, name: str, compiled: bool, run: int, monkeypatch: pytest.MonkeyPatch, readings: list[int]
) -> None:
    """Law: as the parser's, of any direction and stretch, asked for in any order; no part of a file is read twice."""
    path = pcaps / name
    monkeypatch.setattr(packet_source, "is_long", lambda _: compiled)
    monkeypatch.setattr(frame_index, "INDEX_RUN_PACKETS", run)
    monkeypatch.setattr(frame_index, "INDEX_READ_PACKETS", 5)
    source = source_of(path)
    wanted = payloads(source)
    index = FrameIndex(source)
    places = sorted({one[0] for one in wanted})
    middle, step = len(places) // 2, max(1, len(places) // 9)
    stretches = [(middle - n, middle + n) for n in range(0, middle, step)] + [(0, len(places) - 1), (2, 5)]
    for low, high in [(places[a], places[b]) for a, b in [(len(places) - 3, len(places) - 1), *stretches]]:
        assert index.covers(0, low, high)
        for flow in {one[1] for one in wanted}:
            some = [one[2:] for one in wanted if one[1] == flow and low <= one[0] <= high]
            assert [(seq, data, time) for seq, data, time in index.pieces(0, flow, low, high)] == some
    ends = len(readings) * max(len(one[3]) + 2_000 for one in wanted)
    assert sum(readings) <= path.stat().st_size + ends
    runs = index._runs[0]
    assert all(one.last < other.first for one, other in pairwise(runs))
    assert sum(one.packets for one in runs) == len(wanted)


def test_runs_are_joined(pcaps: Path) -> None:
    """Law: stretches that grow by a packet leave as few runs as one bit each of their number would need."""
    source = source_of(pcaps / "java-transactions.pcap")
    places = [one[0] for one in payloads(source)][:200]
    for some in (places, places[::-1]):
        index = FrameIndex(source)
        for place in some:
            index.covers(0, min(place, places[100]), max(place, places[100]))
        assert sum(one.packets for one in index._runs[0]) == 200
        assert len(index._runs[0]) <= 16


def test_datagrams_in_fragments_are_indexed(pcaps: Path, tmp_path: Path) -> None:
    """What fragments join to is at no place of the file; where a datagram began before what was read, the index does not do."""
    source = source_of(fragmented(pcaps / "quota-3.9.pcap", tmp_path / "fragments.pcap"))
    wanted = payloads(source)
    index = FrameIndex(source)
    assert index.covers(0, 24, wanted[-1][0])
    for flow in {one[1] for one in wanted}:
        found = [(seq, data, time) for seq, data, time in index.pieces(0, flow, 0, wanted[-1][0])]
        assert found == [one[2:] for one in wanted if one[1] == flow]
    late = next(one[0] for one in wanted if len(one[3]) > 500)
    assert not FrameIndex(source).covers(0, late, wanted[-1][0])


@pytest.mark.parametrize("name", FILES)
def test_frames_that_are_read_together_are_what_each_is(pcaps: Path, name: str) -> None:
    """Law: what follows one another in the stream is joined, apart from what came at another time than the first byte; nothing
    is given where bytes are missing or come again.
    """
    source, joined = source_of(pcaps / name), 0
    wanted = payloads(source)
    index = FrameIndex(source)
    low, high = wanted[0][0], wanted[-1][0]
    assert index.covers(0, low, high)
    for begin in (0, 1, 3):
        of_flow: dict[bytes, list[Payload]] = {}
        for one in wanted[begin:]:
            of_flow.setdefault(one[1], []).append(one)
        places: list[Any] = [
            SimpleNamespace(flow=flow, low=some[0][0], high=high, size=1 << 20, first_ns=some[0][4])
            for flow, some in of_flow.items()
        ]
        for place, pieces in zip(places, index.joined(0, places)):
            some = of_flow[place.flow]
            if any(b[2] != (a[2] + len(a[3])) % 2**32 for a, b in pairwise(some)):
                assert not pieces
                continue
            assert b"".join(piece.data for piece in pieces) == b"".join(one[3] for one in some)
            assert pieces[0].seq == some[0][2]
            assert all(b.seq == (a.seq + len(a.data)) % 2**32 for a, b in pairwise(pieces))
            first = b"".join(one[3] for one in some if one[4] == place.first_ns)
            assert b"".join(piece.data for piece in pieces if piece.time_ns == place.first_ns) == first
            joined += 1
    assert joined


def test_frames_that_are_read_together_take_bounded_memory(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: what is joined is no more than is read again at once; a frame behind that is left out, whatever it claims."""
    monkeypatch.setattr(frame_index, "REREAD_AT_ONCE_BYTES", 2_000)
    source = source_of(pcaps / "go-franz.pcap")
    wanted = payloads(source)
    index = FrameIndex(source)
    assert index.covers(0, wanted[0][0], wanted[-1][0])
    places: list[Any] = [SimpleNamespace(flow=one[1], low=one[0], high=one[0], size=1, first_ns=one[4]) for one in wanted[:200]]
    sizes = [sum(len(piece.data) for piece in pieces) for pieces in index.joined(0, places)]
    assert 0 < sum(sizes) <= 2_000 < sum(len(one[3]) for one in wanted[:200])
    monkeypatch.setattr(frame_index, "REREAD_AT_ONCE_BYTES", 0)
    assert index.joined(0, places) == [[]] * len(places), "none of them is read ahead"


def bodies(path: Path, side: str = "request") -> tuple[list[bytes], list[bytes]]:
    """The large requests of a capture, as tables read them again and each alone."""
    reading, together, alone = CapturePass([str(path)]), list[bytes](), list[bytes]()
    reading.keep_bodies()
    for batch in reading.batches():
        passed = [number for number, values in batch.bodies.carried.items() if values.passed]
        wanted = [at for at, row in enumerate(batch.rows) if row[PART[f"{side}_slot"]] in passed]
        for at in wanted:
            message = reading.message(batch, at, side)
            assert message is not None
            together.append(bytes(message.frame))
        alone += [FrameReader(reading.frames._source).frame(location(batch, at, side), behind=4) for at in wanted]
    return together, alone


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """No frame is read with what lies between its packets, but for the first ones."""
    monkeypatch.setattr("kcap.capture.frame_reader.READ_WINDOW_BYTES", 3 * SIZE)


@pytest.mark.usefixtures("narrow")
def test_frames_among_each_other_cost_one_reading(tmp_path: Path, readings: list[int]) -> None:
    """Law: readings are in proportion to the file; frames are what each is alone."""
    path = capture(tmp_path / "together.pcap", records, "produce", together=True)
    together, alone = bodies(path)
    assert together == alone
    assert len(together) > 15
    spans = sum(sorted(readings)[-len(alone) :])
    assert sum(readings) - spans <= 4 * path.stat().st_size < spans / 2


@pytest.mark.usefixtures("narrow")
def test_frames_that_end_early_cost_one_reading(tmp_path: Path, readings: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: what is read follows from the bytes that came, not from those that were announced."""
    monkeypatch.setattr(limits, "FRAME_GATHERED_MAX", 4 * SIZE)
    taps = [Tap(port=40_000 + n, time_ns=1_000 * MS + 1_000 * n).open().client(metadata(0)) for n in range(64)]
    for tap in taps:
        whole = produce(1, 1, bytes(1 << 23))
        tap.server(metadata_answer(0)).client(whole[:20_000])
    path = saved(tmp_path / "early.pcap", *taps)
    reading, found = CapturePass([str(path)]), list[int]()
    reading.keep_bodies()
    for batch in reading.batches():
        for at, row in enumerate(batch.rows):
            if row[PART["request_bytes"]] > SIZE:
                message = reading.message(batch, at, "request")
                found.append(0 if message is None else len(message.frame))
    assert found == [20_000 - 4] * 64
    assert sum(readings) <= 7 * path.stat().st_size


def test_frames_one_behind_the_other_need_no_index(
    tmp_path: Path, readings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: what lies apart is read by itself."""
    monkeypatch.setattr(frame_index, "FrameIndex", None)
    together, alone = bodies(capture(tmp_path / "apart.pcap", records, "produce", together=False))
    assert together == alone
    assert len(alone) == CONNECTIONS
    assert len(readings) == 2 * CONNECTIONS


@pytest.mark.usefixtures("narrow")
def test_frames_of_both_sides_cost_one_reading(tmp_path: Path, readings: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: requests and responses that are taken in turn, from one end of the file and the other, cost no more."""
    monkeypatch.setattr(limits, "FRAME_GATHERED_MAX", 10_000)
    name = "t" * 20_000
    taps = [Tap(port=40_000 + n, time_ns=1_000 * MS + 1_000 * n).open().client(metadata(0)) for n in range(64)]
    for number, tap in enumerate(taps):
        tap.server(metadata_answer(0)).client(produce(1, 1, topic=name) if number % 2 else metadata(1, topic=name))
        tap.server(produce_answer(1, topic=name) if number % 2 else metadata_answer(1, brokers=2_000))
    path = saved(tmp_path / "both.pcap", *taps)
    reading, found = CapturePass([str(path)]), list[int]()
    reading.keep_bodies()
    for batch in reading.batches():
        for at, row in enumerate(batch.rows):
            for side in ("request", "response") if row[PART["correlation_id"]] else ():
                message = reading.message(batch, at, side)
                assert message is not None
                found.append(len(message.frame))
    assert len(found) == 128
    assert min(found) > 10_000
    assert sum(readings) <= 4 * path.stat().st_size
