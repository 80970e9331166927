"""One key map: a key has one meaning on the list, in views and on an exchange, and a key without an effect says so."""

import asyncio
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from textual.actions import parse
from textual.binding import Binding, BindingsMap
from textual.keys import _character_to_key
from textual.widget import Widget

from kcap.tui.app import KcapApp
from kcap.tui.key_map import KEYS, acts
from kcap.tui.views import VIEWS, load
from tests.tui.driving import PATIENCE_SECONDS, burst, notified, opened, press, settle

ROOT = Path(__file__).resolve().parents[2]
PARTS = (
    "app:KcapApp", "browser:Browser", "followed_stream:FollowedStream",
    "panes.exchanges:ExchangeList", "panes.detail:Detail", "panes.bytes:Bytes", "panes.timeline:TimeStrip",
    "views.paint:Lines", "views.table:SheetTable", "views.picture:Picture", "views.screen:View",
    *(module.removeprefix("kcap.tui.") for _, _, module in VIEWS.values()),
)  # fmt: skip
"""What reacts to keys beside menus and windows to type in."""


def bound() -> Iterator[tuple[str, str, str]]:
    """Where a key is bound, the key, its action."""
    for part in PARTS:
        module, _, name = part.partition(":")
        kind: type[Widget | KcapApp] = getattr(import_module(f"kcap.tui.{module}"), name)
        for key, bindings in BindingsMap(kind.__dict__.get("BINDINGS", ())).key_to_bindings.items():
            for binding in bindings:
                _, action, parameters = parse(binding.action)
                yield part, key, parse(parameters[0])[1] if action in ("panes", "body") else action


def test_a_key_means_the_same_wherever_it_is_bound() -> None:
    wrong = [(part, key, action) for part, key, action in bound() if key not in KEYS or action not in KEYS[key].actions]
    assert wrong == []


def test_the_map_has_no_key_without_an_action() -> None:
    there = list(bound())
    assert set(KEYS) == {key for _, key, _ in there}
    done = {(KEYS[key].words, action) for _, key, action in there}
    assert [(one.words, action) for one in KEYS.values() for action in one.actions if (one.words, action) not in done] == []


def test_the_documents_name_every_key() -> None:
    text = (ROOT / "docs" / "tui.md").read_text().replace("\\|", "|")
    app = KcapApp.__new__(KcapApp)
    for key in KEYS:
        names = {f"`{KcapApp.get_key_display(app, Binding(key, ''))}`", f"`{key.title()}`"}
        if key not in ("left", "right", "up", "down") and not key.isdecimal():
            assert any(name in text for name in names), key
    assert "`1` ... `6`" in text


PRINTED = [chr(at) for at in range(33, 127)]


@pytest.mark.parametrize("where", ["list", "tree", "bytes", "timeline", *VIEWS])
def test_a_key_has_an_effect_or_says_why(where: str) -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=(120, 40)) as pilot:
            app: Any = pilot.app
            first = {"list": (), "tree": ("2",), "bytes": ("3",), "timeline": ("x",)}.get(where)
            if first is None:
                app.push_screen(load(where)())
                await press(pilot)
                if where == "differences":
                    await press(pilot, "escape")
                    return  # it asks for a file first
            await press(pilot, *(first or ()))
            screen, said = app.screen, list[str]()
            notify = app.notify
            app.notify = lambda message, **how: (said.append(message), notify(message, **how))  # what is shown goes in 3 s
            for sign in PRINTED:
                key = _character_to_key(sign)
                if not acts(screen, key):
                    app.clear_notifications()
                    said.clear()
                    burst(app, sign)  # to wait for an idle process behind each key would take most of the time
                    until = time.monotonic() + PATIENCE_SECONDS
                    while not said and time.monotonic() < until:
                        await pilot.pause(0.02)
                    assert said, (where, sign)
                    assert app.screen is screen
            await settle(pilot)
            assert app.screen is screen

    asyncio.run(run())


@pytest.mark.parametrize(("keys", "why"), [
    (("4",), "the list has 3 panes: list, tree, bytes; v lists the views"), (("B",), "B: group by something else, in views"),
    (("J",), "J does nothing; F1 lists the keys"), (("p",), "p: with or without long polls, in Statistics"),
    (("S", "2", "p"), "the digest counts all requests, long polls too"),
    (("E", "b"), "b: bytes, in the list and a followed connection"), (("left_square_bracket",), "no earlier exchange"),
    (("apostrophe",), "there is no mark below"), (("ctrl+s",), "the capture has been read"),
    (("V", "right_square_bracket"), "is the newest release"), (("L", "u"), "no display filter is set"),
    (("L", "s"), "arrows are in time order"), (("L", "right_curly_bracket"), "there are no later exchanges"),
])  # fmt: skip
def test_the_reason_is_that_of_the_place(keys: tuple[str, ...], why: str) -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            await press(pilot, *keys)
            assert why in notified(pilot.app)

    asyncio.run(run())


def test_a_key_that_is_held_says_it_once() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            await press(pilot, *"JJJJJ")
            assert notified(pilot.app) == "J does nothing; F1 lists the keys"

    asyncio.run(run())
