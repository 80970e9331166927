"""Checksums, with the library and without."""

import zlib

from hypothesis import given
from hypothesis import strategies as st

from kcap.wire import checksums


def test_check_values() -> None:
    """The usual check string of both (RFC 3720 appendix B.4 has the second's)."""
    assert checksums.crc32(b"123456789") == 0xCBF43926
    assert checksums.crc32c(b"123456789") == 0xE3069283
    assert checksums.crc32c(bytes(32)) == 0x8A9136AA


@given(st.binary())
def test_the_plain_way_is_the_same(data: bytes) -> None:
    """Law: without the library the checksum is slower, not another."""
    assert checksums._crc32c_plain(data) == checksums.crc32c(memoryview(data))
    assert checksums.crc32(data) == zlib.crc32(data)
