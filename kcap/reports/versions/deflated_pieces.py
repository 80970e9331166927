"""Stores pieces of bytes by position, compressed in blocks, and numbers values.

In: pieces. Out: each of them again, in any order. Law: the output equals the input; memory is that of the compressed blocks.
"""

from array import array
from typing import Any
from zlib import compress, decompress

from kcap import limits


class DeflatedPieces:
    """Bytes by position; several positions are compressed together."""

    def __init__(self) -> None:
        self._block, self._start, self._size = array("I"), array("I"), array("I")
        """Number of each piece's block, its offset there, its size in bytes."""
        self._blocks: list[bytes] = []
        self._open = bytearray()
        """Pieces of the last positions, not yet compressed."""
        self._inflated: tuple[int, bytes] = -1, b""
        """Number and content of the block that was read last."""

    def __len__(self) -> int:
        return len(self._block)

    def append(self, piece: bytes) -> None:
        """Adds the piece of the next position."""
        self._deflate()
        self._block.append(len(self._blocks))
        self._start.append(len(self._open))
        self._size.append(len(piece))
        self._open += piece

    def set(self, place: int, piece: bytes) -> None:
        """Replaces the piece of a position; the old one remains in its block. Earlier positions without a piece
        become empty."""
        missing = place + 1 - len(self)
        if missing > 0:
            for column in (self._block, self._start, self._size):
                column.frombytes(bytes(column.itemsize * missing))
        self._deflate()
        self._block[place], self._start[place], self._size[place] = len(self._blocks), len(self._open), len(piece)
        self._open += piece

    def _deflate(self) -> None:
        """Compresses the last pieces once there are enough of them."""
        if len(self._open) >= limits.PROFILE_BLOCK_BYTES:
            self._blocks.append(compress(self._open, 1))
            self._open = bytearray()

    def get(self, place: int) -> bytes:
        """The piece of a position; empty if it has none."""
        if place >= len(self):
            return b""
        block, start, size = self._block[place], self._start[place], self._size[place]
        if not size:
            return b""
        if block == len(self._blocks):
            return bytes(self._open[start : start + size])
        number, data = self._inflated
        if number != block:
            data = decompress(self._blocks[block])
            self._inflated = block, data
        return data[start : start + size]


class ValueNumbers(dict[Any, int]):
    """Numbers values in the order in which they first occur."""

    def __init__(self) -> None:
        super().__init__()
        self.known: list[Any] = []
        """The values by their numbers."""

    def __missing__(self, value: Any) -> int:
        self.known.append(value)
        self[value] = len(self.known) - 1
        return len(self.known) - 1
