"""Parquet in folders: each row once, in the folder that it says itself."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import kcap
from kcap import limits
from kcap.errors import OutputError, UsageError
from kcap.output import partitioned
from kcap.output.partitioned import NONE, PartitionedWriter, escaped, parts_of
from kcap.output.sink import new_folder


def written(folder: Path, table: pa.Table, names: list[str], size: int = 17) -> pa.Table:
    out = PartitionedWriter(str(folder), table.schema, table.schema, names)
    for batch in table.to_batches(max_chunksize=size):
        out.write(batch)
    out.close()
    return ds.dataset(folder, partitioning=ds.partitioning(flavor="hive")).to_table()


def by_name(table: pa.Table) -> list[tuple[str, int]]:
    return sorted(zip(table["connection"].to_pylist(), table["exchange"].to_pylist()))


@pytest.mark.parametrize("names", [["hour", "broker"], ["api"], ["client", "minute", "outcome"]])
def test_every_row_is_in_its_folder(pcaps: Path, tmp_path: Path, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitioned, "PARTS_OPEN", 3)
    monkeypatch.setattr(partitioned, "PARTS_ROWS", 40)
    table = kcap.open(str(pcaps / "java-transactions.pcap")).exchanges().to_arrow()
    back = written(tmp_path / "out", table, names)
    assert by_name(back) == by_name(table)
    for name in names:
        assert name in back.schema.names
    assert limits.PARTS_OPEN > 3
    for path in (tmp_path / "out").rglob("*.parquet"):
        parts = dict(part.split("=", 1) for part in path.relative_to(tmp_path / "out").parts[:-1])
        assert list(parts) == names
        some = ds.dataset(path).to_table().to_pylist()
        if "broker" in parts:
            assert {str(row["broker_id"]) if row["broker_id"] is not None else NONE for row in some} == {parts["broker"]}
        if "hour" in parts:
            assert {f"{row['time']:%Y-%m-%dT%H}" for row in some} == {parts["hour"]}


def test_names_of_parts() -> None:
    assert parts_of("hour, broker") == ["hour", "broker"]
    assert parts_of(None) == []
    for wrong in ("week", "hour,hour"):
        with pytest.raises(UsageError, match="partition-by"):
            parts_of(wrong)
    assert escaped("a/b=c\x01") == "a%2Fb%3Dc%01"
    assert escaped("") == NONE


@pytest.mark.parametrize("value", ["../../x", "/etc", "..", "a\0b", "x" * 40_000, "\u202e" * 300, "é" * 150 + "a"])
def test_no_value_leaves_the_folder_or_is_too_long_for_a_name(value: str, tmp_path: Path) -> None:
    name = f"client={escaped(value)}"
    assert "/" not in name
    assert len(name.encode()) <= 255
    assert (tmp_path / name).resolve().parent == tmp_path.resolve()


def test_long_values_stay_apart() -> None:
    assert escaped("x" * 300) != escaped("x" * 301)


def test_a_folder_appears_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "rows"

    def fail() -> None:
        with new_folder(str(target)) as path:
            Path(path, "x").mkdir()
            Path(path, "x", "y", "z").write_text("half", encoding="ascii")

    with pytest.raises(OutputError):
        fail()
    assert os.listdir(tmp_path) == []
    with new_folder(str(target)) as path:
        Path(path, "x").write_text("whole", encoding="ascii")
        assert not target.exists()
    assert (target / "x").read_text(encoding="ascii") == "whole"
    with pytest.raises(OutputError, match="folder is not empty"), new_folder(str(target)):
        pass
