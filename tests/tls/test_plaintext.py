"""Plaintext for a second look."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from kcap import limits
from kcap.tls.plaintext import PIECE_COST, PlaintextPiece, PlaintextStore


def test_pieces_come_by_flow_file_and_place() -> None:
    store = PlaintextStore()
    pieces = [PlaintextPiece(at, bytes([at]), at // 4, at, 100 * at) for at in range(8)]
    for piece in pieces:
        store.take(b"flow", piece)
    assert store.between(b"flow", 0, 100, 200) == pieces[1:3]
    assert store.between(b"flow", 1, 0, 10_000) == pieces[4:]
    assert store.between(b"other", 0, 0, 10_000) == []
    assert "flow" not in repr(store)


def test_memory_is_bounded() -> None:
    """Law: a piece of one byte costs more than its byte."""
    store = PlaintextStore()
    with patch.object(limits, "TLS_PLAINTEXT_BYTES", 2 * (PIECE_COST + 4)):
        for at in range(5):
            store.take(b"flow", PlaintextPiece(at, b"four", 0, at, at))
        store.take(b"other", PlaintextPiece(0, b"", 0, 1, 1))
    assert len(store.between(b"flow", 0, 0, 9)) == 2
    assert list(store.pieces) == [b"flow"]


def test_records_of_one_packet_are_one_piece() -> None:
    """Law: as long as nothing lies between them."""
    store = PlaintextStore()
    for at, position in ((0, 10), (1, 10), (2, 20), (3, 20), (5, 20)):
        store.take(b"flow", PlaintextPiece(at, bytes([at]), 0, position // 10, position))
    found = [(piece.offset, piece.data) for piece in store.between(b"flow", 0, 0, 99)]
    assert found == [(0, b"\0\1"), (2, b"\2\3"), (5, b"\5")]


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), max_size=20), st.integers(0, 9), st.integers(0, 9))
def test_order_is_that_of_the_plaintext_whatever_packets_brought_it(places: list[tuple[int, int]], low: int, high: int) -> None:
    """Law: bytes between two places are those that packets between them brought, though packets come in any order."""
    store = PlaintextStore()
    for at, (file, position) in enumerate(places):
        store.take(b"flow", PlaintextPiece(at, bytes([at]), file, position, position))
    wanted = [at for at, (file, position) in enumerate(places) if file == 0 and low <= position <= high]
    assert list(b"".join(piece.data for piece in store.between(b"flow", 0, low, high))) == wanted


def test_a_frame_costs_what_it_has_of_its_connection() -> None:
    """Law: pieces of the same connection outside of its places are not looked at one by one."""

    class Counted(PlaintextPiece):
        looked = 0

        @property
        def position(self) -> int:  # type: ignore[override]
            Counted.looked += 1
            return self[4]

    store = PlaintextStore()
    for at in range(10_000):
        store.take(b"flow", Counted(at, b"x", 0, at, at))
    Counted.looked = 0
    assert len(store.between(b"flow", 0, 5_000, 5_009)) == 10
    assert Counted.looked < 100
