"""Rows that are kept come back."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.task_storage import PACKED_ROWS, REDUCED, STORED, TaskStorage, load, unpacked

ROWS = pa.record_batch({"a": pa.array(range(20_000)), "b": pa.array(["x", None] * 10_000)})
BATCHES = [ROWS.slice(0, 2), ROWS.slice(0, 0), ROWS]


@pytest.mark.parametrize("on_disk", [False, True])
def test_what_is_kept_comes_back(on_disk: bool, tmp_path: Path) -> None:
    """Law: the same rows in the same order, in batches of a bounded size, wherever they were."""
    folder = tmp_path / "new" if on_disk else None
    with TaskStorage(str(folder) if folder else None) as storage:
        stored = [row for batch in BATCHES for row in storage.store_rows(7, "t", batch)]
    assert all(row.schema == REDUCED and row.column("table").to_pylist() == ["t"] for row in stored)
    assert all(row.column("stored")[0].is_valid is not on_disk for row in stored)
    back = list(unpacked(stored))
    assert pa.Table.from_batches(back) == pa.Table.from_batches(BATCHES)
    assert max(batch.num_rows for batch in back) <= PACKED_ROWS
    assert folder is None or len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("on_disk", [False, True])
@given(st.lists(st.lists(st.binary(max_size=50), max_size=3), max_size=5))
def test_bytes_come_back(on_disk: bool, parts: list[list[bytes]]) -> None:
    """Law: each what its parts were, one behind the other, in whatever order they are asked for."""
    with tempfile.TemporaryDirectory() as folder:
        with TaskStorage(folder if on_disk else None) as storage:
            rows = [dict.fromkeys(STORED) | storage.store(*some) for some in parts]
        assert [load(row) for row in reversed(rows)] == [b"".join(some) for some in reversed(parts)]


def test_two_tasks_do_not_write_to_one_file(tmp_path: Path) -> None:
    """A task that is run again leaves what the first one wrote alone."""
    with TaskStorage(str(tmp_path)) as one, TaskStorage(str(tmp_path)) as two:
        first, second = list(one.store_rows(7, "t", BATCHES[0])), list(two.store_rows(7, "t", BATCHES[2]))
    assert pa.Table.from_batches(unpacked(first)) == pa.Table.from_batches(BATCHES[:1])
    assert pa.Table.from_batches(unpacked(second)) == pa.Table.from_batches(BATCHES[2:])
