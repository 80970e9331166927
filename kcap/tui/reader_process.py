"""Controls the reading process: starts it, receives its progress, stops it, receives its spools.

In: a `ReadRequest`. Out: the last `Heard`, file descriptors of the spools of pipes and compressed files. Law: nothing here
waits for the process; it ends with this one.
"""

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Final

from kcap.tui.folders import spill_folder
from kcap.tui.reader_main import Heard, ReadRequest, arguments

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


def begun(order: ReadRequest, stdin: int | None) -> "Process | None":
    """A reading process that reads while what shows its rows is loaded; None where an index may hold them."""
    return None if order.large else Process(replace(order, folder=spill_folder()), stdin)


class Process:
    """A reading process."""

    def __init__(self, order: ReadRequest, stdin: int | None = None) -> None:
        """`stdin`: file descriptor of the pipe that is `-`."""
        self.order = order
        mine, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            arguments(order, theirs.fileno()),
            stdin=subprocess.DEVNULL if stdin is None else stdin,
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
