"""Lays out a view: its table, and the details beside or below it, whose size the user sets.

In: keys, the mouse at the edge. Out: styles, settings. Law: the size holds for all views and is saved.
"""

from typing import ClassVar, cast

from textual import on
from textual.binding import Binding, BindingType

from kcap.tui.key_map import ExplainsKeys
from kcap.tui.splitters import Edges, SplitSide
from kcap.tui.views.home import Home
from kcap.tui.views.table import SheetTable


class Body(ExplainsKeys):
    """Base class of views: a table with resizable details."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus", "share(5)", "Larger details", show=False, key_display="+"),
        Binding("minus", "share(-5)", "Smaller details", show=False, key_display="-"),
    ]

    @property
    def home(self) -> Home:
        """The app."""
        return cast("Home", self.app)

    @property
    def table(self) -> SheetTable:
        """The table."""
        return self.query_one("#main", SheetTable)

    @property
    def side(self) -> SplitSide:
        """The details."""
        return self.query_one("#side", SplitSide)

    def _lay(self) -> None:
        """Applies the size that the user set."""
        look, wide, side = self.home.look, self.has_class("-wide"), self.side
        side.styles.width = f"{look.view_width}%" if wide and look.view_width else None
        side.styles.height = f"{look.view_height}%" if not wide and look.view_height else None
        side.styles.max_width = "100%" if wide and look.view_width else None

    def _sized(self, per_cent: int) -> None:
        setattr(self.home.look, "view_width" if self.has_class("-wide") else "view_height", max(10, min(80, per_cent)))
        self._lay()

    def action_share(self, by: int) -> None:
        """Resizes the details."""
        side, body = self.side.region, self.query_one("#body").region
        if side.area:
            wide = self.has_class("-wide")
            self._sized(round((side.width / body.width if wide else side.height / body.height) * 100) + by)
            self.home.save_settings()
        else:
            self.say_once("no details are shown")

    @on(Edges.Dragged)
    def dragged(self, event: Edges.Dragged) -> None:
        """Resizes the details to a dragged edge."""
        body = self.query_one("#body").region
        if event.side == "left":
            self._sized(round((body.right - event.x) * 100 / max(1, body.width)))
        else:
            self._sized(round((body.bottom - event.y) * 100 / max(1, body.height)))

    @on(Edges.Dropped)
    def dropped(self, _event: Edges.Dropped) -> None:
        """Saves the layout when the mouse button is released."""
        self.home.save_settings()
