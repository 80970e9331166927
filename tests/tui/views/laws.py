"""Laws of every sheet: a cell that counts exchanges leads to as many; every filter is read; every text is plain."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from kcap.filter.parse import parse
from kcap.filter.row_predicate import RowSelector, micros
from kcap.reports.definition import Row
from kcap.tui.views.sheet import TONES, Bars, Line, Sheet, down_of
from tests.tui.views.stub import whole

By = tuple[str, ...]


def cases(captures: Sequence[str], groupings: Sequence[By]) -> list[tuple[str, By]]:
    """Every grouping of one capture, and the first of the others."""
    return [(captures[0], by) for by in groupings] + [(name, groupings[0]) for name in captures[1:]]


@cache
def columns_of(name: str) -> tuple[dict[str, list[Any]], int]:
    table = whole(name, "exchanges")
    return {column: [micros(value) for value in table[column].to_pylist()] for column in table.column_names}, table.num_rows


@cache
def passing(name: str, text: str) -> int:
    """Exchanges of a capture that a filter lets pass."""
    columns, count = columns_of(name)
    tree = parse(text)
    return count if tree is None else len(RowSelector(columns).rows(tree, range(count)))


def known(name: str, exchange: tuple[str, int]) -> bool:
    columns, _ = columns_of(name)
    return exchange in set(zip(columns["connection"], columns["exchange"]))


def leads_somewhere(name: str, down: Any) -> bool:
    """Whether a way down ends at one exchange or more."""
    return known(name, down) if isinstance(down, tuple) else passing(name, down) > 0


def lines_hold(lines: Iterable[Line], width: int) -> None:
    for line in lines:
        assert sum(len(text) for text, _ in line) <= width, line
        assert {tone for _, tone in line} <= set(TONES)
        assert all(text.isprintable() for text, _ in line)


def bars_hold(bars: Bars, name: str) -> None:
    assert len(bars.labels) == len(bars.values) == len(bars.texts) == len(bars.downs)
    for down, value in zip(bars.downs, bars.values):
        if isinstance(down, str):
            parse(down)
        if value and down:
            assert leads_somewhere(name, down), (bars.title, down)


def sheet_holds(sheet: Sheet, name: str, *, counts: bool = True) -> int:
    """Checks a sheet against its capture; how many cells counted exchanges."""
    checked = 0
    for row in sheet.rows:
        for at, field in enumerate(sheet.fields):
            text = field.text(row)
            assert text.isprintable(), (sheet.name, field.head, text)
            assert field.tone is None or field.tone(row) in TONES
            down = down_of(sheet, row, at)
            if isinstance(down, tuple):
                assert known(name, down), (sheet.name, down)
            elif down:
                found = passing(name, down)
                if counts and field.counts is not None:
                    assert found == field.counts(row), (sheet.name, field.head, down)
                    checked += 1
        row_holds(sheet, row, name)
    return checked


def row_holds(sheet: Sheet, row: Row, name: str) -> None:
    """Details and pictures of a row."""
    if sheet.detail is not None:
        sheet.detail(row, 20)
        sheet.detail(row, 60)
    for bars in sheet.charts(row) if sheet.charts is not None else ():
        bars_hold(bars, name)
    uid = sheet.connection(row) if sheet.connection is not None else None
    if uid is not None:
        assert passing(name, f'connection == "{uid}"') > 0
