"""Whatever a part of the screen does wrong, the session lives: any method of any view, window or pane may raise.

Each method in its turn is given a body that raises, and a person goes on: keys, the mouse, another size, leaving. Then the list
has its rows and answers keys. KCAP_LAWS=deep tries every method; else it is those that a screen lives by.
"""

import asyncio
import functools
import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kcap.tui.actions import ExchangeActions
from kcap.tui.browser import Browser
from kcap.tui.column_chooser import ColumnChooser
from kcap.tui.finder import Finder
from kcap.tui.followed_stream import FollowedStream
from kcap.tui.menu import Menu, Prompt, TextWindow
from kcap.tui.panes.bytes import Bytes
from kcap.tui.panes.detail import Detail
from kcap.tui.panes.exchange import ExchangePane
from kcap.tui.panes.exchanges import ExchangeList
from kcap.tui.panes.filter_bar import FilterBar, Line
from kcap.tui.panes.timeline import TimeStrip
from kcap.tui.views import VIEWS, load
from kcap.tui.views.body import Body
from kcap.tui.views.ladder import Ladder
from kcap.tui.views.picture import Picture
from kcap.tui.views.screen import View
from kcap.tui.views.styled_lines import StyledText
from kcap.tui.views.table import SheetTable
from kcap.tui.views.view_actions import ViewActions
from tests.tui.conftest import collects_rarely, kept_memory
from tests.tui.driving import opened, settle

__all__ = ["collects_rarely", "kept_memory"]

pytestmark = pytest.mark.slow
DEEP = os.environ.get("KCAP_LAWS") == "deep"
WORDS = "a fault on purpose"
IN_VIEW = ("2", "down", "s", "d", "d", "tab", "y") + DEEP * ("right", "z", "w", "b", "l", "escape", "right_square_bracket")
IN_LIST = ("j", "enter", "right", "tab", "l", "x", "slash", "a", "escape") + DEEP * ("m", "s", "asterisk", "tab", "escape")
WINDOWS = {TextWindow: "f1", Menu: "f", Prompt: "semicolon", Finder: "colon", ColumnChooser: "c", FollowedStream: "w"}
IN_WINDOW = ("down", "space", "x")
CASES: dict[str, tuple[tuple[type, ...], tuple[str, ...], tuple[str, ...]]] = {
    **{name: ((load(name),), (key,), IN_VIEW) for name, (key, _, _) in VIEWS.items()},
    "a view": ((View, Body, ViewActions, SheetTable, Picture, StyledText), (VIEWS["statistics"][0],), IN_VIEW),
    **{kind.__name__: ((kind,), (key,), IN_WINDOW) for kind, key in WINDOWS.items()},
    "list": ((ExchangeList, TimeStrip), (), IN_LIST),
    "panes": ((ExchangePane, Detail, Bytes), (), IN_LIST),
    "bar": ((FilterBar, Line), (), IN_LIST),
    "main": ((Browser, ExchangeActions), (), IN_LIST),
}
"""Name -> classes whose methods fail, keys that lead there, keys that are pressed there."""
FIRST = {
    "on_unmount",
    "compose",
    "on_mount",
    "page",
    "look",
    "check_action",
    "render_line",
    "render",
    "paint",
    "cells",
}
"""What fails in a short search."""
UNUSED = {
    Ladder: {"action_shift", "action_filter"}, View: {"page"}, Browser: {"worked", "begun", "look"},
}  # fmt: skip
"""What this capture has no need of; and what bears the list itself: that it has begun, looks on, has its rows in order."""


MAIN = ("list", "panes", "bar", "main")
"""What is on the screen from the start."""


def methods(case: str) -> list[tuple[type, str]]:
    """What may fail: (class, method)."""
    found = [
        (kind, name) for kind in CASES[case][0] for name, what in vars(kind).items()
        if (inspect.isfunction(what) or isinstance(what, property)) and name not in UNUSED.get(kind, ())
        and not (case in MAIN and name in ("compose", "on_mount"))
    ]  # fmt: skip
    return [one for one in found if DEEP or (one[1] in FIRST and (one[1] != "page" or case == "health"))]


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings and tracebacks of the test's own."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))


@contextmanager
def failing(kind: type, name: str, hits: list[str]) -> Iterator[None]:
    """A method that raises, also where it was registered as a handler."""
    old = vars(kind)[name]
    inner = old.fget if isinstance(old, property) else old

    @functools.wraps(inner)
    def fault(*_: Any, **__: Any) -> Any:
        hits.append(f"{kind.__name__}.{name}")
        raise RuntimeError(WORDS)

    handlers = list(vars(kind).get("_decorated_handlers", {}).values())
    setattr(kind, name, property(fault) if isinstance(old, property) else fault)
    for entries in handlers:
        entries[:] = [(fault if method is inner else method, selectors) for method, selectors in entries]
    try:
        yield
    finally:
        setattr(kind, name, old)
        for entries in handlers:
            entries[:] = [(inner if method is fault else method, selectors) for method, selectors in entries]


async def used(pilot: Any, keys: tuple[str, ...]) -> None:
    """What a person does on a screen."""
    await pilot.press(*keys)
    for part in ("#main", "ExchangeList", "#side", "OptionList"):
        found = list(pilot.app.screen.query(part))
        if found and found[0].region.area:
            await pilot.click(found[0], offset=(8, 2))
    await pilot.resize_terminal(130, 40)
    await pilot.press("enter")


@pytest.mark.parametrize("case", [case for case in CASES if methods(case)])
def test_the_session_outlives_any_fault(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, way, keys = CASES[case]

    async def run() -> None:
        async with opened("node-platformatic.pcap") as pilot:
            app = pilot.app
            rows = len(app.view)
            monkeypatch.setattr(type(app), "is_headless", property(lambda _self: False))  # else nothing is painted
            for kind, name in methods(case):
                hits: list[str] = []
                with failing(kind, name, hits):
                    for part in (pilot.press(*way), used(pilot, keys)):
                        try:
                            await part
                        except (
                            RuntimeError
                        ) as error:  # the pilot paints where a timer does in a terminal; the app sees that one's
                            app._handle_exception(error)
                    app.to_list()
                    for _ in range(40):  # a screen that is left is unmounted when its messages are done
                        await asyncio.sleep(0.05)
                        if hits:
                            break
                await alive(pilot, rows, f"{kind.__name__}.{name}")
                assert hits or DEEP, f"what a person does comes to {kind.__name__}.{name}"
                assert app.failures or name in ("page", "render_line") or DEEP, f"{kind.__name__}.{name} is reported"
                app.failures.clear()

    asyncio.run(run())


async def alive(pilot: Any, rows: int, after: str) -> None:
    """The list is there, with its rows, and keys move its cursor."""
    app = pilot.app
    app.to_list()
    app.narrow("")
    await pilot.pause()
    assert app.screen is app.browser, after
    app.browser.set_focus(app.browser.listed)
    await pilot.press("end", "home", "j")
    await settle(pilot)
    assert (app.view.cursor, len(app.view)) == (1, rows), after
    assert app._exception is None, after
    assert all(isinstance(error, Exception) for error in app.failures)
