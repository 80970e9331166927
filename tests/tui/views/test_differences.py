"""The view of differences, by its keys."""

import asyncio
from typing import Any
from unittest.mock import patch

import pytest

from kcap.tui.capture_model import CaptureModel
from tests.tui.driving import PCAPS, opened, press, screen, settle

pytestmark = pytest.mark.usefixtures("fresh_settings")


async def shown(pilot: Any, text: str) -> None:
    for _ in range(300):
        await pilot.pause(0.05)
        pilot.app.screen.look()
        if text in screen(pilot.app):
            return
    raise AssertionError(screen(pilot.app))


def test_a_comparison_says_how_far_it_is_and_escape_cancels_it() -> None:
    async def run() -> None:
        stopped: list[str] = []
        with (
            patch.object(CaptureModel, "compared", lambda *_: False),
            patch.object(CaptureModel, "comparing", lambda *_: "43% of the one before was read"),
            patch.object(CaptureModel, "stop_comparing", lambda _, other: stopped.append(other)),
        ):
            async with opened("quota-3.9.pcap", size=(120, 30)) as pilot:
                await press(pilot, "colon", *"diff /other.pcap", "enter")
                await shown(pilot, "computing: 43% of the one before was read; Esc cancels")
                assert not stopped
                await press(pilot, "escape")
                for _ in range(100):
                    await pilot.pause(0.05)
                    if stopped:
                        break
                assert stopped == ["/other.pcap"]

    asyncio.run(run())


def test_the_key_prompts_for_the_other_capture_and_the_command_names_it() -> None:
    async def run() -> None:
        async with opened("quota-3.9.pcap", size=(120, 30)) as pilot:
            app: Any = pilot.app
            await press(pilot, "D")
            assert "Compare with the capture" in screen(app)
            await press(pilot, *str(PCAPS / "quota-0.10.pcap"), "enter")
            await shown(pilot, "is new")
            assert "quota-0.10.pcap before, quota-3.9.pcap after" in screen(app)
            await settle(pilot)
            with patch.object(CaptureModel, "differences", side_effect=AssertionError("it is read for each look")):
                for _ in range(3):
                    app.screen.look()
                    await pilot.pause(0.05)
            await press(pilot, "2")
            assert "count before" in screen(app)
            await press(pilot, "escape", "colon", *"diff /nothing.pcap", "enter")
            await shown(pilot, "no such file")
            await settle(pilot)

    asyncio.run(run())
