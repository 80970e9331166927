"""The classes of batches, messages and their records, and the walk over a blob of them.

A blob (a records field) in, spans of batches out. Law: a batch is read only if all of it is there. Bytes after the last
complete one are counted as trailing, and never interpreted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final

from kcap.decode.json import base64
from kcap.faults import Fault, fault_of
from kcap.model import Buffer
from kcap.wire.codecs import codec_name
from kcap.wire.formats import MAGIC_AT, MESSAGE0_MIN, MINIMA, OVERHEAD, SIZE_AT

TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")

_SIZE = Struct(">i").unpack_from


@dataclass(frozen=True, slots=True)
class Control:
    """The meaning of a control record (KIP-98, KIP-595)."""

    type: str
    """COMMIT, ABORT, LEADER_CHANGE, ..., UNKNOWN."""
    type_id: int
    body: dict[str, Any] | None
    """Kafka's JSON of the value, read at version 0; None for UNKNOWN and for a value that cannot be read."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record. Offsets are absolute; a timestamp is in ms since the epoch, -1 for none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    control: Control | None = None

    def to_json(self) -> dict[str, Any]:
        """The record in JSON values; bytes are base64."""
        found: dict[str, Any] = {
            "offset": self.offset,
            "timestamp": self.timestamp,
            "key": None if self.key is None else base64(self.key),
            "value": None if self.value is None else base64(self.value),
            "headers": [[key, None if value is None else base64(value)] for key, value in self.headers],
        }
        if self.control:
            found["control"] = {
                "type": self.control.type,
                "type_id": self.control.type_id,
                "body": self.control.body,
            }
        return found


@dataclass(slots=True)
class Contents:
    """The records of a batch, read on demand."""

    records: list[Record] = field(default_factory=list)
    fault: str | None = None
    """Why there may be more records than these; None when all were read."""


@dataclass(slots=True)
class Batch:
    """A batch of magic 2, or a message of magic 0 or 1 with the messages that it wraps. Fields that a format lacks have Kafka's
    values for "none". The bytes are `blob[start:end]`."""

    blob: bytes
    start: int
    end: int
    magic: int
    codec_id: int
    base_offset: int
    last_offset: int
    timestamp_type: str
    """`NoTimestampType` for magic 0, `CreateTime`, `LogAppendTime`."""
    crc: int
    """As stored, unsigned."""
    max_timestamp: int
    count: int
    """Number of records according to the header; for a wrapper, the number that could be read."""
    read: Callable[["Batch", Contents], Iterator[Record]]
    """Yields its records one by one; after the last one, the contents have the reason if something is wrong."""
    checksum: Callable[["Batch"], int]
    """Computes the CRC of the bytes."""
    partition_leader_epoch: int = -1
    is_transactional: bool = False
    is_control: bool = False
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    base_timestamp: int | None = None
    delete_horizon_ms: int | None = None
    _contents: Contents | None = None

    @property
    def size(self) -> int:
        """Bytes, including the 12 of offset and length."""
        return self.end - self.start

    @property
    def codec(self) -> str:
        """none, gzip, snappy, lz4, zstd."""
        return codec_name(self.codec_id)

    @property
    def crc_ok(self) -> bool:
        """Whether the stored CRC equals that of the bytes."""
        return self.crc == self.checksum(self)

    @property
    def contents(self) -> Contents:
        """The records; decompresses on first use."""
        if self._contents is None:
            self._contents = Contents()
            self._contents.records.extend(self.each(self._contents))
        return self._contents

    def each(self, contents: Contents) -> Iterator[Record]:
        """Yields the records without storing them: there may be millions. After the last, `contents` may have a fault."""
        if self._contents is not None and self._contents is not contents:
            contents.fault = self._contents.fault
            yield from self._contents.records
            return
        try:
            yield from self.read(self, contents)
        except Exception as error:  # noqa: BLE001 - the batch has the reason; its header and the other batches remain
            contents.fault = fault_of(error)

    def fail(self, error: Exception) -> None:
        """Marks the batch as having no records, because the reader failed on them."""
        self._contents = Contents(fault=fault_of(error))

    @property
    def failed(self) -> Fault | None:
        """Where the reader failed on the records, as far as they were read; None if it did not."""
        fault = self._contents.fault if self._contents is not None else None
        return fault if isinstance(fault, Fault) else None

    @property
    def records(self) -> list[Record]:
        """The records that could be read."""
        return self.contents.records

    @property
    def fault(self) -> str | None:
        """Why there may be more records than were read."""
        return self.contents.fault

    def to_json(self) -> dict[str, Any]:
        """The batch and its records as JSON values. If the batch could not be read completely, `undecoded` says why."""
        found = {name: getattr(self, name) for name in _JSON}
        if self.delete_horizon_ms is not None:
            found["delete_horizon_ms"] = self.delete_horizon_ms
        found["records"] = [record.to_json() for record in self.records]
        if self.fault:
            found["undecoded"] = self.fault
        return found


_JSON: Final = (
    "base_offset",
    "last_offset",
    "size",
    "magic",
    "codec",
    "timestamp_type",
    "crc",
    "crc_ok",
    "partition_leader_epoch",
    "is_transactional",
    "is_control",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "base_timestamp",
    "max_timestamp",
    "count",
)


def spans(blob: Buffer, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yields (start, end, magic) of every complete batch in `blob[start:end]`, in order, up to the first place without one."""
    while end - start >= MESSAGE0_MIN:
        total = OVERHEAD + _SIZE(blob, start + SIZE_AT)[0]
        magic = blob[start + MAGIC_AT]
        if magic >= len(MINIMA) or total < MINIMA[magic] or total > end - start:
            return
        yield start, start + total, magic
        start += total
