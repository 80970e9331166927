"""The facts in the headers of record batches, for each records field.

In: spans of records fields in a buffer. Out: columns with one entry per field: sums over its batches, and facts of its first
one; null for an absent field. Law: each value follows from the `Batch`es that `decode_records` reads. No batch of magic 2 is
decompressed; a wrapper of magic 0 or 1 is, within its bounds, since only its records show how many there are.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap import kernels
from kcap.arrays.arrow import Array, Coded, booleans, nulls
from kcap.arrays.vectors import Vector
from kcap.faults import Fault
from kcap.records import header_facts as facts
from kcap.records.batch import TIMESTAMP_TYPES, Batch
from kcap.records.record_sets import RecordSet, each_batch, inflated_size, plain_size
from kcap.records.verified import checksums
from kcap.wire.codecs import codec_name
from kcap.wire.formats import BATCH_ATTRIBUTES_AT, BATCH_MIN, CODEC_MASK

if TYPE_CHECKING:
    from kcap.arrays.vectors import Bools, Int64s

NUMBERS: Final = {
    "magic": facts.MAGIC, "producer_id": facts.PRODUCER_ID, "producer_epoch": facts.PRODUCER_EPOCH,
    "base_sequence": facts.SEQUENCE, "first_timestamp_ms": facts.FIRST_TIMESTAMP, "max_timestamp_ms": facts.MAX_TIMESTAMP,
}  # fmt: skip
"""Columns that are a number among the facts; -1 is Kafka's value for none."""
TEXTS: Final[dict[str, tuple[int, list[str | None]]]] = {
    "codec": (facts.CODEC, [codec_name(codec) for codec in range(CODEC_MASK + 1)]),
    "timestamp_type": (facts.TIMESTAMP_TYPE, [None, *TIMESTAMP_TYPES]),
}
"""Columns that are a text for a number among the facts."""
COLUMNS: Final = (
    "batches", "records", "bytes", *NUMBERS, *TEXTS, "mixed_codec", "crc_ok", "control_records", "next_offset",
)  # fmt: skip
FIELD_NS: Final = 10_000
"""Processor time of a field that is read batch by batch, in addition to a nanosecond per byte for copying it."""
FEW_NS: Final = 16 * FIELD_NS
"""Time up to which reading batch by batch is quicker than calling a kernel."""
BATCH: Final = 5
"""Columns of the table of batches: field, start, end, stored CRC, codec."""


class BatchFacts:
    """The batches of some records fields: `buffer[start:end]` each; a start of -1 means no field."""

    def __init__(
        self, buffer: Any, starts: "Int64s", ends: "Int64s", failed: Callable[[int, Exception | Fault], None] | None = None
    ) -> None:
        """`failed` receives the fields for which the reader failed; these have the facts of the batches before."""
        self._data = np.frombuffer(buffer, np.uint8)
        self._starts, self._ends = starts, ends
        self._failed = failed or (lambda _at, _error: None)
        self._facts, self._batches = self._blank(0)
        """The facts, and the batches of fields that a kernel read."""
        self._read: dict[int, Sequence[Batch]] = {}
        """The batches of the other fields."""
        self.present: Bools = starts >= 0
        """Which fields exist."""
        others = self.present
        count = int(self.present.sum())
        spared_ns = FIELD_NS * count + int((ends - starts)[others].sum())
        if spared_ns > FEW_NS and kernels.worthwhile(spared_ns):
            self._compiled()
            others = self._facts[facts.OLD] > 0
        view = memoryview(buffer)
        for field in np.flatnonzero(others).tolist():
            found = RecordSet()
            found.batches.extend(each_batch(view[starts[field] : max(starts[field], ends[field])], found))
            if isinstance(found.fault, Fault):
                self._failed(field, found.fault)
            self._read[field] = found.batches
            self._facts[:, field] = facts.header_facts(found.batches)
        self._filled = self._facts[facts.BATCHES] > 0

    def _blank(self, room: int) -> "tuple[Int64s, Int64s]":
        """Empty facts, and room for batches."""
        made = np.full((facts.FACTS, len(self._starts)), facts.NONE)
        made[: facts.COUNTS] = 0
        return made, np.empty((room, BATCH), np.int64)

    def _compiled(self) -> None:
        """Computes facts and batches of fields without messages of magic 0 or 1."""
        from kcap.records.header_kernels import read_headers

        room, count = 0, 2 * len(self._starts)
        while count > room:
            room = count
            self._facts, table = self._blank(room)
            count = read_headers(self._data, self._starts, self._ends, self._facts, table)
        self._batches = table[:count]

    @property
    def next_offset(self) -> Vector:
        """The offset after the last batch."""
        return Vector(self._facts[facts.NEXT_OFFSET], self._filled)

    @property
    def control_records(self) -> Vector:
        """Number of records in control batches, which `records` includes."""
        return Vector(self._facts[facts.CONTROL], self._filled)

    def crc_ok(self) -> Array:
        """Whether the stored CRC of every batch matches its bytes."""
        field, start, end, stored, _ = self._batches.T
        fine = np.ones(len(self._starts), np.bool_)
        fine[field[checksums(self._data, start + BATCH_ATTRIBUTES_AT, end) != stored]] = False
        for one, batches in self._read.items():
            fine[one] = all(batch.crc_ok for batch in batches)
        return booleans(fine, self._filled)

    def mixed_codec(self) -> Array:
        """Whether the batches have more than one codec."""
        return booleans(self._facts[facts.MIXED] > 0, self._filled)

    def plain_bytes(self, fields: "Bools") -> Vector:
        """Uncompressed bytes of the batches of some fields; null if one cannot be decompressed."""
        field, start, end, _, codec = self._batches.T
        size, known = np.zeros(len(self._starts), np.int64), fields & self.present
        packed = (codec > 0) & fields[field]
        np.add.at(size, field[~packed], (end - start)[~packed])
        spans = zip(field[packed].tolist(), start[packed].tolist(), end[packed].tolist(), codec[packed].tolist())
        sizes = (
            (one, partial(inflated_size, kind, self._data[low + BATCH_MIN : high].data, high - low))
            for one, low, high, kind in spans
        )
        old = ((one, partial(plain_size, batch)) for one, read in self._read.items() if fields[one] for batch in read)
        for one, measure in chain(sizes, old):
            plain = None
            try:
                plain = measure()
            except Exception as error:  # noqa: BLE001 - of this partition the size is not known
                self._failed(one, error)
            size[one] += plain or 0
            known[one] &= plain is not None
        return Vector(size, known)

    def column(self, name: str, kind: pa.DataType) -> Array | Coded:
        """A column by its name, one of COLUMNS."""
        if name in TEXTS:
            if not self._filled.any():
                return nulls(len(self._starts), kind)
            fact, texts = TEXTS[name]
            return Coded(pa.array([*texts, None], pa.string()), np.where(self._filled, self._facts[fact], len(texts)))
        if name in NUMBERS:
            values = self._facts[NUMBERS[name]]
            return Vector(values, self._filled & (values != facts.NONE)).to_arrow(kind)
        if name in ("crc_ok", "mixed_codec"):
            made: Array = getattr(self, name)()
            return made
        return self._vector(name).to_arrow(kind)

    def _vector(self, name: str) -> Vector:
        if name == "batches":
            return Vector(self._facts[facts.BATCHES], self.present)
        if name == "bytes":
            return Vector(self._ends - self._starts, self.present)
        if name == "records":
            return Vector(self._facts[facts.RECORDS], self.present)
        found: Vector = getattr(self, name)
        return found
