"""Finds which part of the screen an exception came from, and writes its traceback to a log for the developers.

In: an exception. Out: the screen it came from, the file with its traceback. Law: nothing here raises; no value of the capture
is written, except what the exception's own message contains.
"""

import os
import platform
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from textual.screen import Screen
from textual.widget import Widget

from kcap.folders import state_folder
from kcap.output.grid import clean

LARGEST: Final = 1 << 20
"""Maximum size of the file in bytes; a larger one is overwritten, since nothing else clears it."""


def one_line(error: BaseException) -> str:
    """An exception as one line of text."""
    words = clean(str(error)).strip()
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def place(error: BaseException) -> tuple[object, ...]:
    """What identifies a fault: the type of the exception, and the line that raised it."""
    frames = list(traceback.walk_tb(error.__traceback__))
    return (type(error), frames[-1][0].f_code, frames[-1][1]) if frames else (type(error),)


def _selves(trace: TracebackType | None) -> Iterator[Any]:
    """The objects whose methods are in a traceback, the innermost first."""
    for frame, _ in reversed(list(traceback.walk_tb(trace))):
        yield frame.f_locals.get("self")


def screen_of(part: object) -> Screen[Any] | None:
    """The screen of a widget, even if it is being closed."""
    if not isinstance(part, Widget):
        return None
    return next((node for node in part.ancestors_with_self if isinstance(node, Screen)), None)


def origin(error: BaseException) -> Screen[Any] | None:
    """The screen that an exception came from, by the methods in its traceback; None if no part of a screen is among them."""
    inner = getattr(error, "error", None)
    traces = [one.__traceback__ for one in (inner, error) if isinstance(one, BaseException)]
    return next((found for trace in traces for one in _selves(trace) if (found := screen_of(one)) is not None), None)


def stumbled(part: Widget, error: Exception) -> None:
    """Reports to the app that a widget could not be painted; other apps ignore it."""
    report = getattr(part.app, "stumbled", None)
    if report is not None:
        report(error, part)


def write_fault(error: BaseException, what: str) -> str:
    """Writes a traceback to the log. Returns the file's name with `~`, empty if it cannot be written."""
    import textual

    from kcap import __version__

    path = state_folder() / "faults.log"
    head = (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC  {what}\n"
        f"kcap {__version__}, textual {textual.__version__}, Python {platform.python_version()}, {platform.system()}\n"
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        how = "a" if path.exists() and path.stat().st_size < LARGEST else "w"
        with path.open(how, encoding="utf-8", errors="backslashreplace") as file:
            file.write(head + "".join(traceback.format_exception(error)) + "\n")
    except OSError:
        return ""
    return short(path)


def short(path: Path) -> str:
    """A path with `~` for the user's own folder."""
    home = os.path.expanduser("~")
    text = str(path)
    return f"~{text[len(home) :]}" if home not in ("", "/") and text.startswith(home + os.sep) else text
