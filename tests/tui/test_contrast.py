import pytest
from rich.color import Color, ColorSystem
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import MONOKAI
from textual.color import Color as ThemeColor

from kcap.tui.contrast import LEAST, XTERM, ContrastFilter, contrast, legible, luminance, ratio

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
            assert contrast(legible(color, back, system), back, system) >= LEAST, (color, back)


@pytest.mark.parametrize("number", [2, 3, 6, 10, 11, 14])
def test_sixteen_colors_are_those_of_xterm(number: int) -> None:
    """Green, yellow and cyan are dark for Rich, as VGA had them, and light in terminals: black can be read on both."""
    back = Color.from_rgb(*XTERM.ansi_colors[number])
    white = Color.from_rgb(255, 255, 255)
    assert legible(white, back, ColorSystem.STANDARD).downgrade(ColorSystem.STANDARD).number == 0


def test_a_legible_color_stays_and_another_keeps_its_hue() -> None:
    white, black, green = Color.parse("#ffffff"), Color.parse("#000000"), Color.parse("#4ebf71")
    assert legible(green, black) == green
    red, more, blue = legible(green, white).get_truecolor()
    assert more > red
    assert more > blue


def test_filter_changes_texts_alone() -> None:
    faint = Style.parse("#333333 on #222222")
    given = [Segment("text", faint), Segment(" ── ▅▅ ", faint), Segment("none")]
    text, drawn, none = ContrastFilter(MONOKAI).apply(given, ThemeColor.parse("#222222"))
    assert text.style is not None
    assert text.style.color != faint.color
    assert text.style.bgcolor == faint.bgcolor
    assert drawn.style == faint
    assert none.style is None


def test_the_terminals_own_colors_stay_within_its_palette() -> None:
    faint = Style(color=Color.default(), bgcolor=Color.from_ansi(4))
    made = ContrastFilter(MONOKAI).apply([Segment("text", faint)], ThemeColor(0, 0, 0))[0].style
    assert made is not None
    assert made.color is not None
    palette = {tuple(MONOKAI.ansi_colors[at]) for at in range(16)} | {MONOKAI.foreground_color}
    assert made.color.get_truecolor(MONOKAI) in palette
