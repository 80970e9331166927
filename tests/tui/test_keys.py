"""The line of keys: whole keys, as many as there is room for, and clicks do what keys do."""

import asyncio
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding

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


async def shown(pilot: Any) -> Keys:
    """The line, once it has its keys: a screen that is mounted does not have them yet."""
    line: Keys = pilot.app.query_one(Keys)
    while not line.entries:
        await pilot.pause(0.01)
    await pilot.pause()
    return line


@pytest.mark.parametrize("width", [5, 12, 20, 33, 34, 46, 80])
def test_keys_are_whole_or_not_there(width: int) -> None:
    async def run() -> None:
        app = Keyed()
        async with app.run_test(size=(80, 10)) as pilot:
            await shown(pilot)
            await pilot.resize_terminal(width, 10)
            await pilot.pause(0.05)
            reported = lines(app)[-1].split()
            fits = [word for at, word in enumerate(WORDS) if sum(len(one) + 4 for one in WORDS[: at + 1]) <= width]
            assert " ".join(reported) == " ".join(f"{key} {word}" for key, word in zip("abcd", fits))

    asyncio.run(run())


def test_help_and_the_way_out_are_shown_where_there_is_no_room_for_all() -> None:
    async def run() -> None:
        app = Keyed()
        app.bind("x", "app.quit", description="Quit")
        async with app.run_test(size=(80, 10)) as pilot:
            await shown(pilot)
            await pilot.resize_terminal(20, 10)
            await pilot.pause(0.05)
            assert lines(app)[-1].split() == ["a", "First", "x", "Quit"]

    asyncio.run(run())


def test_keys_are_shown_before_the_terminal_has_the_focus() -> None:
    async def run() -> None:
        app = Keyed()
        app.set_reactive(App.app_focus, False)
        async with app.run_test(size=(80, 10)) as pilot:
            await shown(pilot)
            assert WORDS[0] in lines(app)[-1]

    asyncio.run(run())


def test_a_click_is_a_key() -> None:
    async def run() -> None:
        app: Any = Keyed()
        async with app.run_test(size=(80, 10)) as pilot:
            await shown(pilot)
            await pilot.click("Keys", offset=(lines(app)[-1].index("Second"), 0))
            await pilot.pause()
            assert app.pressed == ["b"]

    asyncio.run(run())


def test_a_key_that_does_not_work_now_rings_and_does_nothing() -> None:
    async def run() -> None:
        class Half(Keyed):
            rung = 0

            def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
                return None if parameters == ("b",) else True

            def bell(self) -> None:
                self.rung += 1

        app: Any = Half()
        async with app.run_test(size=(80, 10)) as pilot:
            line = await shown(pilot)
            assert [entry.enabled for entry in line.entries] == [True, False, True, True]
            assert [segment.style.dim or False for segment in line.render_line(0)][:4] == [False, False, True, True]
            await pilot.click("Keys", offset=(lines(app)[-1].index("Second"), 0))
            await pilot.pause()
            assert (app.pressed, app.rung) == ([], 1)
            await pilot.click("Keys", offset=(79, 0))
            assert (app.pressed, app.rung) == ([], 1), "behind the last key there is nothing to click"

    asyncio.run(run())


def test_the_key_under_the_mouse_is_highlighted_until_the_mouse_leaves() -> None:
    async def run() -> None:
        app = Keyed()
        async with app.run_test(size=(80, 10)) as pilot:
            line = await shown(pilot)
            plain = list(line.render_line(0))
            await pilot.hover("Keys", offset=(lines(app)[-1].index("Third"), 0))
            await pilot.pause()
            changed = [old.text for old, new in zip(plain, line.render_line(0)) if old != new]
            assert changed == [" c ", "Third one "]
            await pilot.hover(offset=(0, 0))
            await pilot.pause()
            assert list(line.render_line(0)) == plain

    asyncio.run(run())


def test_the_line_is_one_widget() -> None:
    """A widget for each key takes a quarter of the time to the first screen, and of each screen that opens."""

    async def run() -> None:
        app = Keyed()
        async with app.run_test(size=(80, 10)) as pilot:
            await pilot.pause()
            assert not app.query_one(Keys).children

    asyncio.run(run())
