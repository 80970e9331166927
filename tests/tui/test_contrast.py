import pytest
from rich.color import Color, ColorSystem, ColorType
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from textual.color import Color as ThemeColor

from kcap.tui.contrast import (
    LEAST,
    PALETTES,
    VGA,
    XTERM,
    ContrastFilter,
    Greys,
    backed,
    contrast,
    in_palettes,
    legible,
    luminance,
    ratio,
)

BLACK = ThemeColor(0, 0, 0)
BACKS = [Color.from_rgb(red, green, blue) for red in range(0, 256, 51) for green in range(0, 256, 51) for blue in (0, 90, 255)]


def test_ratio_is_that_of_the_standard() -> None:
    assert luminance((0, 0, 0)) == 0
    assert luminance((255, 255, 255)) == pytest.approx(1)
    assert ratio((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert ratio((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.01)  # WCAG's example of just too little


@pytest.mark.parametrize("system", [ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT, ColorSystem.STANDARD])
def test_any_background_gets_a_legible_text(system: ColorSystem) -> None:
    for back in BACKS:
        for color in BACKS[::7]:
            under = backed(back, system)
            assert contrast(legible(color, under, system), under, system) >= LEAST, (color, back)


def numbers(segment: Segment) -> tuple[int, int]:
    """Text and background of a segment as numbers of the sixteen colors; 0 for none."""
    style = segment.style or Style()
    text, back = (color.downgrade(ColorSystem.STANDARD).number if color else 0 for color in (style.color, style.bgcolor))
    return text or 0, back or 0


@pytest.mark.parametrize("palette", [VGA, XTERM], ids=["VGA", "xterm"])
@pytest.mark.parametrize("number", range(16))
@pytest.mark.parametrize("color", [Color.from_ansi(at) for at in range(16)], ids=lambda color: f"text {color.number}")
def test_sixteen_colors_can_be_read_in_both_palettes(palette: TerminalTheme, number: int, color: Color) -> None:
    """Also on a Linux console, which shows a bright background as the dark one. Bright black (hints) has no such text, nor has
    yellow, which is brown in VGA: others stand in their place."""
    app = ContrastFilter()
    app.shown_by("standard")
    given = Color.from_rgb(*VGA.ansi_colors[number])
    text, blank = app.apply([Segment("text", Style(color=color, bgcolor=given)), Segment(" ", Style(bgcolor=given))], BLACK)
    written, under = numbers(text)
    assert numbers(blank)[1] == under
    for back in (under, under % 8):
        assert ratio(palette.ansi_colors[written], palette.ansi_colors[back]) >= LEAST


def test_hints_are_no_longer_black_on_bright_black() -> None:
    app = ContrastFilter()
    app.shown_by("standard")
    (made,) = app.apply([Segment("v Views", Style.parse("#a0a0a0 on #333333"))], BLACK)
    assert numbers(made) == (7, 4)
    (made,) = app.apply([Segment("behind a menu", Style.parse("#404040 on #5a5a5a"))], BLACK)
    assert numbers(made) == (0, 7), "grey as it was"


def test_a_legible_color_stays_and_another_keeps_its_hue() -> None:
    white, black, green = Color.parse("#ffffff"), Color.parse("#000000"), Color.parse("#4ebf71")
    assert legible(green, black) == green
    red, more, blue = legible(green, white).get_truecolor()
    assert more > red
    assert more > blue


def test_filter_changes_texts_alone() -> None:
    faint = Style.parse("#333333 on #222222")
    given = [Segment("text", faint), Segment(" ── ▅▅ ", faint), Segment("none")]
    text, drawn, none = ContrastFilter().apply(given, ThemeColor.parse("#222222"))
    assert text.style is not None
    assert text.style.color != faint.color
    assert text.style.bgcolor == faint.bgcolor
    assert drawn.style == faint
    assert none.style is None


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("number", [None, *range(16)])
def test_the_terminals_own_colors_stay_within_its_palette_and_can_be_read(number: int | None, dark: bool) -> None:
    """Law: in the palettes of VGA and of xterm, by dark and by light themes. Red on black becomes bright red."""
    app = ContrastFilter()
    app.palettes = PALETTES[dark]
    back = Color.default() if number is None else Color.from_ansi(number)
    for at in (None, *range(16)):
        faint = Style(color=Color.default() if at is None else Color.from_ansi(at), bgcolor=back)
        made = app.apply([Segment("text", faint)], ThemeColor(0, 0, 0, ansi=-1))[0].style
        assert made is not None
        assert made.color is not None
        assert made.bgcolor is not None
        assert {made.color.type, made.bgcolor.type} <= {ColorType.DEFAULT, ColorType.STANDARD}
        assert in_palettes(made.color, made.bgcolor, PALETTES[dark]) >= LEAST
    red = app.apply([Segment("text", Style(color=Color.from_ansi(1), bgcolor=Color.default()))], BLACK)[0].style
    assert red is not None
    assert red.color == Color.from_ansi(9 if dark else 1)


def test_the_terminals_palette_has_no_colors_where_none_are_wanted() -> None:
    """NO_COLOR: text in the terminal's own colors, reversed where it had a background; of other themes greys."""
    app, back = ContrastFilter(), ThemeColor(0, 0, 0, ansi=-1)
    app.colorless = True
    styles = [
        Style(color=Color.from_ansi(9), bold=True), Style(color=Color.from_ansi(0), bgcolor=Color.from_ansi(7)),
        Style(color=Color.default(), bgcolor=Color.from_ansi(0), dim=True),
    ]  # fmt: skip
    segments = [*(Segment("text", style) for style in styles), Segment("none")]
    assert Greys().apply(segments, back) == segments
    made = [segment.style for segment in app.apply(segments, back)]
    assert made == [Style(bold=True, reverse=False), Style(reverse=True), Style(dim=True, reverse=False), None]
    grey = Greys().apply([Segment("text", Style(color=Color.from_rgb(255, 0, 0)))], BLACK)[0].style
    assert grey is not None
    assert grey.color is not None
    assert len(set(grey.color.get_truecolor())) == 1
