"""The program in a real terminal (tests/tui/drive_tmux.py)."""

import shutil
from pathlib import Path

import pytest

from tests.tui.drive_tmux import pipe, walk

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")]


def test_the_main_paths(tmp_path: Path) -> None:
    walk(tmp_path)


def test_a_pipe(tmp_path: Path) -> None:
    pipe(tmp_path)
