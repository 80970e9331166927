"""Widgets that show lines with tones.

In: lines. Out: a widget as high as its lines. Law: it shows the lines that were set last; setting the same lines again does not
repaint.
"""

from collections.abc import Sequence

from rich.text import Text
from textual.widgets import Static

from kcap.tui.views.paint import CSS, Toned, text
from kcap.tui.views.sheet import Line


class TextLine(Static):
    """A text that is set often and changes seldom: a text set ten times a second must not be painted as often."""

    shown: tuple[object, ...] = ()
    """The displayed text and its style: Rich's texts are equal regardless of their style."""

    def set_text(self, text: Text | str) -> None:
        new = text, getattr(text, "style", "")
        if new != self.shown:
            self.shown = new
            self.update(text, layout=self.styles.auto_dimensions)  # a widget of fixed size moves nothing


class StyledText(Toned, Static):
    DEFAULT_CSS = f"StyledText {{ height: auto; {CSS} }}"

    lines: Sequence[Line] = ()

    def set_lines(self, lines: list[Line]) -> None:
        self.lines = lines
        self.update(text(self, lines))

    def notify_style_update(self) -> None:
        """Repaints with the colors of the new theme."""
        super().notify_style_update()
        if self.lines and self.is_mounted:
            self.update(text(self, self.lines))
