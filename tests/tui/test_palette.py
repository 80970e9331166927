"""Commands by name and by typing."""

import asyncio
from typing import Any

import pytest

from kcap.filter.fields import fields
from kcap.tui.finder import NOTHING, TAKEN
from kcap.tui.list_columns import HEADS
from kcap.tui.views import VIEWS
from tests.tui.driving import opened, press, screen

pytestmark = pytest.mark.usefixtures("fresh_settings")
JAVA = "java-transactions.pcap"


def test_everything_has_an_entry() -> None:
    async def run() -> None:
        async with opened(JAVA) as pilot:
            app: Any = pilot.app
            names = [entry.name for entry in app.browser.palette.entries()]
            assert len(names) == len(set(names))
            assert {f"view {name}" for name in VIEWS} <= set(names)
            assert {f"column {name}" for name in HEADS} <= set(names)
            assert {f"field {name}" for name in fields()} <= set(names)
            assert {f"theme {name}" for name in app.available_themes} <= set(names)
            actions = [name.removeprefix("action ").partition("(")[0] for name in names if name.startswith("action ")]
            assert all(hasattr(app.browser, f"action_{name}") for name in actions if not name.startswith("app."))

    asyncio.run(run())


def test_letters_and_enter_do_it_from_the_list_and_from_a_view() -> None:
    async def run() -> None:
        async with opened(JAVA) as pilot:
            app: Any = pilot.app
            await press(pilot, "colon", *"errs", "enter")
            assert app.screen.NAME == "errors"
            await press(pilot, "ctrl+p", *"sort by latency", "enter")
            assert app.screen is app.browser
            assert app.view.sort == "latency"
            await press(pilot, "colon", *"column: show flags", "enter")
            assert "flags" in app.view.names
            await press(pilot, "colon", *"time display: delta", "enter")
            assert app.view.form == "delta"
            await press(pilot, "colon", *"comment on", "enter")
            assert "Comment on this exchange" in screen(app)
            await press(pilot, "escape", "colon", *"field: latency_n", "enter")
            assert app.focused.value == "latency_ns "

    asyncio.run(run())


def test_typed_commands_and_their_history() -> None:
    async def run() -> None:
        async with opened(JAVA) as pilot:
            app: Any = pilot.app
            await press(pilot, "colon", *"17", "enter")
            assert app.view.cursor == 16
            await press(pilot, "colon", *"topic orders.txin", "enter")
            assert app.book.filter_text == 'topics == "orders.txin"'
            await press(pilot, "colon", *"clear", "enter", "colon", "up", "up")
            assert app.focused.value == "topic orders.txin"
            await press(pilot, "down", "down", "escape", "colon", *"zzzzqq", "enter")
            assert "Command" in screen(app), "what is no command stays to be corrected"
            assert NOTHING in screen(app)
            await press(pilot, "escape", "colon", *"topic zzzzqq")
            assert TAKEN in screen(app)
            await press(pilot, "escape", "colon", *"export")
            assert "Save: displayed rows" in screen(app), "what other programs call it finds it"

    asyncio.run(run())


def test_a_command_that_cannot_be_says_why() -> None:
    async def run() -> None:
        async with opened(JAVA) as pilot:
            app: Any = pilot.app
            for text, reason in {
                "filter latency >": "the filter ends where a name or a value",
                "goto yesterday": "yesterday is no row, #packet, UID.N, 50% or time",
            }.items():
                await press(pilot, "colon", *text, "enter")
                assert reason in " ".join(str(one.message) for one in app._notifications)
                assert "Command" in screen(app), "what was typed stays to be corrected"
                await press(pilot, "escape")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "known"),
    [
     ("17", True), ("#17", True), ("50%", True), ("C1.2", True), ("api Fetch", True), ("filter api ==", False),
     ("errors", True),
     ("goto 08:15:30", True), ("goto", False), ("goto x", False), ("errs", False), ("", False)],
)  # fmt: skip
def test_what_is_a_command(text: str, known: bool) -> None:
    async def run() -> None:
        async with opened(JAVA) as pilot:
            assert pilot.app.browser.palette.accepts(text) is known

    asyncio.run(run())
