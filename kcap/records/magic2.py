"""Batches of magic 2 (KIP-98): bytes in, header and records out. Source: DefaultRecordBatch.java, DefaultRecord.java.

Law: the header is described whatever the records are. Records before a fault are retained, and decompression is bounded.
"""

from collections.abc import Iterator
from struct import Struct

from kcap.limits import INFLATED_BYTES_MAX, INFLATED_RATIO_MAX
from kcap.records.batch import TIMESTAMP_TYPES, Batch, Contents, Record
from kcap.records.control import read_control
from kcap.wire.checksums import crc32c
from kcap.wire.codecs import inflate
from kcap.wire.formats import BATCH_ATTRIBUTES_AT, CODEC_MASK
from kcap.wire.text import decode_text
from kcap.wire.varints import DamageError, java_long, read_varint, read_varlong, short_of

HEADER = Struct(">qiibIhiqqqhii")
"""Base offset, size, partition leader epoch, magic, CRC, attributes, last offset delta, base timestamp, max timestamp,
producer id, producer epoch, base sequence, record count."""

_LOG_APPEND, _TRANSACTIONAL, _CONTROL, _DELETE_HORIZON = 0x08, 0x10, 0x20, 0x40


def read_batch(blob: bytes, start: int, end: int) -> Batch:
    """Reads the batch at `blob[start:end]`, which has at least the length of its header."""
    base, _, epoch, magic, crc, attributes, delta, first, last, producer, producer_epoch, sequence, count = HEADER.unpack_from(
        blob, start
    )
    return Batch(
        blob=blob,
        start=start,
        end=end,
        magic=magic,
        codec_id=attributes & CODEC_MASK,
        base_offset=base,
        last_offset=java_long(base + delta),
        timestamp_type=TIMESTAMP_TYPES[bool(attributes & _LOG_APPEND)],
        crc=crc,
        max_timestamp=last,
        count=count,
        read=_each,
        checksum=_checksum,
        partition_leader_epoch=epoch,
        is_transactional=bool(attributes & _TRANSACTIONAL),
        is_control=bool(attributes & _CONTROL),
        producer_id=producer,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        base_timestamp=first,
        delete_horizon_ms=first if attributes & _DELETE_HORIZON else None,
    )


def _checksum(batch: Batch) -> int:
    return crc32c(memoryview(batch.blob)[batch.start + BATCH_ATTRIBUTES_AT : batch.end])


def inflated_limit(size: int) -> int:
    """Number of bytes to which `size` compressed ones may grow."""
    return max(INFLATED_BYTES_MAX, size * INFLATED_RATIO_MAX)


def packed_part(batch: Batch) -> memoryview:
    """The records as the codec compressed them."""
    return memoryview(batch.blob)[batch.start + HEADER.size : batch.end]


def _each(batch: Batch, contents: Contents) -> Iterator[Record]:
    packed = packed_part(batch)
    inflated = inflate(batch.codec_id, packed, inflated_limit(len(packed)))
    contents.fault = inflated.fault
    data, at = inflated.data, 0
    try:
        for _ in range(batch.count):
            record, at = read_record(batch, data, at)
            yield record
    except DamageError as damage:
        contents.fault = contents.fault or damage.reason
    if contents.fault is None and at < len(data):
        contents.fault = f"{len(data) - at} bytes behind the last record"


def _field(data: bytes | bytearray, at: int, end: int) -> tuple[bytes | None, int]:
    """The bytes after a zigzag varint of their length, which is negative for null; and where they end."""
    size, at = read_varint(data, at, end)
    if size < 0:
        return None, at
    if size > end - at:
        raise short_of("record", at)
    return bytes(data[at : at + size]), at + size


def read_record(batch: Batch, data: bytes | bytearray, at: int) -> tuple[Record, int]:
    """The record at `data[at:]`, and where the next one starts. Raises DamageError."""
    size, at = read_varint(data, at, len(data))
    end = at + size
    if size < 0 or end > len(data):
        raise short_of("record", at)
    time, at = read_varlong(data, at + 1, end)
    offset, at = read_varint(data, at, end)
    key, at = _field(data, at, end)
    value, at = _field(data, at, end)
    count, at = read_varint(data, at, end)
    if count < 0:
        raise DamageError(f"{count} headers at byte {at}")
    headers = []
    for _ in range(count):
        name, at = _field(data, at, end)
        content, at = _field(data, at, end)
        headers.append((decode_text(name or b""), content))
    if batch.timestamp_type == TIMESTAMP_TYPES[1]:
        time = batch.max_timestamp
    else:
        time = java_long(time + (batch.base_timestamp or 0))
    control = read_control(key, value) if batch.is_control else None
    return Record(java_long(batch.base_offset + offset), time, key, value, tuple(headers), control), end
