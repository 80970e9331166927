"""The pane of a message's bytes, in hex and as text.

In: a `Dump`. Out: a message when the cursor moves to another byte. Law: only visible lines are painted.
"""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from kcap.tui.hex_dump import OFFSET, Dump
from kcap.tui.views.paint import PANE_CSS, Lines


class Bytes(Lines):
    DEFAULT_CSS = f"Bytes {{ height: 1fr; scrollbar-size: 1 1; scrollbar-gutter: stable; {PANE_CSS} }}"
    BINDING_GROUP_TITLE = "The bytes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "side(-1)", "Previous byte", show=False),
        Binding("right,l", "side(1)", "Next byte", show=False),
    ]

    class Moved(Message):
        """Posted when another byte is under the cursor."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.dump = Dump()
        self.empty = ""

    @property
    def room(self) -> int:
        """Characters per line."""
        return max(20, self.scrollable_content_region.width)

    def renew(self) -> None:
        self.virtual_size = Size(1, max(1, self.dump.height(self.room)))
        self._keep_in_sight()
        self.refresh()

    def on_resize(self, _event: events.Resize) -> None:
        self.renew()

    def paint(self, y: int) -> Strip:
        base, width, at = self.rich_style, self.size.width, self.scroll_offset.y + y
        if not self.dump.data:
            return self.strip([(f" {self.empty}", "dim")] if not at else [], width, base)
        if at >= self.dump.height(self.room):
            return Strip.blank(width, base)
        return self.strip(self.dump.line(at, self.room, focused=self.has_focus), width, base)

    def _keep_in_sight(self) -> None:
        per = self.dump.per_line(self.room)
        top, room, at = self.scroll_offset.y, max(1, self.size.height), self.dump.cursor // per
        wanted = self.see_line(at, top, room)
        last = (max(self.dump.start, self.dump.end - 1)) // per
        if last >= wanted + room:
            wanted = min(at, last - room + 1)
        self.scroll_up_to(wanted)

    def go(self, at: int) -> None:
        if self.dump.data:
            self.dump.cursor = max(0, min(at, len(self.dump.data) - 1))
            self._keep_in_sight()
            self.refresh()
            self.post_message(self.Moved())

    def action_side(self, by: int) -> None:
        self.go(self.dump.cursor + by)

    def action_move(self, by: int) -> None:
        """Moves by lines."""
        self.go(self.dump.cursor + by * self.dump.per_line(self.room))

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - 1))

    def action_edge(self, side: int) -> None:
        self.go(0 if side < 0 else len(self.dump.data) - 1)

    def on_click(self, event: events.Click) -> None:
        """Selects a byte, in hex or as text."""
        per = self.dump.per_line(self.room)
        x = event.x - OFFSET - 2
        hexes = per * 3 + (per > 8)
        if 0 <= x < hexes:
            place = (x - (x > 24)) // 3
        elif hexes < x <= hexes + per:
            place = x - hexes - 1
        else:
            return
        self.go((self.scroll_offset.y + event.y) * per + place)
