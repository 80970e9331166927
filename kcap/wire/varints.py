"""Kafka's variable-length integers: bytes in, (value, next position) out.

Law: a varint that is cut or too long raises `DamageError`, which every public reader turns into an `undecoded` mark. Nothing is
read at or after `end`.
"""

from kcap.model import Buffer


class DamageError(Exception):
    """The bytes cannot be read as expected. Every public reader catches it; callers of kcap never see it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def java_long(value: int) -> int:
    """A sum as a 64-bit signed integer, because Java's arithmetic wraps and columns hold no more."""
    return value if -(1 << 63) <= value < 1 << 63 else (value + (1 << 63) & (1 << 64) - 1) - (1 << 63)


def short_of(what: str, position: int) -> DamageError:
    """The error for bytes that end inside `what`."""
    return DamageError(f"{what} is cut at byte {position}")


def read_uvarint(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    """Reads an unsigned varint of up to 5 bytes (KIP-482; ByteUtils.readUnsignedVarint)."""
    value = shift = 0
    at = position
    while at < end:
        byte = buffer[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 28:
            raise DamageError(f"varint of more than 5 bytes at byte {position}")
    raise short_of("varint", position)


def read_varlong(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    """Reads a zigzag varint of up to 10 bytes, as in records (ByteUtils.readVarlong)."""
    value = shift = 0
    at = position
    while at < end:
        byte = buffer[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            value &= 0xFFFFFFFFFFFFFFFF
            return (value >> 1) ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise DamageError(f"varlong of more than 10 bytes at byte {position}")
    raise short_of("varlong", position)


def read_varint(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    """Reads a zigzag varint of up to 5 bytes, as in records (ByteUtils.readVarint)."""
    value, at = read_uvarint(buffer, position, end)
    value &= 0xFFFFFFFF
    return (value >> 1) ^ -(value & 1), at
