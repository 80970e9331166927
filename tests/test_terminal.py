"""The program in a real terminal (tests/tui/drive_tmux.py)."""

import shutil
from pathlib import Path

import pytest

from tests.tui.drive_tmux import TASKS, pipe, tasks, walk

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")]


def test_the_main_paths(tmp_path: Path) -> None:
    walk(tmp_path)


def test_a_pipe(tmp_path: Path) -> None:
    pipe(tmp_path)


def test_what_a_new_user_asks(tmp_path: Path) -> None:
    """Five questions, answered with keys that the screen shows when they are pressed."""
    reported = tasks(tmp_path)
    print("\n".join(reported))
    assert len(reported) == len(TASKS) == 5
    assert ".pcapng" in reported[-1], "packets were saved"
