"""Splits LZ4 frames into blocks: bytes in, blocks out, no library needed.

Kafka before 0.10 computed the header checksum over the magic number too (KAFKA-3160), which libraries refuse. Law: checksums of
the frame are not verified, since a batch has its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass

_MAGIC = b"\x04\x22\x4d\x18"
_BLOCK_SIZES = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}


class Lz4Error(Exception):
    """The data is not an LZ4 frame, or the frame is cut."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a frame."""

    data: bytes
    compressed: bool
    linked: bool
    """Whether it refers to the 64 KiB before it."""
    size_max: int
    """Largest size to which it can decompress, bytes."""


def blocks(data: bytes) -> Iterator[Block]:
    """Yields the blocks of all frames in `data` (LZ4 frame format 1.6.1)."""
    at = 0
    while at < len(data):
        if data[at : at + 4] != _MAGIC:
            raise Lz4Error("no frame magic")
        flags, sizes = data[at + 4 : at + 6].ljust(2, b"\0")
        linked, block_sums, content_size, content_sum, dictionary = (flags & bit for bit in (0x20, 0x10, 0x08, 0x04, 0x01))
        size_max = _BLOCK_SIZES.get(sizes >> 4 & 7)
        if flags >> 6 != 1 or size_max is None:
            raise Lz4Error("unknown frame version or block size")
        at += 7 + (8 if content_size else 0) + (4 if dictionary else 0)
        while True:
            if at + 4 > len(data):
                raise Lz4Error("cut")
            size = int.from_bytes(data[at : at + 4], "little")
            at += 4
            if size == 0:
                break
            length = size & 0x7FFFFFFF
            if at + length > len(data):
                raise Lz4Error("cut")
            yield Block(data[at : at + length], size < 1 << 31, not linked, size_max)
            at += length + (4 if block_sums else 0)
        at += 4 if content_sum else 0
