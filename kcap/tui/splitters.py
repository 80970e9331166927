"""Edges between panes that can be dragged with the mouse.

In: presses on the line at the top or left of a pane. Out: messages: the requested position of the edge, and the release of the
mouse button. Law: the screen that lays out the panes decides where the edge goes; a press elsewhere does nothing.
"""

from textual import events
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.widget import Widget


class Edges(Widget):
    """Base class of widgets with such edges."""

    dragging = ""
    """The edge that is dragged: `top`, `left` or none."""

    class Dragged(Message):
        """Posted while an edge is dragged: its side of the widget, column and line of the screen."""

        def __init__(self, part: Widget, side: str, x: int, y: int) -> None:
            super().__init__()
            self.part, self.side, self.x, self.y = part, side, x, y

    class Dropped(Message):
        """Posted when the edge was released."""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begins dragging an edge."""
        left, top = bool(self.styles.border_left[0]), bool(self.styles.border_top[0])
        self.dragging = "left" if left and event.x == 0 else "top" if top and event.y == 0 else ""
        if self.dragging:
            event.stop()
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.dragging:
            event.stop()
            self.post_message(Edges.Dragged(self, self.dragging, int(event.screen_x), int(event.screen_y)))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Saves the layout when the mouse button is released."""
        if self.dragging:
            event.stop()
            self.dragging = ""
            self.release_mouse()
            self.post_message(Edges.Dropped())


class SplitFrame(Edges, Vertical):
    """A column of widgets with edges."""


class SplitSide(Edges, VerticalScroll):
    """Scrolling widgets with edges."""

    class Resized(Message):
        """Posted when the width for texts changed."""

    def on_resize(self) -> None:
        self.post_message(SplitSide.Resized())
