"""The app without a terminal: keys in, the screen as text out."""

import atexit
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from traceback import format_exception
from typing import Any

from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from kcap.tui.app import KcapApp
from kcap.tui.capture_model import CaptureModel, read_whole

PCAPS = Path(__file__).resolve().parents[2] / "pcaps"
SMALL, LARGE = (80, 24), (160, 50)
PATIENCE_SECONDS = 60
"""For what comes by itself: other work may have the processor."""


def book_of(*names: str | Path) -> CaptureModel:
    """A book that several tests look at, with all its rows: the filter that a test before left is not that of this one."""
    book = _shared(*names)
    book.narrow("")
    book.ignore(())
    return book


@cache
def _shared(*names: str | Path) -> CaptureModel:
    book = read_whole(*(str(PCAPS / name) for name in names))
    atexit.register(book.close)
    return book


@asynccontextmanager
async def opened(
    *names: str | Path, size: tuple[int, int] = SMALL, only: str = "", judges: bool = False
) -> AsyncIterator[Pilot[Any]]:
    """The app on captures in pcaps/, read to their end. `judges`: with a line of problems, when they have been found."""
    app = KcapApp(book_of(*names), only=only, judges=judges)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        yield pilot
    assert not app.failures, "".join(line for error in app.failures for line in format_exception(error))


async def settle(pilot: Pilot[Any]) -> None:
    """Waits until everything is read and shown."""
    app: Any = pilot.app
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        await pilot.pause(0.02)
        browser, view = app.browser, app.view
        shown = view.current is None or (browser.opened is not None and browser.opened.number == view.current)
        if app.book.done and not view.due and shown and not browser._arranging and not app.keys_wait:
            break
        assert time.monotonic() < until, "nothing comes to its end"
    await pilot.pause()


async def press(pilot: Pilot[Any], *keys: str) -> None:
    """Presses keys, and waits for what comes of them."""
    await pilot.press(*keys)
    await settle(pilot)


def lines(app: Any) -> Sequence[str]:
    """What is on the screen."""
    return ["".join(segment.text for segment in line).rstrip() for line in app.screen._compositor.render_strips()]


def notified(app: Any) -> str:
    """Messages that are shown for a while, or will be in a moment."""
    return "\n".join(one.message for one in app._notifications)


def screen(app: Any) -> str:
    """The same as one text."""
    return "\n".join(lines(app))


def burst(app: Any, *keys: str) -> None:
    """Types keys that come in one read: nothing is handled between them."""
    for key in keys:
        app.post_message(events.Key(_character_to_key(key) if len(key) == 1 else key, key if len(key) == 1 else None))


async def quiet_keys(pilot: Any) -> None:
    """Waits until no key waits."""
    until = time.monotonic() + PATIENCE_SECONDS
    await pilot.pause(0.01)
    while pilot.app.keys_wait:
        assert time.monotonic() < until, "a key is never handled"
        await pilot.pause(0.01)


async def quiet(pilot: Any) -> None:
    """Waits until all keys have been handled, and what comes of them is shown."""
    await quiet_keys(pilot)
    await settle(pilot)
    await pilot.pause(0.05)
