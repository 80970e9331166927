"""A reading process reports its status, is stopped, and never outlives its reader."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kcap.tui.reader_main import ReadRequest
from kcap.tui.reader_process import LEFT, Process
from tests.tui.conftest import PCAPS

NODE = str(PCAPS / "node-platformatic.pcap")


def test_it_tells_how_far_it_is(tmp_path: Path) -> None:
    process, status = Process(ReadRequest([NODE], str(tmp_path))), []
    process.watch = lambda: status.append(process.status)
    process.start()
    assert process.wait(60)
    process.close()
    assert process.status.over
    assert process.status.error is None
    assert process.status.bytes > 0
    assert [one.rows for one in status] == sorted(one.rows for one in status)
    assert status[-1].over
    assert process.status.rows == 37
    assert [file.name for file in process.status.files] == ["node-platformatic.pcap"]


def test_one_that_dies_is_told(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    process = Process(ReadRequest(["-"], str(tmp_path)), reader)
    process.start()
    process._kill()
    assert process.wait(30)
    assert process.status.error == LEFT
    process.close()
    os.close(reader)
    os.close(writer)


def test_a_file_that_is_no_capture_is_told(tmp_path: Path) -> None:
    process = Process(ReadRequest([__file__], str(tmp_path)))
    process.start()
    assert process.wait(30)
    assert "no capture" in str(process.status.error)
    process.close()


@pytest.mark.parametrize("how", ["stop", "close"])
def test_one_that_waits_for_a_pipe_can_be_ended(tmp_path: Path, how: str) -> None:
    data = Path(NODE).read_bytes()
    reader, writer = os.pipe()
    process = Process(ReadRequest(["-"], str(tmp_path)), reader)
    process.start()
    os.write(writer, data[: len(data) // 2])
    until = time.monotonic() + 30
    while not process.status.rows and time.monotonic() < until:
        time.sleep(0.02)
    assert process.status.rows, "rows come while the pipe is open"
    if how == "stop":
        process.stop()
        assert process.wait(30)
        assert process.status.stopped
        assert process.status.error is None
        assert process.spools[0].read(4, 0) == data[:4], "what a pipe gave can be read again"
    process.close()
    assert process._join() is not None, "it ended, and was waited for"
    os.close(reader)
    os.close(writer)


def forked(*words: str) -> str:
    """What a process prints that makes a copy of itself for reading: a process of tests has threads."""
    program = (
        "import os, sys, time; from multiprocessing import active_children; from kcap.runtime import load_arrow; load_arrow()\n"
        "from kcap.tui.reader_main import ReadRequest; from kcap.tui.reader_process import Process\n"
        "paths, folder, how = sys.argv[1:4]\n"
        "reader, writer = os.pipe()\n"
        "process = Process(ReadRequest([paths], folder), reader if paths == '-' else None, forks=True)\n"
        "process.start()\n"
        "if how == 'kill': process._kill()\n"
        "if how == 'stop':\n"
        "    os.write(writer, open(sys.argv[4], 'rb').read()[:16000])\n"
        "    while not process.status.rows: time.sleep(0.02)\n"
        "    process.stop()\n"
        "if how != 'close': assert process.wait(30)\n"
        "status = process.status; process.close()\n"
        "print(status.rows, status.over, status.error, 'runs' if active_children() else 'ended')"
    )
    made = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    assert not made.stderr
    return made.stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the reading process begins anew")
def test_a_copy_of_a_process_reads_stops_and_ends_like_one_that_begins_anew(tmp_path: Path) -> None:
    for name in "abcdef":
        (tmp_path / name).mkdir()
    assert forked(NODE, str(tmp_path / "a"), "wait") == "37 True None ended"
    assert "no capture" in forked(__file__, str(tmp_path / "b"), "wait")
    assert forked("-", str(tmp_path / "c"), "kill") == f"0 True {LEFT} ended"
    assert forked("-", str(tmp_path / "d"), "stop", NODE).endswith(" True None ended")
    assert forked("-", str(tmp_path / "e"), "close") == "0 False None ended"
    assert forked(NODE, str(tmp_path / "f" / "missing"), "wait").startswith(f"0 True {LEFT}: FileNotFoundError")
