"""The other process of a reading, seen from the one that wants its rows: started, received from, ended.

In: a `ReadOrder`. Out: `Step`s. Law: the process is gone when it is closed, and when this process ends in whatever way; Ctrl-C
on the terminal does not reach it, so that this process alone decides.
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
"""Not `-m`: what is sent must be of the same modules at both ends. -P: the user's folder is no place for modules."""
ROOT: Final = Path(__file__).parents[2]
END_SECONDS: Final = 2.0
"""What a process that closed its socket may take to end."""


class WorkerProcess:
    """A process that waits for its order, or reads."""

    def __init__(self) -> None:
        """Raises OSError where no process can be started."""
        # Python tries the folder for temporary files out, once, with a file of its own that an interrupt would leave behind.
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
        """The end of the line; what it needs is imported while the process starts."""
        from kcap.jobs.transport import Receiver

        return Receiver(self._line)

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def order(self, order: "ReadOrder") -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # `receive` says what became of it
            self._receiver.order(order)

    def receive(self) -> "Step":
        """The next step. Raises CaptureError where the process has ended, and what stopped it."""
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
        """Kills the process, whatever it does; once more changes nothing."""
        self._line.close()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


class _Waiting:
    """A process that was started before anybody knew what it will read: it imports its modules meanwhile."""

    def __init__(self) -> None:
        self.process: WorkerProcess | None = None
        self.owner = 0


_waiting = _Waiting()


def expect(paths: Sequence[str]) -> None:
    """Starts a process for the next reading, which will be one of these files; none for saved tables, which have no packets.
    Where none can be started, the reading does without.
    """
    if _waiting.process is not None and _waiting.owner == os.getpid():
        return
    if not any(map(is_parquet, paths)):
        with suppress(OSError):
            _waiting.process, _waiting.owner = WorkerProcess(), os.getpid()
            atexit.register(dismiss)


def take() -> WorkerProcess | None:
    """The process that waits, or a new one; None where none can be started."""
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
