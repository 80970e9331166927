"""Copy, save, search, go elsewhere, by their keys."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import kcap
from kcap.tui.actions import NOTHING
from tests.tui.driving import LARGE, opened, press

pytestmark = pytest.mark.usefixtures("fresh_settings")


def on(test: Callable[[Any, Any], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=LARGE) as pilot:
            await test(pilot, pilot.app)

    asyncio.run(run())


async def answer(pilot: Any, app: Any, text: str) -> None:
    """Types into the window that asks."""
    app.screen.query_one("Input").value = text
    await press(pilot, "enter")
    await app.workers.wait_for_complete()
    await pilot.pause()


def test_copying() -> None:
    async def test(pilot: Any, app: Any) -> None:
        wanted = ".".join(map(str, app.selected))
        for key, check in (
            ("n", lambda text: text == wanted),
            ("r", lambda text: json.loads(text)["api"] == "ApiVersions"),
            ("v", lambda text: text == "07:42:12.122"),
            ("f", lambda text: text.startswith("time == ")),
            ("h", lambda text: text.startswith("00 00 00 30")),
            ("t", lambda text: "ApiVersionsRequest v5" in text),
        ):
            await press(pilot, "y", key)
            assert check(app.clipboard), (key, app.clipboard)

    on(test)


def test_saving(tmp_path: Path) -> None:
    async def test(pilot: Any, app: Any) -> None:
        await press(pilot, "e", "r")
        await answer(pilot, app, str(tmp_path / "rows.jsonl"))
        assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 110
        await press(pilot, "e", "t")
        await answer(pilot, app, str(tmp_path / "one.txt"))
        assert "ApiVersionsRequest v5" in (tmp_path / "one.txt").read_text()
        await press(pilot, "e", "s")
        await answer(pilot, app, str(tmp_path / "screen.svg"))
        assert "<svg" in (tmp_path / "screen.svg").read_text()
        await press(pilot, "m", "j", "m", "e", "m")
        await answer(pilot, app, str(tmp_path / "marked"))
        made = kcap.open(tmp_path / "marked.pcapng").exchanges(["api"]).to_arrow().column(0).to_pylist()
        assert {"ApiVersions", "FindCoordinator"} <= set(made)
        await press(pilot, "e", "r")
        await answer(pilot, app, str(tmp_path / "rows.txt"))
        assert any("rows were not written: rows.txt" in note.message for note in app._notifications)

    on(test)


def test_searching() -> None:
    async def test(pilot: Any, app: Any) -> None:
        await press(pilot, "n")
        await answer(pilot, app, "leavegroup")
        row = app.view.arranged.rows.row(app.view.current)
        assert row["api"] == "LeaveGroup"
        before = app.view.cursor
        await press(pilot, "n", "N")
        assert app.view.cursor == before
        await press(pilot, "enter", "ctrl+f")
        await answer(pilot, app, "memberid")
        assert "MemberId" in app.browser.detail.outline.current.name
        app.browser.hexes.focus()
        await press(pilot, "ctrl+f")
        await answer(pilot, app, "orders")
        dump = app.browser.hexes.dump
        assert dump.data[dump.cursor :].startswith(b"orders")

    on(test)


def test_stepping_from_the_tree() -> None:
    async def test(pilot: Any, app: Any) -> None:
        await press(pilot, "enter", "f8", "f8", "f7")
        assert app.view.cursor == 1
        assert app.focused is app.browser.detail
        assert app.browser.opened.number == app.view.current

    on(test)


def test_going_somewhere() -> None:
    async def test(pilot: Any, app: Any) -> None:
        rows = app.view.arranged.rows
        for text, check in (
            ("17", lambda: app.view.cursor == 16),
            ("50%", lambda: app.view.cursor == 55),
            ("#402", lambda: rows.row(app.view.current)["request_first_packet"] == 402),
            ("{}.{}".format(*(rows.row(30)[name] for name in ("connection", "exchange"))), lambda: app.view.current == 30),
        ):
            await press(pilot, "colon")
            await answer(pilot, app, text)
            assert check(), text
        await press(pilot, "colon")
        await answer(pilot, app, "nonsense")
        assert app.view.current == 30

    on(test)


COMMANDS = {
    "topic orders": 'topics == "orders"', "client x y": 'client_id == "x y"', "group g": 'group_id == "g"',
    "api Fetch": "api == Fetch", "error UNKNOWN_SERVER_ERROR": "error == UNKNOWN_SERVER_ERROR",
    "broker 10.0.0.1": 'server_ip == "10.0.0.1"', ":filter api == Produce": "api == Produce", "clear": "",
}  # fmt: skip


def test_commands_filter() -> None:
    async def test(pilot: Any, app: Any) -> None:
        for command, text in COMMANDS.items():
            app.narrow("")
            app.browser.palette.type(command)
            await press(pilot)
            assert app.book.filter_text == text, command

    on(test)


def test_commands_go_to_a_time_and_open_views() -> None:
    async def test(pilot: Any, app: Any) -> None:
        rows = app.book.snapshot().table(["request_first_ns"])["request_first_ns"].to_pylist()
        middle = sorted(time for time in rows if time is not None)[len(rows) // 2]
        await press(pilot, "colon")
        await answer(pilot, app, f"goto {kcap_clock(middle)}")
        at = app.view.arranged.rows.row(app.view.current)["request_first_ns"]
        assert abs(at - middle) < 2_000_000
        await press(pilot, "colon")
        await answer(pilot, app, "goto yesterday:x")
        assert app.screen is app.browser
        app.browser.palette.type("statistics")
        await pilot.pause(0.3)
        assert app.screen.NAME == "statistics"

    on(test)


def kcap_clock(time_ns: int) -> str:
    """A time of day as the list shows it."""
    from kcap.reports.text import clock

    return clock(time_ns)


def test_filters_by_what_is_under_the_cursor() -> None:
    """Each way of joining it to the filter in force, at once or to be edited; and the quick ones of this exchange."""

    async def test(pilot: Any, app: Any) -> None:
        row = app.view.arranged.rows.row(app.view.current)
        await press(pilot, "A", "1")
        first = app.book.filter_text
        assert first
        await press(pilot, "A", "6")
        assert app.book.filter_text.startswith(f"{first} || !")
        app.narrow("")
        await press(pilot, "A", "a")
        assert app.browser.bar.query_one("Input").value == first
        assert app.book.filter_text == "", "it is to be edited first"
        await press(pilot, "escape")
        await press(pilot, "f", "x")
        assert app.book.filter_text == ""
        app.browser.actions.apply("selected")
        await press(pilot)
        assert app.book.filter_text == first
        app.narrow("")
        await press(pilot)
        await press(pilot, "f", "a")
        assert str(row["api"]) in app.book.filter_text

    on(test)


def test_the_neighbors_in_the_connection() -> None:
    async def test(pilot: Any, app: Any) -> None:
        uid, number = app.selected
        await press(pilot, "left_square_bracket")
        assert app._notifications
        assert "has no earlier exchange" in [note.message for note in app._notifications][-1]
        await press(pilot, "right_square_bracket")
        assert app.selected == (uid, number + 1)
        await press(pilot, "left_square_bracket")
        assert app.selected == (uid, number)

    on(test)


def test_the_slowest_of_an_api_the_form_of_times_and_columns() -> None:
    async def test(pilot: Any, app: Any) -> None:
        app.browser.actions.slowest("Produce")
        await app.workers.wait_for_complete()
        await press(pilot)
        rows = [app.view.arranged.rows.row(number) for number in range(3)]
        assert app.book.filter_text == "api == Produce"
        assert (app.view.sort, app.view.descending) == ("latency", True)
        assert rows
        app.browser.actions.set_time("delta")
        assert app.view.form == "delta"
        app.browser.actions.take_columns(["time", "api"])
        assert (app.view.names, app.view.chosen) == (["time", "api"], True)
        app.browser.actions.take_columns(None)
        assert app.view.chosen
        app.browser.actions.take_columns([])
        assert not app.view.chosen

    on(test)


def test_without_an_exchange_each_key_says_that_there_is_none() -> None:
    async def test(pilot: Any, app: Any) -> None:
        app.narrow("api == Fetch && api == Produce")
        await app.workers.wait_for_complete()
        await press(pilot)
        for key in ("y", "w", "right_square_bracket"):
            app.clear_notifications()
            await press(pilot, key)
            assert [note.message for note in app._notifications] == [NOTHING], key

    on(test)
