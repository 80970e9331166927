"""Commands end in an orderly way whatever their standard streams are, and obey no name of a file."""

import os
import subprocess
from pathlib import Path
from shutil import copy

import pytest

from kcap.capture.paths import readable
from kcap.cli.report_views import shell
from kcap.cli.standard_streams import unreadable
from kcap.output.escaping import visible
from tests.cli.running import COMMAND, ENVIRONMENT, PCAPS

CAPTURE = PCAPS / "too-large.pcap"
CLOSED, FULL = ">&-", ">/dev/full"


def run(redirection: str, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
    """A command in a shell that changes its streams."""
    line = ["sh", "-c", f'"$@" {redirection}', "sh", *COMMAND, *map(str, words)]
    return subprocess.run(line, capture_output=True, env=ENVIRONMENT, timeout=60, check=False)


@pytest.mark.parametrize("redirection", [CLOSED, FULL])
@pytest.mark.parametrize("words", [["schema", "--flags"], ["--help"], ["rows", CAPTURE], ["errors", CAPTURE]])
def test_standard_output_that_cannot_be_written_is_an_exit_code(redirection: str, words: list[str | Path]) -> None:
    done = run(redirection, *words)
    assert done.returncode == 4
    assert done.stderr.startswith(b"kcap: standard output: ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_nobody_needs_to_listen_to_messages(redirection: str) -> None:
    assert run(redirection, "rows", CAPTURE).returncode == 0
    assert run(redirection, "rows", "nothing.pcap").returncode == 3


def test_files_that_could_not_be_read_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert unreadable([]) == 0
    assert unreadable(["a: gone", "b: gone"]) == 3
    assert capsys.readouterr().err == "kcap: a: gone\nkcap: b: gone\n"


def test_a_file_never_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    done = run("<&- >&-", "rows", CAPTURE, "-o", tmp_path / "rows.jsonl")
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "rows.jsonl").read_bytes().count(b"\n") == run("", "rows", CAPTURE).stdout.count(b"\n") - 1


@pytest.mark.parametrize("report", ["rows", "stats"])
def test_a_name_that_is_no_utf_8_is_read_and_shown(report: str, tmp_path: Path) -> None:
    name = copy(CAPTURE, os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.pcap"))
    done = run("", report, name, "--format", "json")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"bad\\\\xff.pcap" in done.stdout


def test_a_name_commands_no_terminal(tmp_path: Path) -> None:
    done = run("", "rows", tmp_path / "\x1b[31mred\nline\udcff.pcap")
    assert done.returncode == 3
    assert done.stderr.endswith(b"/\\x1b[31mred\\nline\\xff.pcap: no such file or directory\n")
    assert visible("plain") == "plain"
    assert readable("a\udcffb") == "a\\xffb"


def test_a_name_is_quoted_so_that_a_shell_finds_the_file(tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("plain", "with space", "it's \x1b[31m\n\\", "\udcff\xe4")]
    for name in names:
        name.touch()
    line = f"ls -d {shell([str(name) for name in names])} | wc -l; test -e {shell([str(names[2])])}"
    done = subprocess.run(
        ["bash", "-c", f'set -e; for f in {shell(list(map(str, names)))}; do test -e "$f"; done; {line}'], check=False
    )
    assert done.returncode == 0
