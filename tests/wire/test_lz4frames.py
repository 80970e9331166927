"""LZ4 frames taken apart, with right and wrong header checksums."""

import lz4.frame
import pytest

from kcap.wire.lz4frames import Lz4Error, blocks


def test_blocks_of_a_frame() -> None:
    """Flags tell linked blocks and their size."""
    found = list(blocks(lz4.frame.compress(bytes(200_000), block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=True)))
    assert len(found) == 4
    assert all(block.linked and block.compressed and block.size_max == 64 << 10 for block in found)


def test_stored_blocks() -> None:
    """What does not shrink is stored."""
    (block,) = blocks(lz4.frame.compress(bytes(range(256)), block_linked=False))
    assert (block.compressed, block.linked, block.data) == (False, False, bytes(range(256)))


def test_the_header_checksum_is_not_looked_at() -> None:
    """Kafka's old frames (KAFKA-3160) read as the right ones do."""
    packed = bytearray(lz4.frame.compress(b"abc" * 100))
    right = list(blocks(bytes(packed)))
    header = 6 + (8 if packed[4] & 8 else 0)
    packed[header] ^= 0xFF
    assert list(blocks(bytes(packed))) == right


HEAD = b"\x04\x22\x4d\x18"


@pytest.mark.parametrize("data", [b"nope", HEAD, HEAD + b"\x40\x40\x00", HEAD + b"\x40\x40\x00\x09\0\0\0a"])
def test_damage(data: bytes) -> None:
    """Not a frame, no known block size, cut."""
    with pytest.raises(Lz4Error):
        list(blocks(data))
