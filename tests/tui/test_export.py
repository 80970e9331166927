"""Rows and packets leave as files."""

import gzip
import json
import os
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import kcap
from kcap.errors import OutputError, UsageError
from kcap.tui.capture_model import CaptureModel
from kcap.tui.export import _cut, cut, protected, write_rows
from kcap.tui.list_model import ListModel
from kcap.tui.reader_main import ReadRequest
from kcap.tui.row_index import RowIndex
from tests.tui.conftest import PCAPS

JAVA = str(PCAPS / "java-transactions.pcap")


def test_rows_are_those_of_the_list_in_its_order(book: CaptureModel, tmp_path: Path) -> None:
    book.narrow("api == Fetch")
    view = ListModel(book, sort="latency", descending=True)
    made = view.arrange()
    for name in ("x.csv", "x.jsonl", "x.parquet"):
        assert write_rows(made.rows, made.order, str(tmp_path / name)) == len(made)
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert [row["latency_ns"] for row in lines] == sorted((row["latency_ns"] for row in lines), reverse=True)
    assert {row["api"] for row in lines} == {"Fetch"}
    table = pq.ParquetFile(tmp_path / "x.parquet").read()
    assert table.column("latency_ns").to_pylist() == [row["latency_ns"] for row in lines]
    assert len((tmp_path / "x.csv").read_text().splitlines()) == len(made) + 1


def test_all_rows_without_an_order(book: CaptureModel, tmp_path: Path) -> None:
    rows = book.snapshot()
    assert write_rows(rows, None, str(tmp_path / "x.parquet")) == 110
    assert pq.ParquetFile(tmp_path / "x.parquet").read().to_pylist() == book.exchanges().to_pylist()
    assert write_rows(rows, np.array([5], np.int32), str(tmp_path / "y.jsonl")) == 1


def test_what_cannot_be_written_leaves_nothing(book: CaptureModel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"known are \.json"):
        write_rows(book.snapshot(), None, str(tmp_path / "x.txt"))
    with pytest.raises(OutputError):
        write_rows(book.snapshot(), None, str(tmp_path / "none" / "x.csv"))
    with pytest.raises(OutputError, match="no room"), patch.object(RowIndex, "take", side_effect=OSError(28, "no room")):
        write_rows(book.snapshot(), None, str(tmp_path / "x.csv"))
    assert list(tmp_path.iterdir()) == []


def test_exports_replace_no_capture(book: CaptureModel, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(Path(JAVA).read_bytes())
    other = tmp_path / "b.csv"
    other.symlink_to(path)
    order = ReadRequest([str(path)])
    with protected(order), pytest.raises(UsageError, match="input"):
        write_rows(book.snapshot(), None, str(other))
    with pytest.raises(UsageError, match="input"):
        cut(order, "api == Fetch", str(path))
    with protected(order), pytest.raises(UsageError, match="input"):
        _cut(order, "api == Fetch", str(path), "")
    assert path.read_bytes() == Path(JAVA).read_bytes()
    assert sorted(tmp_path.iterdir()) == [path, other]


def test_rows_have_the_formats_of_the_command_line(book: CaptureModel, tmp_path: Path) -> None:
    table = book.exchanges()
    for name in ("x.feather", "x.arrow"):
        write_rows(book.snapshot(), None, str(tmp_path / name))
        assert feather.read_table(tmp_path / name).to_pylist() == table.to_pylist()
    for name in ("x.csv", "x.csv.gz"):
        write_rows(book.snapshot(), None, str(tmp_path / name))
    assert gzip.decompress((tmp_path / "x.csv.gz").read_bytes()) == (tmp_path / "x.csv").read_bytes()


def test_part_of_an_encrypted_connection_says_that_secrets_stay_behind(tmp_path: Path) -> None:
    """As `kcap cut` does: the file reads as encrypted."""
    path = str(Path(JAVA).parent / "tls13.pcapng")
    reported = cut(ReadRequest([path]), "exchange == 1", str(tmp_path / "part.pcapng"))
    assert "--keep-secrets" in reported
    assert "secrets" not in cut(ReadRequest([JAVA]), "exchange == 1", str(tmp_path / "plain.pcapng"))


def test_packets_of_one_exchange(book: CaptureModel, tmp_path: Path) -> None:
    """They read as the exchange they are of."""
    row = book.snapshot().row(60)
    path = tmp_path / "one.pcapng"
    reported = cut(ReadRequest([JAVA]), f'connection == "{row["connection"]}" && exchange == {row["exchange"]}', str(path))
    assert reported.startswith("one.pcapng: ")
    assert "of 1 exchange" in reported
    (found,) = [
        other
        for other in kcap.open(path).exchanges().to_arrow().to_pylist()
        if (other["connection"], other["correlation_id"], other["api"])
        == (row["connection"], row["correlation_id"], row["api"])
    ]  # fmt: skip
    assert found["latency_ns"] == row["latency_ns"]


def test_packets_of_a_pipe(tmp_path: Path) -> None:
    from kcap.tui.reader_process import KeptSpool

    with open(JAVA, "rb") as file:
        spool = KeptSpool(os.dup(file.fileno()))
        spool.kept = os.path.getsize(JAVA)
        cut(ReadRequest(["-"]), "api == OffsetCommit", str(tmp_path / "x.pcap"), {0: spool})
        spool.close()
    assert "OffsetCommit" in kcap.open(tmp_path / "x.pcap").exchanges(["api"]).to_arrow().column(0).to_pylist()


def test_packets_that_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="no exchange passes"):
        cut(ReadRequest([JAVA]), "api == Vote", str(tmp_path / "x.pcap"))
    with pytest.raises(OutputError, match="not retained"):
        cut(ReadRequest(["-"]), "", str(tmp_path / "x.pcap"))
    with pytest.raises(UsageError, match="pcapng"):
        cut(ReadRequest([JAVA]), "", str(tmp_path / "x.csv"))
    assert list(tmp_path.iterdir()) == []
