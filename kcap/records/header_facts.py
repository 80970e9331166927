"""Facts from the headers of the batches of a records field, as a column of integers.

In: the `Batch`es of a field. Out: the facts, by the numbers below: sums over the batches, and facts of the first one. Law: no
batch of magic 2 is decompressed for them.
"""

from collections.abc import Sequence
from typing import Final

from kcap.records.batch import TIMESTAMP_TYPES, Batch
from kcap.wire.varints import java_long

NONE: Final = -1
"""Kafka's value for a number that is absent."""
(
    BATCHES, RECORDS, CONTROL, MIXED, OLD, MAGIC, CODEC, TIMESTAMP_TYPE, PRODUCER_ID, PRODUCER_EPOCH, SEQUENCE, FIRST_TIMESTAMP,
    MAX_TIMESTAMP, NEXT_OFFSET,
) = range(14)  # fmt: skip
"""Counts: batches, records, records of control batches among them, whether codecs differ, whether there is a message of magic 0
or 1. Of the first batch, or NONE without one: magic, codec, timestamp type, producer id, producer epoch, first sequence, first
timestamp (ms). The latest timestamp (ms), and the offset after the last batch."""
COUNTS: Final = 5
"""Number of facts that are 0 if there is no batch."""
FACTS: Final = 14
NO_TIME, CREATE_TIME, LOG_APPEND_TIME = range(3)
"""Timestamp types."""
TIMES: Final = {kind: at for at, kind in enumerate(TIMESTAMP_TYPES, CREATE_TIME)}


def header_facts(batches: Sequence[Batch]) -> list[int]:
    """The facts of a field's batches."""
    found = [0] * COUNTS + [NONE] * (FACTS - COUNTS)
    if not batches:
        return found
    first, last = batches[0], batches[-1]
    counts = [max(0, batch.count) for batch in batches]
    found[BATCHES], found[RECORDS] = len(batches), sum(counts)
    found[CONTROL] = sum(count for batch, count in zip(batches, counts) if batch.is_control)
    found[MIXED] = int(any(batch.codec_id != first.codec_id for batch in batches))
    found[OLD] = int(any(batch.magic < 2 for batch in batches))
    found[MAGIC], found[CODEC] = first.magic, first.codec_id
    found[TIMESTAMP_TYPE] = TIMES.get(first.timestamp_type, NO_TIME)
    found[PRODUCER_ID], found[PRODUCER_EPOCH] = first.producer_id, first.producer_epoch
    found[SEQUENCE], found[FIRST_TIMESTAMP] = first.base_sequence, first_timestamp(first)
    found[MAX_TIMESTAMP] = max(batch.max_timestamp for batch in batches)
    found[NEXT_OFFSET] = java_long(last.last_offset + 1)
    return found


def first_timestamp(batch: Batch) -> int:
    """Timestamp of the first record, ms; NONE if only records contain it: in a wrapper, or after a delete horizon (KIP-534)."""
    if batch.magic == 1:
        return NONE if batch.codec_id else batch.max_timestamp
    return NONE if batch.base_timestamp is None or batch.delete_horizon_ms is not None else batch.base_timestamp
