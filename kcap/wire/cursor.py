"""A position in a buffer, with the readers of Kafka's primitive types (protocol guide, "Protocol Primitive Types").

Law: no reader reads at or after `end`. A reader that cannot go on raises `DamageError`, which names the byte where its value
began.
"""

from struct import Struct
from typing import Any

from kcap.model import Buffer
from kcap.wire.text import decode_text
from kcap.wire.varints import DamageError, read_uvarint, short_of

STRING_BYTES_MAX = 0x7FFF
"""Longest string, bytes. Kafka refuses longer ones, also in compact form (MessageDataGenerator: "had invalid length")."""

_INT16 = Struct(">h")
_INT32 = Struct(">i")


class Cursor:
    """Reads values from `buffer[position:end]`."""

    __slots__ = ("buffer", "end", "position")

    def __init__(self, buffer: Buffer, position: int = 0, end: int | None = None) -> None:
        self.buffer = buffer
        self.position = position
        self.end = len(buffer) if end is None else end

    @property
    def left(self) -> int:
        """Bytes between the position and the end."""
        return self.end - self.position

    def skip(self, size: int, what: str = "field") -> int:
        """Steps over `size` bytes; returns where they began."""
        start = self.position
        if size > self.end - start:
            raise short_of(what, start)
        self.position = start + size
        return start

    def read(self, form: Struct) -> tuple[Any, ...]:
        """Reads the values of a fixed-size form."""
        return form.unpack_from(self.buffer, self.skip(form.size))

    def read_int8(self) -> int:
        value = self.buffer[self.skip(1, "int8")]
        return value - 256 if value > 127 else value

    def read_int16(self) -> int:
        value: int = _INT16.unpack_from(self.buffer, self.skip(2, "int16"))[0]
        return value

    def read_int32(self) -> int:
        value: int = _INT32.unpack_from(self.buffer, self.skip(4, "int32"))[0]
        return value

    def read_uvarint(self) -> int:
        value, self.position = read_uvarint(self.buffer, self.position, self.end)
        return value

    def read_bytes(self, size: int, what: str = "bytes") -> bytes:
        start = self.skip(size, what)
        return bytes(self.buffer[start : start + size])

    def read_size(self, *, compact: bool, width: int) -> int:
        """Reads a length or count: an unsigned varint of it plus one (0 null), or a signed `width`-byte integer (-1 null)."""
        start = self.position
        if compact:
            return self.read_uvarint() - 1
        size = self.read_int16() if width == 2 else self.read_int32()
        if size < -1:
            self.position = start
            raise DamageError(f"length {size} at byte {start}")
        return size

    def read_span(self, *, compact: bool, width: int, string: bool = False) -> tuple[int, int]:
        """Reads (start, end) of a string or bytes after its length; (-1, -1) for null."""
        start = self.position
        size = self.read_size(compact=compact, width=width)
        if size < 0:
            return -1, -1
        if string and size > STRING_BYTES_MAX:
            self.position = start
            raise DamageError(f"string of {size} bytes at byte {start}")
        if size > self.end - self.position:
            self.position = start
            raise short_of("string" if string else "bytes", start)
        at = self.position
        self.position = at + size
        return at, at + size

    def read_string(self, *, compact: bool = False) -> str | None:
        """Reads a nullable string."""
        start, end = self.read_span(compact=compact, width=2, string=True)
        return None if start < 0 else decode_text(bytes(self.buffer[start:end]))
