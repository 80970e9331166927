"""The process that reads: rows first, then the tables; a growing file is followed; partitions are a pass of their own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import kcap
from kcap.columns import ON_REQUEST, ONLY_ROW, PARTITIONS, exchange_column
from kcap.tui.reader_main import KEY, NICER, Child, ReaderStatus, ReadRequest, arguments, main
from kcap.tui.reader_process import Process
from kcap.tui.spill import OWNERS, main_path, read_file
from tests.tui.conftest import PCAPS

NODE = PCAPS / "node-platformatic.pcap"


def test_an_order_comes_through_the_command_line() -> None:
    order = ReadRequest(["a b.pcap", "-"], "x", [9092], [80], follow=True)
    words = arguments(order, 7)
    assert ReadRequest(**json.loads(words[-2])) == order
    assert words[-1] == "7"


def test_only_what_nobody_waits_for_gives_way_to_others_from_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the list are waited for; partitions, findings and differences are made beside it."""
    nicer: list[int] = []
    monkeypatch.setattr("kcap.tui.reader_main.give_way", nicer.append)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(Child, "run", lambda _: None)
    for order in (ReadRequest(["a"]), ReadRequest(["a"], partitions=True), ReadRequest(["a"], against="b")):
        main([*arguments(order, os.dup(0))[-2:]])
    assert nicer == [NICER, NICER]


def test_a_comparison_says_which_capture_it_reads_and_how_far(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("kcap.tui.reader_main.EVERY_SECONDS", 0)
    reported: list[ReaderStatus] = []
    line: Any = SimpleNamespace(send=reported.append)
    other = PCAPS / "java-transactions.pcap"
    Child(ReadRequest([str(NODE)], str(tmp_path), against=str(other)), line)._differ()
    assert {(status.captures, status.total) for status in reported} == {(1, other.stat().st_size), (2, NODE.stat().st_size)}
    assert all(0 < status.bytes <= (status.total or 0) for status in reported)
    assert [status.over for status in reported] == [False] * (len(reported) - 1) + [True]


def test_a_read_that_begins_just_behind_the_order_to_stop_ends_too() -> None:
    """The signal comes once in the moment before the read waits, and has to come again."""
    program = (
        "import os, signal, threading, time\n"
        "from multiprocessing import Pipe\n"
        "from kcap.tui.reader_main import Child, ReadRequest, Stopped\n"
        "mine, theirs = Pipe()\n"
        "child = Child(ReadRequest(['-']), theirs)\n"
        "signal.signal(signal.SIGUSR1, child.wake)\n"
        "threading.Thread(target=child.listen, daemon=True).start()\n"
        "mine.send('stop')\n"
        "child._stop.wait(); time.sleep(0.05)\n"
        "child._in_read = True\n"
        "try: os.read(os.pipe()[0], 1)\n"
        "except Stopped: print('stopped')"
    )
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=20)
    assert made.stdout == "stopped\n"


def test_partitions_are_those_of_the_table(tmp_path: Path) -> None:
    process = Process(ReadRequest([str(NODE)], str(tmp_path), partitions=True))
    process.start()
    assert process.wait(60)
    process.close()
    names = [column.name for column in (*PARTITIONS, *ON_REQUEST["partitions"])]
    wanted: pa.Table = kcap.open(str(NODE)).partitions(names).to_arrow()
    made: pa.Table = read_file(main_path(str(tmp_path), "partitions"))
    assert made.select(names).to_pylist() == wanted.to_pylist()
    owners = kcap.open(str(NODE)).exchanges([*KEY, *OWNERS]).to_arrow().to_pylist()
    of = {(row["connection"], row["exchange"]): [row[name] for name in OWNERS] for row in owners}
    beside = [exchange_column(name) for name in OWNERS]
    rows = made.select([*KEY, *beside, ONLY_ROW]).to_pylist()
    counts = Counter((row["connection"], row["exchange"]) for row in rows)
    assert len(rows) > 10
    for row in rows:
        key = row["connection"], row["exchange"]
        assert [row[name] for name in beside] == of[key]
        assert row[ONLY_ROW] == (counts[key] == 1)


def test_a_growing_file_is_followed(tmp_path: Path) -> None:
    """Half a file, then the rest: all its rows are there when it has been told to stop."""
    growing, folder, data = tmp_path / "grows.pcap", tmp_path / "spill", NODE.read_bytes()
    folder.mkdir()
    growing.write_bytes(data[: len(data) // 2])
    process = Process(ReadRequest([str(growing)], str(folder), follow=True))
    process.start()
    until = time.monotonic() + 30
    while not process.status.rows and time.monotonic() < until:
        time.sleep(0.02)
    half = process.status.rows
    assert process.status.following
    with growing.open("ab") as file:
        file.write(data[len(data) // 2 :])
    while process.status.rows <= half and time.monotonic() < until:
        time.sleep(0.02)
    assert process.status.rows > half > 0
    while process.status.bytes < len(data) - 2000 and time.monotonic() < until:
        time.sleep(0.02)
    process.stop()
    assert process.wait(30)
    assert process.status.rows == 37
    assert process.status.files[0].path == str(growing)
    rows = read_file(main_path(str(folder), "exchanges")).to_pylist()
    assert {row["capture"] for row in rows} == {"grows.pcap"}
    (capture,) = read_file(main_path(str(folder), "captures")).to_pylist()
    assert (capture["path"], capture["size"]) == (str(growing), len(data))
    process.close()


def test_a_growing_file_that_is_removed_is_read_to_where_it_ended(tmp_path: Path) -> None:
    """Its bytes are held by the pipe that copies them; only its name is gone."""
    growing, folder = tmp_path / "grows.pcap", tmp_path / "spill"
    folder.mkdir()
    growing.write_bytes(NODE.read_bytes())
    process = Process(ReadRequest([str(growing)], str(folder), follow=True))
    process.start()
    until = time.monotonic() + 30
    while not process.status.rows and time.monotonic() < until:
        time.sleep(0.02)
    growing.unlink()
    process.stop()
    assert process.wait(30)
    assert process.status.error is None
    assert process.status.rows > 0
    process.close()


def test_several_files_are_one_capture(tmp_path: Path) -> None:
    for name in ("rotated.pcap", "rotated.pcap1", "rotated.pcap2"):
        shutil.copy(PCAPS / name, tmp_path / name)
    folder = tmp_path / "spill"
    folder.mkdir()
    process = Process(
        ReadRequest([str(tmp_path / name) for name in ("rotated.pcap", "rotated.pcap1", "rotated.pcap2")], str(folder))
    )
    process.start()
    assert process.wait(60)
    process.close()
    wanted = kcap.open(*(str(tmp_path / name) for name in ("rotated.pcap", "rotated.pcap1", "rotated.pcap2"))).exchanges()
    assert process.status.rows == wanted.to_arrow().num_rows


def test_the_word_to_stop_ends_it_between_packets() -> None:
    ours, theirs = Pipe()
    child = Child(ReadRequest([str(NODE)]), theirs)
    child._stop.set()
    assert list(child._until(iter(()))) == []
    ours.close()
    theirs.close()
