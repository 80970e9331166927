"""A records field in, its batches out, whatever formats it mixes.

Law: the result equals that of Kafka's own readers (MemoryRecords, DeepRecordsIterator). Nothing raises. A batch is decompressed
only when its records are requested, except for a magic 0 or 1 wrapper, which has to be opened for its first offset.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kcap.faults import fault_of
from kcap.model import Buffer
from kcap.records import magic2
from kcap.records.batch import Batch, spans
from kcap.records.magic2 import read_batch
from kcap.wire.codecs import inflate


@dataclass(slots=True)
class RecordSet:
    """The content of a records field."""

    batches: list[Batch] = field(default_factory=list)
    trailing_bytes: int = 0
    """Bytes after the last complete batch; a Fetch response may end in the middle of a batch."""
    fault: str | None = None
    """Why there may be more batches than were read, if a reader failed before the bytes ended."""

    def to_json(self) -> dict[str, Any]:
        """The batches with their records as JSON values."""
        found: dict[str, Any] = {
            "batches": [batch.to_json() for batch in self.batches],
            "trailing_bytes": self.trailing_bytes,
        }
        return found | {"undecoded": self.fault} if self.fault else found


def older() -> Any:
    """The module of formats 0 and 1, which few captures need."""
    from kcap.records import legacy

    return legacy


def decode_records(blob: Buffer) -> RecordSet:
    """Decodes the batches of a records field: magic 0, 1 and 2."""
    found = RecordSet()
    found.batches.extend(each_batch(blob, found))
    return found


def each_batch(blob: Buffer, found: RecordSet) -> Iterator[Batch]:
    """Yields the batches without storing them: each may have millions of records. After the last one, `found` has the rest."""
    data, at = bytes(blob), 0
    for start, end, magic in spans(data, 0, len(data)):
        try:
            batch = (read_batch if magic == 2 else older().read_message)(data, start, end)
        except Exception as error:  # noqa: BLE001 - the batches before it remain
            found.fault = fault_of(error)
            break
        yield batch
        at = end
    found.trailing_bytes = len(data) - at


def plain_size(batch: Batch) -> int | None:
    """Size of a batch if it were not compressed, bytes; None if it cannot be decompressed within its bounds."""
    if not batch.codec_id:
        return batch.size
    packed = (magic2.packed_part if batch.magic == 2 else older().packed_part)(batch)
    return inflated_size(batch.codec_id, packed, batch.size)


def inflated_size(codec: int, packed: memoryview, size: int) -> int | None:
    """`plain_size` of a batch of `size` bytes that ends with its compressed part."""
    inflated = inflate(codec, packed, magic2.inflated_limit(len(packed)))
    return None if inflated.fault else size - len(packed) + len(inflated.data)


def count_wrapped(buffer: Buffer, start: int, end: int, body_end: int) -> int:
    """Number of records in the compressed magic 0 or 1 message at `buffer[start:end]` (a span of `Projection.wrapped`) that can
    be read within the bounds of decompression; 0 if the body ends inside the message, as in `decode_records`."""
    return 0 if end > body_end else older().count_of(bytes(buffer[start:end]), 0, end - start)
