"""Stores the output of tasks for later tasks: chunks of shards, and rows that wait until all shards have been read.

In: bytes, record batches. Out: Spark rows that hold them or refer to a file, and the same bytes and batches from such rows.
Law: loading returns what was stored, in any process of the machine, and on any machine if the bytes went through Spark.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from kcap.limits import PACKED_ROWS

STORED: Final[dict[str, pa.DataType]] = {
    "stored": pa.binary(), "file": pa.string(), "start": pa.int64(), "size": pa.int64(),
}  # fmt: skip
"""Columns for stored bytes: the bytes themselves, or a span of a file."""
REDUCED_KINDS: Final[dict[str, pa.DataType]] = {"shard": pa.int32(), "table": pa.string(), **STORED, "facts": pa.binary()}
REDUCED: Final = pa.schema(REDUCED_KINDS)
"""Batches of a shard's rows, and the facts of the shard in a separate row."""


class TaskStorage:
    """Stores bytes in a separate file in `folder`, or in the rows themselves if there is no folder."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._file: Any = None
        self._size = 0

    def __enter__(self) -> "TaskStorage":
        if self._folder is not None:
            os.makedirs(self._folder, exist_ok=True)
            self._file = tempfile.NamedTemporaryFile(dir=self._folder, delete=False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def store(self, *parts: bytes | pa.Buffer) -> dict[str, Any]:
        """Values of the columns STORED for the joined parts."""
        if self._file is None:
            return {"stored": b"".join(parts)}
        start = self._size
        for part in parts:
            self._size += self._file.write(part)
        self._file.flush()  # another process reads it
        return {"file": self._file.name, "start": start, "size": self._size - start}

    def store_rows(self, shard: int, table: str, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Rows of REDUCED that hold the rows of a batch."""
        for at in range(0, batch.num_rows, PACKED_ROWS):
            yield single_row(REDUCED, shard=shard, table=table, **self.store(packed(batch.slice(at, PACKED_ROWS))))


def load(row: Mapping[str, Any]) -> bytes:
    """The bytes that the columns STORED of a row hold or refer to."""
    if row["file"] is None:
        inline: bytes = row["stored"]
        return inline
    with open(row["file"], "rb", buffering=0) as file:
        return os.pread(file.fileno(), row["size"], row["start"])


def single_row(schema: pa.Schema, **values: Any) -> pa.RecordBatch:
    """A record batch of one row; columns without a value are null."""
    return pa.RecordBatch.from_arrays([pa.array([values.get(field.name)], field.type) for field in schema], schema=schema)


def packed(batch: pa.RecordBatch) -> pa.Buffer:
    """A record batch as bytes, which pass through Spark at almost no cost; Spark's handling of columns costs more than building
    them."""
    ipc: Any = pa.ipc
    sink: Any = pa.BufferOutputStream()
    with ipc.new_stream(sink, batch.schema, options=ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_batch(batch)
    found: pa.Buffer = sink.getvalue()
    return found


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows that `TaskStorage` stored."""
    ipc: Any = pa.ipc
    for batch in batches:
        every: list[Any] = batch.to_pylist()
        for row in every:
            yield from ipc.open_stream(load(row))
