"""The worker process as seen by the process that needs its rows: it is started, its steps are received, and it is ended.

In: a `ReadOrder`. Out: `Step`s. Law: the worker is gone when it is closed, and when this process ends in any way. Ctrl-C in the
terminal does not reach it, so that only this process decides.
"""

import atexit
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kcap.errors import CaptureError
from kcap.inputs import is_parquet

if TYPE_CHECKING:
    from kcap.jobs.messages import ReadOrder, Step
    from kcap.jobs.transport import Receiver

START: Final = "import sys; sys.path.insert(0, sys.argv[1]); from kcap.jobs.worker import main; main(sys.argv[2:])"
"""`-m` is not used, because objects that are sent must be of the same modules at both ends. -P: the user's folder is no place
for modules.
"""
ROOT: Final = Path(__file__).parents[2]
END_SECONDS: Final = 2.0
"""Time that a process that closed its socket may take to end, seconds."""


class WorkerProcess:
    """A process that waits for its order, or reads."""

    def __init__(self) -> None:
        """Raises OSError if no process can be started."""
        # Python tests the folder for temporary files once, with a file of its own that an interrupt would leave behind.
        tempfile.gettempdir()
        mine, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", START, str(ROOT), str(theirs.fileno())],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True,
                )  # fmt: skip
            except BaseException:
                mine.close()
                raise
        self._line = mine

    @cached_property
    def _receiver(self) -> "Receiver":
        """The end of the socket for receiving. The modules that it needs are imported while the process starts."""
        from kcap.jobs.transport import Receiver

        return Receiver(self._line)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def order(self, order: "ReadOrder") -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # `receive` reports what became of the process
            self._receiver.order(order)

    def receive(self) -> "Step":
        """The next step. Raises CaptureError if the process has ended, or the error that stopped it."""
        try:
            step: Step = self._receiver.receive()
        except (EOFError, ConnectionResetError, BrokenPipeError):
            raise CaptureError(f"the process that analyzes packets {self._how_it_ended()}; --jobs 1 reads without it") from None
        if step.error is not None:
            raise step.error
        return step

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return "does not answer"
        return f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended early (exit code {code})"

    def close(self) -> None:
        """Kills the process, whatever it is doing. Further calls have no effect."""
        self._line.close()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


class _Waiting:
    """A process that was started before it is known what it will read. It imports its modules in that time."""

    def __init__(self) -> None:
        self.process: WorkerProcess | None = None
        self.owner = 0


_waiting = _Waiting()


def expect(paths: Sequence[str]) -> None:
    """Starts a process for the next pass, which will read one of these files; none for saved tables, which have no packets. If
    no process can be started, the pass works without one.
    """
    if _waiting.process is not None and _waiting.owner == os.getpid():
        return
    if not any(map(is_parquet, paths)):
        with suppress(OSError):
            _waiting.process, _waiting.owner = WorkerProcess(), os.getpid()
            atexit.register(dismiss)


def take() -> WorkerProcess | None:
    """The process that waits, or a new one; None if none can be started."""
    if _waiting.process is None or _waiting.owner != os.getpid():
        try:
            return WorkerProcess()
        except OSError:
            return None
    found, _waiting.process = _waiting.process, None
    return found


def dismiss() -> None:
    """Ends the process that waits."""
    found, _waiting.process = _waiting.process, None
    if found is not None and _waiting.owner == os.getpid():
        found.close()
