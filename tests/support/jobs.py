"""Readings by two processes whose second one is a thread here: it starts at once, and what it sends goes the whole way."""

import socket
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from kcap.analyzer import Options
from kcap.capture_pass import CapturePass
from kcap.columns import TABLES
from kcap.errors import CaptureError
from kcap.jobs import worker_process
from kcap.jobs.messages import ReadOrder, Step
from kcap.jobs.parallel_pass import ParallelPass
from kcap.jobs.transport import Receiver, Sender
from kcap.jobs.worker import Worker
from kcap.table.builder import TableSet
from kcap.table.table_builders import TableRequest


class ThreadedWorker:
    """The interface of `WorkerProcess`."""

    started = 0

    def __init__(self) -> None:
        mine, theirs = socket.socketpair()
        self._line, self._receiver = mine, Receiver(mine)
        self._thread = threading.Thread(target=self._run, args=(theirs,), daemon=True)
        self._thread.start()
        ThreadedWorker.started += 1

    @staticmethod
    def _run(line: socket.socket) -> None:
        sender = Sender(line)
        try:
            Worker(sender).run(sender.order())
            while True:
                sender.listen(wait=True)
        except (EOFError, OSError):
            sender.close()

    def order(self, order: ReadOrder) -> None:
        """As `WorkerProcess`."""
        self._receiver.order(order)

    def receive(self) -> Step:
        """As `WorkerProcess`."""
        step: Step = self._receiver.receive()
        if step.error is not None:
            raise step.error
        return step

    def close(self) -> None:
        """As `WorkerProcess`."""
        self._line.shutdown(socket.SHUT_RDWR)
        self._line.close()
        self._thread.join(10)
        assert not self._thread.is_alive()


@pytest.fixture
def threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second process of every reading is a thread."""
    monkeypatch.setattr(worker_process, "take", ThreadedWorker)


def everything(paths: Sequence[str], options: Options | None = None, *, jobs: int, **more: Any) -> dict[str, Any]:
    """All that a reading tells: the rows of every table, and what stands beside them."""
    kind = ParallelPass if jobs > 1 else CapturePass
    try:
        reading = kind(list(paths), options)
    except CaptureError as error:
        return {"error": str(error)}
    tables = TableSet.of({name: TableRequest.of(name, **more.get(name, {})) for name in TABLES})
    tables.begin(reading)
    made: dict[str, list[Any]] = {name: [] for name in TABLES}
    for name, batch in tables.rows():
        made[name].append(batch)
    found: dict[str, Any] = {}
    for name, batches in made.items():
        finish = tables.finisher(name)
        found[name] = [row for batch in batches for row in finish(batch).to_pylist()]
    return found | {
        "phases": reading.phases, "details": reading.details, "rows": reading.rows, "bytes": reading.bytes,
        "total": reading.total_bytes, "failed": [(path, str(error)) for path, error in reading.failed],
        "sightings": reading.weirds, "files": reading.capture_files, "kafka": reading.analyzer.kafka_connections,
        "not_kept": reading.not_kept, "layouts": reading.files.layouts,
    }  # fmt: skip
