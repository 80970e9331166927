"""Actions of a view: filter, search, mark, copy, save, follow the connection of the row under the cursor.

In: a view, keys. Out: another display filter, another cursor position, the clipboard, files, other screens. Law: keys that
filter the list do the same in a view, which stays open; a search wraps around once and matches the texts of all cells,
including hidden ones, case-insensitively; a key that has no effect on a row says why.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Protocol

from textual.app import App

from kcap.output.grid import clean
from kcap.reports.definition import Row
from kcap.reports.text import TextColumn
from kcap.tui.completion import joined
from kcap.tui.menu import Choice, Menu, Prompt, copied, copy_menu
from kcap.tui.quick_filters import QUICK
from kcap.tui.views.home import Home
from kcap.tui.views.sheet import Down, Page, Sheet, SortOrder, as_text
from kcap.tui.views.table import SheetTable

NO_FILTER: Final = "no filter belongs to this cell"


class OpenView(Protocol):
    """Interface of a view that is shown; its actions use nothing else of it."""

    NAME: ClassVar[str]
    FILTERED: ClassVar[bool]
    """Whether it follows the display filter."""
    table: SheetTable
    shown: Page

    @property
    def home(self) -> Home: ...

    @property
    def app(self) -> App[Any]: ...

    @property
    def notify(self) -> Callable[..., None]: ...

    @property
    def sheet(self) -> Sheet | None:
        """The displayed section."""

    @property
    def down(self) -> Down:
        """The drill-down of the focused widget."""

    def order(self, sheet: Sheet) -> SortOrder:
        """How a section is sorted."""

    def careful(self, make: Callable[[], Any], otherwise: Any) -> Any:
        """The result of a call; a default if it raises."""

    def look(self) -> None:
        """Computes a new page when it is due."""

    def say_once(self, why: str) -> None:
        """Says why a key has no effect."""


def next_cell(
    rows: Sequence[Row], columns: Sequence[TextColumn], text: str, start: tuple[int, int], step: int
) -> tuple[int, int] | None:
    """Row and column of the next cell with a match, starting after a cell, which itself comes last; None if no cell matches."""
    sought, width = text.lower(), len(columns)
    count = len(rows) * width
    if not sought or not count:
        return None
    at = start[0] * width + start[1]
    for number in range(1, count + 1):
        row, column = divmod((at + step * number) % count, width)
        if sought in columns[column].text(rows[row]).lower():
            return row, column
    return None


class ViewActions:
    """The actions of one view, which holds them."""

    def __init__(self, view: OpenView) -> None:
        self.view = view
        self.sought = ""
        """The text of the last search."""

    # -- the display filter -------------------------------------------------------------------------------------------
    @property
    def filter(self) -> str:
        """The filter of the cell or bar under the cursor; empty if there is none."""
        found = self.view.careful(lambda: self.view.down, None)
        return f'connection == "{found[0]}" && exchange == {found[1]}' if isinstance(found, tuple) else found or ""

    def within(self, text: str, how: str = "and") -> str:
        """A filter combined with the display filter, if the view follows that."""
        return joined(self.view.home.book.filter_text if self.view.FILTERED else "", how, text)

    def ask_filter(self) -> None:
        note = "an empty line removes the filter; completion works in the list"
        old = self.view.home.book.filter_text
        self.view.app.push_screen(Prompt("Display filter", old, note, empties=True), self._narrow)

    def quick(self) -> None:
        """Opens the menu of quick filters that are not built from a row of the list."""
        choices = [Choice(quick.text, quick.key, quick.title, quick.text) for quick in QUICK if isinstance(quick.text, str)]
        choices.append(Choice("", "x", "No filter"))
        self.view.app.push_screen(Menu("Quick filters", choices), self._narrow)

    def apply(self, how: str) -> None:
        """Filters by the cell or bar under the cursor, or excludes it."""
        if text := self.filter:
            self._narrow(self.within(text, "and not" if how == "not" else "and"))
        else:
            self.view.say_once(NO_FILTER)

    def _narrow(self, text: str | None) -> None:
        if text is not None:
            self.view.home.narrow(text, stay=True)
            self.view.look()

    # -- search -------------------------------------------------------------------------------------------------------
    def search(self) -> None:
        """Prompts for a text and moves to the first cell with a match."""

        def done(text: str | None) -> None:
            if text is not None:
                self.sought = text
                self.search_on(1)

        note = "text, case-insensitive; n and N find the next"
        self.view.app.push_screen(Prompt("Search in the table", self.sought, note), done)

    def search_on(self, step: int) -> None:
        """Moves to the next or previous cell with a match."""
        table, sheet = self.view.table, self.view.sheet
        if not self.sought:
            self.search()
        elif sheet is not None:
            found = next_cell(table.rows, sheet.fields, self.sought, (table.row, table.at), step)
            if found is None:
                self.view.notify(f"{clean(self.sought)} was not found", timeout=3, markup=False)
            else:
                table.go(*found)

    # -- the row under the cursor -------------------------------------------------------------------------------------
    def mark(self) -> None:
        """Marks the exchange of the row in the list, or removes its mark."""
        down = self.view.careful(lambda: self.view.down, None)
        if isinstance(down, tuple):
            self.view.notify(self.view.home.mark(*down), timeout=2)

    def export(self) -> None:
        only = self.filter
        choices = [
            Choice("packets", "p", "Packets of the exchanges of this cell", only, bool(only), NO_FILTER),
            Choice("text", "t", "This section as text", "", self.view.sheet is not None, "nothing has been computed yet"),
        ]
        self.view.app.push_screen(Menu("Save", choices), lambda name: self._save(name, only))

    def _save(self, name: str | None, only: str) -> None:
        if name == "packets":
            self.view.home.save_packets(self.within(only))
        elif name == "text" and self.view.sheet is not None:
            sheet, order = self.view.sheet, self.view.order(self.view.sheet)
            text = self.view.careful(lambda: as_text(self.view.shown, sheet, order), None)
            if text is not None:
                self.view.home.save_text(f"kcap-{self.view.NAME}.txt", text)

    def copy(self) -> None:
        row, sheet = self.view.table.current, self.view.sheet
        if row is None or sheet is None:
            self.view.say_once("there is no row to copy")
            return
        cells = self.view.careful(lambda: [column.text(row) for column in sheet.fields], [])
        texts = {
            "value": cells[self.view.table.at] if self.view.table.at < len(cells) else "", "row": "\t".join(cells),
            "filter": self.filter, "force": self.view.home.book.filter_text,
        }  # fmt: skip
        self.view.app.push_screen(copy_menu(texts), lambda name: copied(self.view.app, texts, name))

    def connection(self) -> str | None:
        """The connection that the row under the cursor concerns."""
        sheet, row = self.view.sheet, self.view.table.current
        of = sheet.connection if sheet is not None else None
        found: str | None = self.view.careful(lambda: of(row), None) if of is not None and row is not None else None
        return found

    def followed(self) -> tuple[str, int] | None:
        """The exchange at which following the row's connection begins: its own, else the first."""
        down, uid = self.view.careful(lambda: self.view.table.down, None), self.connection()
        return down if isinstance(down, tuple) else (uid, 1) if uid is not None else None

    def conversation(self) -> None:
        """Shows the messages of the row's connection, one after another."""
        from kcap.tui.followed_stream import FollowedStream

        if (found := self.followed()) is not None:
            self.view.app.push_screen(FollowedStream(*found))
