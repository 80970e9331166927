"""Messages of magic 0 and 1: bytes in, batches out; a compressed message is a batch of those it wraps.

Sources: LegacyRecord.java, AbstractLegacyRecordBatch.java (KIP-31 relative offsets, KIP-32 timestamps). Laws: offsets come out
absolute; a wrapper inside a wrapper is not opened, as in Kafka; decompression is bounded.
"""

from collections.abc import Iterator
from struct import Struct

from kcap.records.batch import TIMESTAMP_TYPES, Batch, Contents, Record, spans
from kcap.records.magic2 import inflated_limit
from kcap.wire.checksums import crc32
from kcap.wire.codecs import inflate
from kcap.wire.formats import CODEC_MASK, MAGIC_AT, MESSAGE_ATTRIBUTES_AT
from kcap.wire.varints import DamageError, java_long, short_of

_HEADER = Struct(">qiIbb")
"""Offset, size, CRC, magic, attributes."""
_LENGTH = Struct(">i")
_TIMESTAMP = _OFFSET = Struct(">q")
_LOG_APPEND = 0x08
NO_TIMESTAMP = -1


def read_message(blob: bytes, start: int, end: int) -> Batch:
    """The message at `blob[start:end]`, which has at least the size that its magic requires."""
    offset, _, crc, magic, attributes = _HEADER.unpack_from(blob, start)
    batch = Batch(
        blob=blob,
        start=start,
        end=end,
        magic=magic,
        codec_id=attributes & CODEC_MASK,
        base_offset=offset,
        last_offset=offset,
        timestamp_type=TIMESTAMP_TYPES[bool(attributes & _LOG_APPEND)] if magic else "NoTimestampType",
        crc=crc,
        max_timestamp=_TIMESTAMP.unpack_from(blob, start + _HEADER.size)[0] if magic else NO_TIMESTAMP,
        count=1,
        read=_each,
        checksum=_checksum,
    )
    if batch.codec_id:
        # Only the wrapped messages tell the first offset and the number of records.
        inner = batch.contents.records
        batch.count = len(inner)
        if inner:
            batch.base_offset = inner[0].offset
    return batch


def _checksum(batch: Batch) -> int:
    return crc32(memoryview(batch.blob)[batch.start + MAGIC_AT : batch.end])


def packed_part(batch: Batch) -> memoryview:
    """What the codec made of the wrapped messages; nothing where the message is damaged."""
    try:
        return memoryview(_fields(batch.blob, batch.start, batch.end, batch.magic)[1] or b"")
    except DamageError:
        return memoryview(b"")


def _fields(blob: bytes, start: int, end: int, magic: int) -> tuple[bytes | None, bytes | None]:
    """Key and value of the message at `blob[start:end]`; raises DamageError."""
    at = start + _HEADER.size + (8 if magic else 0)
    if at + 4 > end:
        raise short_of("message", at)
    (size,) = _LENGTH.unpack_from(blob, at)
    at += 4
    middle = at + size if size > 0 else at
    if middle + 4 > end:
        raise short_of("message", at if size > end - at else middle)
    (rest,) = _LENGTH.unpack_from(blob, middle)
    if rest > end - middle - 4:
        raise short_of("message", middle + 4)
    return None if size < 0 else blob[at:middle], None if rest < 0 else blob[middle + 4 : middle + 4 + rest]


def _each(batch: Batch, contents: Contents) -> Iterator[Record]:
    try:
        key, value = _fields(batch.blob, batch.start, batch.end, batch.magic)
    except DamageError as damage:
        contents.fault = damage.reason
        return
    if batch.codec_id:
        yield from _unwrapped(batch, value or b"", contents)
    else:
        yield Record(batch.base_offset, batch.max_timestamp, key, value)


def _unwrapped(wrapper: Batch, value: bytes, contents: Contents) -> list[Record]:
    """The wrapped records, of which the last one tells the first one's offset."""
    inflated = inflate(wrapper.codec_id, value, inflated_limit(len(value)))
    contents.fault = inflated.fault
    found: list[Record] = []
    blob = bytes(inflated.data)
    end = 0
    for start, end, magic in spans(blob, 0, len(blob)):
        attributes = blob[start + MESSAGE_ATTRIBUTES_AT]
        if magic > 1 or attributes & CODEC_MASK:
            contents.fault = contents.fault or "a compressed message inside a compressed one"
            break
        try:
            key, content = _fields(blob, start, end, magic)
        except DamageError as damage:
            contents.fault = contents.fault or damage.reason
            continue
        time = _TIMESTAMP.unpack_from(blob, start + _HEADER.size)[0] if magic else NO_TIMESTAMP
        found.append(Record(_OFFSET.unpack_from(blob, start)[0], time, key, content))
    if contents.fault is None and end < len(blob):
        contents.fault = f"{len(blob) - end} bytes behind the last message"
    return _placed(wrapper, found)


def _placed(wrapper: Batch, records: list[Record]) -> list[Record]:
    """The wrapped records with absolute offsets and the wrapper's time where that counts."""
    if not wrapper.magic or not records:
        return records
    base = wrapper.last_offset - records[-1].offset if wrapper.last_offset else 0
    appended = wrapper.timestamp_type == TIMESTAMP_TYPES[1]
    return [
        Record(java_long(base + r.offset), wrapper.max_timestamp if appended else r.timestamp, r.key, r.value) for r in records
    ]
