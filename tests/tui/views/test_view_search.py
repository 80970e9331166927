"""Searching in the table of a view."""

import asyncio
from typing import Any

import pytest

from kcap.reports.text import TextColumn
from kcap.tui.views.view_search import next_cell
from tests.tui.driving import notified, opened, press

pytestmark = pytest.mark.usefixtures("fresh_settings")
COLUMNS = [TextColumn("a", lambda row: row["a"]), TextColumn("b", lambda row: row["b"])]
ROWS = [{"a": "Fetch", "b": "x"}, {"a": "Produce", "b": "fetch"}, {"a": "y", "b": "z"}]


def test_the_next_cell_wraps_around() -> None:
    assert next_cell(ROWS, COLUMNS, "FETCH", (0, 0), 1) == (1, 1)
    assert next_cell(ROWS, COLUMNS, "fetch", (1, 1), 1) == (0, 0)
    assert next_cell(ROWS, COLUMNS, "fetch", (2, 1), -1) == (1, 1)
    assert next_cell(ROWS, COLUMNS, "Produce", (1, 0), 1) == (1, 0), "the cell itself comes last"


def test_what_no_cell_has_is_not_found() -> None:
    assert next_cell(ROWS, COLUMNS, "nothing", (0, 0), 1) is None
    assert next_cell([], COLUMNS, "x", (0, 0), 1) is None


def test_keys_search_in_a_view_as_in_the_list() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=(120, 30)) as pilot:
            app: Any = pilot.app
            await press(pilot, "S")
            await app.workers.wait_for_complete()
            await press(pilot, "ctrl+f", *"metadata", "enter")
            first = app.screen.table.current
            assert "Metadata" in str(first)
            await press(pilot, "ctrl+f", *"no such thing", "enter")
            assert "was not found" in notified(app)
            assert app.screen.table.current is first

    asyncio.run(run())
