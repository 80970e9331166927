"""Turns lines with tones into strips of a pane.

In: lines, a widget of the panes. Out: strips. Law: as `kcap.tui.views.paint`; the selected span of the bytes has its own tone,
underlined for terminals without colors; a line that cannot be painted affects only that line.
"""

from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from rich.segment import Segment
from rich.style import Style
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kcap.tui.faults import stumbled
from kcap.tui.views.paint import CSS as VIEW_CSS
from kcap.tui.views.paint import PREFIX, Toned
from kcap.tui.views.sheet import Line

if TYPE_CHECKING:
    from textual.widget import Widget

CSS: Final = (
    VIEW_CSS
    + """
    & > .tone--dim { color: $foreground; text-style: dim; }
    & > .tone--pick { background: $primary 45%; color: $text; text-style: underline; }
    & > .tone--off { background: $surface; color: $text; text-style: bold; }
"""
)
FILLED: Final = frozenset({"pick", "cell", "cursor", "off"})
"""Tones with a background."""
TONE: Final = itemgetter(1)
BASE: Final = "base"
"""No tone has this name."""


class Painter:
    """The tones of one widget, looked up once for each theme."""

    def __init__(self, widget: "Widget") -> None:
        self._widget = widget
        self._styles: dict[str, Style] = {}

    def clear(self) -> None:
        """Drops the cached styles of the old theme."""
        self._styles.clear()

    @property
    def base(self) -> Style:
        """The widget's own style: to look it up for each line takes a sixth of a repaint."""
        found = self._styles.get(BASE)
        if found is None:
            found = self._styles[BASE] = self._widget.rich_style
        return found

    def style(self, tone: str) -> Style:
        """A tone's style."""
        found = self._styles.get(tone)
        if found is None:
            if not tone:
                found = Style()
            else:
                full = self._widget.get_component_rich_style(f"{PREFIX}{tone}", partial=tone not in FILLED)
                found = Style(
                    color=full.color, bgcolor=full.bgcolor if tone in FILLED else None, bold=full.bold, dim=full.dim,
                    underline=full.underline,
                )  # fmt: skip
            self._styles[tone] = found
        return found

    def strip(self, line: Line, width: int, base: Style) -> Strip:
        """A line in its width. Texts of one tone are one segment: whatever is done to a line on its way costs by segments."""
        segments = [
            Segment("".join(text for text, _ in run), base + self.style(tone) if tone else base)
            for tone, run in groupby(line, TONE)
        ]
        return Strip(segments).adjust_cell_length(width, base)


class Painted(Toned):
    """A widget with a painter, whose styles are those of the theme."""

    @cached_property
    def _painter(self) -> Painter:
        return Painter(self)  # type: ignore[arg-type]

    def notify_style_update(self) -> None:
        """Repaints with the colors of the new theme."""
        super().notify_style_update()
        self._painter.clear()


class Lines(Painted, ScrollView, can_focus=True):
    """A pane of lines, of which those in sight are painted."""

    def see_line(self, at: int, top: int, room: int) -> int:
        """The first of `room` lines with which line `at` is in sight, as near to `top` as can be."""
        return at if at < top else at - room + 1 if at >= top + room else top

    def scroll_up_to(self, line: int) -> None:
        """Makes this the first line in sight."""
        if line != self.scroll_offset.y:
            self.scroll_to(y=line, animate=False, force=True, immediate=True)

    def paint(self, y: int) -> Strip:
        """One line of the pane; `y` from its top."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        """The same; an exception is shown in the line."""
        try:
            return self.paint(y)
        except Exception as error:  # noqa: BLE001 - one line that cannot be painted is no reason to lose the others
            stumbled(self, error)
            return Strip([Segment(f"  this line cannot be shown: {type(error).__name__}")]).adjust_cell_length(self.size.width)
