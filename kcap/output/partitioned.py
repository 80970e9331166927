"""Writes Parquet in folders by hour, day, broker and so on, as data lakes have it (Hive's key=value folders).

In: record batches of exchanges, the names of the partition columns, a folder. Out:
`hour=2026-11-21T07/broker=2/part-00001.parquet`. Law: each row is in one file, in its order; the columns of the file and the
names of the folders together are the row. Files are closed if too many are open; later rows then go to another file in the same
folder.
"""

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b
from typing import Any, Final, cast

import pyarrow as pa

from kcap.errors import OutputError, UsageError
from kcap.limits import FOLDER_NAME_BYTES_MAX, PARTS_OPEN, PARTS_ROWS
from kcap.output.sink import output_errors
from kcap.output.writers import Parquet

PARTS: Final = {
    "day": "time", "hour": "time", "minute": "time", "broker": "broker_id", "client": "client_id", "api": "api",
    "capture": "capture", "error": "error", "outcome": "outcome",
}  # fmt: skip
"""Name of a partition column -> the column that it is computed from."""
PATTERNS: Final = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H", "minute": "%Y-%m-%dT%H%M"}
NONE: Final = "__HIVE_DEFAULT_PARTITION__"
"""The folder of rows without a value, as in Hive, Spark and Arrow."""


def parts_of(text: str | None) -> list[str]:
    """`hour,broker` as names. Raises UsageError for unknown names."""
    names = [word.strip() for word in (text or "").split(",") if word.strip()]
    unknown = next((name for name in names if name not in PARTS), None)
    if unknown is not None:
        raise UsageError(f"--partition-by {unknown!r}: there are {', '.join(PARTS)}")
    if len(set(names)) != len(names):
        raise UsageError("--partition-by names a part twice")
    return names


class PartitionedWriter:
    """Writes a folder."""

    def __init__(self, folder: str, schema: pa.Schema, kept: pa.Schema, names: Sequence[str]) -> None:
        """Batches have `schema`; the columns in `kept` go into the files, except those in the names of folders."""
        self._folder = folder
        self._names = list(names)
        same = {PARTS[name] for name in names if name == PARTS[name]}
        self._columns = [name for name in kept.names if name not in same]
        self._schema = pa.schema([kept.field(name) for name in self._columns])
        self._open: OrderedDict[tuple[str, ...], tuple[Parquet, ExitStack]] = OrderedDict()
        self._files: dict[tuple[str, ...], int] = {}
        self._waiting = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            with self._abandoned_on_failure():
                self._write(batch)

    def _write(self, batch: pa.RecordBatch) -> None:
        keys = [self._key(batch, name) for name in self._names]
        both: Any = pa.StructArray.from_arrays(keys, names=self._names)
        rows: dict[tuple[str, ...], list[int]] = {}
        for at, key in enumerate(zip(*(column.to_pylist() for column in both.flatten()))):
            rows.setdefault(key, []).append(at)
        small = batch.select(self._columns)
        for key, places in rows.items():
            self._writer(key).write(small.take(pa.array(places, pa.int64())))
        self._waiting += batch.num_rows
        if self._waiting >= PARTS_ROWS:
            self._waiting = 0
            for writer, _ in self._open.values():
                writer.flush()

    @staticmethod
    def _key(batch: pa.RecordBatch, name: str) -> Any:
        from pyarrow import compute

        column: Any = batch.column(PARTS[name])
        text = cast("Any", compute).strftime(column, PATTERNS[name]) if name in PATTERNS else column.cast(pa.string())
        return text.fill_null(NONE)

    def _writer(self, key: tuple[str, ...]) -> Parquet:
        found = self._open.get(key)
        if found is not None:
            self._open.move_to_end(key)
            return found[0]
        if len(self._open) >= PARTS_OPEN:
            self._end(next(iter(self._open)))
        number = self._files[key] = self._files.get(key, 0) + 1
        folder = os.path.join(self._folder, *(f"{name}={escaped(value)}" for name, value in zip(self._names, key)))
        os.makedirs(folder, exist_ok=True)
        path, stack = os.path.join(folder, f"part-{number:05}.parquet"), ExitStack()
        stack.enter_context(output_errors(path))
        writer = Parquet(stack.enter_context(open(path, "wb")), self._schema)  # noqa: SIM115 - the stack closes it
        self._open[key] = writer, stack
        return writer

    def _end(self, key: tuple[str, ...]) -> None:
        writer, stack = self._open.pop(key)
        with stack:
            writer.close()

    def close(self) -> None:
        """Completes every file."""
        with self._abandoned_on_failure():
            for key in list(self._open):
                self._end(key)

    @contextmanager
    def _abandoned_on_failure(self) -> Iterator[None]:
        """If the block fails, closes all files as they are: their writers would otherwise complete them when they are freed."""
        try:
            yield
        except BaseException:
            for _, stack in self._open.values():
                with suppress(OutputError):
                    stack.close()
            self._open.clear()
            raise


def escaped(value: str) -> str:
    """A value as part of a path: escaped as in Hive; a value that is too long for a name ends with a digest."""
    text = "".join(f"%{ord(c):02X}" if c in "\"#%'*/:=?\\{}[]^" or ord(c) < 32 or ord(c) == 127 else c for c in value)
    name = text.encode("utf-8", "replace")
    if len(name) > FOLDER_NAME_BYTES_MAX:
        digest = blake2b(value.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        text = f"{name[: FOLDER_NAME_BYTES_MAX - len(digest) - 1].decode('utf-8', 'ignore')}~{digest}"
    return text or NONE
