"""`kcap live` with programs in the place of dumpcap and tcpdump: what they are asked, what becomes of what they say."""

import fcntl
import json
import os
import pty
import re
import shlex
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kcap.cli.live import Ring, last_line, ring_of
from kcap.errors import UsageError
from tests.cli.running import ENVIRONMENT, PCAPS, kcap
from tests.support.tls import without_secrets

TOOL = """#!/bin/sh
'''exec' {python} "$0" "$@"
'''
import sys, time
open({log!r}, "a").write(" ".join(sys.argv[1:]) + chr(10))
if "-D" in sys.argv:
    print("1. lo"); sys.exit(0)
if sys.argv[sys.argv.index("-w") + 1] != "-":
    open(sys.argv[sys.argv.index("-w") + 1], "wb").close(); time.sleep(60)
if {fails!r}:
    print("eth9: No such device exists", file=sys.stderr); sys.exit(1)
sys.stdout.buffer.write(open({capture!r}, "rb").read()); sys.stdout.flush()
{end}
"""


def tool(
    folder: Path, name: str, *, fails: bool = False, end: str = "", capture: Path = PCAPS / "go-franz.pcap"
) -> Path:  # fmt: skip
    """A program that says it captured; the words it was called with are in the file that is returned."""
    log, path, python = folder / "asked", folder / name, shlex.quote(sys.executable)
    path.write_text(
        TOOL.format(python=python, log=str(log), fails=fails, capture=str(capture), end=end),
        encoding="utf-8",
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return log


def live(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kcap", "live", *words], env={**ENVIRONMENT, "PATH": str(folder)}, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip


def test_rows_are_those_of_the_capture(tmp_path: Path) -> None:
    log = tool(tmp_path, "tcpdump")
    done = live(tmp_path, "-i", "eth0", "-f", "tcp port 9092", "-s", "256", "--format", "csv", "-Y", "api == Produce")
    assert done.returncode == 0, done.stderr
    assert done.stdout == kcap(
        "rows", PCAPS / "go-franz.pcap", "--format", "csv", "-Y", "api == Produce"
    ).stdout.decode().replace("go-franz.pcap", "-")
    assert log.read_text(encoding="utf-8") == "-i eth0 -s 256 -w - -U tcp port 9092\n"


def test_a_ring_is_captured_beside_it(tmp_path: Path) -> None:
    log = tool(tmp_path, "dumpcap")
    ring = str(tmp_path / "ring.pcapng")
    done = live(tmp_path, "-i", "any", "--ring", "5:10MB", "-w", ring, "--format", "csv", "--limit", "1")
    assert done.returncode == 0, done.stderr
    assert sorted(log.read_text(encoding="utf-8").splitlines()) == [
        "-i any -b files:5 -b filesize:10000 -w " + ring + " -q -f tcp",
        "-i any -w - -q -f tcp",
    ]
    assert live(tmp_path, "-D").stdout == "1. lo\n"


def test_interrupting_ends_the_capture_and_tells_what_was_seen(tmp_path: Path) -> None:
    tool(tmp_path, "tcpdump", end="time.sleep(60)")
    with subprocess.Popen(
        [sys.executable, "-m", "kcap", "live", "-i", "eth0", "--columns", "api,outcome", "-o", str(tmp_path / "out.csv")],
        env={**ENVIRONMENT, "PATH": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        deadline = time.monotonic() + 30
        while not (tmp_path / "asked").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").count("\n") == 106


def test_what_went_wrong_is_told(tmp_path: Path) -> None:
    nothing = live(tmp_path, "-i", "eth0")
    assert nothing.returncode == 5
    assert "neither dumpcap nor tcpdump is installed" in nothing.stderr
    tool(tmp_path, "tcpdump", fails=True)
    failed = live(tmp_path, "-i", "eth9")
    assert failed.returncode == 3
    assert "No such device exists" in failed.stderr
    assert live(tmp_path).returncode == 2
    assert os.path.exists(tmp_path / "tcpdump")


def test_rings() -> None:
    assert ring_of("10:100MB", "a.pcap") == Ring(10, 100_000_000, "a.pcap")
    assert ring_of("2:1GiB", "a") == Ring(2, 1 << 30, "a")
    assert ring_of(None, None) is None
    for text, path in (("10", "a"), ("0:5", "a"), ("1:0MB", "a"), ("1:1", None), (None, "a")):
        with pytest.raises(UsageError):
            ring_of(text, path)


def test_what_a_tool_said_last() -> None:
    with tempfile.TemporaryFile() as said:
        assert last_line(said) == "no reason is given"
        said.write(b"Capturing on 'lo'\nno permission\n\n")
        assert last_line(said) == "no permission"


def test_keys_that_come_while_it_captures_decrypt_what_came_before_them(tmp_path: Path) -> None:
    data = (PCAPS / "tls13.pcapng").read_bytes()
    found = re.findall(rb"[A-Z]+_[A-Z_0-9]+ [0-9a-f]{64} [0-9a-f]{64,96}", data)
    first, rest, keys = tmp_path / "first", tmp_path / "rest", tmp_path / "keys"
    bare = without_secrets(data)
    first.write_bytes(bare[: len(bare) // 3])
    rest.write_bytes(bare[len(bare) // 3 :])
    keys.touch(0o600)
    end = f"""time.sleep(0.5)
open({str(keys)!r}, "wb").write({b"".join(line + bytes([10]) for line in found)!r})
sys.stdout.buffer.write(open({str(rest)!r}, "rb").read())"""
    tool(tmp_path, "tcpdump", capture=first, end=end)
    done = live(tmp_path, "-i", "eth0", "--format", "jsonl", "--tls-keylog", str(keys))
    assert done.returncode == 0, done.stderr
    wanted = kcap("rows", "-", "--format", "jsonl", "--tls-keylog", keys, stdin=bare).stdout.decode().splitlines()
    assert sorted(done.stdout.splitlines()) == sorted(wanted)
    assert sum(json.loads(line)["tls"] for line in wanted) == 76


def test_findings_begin_and_go_on(tmp_path: Path) -> None:
    tool(tmp_path, "tcpdump", capture=PCAPS / "problems" / "hanging-transaction.pcap")
    text, machine = (live(tmp_path, "-i", "eth0", "--check", *more) for more in ((), ("--format", "jsonl")))
    assert text.returncode == machine.returncode == 0, text.stderr + machine.stderr
    events = [json.loads(line) for line in machine.stdout.splitlines()]
    assert [(row["event"], row["id"]) for row in events] == [("begin", "hanging-transaction"), ("open", "hanging-transaction")]
    assert [line.split()[1] for line in text.stdout.splitlines()] == ["begins", "goes"]
    assert live(tmp_path, "-i", "eth0", "--check", "-o", "x.csv").returncode == 2


def test_the_screen_needs_a_terminal_and_writes_no_file(tmp_path: Path) -> None:
    log = tool(tmp_path, "tcpdump")
    assert "needs a terminal" in live(tmp_path, "-i", "eth0", "--tui").stderr
    assert live(tmp_path, "-i", "eth0", "--tui", "-o", str(tmp_path / "x.csv")).returncode == 2
    assert live(tmp_path, "-i", "eth0", "--tui", "--check").returncode == 2
    assert not log.exists(), "nothing is captured for a screen that is not there"


def test_a_tool_that_fails_is_told_before_the_screen_is_taken(tmp_path: Path) -> None:
    """In a terminal of its own."""
    tool(tmp_path, "tcpdump", fails=True)
    process, terminal = pty.fork()
    if not process:
        environment = {**ENVIRONMENT, "PATH": str(tmp_path), "TERM": "xterm"}
        os.execve(sys.executable, [sys.executable, "-m", "kcap", "live", "-i", "eth9", "--tui"], environment)
    said = b""
    try:
        while piece := os.read(terminal, 4096):
            said += piece
    except OSError:  # the other end of the terminal is closed
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 3
    assert b"captured nothing: eth9: No such device exists" in said
    assert b"\x1b[?1049h" not in said, "the terminal is left as it was"


def test_screens_of_a_terminal_that_goes_away_end_while_a_view_is_computed(tmp_path: Path) -> None:
    """SIGTERM and SIGHUP, as a session manager and a terminal send them, while threads wait for the reading process."""
    path = PCAPS / "java-transactions.pcap"
    again = f"while True: time.sleep(0.1); sys.stdout.buffer.write(open({str(path)!r}, 'rb').read()[24:]); sys.stdout.flush()"
    tool(tmp_path, "tcpdump", capture=path, end=again)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 36, 120, 0, 0))
    shown = bytearray()

    def read() -> None:
        with suppress(OSError):
            while data := os.read(ours, 1 << 16):
                shown.extend(data)

    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as a child inherits it: under nohup(1) it is ignored
    process = subprocess.Popen(
        [sys.executable, "-m", "kcap", "live", "--tui", "-i", "eth0"], stdin=theirs, stdout=theirs, stderr=theirs,
        env={**ENVIRONMENT, "PATH": str(tmp_path), "TERM": "xterm-256color"}, start_new_session=True,
    )  # fmt: skip
    signal.signal(signal.SIGHUP, before)
    os.close(theirs)
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        until = time.monotonic() + 60
        while b"live" not in shown or b"latency" not in shown:
            assert time.monotonic() < until
            time.sleep(0.05)
        for key in (b"V", b"\x1b", b"C"):
            os.write(ours, key)
            time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGHUP)
        assert process.wait(30) in (128 + signal.SIGTERM, 128 + signal.SIGHUP)
    finally:
        process.kill()
        process.wait()
        reader.join(10)
        os.close(ours)
