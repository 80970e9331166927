"""What a view does with its filter, its search and the row under the cursor."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.reports.text import TextColumn
from kcap.tui.views.screen import View
from kcap.tui.views.view_actions import OpenView, next_cell
from tests.tui.driving import PCAPS, notified, opened, press, screen
from tests.tui.views.stub import EmptyBook, StubApp, StubBook, drive, settle
from tests.tui.views.test_home import names_of

NAME = "quota-3.9.pcap"


@pytest.mark.parametrize(("name", "key", "why"), [
    ("conversations", "2", "this view has 1 section"), ("versions", "B", "this view has one grouping"),
    ("errors", "9", "this view has 4 sections"), ("health", "w", "this row names no connection to follow"),
    ("health", "m", "this row is not one exchange; m marks exchanges"), ("errors", "E", "this is the view: Errors"),
    ("errors", "z", "s sorts by a column first"), ("errors", "tab", "this section has no bars to go to"),
])  # fmt: skip
def test_a_key_without_effect_says_why(name: str, key: str, why: str) -> None:
    async def run() -> None:
        app = StubApp(StubBook(NAME), name)
        async with app.run_test() as pilot:
            await settle(pilot)
            await pilot.press(key)
            await settle(pilot)
            assert [one.message for one in app._notifications] == [why]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("name", "keys"), [("throttling", ("B", "2", "1")), ("conversations", ("l", "L")), ("ladder", ("l", "j"))]
)
def test_a_key_with_an_effect_says_nothing(name: str, keys: tuple[str, ...]) -> None:
    async def run() -> None:
        app = StubApp(StubBook(NAME), name)
        async with app.run_test() as pilot:
            await settle(pilot)
            for key in keys:
                await pilot.press(key)
                await settle(pilot)
            assert not list(app._notifications)

    asyncio.run(run())


def test_the_ladder_is_that_of_the_row() -> None:
    seen = drive(StubBook(NAME), "conversations", "down", "L")
    assert seen.name == "ladder"
    assert drive(StubBook(NAME), "conversations", "down", "L", "escape").name == "conversations"


def test_an_exchange_of_a_view_is_marked_in_the_list() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            app: Any = pilot.app
            await press(pilot, "S", "3", "m")
            (number,) = app.view.marks
            uid, exchange = app.view.name_of(number)
            assert f"{uid}.{exchange} is marked" in notified(app)
            assert app.screen.table.down == (uid, exchange)
            await press(pilot, "m")
            assert not app.view.marks

    asyncio.run(run())


def test_packets_of_what_is_under_the_cursor_are_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            app: Any = pilot.app
            await press(pilot, *["down"] * 9, "R", "e", "p", *"ne.pcapng", "enter")
            for _ in range(500):
                await pilot.pause(0.02)
                if (tmp_path / "ne.pcapng").exists():
                    break
            uid, number = app.selected
            whole = kcap.open(str(PCAPS / "java-transactions.pcap"))
            (wanted,) = (one for one in whole if (one.row["connection"], one.row["exchange"]) == (uid, number))
            assert wanted.request is not None
            requests = [one.request.frame for one in kcap.open(str(tmp_path / "ne.pcapng")) if one.request is not None]
            assert wanted.request.frame in requests
            assert len(requests) < whole.exchanges().to_arrow().num_rows

    asyncio.run(run())


def test_packets_are_those_of_the_display_filter_too_where_the_view_follows_it() -> None:
    seen = drive(StubBook(NAME, "api == Fetch"), "conversations", "down", "e", "p")
    assert seen.app.cut[0].startswith("api == Fetch && ")
    shown = drive(StubBook("too-large.pcap", "api == Fetch"), "findings", "e", "p")
    assert shown.app.cut
    assert "Fetch" not in shown.app.cut[0]


def test_cell_row_and_filter_are_copied() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=(120, 40)) as pilot:
            app: Any = pilot.app
            copied: list[str] = []
            app.copy_to_clipboard = copied.append
            await press(pilot, "C", "y", "v", "y", "r", "y", "f")
            value, row, only = copied
            assert row.split("\t")[app.screen.table.at] == value
            assert only == app.screen.table.down

    asyncio.run(run())


def test_a_section_is_saved_as_text() -> None:
    seen = drive(StubBook(NAME), "conversations", "e", "t", size=(120, 40))
    ((name, text),) = seen.saved
    assert name == "kcap-conversations.txt"
    assert "127.0.0.1" in text


@pytest.mark.parametrize(("key", "why"), [("y", "there is no row to copy"), ("e", "")])
def test_without_a_row_nothing_is_copied_and_text_cannot_be_saved_before_it_is_there(key: str, why: str) -> None:
    async def run() -> None:
        app = StubApp(EmptyBook(), "conversations")
        async with app.run_test() as pilot:
            await settle(pilot)
            await pilot.press(key)
            await settle(pilot)
            assert [one.message for one in app._notifications] == ([why] if why else [])

    asyncio.run(run())


def test_the_messages_of_a_rows_connection_are_shown() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            app: Any = pilot.app
            await press(pilot, "C", "w")
            assert type(app.screen).__name__ == "FollowedStream"

    asyncio.run(run())


def test_a_filter_that_is_set_in_a_view_holds_there_and_in_the_list() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            app: Any = pilot.app
            await press(pilot, "C")
            view = app.screen
            await press(pilot, "slash", *"api == Produce", "enter")
            assert app.screen is view, "the view stays"
            assert app.book.filter_text == "api == Produce"
            assert "filter api == Produce" in screen(app).splitlines()[0]
            await press(pilot, "f", "x")
            assert (app.screen, app.book.filter_text) == (view, "")
            await press(pilot, "a")
            kept = app.book.filter_text
            assert kept
            assert app.screen is view
            await press(pilot, "f", "x", "exclamation_mark")
            assert app.book.filter_text == f"!({kept})"
            await press(pilot, "f", "x", "slash", *"api ==", "enter")
            assert app.book.filter_text == ""
            assert notified(app), "a filter that cannot be read says so"
            await press(pilot, "slash", *"api == Fetch", "enter", "escape")
            assert app.browser.bar.line.value == "api == Fetch"

    asyncio.run(run())


def test_a_cell_without_exchanges_says_so() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            await press(pilot, "H", "a")
            assert pilot.app.book.filter_text == ""
            assert "no filter belongs to this cell" in notified(pilot.app)

    asyncio.run(run())


pytestmark = pytest.mark.usefixtures("fresh_settings")
COLUMNS = [TextColumn("a", lambda row: row["a"]), TextColumn("b", lambda row: row["b"])]
ROWS = [{"a": "Fetch", "b": "x"}, {"a": "Produce", "b": "fetch"}, {"a": "y", "b": "z"}]


def test_the_next_cell_wraps_around() -> None:
    assert next_cell(ROWS, COLUMNS, "FETCH", (0, 0), 1) == (1, 1)
    assert next_cell(ROWS, COLUMNS, "fetch", (1, 1), 1) == (0, 0)
    assert next_cell(ROWS, COLUMNS, "fetch", (2, 1), -1) == (1, 1)
    assert next_cell(ROWS, COLUMNS, "Produce", (1, 0), 1) == (1, 0), "the cell itself comes last"


def test_what_no_cell_has_is_not_found() -> None:
    assert next_cell(ROWS, COLUMNS, "nothing", (0, 0), 1) is None
    assert next_cell([], COLUMNS, "x", (0, 0), 1) is None


def test_keys_search_in_a_view_as_in_the_list() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=(120, 30)) as pilot:
            app: Any = pilot.app
            await press(pilot, "S")
            await app.workers.wait_for_complete()
            await press(pilot, "ctrl+f", *"metadata", "enter")
            first = app.screen.table.current
            assert "Metadata" in str(first)
            await press(pilot, "ctrl+f", *"no such thing", "enter")
            assert "was not found" in notified(app)
            assert app.screen.table.current is first

    asyncio.run(run())


def test_a_view_has_what_its_parts_need() -> None:
    of_an_instance = {"table", "shown"}
    assert of_an_instance < names_of(OpenView)
    assert {name for name in names_of(OpenView) - of_an_instance if not hasattr(View, name)} == set()
