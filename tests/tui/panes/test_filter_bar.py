"""The filter bar on its own."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from textual.app import App, ComposeResult

from kcap.tui.panes.filter_bar import FilterBar


class Alone(App[None]):
    """A bar and what it says."""

    def __init__(self) -> None:
        super().__init__()
        self.applied: list[str] = []

    def compose(self) -> ComposeResult:
        yield FilterBar(lambda column: ["billing", "bill two"] if column == "client_id" else [])

    def on_filter_bar_applied(self, event: FilterBar.Applied) -> None:
        self.applied.append(event.text)


def on(test: Callable[[Any, FilterBar], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        app = Alone()
        async with app.run_test(size=(80, 10)) as pilot:
            bar = app.query_one(FilterBar)
            bar.line.focus()
            await pilot.pause()
            await test(pilot, bar)

    asyncio.run(run())


def test_only_filters_are_applied() -> None:
    async def test(pilot: Any, bar: FilterBar) -> None:
        for text, applied in (("api ==", []), ("api == Fetch", ["api == Fetch"]), ("", ["api == Fetch", ""])):
            bar.line.value = text
            await pilot.press("enter")
            await pilot.pause()
            assert pilot.app.applied == applied

    on(test)


def test_offers_go_around() -> None:
    async def test(pilot: Any, bar: FilterBar) -> None:
        await pilot.press(*"client_id == bill")
        seen = []
        for _ in range(3):
            await pilot.press("tab")
            await pilot.pause()
            seen.append(bar.line.value)
        assert seen == ["client_id == billing ", 'client_id == "bill two" ', "client_id == billing "]
        await pilot.press("shift+tab")
        assert bar.line.value == 'client_id == "bill two" '

    on(test)


def test_an_offer_is_clicked() -> None:
    async def test(pilot: Any, bar: FilterBar) -> None:
        await pilot.press(*"client_id == bill")
        await pilot.pause()
        await pilot.click("#help", offset=(len("   billing  ") + 2, 0))
        await pilot.pause()
        assert bar.line.value == 'client_id == "bill two" '
        assert bar.line.has_focus, "typing goes on"
        await pilot.click("#help", offset=(70, 0))
        assert bar.line.value == 'client_id == "bill two" ', "there is none"

    on(test)


def test_history_has_each_filter_once() -> None:
    async def test(pilot: Any, bar: FilterBar) -> None:
        for text in ("api == Fetch", "error", "api == Fetch"):
            bar.force(text)
        assert bar.history == ["error", "api == Fetch"]
        await pilot.press("up", "up", "up")
        assert bar.line.value == "error"
        await pilot.press("down", "down")
        assert bar.line.value == ""

    on(test)


def test_the_caret_points_at_the_fault() -> None:
    async def test(pilot: Any, bar: FilterBar) -> None:
        await pilot.press(*"api == Fetch && nonsens > 1")
        await pilot.pause()
        reported = str(bar.query_one("#help").render())
        assert reported.index("^") == "api == Fetch && nonsens".index("nonsens")
        assert "no field is called 'nonsens'" in reported
        assert bar.has_class("-invalid")

    on(test)
