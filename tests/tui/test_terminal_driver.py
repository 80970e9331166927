"""The driver of a terminal: what its keys are, and what happens when it is gone."""

import os
import pty
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from kcap.tui.terminal_driver import KeyParser, LastingFile, TerminalDriver
from tests.tui.conftest import PCAPS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        ("\x1bq", ["escape", "q"]), ("\x1b:", ["escape", "colon"]), ("\x1b1", ["escape", "1"]),
        ("\x1bS3", ["escape", "S", "3"]),
        ("\x1b", ["escape"]), ("\x1b\x1b", ["escape", "escape"]), ("\x1b\x1bOP", ["escape", "f1"]), ("\x1b[A", ["up"]),
        ("\x1bf", ["ctrl+right"]), ("e\x1bpp", ["e", "escape", "p", "p"]), ("é", ["é"]),
    ],
)  # fmt: skip
def test_keys_of_one_read(data: str, keys: list[str]) -> None:
    parser = KeyParser()
    found = list(parser.feed(data))
    until = time.monotonic() + 5
    while len(found) < len(keys) and time.monotonic() < until:
        found += parser.tick()
    assert [getattr(event, "key", None) for event in found] == keys


def test_a_file_that_is_gone_takes_what_is_written() -> None:
    reader, writer = os.pipe()
    calls: list[int] = []
    file = os.fdopen(writer, "w")
    lasting = LastingFile(file, lambda: calls.append(1))
    assert lasting.fileno() == writer
    assert lasting.write("here") == 4
    lasting.flush()
    assert not calls
    os.close(reader)
    assert lasting.write("gone") == 4
    lasting.flush()
    assert calls
    file.flush()  # as Python does when it ends: what was held is nowhere
    os.close(writer)
    lasting.write("closed" * 10_000)
    with pytest.raises(OSError, match="descriptor"):
        file.close()


def test_a_terminal_is_read_by_one_thread() -> None:
    """A terminal that hangs up sends SIGCONT to what was never stopped."""
    later: list[object] = []
    driver = object.__new__(TerminalDriver)
    driver._app = SimpleNamespace(call_later=later.append, refresh="refresh")  # type: ignore[assignment]
    driver._must_signal_resume = False
    driver._sigcont_application()
    assert later == ["refresh"]


def test_nothing_is_left_behind_by_a_terminal_that_goes_away() -> None:
    process, terminal = pty.fork()
    if not process:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does: writing alone shows that the terminal is gone
        os.chdir(ROOT)
        environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
        os.execve(sys.executable, [sys.executable, "-m", "kcap", str(PCAPS / "java-transactions.pcap")], environment)
    seen = b""
    until = time.monotonic() + 60
    while b"Fetch" not in seen and time.monotonic() < until:
        seen += os.read(terminal, 1 << 16)
    os.close(terminal)
    while time.monotonic() < until:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == 129
            return
        time.sleep(0.1)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    raise AssertionError("it goes on without a terminal")
