"""What tasks leave for later ones: packets for the shares, rows that wait until all shares were read.

In: bytes, record batches. Out: rows that hold them or say where they are, and the same once more. Law: what comes out is what
went in, in any process of the machine, or anywhere where it went through Spark.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

PACKED_ROWS: Final = 8192
"""Rows that are kept together: some 1.5 MB of them."""
KEPT: Final[dict[str, pa.DataType]] = {
    "kept": pa.binary(), "file": pa.string(), "start": pa.int64(), "size": pa.int64(),
}  # fmt: skip
"""Columns for bytes that are kept: they themselves, or where in a file they are."""
REDUCED_KINDS: Final[dict[str, pa.DataType]] = {"share": pa.int32(), "table": pa.string(), **KEPT, "facts": pa.binary()}
REDUCED: Final = pa.schema(REDUCED_KINDS)
"""Batches of a share's rows; and in a row of its own what the share learned."""


class TaskStorage:
    """Keeps bytes: in a file of its own, or in what it gives."""

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

    def keep(self, *parts: bytes | pa.Buffer) -> dict[str, Any]:
        """Values of KEPT for the parts, one behind the other."""
        if self._file is None:
            return {"kept": b"".join(parts)}
        start = self._size
        for part in parts:
            self._size += self._file.write(part)
        self._file.flush()  # whoever reads it is another process
        return {"file": self._file.name, "start": start, "size": self._size - start}

    def keep_rows(self, share: int, table: str, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Rows of REDUCED that say where those of the batch are."""
        for at in range(0, batch.num_rows, PACKED_ROWS):
            yield a_row(REDUCED, share=share, table=table, **self.keep(packed(batch.slice(at, PACKED_ROWS))))


def again(row: Mapping[str, Any]) -> bytes:
    """What a row with KEPT keeps."""
    if row["file"] is None:
        inline: bytes = row["kept"]
        return inline
    with open(row["file"], "rb", buffering=0) as file:
        return os.pread(file.fileno(), row["size"], row["start"])


def a_row(schema: pa.Schema, **values: Any) -> pa.RecordBatch:
    """One row; what is not named is null."""
    return pa.RecordBatch.from_arrays([pa.array([values.get(field.name)], field.type) for field in schema], schema=schema)


def packed(batch: pa.RecordBatch) -> pa.Buffer:
    """A record batch as bytes: on its way through Spark it costs next to nothing, as columns it costs more than to make it."""
    ipc: Any = pa.ipc
    sink: Any = pa.BufferOutputStream()
    with ipc.new_stream(sink, batch.schema, options=ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_batch(batch)
    found: pa.Buffer = sink.getvalue()
    return found


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows that `TaskStorage` kept."""
    ipc: Any = pa.ipc
    for batch in batches:
        every: list[Any] = batch.to_pylist()
        for row in every:
            yield from ipc.open_stream(again(row))
