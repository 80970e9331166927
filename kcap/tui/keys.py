"""The footer: the keys of the focused pane, the most important first.

In: the bindings that work where the focus is. Out: their keys and descriptions. Law: an entry is shown completely or not at
all; a click does what the key does.
"""

from typing import Final

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

AROUND: Final = 3
"""Blanks before, between and behind a key and its word."""


class Keys(Footer):
    """The line; the command palette has its key and needs no place here."""

    def __init__(self, less: int = 0) -> None:
        """`less`: columns of the screen that are not the line's."""
        super().__init__(show_command_palette=False)
        self._less, self._room = less, 0

    def compose(self) -> ComposeResult:
        """As many as there is room for."""
        # keys watch the footer, which forgets those that were removed only when what they watch changes: it never does
        self.mutate_reactive(Footer.compact)
        self._room = self.app.size.width
        left = self._room - self._less
        for part in super().compose():
            if isinstance(part, FooterKey):
                left -= cell_len(part.key_display) + cell_len(part.description) + AROUND
                if left < 0:
                    continue
            yield part

    def on_resize(self, _event: events.Resize) -> None:
        """Another width has room for others."""
        if self.app.size.width != self._room:
            self.refresh(recompose=True)
