"""Lines with tones on the screen.

In: lines. Out: a widget as high as they are. Law: it shows the lines it was told last; told the same again it paints nothing.
"""

from typing import ClassVar

from rich.text import Text
from textual.widgets import Static

from kcap.tui.views.paint import CLASSES, CSS, text
from kcap.tui.views.sheet import Line


class TextLine(Static):
    """A text that is told often and seldom another: what looks ten times a second must not paint as often."""

    said: tuple[object, ...] = ()
    """The text that stands there, and its style: texts are equal to Rich whatever they are drawn in."""

    def say(self, told: Text | str) -> None:
        """Shows it."""
        known = told, getattr(told, "style", "")
        if known != self.said:
            self.said = known
            self.update(told)


class StyledText(Static):
    """Lines with tones."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(CLASSES)
    DEFAULT_CSS = f"StyledText {{ height: auto; {CSS} }}"

    def tell(self, lines: list[Line]) -> None:
        """Shows them."""
        self.update(text(self, lines))
