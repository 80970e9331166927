"""Record batches written by hand: the opposite of what is tested, and simpler."""

from struct import pack

from kcap.wire.checksums import crc32, crc32c


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def varint(value: int) -> bytes:
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


Headers = dict[str, bytes | None]


def record(offset: int = 0, key: bytes | None = None, value: bytes | None = b"", headers: Headers | None = None) -> bytes:
    """A record of magic 2, its timestamp that of the batch."""
    inner = b"\0" + varint(0) + varint(offset) + sized(key) + sized(value) + varint(len(headers or {}))
    inner += b"".join(sized(name.encode()) + sized(content) for name, content in (headers or {}).items())
    return varint(len(inner)) + inner


def batch(payload: bytes, count: int = 1, codec: int = 0, attributes: int = 0, base: int = 0) -> bytes:
    """A batch of magic 2 around a payload that is already compressed."""
    body = pack(">hiqqqhii", codec | attributes, max(count - 1, 0), 1000, 2000, -1, -1, -1, count) + payload
    return pack(">qiibI", base, 9 + len(body), 0, 2, crc32c(body)) + body


def message(value: bytes | None, magic: int = 1, codec: int = 0, offset: int = 0, key: bytes | None = None) -> bytes:
    """A message of magic 0 or 1."""

    def plain(data: bytes | None) -> bytes:
        return pack(">i", -1) if data is None else pack(">i", len(data)) + data

    body = pack(">bb", magic, codec) + (pack(">q", 1234) if magic else b"") + plain(key) + plain(value)
    return pack(">qiI", offset, 4 + len(body), crc32(body)) + body
