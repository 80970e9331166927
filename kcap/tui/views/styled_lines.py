"""Widgets that show lines with tones.

In: lines. Out: a widget as high as they are. Law: it shows the lines that were set last; setting the same lines again paints
nothing.
"""

from collections.abc import Sequence

from rich.text import Text
from textual.widgets import Static

from kcap.tui.views.paint import CSS, Toned, text
from kcap.tui.views.sheet import Line


class TextLine(Static):
    """A text that is text often and seldom another: what looks ten times a second must not paint as often."""

    shown: tuple[object, ...] = ()
    """The text that stands there, and its style: texts are equal to Rich whatever they are drawn in."""

    def set_text(self, text: Text | str) -> None:
        new = text, getattr(text, "style", "")
        if new != self.shown:
            self.shown = new
            self.update(text, layout=self.styles.auto_dimensions)  # one of a fixed size moves nothing


class StyledText(Toned, Static):
    DEFAULT_CSS = f"StyledText {{ height: auto; {CSS} }}"

    lines: Sequence[Line] = ()

    def set_lines(self, lines: list[Line]) -> None:
        self.lines = lines
        self.update(text(self, lines))

    def notify_style_update(self) -> None:
        """Shows them with the colors of the new theme."""
        super().notify_style_update()
        if self.lines and self.is_mounted:
            self.update(text(self, self.lines))
