"""Which captures are read by two processes, and how many processors there are."""

import os
from pathlib import Path

import pytest

from kcap.jobs import cores
from kcap.jobs.cores import AUTO, free_cores, processes
from kcap.limits import JOBS_LEAST_BYTES


@pytest.mark.parametrize(
    ("own", "above", "free"), [("max 100000", "", 8), ("150000 100000", "", 1), ("max 100000", "300000 100000", 3)]
)
def test_free_processors_are_those_of_affinity_and_quota(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, above: str, free: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)), raising=False)
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    (tmp_path / "outer" / "inner" / "cpu.max").write_text(own + "\n")
    if above:
        (tmp_path / "outer" / "cpu.max").write_text(above + "\n")
    (tmp_path / "self").write_text("0::/outer/inner\n")
    assert free_cores(tmp_path, tmp_path / "self") == free


def test_without_control_groups_the_affinity_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 5}, raising=False)
    assert free_cores(tmp_path, tmp_path / "nothing") == 2


def test_a_second_process_is_for_large_files_and_for_whom_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "free_cores", lambda: 4)
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"x")
    large.touch()
    os.truncate(large, JOBS_LEAST_BYTES)
    assert processes([str(small)], AUTO) == 1
    assert processes([str(small), str(large)], AUTO) == 2
    assert processes([str(small)], 2) == 2
    assert processes([str(large)], 1) == 1
    assert processes([str(large), "-"], 2) == 1, "a pipe is read by one process"
    monkeypatch.setattr(cores, "free_cores", lambda: 1)
    assert processes([str(large)], AUTO) == 1
