"""The state of the list of exchanges: its rows, their order, the cursor, the marks. Free of widgets.

In: a capture model, the user's choices. Out: row numbers by position, texts of a page. Law: the cursor stays on its exchange
when rows are added or sorted, unless auto scroll is on; while a capture is read and no exchange was chosen, it stays on the
first row. Marks stay with their exchanges.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from rich.cells import cell_len

from kcap.arrays.arrow import values
from kcap.filter.parse import parse
from kcap.filter.row_predicate import micros
from kcap.tui.annotations import Annotations
from kcap.tui.color_rules import ColorRule, apply, columns, rules_of
from kcap.tui.list_columns import DEFAULTS, HEADS, TIME_WIDTHS, WHY_COLUMN, Head, fitted, moment, reason_width
from kcap.tui.row_index import between, in_order

if TYPE_CHECKING:
    from kcap.tui.capture_model import CaptureModel
    from kcap.tui.row_index import Numbers, RowIndex

REFERENCE: Final = "*REF*"
"""Relative time of the time reference."""
NEAR: Final = 1 << 16
"""Number of positions at the end of the list that are sorted again for new rows. Rows that belong before them, such as requests
without a response, are inserted individually: sorting all rows after them would take 100 MB for a million rows."""
GUTTER: Final = 3
"""Signs at the left of a row: its mark, its rule."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Arranged:
    """Rows in an order, as they were at one time."""

    rows: "RowIndex"
    order: "Numbers | None"
    """Row numbers by position; None for the order of the table."""
    first_ns: int
    """Time of the earliest row."""
    wish: tuple[Any, ...]
    """The request for which it was made."""

    def __len__(self) -> int:
        return len(self.rows) if self.order is None else len(self.order)

    def continues(self, rows: "RowIndex", wish: tuple[Any, ...]) -> bool:
        """Whether more rows of the same capture can be inserted in the order of time."""
        same = self.wish[:3] == wish[:3] and self.wish[4:] == wish[4:] and (self.wish[3] == wish[3] or not wish[0])
        return same and wish[1:3] == ("time", False) and 0 < len(self.rows) <= len(rows) and self.rows.first == rows.first

    def number(self, place: int) -> int:
        """The row at a position."""
        return place if self.order is None else int(self.order[place])

    def without(self, numbers: set[int]) -> "Numbers | None":
        """Row numbers by position, without some of them."""
        if not numbers:
            return self.order
        order = self.order if self.order is not None else self.rows.numbers
        kept: Numbers = order[~np.isin(order, list(numbers))]
        return kept

    def place(self, number: int) -> int | None:
        """The position of a row; None if it is not listed."""
        if self.order is None:
            return number if 0 <= number < len(self.rows) else None
        found = np.flatnonzero(self.order == number)
        return int(found[0]) if len(found) else None

    def places(self, numbers: "Numbers") -> "Numbers":
        """The positions of the listed ones of these rows, in order."""
        first = self.rows.first
        there = np.zeros(len(self.rows) - first, np.bool_)
        there[numbers[numbers >= first] - first] = True  # the first rows of a growing capture are no longer held
        return np.flatnonzero(there if self.order is None else there[self.order - first])


def continued(before: Arranged, rows: "RowIndex", passing: "Numbers | None", wish: tuple[Any, ...]) -> Arranged:
    """The arrangement of all rows, of which only the new ones, and those after the first of these, are sorted."""
    start, end = len(before.rows), len(rows)
    if start == end:
        return Arranged(rows, before.order, before.first_ns, wish)
    times = rows.values("time", np.arange(start, end))
    first_ns = min(before.first_ns, int(times.min()) * 1000)
    fresh = np.arange(start, end) if passing is None else between(passing, start, end)
    if not len(fresh):
        return Arranged(rows, before.order, first_ns, wish)
    keys = times[fresh - start]

    def times_at(places: "Numbers") -> "Numbers":
        return rows.values("time", places if before.order is None else before.order[places].astype(np.int64))

    near = max(0, len(before) - NEAR)
    late = keys < times_at(np.array([near]))[0] if len(before) else np.zeros(len(keys), np.bool_)
    early = np.flatnonzero(late)[np.argsort(keys[late], kind="stable")]
    places, rest = behind(times_at, keys[early], near), np.flatnonzero(~late)
    kept = int(behind(times_at, np.array([keys[rest].min()]), len(before))[0]) if len(rest) else len(before)
    if before.order is None and not len(early) and kept == len(before) and not (keys[1:] < keys[:-1]).any():
        return Arranged(rows, None, first_ns, wish)
    order = np.arange(len(before), dtype=np.int32) if before.order is None else before.order
    moved = order[kept:]
    keys = np.concatenate([rows.values("time", moved.astype(np.int64)), keys[rest]])
    last = np.concatenate([moved, fresh[rest].astype(np.int32)])[np.argsort(keys, kind="stable")]
    first = np.insert(order[:kept], places, fresh[early].astype(np.int32)) if len(early) else order[:kept]
    return Arranged(rows, np.concatenate([first, last]), first_ns, wish)


def behind(times_at: "Callable[[Numbers], Numbers]", keys: "Numbers", stop: int) -> "Numbers":
    """For each key, the position after all rows that are not later, among those before `stop`; a bisection of all
    keys at once."""
    low, high = np.zeros(len(keys), np.int64), np.full(len(keys), stop, np.int64)
    while (open_ := np.flatnonzero(low < high)).size:
        middle = (low[open_] + high[open_]) // 2
        after = times_at(middle) <= keys[open_]
        low[open_[after]] = middle[after] + 1
        high[open_[~after]] = middle[~after]
    return low


@dataclass(slots=True)
class Cells:
    number: int
    texts: list[str]
    rule: ColorRule | None
    sign: str
    """The sign of the user's note: marked, ignored, commented."""
    ignored: bool


@dataclass(slots=True)
class ListModel:
    book: "CaptureModel"
    names: list[str] = field(default_factory=lambda: list(DEFAULTS))
    """Columns."""
    chosen: bool = False
    """Whether the user chose the columns."""
    widths: dict[str, int] = field(default_factory=dict)
    needs: dict[str, int] = field(default_factory=dict)
    """Column -> width of its longest cell shown so far."""
    reason: int = 0
    """Width of the longest reason shown so far, without its explanation."""
    sort: str = "time"
    descending: bool = False
    form: str = "clock"
    """Time display format."""
    cursor: int = 0
    column: int = 0
    """Number of the column of the cursor."""
    follow: bool = False
    """Whether the cursor follows the end."""
    chose: bool = False
    """Whether the user has pressed a key or clicked, and so has chosen the exchange under the cursor."""
    annotations: Annotations = field(default_factory=Annotations)
    rules: list[ColorRule] = field(default_factory=lambda: rules_of(())[0])
    arranged: Arranged | None = None
    hidden: int | None = None
    """The row that was selected when a filter hid all rows."""
    paged: float = 0.0
    """Time of the last page, by `monotonic`."""
    _under: tuple[int, str, dict[str, Any]] | None = None
    """The last row read under the cursor: its number, the column for which it was read, and the columns of that."""

    # -- the order ----------------------------------------------------------------------------------------------------
    @property
    def wish(self) -> tuple[Any, ...]:
        """What the arrangement depends on, except for the rows."""
        return self.book.filter_text, self.sort, self.descending, self.book.done, self.book.looking

    @property
    def due(self) -> bool:
        """Whether the arrangement is outdated."""
        made = self.arranged
        return made is None or made.wish != self.wish or len(made.rows) != self.book.rows

    def arrange(self) -> Arranged:
        """Arranges the rows. Slow: call it in a thread, and pass the result to `install`."""
        wish = self.wish
        passing = self.book.sift()
        rows = self.book.snapshot()
        if passing is not None:
            passing = between(passing, rows.first, len(rows))
        before = self.arranged
        if before is not None and before.continues(rows, wish):
            return continued(before, rows, passing, wish)
        head = HEADS.get(self.sort)
        first_ns = rows.least("time") * 1000 if len(rows) else 0
        by = in_order(rows.keys(head.columns[0] if head is not None else "time", passing), descending=self.descending)
        order: Any = rows.numbers if passing is None and rows.first else passing
        if by is not None:
            order = by + rows.first if passing is None else passing[by]
        return Arranged(rows, None if order is None else order.astype(np.int32, copy=False), first_ns, wish)

    def install(self, made: Arranged) -> None:
        """Shows an arrangement; the cursor stays on its exchange.

        Rows arrive in the order in which they were decided, so that earlier ones may be inserted above the first.
        """
        reading = self.arranged is None or not self.arranged.wish[3]
        here = self.current if self.current is not None else self.hidden
        self.annotations.forget(made.rows.first)
        same = self.arranged is not None and self.arranged.wish[0] == made.wish[0]
        self.arranged, self._under = made, None
        if self.follow:
            self.cursor = max(0, len(made) - 1)
            return
        self.hidden = here if not len(made) else None
        place = made.place(here) if here is not None else None
        if place is not None and (self.chose or not reading):
            self.cursor = place
        elif not same or not self.chose:
            self.cursor = 0
        self.cursor = max(0, min(self.cursor, len(made) - 1))

    def __len__(self) -> int:
        return len(self.arranged) if self.arranged is not None else 0

    @property
    def current(self) -> int | None:
        """The number of the row under the cursor."""
        return self.number(self.cursor)

    def number(self, place: int) -> int | None:
        """The number of the row at a position."""
        return self.arranged.number(place) if self.arranged is not None and 0 <= place < len(self.arranged) else None

    def order_by(self, name: str) -> None:
        """Sorts by a column; a second call reverses the order."""
        self.descending = not self.descending if self.sort == name else HEADS[name].right
        self.sort = name

    # -- moving -------------------------------------------------------------------------------------------------------
    def go(self, place: int) -> None:
        """Moves the cursor to a position, and stops following the end."""
        self.follow, self.chose = False, True
        self.cursor = max(0, min(place, len(self) - 1))

    @property
    def marks(self) -> set[int]:
        return self.annotations.marks

    def mark(self) -> None:
        """Marks the exchange under the cursor, or removes its mark."""
        if self.arranged is not None and (number := self.current) is not None:
            self.annotations.mark(self.arranged.rows, number)

    @property
    def pair(self) -> tuple[int | None, int | None]:
        """Rows to compare: two marked ones, or the marked and the selected one; of several marks, the one before the selected
        row."""
        if len(self.marks) == 2:
            first, second = sorted(self.marks, key=self._place)
            return first, second
        here = self._place(self.current)
        others = sorted((number for number in self.marks if number != self.current), key=self._place)
        before = [number for number in others if self._place(number) < here]
        return (before[-1] if before else others[0] if others else None), self.current

    def _place(self, number: int | None) -> int:
        """The position of a row; after all others for one that is not listed."""
        place = self.arranged.place(number) if self.arranged is not None and number is not None else None
        return place if place is not None else len(self)

    def name_of(self, number: int | None) -> tuple[str, int] | None:
        """Connection and number of the exchange of a row."""
        if number is None or self.arranged is None or not self.arranged.rows.holds(number):
            return None
        return self.arranged.rows.key(number)

    def next_mark(self, step: int) -> bool:
        """Moves to the next or previous mark; returns whether there is one."""
        made = self.arranged
        if made is None:
            return False
        places = made.places(np.fromiter(self.marks, np.int64))
        ahead = places[places > self.cursor] if step > 0 else places[places < self.cursor]
        if len(ahead):
            self.go(int(ahead[0] if step > 0 else ahead[-1]))
        return bool(len(ahead))

    def place_of_time(self, time_us: int) -> int | None:
        """The position of the first listed row that begins at or after a time."""
        made = self.arranged
        if made is None or not len(made):
            return None
        times = made.rows.keys("time")
        times = times if made.order is None else times[made.order - made.rows.first]
        later = np.flatnonzero(times >= time_us)
        return int(later[np.argmin(times[later])]) if len(later) else len(made) - 1

    def place_of_packet(self, packet: int) -> int | None:
        """The first listed row with a frame that a packet carries."""
        made = self.arranged
        tree = parse(
            f"(request_first_packet <= {packet} && request_last_packet >= {packet}) || request_first_packet == {packet}"
            f" || (response_first_packet <= {packet} && response_last_packet >= {packet}) || response_first_packet == {packet}"
        )
        if made is None or tree is None:
            return None
        places = made.places(made.rows.passing(tree))
        return int(places[0]) if len(places) else None

    def place_with_records(self) -> int | None:
        """The position of the row under the cursor if it has records, else of the next one that has, else of the last one
        before."""
        made, tree = self.arranged, parse("record_count > 0")
        if made is None or tree is None or not len(made):
            return None
        places = made.places(made.rows.passing(tree))
        if not len(places):
            return None
        return int(places[min(int(np.searchsorted(places, self.cursor)), len(places) - 1)])

    # -- texts --------------------------------------------------------------------------------------------------------
    def heads(self, room: int) -> list[tuple[Head, int]]:
        """The columns that fit a width, and their widths."""
        widths = {"time": TIME_WIDTHS[self.form]} | self.widths
        return fitted(self.names, room - GUTTER, widths, chosen=self.chosen, needs=self.needs, reason=self.reason)

    def page(self, first: int, count: int, heads: Sequence[Head]) -> list[Cells]:
        made, self.paged = self.arranged, monotonic()
        if made is None or count <= 0:
            return []
        first = max(0, first)
        last = min(first + count, len(made))
        start = max(0, first - 1) if self.form == "delta" else first
        if made.order is None:
            numbers = np.arange(start, last, dtype=np.int64)
        else:
            numbers = made.order[start:last].astype(np.int64)
        wanted = dict.fromkeys([*(name for head in heads for name in head.columns), *columns(self.rules)])
        wanted.update(dict.fromkeys(("time", "request_first_ns", "response_first_ns")))
        table: Any = made.rows.take(numbers, list(wanted))
        held = {name: values(table.column(name)) for name in wanted}
        rules = apply(self.rules, held, len(numbers))
        rows = [dict(zip(held, row)) for row in zip(*held.values())]
        out: list[Cells] = []
        before: int | None = None
        zero_ns = self._zero_ns(made)
        for at, row in enumerate(rows):
            ns = time_of(row)
            if start + at >= first:
                number = int(numbers[at])
                referred = self.form == "relative" and number == self.annotations.reference
                time = REFERENCE if referred else moment(ns, self.form, zero_ns, before)
                texts = [time if head.name == "time" else head.text(row) for head in heads]
                noted = self.annotations
                out.append(Cells(number, texts, rules[at], noted.sign(number), number in noted.ignored))
            before = ns
        for head, column in zip(heads, zip(*(cells.texts for cells in out))):
            self.needs[head.name] = max(self.needs.get(head.name, 0), *map(cell_len, column))
            if head.name == WHY_COLUMN:
                self.reason = max(self.reason, *map(reason_width, column))
        return out

    def _zero_ns(self, made: Arranged) -> int:
        """The zero of relative times: the time reference, else the first exchange."""
        number = self.annotations.reference
        return time_of(made.rows.row(number)) if number is not None and made.rows.holds(number) else made.first_ns

    def filter_of(self, head: Head) -> str | None:
        """The filter of the cell under the cursor. The status line calls this several times a second, so the row is
        read once."""
        number, made = self.current, self.arranged
        if number is None or made is None or head.by is None:
            return None
        if self._under is None or self._under[:2] != (number, head.name):
            self._under = number, head.name, made.rows.row(number, head.columns)
        return head.by(self._under[2])


def time_of(row: dict[str, Any]) -> int:
    """Time of a row in nanoseconds; its `time` is in microseconds, or an Arrow type."""
    found = row["request_first_ns"] if row["request_first_ns"] is not None else row["response_first_ns"]
    return int(found) if found is not None else int(micros(row["time"])) * 1000
