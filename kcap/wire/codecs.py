"""Decompression of record batches: a codec number and bytes in, plain bytes and a fault out.

Each library is imported when its codec is first needed. Law: no input raises, and at most `limit` bytes (and one block of the
codec beyond it) are held at any time. Bytes decompressed before a fault or the limit are retained.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

from kcap.limits import ZSTD_KEPT_BYTES, ZSTD_WINDOW_MAX

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""Codec number (attributes bits 0-2 of a batch) -> Kafka's name; CompressionType.java."""

_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
_CHUNK = 1 << 20
"""Decompressed bytes taken at a time, if a library can stop. This is what a decompression bomb may cost beyond the limit."""
_IDLE: Final[list[Any]] = []
"""zstd decompressors that no thread uses. Making one takes twice the time of a small batch."""
_GZIP_INPUT_LEAST, _GZIP_INPUT = 1 << 8, 1 << 16
"""Compressed bytes given to zlib at once: at the start of a member, and the bound up to which the number is doubled."""


@dataclass(frozen=True, slots=True)
class Inflated:
    """The result of decompressing a blob."""

    data: bytes | bytearray
    fault: str | None = None
    """Why there may be more than `data`: damaged input, the limit, a missing library; None if it is complete."""


class InflateError(Exception):
    """Decompression stopped; holds the bytes decompressed before."""

    def __init__(self, reason: str, data: bytes | bytearray = b"") -> None:
        super().__init__(reason)
        self.data = data


def codec_name(codec: int) -> str:
    """`gzip`, ...; `codec 5` for numbers that Kafka does not use."""
    return CODECS[codec] if codec < len(CODECS) else f"codec {codec}"


def _take(out: bytearray, piece: bytes | bytearray, limit: int, codec: str) -> None:
    """Appends a piece; raises a fault if the limit is exceeded."""
    if len(out) + len(piece) > limit:
        out += piece[: limit - len(out)]
        raise InflateError(f"{codec}: more than {limit} bytes", out)
    out += piece


def _gzip(data: bytes, limit: int) -> bytearray:
    out, view, at = bytearray(), memoryview(data), 0
    while at < len(data):
        member, size = zlib.decompressobj(31), _GZIP_INPUT_LEAST
        try:
            while not member.eof:
                # A call copies the rest of its input. That has to be little, because a blob may have a member every 20 bytes.
                given = view[at : at + size]
                piece = member.decompress(given, _CHUNK)
                at += len(given) - len(member.unconsumed_tail) - len(member.unused_data)
                _take(out, piece, limit, "gzip")
                if not piece and at == len(data) and not member.eof:
                    raise InflateError("gzip: cut", out)
                size = min(2 * size, _GZIP_INPUT)
        except zlib.error as error:
            raise InflateError(f"gzip: {error}", out) from error
    return out


def _snappy_block(data: bytes, limit: int) -> bytes:
    from cramjam import snappy

    try:
        size = snappy.decompress_raw_len(data)
        if size > limit:
            raise InflateError(f"snappy: more than {limit} bytes")
        return bytes(snappy.decompress_raw(data))
    except InflateError:
        raise
    except Exception as error:  # cramjam's own class is not stable across releases
        raise InflateError(f"snappy: {error}") from error


def _snappy(data: bytes, limit: int) -> bytes | bytearray:
    """Decompresses the xerial stream that the Java client writes (8 magic bytes, version, compatible version, then int32 length
    and a raw block, repeated), or one raw block, as some clients write (SnappyInputStream accepts both)."""
    if not data.startswith(_XERIAL):
        return _snappy_block(data, limit)
    out, at = bytearray(), _XERIAL_HEADER
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        block = data[at + 4 : at + 4 + size]
        if at + 4 > len(data) or len(block) < size:
            raise InflateError("snappy: cut", out)
        try:
            out += _snappy_block(block, limit - len(out))
        except InflateError as fault:
            raise InflateError(str(fault), out) from fault
        at += 4 + size
    return out


def _lz4(data: bytes, limit: int) -> bytearray:
    from lz4.block import decompress

    from kcap.wire import lz4frames

    out = bytearray()
    try:
        for block in lz4frames.blocks(data):
            piece = block.data
            if block.compressed:
                known = out[-(64 << 10) :] if block.linked else b""
                piece = decompress(piece, uncompressed_size=block.size_max, dict=known)
            _take(out, piece, limit, "lz4")
    except InflateError:
        raise
    except Exception as error:  # Lz4Error, LZ4BlockError, and the library's errors about sizes
        raise InflateError(f"lz4: {error}", out) from error
    return out


def _zstd(data: bytes, limit: int) -> bytearray:
    from zstandard import ZstdDecompressor, ZstdError

    out = bytearray()
    try:
        idle = _IDLE.pop()
    except IndexError:
        idle = ZstdDecompressor(max_window_size=ZSTD_WINDOW_MAX)
    try:
        reader = idle.stream_reader(BytesIO(data), read_across_frames=True)
        while piece := reader.read(_CHUNK):
            _take(out, piece, limit, "zstd")
    except ZstdError as error:
        raise InflateError(f"zstd: {error}", out) from error
    if idle.memory_size() <= ZSTD_KEPT_BYTES:
        _IDLE.append(idle)
    if not out and data:
        raise InflateError("zstd: cut", out)
    return out


_INFLATE: Final[dict[int, Callable[[bytes, int], bytes | bytearray]]] = {1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}


def inflate(codec: int, data: bytes | bytearray | memoryview, limit: int) -> Inflated:
    """The plain bytes of a batch's compressed part, at most `limit` of them."""
    if codec == 0:
        return Inflated(bytes(data))
    inflater = _INFLATE.get(codec)
    if inflater is None:
        return Inflated(b"", f"unknown {codec_name(codec)}")
    try:
        return Inflated(inflater(bytes(data), limit))
    except InflateError as fault:
        return Inflated(fault.data, str(fault))
    except ImportError as error:
        return Inflated(b"", f"{codec_name(codec)}: library {error.name} is not installed")
