"""What all views do: they open at any size and state, refresh, follow, sort, group, export; a fault costs nothing else."""

import asyncio
import re
from itertools import product
from typing import Any, cast

import pytest

from kcap.reports.common_columns import counted, named
from kcap.reports.definition import Row
from kcap.reports.text import TextColumn
from kcap.tui.help import columns_of
from kcap.tui.views import VIEWS, load
from kcap.tui.views.screen import View
from kcap.tui.views.sheet import Bars, Page, Sheet
from tests.tui.views.stub import EmptyBook, StubApp, StubBook, drive, lines, screen, settle, with_records

NAME = "quota-3.9.pcap"
SIZES = ((80, 24), (160, 50), (200, 60), (40, 12))


WITH_ROWS = {"findings": "too-large.pcap", "transactions": "java-transactions.pcap"}
"""Captures with rows for views that have none of `NAME`."""


@pytest.mark.parametrize("name", list(VIEWS))
def test_every_view_fits_every_size(name: str) -> None:
    async def run() -> None:
        capture = WITH_ROWS.get(name, NAME)
        app = StubApp(StubBook(capture), name, with_records(capture))
        async with app.run_test() as pilot:
            for size in SIZES:
                await pilot.resize_terminal(*size)
                await settle(pilot)
                shown = lines(app)
                assert shown[0].startswith(f" {VIEWS[name][1]}"[: size[0]])
                assert any(line.startswith("▸") for line in shown), "a row has the cursor"
                assert (len(shown), max(map(len, shown)) <= size[0]) == (size[1], True)

    asyncio.run(run())


@pytest.mark.parametrize("name", list(VIEWS))
def test_every_view_looks_for_news_by_one_timer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual calls the handlers of all base classes itself; a view that calls them as well would do everything twice."""
    begun: list[View] = []
    mounted = View.on_mount

    def on_mount(view: View) -> None:
        begun.append(view)
        mounted(view)

    async def run() -> None:
        capture = WITH_ROWS.get(name, NAME)
        app = StubApp(StubBook(capture), name, with_records(capture))
        async with app.run_test() as pilot:
            await settle(pilot)
            assert begun == [app.screen]

    monkeypatch.setattr(View, "on_mount", on_mount)
    asyncio.run(run())


@pytest.mark.parametrize("name", [name for name in VIEWS if name != "compare"])  # whose columns hold values of any kind
def test_a_time_is_whole_or_not_there(name: str) -> None:
    capture = WITH_ROWS.get(name, NAME)

    async def run() -> None:
        app = StubApp(StubBook(capture), name, with_records(capture))
        async with app.run_test(size=(60, 20)) as pilot:
            await settle(pilot)
            for key, width in product(range(1, len(app.screen.shown.sheets) + 1), (52, 44)):
                await pilot.press(str(key))
                await pilot.resize_terminal(width, 20)
                await settle(pilot)
                assert not re.search(r"\d\d:\d\d:\d*(\.\d*)?…", screen(app)), screen(app)

    asyncio.run(run())


@pytest.mark.parametrize("name", list(VIEWS))
def test_every_view_says_something_of_nothing(name: str) -> None:
    async def run() -> None:
        book = EmptyBook("reading")
        app = StubApp(book, name)
        async with app.run_test() as pilot:
            for state in ("reading", "done", "failed"):
                book.state, book.done = state, state == "done"
                await pilot.press("enter", "s", "c", "d", "y")
                app.screen.look()
                await settle(pilot)
                shown = lines(app)
                assert not any("cannot be computed" in line or line.startswith("▸") for line in shown)
                assert [line for line in shown[2:-3] if line.strip()], "a sentence says why there is nothing"
        assert app.narrowed == app.shown == []

    asyncio.run(run())


@pytest.mark.parametrize("name", list(VIEWS))
def test_every_section_and_key_of_every_view(name: str) -> None:
    keys = ("2", "down", "s", "z", "c", "right", "c", "B", "6", "1", "d", "tab", "e", "t")
    capture = "librdkafka-zstd.pcap"
    seen = drive(StubBook(capture), name, *keys, size=(120, 30), selected=with_records(capture))
    assert seen.name == name
    assert "cannot be computed" not in seen.text
    ((file, text),) = seen.saved
    assert file == f"kcap-{name}.txt"
    assert text.count("\n") > 2


@pytest.mark.parametrize("name", list(VIEWS))
def test_keys_lead_from_view_to_view(name: str) -> None:
    start = "health" if name != "health" else "errors"

    async def run() -> None:
        app = StubApp(StubBook(NAME), start)
        async with app.run_test() as pilot:
            await settle(pilot)
            await pilot.press(VIEWS[name][0])
            await settle(pilot)
            assert name == app.screen.NAME
            await pilot.press("escape")
            assert len(app.screen_stack) == 1

    asyncio.run(run())


def test_views_are_named_once() -> None:
    keys = [key for key, _, _ in VIEWS.values()]
    assert len(set(keys)) == len(keys)
    assert all(name == load(name).NAME for name in VIEWS)


class Own(View):
    """A view over rows that tests change."""

    NAME = "errors"
    GROUPINGS = (("a",), ("b",))
    rows: list[Row] = []  # noqa: RUF012
    fault = False

    def page(self, book: Any) -> Page:
        if self.fault:
            raise ValueError("no luck")
        fields = [named("name"), counted("n", down=lambda row: f"n == {row['n']}")]
        bars = Bars("bars", ["x", "y"], [1, 2], ["1", "2"], ["api == Fetch", ("C1", 7)])
        sheet = Sheet("own", fields, list(self.rows), lambda row: ("C1", row["n"]) if row["n"] != 2 else None, "empty",
                      charts=lambda _row: [bars], foot="foot")  # fmt: skip
        return Page([sheet], f"by {self.by[0]}", [("banner", "bold")])


def made(rows: int, **more: Any) -> type[Own]:
    return type("Made", (Own,), {"rows": [{"name": f"r{at}", "n": at} for at in range(1, rows + 1)], **more})


def test_enter_follows_cells_rows_and_bars() -> None:
    book = StubBook(NAME)
    assert drive(book, made(3), "enter").shown == [("C1", 1)]
    assert drive(book, made(3), "right", "enter").narrowed == ["&& n == 1"]
    assert drive(book, made(3), "tab", "enter").narrowed == ["&& api == Fetch"]
    assert drive(book, made(3), "tab", "down", "enter").shown == [("C1", 7)]
    seen = drive(book, made(3), "down", "enter")
    assert (seen.shown, seen.narrowed) == ([], [])
    assert [toast.message for toast in seen.app._notifications] == ["no exchanges belong to this cell"]


def test_sentences_above_a_table_leave_it_room() -> None:
    """On a low terminal the help has the end of long ones."""

    class Noted(made(3)):  # type: ignore[misc]
        def page(self, book: Any) -> Page:
            page: Page = super().page(book)
            page.sheets[0].note = " ".join(f"word{at}" for at in range(40))
            return page

    book = StubBook(NAME)
    low, high = (drive(book, Noted, size=size) for size in ((60, 16), (80, 50)))
    above = [line.rstrip() for line in low.lines if "word" in line or "banner" in line]
    assert len(above) == 4
    assert above[-1].endswith("… F1")
    assert not any("… F1" in line for line in high.lines)
    assert any("word39" in line for line in high.lines)

    async def helped() -> str:
        app = StubApp(book, Noted)
        async with app.run_test(size=(60, 16)) as pilot:
            await settle(pilot)
            return columns_of(cast(View, app.screen)).plain

    assert asyncio.run(helped()).count("word") == 40


def test_the_line_below_says_where_enter_leads() -> None:
    book = StubBook(NAME)
    assert any("⏎ the exchange C1.1" in line for line in drive(book, made(3)).lines)
    assert any("⏎ n == 1" in line for line in drive(book, made(3), "right").lines)
    assert any("⏎ api == Fetch" in line for line in drive(book, made(3), "tab").lines)


def test_a_view_is_opened_where_it_was_left() -> None:
    async def run() -> None:
        app = StubApp(StubBook(NAME), "throttling")
        async with app.run_test() as pilot:
            await settle(pilot)
            for key in ("2", "right", "s", "down", "down", "E", "T"):
                await pilot.press(key)
                await settle(pilot)
            view: Any = app.screen
            assert (view.NAME, view.at, view.table.row, view.table.at) == ("throttling", 1, 2, 1)
            assert view.table.order.at == 1
            for key in ("L", "down", "down", "T", "L"):
                await pilot.press(key)
                await settle(pilot)
            view = app.screen
            assert (view.NAME, view.table.row) == ("ladder", 0), "a ladder begins with what is selected"

    asyncio.run(run())


def test_sections_can_be_clicked() -> None:
    async def run() -> None:
        app = StubApp(StubBook(NAME), "throttling")
        async with app.run_test() as pilot:
            await settle(pilot)
            at = lines(app)[1].index("2:throttled responses")
            await pilot.click("#sections", offset=(at, 0))
            await settle(pilot)
            await settle(pilot)
            assert "throttled responses" in lines(app)[0]

    asyncio.run(run())


def test_sorting_and_grouping() -> None:
    book = StubBook(NAME)
    seen = drive(book, made(3), "right", "s")
    assert "n▼" in seen.text
    assert seen.text.index("r3") < seen.text.index("r1")
    assert "n▲" in drive(book, made(3), "right", "s", "z").text
    assert " · by b" in drive(book, made(3), "B").lines[0]
    assert " · by a" in drive(book, made(3), "B", "B").lines[0]


def test_a_fault_of_a_page_is_said_and_nothing_else() -> None:
    seen = drive(StubBook(NAME), made(3, fault=True), "down", "enter", "e", "escape", "B")
    assert "this view cannot be computed: no luck" in seen.text
    assert "computing" not in seen.text, "nothing is"
    assert seen.name == "errors"


@pytest.mark.parametrize("where", ["text", "tone", "down", "detail", "charts"])
def test_a_fault_of_a_sheet_costs_no_session(where: str) -> None:
    """Whatever part of a sheet stumbles, over the second row or all, the screen stays, and other rows are shown."""

    def fault(row: Row, *_: Any) -> Any:
        if row["n"] == 2:
            raise KeyError("lost")
        return {"text": "fine", "tone": "", "down": None}.get(where, [])

    class Faulty(Own):
        rows = made(3).rows

        def page(self, book: Any) -> Page:
            field = TextColumn("name", fault if where == "text" else lambda row: f"r{row['n']}",
                          down=fault if where == "down" else None, tone=fault if where == "tone" else None)  # fmt: skip
            sheet = Sheet("own", [field, counted("n")], list(self.rows), lambda _row: "api == Fetch", "empty",
                          detail=fault if where == "detail" else None, charts=fault if where == "charts" else None)  # fmt: skip
            return Page([sheet])

    assert "be shown: KeyError" in drive(StubBook(NAME), Faulty, "down").text
    keys = ("down", "enter", "down", "up", "s", "c", "d", "e", "escape", "B")
    assert drive(StubBook(NAME), Faulty, *keys, size=(120, 30)).name == "errors"
    assert "Errors" in drive(StubBook(NAME), Faulty, "down", "y").lines[0]


def test_more_rows_are_seen_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kcap.tui.views.screen.LOOK_SECONDS", 0.02)
    book, kind = StubBook(NAME), made(1)

    async def run() -> None:
        app = StubApp(book, kind)
        async with app.run_test() as pilot:
            await settle(pilot)
            assert "r2" not in screen(app)
            kind.rows = [{"name": f"r{at}", "n": at} for at in range(1, 4)]
            book.rows += 1
            for _ in range(1000):  # it ends with the rows
                await pilot.pause(0.02)
                if "r2" in screen(app):
                    break
            assert "r2" in screen(app)
            book.state = "failed"
            await pilot.pause(0.1)
            await settle(pilot)
            assert "not read to the end" in lines(app)[0]

    asyncio.run(run())


def test_a_name_from_the_wire_cannot_color_the_screen() -> None:
    kind = made(1)
    kind.rows = [{"name": "[red]\x1b[31m[/]", "n": 2}]
    assert "[red]\\x1b[31m[/]" in drive(StubBook(NAME), kind, size=(120, 30)).text
