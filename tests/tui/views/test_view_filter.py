"""A view narrows itself: by a typed filter, a quick filter, the cell under the cursor."""

import asyncio
from typing import Any

from tests.tui.driving import notified, opened, press, screen


def test_a_filter_that_is_set_in_a_view_holds_there_and_in_the_list() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            app: Any = pilot.app
            await press(pilot, "C")
            view = app.screen
            await press(pilot, "slash", *"api == Produce", "enter")
            assert app.screen is view, "the view stays"
            assert app.book.filter_text == "api == Produce"
            assert "filter api == Produce" in screen(app).splitlines()[0]
            await press(pilot, "f", "x")
            assert (app.screen, app.book.filter_text) == (view, "")
            await press(pilot, "a")
            kept = app.book.filter_text
            assert kept
            assert app.screen is view
            await press(pilot, "f", "x", "exclamation_mark")
            assert app.book.filter_text == f"!({kept})"
            await press(pilot, "f", "x", "slash", *"api ==", "enter")
            assert app.book.filter_text == ""
            assert notified(app), "a filter that cannot be read says so"
            await press(pilot, "slash", *"api == Fetch", "enter", "escape")
            assert app.browser.bar.line.value == "api == Fetch"

    asyncio.run(run())


def test_a_cell_without_exchanges_says_so() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            await press(pilot, "H", "a")
            assert pilot.app.book.filter_text == ""
            assert "no filter belongs to this cell" in notified(pilot.app)

    asyncio.run(run())
