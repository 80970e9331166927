"""The list of exchanges: one line each, for any number of them.

In: a `ListModel`. Out: messages: the cursor moved, an exchange was opened, a heading was clicked. Law: only visible rows are
rendered, and each only once while nothing changes.
"""

from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from kcap.reports.text import wrapped
from kcap.tui.list_columns import GAP, SORTED, Head, cut
from kcap.tui.list_model import GUTTER, Cells, ListModel
from kcap.tui.views.paint import PANE_CSS, Lines
from kcap.tui.views.sheet import Line

CACHED_SCREENS = 4
"""Number of rendered rows that are cached, in screens."""
TONED = frozenset({"call", "result", "latency"})
"""Columns that take the tone of their row's rule."""


class ExchangeList(Lines):
    DEFAULT_CSS = f"ExchangeList {{ height: 1fr; scrollbar-size: 1 1; scrollbar-gutter: stable; {PANE_CSS} }}"
    BINDING_GROUP_TITLE = "The list"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("end,G", "edge(1)", "Last, and auto scroll", show=False),
        Binding("enter", "choose", "Open"),
        Binding("right,l", "side(1)", "Column to the right", show=False),
        Binding("left,h", "side(-1)", "Column to the left", show=False),
        Binding("s", "sort", "Sort"),
        Binding("z", "turn", "Reverse the order", show=False),
        Binding("m", "mark", "Mark", show=False),
        Binding("quotation_mark", "mark_step(-1)", "Previous mark", show=False),
        Binding("apostrophe", "mark_step(1)", "Next mark", show=False),
        Binding("greater_than_sign", "widen(2)", "Wider column", show=False),
        Binding("less_than_sign", "widen(-2)", "Narrower column", show=False),
    ]

    class Moved(Message):
        """Posted when another exchange is under the cursor, which opens it."""

    class Chosen(Message):
        """Posted when an exchange is opened."""

    class Sorted(Message):
        """Posted when another order is requested."""

    class MenuRequested(Message):
        """Posted when the menu of filters for the cell is requested."""

    class Noted(Message):
        """Posted when a mark was set or removed."""

    class Laid(Message):
        """Posted when the columns changed."""

    def __init__(self, view: ListModel, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.view = view
        self.heads: list[tuple[Head, int]] = []
        self._page: dict[int, Cells] = {}
        self._strips: dict[int, Strip] = {}
        """Rendered rows of the page, without the cursor."""
        self._known: int | None = None
        self.empty = ""
        """The message without rows."""
        self._held: int | None = None
        """The column whose heading, or whose edge, the mouse drags."""
        self._edge = self._dragged = False

    # -- what is shown ------------------------------------------------------------------------------------------------
    def renew(self) -> None:
        self._forget()
        self._lay()
        self._keep_in_sight()
        self._tell()
        self.refresh()

    def _forget(self) -> None:
        """Discards rendered rows."""
        self._page, self._strips = {}, {}

    def _widen(self) -> None:
        """Lays out again for a longer cell; discards rendered rows if other columns are shown."""
        before = [head for head, _ in self.heads]
        self._lay()
        if before != [head for head, _ in self.heads]:
            self._forget()
        self.refresh()

    def _lay(self) -> None:
        self._strips = {}
        room = max(20, self.scrollable_content_region.width)
        self.heads = self.view.heads(room)
        self.view.column = max(0, min(self.view.column, len(self.heads) - 1))
        width = GUTTER + sum(width + GAP for _, width in self.heads) - GAP
        self.virtual_size = Size(max(width, 1) if self.view.chosen else room, len(self.view) + 1)

    def on_resize(self, _event: events.Resize) -> None:
        """Chooses the columns that fit the new width."""
        self.renew()

    def notify_style_update(self) -> None:
        """Repaints with the colors of the new theme."""
        super().notify_style_update()
        self._strips = {}

    def _tell(self) -> None:
        """Posts `Moved` if another exchange is under the cursor."""
        if self.view.current != self._known:
            self._known = self.view.current
            self.post_message(self.Moved())

    @property
    def head(self) -> Head | None:
        """The column of the cursor."""
        return self.heads[self.view.column][0] if self.view.column < len(self.heads) else None

    @property
    def in_sight(self) -> tuple[int, int] | None:
        """Rows of the first and the last visible line."""
        first = self.view.number(self.scroll_offset.y)
        last = self.view.number(min(len(self.view), self.scroll_offset.y + max(1, self.size.height - 1)) - 1)
        return (first, last) if first is not None and last is not None else None

    # -- painting -----------------------------------------------------------------------------------------------------
    def cells(self, place: int) -> Cells | None:
        """The row at a position; all visible rows are made together."""
        if place not in self._page:
            first, count = self.scroll_offset.y, max(1, self.size.height)
            if not first <= place < first + count:
                first = place
            if len(self._page) > CACHED_SCREENS * count:
                self._forget()
            missing = [at for at in range(first, min(first + count, len(self.view))) if at not in self._page]
            if missing:
                before = dict(self.view.needs)
                made = self.view.page(missing[0], missing[-1] - missing[0] + 1, [head for head, _ in self.heads])
                if self.view.needs != before:
                    self.call_after_refresh(self._widen)
                self._page.update({missing[0] + at: cells for at, cells in enumerate(made)})
        return self._page.get(place)

    def paint(self, y: int) -> Strip:
        left, top = self.scroll_offset
        width = self.size.width
        base = self.base
        full = max(width, self.virtual_size.width)
        if not y:
            return self.strip(self._titles(), full, base).crop_extend(left, left + width, base)
        place = top + y - 1
        if place >= len(self.view):
            message = wrapped(self.empty, max(width - 3, 1)) if not len(self.view) else []
            line: Line = [("  " + message[y - 2], "dim")] if 0 <= y - 2 < len(message) else []
            return self.strip(line, width, base)
        found = self._strips.get(place) if place != self.view.cursor else None
        if found is None:
            cells = self.cells(place)
            if cells is None:
                return Strip.blank(width, base)
            found = self._row(cells, place == self.view.cursor, full, base)
            if place != self.view.cursor:
                self._strips[place] = found
        return found.crop_extend(left, left + width, base)

    def _titles(self) -> Line:
        line: Line = [(" " * GUTTER, "head")]
        for at, (head, width) in enumerate(self.heads):
            arrow = "" if head.name != self.view.sort else SORTED[self.view.descending]
            text = cut(head.title, width - len(arrow), right=head.right)
            text = arrow + text if head.right else text.rstrip() + arrow
            line.append((text.rjust(width) if head.right else text.ljust(width), "key" if at == self.view.column else "head"))
            line.append((" " * GAP, "head"))
        return line[:-1]

    def _row(self, cells: Cells, under: bool, full: int, base: Style) -> Strip:
        rule = cells.rule
        tone = "dim" if cells.ignored else rule.tone if rule is not None else ""
        line: Line = [(cells.sign or " ", "key"), (rule.sign if rule is not None else " ", tone), (" ", "")]
        focused = under and self.has_focus
        for at, ((head, width), text) in enumerate(zip(self.heads, cells.texts)):
            shown = cut(text, width, right=head.right, ends=head.ends)
            here = focused and at == self.view.column
            cell_tone = tone if tone == "dim" or head.name in TONED else "dim" if head.name == "time" else ""
            line.append((shown, "cell" if here else cell_tone))
            line.append((" " * GAP, ""))
        if under:
            base = base + self.tone_style("cursor")
        return self.strip(line, full, base)

    # -- moving -------------------------------------------------------------------------------------------------------
    def _keep_in_sight(self) -> None:
        room = max(1, self.size.height - 1)
        wanted = self.see_line(self.view.cursor, self.scroll_offset.y, room)
        self.scroll_up_to(max(0, min(wanted, max(0, len(self.view) - room))))
        self._see_column()

    def _see_column(self) -> None:
        if not self.view.chosen or not self.heads:
            return
        start = GUTTER + sum(width + GAP for _, width in self.heads[: self.view.column])
        end = start + self.heads[self.view.column][1]
        left, room = self.scroll_offset.x, self.scrollable_content_region.width
        wanted = start if start < left else end - room if end > left + room else left
        if self.view.column == 0:
            wanted = 0
        if wanted != left:
            self.scroll_aside_to(wanted)

    def _line(self, place: int) -> None:
        """Repaints one row."""
        self.refresh(Region(0, place - self.scroll_offset.y + 1, self.size.width, 1))

    def go(self, place: int) -> None:
        before, top = self.view.cursor, self.scroll_offset.y
        self.view.go(place)
        self._keep_in_sight()
        if self.scroll_offset.y != top:
            self.refresh()
        else:
            self._line(before)
            self._line(self.view.cursor)
        self._tell()

    def action_move(self, by: int) -> None:
        self.go(self.view.cursor + by)

    def action_page(self, by: int) -> None:
        self.go(self.view.cursor + by * max(1, self.size.height - 2))

    def action_edge(self, side: int) -> None:
        self.go(0 if side < 0 else len(self.view) - 1)
        if side > 0 and not self.view.book.done:
            self.view.follow = True
            self.post_message(self.Laid())

    def action_side(self, by: int) -> None:
        self.view.column = max(0, min(self.view.column + by, len(self.heads) - 1))
        self._see_column()
        self.refresh()

    def action_choose(self) -> None:
        self.post_message(self.Chosen())

    def action_sort(self) -> None:
        if self.head is not None:
            self.view.order_by(self.head.name)
            self.post_message(self.Sorted())

    def action_turn(self) -> None:
        self.view.order_by(self.view.sort)
        self.post_message(self.Sorted())

    def action_mark(self) -> None:
        self.view.mark()
        self.post_message(self.Noted())
        self._forget()
        self.action_move(1)

    def action_mark_step(self, step: int) -> None:
        if self.view.next_mark(step):
            self.renew()
        else:
            more = " further" if self.view.marks else ""
            self.notify(f"there is no{more} mark {'below' if step > 0 else 'above'}; m marks the exchange", timeout=3)

    def action_widen(self, by: int) -> None:
        if self.head is not None:
            _, width = self.heads[self.view.column]
            self.view.widths[self.head.name] = max(3, width + by)
            self.renew()
            self.post_message(self.Laid())

    # -- the mouse ----------------------------------------------------------------------------------------------------
    def place_of(self, x: int) -> tuple[int, int, int] | None:
        """The column at a position of the line: its number, where it begins, its width."""
        start, x = GUTTER, x + self.scroll_offset.x
        for at, (_, width) in enumerate(self.heads):
            if start <= x < start + width + GAP:
                return at, start - self.scroll_offset.x, width
            start += width + GAP
        return None

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begins dragging a heading, or the blank after it."""
        found = self.place_of(event.x) if not event.y and event.button == 1 else None
        self._dragged = False
        if found is not None:
            at, start, width = found
            self._held, self._edge = at, event.x == start + width
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Moves the edge of a column with the mouse."""
        if self._held is None or self._held >= len(self.heads):
            return
        self._dragged = True
        if self._edge:
            start = GUTTER + sum(width + GAP for _, width in self.heads[: self._held]) - self.scroll_offset.x
            self.view.widths[self.heads[self._held][0].name] = max(3, event.x - start)
            self.renew()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Sets the new width or position of a column."""
        held, self._held = self._held, None
        if held is None:
            return
        self.release_mouse()
        found = self.place_of(event.x)
        if self._dragged and not self._edge and found is not None and found[0] != held:
            names = [head.name for head, _ in self.heads]
            names.insert(found[0], names.pop(held))
            self.view.names, self.view.chosen, self.view.column = names, True, found[0]
            self.renew()
        if self._dragged:
            self.post_message(self.Laid())

    def on_click(self, event: events.Click) -> None:
        """Selects a row or a heading; with the other button, opens the menu of filters."""
        found = self.place_of(event.x)
        moved, self._dragged = self._dragged, False
        if moved or (not event.y and found is not None and event.x == found[1] + found[2]):
            return
        if found is not None:
            self.view.column = found[0]
            if not event.y:
                self.view.order_by(self.heads[found[0]][0].name)
                self.post_message(self.Sorted())
        place = self.scroll_offset.y + event.y - 1
        if event.y and place < len(self.view):
            self.go(place)
            if event.button == 3:
                self.post_message(self.MenuRequested())
            elif event.chain > 1:
                self.post_message(self.Chosen())
        self.refresh()
