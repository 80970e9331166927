"""Keeps text legible: moves the color of a text away from its background until the two differ enough.

In: segments as widgets and themes draw them. Out: the same with other text colors if the contrast is too low. Law: each text
has a contrast of at least `LEAST` with its background, in the colors that the terminal can show. Lines and bars do not change,
nor do backgrounds, except for some of sixteen colors (`BACKED`). Themes of the terminal's palette satisfy this with the
palettes of VGA and xterm.
"""

from functools import lru_cache
from math import dist
from typing import Final, TypeAlias

from rich.color import Color, ColorSystem, ColorType
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from textual.color import Color as ThemeColor
from textual.filter import LineFilter, Monochrome

Palettes: TypeAlias = tuple[TerminalTheme, ...]
LEAST: Final = 4.5
"""Minimum contrast of a text (WCAG 2.1, success criterion 1.4.3)."""
STEPS: Final = 20
"""Number of shades that are tried between a color and white or black."""
DRAWN: Final = " ·" + "".join(map(chr, range(0x2500, 0x25A0)))
"""Characters that are not text: blanks, dots between words, lines (U+2500 to U+257F), bars and fillings (U+2580 to U+259F)."""
SYSTEMS: Final = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT}
"""Rich's name of a terminal's color system, if it is not true color -> the system."""
XTERM: Final = TerminalTheme(
    (0, 0, 0), (229, 229, 229),
    [(0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229)],
    [(127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255), (255, 255, 255)],
)  # fmt: skip
"""The sixteen colors of xterm (XTerm-col.ad)."""
VGA: Final = TerminalTheme(
    (0, 0, 0), (170, 170, 170),
    [(0, 0, 0), (170, 0, 0), (0, 170, 0), (170, 85, 0), (0, 0, 170), (170, 0, 170), (0, 170, 170), (170, 170, 170)],
    [(85, 85, 85), (255, 85, 85), (85, 255, 85), (255, 255, 85), (85, 85, 255), (255, 85, 255), (85, 255, 255), (255,) * 3],
)  # fmt: skip
"""The sixteen colors of VGA's text mode, which a Linux console and Rich have: yellow is brown, green and cyan are dark."""
BACKED: Final = {3: (7,), 8: (4, 7), 9: (1,), 11: (7,), 12: (4,), 13: (5,)}
"""Of the sixteen colors, backgrounds on which no color is legible in both palettes -> their replacements, of which the nearest
is used. A Linux console shows the bright ones (8 to 15) as 0 to 7 (console_codes(4)), and they count as both."""
BLACK, WHITE = Color.from_rgb(0, 0, 0), Color.from_rgb(255, 255, 255)
OWN: Final = (Color.default(), Color.from_ansi(15), Color.from_ansi(0))
"""Colors of the terminal's palette that a text may get: its own, white, black."""
BRIGHT: Final = 8
"""Offset from the number of a dark color to that of its bright variant."""


def on_paper(theme: TerminalTheme) -> TerminalTheme:
    """A palette for a terminal with black text on white."""
    colors = [(*theme.ansi_colors[at],) for at in range(2 * BRIGHT)]
    return TerminalTheme((255,) * 3, (0, 0, 0), colors[:BRIGHT], colors[BRIGHT:])


PALETTES: Final = {True: (VGA, XTERM), False: (on_paper(VGA), on_paper(XTERM))}
"""Palettes in which dark and light themes must be legible."""


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
    """Contrast of a text and its background in the terminal's colors; for sixteen colors the minimum over both palettes."""
    text, under = color.downgrade(system), back.downgrade(system)
    if system is not ColorSystem.STANDARD:
        return ratio(text.get_truecolor(), under.get_truecolor())
    number = under.number or 0
    shown = {number, number % BRIGHT}
    return min(ratio(text.get_truecolor(theme), theme.ansi_colors[at]) for theme in (VGA, XTERM) for at in shown)


def backed(back: Color, system: ColorSystem) -> Color:
    """A background on which texts are legible."""
    if back.is_default or (system is not ColorSystem.STANDARD and back.type is not ColorType.STANDARD):
        return back
    number = back.downgrade(system).number or 0
    given = back.get_truecolor(VGA)
    return Color.from_ansi(min(BACKED.get(number, (number,)), key=lambda at: dist(given, VGA.ansi_colors[at])))


def legible(color: Color, back: Color, system: ColorSystem = ColorSystem.TRUECOLOR) -> Color:
    """The color nearest to `color`, towards white or black, that is legible on `back`."""
    if contrast(color, back, system) >= LEAST:
        return color
    end = max((BLACK, WHITE), key=lambda grey: contrast(grey, back, system))
    ways = list(zip(color.get_truecolor(), end.get_truecolor()))
    shades = (Color.from_rgb(*(start + (stop - start) * step / STEPS for start, stop in ways)) for step in range(1, STEPS))
    return next((shade for shade in shades if contrast(shade, back, system) >= LEAST), end)


def in_palettes(color: Color, back: Color, palettes: Palettes) -> float:
    """Contrast of a text and its background in the terminal's palette: the minimum over these palettes."""
    return min(ratio(color.get_truecolor(one), back.get_truecolor(one, foreground=False)) for one in palettes)


def of_palette(color: Color, back: Color, palettes: Palettes) -> Color:
    """The same in the terminal's palette: the first legible one of the color, its bright or dark variant, and `OWN`."""
    twin = [Color.from_ansi(color.number ^ BRIGHT)] if color.number is not None and color.number < 2 * BRIGHT else []
    ways = {one: in_palettes(one, back, palettes) for one in (color, *twin, *OWN)}
    return next((one for one, of in ways.items() if of >= LEAST), max(ways, key=lambda one: ways[one]))


@lru_cache(4096)
def on_backed(style: Style, background: Color, system: ColorSystem) -> Style:
    """A style on a background on which texts are legible."""
    back = style.bgcolor or background
    better = backed(back, system)
    return style if better == back else style + Style(bgcolor=better)


@lru_cache(4096)
def painted(style: Style, background: Color, system: ColorSystem, palettes: Palettes) -> Style:
    """A legible style. `background`: of the widget, if the style has none."""
    color, back = style.color, style.bgcolor or background
    style = on_backed(style, background, system)
    if color is None:
        return style
    known = ColorType.TRUECOLOR in (color.type, back.type) and not (color.is_default or back.is_default)
    back = style.bgcolor or background
    better = legible(color, back, system) if known else of_palette(color, back, palettes)
    return style if better == color else style + Style(color=better)


@lru_cache(4096)
def without_colors(style: Style) -> Style:
    """A style of the terminal's palette in its own two colors; text with a background of its own is reversed."""
    back = style.bgcolor
    filled = back is not None and not back.is_default and back.number != 0
    return style.without_color + Style(reverse=filled != bool(style.reverse))


class Greys(Monochrome):
    """For NO_COLOR: greys of the same lightness. Without a known palette, `ContrastFilter` removes the colors."""

    def apply(self, segments: list[Segment], background: ThemeColor) -> list[Segment]:
        """The segments in greys."""
        return super().apply(segments, background) if background.ansi is None else segments


class ContrastFilter(LineFilter):
    """Makes texts legible when they are painted."""

    def __init__(self) -> None:
        super().__init__()
        self.system, self.palettes = ColorSystem.TRUECOLOR, PALETTES[True]
        self.colorless = False
        """Whether NO_COLOR is set."""

    def shown_by(self, color_system: str | None) -> None:
        """Sets the terminal's color system, by Rich's name."""
        self.system = SYSTEMS.get(color_system or "", ColorSystem.TRUECOLOR)

    def apply(self, segments: list[Segment], background: ThemeColor) -> list[Segment]:
        """The segments with legible styles."""
        back, system, palettes = background.rich_color, self.system, self.palettes
        if self.colorless and background.ansi is not None:
            return [Segment(text, without_colors(style) if style else style, control) for text, style, control in segments]
        few = system is ColorSystem.STANDARD or background.ansi is not None
        return [
            Segment(text, painted(style, back, system, palettes), control)
            if style is not None and text.strip(DRAWN)
            else Segment(text, on_backed(style, back, system), control)
            if few and style is not None
            else segment
            for segment in segments
            for text, style, control in (segment,)
        ]
