"""The plaintext of a capture's TLS connections, for exchanges whose bytes are read again.

In: pieces of plaintext as a pass over the capture decrypts them. Out: the pieces of one direction between two positions of a
file. Law: memory is bounded (`limits.TLS_PLAINTEXT_BYTES`), and plaintext beyond the bound is not stored. Nothing is written to
disk.
"""

from bisect import bisect_left, bisect_right, insort_right
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple

from kcap import limits
from kcap.limits import PIECE_COST


class PlaintextPiece(NamedTuple):
    """Plaintext that one packet carried."""

    offset: int
    """Offset in the plaintext of its direction."""
    data: bytes
    file: int
    packet: int
    """Packet number within the file, from 1."""
    position: int
    """Position of the packet in the file."""


PLACE: Final = attrgetter("file", "position")
OFFSET: Final = attrgetter("offset")


@dataclass(slots=True)
class PlaintextStore:
    """Plaintext by flow key (source, destination, ports)."""

    pieces: dict[bytes, list[PlaintextPiece]] = field(default_factory=dict, repr=False)
    """Pieces in the order of their positions, so that the cost of a frame depends only on its own pieces."""
    size: int = 0
    """Memory of all pieces so far, including those for which there was no room."""

    def take(self, flow: bytes, piece: PlaintextPiece) -> None:
        """Takes a piece if there is room. Records of one packet are one piece, because each may have only one byte."""
        pieces = self.pieces.get(flow, [])
        last = pieces[-1] if pieces else None
        follows = last is not None and PLACE(last) == PLACE(piece) and last.offset + len(last.data) == piece.offset
        self.size += len(piece.data) + (0 if follows else PIECE_COST)
        if self.size > limits.TLS_PLAINTEXT_BYTES:
            return
        if last is not None and follows:
            pieces[-1] = last._replace(data=last.data + piece.data)
        else:
            insort_right(self.pieces.setdefault(flow, pieces), piece, key=PLACE)

    def between(self, flow: bytes, file: int, low: int, high: int) -> list[PlaintextPiece]:
        """The pieces that packets from position `low` to `high` of a file carried, in the order of the plaintext."""
        pieces = self.pieces.get(flow, [])
        first, end = bisect_left(pieces, (file, low), key=PLACE), bisect_right(pieces, (file, high), key=PLACE)
        return sorted(pieces[first:end], key=OFFSET)
