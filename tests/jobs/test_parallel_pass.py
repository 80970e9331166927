"""Two processes tell what one tells: every table, in the same order, and all that stands beside the rows."""

import gzip
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap import limits
from kcap.analyzer import Options, RowBatch
from kcap.capture.fileset import FileSet
from kcap.capture_pass import CapturePass
from kcap.filter.parse import parse
from kcap.jobs import messages
from kcap.jobs.parallel_pass import ParallelPass, is_plain
from kcap.jobs.worker import Worker
from kcap.session import Capture
from tests.fuzz.hostile import ACK, RST, Connection, pcap, request
from tests.support.jobs import ThreadedWorker, everything, threaded
from tests.support.wire import produce, produce_answer

__all__ = ["threaded"]
CAPTURES = sorted(path.name for path in (Path(__file__).parents[2] / "pcaps").glob("*.pcap*"))


def same(paths: list[str], options: Options | None = None, **more: Any) -> None:
    """The law."""
    alone, both = (everything(paths, options, jobs=jobs, **more) for jobs in (1, 2))
    assert {name: both[name] for name in alone if both[name] != alone[name]} == {}


@pytest.mark.usefixtures("threaded")
@pytest.mark.parametrize("name", CAPTURES)
def test_two_processes_tell_what_one_tells(pcaps: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other capture takes the fast path from its first packet on, small batches, and bodies projected by either."""
    if CAPTURES.index(name) % 2:
        chance = random.Random(name)
        monkeypatch.setattr(Worker, "_has_time", lambda _worker: chance.random() < 0.5)
        monkeypatch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 0)
        monkeypatch.setattr(limits, "ROWS_PER_BATCH", 7)
        monkeypatch.setattr(FileSet.__init__, "__defaults__", (0,))
    before = ThreadedWorker.started
    same([str(pcaps / name)])
    assert ThreadedWorker.started == before + 1


@pytest.mark.usefixtures("threaded")
def test_two_processes_tell_what_one_tells_of_damaged_files_and_sets_of_them(
    pcaps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FAST_PATH_AFTER_PACKETS", 50)
    monkeypatch.setattr(limits, "ROWS_PER_BATCH", 30)
    monkeypatch.setattr(FileSet.__init__, "__defaults__", (0,))
    chance, paths = random.Random(17), []
    for name in CAPTURES[:3]:
        data = bytearray((pcaps / name).read_bytes())[:200_000]
        for _ in range(20):
            data[chance.randrange(24, len(data))] = chance.randrange(256)
        paths.append(str(tmp_path / name))
        Path(paths[-1]).write_bytes(data)
    packed = tmp_path / "packed.pcap.gz"
    packed.write_bytes(gzip.compress((pcaps / CAPTURES[3]).read_bytes())[:-9])
    (tmp_path / "empty.pcap").write_bytes((pcaps / CAPTURES[0]).read_bytes()[:24])
    (tmp_path / "other.pcap").write_bytes(b"no capture at all")
    same([*paths, str(packed), str(tmp_path / "empty.pcap"), str(tmp_path / "other.pcap")])


@pytest.mark.usefixtures("threaded")
def test_the_same_oddities_are_listed_where_they_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that wait on many connections, which end in another order, over several files and so several steps."""
    monkeypatch.setattr(limits, "WEIRDS_MAX", 30)
    monkeypatch.setattr("kcap.jobs.worker.CLOSED_TOGETHER", 1)
    some = [Connection(40_000 + at, 10**12 + 1000 * at).open() for at in range(100)]
    for connection in some:
        connection.send(0, request(1))
    files = [[packet for connection in some for packet in connection.packets]]
    random.Random(3).shuffle(some)
    for at, connection in enumerate(some):
        connection.packets.clear()
        connection.when = 10**12 + 10**6 + 5 * 10**6 * at
        connection.add(1, RST | ACK)
        files += [[]] if at % 20 == 0 else []
        files[-1] += connection.packets
    paths = [tmp_path / f"{at}.pcap" for at in range(len(files))]
    for path, packets in zip(paths, files, strict=True):
        path.write_bytes(pcap(iter(packets)))
    same([str(path) for path in paths])
    listed = everything([str(path) for path in paths], jobs=1)["sightings"]
    assert [(weird.connection is None, count) for weird, count in listed].count((False, 1)) == 30


@pytest.mark.usefixtures("threaded")
def test_filters_and_children_see_the_same(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROWS_PER_BATCH", 11)
    path = str(pcaps / "node-platformatic.pcap")
    for text in ("api == Produce", "api == Fetch and topic ~ /./", "request.acks == -1", "cluster_id != null"):
        alone, both = (Capture([path], Options(jobs=jobs)).filter(text).exchanges().to_arrow() for jobs in (1, 2))
        assert both.equals(alone), text
    same([path], exchanges={"children": ["partitions", "records"]}, partitions={"only": parse("api == Fetch")})


@pytest.mark.usefixtures("threaded")
@pytest.mark.parametrize("patient", [False, True])
def test_the_other_process_is_as_patient(pcaps: Path, patient: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kcap.capture_pass.EAGER_SECONDS", 0)
    monkeypatch.setattr(FileSet.__init__, "__defaults__", (0,))
    reading = Capture([str(pcaps / "java-transactions.pcap")], Options(jobs=2)).read()
    assert isinstance(reading, ParallelPass)
    reading.patient = patient
    assert (sum(len(batch) > 0 for batch in reading.batches()) == 1) is patient


def test_each_exchange_has_its_messages(pcaps: Path) -> None:
    path = str(pcaps / "node-platformatic.pcap")
    reported = [
        [(one.row, one.request and one.request.to_json(), len(one.packets())) for one in kcap.open(path, jobs=jobs)]
        for jobs in (1, 2)
    ]
    assert reported[0] == reported[1]


@pytest.mark.usefixtures("threaded")
def test_who_looks_at_packets_reads_alone(pcaps: Path) -> None:
    path = str(pcaps / "node-platformatic.pcap")
    before = ThreadedWorker.started
    found = [Capture([path], Options(jobs=jobs)).filter("frame.number == 12").exchanges().to_arrow() for jobs in (1, 2)]
    assert found[0].equals(found[1])
    reading = ParallelPass([path])
    reading.analyzer.plaintext = lambda *_: None
    assert len(list(reading.batches())) == len(list(CapturePass([path]).batches()))
    assert ThreadedWorker.started == before


def test_what_stands_inside_of_a_compression_is_not_plain(pcaps: Path, tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"x"))
    assert [is_plain(str(pcaps / CAPTURES[0])), is_plain(str(tmp_path / "a.gz"))] == [True, False]


def test_the_number_of_processes_is_a_choice_of_the_capture(pcaps: Path) -> None:
    path = str(pcaps / "node-platformatic.pcap")
    readings = [kcap.open(path, **given).read() for given in ({}, {"jobs": 1}, {"jobs": 0}, {"jobs": 2}, {"jobs": 7})]
    for reading in readings:
        reading.files.close()
    assert [type(reading) for reading in readings] == [CapturePass, CapturePass, CapturePass, ParallelPass, ParallelPass]


def waiting_requests(exchanges: int, size: int, wait: int) -> bytes:
    """A pcap file of one connection, whose Produce requests of some size are answered after so many others."""
    connection = Connection(step=20).open()
    for number in range(exchanges + wait):
        if number < exchanges:
            connection.send(0, produce(number, 1, bytes(size + number)), 60_000)
        if number >= wait:
            connection.send(1, produce_answer(number - wait))
    return connection.file()


@pytest.mark.usefixtures("threaded")
def test_bodies_that_wait_across_full_batches_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that wait for their responses over two batches of the size that large captures have."""
    path, made = tmp_path / "waiting.pcap", list[tuple[int, int]]()
    size = limits.FAST_PATH_LARGE_FROM // 2
    path.write_bytes(waiting_requests(4 * limits.BODIES_BYTES // size, size, 2 * limits.BODIES_BYTES // size))
    portable = messages.portable

    def noted(batch: RowBatch) -> RowBatch:
        made.append((len(batch.bodies.arena), len(batch.bodies.carried) + len(batch.bodies.waiting or ())))
        return portable(batch)

    monkeypatch.setattr(messages, "portable", noted)
    monkeypatch.setattr("kcap.capture_pass.EAGER_SECONDS", 1000)
    same([str(path)])
    alone, both = (Capture([str(path)], Options(jobs=jobs)).exchanges().to_arrow() for jobs in (1, 2))
    assert both.equals(alone)
    for some in (made[: len(made) // 2], made[len(made) // 2 :]):
        assert sum(size >= limits.BODIES_BYTES for size, _ in some) >= 3
        assert max(waiting for _, waiting in some) > 100


def children(pid: int) -> list[int]:
    """Processes that a process started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize(("target", "code"), [("parent", 130), ("worker", 3)])
def test_an_interrupt_and_a_killed_process_leave_nothing(pcaps: Path, tmp_path: Path, target: str, code: int) -> None:
    """Ctrl-C ends both processes within a second; a worker that is killed is a sentence and exit code 3."""
    head, body = (data := (pcaps / "node-platformatic.pcap").read_bytes())[:24], data[24:]
    big, out = tmp_path / "big.pcap", tmp_path / "out.jsonl"
    big.write_bytes(head + body * (40_000_000 // len(body)))
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "kcap", "rows", str(big), "-o", str(out), "--jobs", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path / "tmp")})
    until = time.monotonic() + 20
    while not list(tmp_path.glob(".out.jsonl*")) or not (workers := children(process.pid)):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    began = time.monotonic()
    os.kill(process.pid, signal.SIGINT) if target == "parent" else os.kill(workers[0], signal.SIGKILL)
    assert process.wait(10) == code
    assert process.stderr is not None
    with process.stderr:
        said = process.stderr.read()
    if target == "parent":
        assert time.monotonic() - began < 2.0
        assert said == ""
    else:
        assert said == "kcap: the process that analyzes packets was killed (SIGKILL); --jobs 1 reads without it\n"
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["big.pcap", "tmp"]
    assert not list((tmp_path / "tmp").iterdir())


def test_the_command_line_gives_the_same_bytes(pcaps: Path) -> None:
    command = [sys.executable, "-m", "kcap", "rows", str(pcaps / "node-platformatic.pcap"), "--format", "jsonl", "--jobs"]
    data = (pcaps / "node-platformatic.pcap").read_bytes()
    alone, both, piped = (
        subprocess.run(words, capture_output=True, check=True, input=data).stdout
        for words in ([*command, "1"], [*command, "2"], [*command[:4], "-", *command[5:], "2"])
    )
    assert alone == both
    assert alone.count(b"\n") == piped.count(b"\n")
