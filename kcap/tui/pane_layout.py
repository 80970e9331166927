"""The panes of the main screen: list, tree, bytes; which are shown, how large they are, which has the focus.

In: keys, the mouse at an edge. Out: styles, settings. Law: the layout is saved and holds at any size of the terminal.
"""

from typing import TYPE_CHECKING, Any, Final, cast

from textual import on

from kcap.tui.config import SIZES
from kcap.tui.key_map import ExplainsKeys
from kcap.tui.panes.bytes import Bytes
from kcap.tui.panes.detail import Detail
from kcap.tui.panes.exchange import ExchangePane, Opened
from kcap.tui.panes.exchanges import ExchangeList
from kcap.tui.panes.filter_bar import FilterBar
from kcap.tui.panes.timeline import TimeStrip
from kcap.tui.splitters import Edges

if TYPE_CHECKING:
    from kcap.tui.app import KcapApp

LIST_HEIGHTS: Final = (15, 85)
"""The least and the most height of the list, in per cent."""
PANES: Final = ("list", "detail", "bytes")


class PaneLayout(ExplainsKeys):
    """Base class of the main screen."""

    @property
    def home(self) -> "KcapApp":
        """The app."""
        return cast("KcapApp", self.app)

    # -- the parts ----------------------------------------------------------------------------------------------------
    @property
    def opened(self) -> Opened | None:
        """The exchange that is shown."""
        return self.lower.opened

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

    @property
    def strip(self) -> TimeStrip:
        """Latency over time."""
        return self.query_one(TimeStrip)

    @property
    def bar(self) -> FilterBar:
        """The filter bar."""
        return self.query_one(FilterBar)

    def show_status(self) -> None:
        """Title and status line."""
        raise NotImplementedError

    # -- layout of the panes ------------------------------------------------------------------------------------------
    def _lay(self) -> None:
        """Sizes and what is shown, by the settings."""
        look = self.home.look
        self.set_class(not look.bytes, "-no-bytes")
        self.set_class(not look.detail, "-no-detail")
        self.set_class(look.layout == "columns", "-columns")
        beside = self.has_class("-columns") and self.has_class("-wide")
        alone = not look.detail or self.has_class("-only-list") or beside
        self.listed.styles.height = "1fr" if alone else f"{look.share}%"
        dump, zoomed = self.query_one("#dump"), any(self.has_class(f"-only-{pane}") for pane in PANES)
        across = self.has_class("-wide") and not beside
        dump.styles.width = max(20, min(look.bytes_width, self.size.width - 30)) if across and not zoomed else None
        dump.styles.height = f"{look.bytes_share}%" if not across and not zoomed else None
        self.lower.styles.width = max(30, min(look.beside_width, self.size.width - 30)) if beside and not zoomed else None

    @on(ExchangeList.Laid)
    @on(Edges.Dropped)
    def laid(self, _event: ExchangeList.Laid | Edges.Dropped) -> None:
        """Saves the widths of columns, and sizes of panes when the mouse button is released."""
        self.home.save_settings()
        self.show_status()

    def on_resize(self) -> None:
        """Lays out and paints for the new size."""
        self.call_after_refresh(self.again)

    def again(self) -> None:
        """Lays out and paints again."""
        self._lay()
        self.show_status()

    def action_pane(self, step: int) -> None:
        """Focuses the next visible pane."""
        panes = [pane for pane in (self.listed, self.detail, self.hexes) if pane.region.area]
        if panes:
            at = next((at for at, pane in enumerate(panes) if pane is self.focused), -step if step > 0 else 0)
            self.set_focus(panes[(at + step) % len(panes)])
        self.show_status()

    def action_part(self, at: int) -> None:
        """Focuses a pane, and shows it where it is hidden."""
        look, pane = self.home.look, (self.listed, self.detail, self.hexes)[at - 1]
        if not (look.detail or at == 1):
            self.action_detail()
        if not look.bytes and at == len(PANES):
            self.action_bytes()
        if any(self.has_class(f"-only-{name}") for name in PANES) and not self.has_class(f"-only-{PANES[at - 1]}"):
            self.action_zoom()
        self.set_focus(pane)
        self.show_status()

    def action_zoom(self) -> None:
        """Zooms the focused pane, or shows all panes."""
        panes: dict[Any, str] = {self.listed: "list", self.detail: "detail", self.hexes: "bytes"}
        name = panes.get(self.focused)
        on = any(self.has_class(f"-only-{pane}") for pane in PANES)
        for pane in PANES:
            self.set_class(not on and pane == name, f"-only-{pane}")
        self._lay()

    def action_layout(self) -> None:
        """Details below the list, or beside it."""
        self.home.look.layout = "columns" if self.home.look.layout == "rows" else "rows"
        self._lay()
        self.home.save_settings()

    def action_bytes(self) -> None:
        """Shows or hides the bytes."""
        self.home.look.bytes = not self.home.look.bytes
        if self.focused is self.hexes:
            self.set_focus(self.listed)
        self._lay()
        self.home.save_settings()

    def action_detail(self) -> None:
        """Shows or hides tree and bytes."""
        self.home.look.detail = not self.home.look.detail
        self.set_focus(self.listed)
        self._lay()
        self.home.save_settings()

    def action_share(self, by: int) -> None:
        """Resizes the list, or the bytes where they have the focus."""
        look, wide = self.home.look, self.has_class("-wide")
        beside = wide and look.layout == "columns"
        if self.focused is self.hexes:
            name, more = ("bytes_width", by) if wide and not beside else ("bytes_share", by)
        else:
            name, more = ("beside_width", -by) if beside else ("share", by)
        self._resized(name, getattr(look, name) + more)
        self.home.save_settings()

    def _resized(self, name: str, size: int) -> None:
        """Sets a size within its bounds."""
        least, most = SIZES.get(name, LIST_HEIGHTS)
        setattr(self.home.look, name, max(least, min(most, size)))
        self._lay()

    @on(Edges.Dragged)
    def dragged(self, event: Edges.Dragged) -> None:
        """Resizes a pane to a dragged edge."""
        panes, lower = self.query_one("#panes").region, self.lower.region
        beside = self.has_class("-wide") and self.home.look.layout == "columns"
        if event.side == "left":
            self._resized("beside_width" if event.part is self.lower else "bytes_width", lower.right - event.x)
        elif event.part.id == "dump" and (beside or not self.has_class("-wide")):
            self._resized("bytes_share", round((lower.bottom - event.y) * 100 / max(1, lower.height)))
        elif not beside:
            self._resized("share", round((event.y - panes.y) * 100 / max(1, panes.height)))
