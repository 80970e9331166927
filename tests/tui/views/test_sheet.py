"""Sheets: order, widths, ways down, text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kcap.output.grid import GAP, duration
from kcap.reports.common_columns import counted, lasting, named, sized
from kcap.reports.definition import Row
from kcap.reports.text import TextColumn
from kcap.tui.views.sheet import WIDEST, Page, Sheet, SortOrder, as_text, down_of, widths_of

ROWS = st.lists(
    st.fixed_dictionaries({
        "name": st.one_of(st.none(), st.text(max_size=60)),
        "count": st.one_of(st.none(), st.integers(0, 10**9)),
        "took": st.one_of(st.none(), st.integers(0, 10**12)),
    }),
    max_size=12,
)  # fmt: skip


def sheet(rows: list[Row]) -> Sheet:
    fields = [named("name"), counted("count"), lasting("took", "took", 1), sized("count", "size", 2)]
    return Sheet("s", fields, rows, lambda row: row["name"], "nothing")


@given(rows=ROWS, at=st.integers(0, 3), twice=st.booleans())
def test_order(rows: list[Row], at: int, twice: bool) -> None:
    """Law: the same rows; by value, without a value last; equal ones as they came; numbers begin with the largest."""
    made, order = sheet(rows), SortOrder()
    assert order.rows(made) is rows
    order.choose(at, made)
    if twice:
        order.choose(at, made)
    found = order.rows(made)
    assert sorted(map(id, found)) == sorted(map(id, rows))
    key: Any = made.fields[at].key
    values = [key(row) for row in found]
    there = [value for value in values if value is not None]
    assert values == there + [None] * (len(values) - len(there))
    assert there == sorted(there, reverse=order.backward)
    assert order.backward == (made.fields[at].right != twice)
    assert [order.mark(column) for column in range(4)].count("") == 3


@given(rows=ROWS, room=st.integers(20, 160))
def test_widths(rows: list[Row], room: int) -> None:
    """Law: what fits stays whole; numbers are whole or left out; nothing is left out of a whole sheet."""
    made = sheet(rows)
    widths = widths_of(made, rows, room, all_columns=False)
    whole = widths_of(made, rows, room, all_columns=True)
    assert all(whole)
    longest = [max([len(column.head) + 1, *(cell_len(column.text(row)) for row in rows)]) for column in made.fields]
    for at, column in enumerate(made.fields):
        assert widths[at] <= longest[at]
        assert not column.right or widths[at] in (0, longest[at])
        assert whole[at] == longest[at] if column.right else min(longest[at], WIDEST)
    says = all(any(column.text(row) not in ("", "-") for row in rows) for column in made.fields)
    if sum(longest) + 3 * len(GAP) <= room and says:
        assert widths == longest


def test_ways_down() -> None:
    made = sheet([{"name": "a", "count": 1, "took": 1}])
    assert down_of(made, made.rows[0], 0) == "a"
    assert down_of(made, made.rows[0], 99) == "a"
    own = Sheet("s", [TextColumn("x", lambda _row: "x", down=lambda _row: ("C", 1))], [{}], lambda _row: "row", "nothing")
    assert down_of(own, {}, 0) == ("C", 1)


@given(rows=ROWS)
def test_text_has_every_cell(rows: list[Row]) -> None:
    made = sheet(rows)
    text = as_text(Page([made], "title", [("banner", "")]), made, SortOrder())
    assert text.startswith("title\nbanner\n\n")
    for row in rows:
        assert all(field.text(row).rstrip() in text for field in made.fields)
    assert ("nothing" in text.splitlines()) or bool(rows)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (None, ""), (1_250_000, "1.25ms"), (59_900_000_000, "59.9s"), (60 * 10**9, "1m 0s"), (125 * 10**9, "2m 5s"),
        (36_360 * 10**9, "10h 6m"), (86_399 * 10**9, "23h 59m"), (273_600 * 10**9, "3d 4h"),
    ],
)  # fmt: skip
def test_a_long_duration_has_two_units(nanoseconds: int | None, text: str) -> None:
    assert duration(nanoseconds) == text


def test_widths_are_cells_of_the_terminal() -> None:
    rows: list[Row] = [{"name": "注文トピック"}, {"name": "🙂🙂"}, {"name": "ascii"}]
    made = Sheet("s", [named("name")], rows, lambda _row: None, "")
    assert widths_of(made, rows, 80, all_columns=False) == [12]
    assert widths_of(made, rows, 80, all_columns=True) == [12]


def test_a_column_in_which_nothing_is_known_takes_no_room() -> None:
    rows: list[Row] = [{"name": "a", "user": None}, {"name": "b", "user": None}]
    made = Sheet("some", [named("name"), named("user", rank=1)], rows, lambda _row: None, "none")
    assert widths_of(made, rows, 80, all_columns=False)[1] == 0
    assert widths_of(made, rows, 80, all_columns=True)[1] > 0
    rows[1]["user"] = "alice"
    assert widths_of(made, rows, 80, all_columns=False)[1] > 0
