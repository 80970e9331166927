"""Spills rows to disk between the process that reads and the one that shows: one writes them, the other maps them.

In: record batches of one schema. Out: the same rows as record batches over mapped pages, which take no memory of their own.
Law: append-only: an announced row keeps its number; unannounced rows are never read. Rows wait as small batches in a tail file
until there are enough for a large one, so that a capture followed for days has no more batches than one read at once. If there
are many small ones, a new tail begins with their rows as one batch.
"""

import mmap
import os
import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from weakref import ReferenceType, ref

import pyarrow as pa

from kcap.arrays.arrow import joined
from kcap.columns import EXCHANGES, ON_REQUEST
from kcap.limits import HELD_ROWS, MAPS_MAX, TAIL_BATCHES_MAX
from kcap.output.sink import BUFFERED

ipc: Any = pa.ipc
COLUMNS: Final = (*EXCHANGES, *ON_REQUEST["exchanges"])
"""Columns of the spill, including optional ones, which filters know."""
OTHERS: Final = ("connections", "captures", "weirds", "topic_names")
"""Tables that views show."""
OWNERS: Final = ("client_id", "group_id", "broker_id", "server_ip", "server_port", "request_first_ns", "response_first_ns")
"""Columns of exchanges that the table of partitions has too: joining the two for a report takes GB for millions of rows."""
PROFILES: Final = "profiles.pickle"
RESOLVED: Final = "resolved"


@dataclass(frozen=True, slots=True)
class Mark:
    """How far the files were written."""

    rows: int
    """Number of all rows, including those of the tail."""
    end: int
    """Bytes of the main file."""
    tail: int
    """Number of the tail file."""
    tail_end: int
    """Bytes of the tail."""


class SpillStream:
    """An Arrow IPC stream that is being written."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self._file = pa.BufferedOutputStream(pa.OSFile(path, "wb"), BUFFERED)
        self._writer = ipc.new_stream(self._file, schema)
        self._file.flush()

    def write(self, batch: pa.RecordBatch) -> int:
        """Writes rows; returns the size of the file in bytes, which are on disk by then."""
        self._writer.write_batch(batch)
        self._file.flush()
        return self._file.tell()

    @property
    def end(self) -> int:
        """Number of bytes so far."""
        return self._file.tell()

    def close(self) -> None:
        self._writer.close()
        self._file.close()


class Spill:
    """A table that is being written: large batches in one file, the last rows in another."""

    def __init__(self, folder: str, name: str, schema: pa.Schema, batch_rows: int = HELD_ROWS) -> None:
        """`batch_rows`: rows of a large batch."""
        self._folder, self._name, self._schema, self._batch_rows = folder, name, schema, batch_rows
        self._main = SpillStream(main_path(folder, name), schema)
        self._pending: list[pa.RecordBatch] = []
        self._waiting = 0
        self._tail = 0
        self._tail_stream: SpillStream | None = None
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> Mark:
        """Writes rows; returns how far the files are. A large batch is written as it is, since joining it with others would
        copy it."""
        if not batch.num_rows:
            return self.mark
        self.rows += batch.num_rows
        if 2 * batch.num_rows >= self._batch_rows:
            self._flush()
            self._main.write(batch)
            return self.mark
        self._pending.append(batch)
        self._waiting += batch.num_rows
        if self._waiting >= self._batch_rows:
            self._flush()
            return self.mark
        fresh = [batch]
        if len(self._pending) > TAIL_BATCHES_MAX:
            fresh = self._pending = joined(self._pending, self._schema)
            self._end_tail()
        if self._tail_stream is None:
            self._tail_stream = SpillStream(tail_path(self._folder, self._name, self._tail), self._schema)
        for one in fresh:
            self._tail_stream.write(one)
        return self.mark

    @property
    def mark(self) -> Mark:
        return Mark(self.rows, self._main.end, self._tail, self._tail_stream.end if self._tail_stream is not None else 0)

    def _flush(self) -> None:
        """Writes the waiting rows as one large batch, and begins a new tail."""
        if self._waiting:
            for batch in joined(self._pending, self._schema):
                self._main.write(batch)
        self._pending, self._waiting = [], 0
        self._end_tail()

    def _end_tail(self) -> None:
        """Ends the tail, so that the next one has another file."""
        if self._tail_stream is not None:
            self._tail_stream.close()
            self._tail_stream = None
            self._tail += 1

    def close(self) -> Mark:
        """Completes the table: all rows are in the main file."""
        self._flush()
        mark = self.mark
        self._main.close()
        return mark


def main_path(folder: str, name: str) -> str:
    return os.path.join(folder, f"{name}.arrow")


def tail_path(folder: str, name: str, number: int) -> str:
    """The path of a tail of a table."""
    return os.path.join(folder, f"{name}-tail-{number}.arrow")


class Mapped:
    """An IPC stream that is read as far as it was announced."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._schema: pa.Schema | None = None
        self._end = 0
        self._maps: list[mmap.mmap] = []
        self._earlier: list[ReferenceType[mmap.mmap]] = []
        """Earlier mappings, which remain as long as their batches are referenced."""
        self.batches: list[pa.RecordBatch] = []

    def grow(self, end: int) -> list[pa.RecordBatch]:
        """Maps up to `end`; returns the new batches."""
        if end <= self._end:
            return []
        if len(self._maps) >= MAPS_MAX:
            self._earlier = [one for one in (*self._earlier, *map(ref, self._maps)) if one() is not None]
            self._end, self._maps, self._schema = 0, [], None
            known, self.batches = len(self.batches), []
            self._map(end)
            return self.batches[known:]
        return self._map(end)

    def _map(self, end: int) -> list[pa.RecordBatch]:
        base = self._end - self._end % mmap.ALLOCATIONGRANULARITY
        with open(self._path, "rb") as file:
            pages = mmap.mmap(file.fileno(), end - base, access=mmap.ACCESS_READ, offset=base)
        source = pa.BufferReader(pa.py_buffer(memoryview(pages)).slice(self._end - base))
        if self._schema is None:
            self._schema = ipc.read_schema(ipc.read_message(source))
        fresh: list[pa.RecordBatch] = []
        while source.tell() < end - self._end:
            fresh.append(ipc.read_record_batch(ipc.read_message(source), self._schema))
        self.batches += fresh
        self._end = end
        self._maps.append(pages)
        return fresh

    def release(self) -> None:
        """Releases the pages, which count as memory of this process once they were read; they are mapped again when needed.
        Linux only."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for pages in (*self._maps, *(one() for one in self._earlier)):
                if pages is not None:
                    pages.madvise(mmap.MADV_DONTNEED)


class Pages:
    """A table that another process is writing."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder, self._name = folder, name
        self._main = Mapped(main_path(folder, name))
        self._tail: Mapped | None = None
        self._tail_number = 0

    def follow(self, mark: Mark) -> None:
        """Maps the announced rows."""
        self._main.grow(mark.end)
        if mark.tail != self._tail_number:
            self._forget(mark.tail)
        if mark.tail_end:
            self._tail = self._tail or Mapped(tail_path(self._folder, self._name, mark.tail))
            self._tail.grow(mark.tail_end)

    def _forget(self, number: int) -> None:
        """Removes the tails before a number: their rows are in the main file, or in the present tail."""
        for old in range(self._tail_number, number):
            with suppress(FileNotFoundError):
                os.unlink(tail_path(self._folder, self._name, old))
        self._tail, self._tail_number = None, number

    def release(self) -> None:
        """As `Mapped.release`."""
        self._main.release()

    @property
    def main(self) -> Sequence[pa.RecordBatch]:
        """Large batches, which do not change."""
        return self._main.batches

    @property
    def tail(self) -> Sequence[pa.RecordBatch]:
        return self._tail.batches if self._tail is not None else ()


def pickled(path: str, value: object) -> None:
    """Writes a value for the other process."""
    with open(path, "wb") as file:
        pickle.dump(value, file, pickle.HIGHEST_PROTOCOL)


def unpickled(path: str) -> Any:
    with open(path, "rb") as file:
        return pickle.load(file)  # noqa: S301 - a process of ours wrote it, for this user alone


def mapped_whole(path: str) -> Mapped:
    """A stream that was written completely."""
    mapped = Mapped(path)
    mapped.grow(os.path.getsize(path) - END_OF_STREAM)
    return mapped


def read_file(path: str) -> pa.Table:
    """A table that was written completely."""
    mapped = mapped_whole(path)
    assert mapped._schema is not None
    return pa.Table.from_batches(mapped.batches, mapped._schema)


def learned(folder: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of exchanges with the facts known at the end of the capture."""
    path = main_path(folder, RESOLVED)
    if not os.path.exists(path):
        yield from batches
        return
    better = mapped_whole(path)
    for batch, known in zip(batches, better.batches):
        for name in known.schema.names:
            at = batch.schema.get_field_index(name)
            batch = batch.set_column(at, batch.schema.field(at), known.column(name))
        yield batch
        better.release()


END_OF_STREAM: Final = 8
"""End-of-stream marker (Arrow columnar format, IPC streaming)."""
