"""What the headers of record batches say, for each records field.

In: spans of records fields in a buffer. Out: columns, an entry a field: sums over its batches, and facts of its first one; null
for a field that is absent. Law: each value follows from the `Batch`es that `decode_records` reads. No batch of magic 2 is
decompressed; a wrapper of magic 0 or 1 is, within its bounds, since only its records tell how many there are.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap.arrays.arrow import Array, nulls, take
from kcap.arrays.vectors import Vector
from kcap.faults import Fault
from kcap.records.batch import TIMESTAMP_TYPES, Batch, spans
from kcap.records.record_sets import RecordSet, decode_records, plain_size
from kcap.records.verified import checksums
from kcap.wire.codecs import codec_name
from kcap.wire.formats import BATCH_ATTRIBUTES_AT, BATCH_MIN, CODEC_MASK, MAGIC_AT, MESSAGE0_MIN, MINIMA, OVERHEAD, SIZE_AT

if TYPE_CHECKING:
    from kcap.arrays.vectors import Bools, Int64s

HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"), ("size", ">i4"), ("epoch", ">i4"), ("magic", "i1"), ("crc", ">u4"), ("attributes", ">i2"),
        ("offset_delta", ">i4"), ("base_timestamp", ">i8"), ("max_timestamp", ">i8"), ("producer_id", ">i8"),
        ("producer_epoch", ">i2"), ("base_sequence", ">i4"), ("count", ">i4"),
    ]
)  # fmt: skip
"""The header of a batch of magic 2 (DefaultRecordBatch.java)."""
LOG_APPEND, CONTROL, DELETE_HORIZON = 0x08, 0x20, 0x40
NUMBERS: Final = ("magic", "producer_id", "producer_epoch", "base_sequence", "first_timestamp_ms")
"""Columns that are numbers of the first batch; -1 is Kafka's word for none."""
TEXTS: Final[dict[str, list[str | None]]] = {
    "codec": [codec_name(codec) for codec in range(CODEC_MASK + 1)],
    "timestamp_type": [None, *TIMESTAMP_TYPES],
}
"""Columns that are texts of the first batch."""
NO_TYPE: Final = "NoTimestampType"
COLUMNS: Final = (
    "batches", "records", "bytes", *NUMBERS, *TEXTS, "mixed_codec", "max_timestamp_ms", "crc_ok", "control_records",
    "next_offset",
)  # fmt: skip
FEW: Final = 16
"""With fewer fields than this it is quicker to step from batch to batch in Python than by numpy."""


class BatchFacts:
    """The batches of some records fields: `buffer[start:end]` each, a start of -1 for none."""

    def __init__(
        self, buffer: Any, starts: "Int64s", ends: "Int64s", failed: Callable[[int, Exception | Fault], None] | None = None
    ) -> None:
        """`failed` takes fields on which the reader failed; they have the facts of the batches before."""
        self._view = memoryview(buffer)
        self._data = np.frombuffer(buffer, np.uint8)
        self._starts, self._ends = starts, ends
        self._failed = failed or (lambda _at, _error: None)
        self._old: dict[int, Batch] = {}
        self._field, self._start, self._size, self._magic = self._readable(np.stack(self._walk()))
        self.present: Bools = starts >= 0
        """Fields that are there."""
        self._counts = np.bincount(self._field, minlength=len(starts))
        self._last = np.cumsum(self._counts) - 1
        self._first = self._last - self._counts + 1
        self._filled = self._counts > 0

    def _walk(self) -> "tuple[Int64s, Int64s, Int64s, Int64s]":
        """Field, start, size in bytes and magic of every complete batch, in order."""
        data, ends = self._data, self._ends
        minima = np.array([*MINIMA, 1 << 40], np.int64)
        field = np.flatnonzero((self._starts >= 0) & (ends - self._starts >= MESSAGE0_MIN))
        at = self._starts[field]
        found: list[Any] = []
        while len(field) > FEW:
            size = data[at[:, None] + np.arange(SIZE_AT, SIZE_AT + 4)].view(">i4")[:, 0].astype(np.int64) + OVERHEAD
            magic = np.minimum(data[at + MAGIC_AT].astype(np.int64), len(MINIMA))
            there = (size >= minima[magic]) & (size <= ends[field] - at)
            field, at, size, magic = field[there], at[there], size[there], magic[there]
            found.append((field, at, size, magic))
            at = at + size
            more = ends[field] - at >= MESSAGE0_MIN
            field, at = field[more], at[more]
        rest = [
            (one, start, end - start, magic)
            for one, low, high in zip(field.tolist(), at.tolist(), ends[field].tolist())
            for start, end, magic in spans(self._view, low, high)
        ]
        found.append(np.array(rest, np.int64).reshape(-1, 4).T)
        table = np.concatenate(found, axis=1)
        field, at, size, magic = table[:, np.argsort(table[0], kind="stable")]
        return field, at, size, magic

    def _readable(self, table: Any) -> "tuple[Int64s, Int64s, Int64s, Int64s]":
        """The batches, without those behind a message of magic 0 or 1 that does not read."""
        keep = np.ones(table.shape[1], np.bool_)
        old: dict[int, Batch] = {}
        for place in np.flatnonzero(table[3] != 2).tolist():
            found = self._decoded(int(table[1, place]), int(table[2, place]))
            if isinstance(found.fault, Fault):
                self._failed(int(table[0, place]), found.fault)
            if found.batches:
                old[place] = found.batches[0]
            else:
                keep[place:] &= table[0, place:] != table[0, place]
        number = np.cumsum(keep) - 1
        self._old = {int(number[place]): batch for place, batch in old.items() if keep[place]}
        field, start, size, magic = table[:, keep]
        return field, start, size, magic

    def _decoded(self, start: int, size: int) -> RecordSet:
        return decode_records(self._view[start : start + size])

    @cached_property
    def _headers(self) -> "dict[str, Int64s]":
        """Columns of the batches' headers."""
        total = len(self._start)
        made = {name: np.full(total, -1, np.int64) for name in (*NUMBERS, "max_timestamp", "crc")}
        made |= {name: np.zeros(total, np.int64) for name in ("codec", "timestamp_type", "count", "control", "last_offset")}
        made["magic"] = self._magic
        new = np.flatnonzero(self._magic == 2)
        if len(new):
            head = np.ascontiguousarray(self._data[self._start[new][:, None] + np.arange(BATCH_MIN)]).view(HEADER)[:, 0]
            attributes = head["attributes"].astype(np.int64)
            for name in ("producer_id", "producer_epoch", "base_sequence", "max_timestamp", "count", "crc"):
                made[name][new] = head[name]
            made["codec"][new] = attributes & CODEC_MASK
            made["control"][new] = np.where(attributes & CONTROL, np.maximum(head["count"], 0), 0)
            made["timestamp_type"][new] = np.where(attributes & LOG_APPEND, 2, 1)
            made["last_offset"][new] = head["base_offset"].astype(np.int64) + head["offset_delta"]
            made["first_timestamp_ms"][new] = np.where(attributes & DELETE_HORIZON, -1, head["base_timestamp"])
        for place in np.flatnonzero(self._magic != 2).tolist():
            batch = self._batch(place)
            made["codec"][place], made["count"][place] = batch.codec_id, batch.count
            made["last_offset"][place], made["max_timestamp"][place] = batch.last_offset, batch.max_timestamp
            if batch.timestamp_type != NO_TYPE:
                made["timestamp_type"][place] = 1 + TIMESTAMP_TYPES.index(batch.timestamp_type)
            if batch.magic == 1 and not batch.codec_id:  # a wrapper has only the time of its last message
                made["first_timestamp_ms"][place] = batch.max_timestamp
        return made

    def _batch(self, place: int) -> Batch:
        """A batch by itself."""
        return self._old.get(place) or self._decoded(int(self._start[place]), int(self._size[place])).batches[0]

    def _of_first(self, name: str) -> "Int64s":
        """A column of the first batches; means nothing for fields without one."""
        values = self._headers[name]
        return values[np.minimum(self._first, len(values) - 1)] if len(values) else np.zeros(len(self._starts), np.int64)

    def _sums(self, values: "Int64s") -> Vector:
        """Sums over the batches of each field."""
        running = np.concatenate([[0], np.cumsum(values)])
        return Vector(running[self._last + 1] - running[self._first], self.present)

    @property
    def next_offset(self) -> Vector:
        """The offset behind the last batch."""
        offsets = self._headers["last_offset"]
        values = offsets[np.maximum(self._last, 0)] + 1 if len(offsets) else np.zeros(len(self._starts), np.int64)
        return Vector(values, self._filled)

    @property
    def max_timestamp_ms(self) -> Vector:
        """The latest timestamp in any header."""
        values = np.full(len(self._starts), -1, np.int64)
        filled = np.flatnonzero(self._filled)
        if len(filled):
            values[filled] = np.maximum.reduceat(self._headers["max_timestamp"], self._first[filled])
        return Vector(values, self._filled & (values != -1))

    @property
    def control_records(self) -> Vector:
        """Records of control batches, which `records` counts too."""
        return self._sums(self._headers["control"]).where(self._filled)

    def crc_ok(self) -> Array:
        """Whether the stored CRC of every batch is that of its bytes."""
        new, start = self._magic == 2, self._start
        fine = np.empty(len(new), np.bool_)
        found = checksums(self._data, start[new] + BATCH_ATTRIBUTES_AT, (start + self._size)[new])
        fine[new] = found == self._headers["crc"][new]
        for place in np.flatnonzero(~new).tolist():
            fine[place] = self._batch(place).crc_ok
        return self._every(fine)

    def mixed_codec(self) -> Array:
        """Whether the batches are not all of one codec."""
        same = self._headers["codec"] == self._of_first("codec")[self._field]
        return pa.array(~self._all(same), mask=~self._filled)

    def plain_bytes(self, fields: "Bools") -> Vector:
        """Bytes of the batches of some fields if they were not compressed; null where one does not inflate."""
        plain = self._size.copy()
        for place in np.flatnonzero((self._headers["codec"] > 0) & fields[self._field]).tolist():
            try:
                size = plain_size(self._batch(place))
            except Exception as error:  # noqa: BLE001 - of this partition the size is not known
                self._failed(int(self._field[place]), error)
                size = None
            plain[place] = -1 if size is None else size
        return self._sums(plain).where(fields & self._all(plain >= 0))

    def _all(self, fine: "Bools") -> "Bools":
        same: Bools = self._sums(fine.astype(np.int64)).values == self._counts
        return same

    def _every(self, fine: "Bools") -> Array:
        return pa.array(self._all(fine), mask=~self._filled)

    def column(self, name: str, kind: pa.DataType) -> Array:
        """A column by its name, one of COLUMNS."""
        if name in TEXTS:
            if not self._filled.any():
                return nulls(len(self._starts), kind)
            texts = [*TEXTS[name], None]
            return take(pa.array(texts, pa.string()), np.where(self._filled, self._of_first(name), len(texts) - 1))
        if name in NUMBERS:
            values = self._of_first(name)
            return Vector(values, self._filled & (values != -1)).to_arrow(kind)
        if name in ("crc_ok", "mixed_codec"):
            made: Array = getattr(self, name)()
            return made
        return self._vector(name).to_arrow(kind)

    def _vector(self, name: str) -> Vector:
        if name == "batches":
            return Vector(self._counts, self.present)
        if name == "bytes":
            return Vector(self._ends - self._starts, self.present)
        if name == "records":
            return self._sums(np.maximum(self._headers["count"], 0))
        found: Vector = getattr(self, name)
        return found
