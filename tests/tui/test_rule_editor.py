"""Editing coloring rules."""

import asyncio
from typing import Any

import pytest

from tests.tui.driving import notified, opened, press, screen

pytestmark = pytest.mark.usefixtures("fresh_settings")


def test_rules_are_added_edited_moved_and_removed() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=(100, 30)) as pilot:
            app: Any = pilot.app
            await press(pilot, "o", "r", "e")
            assert "own rules cannot be edited" in notified(app)
            await press(pilot, "a", *"one", "tab", *"api == ", "enter")
            assert "rule 'one'" in screen(app), "what does not parse is not taken"
            await press(pilot, *"Fetch", "tab", *"f", "enter", "a", *"two", "tab", *"api == Produce", "enter")
            assert [rule["name"] for rule in app.screen.rules] == ["two", "one"]
            await press(pilot, "J")
            assert [rule["name"] for rule in app.screen.rules] == ["one", "two"]
            await press(pilot, "x", "e", *"three", "enter", "enter")
            assert [(rule["name"], rule["sign"]) for rule in app.look.rules] == [("three", "f")]
            assert app.screen is app.browser
            await press(pilot, "o", "r", "x", "escape")
            assert len(app.look.rules) == 1, "Escape changes nothing"

    asyncio.run(run())
