"""What a view does with the row under the cursor: filter, mark, copy, follow its connection, go to another view.

In: keys, a table. Out: filters, the clipboard, files, other screens. Law: a key that has no effect on a row says why.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from kcap.reports.text import count
from kcap.tui.menu import Choice, Menu, copied, copy_menu, views_menu
from kcap.tui.views import VIEWS, load
from kcap.tui.views.body import Body
from kcap.tui.views.picture import Picture
from kcap.tui.views.sheet import Down, Page, Sheet, SortOrder, as_text
from kcap.tui.views.view_filter import NO_FILTER, ViewFilter
from kcap.tui.views.view_search import ViewSearch


class RowActions(Body):
    """Base class of views: a page of sections, one of them in the table."""

    NAME: ClassVar[str] = ""
    GROUPINGS: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Groupings of the rows, the default first."""
    FILTERED: ClassVar[bool] = True
    """Whether the view covers what passes the display filter; otherwise it covers the whole capture."""

    def __init__(self) -> None:
        super().__init__()
        self.shown = Page()
        self.at = 0
        """Number of the section."""
        self.grouping = 0
        self.search = ViewSearch(self)
        self.filters = ViewFilter(self)
        self.stumble = ""
        """Error of a part of the page."""
        self._orders: dict[str, SortOrder] = {}

    @property
    def sheet(self) -> Sheet | None:
        """The displayed section."""
        return self.shown.sheets[self.at] if self.shown.sheets else None

    @property
    def by(self) -> tuple[str, ...]:
        """The grouping."""
        return self.GROUPINGS[self.grouping % len(self.GROUPINGS)] if self.GROUPINGS else ()

    def _order(self, sheet: Sheet) -> SortOrder:
        return self._orders.setdefault(f"{sheet.name} {self.by}", SortOrder())

    @property
    def down(self) -> Down:
        """The drill-down of the focused widget."""
        focused = self.focused
        return focused.down if isinstance(focused, Picture) else self.table.down

    def careful(self, make: Callable[[], Any], otherwise: Any) -> Any:
        """The result of a call; a default and an error message where it raises, so that the session continues."""
        try:
            return make()
        except Exception as error:  # noqa: BLE001 - whatever a sheet stumbles over, it is no reason to lose the session
            self.stumble = f"parts of this view cannot be shown: {type(error).__name__}: {error}"
            return otherwise

    def look(self) -> None:
        """Computes a new page when it is due."""
        raise NotImplementedError

    def unable(self, key: str) -> str | None:
        """Why a key that works in other views, or on other rows, has no effect here."""
        sections = len(self.shown.sheets)
        if key == "B":
            return f"this {'section' if self.GROUPINGS else 'view'} has one grouping"
        if key == "w":
            return "this row names no connection to follow"
        if key == "m":
            return "this row is not one exchange; m marks exchanges"
        return f"this view has {count(sections, 'section')}" if key.isdecimal() and sections else None

    def action_filter(self) -> None:
        """Prompts for a display filter."""
        self.filters.ask()

    def action_quick(self) -> None:
        """Opens the menu of quick filters."""
        self.filters.quick()

    def action_apply(self, how: str) -> None:
        """Filters by the cell under the cursor, or excludes it."""
        self.filters.apply(how)

    def action_pane(self, step: int) -> None:
        """Focuses the table or its bars."""
        if not self.query(Picture):
            self.say_once("this section has no bars to go to")
        elif step > 0:
            self.focus_next()
        else:
            self.focus_previous()

    def action_mark(self) -> None:
        """Marks the exchange of the row in the list, or removes its mark."""
        down = self.careful(lambda: self.down, None)
        if isinstance(down, tuple):
            self.notify(self.home.mark(*down), timeout=2)

    def action_views(self) -> None:
        """The menu of views."""
        self.app.push_screen(views_menu(), lambda name: self.action_switch(name) if name is not None else None)

    def action_export(self) -> None:
        """Opens the menu of files to save."""
        only = self.filters.text
        choices = [
            Choice("packets", "p", "Packets of the exchanges of this cell", only, bool(only), NO_FILTER),
            Choice("text", "t", "This section as text", "", self.sheet is not None, "nothing has been computed yet"),
        ]
        self.app.push_screen(Menu("Save", choices), lambda name: self._save(name, only))

    def _save(self, name: str | None, only: str) -> None:
        if name == "packets":
            self.home.save_packets(self.filters.within(only))
        elif name == "text" and self.sheet is not None:
            sheet, order = self.sheet, self._order(self.sheet)
            text = self.careful(lambda: as_text(self.shown, sheet, order), None)
            if text is not None:
                self.home.save_text(f"kcap-{self.NAME}.txt", text)

    def action_copy(self) -> None:
        """Opens the menu of texts to copy."""
        row, sheet = self.table.current, self.sheet
        if row is None or sheet is None:
            self.say_once("there is no row to copy")
            return
        cells = self.careful(lambda: [column.text(row) for column in sheet.fields], [])
        texts = {
            "value": cells[self.table.at] if self.table.at < len(cells) else "", "row": "\t".join(cells),
            "filter": self.filters.text, "force": self.home.book.filter_text,
        }  # fmt: skip
        self.app.push_screen(copy_menu(texts), lambda name: copied(self, texts, name))

    def action_switch(self, name: str) -> None:
        """Switches to another view."""
        uid = self._connection() if name == "ladder" else None
        if name == self.NAME:
            self.say_once(f"this is the view: {VIEWS[name][1]}")
        elif uid is not None:
            self.app.push_screen(load(name)(uid))
        else:
            self.app.switch_screen(load(name)())

    def action_search(self) -> None:
        """Searches in the table."""
        self.search.ask()

    def action_search_on(self, step: int) -> None:
        """Goes to the next or the previous match."""
        self.search.go(step)

    def _connection(self) -> str | None:
        """The connection that the row under the cursor is about."""
        sheet, row = self.sheet, self.table.current
        of = sheet.connection if sheet is not None else None
        found: str | None = self.careful(lambda: of(row), None) if of is not None and row is not None else None
        return found

    def _followed(self) -> tuple[str, int] | None:
        """The exchange to begin with where the row's connection is followed: its own, else the first."""
        down, uid = self.careful(lambda: self.table.down, None), self._connection()
        return down if isinstance(down, tuple) else (uid, 1) if uid is not None else None

    def action_conversation(self) -> None:
        """The messages of the row's connection, one after the other."""
        from kcap.tui.followed_stream import FollowedStream

        if (found := self._followed()) is not None:
            self.app.push_screen(FollowedStream(*found))
