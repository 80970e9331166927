"""Controls the reading process: starts it, receives its progress, stops it, receives its spools.

In: a `ReadRequest`. Out: the last `ReaderStatus`, file descriptors of the spools of pipes and compressed files. Law: nothing
here blocks on the process; it ends with this one.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final

from kcap.runtime import taken_signals
from kcap.tui.reader_main import ReaderStatus, ReadRequest, arguments, serve

LEFT: Final = "the reading process ended unexpectedly"


class KeptSpool:
    """A spool of the reading process, read here through a descriptor of the same file."""

    def __init__(self, number: int) -> None:
        self.number = number
        """File descriptor."""
        self.kept = 0

    def read(self, size: int, at: int) -> bytes:
        """Bytes at an offset, as far as they were retained."""
        return os.pread(self.number, min(size, max(self.kept - at, 0)), at)

    def close(self) -> None:
        os.close(self.number)


class ReadBefore:
    """Stands for a reading process whose result is in an index."""

    def __init__(self, status: ReaderStatus) -> None:
        self.status = status
        self.spools: dict[int, KeptSpool] = {}
        self.watch: Callable[[], None] | None = None

    def start(self) -> None:
        """Announces that all has been read."""
        if self.watch is not None:
            self.watch()

    def stop(self) -> None:
        """Has nothing to stop."""

    def wait(self, _seconds: float | None = None) -> bool:
        """Returns at once: there is no process."""
        return True

    def close(self) -> None:
        """Has nothing to close."""


def serve_as_copy(order: ReadRequest, streams: tuple[int, int, int], line: socket.socket, other: socket.socket) -> None:
    """Runs the reading process in a copy of this one. `streams` become its standard streams; `line` is its end of the socket,
    `other` this one's.

    It may be made only while this process has a single Python thread: in the copy, a lock held by another thread is never
    released. From Python 3.12 on, a DeprecationWarning is raised if a library has threads; Python does not show it by default.
    """
    os.setsid()
    for ending in taken_signals():
        signal.signal(ending, signal.SIG_DFL)
    other.close()
    for standard, given in enumerate(streams):
        os.dup2(given, standard)
    serve(order, Connection(line.detach()))


class Process:
    def __init__(self, order: ReadRequest, stdin: int | None = None, *, forks: bool = False) -> None:
        """`stdin`: file descriptor of the pipe for `-`. `forks`: this process has one thread, and may be copied."""
        self.order = order
        mine, theirs = socket.socketpair()
        reader, errors = os.pipe()
        self._kill: Callable[[], None]
        self._join: Callable[[], object]
        self._errors = open(reader, "rb")  # noqa: SIM115 - as long as the process
        nothing = os.open(os.devnull, os.O_RDWR)
        given = nothing if stdin is None else stdin
        if forks and sys.platform == "linux":  # libraries of macOS cannot be used in a copy
            given_all = order, (given, nothing, errors), theirs, mine
            copied = get_context("fork").Process(target=serve_as_copy, args=given_all, daemon=True)
            copied.start()
            self._kill, self._join = copied.kill, copied.join
        else:
            started = subprocess.Popen(
                arguments(order, theirs.fileno()),
                stdin=given,
                stdout=nothing,
                stderr=errors,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
            self._kill, self._join = started.kill, started.wait
        for end in (errors, nothing):
            os.close(end)
        theirs.close()
        self._line = Connection(mine.detach())
        self.status = ReaderStatus()
        self.spools: dict[int, KeptSpool] = {}
        self.watch: Callable[[], None] | None = None
        """Called after each message, from a separate thread."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def start(self) -> None:
        """Starts the process and the thread that receives its messages."""
        self._thread.start()

    def _listen(self) -> None:
        try:
            while True:
                message = self._line.recv()
                if isinstance(message, ReaderStatus):
                    for number, kept in message.spools.items():
                        if number in self.spools:
                            self.spools[number].kept = kept
                    self.status = message
                    if message.over:
                        break
                    if self.watch is not None:
                        self.watch()
                else:
                    with socket.socket(fileno=os.dup(self._line.fileno())) as line:
                        _, numbers, _, _ = socket.recv_fds(line, 1, 1)
                    self.spools[message[1]] = KeptSpool(numbers[0])
        except (EOFError, OSError):
            pass
        finally:
            if not self.status.over:
                self.status = replace(self.status, over=True, error=self._last_words())
            self._ended.set()
            if self.watch is not None:
                self.watch()

    def _last_words(self) -> str:
        """The last line that the process wrote to standard error."""
        stderr = self._errors.read().decode(errors="replace").strip()
        return f"{LEFT}: {stderr.splitlines()[-1]}" if stderr else LEFT

    def stop(self) -> None:
        """Requests a stop; the rows read so far remain."""
        try:
            self._line.send("stop")
        except OSError:
            return

    def wait(self, seconds: float | None = None) -> bool:
        """Waits for the process to end; returns whether it did."""
        return self._ended.wait(seconds)

    def close(self) -> None:
        self._kill()
        self._join()
        if self._thread.ident is not None:
            self._thread.join()
        self._line.close()
        self._errors.close()
        for spool in self.spools.values():
            spool.close()
        self.spools.clear()
