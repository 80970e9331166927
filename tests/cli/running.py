"""kcap as its users run it: in a process of its own, or in this one."""

import os
import subprocess
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

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


def run_here(*words: str) -> tuple[int, str]:
    """Exit code and output of a command in this process, standard error too: starting another one costs half a second."""
    from kcap.cli.main import main

    with tempfile.TemporaryFile() as file, mock.patch.dict(os.environ, {"COLUMNS": "400"}):
        kept = os.dup(1), os.dup(2)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            with redirect_stdout(os.fdopen(os.dup(1), "w")) as out, redirect_stderr(os.fdopen(os.dup(2), "w")) as err, out, err:
                code = main(words)
        finally:
            for number, old in zip((1, 2), kept):
                os.dup2(old, number)
                os.close(old)
        file.seek(0)
        return code, file.read().decode("utf-8", "surrogateescape")
