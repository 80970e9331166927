"""The law of the fast path: rows, connections and weirds are those of the reference path alone, for any input."""

import random
import struct
import weakref
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.analyzer import Analyzer
from kcap.capture.fileset import FileSet, ignore
from kcap.fastpath import engine
from kcap.model import ROW
from kcap.net.segment_columns import columns_of
from kcap.net.segments import SegmentParser
from kcap.net.tcp import MASK
from tests.fastpath.both import agree, cut, result_of
from tests.laws.test_streams import conversation, fields, message_pairs, straight_time
from tests.support.wire import (
    MS,
    Segment,
    Tap,
    batch,
    metadata,
    metadata_answer,
    produce,
    produce_answer,
    shuffled,
)

CALM = ("pipelined.pcap", "librdkafka-zstd.pcap", "aiokafka.pcap", "long-polls.pcap")
ODD = (
    "any-interface.pcap",
    "raw-frames.pcap",
    "sasl-raw-tokens.pcap",
    "broker-paused.pcap",
    "java-transactions.pcap",
    "fallback-0.9.pcap",
    "tls13.pcapng",
)


def steady(count: int = 40, depth: int = 3, size: int = 1448, first: int = 0) -> Tap:
    """A long conversation of small and large frames, acknowledged now and then."""
    messages = []
    for correlation in range(first, first + count):
        kind = correlation % 3
        body = bytes(correlation * 97 % 4000)
        pairs = (
            (metadata(correlation), metadata_answer(correlation, correlation % 150)),
            (produce(correlation, 1, body), produce_answer(correlation)),
            (produce(correlation, -1), produce_answer(correlation, error=3)),
        )
        messages.append(pairs[kind])
    return conversation(messages, size, depth)


@given(message_pairs(), st.integers(20, 3000), st.integers(1, 5), st.integers(1, 60), st.integers(1, 9), st.integers(0, MASK))
def test_conversations(messages: list[tuple[bytes, bytes]], sizes: int, depth: int, size: int, step: int, isn: int) -> None:
    """Pipelining, frames over many segments, acks=0, any batch and sequence number."""
    agree(conversation(messages * 2, sizes, depth, isn).close().segments, size, step)


@given(message_pairs(), st.integers(60, 3000), st.integers(1, 5), st.integers(1, 12), st.integers(0, 1000), st.integers(1, 9))
def test_reordering(messages: list[tuple[bytes, bytes]], sizes: int, depth: int, reach: int, seed: int, step: int) -> None:
    agree(shuffled(conversation(messages * 2, sizes, depth).segments, reach, seed), 30, step)


@given(message_pairs(), st.integers(40, 3000), st.integers(1, 5), st.data())
def test_damage(messages: list[tuple[bytes, bytes]], sizes: int, depth: int, data: st.DataObject) -> None:
    """Segments seen twice, lost, cut by a snapshot length; windows that close; time that goes back."""
    out: list[Segment] = []
    for s in conversation(messages * 2, sizes, depth).close().segments:
        fate = data.draw(st.integers(0, 30))
        if fate == 0:
            continue
        if fate == 1 and s.payload:
            s = replace(s, cut=data.draw(st.integers(0, len(s.payload))))
        if fate == 2:
            s = replace(s, window=0)
        out.append(s)
        if fate == 3:
            out.append(data.draw(st.sampled_from(out[-6:])))
    times = [Segment(straight_time(out, at), *fields(s)) for at, s in enumerate(out)]
    if times:
        at = data.draw(st.integers(0, len(times) - 1))
        by = data.draw(st.sampled_from((0, 0, -5 * MS, 40_000 * MS, 4_000_000 * MS)))
        times[at:] = [replace(s, time_ns=s.time_ns + by) for s in times[at:]]
    agree(times, data.draw(st.integers(1, 60)), data.draw(st.integers(1, 9)))


def lossy(count: int, *missing: int) -> list[Segment]:
    """A conversation of small frames, each in a packet, of which these requests are missing."""
    pairs = [(metadata(at), metadata_answer(at)) for at in range(1, count)]
    dropped = {pairs[at][0] for at in missing}
    return [s for s in conversation(pairs, 1448, 1).segments if s.payload not in dropped]


def test_a_connection_comes_back_soon_behind_each_lost_request() -> None:
    """A hole is decided 64 segments later, and with the next response that the lost one will not be paired any more."""
    losses = 1000, 2000, 3000
    found = agree(lossy(4000, *losses), 500, limits.FAST_PATH_PACKETS)
    assert 4000 - found.fast_rows < 3 * len(losses) * limits.REORDER_SEGMENTS


def test_a_response_before_its_request_behind_a_loss_is_paired_where_the_packet_begins_in_the_fast_path() -> None:
    """What that packet acknowledges says that the broker had the request."""
    tap = Tap().open()
    for at in range(1, 400):
        tap.client(metadata(at)).server(metadata_answer(at))
    tap.client(metadata(400)).client(metadata(401)).server(metadata_answer(400) + metadata_answer(401))
    segments = [s for s in tap.segments if s.payload != metadata(100)]
    request_, answers = segments[-2:]
    segments[-2:] = replace(answers, time_ns=request_.time_ns), replace(request_, time_ns=answers.time_ns)
    assert agree(segments, 1000, limits.FAST_PATH_PACKETS).fast_rows


def test_a_connection_that_leaves_again_soon_stays_outside_for_longer() -> None:
    losses = range(100, 3000, limits.REORDER_SEGMENTS + 16)
    found = agree(lossy(3000, *losses), 500, limits.FAST_PATH_PACKETS)
    assert found.fast_rows - losses[0] < 16 * len(losses) / 2


def snapped(segments: list[Segment], length: int) -> list[Segment]:
    """Segments of which a snapshot length left at most so many bytes of payload."""
    return [replace(s, cut=max(len(s.payload) - length, 0)) for s in segments]


@given(message_pairs(), st.integers(20, 3000), st.integers(1, 5), st.integers(0, 400), st.integers(1, 60), st.booleans())
def test_snapshot_lengths(
    messages: list[tuple[bytes, bytes]], sizes: int, depth: int, length: int, size: int, pickled: bool
) -> None:
    """Packets that are cut, with frames that begin, continue and end in them; also restored after any batch."""
    segments = snapped(conversation(messages * 2, sizes, depth).close().segments, length)
    if not pickled:
        agree(segments, size, 7)
        return
    batches = cut(segments, size)
    result_of(batches, fast_path=True, pickled=True).same(result_of(batches, fast_path=False))


def test_large_requests_that_were_cut_stay_in_the_fast_path() -> None:
    messages = [(produce(at, 1, bytes(5000)), produce_answer(at)) for at in range(40)]
    found = agree(snapped(conversation(messages, 1448, 1).close().segments, 120))
    assert found.fast_rows == 40
    assert found.own == 1


def test_a_large_frame_that_is_cut_in_its_middle_leaves_the_fast_path() -> None:
    """Its first packets are whole; what was read of it as it passed goes along."""
    messages = [(produce(at, 1, bytes(300_000)), produce_answer(at)) for at in range(3)]
    segments = conversation(messages, 1448, 1).close().segments
    for at in (50, 250, 450):
        segments[at] = replace(segments[at], cut=1000)
    assert agree(segments).fast_rows


@given(st.lists(st.tuples(st.integers(0, 1), st.binary(max_size=60), st.integers(0, 63), st.integers(-300, 300)), max_size=20))
def test_noise_in_a_calm_connection(noise: list[tuple[int, bytes, int, int]]) -> None:
    """Any flags, numbers and bytes after the connection has entered."""
    tap = steady(8)
    for side, payload, flags, shift in noise:
        tap.add(side, flags, payload, seq=(tap.next[side] + shift) & MASK)
    agree(tap.segments, 20, 4)


def test_a_connection_in_order_is_in_the_fast_path() -> None:
    """The law would hold for a fast path that takes nothing."""
    fast = agree(steady(60).close().segments)
    assert fast.fast_rows > 40


def test_several_connections_side_by_side() -> None:
    taps = [
        conversation([(metadata(n), metadata_answer(n, n)) for n in range(30)], 700, depth, 1000 * depth) for depth in (1, 2, 4)
    ]
    segments = []
    for number, tap in enumerate(taps):
        for s in tap.close().segments:
            ports = struct.pack(">HH", 50_000 + number, 9092)
            side = s.flow[-2:] == b"\x23\x84"
            segments.append(replace(s, flow=s.flow[:8] + (ports if side else ports[2:] + ports[:2])))
    segments.sort(key=lambda s: s.time_ns)
    assert agree(segments, 40, 6).fast_rows > 30


def test_connections_that_keep_losing_packets_side_by_side() -> None:
    """Each stops the walk where its next hole should be decided, and has another hole by then: all in vain, in one batch."""
    pairs = [(metadata(at), metadata_answer(at)) for at in range(1, 300)]
    segments = []
    for number in range(10):
        lose = random.Random(number)
        ends = struct.pack(">H", 50_000 + number)
        for at, s in enumerate(conversation(pairs, 1448, 1).segments):
            if at < 9 or lose.random() > 0.08:
                flow = s.flow[:8] + s.flow[8:].replace(struct.pack(">H", 40_000), ends)
                segments.append(replace(s, flow=flow, time_ns=at * MS + number))
    segments.sort(key=lambda s: s.time_ns)
    agree(segments, len(segments), limits.FAST_PATH_PACKETS)


def test_client_ids_are_forgotten() -> None:
    """With room for one name only, rows have theirs all the same."""
    with patch.object(limits, "FAST_PATH_NAMES", 0):
        tap = steady(12)
        for number in range(60, 90):
            tap.client(metadata(number, client_id=f"app-{number // 10}")).server(metadata_answer(number))
        assert agree(tap.segments, 12, 4).fast_rows > 10


def test_client_ids_that_are_none_are_masked() -> None:
    tap = steady(30)
    for number in range(60, 90):
        tap.client(metadata(number, client_id="app\0\1")).server(metadata_answer(number))
    masked = [row[ROW.index("client_id")] for row in agree(tap.segments, 12, 4).rows[30:]]
    assert masked == ["(masked)"] * 30


def test_ports_used_again() -> None:
    first, shift = steady(20), 90_000_000
    later = [
        replace(s, time_ns=s.time_ns + first.time_ns, seq=(s.seq + shift) & MASK, ack=(s.ack + shift) & MASK)
        for s in steady(20, first=50).segments
    ]
    agree(first.segments + later, 30, 5)
    agree(first.reset().segments + later, 30, 5)


@given(message_pairs(), st.integers(100, 3000), st.integers(1, 4), st.integers(1, 40))
def test_a_restored_analyzer_goes_on_as_if_nothing_was(
    messages: list[tuple[bytes, bytes]], sizes: int, depth: int, size: int
) -> None:
    """Pickle and restore after any batch, rows waiting or not."""
    batches = cut(conversation(messages * 2, sizes, depth).close().segments, size)
    plain, copied = result_of(batches, fast_path=False), result_of(batches, fast_path=True, pickled=True)
    copied.same(plain)


@pytest.mark.parametrize("step", [32, engine.STEP])
@pytest.mark.parametrize("name", [*CALM, *ODD])
def test_real_captures(pcaps: Path, name: str, step: int) -> None:
    parser = SegmentParser(ignore)
    batches = [parser.parse(each) for each in FileSet([str(pcaps / name)], ignore).batches()]
    fast = result_of(batches, fast_path=True, step=step)
    fast.same(result_of(batches, fast_path=False))
    assert fast.fast_rows or name not in CALM


@pytest.mark.parametrize("lost", [False, True])
def test_what_time_decides_has_one_place_among_the_rows(lost: bool) -> None:
    """The end of a connection, and a hole, in a batch of more packets than the reference path takes at once."""
    other = Tap(port=40_001).open().client(metadata(1)).client(metadata(2)).client(metadata(3))
    if lost:
        del other.segments[-2]
    other.close()
    tap = conversation([(metadata(at), metadata_answer(at, 3)) for at in range(2 * limits.FEED_PACKETS)], 1448, 1)
    late = [replace(segment, time_ns=segment.time_ns + limits.CONNECTION_LINGER_NS) for segment in tap.segments]
    found = agree([*other.segments, *late], 1 << 13)
    assert {row[6] for row in found.rows} >= {"answered", "unanswered"}


def test_nothing_keeps_the_fast_path_behind_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the analyzer, which drops it: its arrays are some 20 MB, which what comes after a reading has better use for."""
    monkeypatch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 0)
    analyzer = Analyzer()
    analyzer.feed(columns_of(batch(steady(4).close().segments)))
    assert analyzer.fast_path is not None
    fast_path = weakref.ref(analyzer.fast_path)
    analyzer.finish()
    analyzer.fast_path = None
    assert fast_path() is None
