"""Saved tables are found, named and read whatever their names and folders are."""

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from kcap import __version__
from kcap.cli.main import main
from kcap.errors import CaptureError, UsageError
from kcap.reports import errors
from kcap.reports.definition import ReportRequest
from kcap.reports.run import run
from kcap.reports.saved import by_folders, saved_files, scan, without_column
from kcap.reports.source import ReportInput
from kcap.reports.sql import answered
from kcap.session import Capture

NAMES = {
    "not UTF-8": os.fsdecode(b"rows\xff.parquet"),
    "a pattern": "rows[1]*.parquet",
    "a quote": "rows'.parquet",
    "a folder that is not UTF-8": os.path.join(os.fsdecode(b"of\xff"), "rows.parquet"),
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory, pcaps: Path) -> Path:
    path = tmp_path_factory.mktemp("saved") / "rows.parquet"
    assert main(["rows", str(pcaps / "java-transactions.pcap"), "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def by_api(tmp_path_factory: pytest.TempPathFactory, pcaps: Path) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "by_api"
    assert main(["rows", str(pcaps / "java-transactions.pcap"), "--partition-by", "api", "-o", str(folder)]) == 0
    return folder


def errors_of(*paths: object) -> int:
    """How many errors the report counts in saved rows."""
    return sum(row["count"] for row in run(errors.REPORT, ReportInput([str(path) for path in paths]), ReportRequest())["rows"])


def queried(*paths: object) -> int:
    """How many rows SQL counts."""
    with answered("select count(*) from exchanges", Capture([str(path) for path in paths])) as (_, batches):
        return int(next(batches).column(0)[0].as_py())


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_may_have_any_bytes(name: str, rows: Path, tmp_path: Path) -> None:
    os.makedirs(os.path.dirname(tmp_path / name), exist_ok=True)
    shutil.copy(rows, tmp_path / name)
    assert errors_of(tmp_path / name) == errors_of(rows)
    assert queried(tmp_path / name) == queried(rows)


def test_a_pattern_is_the_name_of_one_file(rows: Path, tmp_path: Path) -> None:
    for name in ("rows*.parquet", "rows1.parquet"):
        shutil.copy(rows, tmp_path / name)
    assert queried(tmp_path / "rows*.parquet") == queried(rows)


def test_a_folder_whose_name_is_not_utf8_keeps_the_columns_of_its_folders(by_api: Path, tmp_path: Path) -> None:
    copy = tmp_path / os.fsdecode(b"by\xff")
    shutil.copytree(by_api, copy)
    assert errors_of(copy) == errors_of(by_api) > 0


def test_files_and_folders_of_one_table_are_read_together(rows: Path, by_api: Path, pcaps: Path, tmp_path: Path) -> None:
    by_error = tmp_path / "by_error"
    assert main(["rows", str(pcaps / "java-transactions.pcap"), "--partition-by", "error", "-o", str(by_error)]) == 0
    assert errors_of(by_api, rows) == 2 * errors_of(rows)
    assert errors_of(by_api, by_error, rows) == 3 * errors_of(rows)
    assert queried(by_api, by_error) == 2 * queried(rows)
    groups = by_folders(saved_files([str(by_api), str(by_error), str(rows)]) or [])
    assert set(groups) == {("api",), ("error",), ()}
    assert scan([str(rows)]).count("read_parquet") == 1


def test_a_file_that_is_given_twice_is_read_once(rows: Path, tmp_path: Path) -> None:
    os.link(rows, tmp_path / "again.parquet")
    assert errors_of(rows, rows.parent, tmp_path / "again.parquet") == errors_of(rows)


def test_pages_that_do_not_read(rows: Path, tmp_path: Path) -> None:
    """The footer is whole, so that the fault is found while rows are read."""
    damaged = tmp_path / "damaged.parquet"
    content = bytearray(rows.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[4:-footer] = b"\xff" * (len(content) - footer - 4)
    damaged.write_bytes(content)
    with pytest.raises(CaptureError, match=r"damaged\.parquet"):
        errors_of(damaged)
    query = "select distinct client_id from exchanges"
    with pytest.raises(UsageError, match="does not run"), answered(query, Capture([str(damaged)])) as (_, batches):
        list(batches)


@pytest.mark.parametrize(
    ("metadata", "by"), [({}, "an earlier build of kcap, or Spark,"), ({"kcap.version": "0.0.9"}, "kcap 0.0.9")]
)
def test_a_column_that_an_earlier_build_did_not_have(metadata: dict[str, str], by: str, tmp_path: Path) -> None:
    path = tmp_path / "old.parquet"
    parquet.write_table(pa.table({"api": ["Fetch"]}).replace_schema_metadata({"kcap.table": "exchanges", **metadata}), path)
    said = str(without_column(str(path), "acks"))
    assert said.startswith(f"{path} has no column 'acks': {by} saved it")
    assert f"this is kcap {__version__}" in said
    assert "kcap rows CAPTURE --table exchanges -o exchanges.parquet" in said
