"""The details of a view have the size that was chosen, by keys or with the mouse, in every view."""

import asyncio
from typing import Any

import pytest

from tests.tui.views.stub import StubApp, StubBook, settle

NAME = "quota-3.9.pcap"


async def drag(pilot: Any, start: tuple[int, int], end: tuple[int, int]) -> None:
    await pilot.mouse_down(offset=start)
    await pilot.hover(offset=end)
    await pilot.mouse_up(offset=end)
    await settle(pilot)


@pytest.mark.parametrize(("size", "wanted"), [((80, 24), (30, 10)), ((160, 50), (60, 20))])
def test_the_edge_is_dragged_and_holds_for_other_views(size: tuple[int, int], wanted: tuple[int, int]) -> None:
    async def run() -> None:
        app: Any = StubApp(StubBook(NAME), "throttling")
        wide = size[0] > 120

        def edge() -> int:
            region = app.screen.query_one("#side").region
            return int(region.x if wide else region.y)

        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            region = app.screen.query_one("#side").region
            start = (region.x, region.y + 2) if wide else (region.x + 9, region.y)
            await drag(pilot, start, wanted)
            assert abs(edge() - wanted[0 if wide else 1]) <= 1
            assert app.kept == 1
            chosen = edge()
            await pilot.press("E")
            await settle(pilot)
            assert abs(edge() - chosen) <= 1, "views have lines of their own above"
            await pilot.press("plus")
            await settle(pilot)
            assert edge() < chosen - 1
            chosen = edge()
            await pilot.press("minus", "minus")
            await settle(pilot)
            assert edge() > chosen

    asyncio.run(run())
