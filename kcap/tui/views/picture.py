"""A widget of bars, one of which can be selected and opened.

In: bars. Out: a message when a bar is opened. Law: it shows exactly what `bars.lines` returns.
"""

from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget

from kcap.tui.views.bars import bar_at, columns, height_of, lines
from kcap.tui.views.paint import CSS, Toned, text
from kcap.tui.views.sheet import Bars, Down


class Picture(Toned, Widget, can_focus=True):
    DEFAULT_CSS = f"Picture {{ height: auto; margin-bottom: 1; &:focus {{ background: $boost; }} {CSS} }}"
    BINDING_GROUP_TITLE = "The bars"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h,up,k", "move(-1)", "Previous bar", show=False),
        Binding("right,l,down,j", "move(1)", "Next bar", show=False),
        Binding("home,g", "edge(-1)", "First bar", show=False),
        Binding("end,G", "edge(1)", "Last bar", show=False),
        Binding("enter", "choose", "Show"),
    ]

    class Moved(Message):
        """Posted when another bar was selected."""

    class Chosen(Message):
        """Posted when a bar was opened."""

        def __init__(self, down: Down) -> None:
            super().__init__()
            self.down = down

    def __init__(self, bars: Bars) -> None:
        super().__init__()
        self.bars = bars
        self.at = 0

    def set(self, bars: Bars) -> None:
        if bars == self.bars:
            return
        changed = height_of(bars) != height_of(self.bars)
        self.bars = bars
        self.at = max(0, min(self.at, len(bars.values) - 1))
        self.refresh(layout=changed)

    @property
    def down(self) -> Down:
        """The drill-down of the selected bar."""
        return self.bars.downs[self.at] if self.at < len(self.bars.downs) else None

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """Number of lines of the picture."""
        return height_of(self.bars) + (self.has_focus and self.bars.upright)

    def render(self) -> Text:
        return text(self, lines(self.bars, self.size.width, height_of(self.bars), self.at if self.has_focus else None))

    def on_focus(self, _event: events.Focus) -> None:
        self.refresh(layout=True)
        self.post_message(self.Moved())

    def on_blur(self, _event: events.Blur) -> None:
        self.refresh(layout=True)

    def action_move(self, by: int) -> None:
        groups = (
            columns(self.bars, max(4, self.size.width)) if self.bars.upright else [[at] for at in range(len(self.bars.values))]
        )
        step = max(1, len(groups[0])) if groups else 1
        self.action_to(self.at + by * step)

    def action_edge(self, end: int) -> None:
        self.action_to(0 if end < 0 else len(self.bars.values) - 1)

    def action_to(self, at: int) -> None:
        self.at = max(0, min(at, len(self.bars.values) - 1))
        self.refresh()
        self.post_message(self.Moved())

    def action_choose(self) -> None:
        self.post_message(self.Chosen(self.down))

    def on_click(self, event: events.Click) -> None:
        """Selects a bar; a double click opens it."""
        at = bar_at(self.bars, self.size.width, event.x, event.y)
        if at is not None:
            self.action_to(at)
            if event.chain > 1:
                self.action_choose()
