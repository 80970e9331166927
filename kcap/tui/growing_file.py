"""Follows a file that is still being written, as a pipe that continues while the file grows.

In: a path. Out: standard input, from which the file's bytes come. Law: byte positions of the pipe are those of the file.
"""

import os
import threading
import time
from typing import Final

from kcap.capture.beginnings import compression
from kcap.limits import COPIED_AT_ONCE

LOOK_SECONDS: Final = 0.1
HEAD_BYTES: Final = 16


def grows(path: str, seconds: float, *, requested: bool) -> bool:
    """Whether a path is a file to follow: one that was written to within so many seconds, or any file if `requested`.

    A compressed file is read as it is: its end is not where its bytes end.
    """
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            if compression(file.read(HEAD_BYTES)) is not None:
                return False
        return requested or time.time() - os.path.getmtime(path) < seconds
    except OSError:
        return False


def follow(path: str, stop: threading.Event, quiet_seconds: float | None) -> threading.Thread:
    """Makes the file standard input. `quiet_seconds`: it is complete when it has not grown for so long, None for never."""
    reader, writer = os.pipe()
    os.dup2(reader, 0)
    os.close(reader)
    thread = threading.Thread(target=pump, args=(path, writer, stop, quiet_seconds), daemon=True)
    thread.start()
    return thread


def pump(path: str, writer: int, stop: threading.Event, quiet_seconds: float | None) -> None:
    grown = time.monotonic()
    try:
        with open(path, "rb", buffering=0) as file, open(writer, "wb", buffering=0) as pipe:
            while not stop.is_set():
                data = file.read(COPIED_AT_ONCE)
                if data:
                    grown = time.monotonic()
                    _write(pipe.fileno(), data)
                elif quiet_seconds is not None and time.monotonic() - grown >= quiet_seconds:
                    return
                else:
                    time.sleep(LOOK_SECONDS)
    except OSError:
        return


def _write(number: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(number, rest) :]
