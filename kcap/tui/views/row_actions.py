"""Actions of a view for the row under the cursor: mark, copy, save, follow its connection.

In: a view. Out: the clipboard, files, other screens. Law: a key that has no effect on a row says why.
"""

from kcap.tui.menu import Choice, Menu, copied, copy_menu
from kcap.tui.views.open_view import OpenView
from kcap.tui.views.sheet import as_text
from kcap.tui.views.view_filter import NO_FILTER, ViewFilter


class RowActions:
    """The actions for the rows of one view, which holds them."""

    def __init__(self, view: OpenView, filters: ViewFilter) -> None:
        self.view, self.filters = view, filters

    def mark(self) -> None:
        """Marks the exchange of the row in the list, or removes its mark."""
        down = self.view.careful(lambda: self.view.down, None)
        if isinstance(down, tuple):
            self.view.notify(self.view.home.mark(*down), timeout=2)

    def export(self) -> None:
        only = self.filters.text
        choices = [
            Choice("packets", "p", "Packets of the exchanges of this cell", only, bool(only), NO_FILTER),
            Choice("text", "t", "This section as text", "", self.view.sheet is not None, "nothing has been computed yet"),
        ]
        self.view.app.push_screen(Menu("Save", choices), lambda name: self._save(name, only))

    def _save(self, name: str | None, only: str) -> None:
        if name == "packets":
            self.view.home.save_packets(self.filters.within(only))
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
            "filter": self.filters.text, "force": self.view.home.book.filter_text,
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
