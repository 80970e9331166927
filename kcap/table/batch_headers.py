"""What the headers of record batches say, a records field at a time.

In: spans of records fields in a buffer. Out: sums and facts of the first batch of each. Law: no batch of magic 2 is
decompressed; a wrapper of magic 0 or 1 is, within its bounds, since only its records tell how many there are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kcap.faults import Fault, fault_of
from kcap.records.batch import Batch
from kcap.records.record_sets import decode_records
from kcap.wire.varints import java_long

NO_TYPE: Final = "NoTimestampType"


@dataclass(slots=True)
class BatchFacts:
    """A column a fact, an entry a records field; None where it has none."""

    batches: list[int | None] = field(default_factory=list)
    records: list[int | None] = field(default_factory=list)
    bytes: list[int | None] = field(default_factory=list)
    codec: list[str | None] = field(default_factory=list)
    """Of the first batch, as `magic`, `producer_*`, `base_sequence` and `timestamp_type`."""
    magic: list[int | None] = field(default_factory=list)
    producer_id: list[int | None] = field(default_factory=list)
    producer_epoch: list[int | None] = field(default_factory=list)
    base_sequence: list[int | None] = field(default_factory=list)
    mixed_codec: list[bool | None] = field(default_factory=list)
    """The batches are not all of one codec."""
    timestamp_type: list[str | None] = field(default_factory=list)
    first_timestamp_ms: list[int | None] = field(default_factory=list)
    max_timestamp_ms: list[int | None] = field(default_factory=list)
    crc_ok: list[bool | None] = field(default_factory=list)
    """All batches."""
    control_records: list[int | None] = field(default_factory=list)
    """Records of control batches, which `records` counts too."""
    next_offset: list[int | None] = field(default_factory=list)
    """Behind the last batch."""

    def add(self, size: int, found: Sequence[Batch], *, checked: bool) -> None:
        """A records field."""
        self.batches.append(len(found))
        self.records.append(sum(max(0, batch.count) for batch in found))
        self.bytes.append(size)
        first = found[0] if found else None
        self.codec.append(first.codec if first else None)
        self.magic.append(first.magic if first else None)
        self.producer_id.append(known(first.producer_id) if first else None)
        self.producer_epoch.append(known(first.producer_epoch) if first else None)
        self.base_sequence.append(known(first.base_sequence) if first else None)
        self.mixed_codec.append(any(batch.codec_id != first.codec_id for batch in found) if first else None)
        self.timestamp_type.append(first.timestamp_type if first and first.timestamp_type != NO_TYPE else None)
        self.first_timestamp_ms.append(first_timestamp(first) if first else None)
        self.max_timestamp_ms.append(known(max(batch.max_timestamp for batch in found)) if found else None)
        self.crc_ok.append(all(batch.crc_ok for batch in found) if found and checked else None)
        self.control_records.append(sum(max(0, batch.count) for batch in found if batch.is_control) if found else None)
        self.next_offset.append(java_long(found[-1].last_offset + 1) if found else None)

    def cut_to(self, size: int) -> None:
        """Forgets what was begun behind so many entries."""
        for name in COLUMNS:
            del getattr(self, name)[size:]

    def nothing(self) -> None:
        """A message without a records field."""
        for name in COLUMNS:
            getattr(self, name).append(None)


COLUMNS: Final = tuple(BatchFacts.__dataclass_fields__)


def known(number: int) -> int | None:
    """Kafka's -1 is none."""
    return None if number == -1 else number


def first_timestamp(batch: Batch) -> int | None:
    """Of the first record as its header tells it; a wrapper of magic 1 has only the last one's."""
    if batch.base_timestamp is not None and batch.delete_horizon_ms is None:
        return known(batch.base_timestamp)
    if batch.magic == 1 and not batch.codec_id:
        return known(batch.max_timestamp)
    return None


def batch_facts(
    buffer: Any,
    starts: Sequence[int],
    ends: Sequence[int],
    *,
    checked: bool = True,
    failed: Callable[[int, Fault], None] | None = None,
) -> BatchFacts:
    """The facts of the fields at `buffer[start:end]`; a start of -1 is none. Checksums only where asked for.

    `failed` is told of fields on which the reader failed: they have no facts, or those of the batches before.
    """
    facts = BatchFacts()
    view = memoryview(buffer)
    for at, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if start < 0:
            facts.nothing()
            continue
        found = decode_records(view[start:end])
        fault = found.fault
        try:
            facts.add(end - start, found.batches, checked=checked)
        except Exception as error:  # noqa: BLE001 - this field has no facts
            facts.cut_to(at)
            facts.nothing()
            fault = fault_of(error)
        if failed is not None and isinstance(fault, Fault):
            failed(at, fault)
    return facts
