"""Columns of the user's choice."""

import asyncio
from typing import Any

import pytest

from kcap.tui.list_columns import DEFAULTS
from tests.tui.driving import LARGE, lines, opened, press

pytestmark = pytest.mark.usefixtures("fresh_settings")


def test_columns_are_chosen_ordered_and_given_up() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=LARGE) as pilot:
            app: Any = pilot.app
            await press(pilot, "c", "down", "space", "home", "J", "enter")
            assert app.view.chosen
            assert "client" not in app.view.names
            assert app.view.names[:2] == ["source", "time"]
            assert next(line for line in lines(app) if "Latency" in line).split()[:3] == ["Client", "address", "Time▲"]
            await press(pilot, "c", "tab", *"removed", "tab", "tab")
            await press(pilot, "escape")
            await press(pilot, "c", "r")
            assert not app.view.chosen
            assert app.view.names == list(DEFAULTS)

    asyncio.run(run())
