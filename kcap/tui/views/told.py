"""Lines with tones on the screen.

In: lines. Out: a widget as high as they are. Law: it shows the lines it was told last.
"""

from typing import ClassVar

from textual.widgets import Static

from kcap.tui.views.paint import CLASSES, CSS, text
from kcap.tui.views.sheet import Line


class Told(Static):
    """Lines with tones."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(CLASSES)
    DEFAULT_CSS = f"Told {{ height: auto; {CSS} }}"

    def tell(self, lines: list[Line]) -> None:
        """Shows them."""
        self.update(text(self, lines))
