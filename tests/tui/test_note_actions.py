"""What the user notes is there when the capture is opened again, and is exported with it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kcap.tui.config import config_path, read_config
from kcap.tui.notes import identity, notes_path, read_notes
from tests.tui.driving import PCAPS, book_of, notified, opened, press, screen

JAVA = "java-transactions.pcap"


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def nothing_ignored() -> Any:
    yield
    book_of(JAVA).ignore(())


def notes() -> Any:
    return read_notes(notes_path(str(identity([str(PCAPS / JAVA)]))))[0]


def test_notes_survive_the_session() -> None:
    async def first() -> None:
        async with opened(JAVA) as pilot:
            app: Any = pilot.app
            await press(pilot, "m", "semicolon", *"odd one", "enter", "down", "i", "r")
            assert len(notes().marks) == len(notes().ignored) == len(notes().comments) == 1
            assert notes().reference
            assert "*REF*" in screen(app)
            await press(pilot, "slash", *"api == Fetch", "enter", "f", "plus", *"fetches", "enter")
            assert notes().filters == {"fetches": "api == Fetch"}

    async def second() -> None:
        async with opened(JAVA) as pilot:
            app: Any = pilot.app
            noted = app.view.annotations
            assert (len(noted.marks), len(noted.ignored), list(noted.comments.values())) == (1, 1, ["odd one"])
            await press(pilot, "M")
            assert "odd one" in screen(app)
            await press(pilot, *"odd", "enter")
            assert app.view.current == next(iter(noted.comments))
            await press(pilot, "f", "1")
            assert app.book.filter_text == "api == Fetch"
            await press(pilot, "f", "minus", "1", "semicolon", "escape")
            assert not notes().filters
            await press(pilot, "f", "x", "M", *"odd", "enter", "semicolon", "backspace", "enter")
            assert not notes().comments
            assert app.is_running

    asyncio.run(first())
    asyncio.run(second())


def test_an_ignored_exchange_is_in_no_view_and_in_no_file(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(JAVA, only="api == TxnOffsetCommit") as pilot:
            app: Any = pilot.app
            before = app.book.exchanges(["exchange"]).num_rows
            await press(pilot, "i")
            assert "1 ignored" in screen(app)
            assert app.book.exchanges(["exchange"]).num_rows == before - 1
            assert len(app.view) == before, "the list still has it"
            await press(pilot, "E")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert "1 ignored" in screen(app)
            await press(pilot, "escape", "e", "r", *"out.jsonl", "enter")
            await app.workers.wait_for_complete()
            assert len((tmp_path / "out.jsonl").read_text().splitlines()) == before - 1
            await press(pilot, "up", "i")
            assert app.book.exchanges(["exchange"]).num_rows == before

    asyncio.run(run())


def test_comments_go_with_the_packets_that_are_saved(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(JAVA) as pilot:
            app: Any = pilot.app
            await press(pilot, "semicolon", *"look here", "enter")
            await press(pilot, "e", "p", *"one.pcapng", "enter")
            await app.workers.wait_for_complete()

    asyncio.run(run())
    assert b"look here" in (tmp_path / "one.pcapng").read_bytes()


def test_notes_as_a_file_and_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(JAVA) as pilot:
            app: Any = pilot.app
            await press(pilot, "e", "n")
            assert "nothing is noted" in screen(app)
            await press(pilot, "escape", "m", "e", "n", "enter")
            assert len(json.loads((tmp_path / "kcap-notes.json").read_text())["marks"]) == 1
            await press(pilot, "up", "m")
            assert not app.view.marks
            await press(pilot, "colon", *"notes kcap-notes.json", "enter")
            assert len(app.view.marks) == 1
            await press(pilot, "colon", *"notes none.json", "enter")
            assert ": no such file or directory" in notified(app)

    asyncio.run(run())


def test_a_profile_has_columns_rules_and_filters_of_its_own() -> None:
    async def run() -> None:
        async with opened(JAVA) as pilot:
            app: Any = pilot.app
            await press(pilot, "o", "p", *"lean", "enter")
            assert app.look.profile == "lean"
            await press(pilot, "colon", *"column: hide topics, group", "enter")
            await press(pilot, "o", "r", "a", *"mine", "tab", *"api == Fetch", "enter", "enter")
            assert app.view.rules[0].name == "mine"
            await press(pilot, "slash", *"api == Fetch", "enter", "o", "F", *"all", "enter")
            await press(pilot, "o", "p", *"default", "enter")
            assert (app.look.profile, app.view.chosen, app.look.filters) == ("", False, [])
            assert [rule.name for rule in app.view.rules[:2]] == ["new member", "error"]
            await press(pilot, "o", "p", *"lean", "enter")
            assert "about" not in app.view.names
            assert app.look.filters == [{"name": "all", "filter": "api == Fetch"}]

    asyncio.run(run())
    assert config_path("lean").exists()
    assert notes().profile == "lean"
    assert read_config("lean")[0].rules[0]["name"] == "mine"
    assert read_config()[0].rules == []
