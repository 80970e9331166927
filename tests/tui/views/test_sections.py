"""The line of sections: each has its number at any width, and shows whether there is something in it."""

import asyncio
from typing import Any

import pytest

from tests.tui.views.stub import StubApp, StubBook, lines, settle


def test_sections_with_nothing_in_them_are_dim() -> None:
    async def run() -> None:
        app: Any = StubApp(StubBook("java-transactions.pcap"), "errors")
        async with app.run_test(size=(120, 30)) as pilot:
            await settle(pilot)
            line: Any = app.screen.query_one("#sections").render_line(0)
            dim = {at for at in range(4) if any(f"{at + 1}:" in one.text and one.style and one.style.dim for one in line)}
            assert dim == {at for at, sheet in enumerate(app.screen.shown.sheets) if not sheet.rows and at}
            assert dim

    asyncio.run(run())


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_every_section_is_named_however_narrow_the_screen_is(width: int) -> None:
    async def run() -> None:
        app = StubApp(StubBook("quota-3.9.pcap"), "versions", None)
        async with app.run_test(size=(width, 24)) as pilot:
            await settle(pilot)
            for at in ("1", "6", "3"):
                await pilot.press(at)
                await settle(pilot)
                line = next(line for line in lines(app) if "1:" in line)
                assert all(f" {number}:" in line for number in range(1, 7)), line
                assert {"1": "1:clients ", "6": "6:ranges ", "3": "3:diagnoses "}[at] in f"{line} ", line

    asyncio.run(run())
