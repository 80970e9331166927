"""A sheet: rows of plain values, the columns that show them, and the drill-down of each cell. Free of widgets.

In: rows of a report or of a table. Out: order, texts, widths, lines. Law: a cell with a drill-down leads to the exchanges that
its number counts; sorting is stable.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rich.cells import cell_len

from kcap.reports.definition import Row
from kcap.reports.text import Target, TextColumn, fitted, line, words, wrapped

Down = Target | None
"""A filter, an exchange, or nothing."""
Span = tuple[str, str]
"""A text and its tone, one of `TONES`."""
Line = list[Span]
TONES: Final = ("", "bold", "dim", "good", "care", "bad", "key", "one", "two", "three")
SAMPLED: Final = 2000
"""Number of rows from which the widths of columns are determined."""
WIDEST: Final = 40
"""Cells of a name that are shown if there is room for all columns."""


@dataclass(slots=True)
class Sheet:
    """A table of a view."""

    name: str
    fields: Sequence[TextColumn]
    rows: list[Row]
    down: Callable[[Row], Down]
    """The target of a row."""
    empty: str
    """The message without rows."""
    note: str = ""
    """A sentence above the table."""
    foot: str = ""
    """A note about what is not in the table."""
    detail: Callable[[Row, int], list[Line]] | None = None
    """The details of a row, for a width."""
    charts: Callable[[Row], list["Bars"]] | None = None
    """The pictures of a row."""
    connection: Callable[[Row], str | None] | None = None
    """The connection that a row concerns, if it is only one."""
    title: str = ""
    """Subject of the section, if it differs from that of the page."""


@dataclass(frozen=True, slots=True)
class Bars:
    """A picture of bars, each with a target."""

    title: str
    labels: Sequence[str]
    values: Sequence[float | None]
    texts: Sequence[str]
    """The value of each bar in words."""
    downs: Sequence[Down]
    logarithmic: bool = False
    upright: bool = False
    """Whether bars are upright and side by side, as for values over time."""


@dataclass(slots=True)
class Page:
    """What a view shows at one time."""

    sheets: list[Sheet] = field(default_factory=list)
    title: str = ""
    """Subject and grouping."""
    banner: Line = field(default_factory=list)
    """The most important sentence."""


@dataclass(slots=True)
class SortOrder:
    """How a sheet's rows are sorted."""

    at: int | None = None
    """Number of the column; None for the original order."""
    backward: bool = False

    def choose(self, at: int, sheet: Sheet) -> None:
        """Sorts by a column; a second call reverses the order. Numbers begin with the largest."""
        if self.at == at:
            self.backward = not self.backward
        else:
            self.at, self.backward = at, sheet.fields[at].right

    def rows(self, sheet: Sheet) -> list[Row]:
        """The rows in order; those without a value last."""
        if self.at is None or self.at >= len(sheet.fields):
            return sheet.rows
        found = sheet.fields[self.at]
        value = found.key or found.text
        there = [row for row in sheet.rows if value(row) not in (None, "")]
        rest = [row for row in sheet.rows if value(row) in (None, "")]
        return sorted(there, key=value, reverse=self.backward) + rest

    def mark(self, at: int) -> str:
        """The mark in a column's heading."""
        return "" if self.at != at else "▼" if self.backward else "▲"


def widths_of(sheet: Sheet, rows: Sequence[Row], room: int, *, all_columns: bool) -> list[int]:
    """Widths of the columns, 0 for those omitted for lack of room; none are omitted with `all_columns`."""
    step = max(1, len(rows) // SAMPLED)
    texts = [[as_wide(column.text(row)) for column in sheet.fields] for row in rows[::step]]
    for at in range(len(sheet.fields)):
        if all(row[at] == words(None) for row in texts):
            for row in texts:
                row[at] = ""  # a column without any values is empty
    heads = [replace(column, head=f"{column.head} ") for column in sheet.fields]
    if all_columns:
        longest = [max([len(head.head), *(len(row[at]) for row in texts)]) for at, head in enumerate(heads)]
        return [width if head.right or head.whole else min(width, WIDEST) for head, width in zip(heads, longest)]
    return fitted(heads, texts, room)


def as_wide(text: str) -> str:
    """A text with as many characters as the given one takes terminal cells."""
    return text if text.isascii() else "m" * cell_len(text)


def down_of(sheet: Sheet, row: Row, at: int) -> Down:
    """The target of a cell."""
    found = sheet.fields[at].down if at < len(sheet.fields) else None
    return found(row) if found is not None else sheet.down(row)


def as_text(page: Page, sheet: Sheet, order: SortOrder) -> str:
    """A sheet as the text of a file."""
    rows = order.rows(sheet)
    widths = widths_of(sheet, rows, 0, all_columns=True)
    longest = [max([width, *(len(column.text(row)) for row in rows)]) for column, width in zip(sheet.fields, widths)]
    out = [title] if (title := sheet.title or page.title) else []
    out += ["".join(text for text, _ in page.banner)] if page.banner else []
    out += [sheet.note] if sheet.note else []
    out += [""] if out else []
    out.append(line([column.head for column in sheet.fields], sheet.fields, longest))
    out += [line([column.text(row) for column in sheet.fields], sheet.fields, longest) for row in rows]
    out += [] if rows else [sheet.empty]
    return "\n".join([*out, *(["", sheet.foot] if sheet.foot else [])]) + "\n"


def paragraph(text: str, width: int, tone: str = "", indent: str = "") -> list[Line]:
    """A sentence on as many lines as it needs."""
    return [[(part, tone)] for part in wrapped(text, width, indent)]
