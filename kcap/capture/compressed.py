"""Compressed capture files, read as a stream: gzip, bzip2, xz, zstd and lz4, with any number of members or frames.

In: a `read(n)` of compressed bytes. Out: a `read(n)` of decompressed bytes. Law: memory is bounded however well the input
compresses. A stream that ends early or is damaged gives everything before that point, and reports it.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from kcap.capture.beginnings import SKIPPABLE, compression
from kcap.capture.window import Read
from kcap.errors import MissingExtraError
from kcap.limits import COMPRESSED_READ_BYTES, DECOMPRESS_INPUT_BYTES, XZ_MEMORY_BYTES


class CompressedMember(Protocol):
    """The gzip member or frame that is being read."""

    errors: tuple[type[Exception], ...]
    """Exceptions that damage raises."""
    ended: bool
    rest: bytes
    """Input behind the end of the member, or input for the next call."""

    def feed(self, data: bytes, size: int) -> bytes:
        """Returns about `size` bytes of output; b"" if more input is needed."""


class GzipMember:
    """A gzip member (RFC 1952)."""

    errors: tuple[type[Exception], ...] = (zlib.error,)

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(31)
        self.ended = False
        self.rest = b""

    def feed(self, data: bytes, size: int) -> bytes:
        out = self._inner.decompress(data, size)
        self.ended = self._inner.eof
        self.rest = self._inner.unused_data if self.ended else self._inner.unconsumed_tail
        return out


STANDARD_ERRORS = OSError, EOFError, lzma.LZMAError, ValueError


class BufferedMember:
    """bzip2, xz and lz4, whose libraries store unread input themselves."""

    def __init__(self, inner: Any, errors: tuple[type[Exception], ...]) -> None:
        self._inner = inner
        self.errors = errors
        self.ended = False
        self.rest = b""

    def feed(self, data: bytes, size: int) -> bytes:
        out: bytes = self._inner.decompress(data, size)
        self.ended = self._inner.eof
        self.rest = (self._inner.unused_data or b"") if self.ended else b""
        return out


def lz4_member() -> BufferedMember:
    """Makes a reader of one lz4 frame."""
    import lz4.frame

    return BufferedMember(lz4.frame.LZ4FrameDecompressor(), (RuntimeError, EOFError))


class ZstdMember:
    """A zstd frame. The library does not bound the output of a call, so the input is given in small pieces."""

    errors: tuple[type[Exception], ...]

    def __init__(self) -> None:
        import zstandard

        self.errors = (zstandard.ZstdError,)
        self._inner: Any = zstandard.ZstdDecompressor().decompressobj()
        self.ended = False
        self.rest = b""

    def feed(self, data: bytes, size: int) -> bytes:
        parts, have, at = [], 0, 0
        while at < len(data) and have < size and not self.ended:
            part = self._inner.decompress(data[at : at + DECOMPRESS_INPUT_BYTES])
            at += DECOMPRESS_INPUT_BYTES
            parts.append(part)
            have += len(part)
            self.ended = self._inner.eof
        self.rest = (self._inner.unused_data if self.ended else b"") + data[at:]
        return b"".join(parts)


MEMBERS: dict[str, Callable[[], CompressedMember]] = {
    "gzip": GzipMember, "lz4": lz4_member, "zstd": ZstdMember,
    "bzip2": lambda: BufferedMember(bz2.BZ2Decompressor(), STANDARD_ERRORS),
    "xz": lambda: BufferedMember(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_BYTES), STANDARD_ERRORS),
}  # fmt: skip
PACKAGES = {"lz4": "lz4", "zstd": "zstandard"}


class Decompressed:
    """`read` for the contents of a compressed file."""

    def __init__(self, read: Read, name: str, truncated: Callable[[str, int], None]) -> None:
        self._read = read
        self._name = name
        self._truncated = truncated
        self._input = b""
        self._ready = b""
        self._given = 0
        """Compressed bytes read so far."""
        self._done = False
        try:
            self._member = MEMBERS[name]()
        except ImportError:
            raise MissingExtraError(f"{name} files need the package {PACKAGES[name]}") from None
        self._fresh = True
        """Whether the member has not been given any byte."""

    def read(self, size: int) -> bytes:
        """Returns up to `size` bytes; b"" at the end."""
        while not self._ready and not self._done:
            self._ready = self._next(size)
        out, self._ready = self._ready[:size], self._ready[size:]
        return out

    def _next(self, size: int) -> bytes:
        if self._fresh and not self._begin():
            return b""
        try:
            out: bytes = self._member.feed(self._input, size)
        except self._member.errors as error:
            self._stop(f"damaged {self._name} stream: {error}")
            return b""
        self._input = self._member.rest
        if self._member.ended:
            self._member, self._fresh = MEMBERS[self._name](), True
        elif not out and not self._fill():
            self._stop(f"the {self._name} stream ends in its middle")
        return out

    def _begin(self) -> bool:
        """Finds the start of the next member; False at the end of the input."""
        while True:
            while len(self._input) < 8 and self._fill():
                pass
            if self._given and not self._input.strip(b"\0"):  # tapes and some tools pad with zeros
                self._done = True
                return False
            if self._input[:4] not in SKIPPABLE:
                break
            if not self._skip(8 + int.from_bytes(self._input[4:8], "little")):
                return False
        if compression(self._input) != self._name:
            self._stop(f"{len(self._input)} bytes or more that are no {self._name}")
            return False
        self._fresh = False
        return True

    def _skip(self, size: int) -> bool:
        while len(self._input) < size:
            size -= len(self._input)
            self._input = b""
            if not self._fill():
                self._stop(f"the {self._name} stream ends in its middle")
                return False
        self._input = self._input[size:]
        return True

    def _fill(self) -> bool:
        part = self._read(COMPRESSED_READ_BYTES)
        self._given += len(part)
        self._input += part
        return bool(part)

    def _stop(self, detail: str) -> None:
        self._done = True
        self._truncated(detail, self._given)
