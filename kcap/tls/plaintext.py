"""The plaintext of a capture's TLS connections, for exchanges whose bytes are wanted again.

In: pieces of plaintext as a pass over the capture decrypts them. Out: the pieces of one direction between two places of a file.
Law: memory is bounded (`limits.TLS_PLAINTEXT_BYTES`); what is beyond the bound is not there. Nothing is written to disk.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from kcap import limits


class PlaintextPiece(NamedTuple):
    """Plaintext that one packet carried."""

    offset: int
    """Within the plaintext of its direction."""
    data: bytes
    file: int
    packet: int
    """Number within the file, from 1."""
    position: int
    """Of the packet within the file."""


@dataclass(slots=True)
class PlaintextStore:
    """Plaintext by flow key (source, destination, ports)."""

    pieces: dict[bytes, list[PlaintextPiece]] = field(default_factory=dict, repr=False)
    size: int = 0
    """Bytes so far, those that found no room among them."""

    def take(self, flow: bytes, piece: PlaintextPiece) -> None:
        """Takes a piece, as long as there is room."""
        self.size += len(piece.data)
        if self.size <= limits.TLS_PLAINTEXT_BYTES:
            self.pieces.setdefault(flow, []).append(piece)

    def between(self, flow: bytes, file: int, low: int, high: int) -> list[PlaintextPiece]:
        """The pieces that packets from position `low` to `high` of a file carried, in the order of the plaintext."""
        return [piece for piece in self.pieces.get(flow, ()) if piece.file == file and low <= piece.position <= high]
