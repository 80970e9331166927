"""Law: every text has a color and a background of its own and can be read, in every theme, whatever colors a terminal shows."""

import asyncio
from typing import Any

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.theme import BUILTIN_THEMES

from kcap.tui.contrast import DRAWN, LEAST, PALETTES, contrast, in_palettes
from kcap.tui.views import VIEWS
from tests.tui.driving import LARGE, opened, press

WINDOWS = (("f",), ("v",), ("colon",), ("slash", *"api == Fet"), ("f1",), ("c",))
"""Keys that open a window or a line, which Escape closes."""
OTHERS = sorted({*BUILTIN_THEMES} - {"textual-dark", "textual-light", "ansi-dark", "ansi-light"})


def texts(app: Any) -> list[Segment]:
    """What stands on the screen."""
    strips = app.screen._compositor.render_strips()
    return [segment for strip in strips for segment in strip if segment.text.strip(DRAWN)]


def readable(app: Any, where: str) -> None:
    """Asserts it of all texts on the screen."""
    native, palettes = app.native_ansi_color, PALETTES[app.current_theme.dark]
    found = texts(app)
    assert len(found) > 10, where
    for text, style, _ in found:
        style = style or Style()
        assert style.color is not None, (where, text)
        assert style.bgcolor is not None, (where, text)
        if native:
            assert in_palettes(style.color, style.bgcolor, palettes) >= LEAST, (where, text, style)
        else:
            assert not style.color.is_default, (where, text)
            assert not style.bgcolor.is_default, (where, text)
            assert contrast(style.color, style.bgcolor, app.contrast.system) >= LEAST, (where, text, style)


SHOWN = (
    ("textual-dark", "truecolor"), ("ansi-dark", "standard"), ("textual-light", "256"), ("ansi-dark", "truecolor"),
    ("ansi-light", "standard"),
)  # fmt: skip
"""Themes and the colors of the terminal; neighbors differ in their theme, for what stands there is painted anew for another."""


def test_every_view_and_window_can_be_read() -> None:
    """Each is opened in one of the themes, in turn, and painted again in the others."""

    async def run() -> None:
        async with opened("too-large.pcap", size=LARGE) as pilot:
            views = [(VIEWS[name][0],) for name in VIEWS if name not in ("differences", "compare")]
            for number, keys in enumerate((("j", "enter"), *WINDOWS, *views)):
                for at in range(len(SHOWN)):
                    theme, system = SHOWN[(number + at) % len(SHOWN)]
                    pilot.app.contrast.shown_by(system)
                    pilot.app.theme = theme
                    await press(pilot, *([] if at else keys))
                    readable(pilot.app, f"{keys[0]} in {theme} with {system}")
                if number <= len(WINDOWS):
                    await press(pilot, "escape")

    asyncio.run(run())


@pytest.mark.parametrize("opens", ["enter", "V"])
def test_every_theme_can_be_read_wherever_it_is_chosen(opens: str) -> None:
    async def run() -> None:
        async with opened("too-large.pcap", size=LARGE) as pilot:
            app = pilot.app
            await press(pilot, "j", opens)
            for system in ("truecolor", "256", "standard"):
                app.contrast.shown_by(system)
                for theme in OTHERS:
                    app.theme = theme
                    await pilot.pause()
                    await pilot.pause()
                    readable(app, theme)

    asyncio.run(run())
