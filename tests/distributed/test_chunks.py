"""Laws of chunks: packing is the inverse of unpacking, merging gives the order of the capture."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.distributed.chunks import (
    AT,
    CAPTURED,
    COLUMN,
    COLUMNS,
    LENGTH,
    PAYLOAD,
    ShardPackets,
    StrippedSegments,
    columns_of,
    distances,
    in_directions,
    merged,
    pack_column,
    ranks_of,
    unpack,
    unpack_column,
    unpack_segments,
    with_bytes,
)
from kcap.errors import CaptureError
from kcap.limits import CHUNK_GAP_BYTES, CHUNK_SPARSE
from kcap.net.segment_columns import CLEAN, NAMES
from tests.capture.handmade import batch_of, rows

SMALL, WIDE = st.integers(-100, 100), st.integers(-(1 << 62), 1 << 62)


@pytest.mark.parametrize("rising", [False, True])
@given(st.lists(st.lists(st.one_of(SMALL, WIDE), min_size=3, max_size=3), min_size=1, max_size=4))
def test_columns_come_out_as_they_went_in(rising: bool, columns: list[list[int]]) -> None:
    """Law: one behind the other, whatever they hold."""
    packed = b"".join(part for column in columns for part in pack_column(np.array(column, np.int64), rising=rising))
    at, out = 0, np.empty(3, np.int64)
    for column in columns:
        at = unpack_column(packed, at, out, rising=rising)
        assert out.tolist() == column
    assert at == len(packed)


def test_numbers_take_the_bytes_they_need() -> None:
    """Constant ones none, small steps one each."""
    assert sum(map(len, pack_column(np.full(1000, 1 << 40), rising=False))) == COLUMN.size
    assert sum(map(len, pack_column((1 << 40) + 100 * np.arange(1000), rising=True))) == COLUMN.size + 1000
    assert sum(map(len, pack_column((1 << 40) + 100 * np.arange(1000), rising=False))) == COLUMN.size + 4000


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


def reported(segments: StrippedSegments) -> list[tuple[object, ...]]:
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
    assert reported(before) == rows
    after = unpack_segments(before.pack(), len(rows))
    assert reported(after) == rows
    assert after.flows == FLOWS


@given(st.lists(ROW, min_size=1, max_size=20), st.sets(st.integers(0, 2)))
def test_segments_without_some_flows(rows, gone: set[int]) -> None:
    """Law: the others stay as they were, and it is reported which these are."""
    left, stay = stripped(rows).without_flows(np.array([at in gone for at in range(3)]))
    assert reported(left) == [row for row in rows if row[0] not in gone]
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


VALUES = st.integers(-(1 << 62), 1 << 62)
SMALL = st.integers(0, 300)


@given(st.lists(st.tuples(*[st.one_of(SMALL, VALUES)] * len(COLUMNS)), min_size=1, max_size=30), st.integers(0, 1000))
def test_a_chunk_comes_out_as_it_went_in(values, file: int) -> None:
    """Law: packing and unpacking change nothing."""
    chunk = ShardPackets(file, np.array(values, np.int64).T.copy())
    back = unpack(chunk.pack(), b"x")
    assert (back.file, back.data) == (file, b"x")
    assert (back.columns == chunk.columns).all()


def test_packets_in_a_row_are_small() -> None:
    """A thousand packets of one flow take some ten bytes each."""
    count = 1000
    columns = np.zeros((len(COLUMNS), count), np.int64)
    columns[AT["number"]] = np.arange(count) * 3
    columns[AT["time_ns"]] = columns[AT["latest"]] = 10**18 + np.arange(count) * 10**6
    columns[AT["start"]] = np.arange(count) * 700
    columns[AT["captured"]] = 200
    assert len(ShardPackets(0, columns).pack()) < 12 * count


@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=25), min_size=1, max_size=4), st.integers(1, 7), st.randoms())
def test_chunks_of_files_come_in_the_order_of_a_capture(files, size: int, random) -> None:
    """Law: by the latest time so far of each file, ties by name, a file's own order kept."""
    names = [f"file{at}" for at in range(len(files))]
    random.shuffle(names)
    ranks = ranks_of(names)
    chunks, wanted = [], []
    for file, times in enumerate(files):
        latest = np.maximum.accumulate(np.array(times, np.int64))
        wanted += [(int(time), names[file], number) for number, time in enumerate(latest.tolist(), 1)]
        for at in range(0, len(times), size):
            columns = np.zeros((len(COLUMNS), len(times[at : at + size])), np.int64)
            columns[AT["number"]] = np.arange(at + 1, at + 1 + columns.shape[1])
            columns[AT["latest"]] = latest[at : at + size]
            chunks.append(ShardPackets(file, columns))
    chunks.sort(key=lambda c: (int(c.column("latest")[0]), ranks[c.file], int(c.column("number")[0])))
    got = [
        (int(chunk.column("latest")[at]), names[chunk.file], int(chunk.column("number")[at]))
        for chunk, first, last in merged(chunks, ranks)
        for at in range(first, last)
    ]
    assert got == sorted(wanted)


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=12), st.booleans(), st.data())
def test_packets_get_their_bytes_back(packets: list[bytes], carried: bool, data) -> None:
    """Law: what is read again by reference, or came along, is what the packets held."""
    batch = batch_of(*packets)
    base = 5000
    file = bytes(base) + batch.buffer
    columns = columns_of(batch, base, None)
    chunk = ShardPackets(3, columns, b"".join(packets) if carried else None)
    first = data.draw(st.integers(0, len(packets) - 1))
    last = data.draw(st.integers(first + 1, len(packets)))
    got = with_bytes(chunk, first, last, lambda _file, offset, size: file[offset : offset + size])
    wanted = [row[1:4] for row in rows(batch)[first:last]]
    assert [row[1:4] for row in rows(got)] == wanted
    assert [int(at) for at in got.position] == [int(at) for at in batch.position[first:last]]


@given(st.lists(st.tuples(st.integers(1, 300), st.sampled_from([0, 7, 3000, 20_000])), min_size=1, max_size=12))
def test_packets_that_lie_apart_are_picked_out(packets: list[tuple[int, int]]) -> None:
    """Law: however much lies between packets in the file, each has its own bytes; what is far apart is read apart."""
    file, starts, reads = bytearray(), list[int](), list[int]()
    for at, (size, gap) in enumerate(packets):
        file += b"\xff" * gap
        starts.append(len(file))
        file += bytes([at]) * size
    columns = np.zeros((len(COLUMNS), len(packets)), np.int64)
    columns[AT["start"]], columns[AT["captured"]] = starts, [size for size, _ in packets]

    def read_at(_file: int, offset: int, size: int) -> bytes:
        reads.append(size)
        return bytes(file[offset : offset + size])

    got = with_bytes(ShardPackets(0, columns), 0, len(packets), read_at)
    for at, (size, _) in enumerate(packets):
        start = int(got.start[at])
        assert got.buffer[start : start + size] == bytes([at]) * size
    assert len(reads) == 1 + sum(gap > CHUNK_GAP_BYTES for _, gap in packets[1:])
    assert len(got.buffer) <= CHUNK_SPARSE * sum(size for size, _ in packets)


def test_a_file_that_became_shorter_is_an_error() -> None:
    """Never silently short."""
    chunk = ShardPackets(0, columns_of(batch_of(b"abcdef"), 0, None))
    with pytest.raises(CaptureError, match="ends at byte 3"):
        with_bytes(chunk, 0, 1, lambda _file, _offset, _size: b"abc")
