"""The line of keys: whole keys, as many as there is room for, and clicks do what keys do."""

import asyncio
import gc
from typing import Any
from weakref import WeakSet

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.widgets._footer import FooterKey

from kcap.tui.keys import Keys
from tests.tui.views.stub import lines

WORDS = ("First", "Second", "Third one", "Fourth")


class Keyed(App[None]):
    """An app with some keys."""

    BINDINGS = [Binding(key, f"press('{key}')", word) for key, word in zip("abcd", WORDS)]  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.pressed: list[str] = []

    def compose(self) -> ComposeResult:
        yield Keys()

    def action_press(self, key: str) -> None:
        self.pressed.append(key)


@pytest.mark.parametrize("width", [5, 12, 20, 33, 34, 46, 80])
def test_keys_are_whole_or_not_there(width: int) -> None:
    async def run() -> None:
        app = Keyed()
        async with app.run_test(size=(80, 10)) as pilot:
            await pilot.resize_terminal(width, 10)
            await pilot.pause(0.05)
            told = lines(app)[-1].split()
            fits = [word for at, word in enumerate(WORDS) if sum(len(one) + 4 for one in WORDS[: at + 1]) <= width]
            assert " ".join(told) == " ".join(f"{key} {word}" for key, word in zip("abcd", fits))

    asyncio.run(run())


def test_a_click_is_a_key() -> None:
    async def run() -> None:
        app: Any = Keyed()
        async with app.run_test(size=(80, 10)) as pilot:
            await pilot.pause()
            await pilot.click("Keys", offset=(lines(app)[-1].index("Second"), 0))
            await pilot.pause()
            assert app.pressed == ["b"]

    asyncio.run(run())


def test_keys_that_were_removed_are_forgotten() -> None:
    """Views are opened for hours, and each brings its own keys."""

    async def run() -> None:
        app = Keyed()
        async with app.run_test(size=(80, 10)) as pilot:
            await pilot.pause()
            line = app.query_one(Keys)
            seen: WeakSet[FooterKey] = WeakSet(app.query(FooterKey))
            for _ in range(10):
                line.refresh(recompose=True)
                await pilot.pause()
                seen.update(app.query(FooterKey))
            gc.collect()
            assert len(seen) <= 2 * len(app.query(FooterKey)) == 2 * len(WORDS)

    asyncio.run(run())
