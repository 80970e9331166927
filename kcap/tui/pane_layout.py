"""The panes of the main screen (list, tree, bytes): which are shown, how large they are, which has the focus.

In: actions, the mouse at an edge. Out: styles, settings. Law: the layout is saved and works at any size of the terminal.
"""

from typing import cast

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.message import Message
from textual.widget import Widget

from kcap.tui.config import SIZES
from kcap.tui.main_screen import MainHome
from kcap.tui.panes.exchange import ExchangePane
from kcap.tui.panes.exchanges import ExchangeList
from kcap.tui.splitters import Edges


class Panes(Container):
    """The list, and tree and bytes of an exchange below or beside it."""

    class Changed(Message):
        """Posted when another pane has the focus, or another size."""

    def __init__(self, listed: ExchangeList, lower: ExchangePane) -> None:
        super().__init__(id="panes")
        self.listed, self.lower = listed, lower
        self.panes: dict[str, Widget] = {"list": listed, "detail": lower.detail, "bytes": lower.hexes}

    def compose(self) -> ComposeResult:
        yield self.listed
        yield self.lower

    @property
    def home(self) -> MainHome:
        return cast(MainHome, self.app)

    @property
    def zoomed(self) -> str:
        """The pane that is shown alone; empty if all are shown."""
        return next((name for name in self.panes if self.has_class(f"-only-{name}")), "")

    @property
    def wide(self) -> bool:
        """Whether the terminal has room for tree and bytes side by side."""
        return self.screen.has_class("-wide")

    def lay(self) -> None:
        """Applies sizes and visibility from the settings."""
        look = self.home.look
        width = self.screen.size.width
        self.set_class(not look.bytes, "-no-bytes")
        self.set_class(not look.detail, "-no-detail")
        self.set_class(look.layout == "columns", "-columns")
        beside = self.has_class("-columns") and self.wide
        alone = not look.detail or self.has_class("-only-list") or beside
        self.listed.styles.height = "1fr" if alone else f"{look.share}%"
        dump, zoomed = self.query_one("#dump"), self.zoomed
        across = self.wide and not beside
        dump.styles.width = max(20, min(look.bytes_width, width - 30)) if across and not zoomed else None
        dump.styles.height = f"{look.bytes_share}%" if not across and not zoomed else None
        self.lower.styles.width = max(30, min(look.beside_width, width - 30)) if beside and not zoomed else None

    @on(ExchangeList.Laid)
    @on(Edges.Dropped)
    def laid(self, _event: ExchangeList.Laid | Edges.Dropped) -> None:
        """Saves the widths of columns, and sizes of panes when the mouse button is released."""
        self.home.save_settings()
        self.post_message(self.Changed())

    def action_pane(self, step: int) -> None:
        """Focuses the next visible pane."""
        panes = [pane for pane in self.panes.values() if pane.region.area]
        if panes:
            at = next((at for at, pane in enumerate(panes) if pane is self.screen.focused), -step if step > 0 else 0)
            self.screen.set_focus(panes[(at + step) % len(panes)])
        self.post_message(self.Changed())

    def action_part(self, at: int) -> None:
        """Focuses a pane, and shows it if it is hidden."""
        look, (name, pane) = self.home.look, list(self.panes.items())[at - 1]
        if not look.detail and name != "list":
            self.action_detail()
        if not look.bytes and name == "bytes":
            self.action_bytes()
        if self.zoomed not in ("", name):
            self.action_zoom()
        self.screen.set_focus(pane)
        self.post_message(self.Changed())

    def action_zoom(self) -> None:
        zoomed = self.zoomed
        for name, pane in self.panes.items():
            self.set_class(not zoomed and pane is self.screen.focused, f"-only-{name}")
        self.lay()

    def action_layout(self) -> None:
        """Switches between details below the list and beside it."""
        self.home.look.layout = "columns" if self.home.look.layout == "rows" else "rows"
        self.lay()
        self.home.save_settings()

    def action_bytes(self) -> None:
        self.home.look.bytes = not self.home.look.bytes
        if self.screen.focused is self.lower.hexes:
            self.screen.set_focus(self.listed)
        self.lay()
        self.home.save_settings()

    def action_detail(self) -> None:
        """Shows or hides tree and bytes."""
        self.home.look.detail = not self.home.look.detail
        self.screen.set_focus(self.listed)
        self.lay()
        self.home.save_settings()

    def action_share(self, by: int) -> None:
        """Resizes the list, or the bytes if they have the focus."""
        look, wide = self.home.look, self.wide
        beside = wide and look.layout == "columns"
        if self.screen.focused is self.lower.hexes:
            name, more = ("bytes_width", by) if wide and not beside else ("bytes_share", by)
        else:
            name, more = ("beside_width", -by) if beside else ("share", by)
        self._resized(name, getattr(look, name) + more)
        self.home.save_settings()

    def _resized(self, name: str, size: int) -> None:
        """Sets a size within its bounds."""
        least, most = SIZES[name]
        setattr(self.home.look, name, max(least, min(most, size)))
        self.lay()

    @on(Edges.Dragged)
    def dragged(self, event: Edges.Dragged) -> None:
        panes, lower = self.region, self.lower.region
        beside = self.wide and self.home.look.layout == "columns"
        if event.side == "left":
            self._resized("beside_width" if event.part is self.lower else "bytes_width", lower.right - event.x)
        elif event.part.id == "dump" and (beside or not self.wide):
            self._resized("bytes_share", round((lower.bottom - event.y) * 100 / max(1, lower.height)))
        elif not beside:
            self._resized("share", round((event.y - panes.y) * 100 / max(1, panes.height)))
