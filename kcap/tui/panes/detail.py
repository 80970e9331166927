"""The pane with the tree of one exchange.

In: an `Outline`. Out: a message when the cursor moves to another line. Law: only visible lines are painted.
"""

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from kcap.tui.tree_lines import Item, Outline
from kcap.tui.views.paint import PANE_CSS, Lines
from kcap.tui.views.sheet import Line


def outlined(change: Callable[[Outline], None]) -> Callable[["Detail"], None]:
    """The action that changes the outline at its cursor, and shows it."""

    def act(pane: "Detail") -> None:
        if pane.outline.current is not None:
            change(pane.outline)
            pane.renew()

    return act


class Detail(Lines):
    DEFAULT_CSS = f"Detail {{ height: 1fr; scrollbar-size: 0 1; scrollbar-gutter: stable; {PANE_CSS} }}"
    BINDING_GROUP_TITLE = "The tree"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "open", "Open"),
        Binding("left,h", "shut", "Close"),
        Binding("enter,space", "flip", "Open or close", show=False),
        Binding("asterisk", "open_all", "Open all", show=False),
        Binding("underscore", "shut_all", "Close all", show=False),
        Binding("backspace", "up", "Parent", show=False),
        Binding("shift+right", "slide(12)", "Scroll right", show=False),
        Binding("shift+left", "slide(-12)", "Scroll left", show=False),
    ]

    class Moved(Message):
        """Posted when another line is under the cursor."""

    class MenuRequested(Message):
        """Posted when the menu of filters for the line is requested."""

    class Resized(Message):
        """Posted when the tree has another width, to which its sentences must be wrapped."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.outline = Outline()
        self.empty = ""

    def renew(self, *, notify: bool = True) -> None:
        widest = max((self._width(item) for item in self.outline.lines), default=1)
        self.virtual_size = Size(widest, max(1, len(self.outline.lines)))
        self._keep_in_sight()
        self.refresh()
        if notify:
            self.post_message(self.Moved())

    @staticmethod
    def _width(item: Item) -> int:
        return 2 * item.depth + 2 + sum(len(text) for text, _ in item.line)

    def on_resize(self, _event: events.Resize) -> None:
        """Lays out and paints for the new size."""
        self._keep_in_sight()
        self.post_message(self.Resized())

    def paint(self, y: int) -> Strip:
        left, top = self.scroll_offset
        width, at = self.size.width, top + y
        base = self.rich_style
        if at >= len(self.outline.lines):
            return self.strip([(f" {self.empty}", "dim")] if not at else [], width, base)
        item = self.outline.lines[at]
        sign = " " if item.make is None else "▾" if item.open and not item.more else "▸"
        line: Line = [("  " * item.depth + sign + " ", "dim"), *item.line]
        if at == self.outline.cursor:
            base = base + self.tone_style("cell" if self.has_focus else "cursor")
            if self.has_focus:
                line = [(text, "") for text, _ in line]
        return self.strip(line, max(width, self.virtual_size.width), base).crop_extend(left, left + width, base)

    def _keep_in_sight(self) -> None:
        self.scroll_up_to(self.see_line(self.outline.cursor, self.scroll_offset.y, max(1, self.size.height)))

    def action_move(self, by: int) -> None:
        self.outline.move(by)
        self._keep_in_sight()
        self.refresh()
        self.post_message(self.Moved())

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - 1))

    def action_edge(self, side: int) -> None:
        self.action_move(side * len(self.outline.lines))

    action_open = outlined(Outline.right)
    action_shut = outlined(Outline.left)
    action_flip = outlined(lambda outline: outline.toggle(outline.cursor))
    action_open_all = outlined(lambda outline: outline.set_all(outline.cursor, wanted=True))
    action_shut_all = outlined(lambda outline: outline.set_all(outline.cursor, wanted=False))
    action_up = outlined(Outline.up)

    def action_slide(self, by: int) -> None:
        """Scrolls sideways, for long values."""
        self.scroll_aside_to(max(0, self.scroll_offset.x + by))

    def on_click(self, event: events.Click) -> None:
        """Selects a line; a click on its sign expands or collapses it."""
        at = self.scroll_offset.y + event.y
        if at >= len(self.outline.lines):
            return
        self.outline.cursor = at
        item = self.outline.lines[at]
        if event.button == 3:
            self.renew()
            self.post_message(self.MenuRequested())
            return
        if item.make is not None and (event.x + self.scroll_offset.x <= 2 * item.depth + 1 or event.chain > 1):
            self.outline.toggle(at)
        self.renew()
