"""A picture in a terminal: a bar is chosen with keys, and followed."""

import asyncio
from typing import Any

from textual import on
from textual.app import App, ComposeResult

from kcap.tui.views.picture import Picture
from kcap.tui.views.sheet import Bars
from tests.tui.views.stub import screen


def bars(count: int, *, upright: bool = False) -> Bars:
    values = list(range(1, count + 1))
    downs = [f"latency_ns == {value}" for value in values]
    return Bars("title", [f"b{value}" for value in values], values, list(map(str, values)), downs, upright=upright)


class One(App[None]):
    def __init__(self, what: Bars) -> None:
        super().__init__()
        self.what = what
        self.chosen: list[Any] = []

    def compose(self) -> ComposeResult:
        yield Picture(self.what)

    @on(Picture.Chosen)
    def took(self, event: Picture.Chosen) -> None:
        self.chosen.append(event.down)


def press(what: Bars, *keys: str, then: Bars | None = None) -> tuple[list[Any], str, Any]:
    async def run() -> tuple[list[Any], str, Any]:
        app = One(what)
        async with app.run_test(size=(60, 20)) as pilot:
            picture = app.query_one(Picture)
            picture.focus()
            await pilot.press(*keys)
            if then is not None:
                picture.set(then)
            await pilot.pause()
            return app.chosen, screen(app), picture.down

    return asyncio.run(run())


def test_keys_choose_and_enter_follows() -> None:
    assert press(bars(5), "down", "down", "enter")[0] == ["latency_ns == 3"]
    assert press(bars(5), "end", "down", "enter")[0] == ["latency_ns == 5"]
    assert press(bars(5), "end", "home", "left", "enter")[0] == ["latency_ns == 1"]


def test_the_chosen_bar_has_a_mark_and_its_words() -> None:
    _, shown, down = press(bars(5, upright=True), "right")
    assert "▸ b2  2" in shown
    assert down == "latency_ns == 2"
    assert "▸b1" in press(bars(5))[1]


def test_fewer_bars_move_the_choice() -> None:
    _, shown, down = press(bars(5), "end", then=bars(2))
    assert down == "latency_ns == 2"
    assert "b3" not in shown


def test_many_bars_are_walked_column_by_column() -> None:
    many = bars(600, upright=True)
    (first,) = press(many, "right", "enter")[0]
    assert first != "latency_ns == 2", "several bars share a column, and a key goes to the next column"


def test_clicks_choose_and_follow() -> None:
    async def run() -> None:
        app = One(bars(5))
        async with app.run_test(size=(60, 20)) as pilot:
            await pilot.click(Picture, offset=(20, 3))
            assert app.query_one(Picture).down == "latency_ns == 3"
            await pilot.click(Picture, offset=(20, 4), times=2)
            await pilot.click(Picture, offset=(20, 0))
            await pilot.pause()
            assert app.chosen == ["latency_ns == 4"]

    asyncio.run(run())
