"""Keeps text legible: moves the color of a text away from its background until the two differ enough.

In: segments as widgets and themes draw them. Out: the same with other text colors where the contrast is too low. Law: each text
has a contrast of at least `LEAST` with its background, in the colors that the terminal can show; backgrounds, lines and bars
stay as they are. Themes of the terminal's own palette keep to that palette, taken for the one that Textual knows.
"""

from functools import lru_cache
from typing import Final

from rich.color import Color, ColorSystem, ColorType
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from textual.color import Color as ThemeColor
from textual.filter import LineFilter

LEAST: Final = 4.5
"""Least contrast of a text (WCAG 2.1, success criterion 1.4.3)."""
STEPS: Final = 20
"""Shades that are tried between a color and white or black."""
DRAWN: Final = " ·" + "".join(map(chr, range(0x2500, 0x25A0)))
"""What is no text: blanks, dots between words, lines (U+2500 to U+257F), bars and fillings (U+2580 to U+259F)."""
SYSTEMS: Final = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT}
"""Rich's name of what a terminal can show, where that is not true color."""
XTERM: Final = TerminalTheme(
    (0, 0, 0), (229, 229, 229),
    [(0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229)],
    [(127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255), (255, 255, 255)],
)  # fmt: skip
"""The sixteen colors as xterm has them (XTerm-col.ad). Its green and cyan are lighter than those that Rich takes for them, on
which white would do; black can be read on both.
"""
BLACK, WHITE = Color.from_rgb(0, 0, 0), Color.from_rgb(255, 255, 255)
OWN: Final = (Color.default(), Color.from_ansi(15), Color.from_ansi(0))
"""Colors of the terminal's palette that a text gets: its own, white, black."""


@lru_cache(4096)
def luminance(triplet: tuple[int, int, int]) -> float:
    """Relative luminance (WCAG 2.1), 0 to 1, of a color's red, green and blue."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (value / 255 for value in triplet)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ratio(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """Contrast ratio (WCAG 2.1) of two colors, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def contrast(color: Color, back: Color, system: ColorSystem = ColorSystem.TRUECOLOR) -> float:
    """Contrast of a text and its background as a terminal shows them."""
    theme = XTERM if system is ColorSystem.STANDARD else None
    return ratio(*(one.downgrade(system).get_truecolor(theme) for one in (color, back)))


def legible(color: Color, back: Color, system: ColorSystem = ColorSystem.TRUECOLOR) -> Color:
    """The color nearest to `color`, on its way to white or black, that can be read on `back`."""
    if contrast(color, back, system) >= LEAST:
        return color
    end = max((BLACK, WHITE), key=lambda grey: contrast(grey, back, system))
    ways = list(zip(color.get_truecolor(), end.get_truecolor()))
    shades = (Color.from_rgb(*(start + (stop - start) * step / STEPS for start, stop in ways)) for step in range(1, STEPS))
    return next((shade for shade in shades if contrast(shade, back, system) >= LEAST), end)


def of_palette(color: Color, back: Color, theme: TerminalTheme) -> Color:
    """The same of a palette: the first of the color and those in `OWN` that can be read."""
    under = back.get_truecolor(theme, foreground=False)

    def on_it(one: Color) -> float:
        return ratio(one.get_truecolor(theme), under)

    return next((one for one in (color, *OWN) if on_it(one) >= LEAST), max(OWN, key=on_it))


@lru_cache(4096)
def painted(style: Style, background: Color, system: ColorSystem, theme: TerminalTheme) -> Style:
    """A style that can be read. `background`: of the widget, where the style has none."""
    color, back = style.color, style.bgcolor or background
    if color is None:
        return style
    known = ColorType.TRUECOLOR in (color.type, back.type) and not (color.is_default or back.is_default)
    better = legible(color, back, system) if known else of_palette(color, back, theme)
    return style if better == color else style + Style(color=better)


class ContrastFilter(LineFilter):
    """Makes texts legible as they are painted."""

    def __init__(self, theme: TerminalTheme) -> None:
        """`theme`: the terminal's palette."""
        super().__init__()
        self.system, self.theme = ColorSystem.TRUECOLOR, theme

    def shown_by(self, color_system: str | None) -> None:
        """Sets what the terminal can show, as Rich names it."""
        self.system = SYSTEMS.get(color_system or "", ColorSystem.TRUECOLOR)

    def apply(self, segments: list[Segment], background: ThemeColor) -> list[Segment]:
        """The segments with legible styles."""
        back, system, theme = background.rich_color, self.system, self.theme
        return [
            Segment(text, painted(style, back, system, theme), control) if style is not None and text.strip(DRAWN) else segment
            for segment in segments
            for text, style, control in (segment,)
        ]
