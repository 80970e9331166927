"""Segments travel without their headers and come out as they were."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kcap.distributed.stripped_segments import (
    CAPTURED,
    LENGTH,
    PAYLOAD,
    StrippedSegments,
    distances,
    in_directions,
    unpack_segments,
)
from kcap.net.segment_columns import CLEAN, NAMES

WORD = st.integers(0, (1 << 32) - 1)
ROW = st.tuples(
    st.integers(0, 2), WORD, WORD, st.integers(0, 255), st.integers(-1, 65535), st.binary(max_size=9), st.integers(0, 3),
    st.booleans(),
)  # fmt: skip
FLOWS = [b"a" * 12, b"b" * 36, b"c" * 12]


def stripped(rows: list[tuple[int, int, int, int, int, bytes, int, bool]]) -> StrippedSegments:
    """Segments of some directions: flow, seq, ack, flags, window, payload, bytes cut off, and whether it was blanked."""
    flow = np.array([row[0] for row in rows], np.int64)
    captured = np.array([len(row[5]) for row in rows], np.int64)
    order, starts = in_directions(flow, captured)
    numbers = np.array([[*row[1:5], 0, len(row[5]), len(row[5]) + row[6]] for row in rows], np.int64).T.copy()
    numbers[PAYLOAD] = starts
    data = b"".join([*(rows[at][5] for at in order.tolist()), *FLOWS])
    return StrippedSegments(numbers, flow, FLOWS, np.array([row[7] for row in rows]), data)


def told(segments: StrippedSegments) -> list[tuple[object, ...]]:
    """Segments as they were given."""
    return [
        (int(flow), *numbers[:4], segments.data[numbers[PAYLOAD] : numbers[PAYLOAD] + numbers[CAPTURED]],
         numbers[LENGTH] - numbers[CAPTURED], bool(blanked))
        for flow, numbers, blanked in zip(segments.flow, segments.numbers.T.tolist(), segments.blanked, strict=True)
    ]  # fmt: skip


@given(st.lists(ROW, min_size=1, max_size=20))
def test_segments_come_out_as_they_went_in(rows) -> None:
    """Law: packing and unpacking change nothing."""
    before = stripped(rows)
    assert told(before) == rows
    after = unpack_segments(before.pack(), len(rows))
    assert told(after) == rows
    assert after.flows == FLOWS


@given(st.lists(ROW, min_size=1, max_size=20), st.sets(st.integers(0, 2)))
def test_segments_without_some_flows(rows, gone: set[int]) -> None:
    """Law: the others stay as they were, and it is told which these are."""
    left, stay = stripped(rows).without(np.array([at in gone for at in range(3)]))
    assert told(left) == [row for row in rows if row[0] not in gone]
    assert stay.tolist() == [row[0] not in gone for row in rows]


@given(st.lists(ROW, min_size=1, max_size=20), st.integers(0, 19), st.integers(1, 20))
def test_they_are_segments_for_the_analyzer(rows, first: int, count: int) -> None:
    """Law: columns of some of them are these segments, with their flow keys."""
    first = min(first, len(rows) - 1)
    last = min(first + count, len(rows))
    times, positions = np.arange(last - first) * 10, np.arange(last - first) * 100
    found = stripped(rows).columns(3, first, last, times, positions)
    assert (found.state == CLEAN).all()
    batch = found.all()
    assert (batch.file, batch.time_ns, batch.position) == (3, times.tolist(), positions.tolist())
    for at, (flow, seq, ack, flags, window, payload, cut, _) in enumerate(rows[first:last]):
        assert batch.flow[at] == FLOWS[flow]
        assert (batch.seq[at], batch.ack[at], batch.flags[at], batch.window[at]) == (seq, ack, flags, window)
        assert batch.buffer[batch.payload[at] : batch.payload[at] + batch.captured[at]] == payload
        assert batch.length[at] == len(payload) + cut


def test_a_stream_in_order_is_small() -> None:
    """A thousand segments of one direction that follow each other take some four bytes each, the payload aside."""
    rows = [(0, 100 + 9 * at, 50 + 3 * at, 24, 500, b"x" * 9, 0, False) for at in range(1000)]
    assert len(stripped(rows).pack()) < (9 + 4) * 1000
    assert len(NAMES) == 7


@given(WORD, WORD)
def test_distances_are_signed(one: int, other: int) -> None:
    """Law: in -2^31 up to 2^31, and right modulo 2^32."""
    distance = int(distances(np.array([one - other]))[0])
    assert -(1 << 31) <= distance < 1 << 31
    assert (other + distance) % (1 << 32) == one
