"""The table of a view: one line per row, a cursor on one cell.

In: a sheet. Out: messages: the cursor moved, a cell was opened, a heading was clicked. Law: the table paints the texts of the
sheet; only visible rows are rendered.
"""

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from kcap.output.grid import GAP
from kcap.reports.definition import Row
from kcap.reports.text import wrapped
from kcap.tui.list_columns import cut
from kcap.tui.views.paint import CSS, Lines
from kcap.tui.views.sheet import Down, Sheet, SortOrder, down_of, widths_of


class SheetTable(Lines):
    """Shows a sheet with a cursor."""

    DEFAULT_CSS = f"SheetTable {{ height: 1fr; scrollbar-gutter: stable; scrollbar-size: 1 1; {CSS} }}"
    BINDING_GROUP_TITLE = "The table"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "side(-1)", "Cell to the left", show=False),
        Binding("right,l", "side(1)", "Cell to the right", show=False),
        Binding("enter", "choose", "Show"),
    ]

    class Moved(Message):
        """Posted when the cursor is on another cell."""

    class Resized(Message):
        """Posted when the table has another width, for sheets that are drawn to a width."""

    class Chosen(Message):
        """Posted when a cell is to be followed."""

    class Sorted(Message):
        """Posted when a heading was clicked."""

        def __init__(self, at: int) -> None:
            super().__init__()
            self.at = at

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.sheet: Sheet | None = None
        self.order = SortOrder()
        self.rows: list[Row] = []
        self.row, self.at = 0, 0
        self.all_columns = False
        """Whether all columns are shown, including those that do not fit."""
        self._widths: list[int] = []

    # -- what is shown ------------------------------------------------------------------------------------------------
    def show(self, sheet: Sheet, order: SortOrder, *, keep_cursor: bool) -> None:
        """Shows a sheet; with `keep_cursor` the cursor stays on its row."""
        same = keep_cursor and self.sheet is not None and self.sheet.name == sheet.name
        before, here = self.rows, self.row
        names = [self._called(row) for row in before[: here + 1]] if same else []
        self.sheet, self.order = sheet, order
        self.rows = order.rows(sheet)
        self.row = self._place_of(before[here], names, here) if same and here < len(before) else 0
        self.at = self.at if same else 0
        self.row = max(0, min(self.row, len(self.rows) - 1))
        self._lay()
        self._follow()
        self.call_after_refresh(self._follow)  # the scroll bar may appear and take the last line
        self.post_message(self.Moved())

    def say(self, words: str) -> None:
        """Shows why there are no rows."""
        if self.sheet is not None:
            self.sheet.empty = words
            self.refresh()

    def forget(self) -> None:
        """Drops the sheet."""
        self.sheet, self.rows = None, []

    def _place_of(self, row: Row, names: list[Down], otherwise: int) -> int:
        """The position of a row: of the same object, else of the same target (its drill-down), by its number among the rows
        with that target."""
        found = next((at for at, one in enumerate(self.rows) if one is row), None)
        if found is not None:
            return found
        alike = [at for at, one in enumerate(self.rows) if self._called(one) == names[-1]] if names[-1] is not None else []
        return alike[min(names.count(names[-1]), len(alike)) - 1] if alike else otherwise

    def _called(self, row: Row) -> Down:
        return self.sheet.down(row) if self.sheet is not None else None

    def _lay(self) -> None:
        if self.sheet is None:
            return
        self._widths = widths_of(
            self.sheet, self.rows, max(20, self.scrollable_content_region.width - 1), all_columns=self.all_columns
        )
        shown = [width for width in self._widths if width]
        self.virtual_size = Size(sum(shown) + len(GAP) * max(0, len(shown) - 1) + 1, len(self.rows) + 1)
        if self.at < len(self._widths) and not self._widths[self.at]:
            self.at = next((at for at, width in enumerate(self._widths) if width), 0)
        self.refresh()

    def on_resize(self, _event: events.Resize) -> None:
        """Chooses the columns that fit the new width."""
        self._lay()
        self._follow()
        self.post_message(self.Resized())

    @property
    def current(self) -> Row | None:
        return self.rows[self.row] if self.row < len(self.rows) else None

    @property
    def down(self) -> Down:
        """The target of the cell under the cursor."""
        row = self.current
        return down_of(self.sheet, row, self.at) if self.sheet is not None and row is not None else None

    # -- painting -----------------------------------------------------------------------------------------------------
    def paint(self, y: int) -> Strip:
        width = self.size.width
        base = self.base
        if self.sheet is None:
            return Strip.blank(width, base)
        left, top = self.scroll_offset
        if y == 0:
            return self._head(base).crop_extend(left, left + width, base)
        at = top + y - 1
        if at >= len(self.rows):
            said = wrapped(self.sheet.empty, max(width - 3, 1)) if not self.rows else []
            if 0 <= y - 2 < len(said):
                return Strip([Segment(cut(f"  {said[y - 2]}", width, right=False), base + self.tone_style("dim"))])
            return Strip.blank(width, base)
        try:
            made = self._line(at, base)
        except Exception as error:  # noqa: BLE001 - one row that cannot be painted is no reason to lose the session
            made = Strip([Segment(f"  this row cannot be shown: {type(error).__name__}", base + self.tone_style("bad"))])
        return made.crop_extend(left, left + width, self._back(at, base))

    def _back(self, at: int, base: Style) -> Style:
        return base + self.tone_style("cursor") if at == self.row else base

    def _head(self, base: Style) -> Strip:
        assert self.sheet is not None
        style = base + self.tone_style("head")
        parts = [Segment(" ", base)]
        for at, (column, width) in enumerate(zip(self.sheet.fields, self._widths)):
            if width:
                mark = self.order.mark(at)
                text = (column.head[: width - len(mark)] if mark else column.head[:width]) + mark
                here = style + self.tone_style("key") if at == self.at and self.rows else style
                parts += [Segment(text.rjust(width) if column.right else text.ljust(width), here), Segment(GAP, base)]
        return Strip(parts[:-1] if len(parts) > 1 else parts)

    def _line(self, at: int, base: Style) -> Strip:
        assert self.sheet is not None
        row, back = self.rows[at], self._back(at, base)
        parts = [Segment("▸" if at == self.row else " ", back + self.tone_style("key"))]
        for number, (column, width) in enumerate(zip(self.sheet.fields, self._widths)):
            if not width:
                continue
            text = cut(column.text(row), width, right=column.right)
            style = back + self.tone_style(column.tone(row) if column.tone is not None else "")
            if at == self.row and number == self.at and self.has_focus:
                style = base + self.tone_style("cell")
            parts += [Segment(text, style), Segment(GAP, back)]
        return Strip(parts[:-1] if len(parts) > 1 else parts)

    # -- moving -------------------------------------------------------------------------------------------------------
    def go(self, row: int, at: int | None = None) -> None:
        before = self.row
        self.row = max(0, min(row, len(self.rows) - 1))
        if at is not None and at < len(self._widths) and self._widths[at]:
            self.at = at
        self._follow()
        width = self.size.width
        for line in {before, self.row}:
            self.refresh(Region(0, line + 1 - self.scroll_offset.y, width, 1))
        self.refresh(Region(0, 0, width, 1))
        self.post_message(self.Moved())

    def _follow(self) -> None:
        """Scrolls to the cursor."""
        height, top = max(1, self.scrollable_content_region.height - 1), self.scroll_offset.y
        self.scroll_up_to(self.see_line(self.row, top, height))
        if not self.all_columns or self.at >= len(self._widths):
            return
        start = 1 + sum(width + len(GAP) for width in self._widths[: self.at] if width)
        left, end = self.scroll_offset.x, start + self._widths[self.at]
        if start - 1 < left:
            self.scroll_aside_to(start - 1)
        elif end > left + self.size.width - 2:
            self.scroll_aside_to(end - self.size.width + 2)

    def action_move(self, by: int) -> None:
        self.go(self.row + by)

    def action_page(self, by: int) -> None:
        self.go(self.row + by * max(1, self.scrollable_content_region.height - 2))

    def action_edge(self, end: int) -> None:
        self.go(0 if end < 0 else len(self.rows) - 1)

    def action_side(self, by: int) -> None:
        able = [at for at, width in enumerate(self._widths) if width]
        if able and self.at in able:
            self.go(self.row, able[max(0, min(able.index(self.at) + by, len(able) - 1))])

    def action_choose(self) -> None:
        """Follows the cell."""
        self.post_message(self.Chosen())

    def column_at(self, x: int) -> int | None:
        """The column at a position of a line."""
        start = 1
        for at, width in enumerate(self._widths):
            if width:
                if start <= x < start + width + len(GAP):
                    return at
                start += width + len(GAP)
        return None

    def on_click(self, event: events.Click) -> None:
        """Sorts by a heading; moves the cursor to a cell; follows it on a double click."""
        at = self.column_at(event.x + self.scroll_offset.x)
        if event.y == 0:
            if at is not None:
                self.post_message(self.Sorted(at))
            return
        row = self.scroll_offset.y + event.y - 1
        if row < len(self.rows):
            self.go(row, at)
            if event.chain > 1:
                self.action_choose()
