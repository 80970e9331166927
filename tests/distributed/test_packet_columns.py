"""Chunks travel, come together in order, and find their bytes again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcap.distributed.packet_columns import AT, COLUMNS, ShardPackets, columns_of, merged, ranks_of, unpack, with_bytes
from kcap.errors import CaptureError
from kcap.limits import CHUNK_GAP_BYTES, CHUNK_SPARSE
from tests.capture.handmade import batch_of, rows

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
