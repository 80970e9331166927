"""The tree's keys."""

import asyncio
from typing import Any

import pytest

from tests.tui.driving import LARGE, lines, opened, press

pytestmark = pytest.mark.usefixtures("fresh_settings")


def test_keys_open_and_close() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=LARGE) as pilot:
            app: Any = pilot.app
            outline = app.browser.detail.outline
            await press(pilot, "enter")
            await press(pilot, "right")
            count = len(outline.lines)
            await press(pilot, "left")
            assert len(outline.lines) < count
            await press(pilot, "space")
            assert len(outline.lines) == count
            await press(pilot, "end", "asterisk")
            assert len(outline.lines) > count + 40, "every column of the row"
            await press(pilot, "shift+right")
            await press(pilot, "shift+left", "backspace", "underscore", "home")
            assert len(outline.lines) == count
            await press(pilot, "down", "down")
            assert outline.cursor == 2
            assert outline.current.line[0][0].strip() in "\n".join(lines(app))

    asyncio.run(run())
