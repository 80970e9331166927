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


def here(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """What `kcap` gives, in this process: another one takes half a second to start. The command reads no standard input."""
    from kcap.cli.main import main

    words, kept = [*map(str, arguments)], (os.dup(1), os.dup(2))
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        os.dup2(output.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        try:
            with redirect_stdout(os.fdopen(os.dup(1), "w")) as out, redirect_stderr(os.fdopen(os.dup(2), "w")) as err, out, err:
                code = main(words)
        finally:
            for number, old in zip((1, 2), kept):
                os.dup2(old, number)
                os.close(old)
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(words, code, output.read(), errors.read())


def run_here(*words: str) -> tuple[int, str]:
    """Exit code and output of a command in this process, then what it says on standard error; tables are wide."""
    with mock.patch.dict(os.environ, {"COLUMNS": "400"}):
        done = here(*words)
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "surrogateescape")
