"""Plaintext for a second look."""

from unittest.mock import patch

from kcap import limits
from kcap.tls.plaintext import PlaintextPiece, PlaintextStore


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
    store = PlaintextStore()
    with patch.object(limits, "TLS_PLAINTEXT_BYTES", 10):
        for at in range(5):
            store.take(b"flow", PlaintextPiece(at, b"four", 0, at, at))
    assert len(store.between(b"flow", 0, 0, 9)) == 2
