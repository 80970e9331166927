"""The compiled reader of batch headers.

In: spans of records fields. Out: the facts that `kcap.records.header_facts` takes from the batches of one field, and where each
batch is. Law: fields that may hold a message of magic 0 or 1 are marked and left to that module.
"""

from typing import Any

from kcap.kernels import int16, int32, int64, routine, uint32
from kcap.records.header_facts import (
    BATCHES,
    CODEC,
    CONTROL,
    CREATE_TIME,
    FIRST_TIMESTAMP,
    LOG_APPEND_TIME,
    MAGIC,
    MAX_TIMESTAMP,
    MIXED,
    NEXT_OFFSET,
    NONE,
    OLD,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORDS,
    SEQUENCE,
    TIMESTAMP_TYPE,
)
from kcap.wire.formats import (
    BATCH_ATTRIBUTES_AT,
    BATCH_COUNT_AT,
    BATCH_CRC_AT,
    BATCH_MIN,
    CODEC_MASK,
    MAGIC_AT,
    MESSAGE0_MIN,
    OVERHEAD,
    SIZE_AT,
)

NEW = 2
"""The magic of the batches that are read here."""
DELTA_AT, FIRST_AT, MAX_AT, PRODUCER_AT, EPOCH_AT, SEQUENCE_AT = 23, 27, 35, 43, 51, 53
"""Offsets of fields in the header (DefaultRecordBatch.java)."""
LOG_APPEND_BIT, CONTROL_BIT, DELETE_HORIZON_BIT = 0x08, 0x20, 0x40
"""Bits of its attributes."""


@routine
def read_headers(data: Any, starts: Any, ends: Any, facts: Any, batches: Any) -> int:
    """Fills a column of `facts` for each field, and a row (field, start, end, CRC, codec) of `batches` for each batch in order.

    Returns the number of batches; if `batches` has fewer rows, the rest is left out.
    """
    count = 0
    for field in range(starts.size):
        at, end = starts[field], min(ends[field], data.size)
        if at < 0:
            continue
        first, latest = count, NONE
        while end - at >= MESSAGE0_MIN:
            size, magic = OVERHEAD + int32(data, at + SIZE_AT), data[at + MAGIC_AT]
            if magic < NEW:
                facts[OLD, field] = 1
                break
            if magic > NEW or size < BATCH_MIN or size > end - at:
                break
            attributes = int16(data, at + BATCH_ATTRIBUTES_AT)
            codec, records = attributes & CODEC_MASK, max(0, int32(data, at + BATCH_COUNT_AT))
            time = int64(data, at + MAX_AT)
            if count == first:
                latest = time
                facts[MAGIC, field], facts[CODEC, field] = NEW, codec
                facts[TIMESTAMP_TYPE, field] = LOG_APPEND_TIME if attributes & LOG_APPEND_BIT else CREATE_TIME
                facts[PRODUCER_ID, field] = int64(data, at + PRODUCER_AT)
                facts[PRODUCER_EPOCH, field] = int16(data, at + EPOCH_AT)
                facts[SEQUENCE, field] = int32(data, at + SEQUENCE_AT)
                if not attributes & DELETE_HORIZON_BIT:
                    facts[FIRST_TIMESTAMP, field] = int64(data, at + FIRST_AT)
            latest = max(latest, time)
            facts[RECORDS, field] += records
            if attributes & CONTROL_BIT:
                facts[CONTROL, field] += records
            if codec != facts[CODEC, field]:
                facts[MIXED, field] = 1
            facts[NEXT_OFFSET, field] = int64(data, at) + int32(data, at + DELTA_AT) + 1
            if count < batches.shape[0]:
                batches[count, 0], batches[count, 1], batches[count, 2] = field, at, at + size
                batches[count, 3], batches[count, 4] = uint32(data, at + BATCH_CRC_AT), codec
            count += 1
            at += size
        facts[BATCHES, field], facts[MAX_TIMESTAMP, field] = count - first, latest
        if facts[OLD, field]:
            count = first
    return count
