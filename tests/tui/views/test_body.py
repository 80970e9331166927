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


@pytest.mark.parametrize("name", ["conversations", "statistics", "throttling"])
@pytest.mark.parametrize("height", [24, 40])
def test_details_below_a_table_have_the_lines_that_it_does_not_fill(name: str, height: int) -> None:
    async def run() -> None:
        app: Any = StubApp(StubBook(NAME), name)
        async with app.run_test(size=(80, height)) as pilot:
            await settle(pilot)
            table, side = app.screen.table, app.screen.query_one("#side")
            spare = table.size.height - table.virtual_size.height
            assert spare <= 1, "no blank lines between them"
            assert spare == 1 or side.region.height <= round(0.4 * app.screen.body.size.height)
            for rows in (height - 6, height):
                await pilot.resize_terminal(80, rows)
                await settle(pilot)
                assert table.size.height - table.virtual_size.height <= 1

    asyncio.run(run())
