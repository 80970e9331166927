"""Messages of magic 0 and 1: bytes in, batches out. A compressed message is a batch of those that it wraps.

Sources: LegacyRecord.java, AbstractLegacyRecordBatch.java (KIP-31 relative offsets, KIP-32 timestamps). Laws: offsets are
returned as absolute ones. A wrapper inside a wrapper is not opened, as in Kafka. Decompression is bounded, and counting makes
no object of a wrapped message.
"""

from collections.abc import Iterator
from struct import Struct

import numpy as np

from kcap import kernels
from kcap.records.batch import TIMESTAMP_TYPES, Batch, Contents, Record, spans
from kcap.records.magic2 import inflated_limit
from kcap.wire.checksums import crc32
from kcap.wire.codecs import inflate
from kcap.wire.formats import CODEC_MASK, MAGIC_AT, MESSAGE0_MIN, MESSAGE_ATTRIBUTES_AT, OVERHEAD, SIZE_AT
from kcap.wire.varints import DamageError, java_long, short_of

_HEADER = Struct(">qiIbb")
"""Offset, size, CRC, magic, attributes."""
_LENGTH = Struct(">i")
_TIMESTAMP = _OFFSET = Struct(">q")
_LOG_APPEND = 0x08
NO_TIMESTAMP = -1
_MANY = 256
"""Number of wrapped messages from which a kernel counts them."""
_MESSAGE_NS = 700
"""Processor time, ns, that one of them takes in Python."""


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
        # Only the wrapped messages give the first offset and the number of records.
        try:
            batch.base_offset, batch.count = _counted(batch)
        except Exception as error:  # noqa: BLE001 - the batch has the reason; its header and the other batches remain
            batch.count = 0
            batch.fail(error)
    return batch


def _checksum(batch: Batch) -> int:
    return crc32(memoryview(batch.blob)[batch.start + MAGIC_AT : batch.end])


def packed_part(batch: Batch) -> memoryview:
    """The compressed bytes of the wrapped messages; empty if the message is damaged."""
    try:
        return memoryview(_fields(batch.blob, batch.start, batch.end, batch.magic)[1] or b"")
    except DamageError:
        return memoryview(b"")


def _fields(blob: bytes, start: int, end: int, magic: int) -> tuple[bytes | None, bytes | None]:
    """Key and value of the message at `blob[start:end]`. Raises DamageError."""
    key, key_end, value, value_end = _places(blob, start, end, magic)
    return None if key_end < 0 else blob[key:key_end], None if value_end < 0 else blob[value:value_end]


def _places(blob: bytes, start: int, end: int, magic: int) -> tuple[int, int, int, int]:
    """Start and end of key and value of the message at `blob[start:end]`; an end of -1 is null. Raises DamageError."""
    at = start + _HEADER.size + (8 if magic else 0)
    if at + 4 > end:
        raise short_of("message", at)
    (size,) = _LENGTH.unpack_from(blob, at)
    at += 4
    middle = at + size if size > 0 else at
    if middle + 4 > end:
        raise short_of("message", at if size > end - at else middle)
    (rest,) = _LENGTH.unpack_from(blob, middle)
    value = middle + 4
    if rest > end - value:
        raise short_of("message", value)
    return at, -1 if size < 0 else middle, value, -1 if rest < 0 else value + rest


def _each(batch: Batch, contents: Contents) -> Iterator[Record]:
    if batch.codec_id:
        yield from _unwrapped(batch, contents)
        return
    try:
        key, value = _fields(batch.blob, batch.start, batch.end, batch.magic)
    except DamageError as damage:
        contents.fault = damage.reason
        return
    yield Record(batch.base_offset, batch.max_timestamp, key, value)


# -- wrapped messages -----------------------------------------------------------------------------------------------------
def _inflated(blob: bytes, start: int, end: int) -> tuple[bytes, str | None]:
    """The messages in the wrapper at `blob[start:end]`, empty if it is damaged itself; and why there may be more."""
    try:
        _, _, low, high = _places(blob, start, end, blob[start + MAGIC_AT])
    except DamageError as damage:
        return b"", damage.reason
    value = blob[low : max(low, high)]
    found = inflate(blob[start + MESSAGE_ATTRIBUTES_AT] & CODEC_MASK, value, inflated_limit(len(value)))
    return bytes(found.data), found.fault


def _messages(blob: bytes, contents: Contents) -> Iterator[tuple[int, int, tuple[int, int, int, int]]]:
    """Yields (start, magic, places of key and value) of every wrapped message that can be read."""
    end = 0
    for start, end, magic in spans(blob, 0, len(blob)):
        if magic > 1 or blob[start + MESSAGE_ATTRIBUTES_AT] & CODEC_MASK:
            contents.fault = contents.fault or "a compressed message inside a compressed one"
            return
        try:
            places = _places(blob, start, end, magic)
        except DamageError as damage:
            contents.fault = contents.fault or damage.reason
            continue
        yield start, magic, places
    if contents.fault is None and end < len(blob):
        contents.fault = f"{len(blob) - end} bytes behind the last message"


def span_of_messages(blob: bytes) -> tuple[int, int, int]:
    """Number of wrapped messages that can be read, and where the first and the last one start. None of them becomes an object,
    because a small frame may wrap millions."""
    count = first = last = 0
    for last, _, _ in _messages(blob, Contents()):
        first = first if count else last
        count += 1
    return count, first, last


def count_of(blob: bytes, start: int, end: int) -> int:
    """Number of readable messages in the wrapper at `blob[start:end]`."""
    return _span_within(_inflated(blob, start, end)[0])[0]


def _span_within(blob: bytes) -> tuple[int, int, int]:
    """As `span_of_messages`, in machine code if there are many."""
    if len(blob) < MESSAGE0_MIN:
        return 0, 0, 0
    likely = len(blob) // max(MESSAGE0_MIN, OVERHEAD + _LENGTH.unpack_from(blob, SIZE_AT)[0])
    if likely >= _MANY and kernels.worthwhile(_MESSAGE_NS * likely):
        from kcap.records.wrapped_kernels import wrapped_messages

        count, first, last = wrapped_messages(np.frombuffer(blob, np.uint8))
        return int(count), int(first), int(last)
    return span_of_messages(blob)


def _counted(wrapper: Batch) -> tuple[int, int]:
    """The offset of the first wrapped message, or that of the wrapper if there is none; and the number of messages.

    The last message has the wrapper's offset, if the wrapper has one (KIP-31).
    """
    blob, _ = _inflated(wrapper.blob, wrapper.start, wrapper.end)
    count, first, last = _span_within(blob)
    if not count:
        return wrapper.last_offset, 0
    offset = _OFFSET.unpack_from(blob, first)[0]
    if not wrapper.magic or not wrapper.last_offset:
        return offset, count
    return java_long(wrapper.last_offset - _OFFSET.unpack_from(blob, last)[0] + offset), count


def _unwrapped(wrapper: Batch, contents: Contents) -> Iterator[Record]:
    """Yields the wrapped records with absolute offsets, and with the wrapper's time if it applies."""
    blob, contents.fault = _inflated(wrapper.blob, wrapper.start, wrapper.end)
    appended = wrapper.timestamp_type == TIMESTAMP_TYPES[1]
    base: int | None = None
    for start, magic, (key, key_end, value, value_end) in _messages(blob, contents):
        offset = _OFFSET.unpack_from(blob, start)[0]
        if base is None:
            base = wrapper.base_offset - offset
        time = _TIMESTAMP.unpack_from(blob, start + _HEADER.size)[0] if magic else NO_TIMESTAMP
        yield Record(
            java_long(base + offset), wrapper.max_timestamp if appended else time, None if key_end < 0 else blob[key:key_end],
            None if value_end < 0 else blob[value:value_end],
        )  # fmt: skip
