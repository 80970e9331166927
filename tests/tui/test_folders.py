"""Spills live in a folder of their process and do not outlive it for long."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kcap.tui.folders import PREFIX, alive, spill_folder, sweep


def test_the_spill_folder_is_in_the_cache_for_this_user_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    folder = Path(spill_folder())
    assert folder.parent == tmp_path / "c" / "kcap"
    assert folder.stat().st_mode & 0o077 == 0, "for this user alone"


def test_what_the_dead_left_is_removed(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    dead, mine, other = (tmp_path / f"{PREFIX}{name}" for name in (f"{done.stdout.strip()}-a", f"{os.getpid()}-b", "x-c"))
    for folder in (dead, mine, other):
        folder.mkdir()
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([mine.name, other.name])
    assert alive(os.getpid())


def test_a_cache_that_cannot_be_written_is_no_trouble(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    folder = Path(spill_folder())
    assert folder.is_dir()
    folder.rmdir()
