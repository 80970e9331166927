"""kcap as its users run it: a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PCAPS = ROOT / "pcaps"
COMMAND = [sys.executable, "-m", "kcap"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def kcap(*arguments: str | Path, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Runs it to its end."""
    words = [*COMMAND, *map(str, arguments)]
    return subprocess.run(words, input=stdin, capture_output=True, env=ENVIRONMENT, timeout=60, check=False)


def start(*arguments: str | Path, **pipes: int) -> subprocess.Popen[bytes]:
    """Starts it."""
    return subprocess.Popen([*COMMAND, *map(str, arguments)], env=ENVIRONMENT, **pipes)
