"""The list: what is painted is what the view says."""

import asyncio
from typing import Any

import pytest

from tests.tui.driving import LARGE, lines, opened, press, screen, settle

pytestmark = pytest.mark.usefixtures("fresh_settings")


def test_moving_shows_every_row() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            app: Any = pilot.app
            seen = [line[3:15] for line in lines(app)[3:11]]
            for _ in range(17):
                await press(pilot, "pagedown")
            assert app.view.cursor == 109
            last = [line[3:15] for line in lines(app)[3:11]]
            await press(pilot, "home")
            assert [line[3:15] for line in lines(app)[3:11]] == seen
            await press(pilot, "end")
            assert [line[3:15] for line in lines(app)[3:11]] == last
            assert not app.view.follow, "there is nothing to come"

    asyncio.run(run())


def test_only_rows_in_sight_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            app: Any = pilot.app
            asked: list[int] = []
            page = type(app.view).page

            def counted(view: Any, first: int, count: int, heads: Any) -> Any:
                asked.append(count)
                return page(view, first, count, heads)

            monkeypatch.setattr(type(app.view), "page", counted)
            await press(pilot, "end", "home")
            assert 0 < sum(asked) < 110

    asyncio.run(run())


def test_marks_and_widths() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=LARGE) as pilot:
            app: Any = pilot.app
            await press(pilot, "m", "m", "g")
            assert [line[:1] for line in lines(app)[4:7]] == ["●", "●", " "]
            await press(pilot, "apostrophe")
            assert app.view.cursor == 1
            await press(pilot, "right", "greater_than_sign")
            width = app.view.widths["client"]
            await press(pilot, "less_than_sign")
            assert app.view.widths["client"] == width - 2

    asyncio.run(run())


def test_a_column_is_dragged_wider_and_elsewhere() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            await test(pilot)

    async def test(pilot: Any) -> None:
        app: Any = pilot.app
        listed = app.browser.listed
        at, start, width = listed.place_of(20)
        name, x = listed.heads[at][0].name, start + width
        await pilot.mouse_down("ExchangeList", offset=(x, 0))
        await pilot.hover("ExchangeList", offset=(x + 5, 0))
        await pilot.mouse_up("ExchangeList", offset=(x + 5, 0))
        await settle(pilot)
        assert {head.name: wide for head, wide in listed.heads}[name] == width + 5
        assert app.look.widths[name] == width + 5, "remembered"
        assert app.view.sort == "time", "dragging an edge sorts nothing"
        names = [head.name for head, _ in listed.heads]
        target = listed.place_of(60)
        await pilot.mouse_down("ExchangeList", offset=(start + 1, 0))
        await pilot.hover("ExchangeList", offset=(target[1] + 1, 0))
        await pilot.mouse_up("ExchangeList", offset=(target[1] + 1, 0))
        await settle(pilot)
        moved = [head.name for head, _ in listed.heads]
        assert moved.index(name) == target[0]
        assert sorted(moved) == sorted(names)
        assert app.look.columns == moved
        assert app.view.sort == "time"

    asyncio.run(run())


def test_the_other_button_offers_filters() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            await test(pilot)

    async def test(pilot: Any) -> None:
        await pilot.click("ExchangeList", offset=(20, 3), button=3)
        await pilot.pause()
        assert "Apply: selected" in screen(pilot.app)
        await pilot.press("1")
        await settle(pilot)
        assert pilot.app.book.filter_text.startswith("client_id == ")

    asyncio.run(run())
