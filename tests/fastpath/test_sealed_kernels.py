"""Records are found in the ciphertext of several streams, and pieces are put where they belong."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kcap.fastpath.layout import P_AT, P_END, P_LENGTH, PIECE_WIDTH
from kcap.fastpath.sealed_kernels import framed, gathered

BODIES = st.lists(st.lists(st.integers(16, 300), max_size=6), min_size=1, max_size=4)


def record(size: int, kind: int = 23) -> bytes:
    return bytes([kind, 3, 3]) + size.to_bytes(2, "big") + bytes(size)


def found(streams: list[bytes], room: int = 64) -> list[list[int]]:
    ends = np.cumsum([len(data) for data in streams])
    bounds = np.zeros((room, 3), np.int64)
    count = framed(np.frombuffer(b"".join(streams) or b"\0", np.uint8).copy(), ends, bounds)
    assert count <= 64
    return [list(row) for row in bounds[: min(count, room)].tolist()]


@settings(max_examples=40)
@given(BODIES, st.integers(0, 20))
def test_whole_records_of_each_stream_are_found_and_the_beginning_of_another_is_not(bodies: list[list[int]], more: int) -> None:
    streams, wanted, at = [], [], 0
    for number, sizes in enumerate(bodies):
        for size in sizes:
            wanted.append([number, at, at + 5 + size])
            at += 5 + size
        streams.append(b"".join(map(record, sizes)) + record(16)[:more])
        at += more
    assert found(streams) == wanted


def test_a_record_of_another_kind_ends_its_stream_alone() -> None:
    assert found([record(20) + record(20, 22) + record(20), record(16)]) == [[0, 0, 25], [0, 25, -1], [1, 75, 96]]


def test_a_record_that_is_too_short_or_too_long_is_not_read() -> None:
    assert found([record(15)]) == [[0, 0, -1]]
    assert found([b"\x17\x03\x03\xff\xff"]) == [[0, 0, -1]]


def test_records_without_room_are_counted() -> None:
    data = np.frombuffer(record(16) * 9, np.uint8).copy()
    assert framed(data, np.array([len(data)]), np.zeros((2, 3), np.int64)) == 9


def test_pieces_of_this_window_alone_are_copied() -> None:
    pieces = np.zeros((3, PIECE_WIDTH), np.int64)
    pieces[:, P_AT], pieces[:, P_LENGTH], pieces[:, P_END] = (4, -1, 0), (2, 3, 4), (2, 5, 9)
    cipher = np.zeros(9, np.uint8)
    gathered(np.frombuffer(b"abcdefgh", np.uint8).copy(), pieces, cipher)
    assert cipher.tobytes() == b"ef\0\0\0abcd"
