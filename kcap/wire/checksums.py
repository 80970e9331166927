"""The checksums of record batches: CRC-32 of magic 0 and 1 (zlib), CRC-32C of magic 2 (Castagnoli). Bytes in, uint32 out."""

import functools
import zlib
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

from kcap.model import Buffer


def crc32(data: Buffer) -> int:
    """CRC-32 as unsigned integer."""
    return zlib.crc32(data)


@functools.cache
def crc32c_table() -> list[int]:
    """The table of a reflected CRC-32C, one entry per byte value (RFC 3720 appendix B.4)."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


def _crc32c_plain(data: Buffer) -> int:
    crc, table = 0xFFFFFFFF, crc32c_table()
    for byte in bytes(data):
        crc = (crc >> 8) ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


@functools.cache
def _crc32c() -> Callable[[Buffer], int]:
    """The library's function, which uses the processor's instruction; without the library, a function that is 3,000 times
    slower.

    The library's compiled part is loaded directly if possible, because the package reads its own version, which takes 0.01 s.
    """
    package = find_spec("crc32c")
    if package is None:
        return _crc32c_plain
    part = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if part is None or part.loader is None:
        from crc32c import crc32c as fast

        return fast
    module = module_from_spec(part)
    part.loader.exec_module(module)
    compiled: Callable[[Buffer], int] = module.crc32c
    return compiled


def crc32c(data: Buffer) -> int:
    """CRC-32C as unsigned integer."""
    return _crc32c()(data)


def has_fast_crc32c() -> bool:
    """Whether the library is installed."""
    return _crc32c() is not _crc32c_plain
