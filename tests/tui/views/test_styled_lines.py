"""Lines on the screen."""

import asyncio
from typing import Any

from rich.text import Text
from textual.app import App, ComposeResult

from kcap.tui.views.styled_lines import StyledText, TextLine
from tests.tui.views.stub import lines


class One(App[None]):
    def compose(self) -> ComposeResult:
        yield StyledText()


def test_it_shows_what_it_was_told_last() -> None:
    async def run() -> None:
        app = One()
        async with app.run_test(size=(30, 6)) as pilot:
            reported = app.query_one(StyledText)
            reported.set_lines([[("one", "good")], [("two", "")], [("three", "bad")]])
            await pilot.pause()
            assert reported.size.height == 3
            reported.set_lines([[("[red]all", "bold"), (" of it", "")]])
            await pilot.pause()
            assert (reported.size.height, lines(app)[0]) == (1, "[red]all of it")

    asyncio.run(run())


def test_what_is_said_again_paints_nothing() -> None:
    class Counting(TextLine):
        painted = 0

        def render(self) -> Any:
            Counting.painted += 1
            return super().render()

    class Other(App[None]):
        def compose(self) -> ComposeResult:
            yield Counting()

    async def run() -> None:
        app = Other()
        async with app.run_test(size=(30, 6)) as pilot:
            said = app.query_one(Counting)
            said.set_text(Text("one", "bold"))
            await pilot.pause()
            lines(app)
            painted = Counting.painted
            for _ in range(5):
                said.set_text(Text("one", "bold"))
                await pilot.pause()
                lines(app)
            assert Counting.painted == painted
            said.set_text(Text("one", "dim"))
            await pilot.pause()
            lines(app)
            assert Counting.painted > painted, "another style is another text"

    asyncio.run(run())
