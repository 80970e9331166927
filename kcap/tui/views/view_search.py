"""Searches in the table of a view.

In: a view, a text. Out: the cursor on the next cell with a match. Law: the search wraps around once and matches the texts of
all cells, including hidden ones, case-insensitively.
"""

from collections.abc import Sequence

from kcap.output.grid import clean
from kcap.reports.definition import Row
from kcap.reports.text import TextColumn
from kcap.tui.menu import Prompt
from kcap.tui.views.open_view import OpenView


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


class ViewSearch:
    def __init__(self, view: OpenView) -> None:
        self.view = view
        self.text = ""

    def ask(self) -> None:
        """Prompts for a text and moves to the first cell with a match."""

        def done(text: str | None) -> None:
            if text is not None:
                self.text = text
                self.go(1)

        self.view.app.push_screen(
            Prompt("Search in the table", self.text, "text, case-insensitive; n and N find the next"), done
        )

    def go(self, step: int) -> None:
        """Moves to the next or previous cell with a match."""
        table, sheet = self.view.table, self.view.sheet
        if not self.text:
            self.ask()
        elif sheet is not None:
            found = next_cell(table.rows, sheet.fields, self.text, (table.row, table.at), step)
            if found is None:
                self.view.notify(f"{clean(self.text)} was not found", timeout=3, markup=False)
            else:
                table.go(*found)
