"""The panes of the main screen: shown, hidden, sized, focused by keys and the mouse."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kcap.tui.config import read_config
from tests.tui.driving import LARGE, SMALL, opened, press, settle

pytestmark = pytest.mark.usefixtures("fresh_settings")
JAVA = "java-transactions.pcap"
Test = Callable[[Any], Coroutine[Any, Any, None]]


def on_panes(test: Test, size: tuple[int, int], name: str = "node-platformatic.pcap") -> None:
    async def run() -> None:
        async with opened(name, size=size) as pilot:
            await test(pilot)

    asyncio.run(run())


async def drag(pilot: Any, start: tuple[int, int], end: tuple[int, int]) -> None:
    """Moves the mouse from one place of the screen to another, held down."""
    await pilot.mouse_down(offset=start)
    await pilot.hover(offset=((start[0] + end[0]) // 2, (start[1] + end[1]) // 2))
    await pilot.hover(offset=end)
    await pilot.mouse_up(offset=end)
    await settle(pilot)


def parts(app: Any) -> dict[str, Any]:
    """Where the panes are."""
    browser = app.browser
    return {name: browser.query_one(f"#{name}").region for name in ("list", "tree", "dump", "lower")}


def test_edges_are_dragged_at_80x24() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        for wanted in (7, 15):
            await drag(pilot, (30, parts(app)["tree"].y), (30, wanted))
            assert abs(parts(app)["tree"].y - wanted) <= 1
        share = app.look.share
        top = parts(app)["dump"].y
        await drag(pilot, (30, top), (30, top - 2))
        assert abs(parts(app)["dump"].y - (top - 2)) <= 1
        assert app.look.share == share, "only that edge moves"
        reported = read_config()[0]
        assert (reported.share, reported.bytes_share) == (app.look.share, app.look.bytes_share)

    on_panes(test, SMALL)


def test_edges_are_dragged_at_160x50() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        for wanted in (60, 110):
            left = parts(app)["dump"]
            await drag(pilot, (left.x, left.y + 3), (wanted, left.y + 5))
            assert parts(app)["dump"].x == wanted
        assert read_config()[0].bytes_width == 50
        await drag(pilot, (10, parts(app)["tree"].y), (10, 40))
        assert abs(parts(app)["tree"].y - 40) <= 1
        await press(pilot, "vertical_line")
        lower = parts(app)["lower"]
        await drag(pilot, (lower.x, lower.y + 10), (100, 12))
        assert parts(app)["lower"].x == 100
        top = parts(app)["dump"]
        await drag(pilot, (top.x + 9, top.y), (top.x + 9, top.y - 6))
        assert abs(parts(app)["dump"].y - (top.y - 6)) <= 1
        reported = read_config()[0]
        assert (reported.layout, reported.beside_width, reported.bytes_share) == ("columns", 60, app.look.bytes_share)

    on_panes(test, LARGE)


def test_sizes_are_remembered() -> None:
    async def change(pilot: Any) -> None:
        await drag(pilot, (30, parts(pilot.app)["tree"].y), (30, 6))

    async def look(pilot: Any) -> None:
        assert abs(parts(pilot.app)["tree"].y - 6) <= 1

    on_panes(change, SMALL)
    on_panes(look, SMALL)


def test_no_edge_leaves_the_screen() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        await drag(pilot, (30, parts(app)["tree"].y), (30, 0))
        await drag(pilot, (30, parts(app)["tree"].y), (30, 23))
        assert all(region.area for region in parts(app).values())

    on_panes(test, SMALL)


def test_keys_size_the_pane_that_has_the_focus() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        before = parts(app)
        await press(pilot, "plus")
        assert parts(app)["list"].height > before["list"].height
        await press(pilot, "minus", "tab", "tab", "plus")
        after = parts(app)
        assert after["list"] == before["list"]
        assert after["dump"].width > before["dump"].width
        await press(pilot, "backslash")
        assert parts(app)["dump"].width == 160, "alone it takes all, whatever it was given"
        await press(pilot, "backslash", "vertical_line", "plus")
        beside = parts(app)
        assert beside["dump"].height > beside["tree"].height * 0.7
        await press(pilot, "escape", "plus")
        assert parts(app)["lower"].width < beside["lower"].width, "a larger list leaves less"

    on_panes(test, LARGE)


def test_panes() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        await press(pilot, "tab")
        assert app.focused is app.browser.detail
        await press(pilot, "backslash")
        assert app.browser.detail.region.height > 18
        await press(pilot, "escape", "escape")
        assert app.focused is app.browser.listed
        before = app.browser.listed.region.height
        await press(pilot, "plus")
        assert app.browser.listed.region.height > before
        await press(pilot, "b")
        assert not app.browser.hexes.region.area
        await press(pilot, "d")
        assert app.browser.listed.region.height > 18
        await press(pilot, "enter")
        assert app.focused is app.browser.detail, "Enter shows what was hidden"

    on_panes(test, SMALL, JAVA)


def test_a_number_focuses_its_pane_and_shows_it() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        panes = {"1": app.browser.listed, "2": app.browser.detail, "3": app.browser.hexes}
        for keys in (("3",), ("1",), ("d", "2"), ("b", "3"), ("backslash", "1"), ("d", "3")):
            await press(pilot, *keys)
            assert app.focused is panes[keys[-1]]
            assert panes[keys[-1]].region.area

    on_panes(test, SMALL)
