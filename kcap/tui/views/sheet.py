"""A sheet: rows of plain values, the columns that show them, and the drill-down of each cell. Free of widgets.

In: rows of a report or of a table. Out: order, texts, widths, lines. Law: a cell with a drill-down leads to the exchanges that
its number counts; sorting is stable.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rich.cells import cell_len

from kcap.output.grid import duration
from kcap.reports.definition import Row
from kcap.reports.text import TextColumn, clock, fitted, line, number, size, words, wrapped

Down = str | tuple[str, int] | None
"""A filter, an exchange, or nothing."""
Span = tuple[str, str]
"""A text and its tone, one of `TONES`."""
Line = list[Span]
TONES: Final = ("", "bold", "dim", "good", "care", "bad", "key", "one", "two", "three")
SAMPLED: Final = 2000
"""Number of rows from which the widths of columns are determined."""
WIDEST: Final = 40
"""Cells of a name that are shown if there is room for all columns."""


@dataclass(frozen=True, slots=True)
class SheetField(TextColumn):
    """A column of a sheet."""

    key: Callable[[Row], Any] | None = None
    """Sort key of a row; None sorts by the text."""
    down: Callable[[Row], Down] | None = None
    """The target of a cell; None means that of the row."""
    counts: Callable[[Row], int | None] | None = None
    """For a cell with a number of exchanges: the number, which its filter selects."""
    tone: Callable[[Row], str] | None = None


@dataclass(slots=True)
class Sheet:
    """A table of a view."""

    name: str
    fields: Sequence[SheetField]
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
    heads = [
        TextColumn(f"{column.head} ", column.text, column.right, column.rank, column.whole, column.least)
        for column in sheet.fields
    ]
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


# -- columns that many sheets have ------------------------------------------------------------------------------------
def bold(_row: Row) -> str:
    """The tone of a row's subject."""
    return "bold"


def named(name: str, head: str | None = None, rank: int = 0, *, right: bool = False, **more: Any) -> SheetField:
    """A column of unchanged values."""
    return SheetField(
        head or name, lambda row: words(row.get(name)), right, rank, key=lambda row: value_key(row.get(name)), **more
    )


def counted(name: str, head: str | None = None, rank: int = 0, *, zero: bool = True, **more: Any) -> SheetField:
    """A number; empty for 0 unless `zero`."""
    return SheetField(
        head or name, lambda row: number(row.get(name) if zero else row.get(name) or None), True, rank,
        key=lambda row: row.get(name), **more,
    )  # fmt: skip


def lasting(name: str, head: str, rank: int = 0, **more: Any) -> SheetField:
    """A duration in nanoseconds."""
    return SheetField(head, lambda row: duration(row.get(name)), True, rank, key=lambda row: row.get(name), **more)


def clocked(name: str, head: str, rank: int = 0) -> SheetField:
    """A time of day, which is never cut, since the rest would be useless."""
    return SheetField(head, lambda row: clock(row[name]), right=False, rank=rank, whole=True, key=lambda row: row[name])


def when(row: Row) -> str:
    """Beginning and end of something: `at 08:15:30.250` if both read the same."""
    first, last = clock(row["first_ns"]), clock(row["last_ns"])
    return f"at {first}" if first == last else f"from {first} to {last}"


def sized(name: str, head: str, rank: int = 0, **more: Any) -> SheetField:
    """A size in bytes."""
    return SheetField(head, lambda row: size(row.get(name)), True, rank, key=lambda row: row.get(name), **more)


def value_key(value: Any) -> Any:
    """A sort key for values of mixed types: numbers by size, before texts; lists by their text."""
    if value is None:
        return None
    return (0, value, "") if isinstance(value, int | float) else (1, 0, words(value))
