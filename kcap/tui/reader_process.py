"""Controls the reading process: starts it, receives its progress, stops it, receives its spools.

In: a `ReadRequest`. Out: the last `Heard`, file descriptors of the spools of pipes and compressed files. Law: nothing here
waits for the process; it ends with this one.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Final

from kcap.runtime import taken_signals
from kcap.tui.reader_main import Heard, ReadRequest, arguments, serve

LEFT: Final = "the reading process ended unexpectedly"


class KeptSpool:
    """A spool of the reading process, read here: the same file, by its descriptor."""

    def __init__(self, number: int) -> None:
        self.number = number
        """File descriptor."""
        self.kept = 0

    def read(self, size: int, at: int) -> bytes:
        """Bytes at an offset, as far as they were retained."""
        return os.pread(self.number, min(size, max(self.kept - at, 0)), at)

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self.number)


class ReadBefore:
    """Stands for a reading process whose work an index holds."""

    def __init__(self, heard: Heard) -> None:
        self.heard = heard
        self.spools: dict[int, KeptSpool] = {}
        self.watch: Callable[[], None] | None = None

    def start(self) -> None:
        """Announces that all has been read."""
        if self.watch is not None:
            self.watch()

    def stop(self) -> None:
        """Has nothing to stop."""

    def wait(self, _seconds: float | None = None) -> bool:
        """Ended before it began."""
        return True

    def close(self) -> None:
        """Has nothing to close."""


class Fork:
    """A process that begins as a copy of this one, with all that is loaded by then. The same methods as subprocess.Popen.

    It may be made where this process has one thread of Python alone: the copy of a lock that another one holds stays held.
    """

    def __init__(self, order: ReadRequest, stdin: int, line: socket.socket, other: socket.socket) -> None:
        """`line` is the copy's end of the socket, `other` that of this process."""
        errors, theirs = os.pipe()
        self.returncode: int | None = None
        self.pid = os.fork()
        if not self.pid:
            code = 1
            try:
                os.setsid()
                for ending in taken_signals():
                    signal.signal(ending, signal.SIG_DFL)
                other.close()
                nothing = os.open(os.devnull, os.O_RDWR)
                for standard, given in enumerate((nothing if stdin == subprocess.DEVNULL else stdin, nothing, theirs)):
                    os.dup2(given, standard)
                serve(order, Connection(line.detach()))
                code = 0
            except BaseException:  # noqa: BLE001 - nothing of this process goes on behind it
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(theirs)
        self.stderr = open(errors, "rb")  # noqa: SIM115 - as long as the process

    def poll(self) -> int | None:
        """The exit code, once it has ended."""
        return self._reap(os.WNOHANG)

    def wait(self) -> int | None:
        """The exit code, when it has ended."""
        return self._reap(0)

    def _reap(self, how: int) -> int | None:
        if self.returncode is None:
            found, status = os.waitpid(self.pid, how)
            if found:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal, where it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


class Process:
    """A reading process."""

    def __init__(self, order: ReadRequest, stdin: int | None = None, *, forks: bool = False) -> None:
        """`stdin`: file descriptor of the pipe that is `-`. `forks`: this process has one thread, and may be copied."""
        self.order = order
        mine, theirs = socket.socketpair()
        given = subprocess.DEVNULL if stdin is None else stdin
        self._process: Fork | subprocess.Popen[bytes]
        if forks and sys.platform == "linux":  # libraries of macOS cannot be used in a copy
            self._process = Fork(order, given, theirs, mine)
        else:
            self._process = subprocess.Popen(
                arguments(order, theirs.fileno()),
                stdin=given,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        theirs.close()
        self._line = Connection(mine.detach())
        self.heard = Heard()
        self.spools: dict[int, KeptSpool] = {}
        self.watch: Callable[[], None] | None = None
        """Called after each message, from a thread of its own."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def start(self) -> None:
        """Starts the process and the thread that receives its messages."""
        self._thread.start()

    def _listen(self) -> None:
        try:
            while True:
                message = self._line.recv()
                if isinstance(message, Heard):
                    for number, kept in message.spools.items():
                        if number in self.spools:
                            self.spools[number].kept = kept
                    self.heard = message
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
            if not self.heard.over:
                self.heard = replace(self.heard, over=True, error=self._last_words())
            self._ended.set()
            if self.watch is not None:
                self.watch()

    def _last_words(self) -> str:
        """The last line of the process on standard error."""
        stderr = self._process.stderr.read().decode(errors="replace").strip() if self._process.stderr is not None else ""
        return f"{LEFT}: {stderr.splitlines()[-1]}" if stderr else LEFT

    def stop(self) -> None:
        """Requests a stop; the rows read so far remain."""
        try:
            self._line.send("stop")
        except OSError:
            return

    def wait(self, seconds: float | None = None) -> bool:
        """Waits for the process to end; whether it ended."""
        return self._ended.wait(seconds)

    def close(self) -> None:
        """Kills the process."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        if self._thread.ident is not None:
            self._thread.join()
        self._line.close()
        if self._process.stderr is not None:
            self._process.stderr.close()
        for spool in self.spools.values():
            spool.close()
        self.spools.clear()
