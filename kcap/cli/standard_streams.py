"""Standard input, output and error in any state: closed, full, or without a reader.

Law: a file that a command opens never gets the number of a standard stream. Output that cannot be written gives an exit code
and one line, never a traceback, also when the interpreter flushes its buffers at exit.
"""

import os
import sys
from collections.abc import Sequence
from typing import Final

from kcap.errors import CaptureError
from kcap.output.escaping import visible, visible_lines
from kcap.runtime import give_up

MODES: Final = ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY))
"""Number of a standard stream -> mode in which /dev/null replaces it. Writing to a closed standard output must fail, since
otherwise the output would seem to be written."""


def open_closed() -> None:
    """Occupies the numbers of standard streams that are closed."""
    for number, mode in MODES:
        try:
            os.fstat(number)
        except OSError:
            made = os.open(os.devnull, mode)
            if made != number:
                os.dup2(made, number)
                os.close(made)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def say(message: str) -> None:
    """One line on standard error."""
    say_lines(visible(message))


def say_lines(message: str) -> None:
    """A message on standard error with several lines, such as the fault of a filter."""
    try:
        print(f"kcap: {visible_lines(message)}", file=sys.stderr, flush=True)
    except OSError:
        give_up(2)


def unreadable(failed: Sequence[object]) -> int:
    """Reports the errors of files that could not be read; returns the exit code."""
    for error in failed:
        say(str(error))
    return CaptureError.exit_code if failed else 0
