"""What a view does with the row under the cursor."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import kcap
from tests.tui.driving import PCAPS, notified, opened, press
from tests.tui.views.stub import EmptyBook, StubApp, StubBook, drive, settle

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
