"""Rows of shares, kept until all shares were read: what the whole capture tells is put into them then.

In: record batches. Out: rows that say where they are, and the batches once more. Law: what comes out is what went in, in any
process of the machine, or anywhere where it went through Spark.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

PACKED_ROWS: Final = 8192
"""Rows that are kept together: some 1.5 MB of them."""
REDUCED_KINDS: Final[dict[str, pa.DataType]] = {
    "table": pa.string(), "rows": pa.binary(), "file": pa.string(), "start": pa.int64(), "size": pa.int64(),
    "facts": pa.binary(),
}  # fmt: skip
REDUCED: Final = pa.schema([pa.field(name, kind) for name, kind in REDUCED_KINDS.items()])
"""Batches of a share's rows, or where in a file they are; and in a row of its own what the share learned."""


class Keeper:
    """Keeps packed rows: in a file of its own, or in what it gives."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._file: Any = None
        self._size = 0

    def __enter__(self) -> "Keeper":
        if self._folder is not None:
            os.makedirs(self._folder, exist_ok=True)
            self._file = tempfile.NamedTemporaryFile(dir=self._folder, delete=False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def keep(self, table: str, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Rows of REDUCED that say where those of the batch are."""
        for at in range(0, batch.num_rows, PACKED_ROWS):
            yield self._kept(table, packed(batch.slice(at, PACKED_ROWS)))

    def _kept(self, table: str, rows: pa.Buffer) -> pa.RecordBatch:
        if self._file is None:
            return a_row(REDUCED, table=table, rows=rows.to_pybytes())
        start, self._size = self._size, self._size + rows.size
        self._file.write(rows)
        self._file.flush()  # whoever reads it is another process
        return a_row(REDUCED, table=table, file=self._file.name, start=start, size=rows.size)


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
    """What `Keeper` kept."""
    ipc: Any = pa.ipc
    for batch in batches:
        every: list[Any] = batch.to_pylist()
        for kept in every:
            if kept["file"] is None:
                yield from ipc.open_stream(kept["rows"])
            else:
                with open(kept["file"], "rb") as file:
                    yield from ipc.open_stream(os.pread(file.fileno(), kept["size"], kept["start"]))
