"""The body of a view: its table, and the details beside or below it, whose size the user sets.

In: lines and bars of the details, actions, the mouse at the edge. Out: styles, settings. Law: the size applies to all views and
is saved.
"""

from typing import Final, cast

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from kcap.tui.key_map import ExplainsKeys
from kcap.tui.splitters import Edges, SplitSide
from kcap.tui.views.home import Home
from kcap.tui.views.picture import Picture
from kcap.tui.views.sheet import Bars, Line
from kcap.tui.views.styled_lines import StyledText
from kcap.tui.views.table import SheetTable

DETAILS: Final = 0.4
"""Share of the details below a table that fills the rest."""


class Body(Vertical):
    """A table with resizable details."""

    def __init__(self) -> None:
        super().__init__(id="body")
        self.table, self.detail = SheetTable(id="main"), StyledText(id="detail")
        self.side = SplitSide(id="side", can_focus=False)

    def compose(self) -> ComposeResult:
        yield self.table
        with self.side:
            yield self.detail

    @property
    def home(self) -> Home:
        return cast("Home", self.app)

    @property
    def wide(self) -> bool:
        """Whether the terminal has room for the details beside the table."""
        return self.screen.has_class("-wide")

    @property
    def room(self) -> int:
        """Cells per line of the details, without the scrollbar; 0 before they are laid out."""
        room = self.side.scrollable_content_region.width
        return max(20, room - (not self.side.show_vertical_scrollbar)) if room else 0

    def show_details(self, lines: list[Line], bars: list[Bars]) -> None:
        self.detail.set_class(not lines, "hidden")
        self.detail.set_lines(lines)
        pictures = list(self.side.query(Picture))
        for picture, one in zip(pictures, bars):
            picture.set(one)
        for picture in pictures[len(bars) :]:
            picture.remove()
        for one in bars[len(pictures) :]:
            self.side.mount(Picture(one))

    def lay(self) -> None:
        """Applies the size that the user set; without one, details below the table get the lines that it does not fill."""
        look, wide, side = self.home.look, self.wide, self.side
        free = self.size.height - self.table.virtual_size.height - 1 if self.table.rows else 0
        side.styles.width = f"{look.view_width}%" if wide and look.view_width else None
        least = round(self.size.height * DETAILS)
        side.styles.height = None if wide else f"{look.view_height}%" if look.view_height else max(free, least) or None
        side.styles.max_width = "100%" if wide and look.view_width else None

    def on_resize(self) -> None:
        """Lays out again, since the table may fill less of another height."""
        self.lay()

    def _sized(self, per_cent: int) -> None:
        setattr(self.home.look, "view_width" if self.wide else "view_height", max(10, min(80, per_cent)))
        self.lay()

    def action_share(self, by: int) -> None:
        side, body = self.side.region, self.region
        if side.area:
            self._sized(round((side.width / body.width if self.wide else side.height / body.height) * 100) + by)
            self.home.save_settings()
        else:
            cast("ExplainsKeys", self.screen).say_once("no details are shown")

    @on(Edges.Dragged)
    def dragged(self, event: Edges.Dragged) -> None:
        body = self.region
        if event.side == "left":
            self._sized(round((body.right - event.x) * 100 / max(1, body.width)))
        else:
            self._sized(round((body.bottom - event.y) * 100 / max(1, body.height)))

    @on(Edges.Dropped)
    def dropped(self, _event: Edges.Dropped) -> None:
        """Saves the layout when the mouse button is released."""
        self.home.save_settings()
