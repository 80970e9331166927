"""Laws of the writers: each format read back gives the rows that were written."""

import csv
import errno
import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kcap
from kcap.arrays.arrow import as_schema, with_texts
from kcap.output import writers
from kcap.output.sink import BUFFERED
from kcap.table.schema import arrow_schema, choose

MAKERS = {"jsonl": writers.JsonLines, "csv": writers.Csv, "arrow": writers.Arrow, "parquet": writers.Parquet}


@pytest.fixture(scope="module")
def batches(pcaps: Path) -> list[pa.RecordBatch]:
    capture = kcap.open(str(pcaps / "java-transactions.pcap"), str(pcaps / "sasl-raw-tokens.pcap"))
    whole = list(capture.exchanges().record_batches())
    return [part for batch in whole for part in (batch.slice(0, 7), batch.slice(7))]


def written(form: str, batches: list[pa.RecordBatch]) -> bytes:
    sink = io.BytesIO()
    writer = MAKERS[form](sink, batches[0].schema)
    for batch in batches:
        writer.write(batch)
    writer.close()
    return sink.getvalue()


def rows_of(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def test_json_lines(batches: list[pa.RecordBatch]) -> None:
    rows = rows_of(batches)
    for row in rows:
        row["time"] = f"{row['time']:%Y-%m-%dT%H:%M:%S.%f}Z"
    found = [json.loads(line) for line in written("jsonl", batches).splitlines()]
    assert found == rows
    assert list(found[0]) == batches[0].schema.names


def test_csv(batches: list[pa.RecordBatch]) -> None:
    names, *found = list(csv.reader(io.StringIO(written("csv", batches).decode(), newline="")))
    assert names == batches[0].schema.names
    rows = rows_of(batches)
    assert len(found) == len(rows)
    for got, row in zip(found, rows, strict=True):
        for name, text in zip(names, got, strict=True):
            value = row[name]
            if isinstance(value, list):
                assert text == ";".join("" if entry is None else str(entry) for entry in value), name
            elif isinstance(value, bool | int | str) or value is None:
                assert text == ("" if value is None else str(value).lower() if isinstance(value, bool) else str(value)), name


def test_arrow(batches: list[pa.RecordBatch]) -> None:
    found = pa.ipc.open_stream(written("arrow", batches)).read_all()
    assert found.schema.equals(batches[0].schema, check_metadata=True)
    assert found.to_pylist() == rows_of(batches)


def test_parquet(batches: list[pa.RecordBatch]) -> None:
    found = pq.read_table(pa.BufferReader(written("parquet", batches)))
    assert found.schema.equals(batches[0].schema)
    assert found.schema.metadata[b"kcap.table"] == b"exchanges"
    assert found.to_pylist() == rows_of(batches)


def test_parquet_is_what_the_public_writer_of_pyarrow_makes(batches: list[pa.RecordBatch]) -> None:
    """Law: the same bytes. kcap takes what `pyarrow.parquet.ParquetWriter` wraps, which has other defaults."""
    schema, sink = batches[0].schema, io.BytesIO()
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    lists = [f"{field.name}.list.element" for field in schema if pa.types.is_list(field.type)]
    differences = [name for name in schema.names if name.endswith(writers.AS_DIFFERENCES)]
    make: Any = pq.ParquetWriter
    table = pa.Table.from_batches(batches)
    with make(
        sink, schema, compression="lz4", use_dictionary=[*texts, *lists], write_batch_size=writers.BATCH,
        column_encoding=dict.fromkeys(differences, "DELTA_BINARY_PACKED"),
        write_statistics=[name for name in schema.names if name in writers.FILTERED],
    ) as public:  # fmt: skip
        public.write_table(table, row_group_size=table.num_rows)
    assert sink.getvalue() == written("parquet", batches)


def test_parquet_gathers_row_groups(batches: list[pa.RecordBatch], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "ROW_GROUP", 100)
    found = pq.ParquetFile(pa.BufferReader(written("parquet", batches)))
    groups = [found.metadata.row_group(at).num_rows for at in range(found.num_row_groups)]
    assert sum(groups) == sum(batch.num_rows for batch in batches)
    assert all(rows >= 100 for rows in groups[:-1])
    assert len(groups) > 1
    whole = io.BytesIO()
    writer = writers.Parquet(whole, batches[0].schema, group=sum(groups))
    for batch in batches:
        writer.write(batch)
    writer.close()
    assert pq.ParquetFile(whole).num_row_groups == 1


def test_a_thread_writes_the_same_row_groups(batches: list[pa.RecordBatch]) -> None:
    """Law: the same bytes, whoever writes them."""
    files = []
    for threaded in (False, True):
        sink = io.BytesIO()
        writer = writers.Parquet(sink, batches[0].schema, group=5, threaded=threaded)
        for batch in batches:
            writer.write(batch)
        writer.close()
        files.append(sink.getvalue())
    assert files[0] == files[1]
    assert pq.ParquetFile(io.BytesIO(files[0])).num_row_groups > 2


@pytest.mark.parametrize("threaded", [False, True])
def test_what_cannot_be_written_is_said_by_the_next_call(batches: list[pa.RecordBatch], threaded: bool) -> None:
    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    writer = writers.Parquet(Full(), batches[0].schema, group=1, threaded=threaded)

    def write() -> None:
        for _ in range(100):  # until the first of the buffers is full
            for batch in batches:
                writer.write(batch)
        writer.close()

    with pytest.raises(OSError, match="No space left on device"):
        write()


@pytest.mark.parametrize("form", ["parquet", "feather", "arrow"])
def test_arrow_gives_the_sink_many_pieces_at_once(form: str, batches: list[pa.RecordBatch]) -> None:
    sizes: list[int] = []

    class Sink(io.BytesIO):
        def write(self, data: Any) -> int:
            sizes.append(len(data))
            return super().write(data)

    writer = writers.writer_of(form, Sink(), batches[0].schema)
    for batch in batches:
        writer.write(batch)
    writer.close()
    pieces = len(batches) * (2 if form == "arrow" else 1) + 2  # a stream has each batch out at once
    assert len(sizes) <= pieces + sum(sizes) // BUFFERED


def test_wide_rows_do_not_wait_for_a_row_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits in memory is bounded in bytes too: a row may have thousands of topics."""
    monkeypatch.setattr(writers, "ROW_GROUP_BYTES", 10_000)
    sink, batch = io.BytesIO(), pa.RecordBatch.from_pydict({"topics": [["t" * 20] * 400]})
    writer = writers.Parquet(sink, batch.schema)
    for _ in range(6):
        writer.write(batch)
    writer.close()
    found = pq.ParquetFile(sink)
    assert [found.metadata.row_group(at).num_rows for at in range(found.num_row_groups)] == [2, 2, 2]
    assert found.read().num_rows == 6


def test_encodings_and_statistics_of_parquet(batches: list[pa.RecordBatch]) -> None:
    group = pq.ParquetFile(pa.BufferReader(written("parquet", batches))).metadata.row_group(0)
    columns = {column.path_in_schema: column for column in map(group.column, range(group.num_columns))}
    for name in ("time", "request_pos", "correlation_id", "latency_ns"):
        assert "DELTA_BINARY_PACKED" in columns[name].encodings, name
    for name in ("api_key", "error_code", "throttle_ns"):
        assert "DELTA_BINARY_PACKED" not in columns[name].encodings, name
    for name in ("connection", "topics.list.element", "api"):
        assert "RLE_DICTIONARY" in columns[name].encodings, name
    assert columns["latency_ns"].statistics.has_min_max
    assert columns["request_pos"].statistics is None
    assert {column.name for column in choose("exchanges", None)} & writers.FILTERED


@pytest.mark.parametrize("form", MAKERS)
def test_a_table_without_rows(form: str) -> None:
    schema = arrow_schema("exchanges", choose("exchanges", ["api", "topics"]))
    data = written(form, [pa.RecordBatch.from_pylist([], schema)])
    if form == "csv":
        assert data == b"api,topics\n"
    elif form == "jsonl":
        assert data == b""
    else:
        table = pq.read_table(pa.BufferReader(data)) if form == "parquet" else pa.ipc.open_stream(data).read_all()
        assert (table.num_rows, table.schema.names) == (0, ["api", "topics"])


@pytest.mark.parametrize("form", ["jsonl", "csv", "arrow"])
def test_what_was_written_is_out_at_once(form: str, batches: list[pa.RecordBatch]) -> None:
    sizes: list[int] = []

    class Sink(io.BytesIO):
        def flush(self) -> None:
            sizes.append(len(self.getvalue()))

    writer = MAKERS[form](Sink(), batches[0].schema)
    writer.write(batches[0])
    assert sizes[-1] > 1000


def test_coded_texts_are_texts_in_parquet(batches: list[pa.RecordBatch]) -> None:
    """Law: a file of dictionary-encoded texts reads as one of texts, and its dictionaries hold each text once a row group."""
    short = with_texts(batches[0].schema, coded=True)
    files = []
    for schema in (batches[0].schema, short):
        sink = io.BytesIO()
        writer = writers.Parquet(sink, schema, "none")
        for batch in batches:
            for start in range(0, batch.num_rows, 7):
                writer.write(as_schema(batch.slice(start, 7), schema))
        writer.close()
        files.append(pq.ParquetFile(io.BytesIO(sink.getvalue())))
    assert files[0].read().equals(files[1].read())
    assert files[0].schema_arrow.equals(files[1].schema_arrow, check_metadata=True)
    for at in range(files[0].metadata.num_columns):
        plain, coded = (file.metadata.row_group(0).column(at) for file in files)
        assert plain.encodings == coded.encodings
        assert coded.total_uncompressed_size <= plain.total_uncompressed_size + 16
