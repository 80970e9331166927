"""Texts can be read where a terminal has 256 colors, on dark and on light themes, whatever the terminal's own colors are."""

import asyncio
from typing import Any, Final

import pytest
from rich.color import Color, ColorSystem
from rich.style import Style

from tests.tui.driving import LARGE, opened, press

CONTRAST: Final = {ColorSystem.TRUECOLOR: 2.5, ColorSystem.EIGHT_BIT: 2.2}
"""Least ratio of luminance (WCAG 2.1, contrast ratio) of a letter and its background. Dim texts have less, on purpose."""
PLAIN: Final = frozenset(" ─│┌┐└┘├┤┬┴┼━┃▁▂▃▄▅▆▇█▏▎▍▌▋▊▉·▔▕▀")
"""What is no text: blanks, lines, bars."""


def luminance(color: Color) -> float:
    """Relative luminance (WCAG 2.1), 0 to 1."""
    parts = [part / 255 for part in color.get_truecolor()]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(style: Style, system: ColorSystem) -> float:
    """Contrast of letter and background where the terminal has the colors of a system."""
    assert style.color is not None
    assert style.bgcolor is not None
    one, other = (luminance(color.downgrade(system)) for color in (style.color, style.bgcolor))
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


def texts(app: Any) -> list[tuple[str, Style]]:
    """What stands on the screen, with its style."""
    strips = app.screen._compositor.render_strips()
    return [(segment.text, segment.style or Style()) for strip in strips for segment in strip if set(segment.text) - PLAIN]


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
def test_every_text_has_both_colors_and_can_be_read(theme: str) -> None:
    async def run() -> None:
        async with opened("too-large.pcap", size=LARGE) as pilot:
            pilot.app.theme = theme
            for key in ("j", "enter", "escape", "E", "S"):
                await press(pilot, key)
                found = texts(pilot.app)
                assert len(found) > 20
                for text, style in found:
                    assert style.color is not None, (key, text)
                    assert style.bgcolor is not None, (key, text)
                    assert not style.color.is_default, (key, text)
                    assert not style.bgcolor.is_default, (key, text)
                    if not style.dim:
                        for system, least in CONTRAST.items():
                            assert contrast(style, system) >= least, (key, text, style, system)

    asyncio.run(run())
