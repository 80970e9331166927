"""Tones become styles of the theme."""

import asyncio
from typing import Any
from unittest.mock import patch

from rich.style import Style
from textual.app import App, ComposeResult

from kcap.tui.views.paint import FILLED, PANE_CSS, PREFIX, text
from kcap.tui.views.sheet import TONES, Line
from kcap.tui.views.styled_lines import StyledText, TextLine
from tests.tui.driving import opened

LINE: Line = [("all well", "good"), (" and ", ""), ("bad", "bad")]


class One(App[None]):
    def compose(self) -> ComposeResult:
        yield StyledText()


def test_styles_of_tones_are_made_when_they_are_painted_and_anew_for_another_theme() -> None:
    async def look() -> None:
        app = One()
        async with app.run_test() as pilot:
            await pilot.pause()
            reported = app.query_one(StyledText)
            assert [name for name in reported._component_styles if name.startswith(PREFIX)] == []
            dark = reported.tone_style("good")
            assert [*reported._component_styles] == ["tone--good"]
            assert reported.tone_style("good") is dark, "it is made once"
            app.theme = "textual-light"
            await pilot.pause()
            assert reported.tone_style("good").color not in (None, dark.color)
            app.theme = "textual-dark"
            await pilot.pause()
            assert reported.tone_style("good") == dark

    asyncio.run(look())


def test_a_line_of_a_fixed_height_moves_nothing_when_its_text_changes() -> None:
    async def look() -> None:
        async with opened("node-platformatic.pcap") as pilot:
            app: Any = pilot.app
            laid: list[bool] = []
            status = app.browser.query_one("#status", TextLine)
            with patch.object(status, "refresh", lambda *_, layout=False: laid.append(layout)):
                status.set_text("another")
                status.set_text("another")
            assert laid == [False], "one paint, no layout"

    asyncio.run(look())


def test_every_tone_has_a_style_of_its_own_and_no_background() -> None:
    async def look() -> None:
        app = One()
        async with app.run_test() as pilot:
            await pilot.pause()
            reported = app.query_one(StyledText)
            styles = [reported.tone_style(tone) for tone in TONES]
            assert styles[0] == Style()
            assert all(style.bgcolor is None for style in styles)
            assert len({str(style) for style in styles}) >= len(TONES) - 1, "three shades of bars may meet in one theme"
            assert reported.tone_style("bad").bold, "what is bad stands out without colors too"
            assert text(reported, [LINE, LINE]).plain == "all well and bad\nall well and bad"

    asyncio.run(look())


def test_every_tone_of_a_pane_has_a_style_in_every_theme() -> None:
    """Law: tones for rows exist; a line keeps its words and has its width."""
    assert all(f".tone--{tone} " in PANE_CSS for tone in TONES if tone)

    async def look() -> None:
        async with opened("node-platformatic.pcap") as pilot:
            app: Any = pilot.app
            pane = app.browser.listed
            for theme in app.available_themes:
                app.theme = theme
                await pilot.pause()
                styles = {tone: pane.tone_style(tone) for tone in (*TONES, *FILLED)}
                assert styles[""] == Style()
                assert styles["bad"] != styles["good"]
                assert all((styles[tone].bgcolor is not None) == (tone in FILLED) for tone in styles)
                strip = pane.strip([("one ", "bad"), ("two", "")], 12, Style())
                assert (strip.text, strip.cell_length) == ("one two     ", 12)

    asyncio.run(look())
