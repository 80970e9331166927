"""Records are found in the ciphertext of several streams, and pieces are put where they belong."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kcap.analyzer import Options
from kcap.fastpath.layout import P_AT, P_END, P_LENGTH, PIECE_WIDTH
from kcap.fastpath.sealed_kernels import framed, gathered
from kcap.net.connections import reverse_flow
from kcap.tls.secrets import Secrets
from tests.fastpath.both import Result, agree
from tests.fastpath.test_sealed import STEPS, sealer_of, steady
from tests.support.tls import CLIENT, SERVER
from tests.support.wire import Tap, metadata, metadata_answer

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


@settings(max_examples=25)
@given(
    st.integers(0, 2),
    st.lists(
        st.sampled_from(("padded", "alert", "ticket", "wrong", "junk", "empty", "early", "id", "rest", "quiet")), max_size=9
    ),
    STEPS,
)
def test_what_is_left_to_the_reference_path(kind: int, turns: list[str], step: int) -> None:
    """Records that are no data or do not authenticate, and messages that need thought, in the middle of a calm connection."""
    tap, options = steady(kind, 12)
    sealer = sealer_of(kind)
    for number, turn in enumerate(turns, 100):
        question, answer = metadata(number), metadata_answer(number, 3)
        match turn:
            case "padded":
                tap.client(sealer.record(CLIENT, question, padding=9)).server(sealer.record(SERVER, answer))
            case "alert":
                tap.client(sealer.record(CLIENT, question) + sealer.record(CLIENT, b"\1\x5a", 21))
                tap.server(sealer.record(SERVER, answer))
            case "ticket":
                tap.client(sealer.record(CLIENT, question))
                tap.server(sealer.record(SERVER, b"\4\0\0\0", 22) + sealer.record(SERVER, answer))
            case "wrong":
                wrong = bytearray(sealer.record(CLIENT, question))
                wrong[-1] ^= 1
                tap.client(bytes(wrong))
            case "junk":
                tap.server(b"\x17\x03\x03\x00\x03abc" + b"none")
            case "empty":
                tap.client(sealer.record(CLIENT, b"") + sealer.record(CLIENT, question)).server(sealer.record(SERVER, answer))
            case "early":
                tap.server(sealer.record(SERVER, answer)).client(sealer.record(CLIENT, question))
            case "id":
                tap.client(sealer.record(CLIENT, metadata(number, client_id="other"))).server(sealer.record(SERVER, answer))
            case "rest":
                tap.client(sealer.record(CLIENT, question + b"\0\0")).server(sealer.record(SERVER, answer))
                tap.client(sealer.record(CLIENT, b"\0\0"))
            case _:
                tap.client(sealer.record(CLIENT, question)).server(sealer.record(SERVER, answer))
    agree(tap.segments, 25, step, options=options)


def test_many_connections_side_by_side() -> None:
    """Their packets alternate, and one of them fails."""
    every = []
    for number, kind in enumerate((0, 1, 2, 0, 1)):
        tap, _ = steady(kind, 20, 500)
        if number == 3:
            tap.client(b"\x15\x03\x03\x00\x02aa")
        up = Tap(port=41_000 + number).up
        every.append([replace(s, flow=up if s.flow == tap.up else reverse_flow(up)) for s in tap.close().segments])
    secrets = Secrets()
    for kind in range(3):
        secrets.keylog.add(sealer_of(kind).keylog)
    segments = sorted((s for some in every for s in some), key=lambda s: s.time_ns)
    found: Result = agree(segments, 50, options=Options(secrets=secrets))
    assert found.fast_rows > 50
