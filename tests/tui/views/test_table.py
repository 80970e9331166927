"""The table of a view: keys and clicks move a cursor; only what is in sight is made."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from textual import on
from textual.app import App, ComposeResult

from kcap.reports.common_columns import counted, named
from kcap.reports.definition import Row
from kcap.tui.views import VIEWS
from kcap.tui.views.sheet import Sheet, SortOrder
from kcap.tui.views.table import SheetTable
from tests.tui.driving import opened
from tests.tui.driving import settle as settled
from tests.tui.views.stub import lines, settle


class One(App[None]):
    def __init__(self, rows: list[Row]) -> None:
        super().__init__()
        self.rows = rows
        self.reported: list[str] = []

    def compose(self) -> ComposeResult:
        yield SheetTable()

    @on(SheetTable.Chosen)
    def chosen(self) -> None:
        self.reported.append("chosen")

    @on(SheetTable.Sorted)
    def sorted(self, event: SheetTable.Sorted) -> None:
        self.reported.append(f"sorted {event.at}")


def sheet(rows: list[Row], made: list[int] | None = None) -> Sheet:
    def text(row: Row) -> None:
        if made is not None:
            made.append(row["n"])

    name = named("name", tone=lambda row: text(row) or "bold")
    return Sheet("s", [name, counted("n"), counted("m", rank=1)], rows, lambda row: row["name"], "nothing here")


def rows_of(count: int) -> list[Row]:
    return [{"name": f"row {at}", "n": at, "m": 2 * at} for at in range(count)]


def look(
    count: int, *keys: str, then: Callable[[Any, SheetTable], Any] | None = None
) -> tuple[SheetTable, list[str], list[str]]:
    async def run() -> tuple[SheetTable, list[str], list[str]]:
        app = One(rows_of(count))
        async with app.run_test(size=(40, 12)) as pilot:
            table = app.query_one(SheetTable)
            table.show(sheet(app.rows), SortOrder(), keep_cursor=False)
            table.focus()
            await pilot.press(*keys)
            if then is not None:
                await then(pilot, table)
            await settle(pilot)
            return table, lines(app), app.reported

    return asyncio.run(run())


def test_its_colors_are_looked_up_once_for_each_theme() -> None:
    async def change(pilot: Any, table: SheetTable) -> None:
        dark = table.base
        assert dark.bgcolor is not None
        assert table.base is dark
        pilot.app.theme = "textual-light"
        await pilot.pause()
        assert table.base.bgcolor not in (None, dark.bgcolor)

    look(3, then=change)


def test_a_long_sentence_about_nothing_is_whole() -> None:
    said = "No other exchange: m marks one, and = compares it with the selected one."

    async def run() -> None:
        app = One([])
        async with app.run_test(size=(40, 12)) as pilot:
            table = app.query_one(SheetTable)
            table.show(Sheet("s", [named("name")], [], lambda row: row["name"], said), SortOrder(), keep_cursor=False)
            await settle(pilot)
            assert " ".join(" ".join(lines(app)[2:]).split()) == said

    asyncio.run(run())


def test_keys_move_the_cursor() -> None:
    for keys, row, at in (
        ((), 0, 0), (("down", "down", "up"), 1, 0), (("j", "j", "k"), 1, 0), (("end",), 99, 0), (("G", "g"), 0, 0),
        (("pagedown",), 10, 0), (("pagedown", "pageup", "up"), 0, 0), (("right", "right", "right"), 0, 2),
        (("right", "left"), 0, 0),
    ):  # fmt: skip
        table, _, _ = look(100, *keys)
        assert (table.row, table.at) == (row, at), keys


def test_the_cursor_is_in_sight_and_marked() -> None:
    for keys in (("end",), ("pagedown", "pagedown", "up"), ()):
        table, shown, _ = look(100, *keys)
        marked = [line for line in shown if line.startswith("▸")]
        assert [line.split()[:2] for line in marked] == [["▸row", str(table.row)]]


def test_only_what_is_in_sight_is_made() -> None:
    made: list[int] = []

    async def run() -> None:
        app = One(rows_of(100_000))
        async with app.run_test(size=(40, 12)) as pilot:
            table = app.query_one(SheetTable)
            table.show(sheet(app.rows, made), SortOrder(), keep_cursor=False)
            await pilot.press("end")
            await pilot.pause()

    asyncio.run(run())
    assert max(made) == 99_999
    assert len(set(made)) < 40


def test_enter_and_clicks() -> None:
    async def clicks(pilot: Any, table: SheetTable) -> None:
        await pilot.click(SheetTable, offset=(3, 4))
        assert table.row == 3
        await pilot.click(SheetTable, offset=(3, 0))
        await pilot.click(SheetTable, offset=(3, 5), times=2)

    table, _, reported = look(100, "enter", then=clicks)
    assert reported == ["chosen", "sorted 0", "chosen"]
    assert table.row == 4


def test_the_cursor_stays_with_its_row() -> None:
    async def more(_pilot: Any, table: SheetTable) -> None:
        table.show(sheet([{"name": "new", "n": 1, "m": 1}, *rows_of(100)]), SortOrder(), keep_cursor=True)

    table, _, _ = look(100, "down", "down", then=more)
    assert table.current is not None
    assert table.current["name"] == "row 2"


def test_nothing_says_so() -> None:
    table, shown, _ = look(0, "down", "end", "enter")
    assert "  nothing here" in shown
    assert table.current is None
    assert table.down is None


def test_columns_give_way() -> None:
    async def narrow(pilot: Any, _table: SheetTable) -> None:
        await pilot.resize_terminal(13, 12)

    _, shown, _ = look(5, then=narrow)
    assert shown[0].split() == ["name", "n"]


@pytest.mark.parametrize(("theme", "plain"), [("textual-dark", False), ("textual-light", False), ("textual-dark", True)])
def test_every_cell_of_every_view_has_a_color_and_a_background_of_the_theme(
    theme: str, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if plain:
        monkeypatch.setenv("NO_COLOR", "1")

    async def run() -> None:
        async with opened("java-transactions.pcap", size=(120, 30)) as pilot:
            pilot.app.theme = theme
            for key, _, _ in VIEWS.values():
                await pilot.press(key)
                await settled(pilot)
                for y, strip in enumerate(pilot.app.screen._compositor.render_strips()):
                    for text, style, _ in strip:
                        assert style is not None, (key, y, text)
                        for color in (style.color, style.bgcolor) if text.strip() else (style.bgcolor,):
                            assert color is not None, (key, y, text, style)
                            assert not color.is_default, (key, y, text, style)

    asyncio.run(run())


def test_the_row_of_the_cursor_stays_when_rows_are_sorted_whatever_they_lead_to() -> None:
    def without(rows: list[Row]) -> Sheet:
        return Sheet("s", [named("name"), counted("n")], rows, lambda _row: None, "nothing here")

    def alike(rows: list[Row]) -> Sheet:
        return Sheet("s", [named("name"), counted("n")], rows, lambda row: f"half == {row['n'] // 2}", "nothing here")

    async def then(_pilot: Any, table: SheetTable) -> None:
        for make in (without, alike):
            made, order = make(rows_of(9)), SortOrder()
            table.show(made, order, keep_cursor=False)
            table.go(3)
            order.choose(1, made)
            table.show(made, order, keep_cursor=True)
            assert (table.row, table.current) == (5, made.rows[3])
        fresh = alike(rows_of(9))
        table.show(fresh, SortOrder(), keep_cursor=False)
        table.go(3)
        table.show(alike(rows_of(9)), SortOrder(), keep_cursor=True)
        assert table.row == 3, "the second of two rows with the same drill-down"

    look(0, then=then)


def test_a_scroll_bar_that_appears_hides_no_cursor_and_a_section_keeps_its_place() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=(80, 14)) as pilot:
            await pilot.press("C", "end")
            await settled(pilot)
            await pilot.press("c")
            await settled(pilot)
            table: Any = pilot.app.screen.query_one(SheetTable)
            assert table.scroll_offset.y <= table.row < table.scroll_offset.y + table.scrollable_content_region.height - 1
            await pilot.press("escape", "V", "4", "down", "down", "1", "4")
            await settled(pilot)
            assert pilot.app.screen.query_one(SheetTable).row == 2

    asyncio.run(run())
