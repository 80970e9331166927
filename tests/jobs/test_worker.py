"""The process that analyzes: steps over a socket, errors sent on, an end when no more is wanted."""

import pickle
import socket
import threading
from pathlib import Path

import pytest

from kcap.analyzer import Options
from kcap.capture_pass import CapturePass
from kcap.errors import CaptureError
from kcap.jobs import worker
from kcap.jobs.messages import ReadOrder
from kcap.jobs.parallel_pass import ParallelPass
from kcap.jobs.transport import Receiver, Sender
from kcap.jobs.worker import Worker, opened
from kcap.tls.files import read_secrets


def started(order: ReadOrder, *, gone: bool = False) -> tuple[Receiver, threading.Thread, list[BaseException], socket.socket]:
    """A worker in a thread, what ended it, and the other end of its socket."""
    mine, theirs = socket.socketpair()
    if gone:
        mine.close()
    ended: list[BaseException] = []

    def run() -> None:
        sender = Sender(theirs)
        try:
            Worker(sender).run(order)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            ended.append(error)
        finally:
            sender.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return Receiver(mine), thread, ended, mine


def test_what_cannot_be_read_is_an_error_at_the_other_end(tmp_path: Path) -> None:
    receiver, thread, ended, line = started(ReadOrder([str(tmp_path / "nothing.pcap")], Options()))
    with line:
        step = receiver.receive()
        assert isinstance(step.error, CaptureError)
        assert "nothing.pcap" in str(step.error)
        thread.join(5)
    assert ended == []


def test_a_fault_of_its_own_has_the_place_where_it_happened(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker.Worker, "_look", lambda _self: 1 / 0)
    receiver, thread, _, line = started(ReadOrder([str(pcaps / "node-platformatic.pcap")], Options()))
    with line:
        while (step := receiver.receive()).error is None:
            pass
    assert isinstance(step.error, ZeroDivisionError)
    assert "test_worker.py" in "".join(step.error.__notes__)
    thread.join(5)


def test_it_ends_at_the_next_packets_when_nobody_wants_more(pcaps: Path) -> None:
    _, thread, ended, _ = started(ReadOrder([str(pcaps / "node-platformatic.pcap")], Options()), gone=True)
    thread.join(5)
    assert not thread.is_alive()
    assert [type(error) for error in ended] in ([EOFError], [BrokenPipeError], [ConnectionResetError])


def test_a_key_log_that_grows_is_followed_there(pcaps: Path, tmp_path: Path) -> None:
    log = tmp_path / "keys.log"
    log.write_text(f"CLIENT_RANDOM {'1' * 64} {'2' * 96}\n")
    reading = ParallelPass([str(pcaps / "node-platformatic.pcap")], Options(secrets=read_secrets([str(log)])))
    order = pickle.loads(pickle.dumps(reading._order()))
    with log.open("a") as file:
        file.write(f"CLIENT_RANDOM {'3' * 64} {'4' * 96}\n")
    theirs = opened(order)
    theirs.analyzer.secrets.follow()
    assert set(theirs.analyzer.secrets.keylog.stored) == {bytes.fromhex("11" * 32), bytes.fromhex("33" * 32)}
    for one in (reading, theirs):
        one.files.close()


def test_steps_have_the_rows_of_a_pass(pcaps: Path) -> None:
    path = str(pcaps / "java-transactions.pcap")
    wanted = [row for batch in CapturePass([path]).batches() for row in batch.rows]
    receiver, thread, ended, line = started(ReadOrder([path], Options()))
    rows = []
    with line:
        while not (step := receiver.receive()).over:
            assert step.error is None
            rows += [] if step.batch is None else step.batch.rows
        thread.join(5)
    assert rows == wanted
    assert ended == []


def test_the_process_ends_when_its_reader_is_gone(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("start_quickly", "keep_heap", "collect_rarely"):  # they would change the process of the tests
        monkeypatch.setattr(worker, name, lambda: None)
    codes: list[int] = []
    monkeypatch.setattr(worker.os, "_exit", codes.append)
    senders: list[Sender] = []
    monkeypatch.setattr(worker, "Sender", lambda line: senders.append(Sender(line)) or senders[0])
    mine, theirs = socket.socketpair()
    thread = threading.Thread(target=worker.main, args=([str(theirs.detach())],), daemon=True)
    thread.start()
    receiver = Receiver(mine)
    receiver.order(ReadOrder([str(pcaps / "java-transactions.pcap")], Options()))
    while not receiver.receive().over:
        pass
    assert codes == []
    mine.close()
    thread.join(5)
    senders[0].close()
    assert codes == [0]
