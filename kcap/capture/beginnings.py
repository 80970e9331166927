"""First bytes of files that may contain a capture: snoop, and the compressed formats.

In: the first bytes of a file. Out: the name of its compression. Law: only the library of the compression that is found is
loaded.
"""

from typing import Final

SNOOP: Final = b"snoop\0\0\0"
"""First bytes of a snoop capture (RFC 1761)."""
COMPRESSIONS: Final = {
    b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4", b"\xfd7zXZ\0": "xz", b"BZh": "bzip2",
}  # fmt: skip
"""First bytes -> name (RFC 1952, RFC 8878, the specifications of lz4 frames, xz and bzip2)."""
SKIPPABLE: Final = frozenset(bytes((low, 0x2A, 0x4D, 0x18)) for low in range(0x50, 0x60))
"""Frames without content, which zstd (RFC 8878 section 3.1.2) and lz4 share; pzstd writes them."""


def compression(head: bytes) -> str | None:
    """Name of the compression that a file begins with; None for none."""
    for magic, name in COMPRESSIONS.items():
        if head.startswith(magic):
            return name
    return "zstd" if head[:4] in SKIPPABLE else None
