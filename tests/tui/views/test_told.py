"""Lines on the screen."""

import asyncio

from textual.app import App, ComposeResult

from kcap.tui.views.told import Told
from tests.tui.views.stub import lines


class One(App[None]):
    def compose(self) -> ComposeResult:
        yield Told()


def test_it_shows_what_it_was_told_last() -> None:
    async def run() -> None:
        app = One()
        async with app.run_test(size=(30, 6)) as pilot:
            told = app.query_one(Told)
            told.tell([[("one", "good")], [("two", "")], [("three", "bad")]])
            await pilot.pause()
            assert told.size.height == 3
            told.tell([[("[red]all", "bold"), (" of it", "")]])
            await pilot.pause()
            assert (told.size.height, lines(app)[0]) == (1, "[red]all of it")

    asyncio.run(run())
