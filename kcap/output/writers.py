"""Writes record batches as files: JSON lines, CSV, TSV, Parquet, Arrow IPC.

In: record batches of one schema. Out: bytes to an `OutputSink`. Law: rows are written in their order. Text formats have written
their rows when `write` returns; Parquet gathers row groups.
"""

import json
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from importlib import import_module
from threading import Thread
from typing import Any, Final, Protocol

import pyarrow as pa

from kcap.arrays.arrow import Array, with_texts
from kcap.limits import ROW_GROUP_BYTES
from kcap.output.sink import BUFFERED, Counted, OutputSink

ROW_GROUP: Final = 1 << 15
"""Rows of a row group: some 500 bytes per row are held in memory."""
BATCH: Final = 1 << 13
"""Number of values that a column's encoder takes at once: eight times Parquet's default takes 5 % less time."""
AS_DIFFERENCES: Final = (
    "time", "exchange", "correlation_id", "offset", "first_ns", "last_ns", "_packet", "_pos", "latency_ns", "service_ns",
    "request_bytes", "response_bytes",
)  # fmt: skip
"""Suffixes of the names of columns whose numbers nearly always differ from row to row."""
FILTERED: Final = frozenset((
    "time", "capture", "connection", "client_ip", "server_ip", "client_id", "api_key", "api", "error_code", "error", "outcome",
    "latency_ns", "throttle_time_ms", "request_first_ns", "first_ns", "group_id", "topic", "partition", "offset",
    "timestamp_ms", "kind",
))  # fmt: skip
"""Columns whose minimum and maximum are stored in the file, so that engines can skip row groups."""


class Writer(Protocol):
    """A writer of one format."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes rows."""

    def close(self) -> None:
        """Completes the output."""


class JsonLines:
    """Writes one JSON object per line with every column; null is written as null."""

    def __init__(self, sink: OutputSink, schema: pa.Schema) -> None:
        self._sink = sink
        self._keys = [json.dumps(name) + ":" for name in schema.names]

    def write(self, batch: pa.RecordBatch) -> None:
        from kcap.output.text_columns import json_column, lines

        if not batch.num_rows:
            return
        parts: list[str | Array] = []
        text = "{"
        for key, column in zip(self._keys, batch.columns):
            text += key
            if column.null_count == len(column):
                text += "null,"
                continue
            parts += [text, json_column(column)]
            text = ","
        parts.append(text.removesuffix(",") + "}\n")
        self._sink.write(lines(parts, batch.num_rows))
        self._sink.flush()

    def close(self) -> None:
        """Does nothing: every line is written already."""


class Csv:
    """Writes RFC 4180 with a header line; entries of lists are joined by semicolons."""

    SEPARATOR = ","

    def __init__(self, sink: OutputSink, schema: pa.Schema) -> None:
        from kcap.output.text_columns import csv_text

        self._sink = sink
        self._header = self.SEPARATOR.join(csv_text(name, self.SEPARATOR) for name in schema.names) + "\n"

    def write(self, batch: pa.RecordBatch) -> None:
        from kcap.output.text_columns import csv_column, lines

        self._head()
        if not batch.num_rows:
            return
        parts: list[str | Array] = []
        text = ""
        for column in batch.columns:
            if column.null_count != len(column):
                parts += [text, csv_column(column, self.SEPARATOR)]
                text = ""
            text += self.SEPARATOR
        parts.append(text[:-1] + "\n")
        self._sink.write(lines(parts, batch.num_rows))
        self._sink.flush()

    def _head(self) -> None:
        if self._header:
            self._sink.write(self._header.encode())
            self._header = ""

    def close(self) -> None:
        """Writes the header if there were no rows."""
        self._head()


class Tsv(Csv):
    """CSV with tabs as separators."""

    SEPARATOR = "\t"


def buffered(sink: OutputSink) -> pa.NativeFile:
    """A stream of Arrow that gathers pieces before it calls the sink: a call of a Python object takes Arrow some 20 us, and a
    row group or batch of exchanges has some 400 pieces."""
    stream: Any = Counted(sink)
    return pa.BufferedOutputStream(pa.PythonFile(stream, mode="w"), BUFFERED)


class Feather:
    """Writes the Arrow IPC file format, which is Feather version 2.

    The format does not allow dictionaries that change between batches, so dictionary-encoded columns are written as their
    values.
    """

    def __init__(self, sink: OutputSink, schema: pa.Schema) -> None:
        kinds: list[Any] = [field.type for field in schema]
        self._coded = [pa.types.is_dictionary(kind) for kind in kinds]
        fields = [
            field.with_type(kind.value_type) if coded else field for field, kind, coded in zip(schema, kinds, self._coded)
        ]
        self._schema = pa.schema(fields).with_metadata(schema.metadata)
        ipc: Any = pa.ipc
        self._out = buffered(sink)
        self._file = ipc.new_file(self._out, self._schema)

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        if any(self._coded):
            columns: list[Any] = list(batch.columns)
            plain = [column.dictionary_decode() if coded else column for column, coded in zip(columns, self._coded)]
            batch = pa.RecordBatch.from_arrays(plain, schema=self._schema)
        self._file.write_batch(batch)

    def close(self) -> None:
        """Writes the footer."""
        self._file.close()
        self._out.flush()


class Arrow:
    """Writes the Arrow IPC stream format."""

    def __init__(self, sink: OutputSink, schema: pa.Schema) -> None:
        self._sink, self._out = sink, buffered(sink)
        ipc: Any = pa.ipc
        self._stream = ipc.new_stream(self._out, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._stream.write_batch(batch)
            self._out.flush()
            self._sink.flush()

    def close(self) -> None:
        """Writes the end mark."""
        self._stream.close()
        self._out.flush()


class Parquet:
    """Writes Parquet in row groups.

    Columns whose numbers differ in every row are written as differences (DELTA_BINARY_PACKED). For times, packets and positions
    this takes a third of the time of zstd over plain numbers and hardly more space. Columns with few distinct numbers, or many
    nulls, take less time and space as plain numbers. Everything is compressed with lz4.
    """

    def __init__(
        self,
        sink: OutputSink,
        schema: pa.Schema,
        compression: str = "lz4",
        group: int | None = None,
        *,
        threaded: bool = False,
    ) -> None:
        """`compression`: `none` for files that are read soon and removed. `group`: rows of a row group, by default `ROW_GROUP`.
        `threaded`: a thread writes a row group while the next one is gathered. Dictionary-encoded texts are plain texts to
        readers of the file."""
        # `pyarrow.parquet`, which wraps it, loads file systems and their TLS: 2 % of a small report.
        from pyarrow._parquet import ParquetWriter

        self._coded = any(pa.types.is_dictionary(kind) for kind in schema.types)
        texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_dictionary(field.type)]
        lists = [f"{field.name}.list.element" for field in schema if pa.types.is_list(field.type)]
        differences = [name for name in schema.names if name.endswith(AS_DIFFERENCES)]
        make: Any = ParquetWriter
        self._out = buffered(sink)
        self._file = make(
            self._out,
            schema,
            compression=compression,
            use_dictionary=[*texts, *lists],
            write_batch_size=BATCH,
            column_encoding=dict.fromkeys(differences, "DELTA_BINARY_PACKED"),
            write_statistics=[name for name in schema.names if name in FILTERED],
            store_schema=not self._coded,
            writer_engine_version="V2",
        )
        if self._coded:  # `store_schema` needs the schema with plain texts
            plain = b64encode(with_texts(schema, coded=False).serialize())
            self._file.add_key_value_metadata({b"ARROW:schema": plain, **(schema.metadata or {})})
        self._waiting: list[pa.RecordBatch] = []
        self._rows, self._bytes, self._group = 0, 0, group or ROW_GROUP
        self._threaded = threaded
        self._thread: Thread | None = None
        self._failure: Exception | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._waiting.append(batch)
            self._rows += batch.num_rows
            self._bytes += batch.nbytes
        if self._rows >= self._group or self._bytes >= ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Ends the row group. Raises the exception of the previous one, which a thread wrote."""
        self._wait()
        batches = self._waiting
        self._waiting, self._rows, self._bytes = [], 0, 0
        if batches and self._threaded:
            self._thread = Thread(target=self._attempt, args=(batches,))
            self._thread.start()
        elif batches:
            self._write_group(batches)

    def _write_group(self, batches: list[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(batches)
        if self._coded:  # otherwise each batch's texts are written one after another
            table = table.unify_dictionaries()
        self._file.write_table(table, row_group_size=table.num_rows)

    def _attempt(self, batches: list[pa.RecordBatch]) -> None:
        """Body of the thread."""
        try:
            self._write_group(batches)
        except Exception as error:  # noqa: BLE001 - it is raised where rows are given
            self._failure = error

    def _wait(self) -> None:
        """Waits until the thread has written its row group."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Writes the last row group and the footer."""
        self.flush()
        self._wait()
        self._file.close()
        self._out.flush()


ELSEWHERE: Final = {"json": ("tshark_fields", "JsonArray"), "markdown": ("pages", "Markdown"), "html": ("pages", "Html")}
"""Format -> module and class of a writer whose imports other formats do not need."""


def writer_of(form: str, sink: OutputSink, schema: pa.Schema, *, threaded: bool = False) -> Writer:
    """The writer of a format in `kcap.output.formats.FORMATS`, except `table`. `threaded`: as of `Parquet`."""
    if form in ELSEWHERE:
        module, name = ELSEWHERE[form]
        other: Writer = getattr(import_module(f"kcap.output.{module}"), name)(sink, schema)
        return other
    makers: dict[str, Callable[[OutputSink, pa.Schema], Writer]] = {
        "jsonl": JsonLines,
        "csv": Csv,
        "tsv": Tsv,
        "parquet": partial(Parquet, threaded=threaded),
        "arrow": Arrow,
        "feather": Feather,
    }
    return makers[form](sink, schema)
