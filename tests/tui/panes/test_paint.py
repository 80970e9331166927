"""Tones as styles."""

import asyncio
from typing import Any

from rich.style import Style

from kcap.tui.color_rules import TONES
from kcap.tui.panes.paint import CSS, Painter
from tests.tui.driving import opened


def test_every_tone_has_a_style_in_every_theme() -> None:
    """Law: tones for rows exist; a line keeps its words and has its width."""
    assert all(f".tone--{tone} " in CSS for tone in TONES if tone)

    async def run() -> None:
        async with opened("node-platformatic.pcap") as pilot:
            app: Any = pilot.app
            for theme in app.available_themes:
                app.theme = theme
                await pilot.pause()
                painter = Painter(app.browser.listed)
                styles = {tone: painter.style(tone) for tone in (*TONES, "pick", "cell", "cursor")}
                assert styles[""] == Style()
                assert styles["bad"] != styles["good"]
                assert styles["cell"].bgcolor is not None
                strip = painter.strip([("one ", "bad"), ("two", "")], 12, Style())
                assert (strip.text, strip.cell_length) == ("one two     ", 12)

    asyncio.run(run())
