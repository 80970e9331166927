"""The notebook says what its cells give."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def test_the_notebook_is_what_its_cells_give() -> None:
    pytest.importorskip("matplotlib", reason="the notebook draws with matplotlib (the extra plot)")
    done = subprocess.run(
        [sys.executable, "docs/notebook.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
