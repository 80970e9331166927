"""Completion: the scripts name the variable that the program answers, and the words are those that it takes."""

import os
import subprocess
import sys

import pytest

from tests.cli.running import ENVIRONMENT, kcap


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts(shell: str) -> None:
    done = kcap("completion", shell)
    assert done.returncode == 0
    assert b"_KCAP_COMPLETE" in done.stdout


def words(line: str) -> list[str]:
    """What bash would be offered at the end of a line."""
    typed = line.split(" ")
    asked = {"_KCAP_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(typed) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "kcap"], env={**ENVIRONMENT, **asked}, capture_output=True, text=True, timeout=60, check=False
    )
    return [word.partition(",")[2] for word in done.stdout.splitlines()]


def test_words() -> None:
    assert words("kcap la") == ["latency"]
    assert "--time-format" in words("kcap rows --time")
    assert words("kcap rows --columns api,request_by") == ["api,request_bytes"]
    assert words("kcap rows --table brokers --columns ra") == ["rack"]
    assert words("kcap rows --sort api,-late") == ["api,-latency_ns"]
    assert os.environ.get("_KCAP_COMPLETE") is None
