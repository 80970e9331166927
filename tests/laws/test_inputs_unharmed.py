"""No command opens an input for writing, renames, cuts or removes it: an audit hook sees it, and the files are as before.

The hook (PEP 578) sees what Python opens. Arrow and DuckDB open files by themselves: what they may have done shows in the
content and the times of the files.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pyarrow import parquet

from kcap.cli.commands import COMMANDS
from kcap.cli.main import main

PROGRAM = """
import contextlib, io, os, sys
inputs = {{(status.st_dev, status.st_ino) for status in map(os.stat, {inputs!r})}}
seen = []
def watch(event, arguments):
    if event == "open":
        path, _, flags = arguments
        paths = [path] if flags & (os.O_WRONLY | os.O_RDWR | os.O_TRUNC | os.O_CREAT | os.O_APPEND) else []
    elif event in ("os.rename", "os.link", "os.remove", "os.truncate", "os.chmod", "os.utime", "os.chown"):
        paths = arguments[:2] if event == "os.rename" else arguments[:1]
    else:
        return
    for path in paths:
        with contextlib.suppress(OSError, TypeError, ValueError):
            status = os.stat(path)
            if (status.st_dev, status.st_ino) in inputs:
                seen.append((event, str(path)))
sys.addaudithook(watch)
from kcap.cli.main import main
codes = []
for words in {commands!r}:
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())), contextlib.redirect_stderr(io.StringIO()):
        codes.append(main(words))
{after}
print(codes, seen)
"""
WITHOUT_INPUT = {"schema", "completion", "decode"}
"""Commands that read no capture."""
NEEDS_MORE = {"live": "an interface", "browse": "a terminal", "web": "a browser"}


def commands(one: str, two: str, saved: str, out: str, name: str) -> list[list[str]]:
    """A call of every command; several where a command opens inputs in several ways."""
    calls = [[command, one] for command in ("slow", "versions", "health")]
    return [
        *calls, ["rows", one, "-o", f"{out}/saved.parquet"],
        ["errors", saved], ["rows", one, two, "-o", f"{out}/rows.csv"], ["rows", one, "--table", "records"],
        ["connections", one], ["check", one], ["groups", one], ["transactions", one], ["diff", one, two],
        ["show", one, name], ["sql", "from exchanges", one], ["sql", "from exchanges", saved],
        ["cut", one, "-Y", "api == Produce", "-o", f"{out}/cut.pcap"], ["cut", one, "--redact", "-o", f"{out}/redacted.pcap"],
        ["merge", one, two, "-o", f"{out}/merged.pcapng"], ["split", one, "--by-connection", "3", "-o", f"{out}/part"],
        ["rows", one, "-o", one], ["merge", one, two, "-o", two], ["latency", one, "-o", one],
    ]  # fmt: skip


def state(path: Path) -> tuple[bytes, int, int, int]:
    """What would differ after a write."""
    status = path.stat()
    return path.read_bytes(), status.st_mtime_ns, status.st_ino, status.st_mode


def run(calls: list[list[str]], inputs: list[Path], after: str = "") -> str:
    """What the program prints: exit codes and what was done to inputs."""
    program = PROGRAM.format(inputs=[str(path) for path in inputs], commands=calls, after=after)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=120, text=True)
    return done.stdout.splitlines()[-1]


def test_no_command_writes_to_an_input(pcaps: Path, tmp_path: Path) -> None:
    one, two, saved = (tmp_path / name for name in ("one.pcap", "two.pcap", "saved.parquet"))
    shutil.copy(pcaps / "node-platformatic.pcap", one)
    shutil.copy(pcaps / "fallback-0.9.pcap", two)
    assert main(["rows", str(one), "-o", str(saved)]) == 0
    (tmp_path / "out").mkdir()
    row = parquet.read_table(saved, columns=["connection", "exchange"]).slice(0, 1).to_pylist()[0]
    name = "{connection}.{exchange}".format(**row)
    calls = commands(str(one), str(two), str(saved), str(tmp_path / "out"), name)
    before = [state(path) for path in (one, two, saved)]
    refused = 3
    assert run(calls, [one, two, saved]) == f"{[0] * (len(calls) - refused) + [2] * refused} []"
    assert [state(path) for path in (one, two, saved)] == before
    named = {call[0] for call in calls} | {
        name for name, entry in COMMANDS.items() if entry.module == COMMANDS["topics"].module
    }
    assert named | NEEDS_MORE.keys() | WITHOUT_INPUT == set(COMMANDS)


def test_the_hook_sees_an_input_being_opened_for_writing(tmp_path: Path) -> None:
    """So that the test above can fail; through another name of the same file, too."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"")
    os.link(one, other)
    assert run([], [one], f"open({str(other)!r}, 'ab').close()") == f"[] [('open', {str(other)!r})]"
