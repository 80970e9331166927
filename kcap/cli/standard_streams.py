"""Standard input, output and error as a command finds them: closed, full, or without a reader.

Law: a file that a command opens never gets the number of a standard stream; what cannot be written ends with an exit code and
one line, never with a traceback, also when the interpreter flushes its buffers at exit.
"""

import os
import sys
from collections.abc import Sequence
from typing import Final

from kcap.errors import CaptureError
from kcap.output.escaping import visible, visible_lines
from kcap.runtime import give_up

MODES: Final = ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY))
"""Number of a standard stream -> how /dev/null stands in for it. Writing to a closed standard output must fail, or
the output would seem to have gone somewhere."""


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
    """A message on standard error that may have several lines, as the fault of a filter has."""
    try:
        print(f"kcap: {visible_lines(message)}", file=sys.stderr, flush=True)
    except OSError:
        give_up(2)


def unreadable(failed: Sequence[object]) -> int:
    """Says which files could not be read, by their errors; the exit code."""
    for error in failed:
        say(str(error))
    return CaptureError.exit_code if failed else 0
