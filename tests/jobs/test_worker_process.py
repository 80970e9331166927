"""The second process: started, killed, gone with the first one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kcap.analyzer import Options
from kcap.errors import CaptureError
from kcap.jobs import worker_process
from kcap.jobs.messages import ReadOrder
from kcap.jobs.worker_process import WorkerProcess, expect, take


def alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_process_reads_a_capture_and_a_killed_one_is_an_error_that_says_so(pcaps: Path) -> None:
    process = WorkerProcess()
    process.order(ReadOrder([str(pcaps / "node-platformatic.pcap")], Options()))
    step = process.receive()
    while step.batch is None:
        step = process.receive()
    assert step.rows
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(CaptureError, match=r"was killed \(SIGKILL\); --jobs 1"):
        list(iter(process.receive, None))
    process.close()
    process.close()
    assert not alive(process.pid)


def test_a_process_that_waits_is_taken_once_and_goes_with_the_one_that_started_it(pcaps: Path) -> None:
    path = str(pcaps / "node-platformatic.pcap")
    program = f"""
import os, signal
from kcap.jobs.worker_process import _waiting, expect, take
expect([{path!r}])
first = _waiting.process
expect([{path!r}])
assert _waiting.process is first and take() is first and _waiting.process is None
print(first.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == -signal.SIGKILL, run.stderr
    until = time.monotonic() + 5
    while alive(int(run.stdout)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not alive(int(run.stdout))


def test_where_no_process_can_be_started_the_reading_does_without(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> WorkerProcess:
        raise BlockingIOError("RLIMIT_NPROC")

    monkeypatch.setattr(worker_process, "WorkerProcess", refused)
    expect([str(pcaps / "node-platformatic.pcap")])
    assert take() is None
