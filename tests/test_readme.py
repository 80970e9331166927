"""What the README shows is what kcap does."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_pictures_are_what_kcap_prints() -> None:
    done = subprocess.run([sys.executable, "docs/pictures.py", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run docs/pictures.py"
