"""The panes of the main screen: which are in sight, how large, which has the focus.

In: keys, the mouse at an edge. Out: styles of the panes, settings. Law: what was chosen is remembered, and holds at any size of
the terminal as far as there is room.
"""

from typing import Any, ClassVar

from textual import on
from textual.binding import Binding, BindingType

from kcap.tui.actions import Actions
from kcap.tui.config import SIZES
from kcap.tui.panes.bytes import Bytes
from kcap.tui.panes.detail import Detail
from kcap.tui.panes.exchange import ExchangePane
from kcap.tui.panes.exchanges import ExchangeList
from kcap.tui.splitters import Edges

SHARES = (15, 85)
"""The least and the most of the list's height, in per cent."""


class PaneLayout(Actions):
    """Part of the main screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "pane(1)", "Next pane", show=False),
        Binding("shift+tab", "pane(-1)", "Pane before", show=False),
        Binding("backslash", "zoom", "Zoom pane", show=False, key_display="\\"),
        Binding("vertical_line", "layout", "Layout", show=False, key_display="|"),
        Binding("b", "bytes", "Bytes"),
        Binding("d", "detail", "Details", show=False),
        Binding("plus", "share(5)", "Larger list, or bytes", show=False, key_display="+"),
        Binding("minus", "share(-5)", "Smaller list, or bytes", show=False, key_display="-"),
    ]

    @property
    def listed(self) -> ExchangeList:
        """The list."""
        return self.query_one(ExchangeList)

    @property
    def lower(self) -> ExchangePane:
        """The exchange under the cursor."""
        return self.query_one(ExchangePane)

    @property
    def detail(self) -> Detail:
        """The tree."""
        return self.lower.detail

    @property
    def hexes(self) -> Bytes:
        """The bytes."""
        return self.lower.hexes

    def tell(self) -> None:
        """Says on the screen what changed."""

    def _lay(self) -> None:
        """Sizes and what is shown, by the settings."""
        look = self.home.look
        self.set_class(not look.bytes, "-no-bytes")
        self.set_class(not look.detail, "-no-detail")
        self.set_class(look.layout == "columns", "-columns")
        beside = self.has_class("-columns") and self.has_class("-wide")
        alone = not look.detail or self.has_class("-only-list") or beside
        self.listed.styles.height = "1fr" if alone else f"{look.share}%"
        dump, zoomed = self.query_one("#dump"), any(self.has_class(f"-only-{pane}") for pane in ("list", "detail", "bytes"))
        across = self.has_class("-wide") and not beside
        dump.styles.width = max(20, min(look.bytes_width, self.size.width - 30)) if across and not zoomed else None
        dump.styles.height = f"{look.bytes_share}%" if not across and not zoomed else None
        self.lower.styles.width = max(30, min(look.beside_width, self.size.width - 30)) if beside and not zoomed else None

    def on_resize(self) -> None:
        """Another room."""
        self.call_after_refresh(self._again)

    def _again(self) -> None:
        self._lay()
        self.tell()

    def action_pane(self, step: int) -> None:
        """The next pane in sight."""
        panes = [pane for pane in (self.listed, self.detail, self.hexes) if pane.region.area]
        if panes:
            at = next((at for at, pane in enumerate(panes) if pane is self.focused), -step if step > 0 else 0)
            self.set_focus(panes[(at + step) % len(panes)])
        self.tell()

    def action_zoom(self) -> None:
        """The pane alone, or all again."""
        panes: dict[Any, str] = {self.listed: "list", self.detail: "detail", self.hexes: "bytes"}
        name = panes.get(self.focused)
        on = any(self.has_class(f"-only-{pane}") for pane in ("list", "detail", "bytes"))
        for pane in ("list", "detail", "bytes"):
            self.set_class(not on and pane == name, f"-only-{pane}")
        self._lay()

    def action_layout(self) -> None:
        """Details below the list, or beside it."""
        self.home.look.layout = "columns" if self.home.look.layout == "rows" else "rows"
        self._lay()
        self.home.keep()

    def action_bytes(self) -> None:
        """Shows or hides the bytes."""
        self.home.look.bytes = not self.home.look.bytes
        if self.focused is self.hexes:
            self.set_focus(self.listed)
        self._lay()
        self.home.keep()

    def action_detail(self) -> None:
        """Shows or hides tree and bytes."""
        self.home.look.detail = not self.home.look.detail
        self.set_focus(self.listed)
        self._lay()
        self.home.keep()

    def action_share(self, by: int) -> None:
        """Another size of the list, or of the bytes where they have the focus."""
        look, wide = self.home.look, self.has_class("-wide")
        beside = wide and look.layout == "columns"
        if self.focused is self.hexes:
            name, more = ("bytes_width", by) if wide and not beside else ("bytes_share", by)
        else:
            name, more = ("beside_width", -by) if beside else ("share", by)
        self._resized(name, getattr(look, name) + more)
        self.home.keep()

    def _resized(self, name: str, size: int) -> None:
        """A part of the screen has another size."""
        least, most = SIZES.get(name, SHARES)
        setattr(self.home.look, name, max(least, min(most, size)))
        self._lay()

    @on(Edges.Dragged)
    def dragged(self, event: Edges.Dragged) -> None:
        """An edge is wanted elsewhere."""
        panes, lower = self.query_one("#panes").region, self.lower.region
        beside = self.has_class("-wide") and self.home.look.layout == "columns"
        if event.side == "left":
            self._resized("beside_width" if event.part is self.lower else "bytes_width", lower.right - event.x)
        elif event.part.id == "dump" and (beside or not self.has_class("-wide")):
            self._resized("bytes_share", round((lower.bottom - event.y) * 100 / max(1, lower.height)))
        elif not beside:
            self._resized("share", round((event.y - panes.y) * 100 / max(1, panes.height)))

    @on(Edges.Dropped)
    def dropped(self, _event: Edges.Dropped) -> None:
        """It is let go."""
        self.home.keep()
