"""Segments as columns and back."""

import numpy as np

from kcap.model import SegmentBatch
from kcap.net.segment_columns import SLOW, columns_of
from tests.support.wire import Tap, batch, flow, metadata


def sample() -> SegmentBatch:
    return batch(Tap().open().client(metadata(1)).close().segments, 7)


def without_buffer(made: SegmentBatch) -> list[object]:
    """All columns, payloads as bytes."""
    spans = zip(made.payload, made.captured, strict=True)
    payloads = [made.buffers.get(at, made.buffer)[start : start + size] for at, (start, size) in enumerate(spans)]
    names = ("packet", "time_ns", "position", "flow", "seq", "ack", "flags", "window", "captured", "length")
    return [*(getattr(made, name) for name in names), payloads]


def test_there_and_back() -> None:
    assert without_buffer(columns_of(sample()).all()) == without_buffer(sample())
    assert len(columns_of(SegmentBatch(0, b""))) == 0


def test_those_of_a_flow() -> None:
    """Law: the segments of a flow are those among all whose flow it is, also where the slow path read them."""
    taps = [Tap(port=40_000 + number) for number in range(3)]
    for tap in taps:
        tap.open().client(metadata(1)).close()
    segments = sorted((segment for tap in taps for segment in tap.segments), key=lambda segment: segment.time_ns)
    columns = columns_of(batch(segments))
    other = len(columns) - 3
    columns.state[other], columns.flows[other] = SLOW, flow(40_000)
    every = columns.all()
    for each in {*every.flow, b"none", flow(50_000)}:
        wanted = [at for at, name in enumerate(every.flow) if name == each]
        assert columns.of_flows([each]).tolist() == wanted
    assert other in columns.of_flows([flow(40_000)]).tolist()
    some = [flow(40_000), flow(40_001), flow(50_000), b"none"]
    assert columns.of_flows(some).tolist() == [at for at, name in enumerate(every.flow) if name in some]


def test_some_places() -> None:
    whole, some = sample(), columns_of(sample()).lists(np.array([1, 3]))
    assert some.packet == [8, 10]
    assert some.flow == [whole.flow[1], whole.flow[3]]
    assert all(type(number) is int for number in some.time_ns)


def test_packets_between_and_buffers_of_their_own() -> None:
    """Packet numbers need not follow each other; a reassembled fragment has another buffer."""
    made = sample()
    made.packet[4:] = [number + 9 for number in made.packet[4:]]
    made.buffers[3] = b"x" * made.payload[3] + made.buffer[made.payload[3] :]
    again = columns_of(made)
    assert len(again) == made.packet[-1] - made.packet[0] + 1
    assert without_buffer(again.all()) == without_buffer(made)


def test_no_more_of_the_buffer_is_copied_than_is_needed() -> None:
    """A batch may be one packet of a window: blocks between packets end batches."""
    made = sample()
    size = len(made.buffer)
    made.buffer = bytes(1 << 20) + made.buffer + bytes(1 << 20)
    made.payload = [start + (1 << 20) for start in made.payload]
    columns = columns_of(made)
    assert len(columns.buffer) <= size + sum(map(len, made.flow))
    assert without_buffer(columns.all()) == without_buffer(sample())
