"""The line of problems below the title.

In: findings of a capture. Out: the line; a click opens their view. Law: without a problem there is no line.
"""

from typing import Any, cast

from rich.text import Text

from kcap.output.grid import clean
from kcap.tui.conclusions import banner
from kcap.tui.main_screen import MainHome
from kcap.tui.views import VIEWS
from kcap.tui.views.styled_lines import TextLine


class Banner(TextLine):
    """A line with the problems of the capture, if there are any; a click opens their view."""

    def show(self, found: dict[str, Any] | None, width: int) -> None:
        """Shows conclusions; None if there are none yet."""
        text = clean(banner(found["check"] if found is not None else None))
        self.set_class(bool(text), "-found")
        if text:
            end = f"  {VIEWS['findings'][0]} shows them "
            line = Text(f" {text}", no_wrap=True, overflow="ellipsis")
            line.truncate(max(8, width - len(end)), overflow="ellipsis", pad=True)
            line.append(end, "bold")
            self.set_text(line)

    def on_click(self) -> None:
        """Opens the view of findings."""
        cast(MainHome, self.app).open_view("findings")
