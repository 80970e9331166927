"""The line of latencies by its keys."""

import asyncio
from typing import Any

import numpy as np
import pytest

from kcap.tui.row_index import RowIndex
from tests.tui.driving import LARGE, SMALL, lines, opened, press

pytestmark = pytest.mark.usefixtures("fresh_settings")


def test_a_time_is_chosen_with_keys() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=LARGE) as pilot:
            app: Any = pilot.app
            await app.workers.wait_for_complete()
            await press(pilot)
            assert lines(app)[2].startswith(" latency ")
            assert any(sign in lines(app)[2] for sign in "▃▄▅▆▇█")
            await press(pilot, "x", "end")
            assert "filter by this time" in lines(app)[3]
            assert app.view.cursor > 90, "the list goes along"
            await press(pilot, "home", "space", *["right"] * 40, "enter")
            assert app.book.filter_text.startswith("time >= 1795246932.122282 && time < ")
            assert 0 < len(app.view) < 110
            assert app.focused is app.browser.listed

    asyncio.run(run())


def test_a_picture_gives_back_the_memory_that_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr("kcap.tui.panes.timeline.trim_heap", lambda: made.append(object()))

    async def run() -> None:
        async with opened("java-transactions.pcap", size=LARGE) as pilot:
            await pilot.app.workers.wait_for_complete()
            assert made

    asyncio.run(run())


def test_where_there_is_little_room_it_comes_when_it_is_asked_for() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=SMALL) as pilot:
            app: Any = pilot.app
            assert not app.browser.strip.region.area
            await press(pilot, "x")
            await app.workers.wait_for_complete()
            await press(pilot)
            assert lines(app)[2].startswith(" latency ")
            await press(pilot, "x")
            assert app.focused is app.browser.listed

    asyncio.run(run())


def test_times_of_the_rows_in_sight_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The status line asks ten times a second."""

    async def run() -> None:
        async with opened("java-transactions.pcap", size=LARGE) as pilot:
            app: Any = pilot.app
            await app.workers.wait_for_complete()
            await press(pilot)
            strip, read = app.browser.strip, []
            values = RowIndex.values
            monkeypatch.setattr(RowIndex, "values", lambda self, *asked: read.append(asked) or values(self, *asked))
            seen = []
            for rows in ((3, 90), (3, 90), (109, 50), (3, 90)):
                strip.window(rows)
                times = values(app.view.arranged.rows, "time", np.array(rows)).tolist()
                seen.append(strip.shown == (strip.made.place(min(times)), strip.made.place(max(times))))
            assert seen == [True] * 4
            assert len(read) == 3

    asyncio.run(run())


def test_the_mouse_chooses_a_time() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=LARGE) as pilot:
            app: Any = pilot.app
            await app.workers.wait_for_complete()
            await press(pilot)
            await pilot.mouse_down("TimeStrip", offset=(12, 0))
            await pilot.hover("TimeStrip", offset=(60, 0))
            await pilot.mouse_up("TimeStrip", offset=(60, 0))
            await press(pilot)
            assert "time >= " in app.book.filter_text

    asyncio.run(run())
