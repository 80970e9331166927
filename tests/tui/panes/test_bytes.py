"""The keys of the bytes."""

import asyncio
from typing import Any

import pytest

from tests.tui.driving import LARGE, opened, press

pytestmark = pytest.mark.usefixtures("fresh_settings")


def test_keys_move_the_cursor() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=LARGE) as pilot:
            app: Any = pilot.app
            app.browser.hexes.focus()
            dump = app.browser.hexes.dump
            await press(pilot, "down", "right")
            assert dump.cursor == 17
            await press(pilot, "up", "left", "left")
            assert dump.cursor == 0
            await press(pilot, "end")
            assert dump.cursor == len(dump.data) - 1
            await press(pilot, "pageup", "home")
            assert dump.cursor == 0

    asyncio.run(run())
