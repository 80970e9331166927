"""Small windows give back what was chosen."""

import asyncio
from typing import Any

import pytest
from rich.text import Text
from textual.app import App

from kcap.tui.menu import Choice, Menu, Prompt, TextWindow
from tests.tui.driving import screen

CHOICES = (Choice("one", "o", "One"), Choice("two", "t", "Two", "a note"), Choice("no", "n", "No", able=False))


def asked(window: Any, *keys: str) -> Any:
    found: list[Any] = []

    async def run() -> None:
        app: App[None] = App()
        async with app.run_test(size=(60, 20)) as pilot:
            app.push_screen(window, found.append)
            await pilot.pause()
            await pilot.press(*keys)
            await pilot.pause()

    asyncio.run(run())
    return found


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [(["t"], ["two"]), (["enter"], ["one"]), (["down", "enter"], ["two"]), (["escape"], [None]), (["n"], []), (["z"], [])],
)
def test_a_menu(keys: list[str], wanted: list[str | None]) -> None:
    assert asked(Menu("Which", CHOICES, "note"), *keys) == wanted


def test_a_menu_can_be_clicked() -> None:
    async def run() -> None:
        app: App[None] = App()
        found: list[str | None] = []
        async with app.run_test(size=(60, 20)) as pilot:
            app.push_screen(Menu("Which", CHOICES), found.append)
            await pilot.pause()
            await pilot.click("OptionList", offset=(3, 1))
            await pilot.pause()
        assert found == ["two"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("width", "note"), [(100, "no exchange is marked"), (60, "no exchange is marked"), (30, "no exchang…")]
)
def test_a_long_title_does_not_cut_the_notes_of_others(width: int, note: str) -> None:
    long = "Requests without a response, responses without a request"
    choices = (Choice("u", "u", long), Choice("m", "m", "Marked", able=False, why_not="no exchange is marked"))

    async def run() -> None:
        app: App[None] = App()
        async with app.run_test(size=(width, 12)) as pilot:
            app.push_screen(Menu("Which", choices))
            await pilot.pause()
            assert note in screen(app), screen(app)

    asyncio.run(run())


def test_a_prompt() -> None:
    assert asked(Prompt("Name", "ab"), "c", "enter") in (["abc"], ["c"])
    assert asked(Prompt("Name", "", "a note"), "enter") == [None]
    assert asked(Prompt("Name", "ab"), "escape") == [None]


def test_a_text_to_read() -> None:
    assert asked(TextWindow("Words", Text("a\n" * 100)), "escape") == [None]


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (60, 4)])
def test_a_menu_without_room_for_a_line_takes_keys(size: tuple[int, int]) -> None:
    async def run() -> None:
        app: App[None] = App()
        async with app.run_test(size=size) as pilot:
            app.push_screen(Menu("Which", CHOICES))
            await pilot.pause()
            await pilot.press("pagedown", "pageup", "end", "home", "down")
            await pilot.pause()
            assert app.is_running

    asyncio.run(run())
