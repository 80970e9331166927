"""Stripping leaves what rows need and marks what it blanks."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.distributed import stripping
from kcap.distributed.chunks import AT, CAPTURED, COLUMNS, PAYLOAD, SEQ, ShardPackets
from kcap.distributed.flow_shards import keys_of_lists
from kcap.distributed.stripping import BLANK, Stripper, directions_of, gather
from kcap.limits import STRIPPED_GAP_BYTES, STRIPPED_MIDSTREAM_BYTES
from kcap.net.segment_columns import columns_of
from kcap.wire.formats import BATCH_MIN
from tests.records.batches import batch as record_batch
from tests.records.batches import record
from tests.support.wire import Segment, Tap, batch, produce, shuffled
from tests.support.wire import batch as segments_of

PORTS = st.sampled_from([b"\x9c\x40\x23\x84", b"\x23\x84\x9c\x40", b"\x9c\x41\x23\x84"])
FLOWS = st.builds(lambda size, ports: bytes(size) + ports, st.sampled_from([8, 32]), PORTS)


@pytest.mark.parametrize("compiled", [False, True])
@given(st.binary(min_size=40, max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=9))
def test_pieces_stand_one_behind_the_other(compiled: bool, source: bytes, spans: list[tuple[int, int]]) -> None:
    """Law: both ways copy the same bytes, to the beginning."""
    pieces = np.array([sorted(span) for span in spans], np.int64).reshape(-1, 2)
    wanted = b"".join(source[low:high] for low, high in pieces.tolist())
    out = np.zeros(len(wanted) + 3, np.uint8)
    gather(np.frombuffer(source, np.uint8), pieces[:, 0], pieces[:, 1] - pieces[:, 0], out, compiled=compiled)
    assert out.tobytes() == wanted + bytes(3)


@pytest.mark.parametrize("collide", [False, True])
@given(st.lists(FLOWS, min_size=1, max_size=20))
def test_directions_are_told_apart(collide: bool, flows: list[bytes]) -> None:
    """Law: by their keys alone, also where two of these have the same number."""
    columns = columns_of(batch([Segment(0, flow, 0, 0, 16) for flow in flows]))
    numbers = keys_of_lists(flows)
    if collide:
        numbers = np.array([int.from_bytes(flow[-8:], "little", signed=True) for flow in flows], np.int64)
    keys, first, own = directions_of(columns, np.arange(len(flows)), numbers)
    assert sorted(keys) == sorted(set(flows))
    assert [keys[at] for at in own.tolist()] == flows
    assert [flows.index(key) for key in keys] == first.tolist()


RECORDS = record_batch(record(value=b"v" * 3000))
PLAIN, REST = bytes([BLANK]) * (len(RECORDS) - BATCH_MIN), RECORDS[:BATCH_MIN]


def strip(
    segments: list[Segment], *, fresh: bool = False, at_once: int = 0, compiled: bool = False, shards: int = 1
) -> list[tuple[int, ShardPackets]]:
    """The chunks of some segments, taken so many at a time."""
    stripper, out = Stripper(0), list[tuple[int, ShardPackets]]()
    size = at_once or len(segments)
    for first in range(0, len(segments), size):
        some = segments[first : first + size]
        found = segments_of(some, first + 1)
        columns = np.zeros((len(COLUMNS), len(some)), np.int64)
        columns[AT["number"]] = found.packet
        columns[AT["start"]] = np.array(found.position) + 16
        columns[AT["head"]] = 16
        shard = np.array([one.flow[-1] ^ one.flow[-3] for one in some], np.int64) % shards
        keys = keys_of_lists(found.flow)
        stripper.take(columns, shard, keys, columns_of(found) if compiled else found, np.full(len(some), fresh))
        if stripper.full:
            out += stripper.chunks()
    return [*out, *stripper.chunks()]


def payloads(chunks: list[tuple[int, ShardPackets]]) -> Iterator[tuple[int, bytes, bool]]:
    """Number, payload as it travels, and whether it was blanked, of each packet."""
    for _, chunk in chunks:
        stripped = chunk.stripped
        assert stripped is not None
        for at, number in enumerate(chunk.column("number").tolist()):
            start, size = stripped.numbers[PAYLOAD, at], stripped.numbers[CAPTURED, at]
            yield number, stripped.data[start : start + size], bool(stripped.blanked[at])


def asked(count: int, port: int = 40_000) -> Tap:
    """A client that produces a batch again and again."""
    tap = Tap(port=port).open()
    for correlation in range(count):
        tap.client(produce(correlation, 1, RECORDS), 1000)
    return tap


@pytest.mark.parametrize("compiled", [False, True])
@given(st.integers(1, 4), st.integers(0, 9), st.integers(0, 99), st.booleans(), st.integers(0, 7), st.integers(1, 3))
def test_records_are_blanked_wherever_segments_are_cut(
    compiled: bool, count: int, reach: int, seed: int, twice: bool, at_once: int, shards: int
) -> None:
    """Law: of a stream that is complete all records of proven batches are blank, in whatever order and however often its
    segments came; all other bytes are as they were; a segment with blank bytes says so, others do not."""
    segments = asked(count).segments
    if twice:
        segments = [one for segment in segments for one in (segment, segment)]
    segments = shuffled(segments, reach, seed)
    chunks = strip(segments, at_once=at_once, compiled=compiled, shards=shards)
    assert sorted(number for number, _, _ in payloads(chunks)) == list(range(1, len(segments) + 1))
    stream: dict[int, int] = {}
    for number, data, blanked in payloads(chunks):
        before = segments[number - 1]
        assert blanked == (data != before.payload)
        assert all(byte in (was, BLANK) for byte, was in zip(data, before.payload, strict=True))
        for at, byte in enumerate(data):
            assert stream.setdefault(before.seq + at, byte) == byte
    got = bytes(stream[at] for at in sorted(stream))
    assert got == b"".join(produce(at, 1, RECORDS) for at in range(count)).replace(RECORDS, REST + PLAIN)


def test_headers_stay() -> None:
    """Numbers, times, places and what TCP said are those of the packets."""
    segments = asked(2).segments
    ((_, chunk),) = strip(segments)
    assert chunk.stripped is not None
    found = segments_of(segments)
    assert chunk.column("number").tolist() == found.packet
    assert chunk.column("start").tolist() == found.position
    assert [chunk.stripped.flows[at] for at in chunk.stripped.flow] == found.flow
    for row, name in ((SEQ, "seq"), (1, "ack"), (2, "flags"), (3, "window"), (CAPTURED, "captured"), (6, "length")):
        assert chunk.stripped.numbers[row].tolist() == getattr(found, name)


def blanked(segments: list[Segment], **options: bool) -> list[int]:
    """Numbers of segments of which something is blank."""
    return [number for number, _, some in payloads(strip(segments, **options)) if some]


def test_what_comes_first_without_a_syn_stays() -> None:
    """There a frame boundary is searched for, unless an earlier range has the connection's beginning."""
    segments = [one for one in asked(STRIPPED_MIDSTREAM_BYTES // len(RECORDS) + 20).segments if one.payload]
    assert blanked(segments)[0] == 1
    numbers = blanked(segments, fresh=True)
    assert STRIPPED_MIDSTREAM_BYTES < sum(len(one.payload) for one in segments[: numbers[0]]) < STRIPPED_MIDSTREAM_BYTES + 8000
    assert blanked(asked(3).segments, fresh=True)[0] == 4


def test_what_is_behind_a_hole_stays() -> None:
    """Also where the snapshot length took it."""
    whole = asked(STRIPPED_GAP_BYTES // len(RECORDS) + 20).segments
    lost, cut = whole[:30] + whole[31:], [*whole[:30], replace(whole[30], cut=len(whole[30].payload) - 20), *whole[31:]]
    for segments in (lost, cut):
        numbers = blanked(segments)
        pause = next(after for before, after in pairwise(numbers) if after > before + 9)
        before = [number for number in numbers if number < pause]
        assert 27 <= before[-1] <= 31
        left = sum(len(one.payload) for one in segments[before[-1] : pause])
        assert STRIPPED_GAP_BYTES < left < STRIPPED_GAP_BYTES + 10_000


def test_the_log_of_kraft_stays() -> None:
    """Its records name topics. Other directions that are seen with it are blanked."""
    log, other = asked(3), asked(3, 40_001)
    named = Tap(port=40_000)
    named.next = list(log.next)
    named.client(produce(9, 1, RECORDS, topic="__cluster_metadata"))
    segments = [*log.segments, *named.segments, *other.segments]
    numbers = blanked(segments)
    assert numbers
    assert min(numbers) > len(log.segments) + len(named.segments)


def test_without_a_quick_sum_all_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stripping, "can_verify", lambda compiled: False)
    segments = asked(2).segments
    assert [(data, some) for _, data, some in payloads(strip(segments))] == [(one.payload, False) for one in segments]


def test_chunks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By payload and by packets; what there is comes in its order."""
    monkeypatch.setattr(stripping, "STRIPPED_CHUNK_BYTES", 5000)
    monkeypatch.setattr(stripping, "STRIPPED_PACKETS", 16)
    segments = asked(9).segments
    chunks = strip(segments, at_once=4)
    assert [number for number, _, _ in payloads(chunks)] == list(range(1, len(segments) + 1))
    sizes = [len(chunk.stripped.data) for _, chunk in chunks if chunk.stripped is not None]
    assert max(sizes) < 5000 + 1000 + 24
