"""No command replaces what it reads: every option that names an output is found, and tried on the command's own input."""

import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import click
import pytest

from kcap.cli.commands import COMMANDS
from kcap.cli.main import main
from kcap.cli.places import Reads, Writes, files_read
from tests.cli.running import COMMAND, ENVIRONMENT, PCAPS, kcap

CAPTURE = PCAPS / "aiokafka.pcap"
PLACES = {"FILE", "PATH", "PREFIX", "FOLDER", "DIR"}
"""Words in the metavar of a parameter that names files."""
BEFORE = {"sql": ["select * from exchanges"], "split": ["--by-connection", "1"]}
"""What a command needs beside an input and an output."""


def command_of(name: str) -> click.Command:
    found: click.Command = COMMANDS[name].load()
    return found


def outputs() -> list[tuple[str, str]]:
    """Command and option of every output there is."""
    return [
        (name, parameter.opts[0])
        for name in COMMANDS
        for parameter in command_of(name).params
        if isinstance(parameter.type, Writes)
    ]


def test_every_parameter_that_names_files_says_whether_they_are_read_or_written() -> None:
    """A new option for a file fails here until it says which."""
    silent = [
        f"{name} {parameter.opts[0]}"
        for name in COMMANDS
        for parameter in command_of(name).params
        if PLACES & set(re.findall("[A-Z]+", str(getattr(parameter, "metavar", None))))
        and not isinstance(parameter.type, Reads | Writes | click.Path)
    ]
    unnamed = [
        f"{name} {parameter.opts[0]}"
        for name in COMMANDS
        for parameter in command_of(name).params
        if {"-o", "-w", "--output"} & set(parameter.opts) and not isinstance(parameter.type, Writes)
    ]
    assert (silent, unnamed) == ([], [])
    writing = {name for name, _ in outputs()}
    assert writing >= {"rows", "latency", "stats", "sql", "connections", "versions", "cut", "merge", "split", "live"}
    assert {("latency", "--plot"), ("live", "-w"), ("live", "-o")} <= set(outputs())


def input_name(command: str, option: str) -> str:
    """A name under which the command could write: a part of a split has a number, a chart a suffix."""
    return {"split": "in_00001.pcap", "live": "in"}.get(command, "in.svg" if option == "--plot" else "in")


def arguments(command: str, option: str, read: Path, written: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A call of a command with an input and an output; what `live` reads of a disk is the configuration file."""
    if command == "live":
        monkeypatch.setenv("KCAP_CONFIG", str(read))
        return [command, "-i", "lo", option, written]
    prefix = written.removesuffix("_00001.pcap") if command == "split" else written
    other = [str(CAPTURE)] if command == "diff" else []
    return [command, *BEFORE.get(command, []), str(read), *other, option, prefix]


def made_input(command: str, option: str, folder: Path) -> Path:
    path = folder / input_name(command, option)
    if command == "live":
        path.write_text("[rows]\nlimit = 5\n")
    else:
        shutil.copy(CAPTURE, path)
    return path


def state(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Inode, time of change and content of everything in a folder."""
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns, sha256(path.read_bytes()).hexdigest())
        for path in folder.iterdir()
    }


@pytest.mark.parametrize("spelling", ["same", "other", "absent folder", "symlink", "hard link"])
@pytest.mark.parametrize(("command", "option"), outputs(), ids=" ".join)
def test_an_output_that_is_the_input_is_refused(
    command: str,
    option: str,
    spelling: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = made_input(command, option, tmp_path)
    name = path.name
    written = {
        "same": path,
        "other": f"{tmp_path}/./../{tmp_path.name}//{name}",
        "absent folder": f"{tmp_path}/no-such/../{name}",
        "symlink": tmp_path / f"sym{name}",
        "hard link": tmp_path / f"hard{name}",
    }[spelling]
    if spelling == "symlink":
        Path(written).symlink_to(path)
    if spelling == "hard link":
        os.link(path, written)
    before = state(tmp_path)
    assert main(arguments(command, option, path, str(written), monkeypatch)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert "input" in line
    assert str(path) in line
    assert state(tmp_path) == before, "nothing was written, nothing is left beside it"


@pytest.mark.parametrize(("command", "option"), [pair for pair in outputs() if pair[0] != "live"], ids=" ".join)
def test_where_outputs_are_opened_inputs_are_known_too(
    command: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command that forgot to declare its output is stopped by the sink; without that check too it would write."""
    path = made_input(command, option, tmp_path)
    before = state(tmp_path)
    monkeypatch.setattr("kcap.runtime.collect_rarely", lambda: None)  # this process lives on
    monkeypatch.setattr(Writes, "names", lambda _self, _value: [])
    monkeypatch.setattr("kcap.cli.split.Prefix.names", lambda _self, _value: [])
    words = arguments(command, option, path, str(path), monkeypatch)
    assert main(words) == 2
    assert "input" in capsys.readouterr().err
    assert state(tmp_path) == before
    monkeypatch.setattr("kcap.inputs.Inputs.at", lambda _self, _output: None)
    assert main(words) == 0
    assert state(tmp_path) != before, "the law is not kept by accident"


def test_members_of_folders_and_globs_are_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("caps")
    shutil.copy(CAPTURE, "caps/a")
    shutil.copy(CAPTURE, "caps/b.pcap")
    before = state(tmp_path / "caps")
    for words in (
        ["rows", "caps", "-o", "caps/a"],
        ["rows", "caps/*", "-o", "caps/a"],
        ["merge", "caps", "-o", "caps/b.pcap"],
        ["merge", "-r", "cap?", "-o", "caps/../caps/b.pcap"],
        ["latency", "caps", "-o", "caps"],
        ["rows", "caps/a", "--partition-by", "hour", "-o", "caps"],
        ["rows", "caps/a", "--partition-by", "hour", "-o", "."],
        ["cut", "caps/a", "--tls-keylog", "caps/b.pcap", "-o", "caps/b.pcap"],
    ):
        assert main(words) == 2, words
        assert "input" in capsys.readouterr().err
    assert state(tmp_path / "caps") == before
    for _ in range(2):
        assert main(["rows", "caps", "-o", "caps/rows.csv"]) == 0, "what is no capture in the folder is no input"


def test_saved_tables_are_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "rows.parquet"
    assert main(["rows", str(CAPTURE), "-o", str(saved)]) == 0
    before = state(tmp_path)
    for words in (["latency", str(saved)], ["sql", "select 1", str(tmp_path)]):
        assert main([*words, "-o", str(saved)]) == 2
        assert "input" in capsys.readouterr().err
    assert state(tmp_path) == before
    assert files_read([str(tmp_path)], tables=True) == [str(saved)]
    assert files_read([str(tmp_path)], tables=False) == []


def test_standard_streams_are_compared_too(tmp_path: Path) -> None:
    path = tmp_path / "a"
    shutil.copy(CAPTURE, path)
    before = state(tmp_path)
    with path.open("rb") as stdin:
        done = subprocess.run(
            [*COMMAND, "rows", "-", "-o", path], stdin=stdin, capture_output=True, env=ENVIRONMENT, check=False
        )
    assert (done.returncode, b"standard input" in done.stderr) == (2, True)
    for words in (
        ["rows", path],
        ["show", path],
        ["health", path],
        ["merge", path, "-o", "-"],
        ["rows", path, "-o", "/dev/stdout"],
    ):
        with path.open("ab") as stdout:
            done = subprocess.run([*COMMAND, *words], stdout=stdout, stderr=subprocess.PIPE, env=ENVIRONMENT, check=False)
        assert done.returncode == 2, words
        assert b"input" in done.stderr
    assert state(tmp_path) == before


def test_devices_and_pipes_take_outputs(tmp_path: Path) -> None:
    wanted = kcap("rows", CAPTURE, "--format", "csv").stdout
    assert kcap("rows", CAPTURE, "--format", "csv", "-o", "/dev/stdout").stdout == wanted
    assert kcap("rows", CAPTURE, "-o", "/dev/null").returncode == 0
    fifo = tmp_path / "a.fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
        assert kcap("rows", CAPTURE, "--format", "csv", "-o", fifo).returncode == 0
        assert reader.communicate(timeout=30)[0] == wanted


@pytest.mark.skipif(shutil.which("strace") is None or sys.platform != "linux", reason="no strace")
@pytest.mark.parametrize("written", ["a", "hard"])
def test_the_system_sees_no_opening_for_writing(written: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    shutil.copy(CAPTURE, path)
    os.link(path, tmp_path / "hard")
    log = tmp_path / "log"
    calls = "open,openat,creat,rename,renameat,renameat2,unlink,unlinkat,truncate,ftruncate"
    done = subprocess.run(
        ["strace", "-f", "-e", f"trace={calls}", "-o", log, *COMMAND, "cut", path, "-o", tmp_path / written],
        capture_output=True, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    if b"ptrace" in done.stderr or b"PTRACE" in done.stderr:
        pytest.skip("tracing is not allowed here")
    assert done.returncode == 2, done.stderr
    touched = [line for line in log.read_text(errors="replace").splitlines() if str(tmp_path) in line]
    assert [line for line in touched if "O_WRONLY" in line or "O_RDWR" in line or "rename" in line or "unlink" in line] == []
