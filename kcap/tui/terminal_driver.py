"""Textual's terminal driver, extended for terminals that go away, stopped processes, and keys that arrive in one read.

In: bytes of the terminal. Out: the same events as Textual's driver, and the output of the screens. Law: no thread waits for a
terminal that is gone: the app exits. One thread reads the terminal. Escape and the key after it are two keys.
"""

import errno
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import IO, Any, Final

from textual import events
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

from kcap.runtime import give_up

ESCAPE: Final = "\x1b"
LONGER: Final = "[Ofb"
"""Characters that continue an escape sequence of a terminal: CSI and SS3 (ECMA-48), and the keys that move by words."""
HANGUP: Final = 128 + signal.SIGHUP
"""Exit code of a program ended by SIGHUP."""


class KeyParser(XTermParser):
    """Parses Alt and a key as Escape and the key: kcap has no key with Alt, and both are the same bytes."""

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        if len(sequence) == 2 and sequence[0] == ESCAPE and sequence[1] not in LONGER:
            alt, sequence = True, sequence[1]
        if alt:
            yield events.Key("escape", ESCAPE)
        yield from super()._sequence_to_key_events(sequence)


class LastingFile:
    """A file that accepts writes even if the terminal is gone: Textual's writing thread would otherwise end with an exception,
    and all others would wait for room in its queue."""

    def __init__(self, file: IO[str], gone: Callable[[], None]) -> None:
        """`gone` is called after each failed write, from the writing thread."""
        self._file, self._gone = file, gone

    def write(self, text: str) -> int:
        """Writes text, or drops it."""
        try:
            return self._file.write(text)
        except (OSError, ValueError) as error:
            self._drop(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._file.flush()
        except (OSError, ValueError) as error:
            self._drop(error)

    def _drop(self, error: Exception) -> None:
        """Drops pending text. The number of a closed descriptor may belong to another file by now."""
        if isinstance(error, OSError) and error.errno != errno.EBADF:
            with suppress(OSError):
                give_up(self._file.fileno())
        self._gone()

    def fileno(self) -> int:
        return self._file.fileno()


class TerminalDriver(LinuxDriver):
    def __init__(self, app: App[Any], **settings: Any) -> None:
        super().__init__(app, **settings)
        self._file: Any = LastingFile(self._file, self._left)

    def _left(self) -> None:
        """Handles the loss of the terminal: stops the thread that reads it, which would see its end forever, and
        exits the app."""
        self.exit_event.set()
        with suppress(RuntimeError):  # the loop is closed: the app is exiting
            self._loop.call_soon_threadsafe(lambda: self._app.exit(return_code=HANGUP))

    def _sigcont_application(self, *_: Any) -> None:
        """Resumes after a stop. A terminal that hangs up sends SIGCONT as well (tty_ioctl(4)), without a stop before it:
        resuming then would start a second thread that reads keys."""
        if self._must_signal_resume:
            super()._sigcont_application()
        else:
            self._app.call_later(self._app.refresh)


setattr(linux_driver, "XTermParser", KeyParser)  # noqa: B010 - the driver makes its parser by this name
