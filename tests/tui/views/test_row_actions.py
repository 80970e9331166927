"""What a view does with the row under the cursor."""

import asyncio
from typing import Any

import pytest

from tests.tui.driving import notified, opened, press
from tests.tui.views.stub import StubApp, StubBook, drive, settle

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
