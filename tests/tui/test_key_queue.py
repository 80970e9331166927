"""Keys that come faster than screens: none is lost, none meets the wrong screen, and the program lives.

`KCAP_MONKEY=10000 pytest tests/tui/test_key_queue.py` types as many random bursts as the variable says, other ones with
another `KCAP_MONKEY_SEED`.
"""

import asyncio
import os
import random
import string
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest
from textual import events

from kcap.tui.app import KcapApp
from kcap.tui.capture_model import CaptureModel
from kcap.tui.reader_main import ReadRequest
from tests.tui.driving import LARGE, PCAPS, SMALL, burst, opened, quiet, quiet_keys, screen, settle

pytestmark = pytest.mark.usefixtures("fresh_settings")
JAVA = "java-transactions.pcap"
CAPTURES = (
    JAVA, "too-large.pcap", "quota-3.9.pcap", "pipelined.pcap", "raw-frames.pcap", "aiokafka.pcap", "go-franz.pcap",
    "node-platformatic.pcap", "old-java-new-broker.pcap", "cut-message.pcap",
)  # fmt: skip
BURSTS = int(os.environ.get("KCAP_MONKEY", "40"))
SEED = os.environ.get("KCAP_MONKEY_SEED", "7")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Files that keys may save are in a folder of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def on(name: str, test: Callable[[Any], Coroutine[Any, Any, None]], *, judges: bool = False) -> None:
    async def run() -> None:
        async with opened(name, size=SMALL, judges=judges) as pilot:
            await test(pilot)

    asyncio.run(run())


CASES: dict[str, Callable[[Any], bool]] = {
    "epp": lambda app: "Packets as pcapng" in screen(app) and app.focused.value == "p",
    "fee": lambda app: app.book.filter_text != "" and "Packets of this exchange" in screen(app),
    "fe": lambda app: app.book.filter_text != "" and app.screen is app.browser,
    "ypp": lambda app: app.screen.heading == "Copy",
    "vv": lambda app: app.screen.NAME == "versions",
    "S3": lambda app: app.screen.NAME == "statistics" and app.screen.at == 2,
    "vS3": lambda app: app.screen.NAME == "statistics" and app.screen.at == 2,
    "SV": lambda app: app.screen.NAME == "versions",
    "V4jj": lambda app: app.screen.at == 3 and app.screen.table.row == 2,
    "Lq": lambda app: app.screen is app.browser,
    "/api": lambda app: app.browser.bar.line.value == "api",
    "jjjjs": lambda app: app.view.cursor == 105 and app.view.descending,
}
"""Keys -> what is true when they have been handled."""


@pytest.mark.parametrize("keys", CASES)
def test_keys_in_one_read_go_to_the_screens_they_open(keys: str) -> None:
    async def test(pilot: Any) -> None:
        burst(pilot.app, *keys)
        await quiet(pilot)
        assert pilot.app.screen_stack[0] is pilot.app.browser, "the list is never left, and nothing is behind it"
        assert CASES[keys](pilot.app), screen(pilot.app)

    on(JAVA, test)


def test_escape_twice_leaves_a_view_once_and_the_list_never() -> None:
    async def test(pilot: Any) -> None:
        burst(pilot.app, "S", *["escape"] * 4)
        await quiet(pilot)
        assert pilot.app.screen is pilot.app.browser
        assert pilot.app.is_running

    on(JAVA, test)


def test_a_pasted_path_is_typed_into_the_prompt_that_opens() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        burst(app, "e", "p")
        app.post_message(events.Paste("/tmp/some.pcapng"))
        burst(app, "x")
        await quiet(pilot)
        assert app.focused.value == "/tmp/some.pcapngx"

    on(JAVA, test)


def test_a_pasted_path_in_the_list_blanks_nothing() -> None:
    async def test(pilot: Any) -> None:
        burst(pilot.app, *"tmp/some.pcapng")
        await quiet(pilot)
        assert pilot.app.browser.bar.line.value == "some.pcapng"

    on(JAVA, test)


def test_packets_of_no_marked_exchange_write_no_file(elsewhere: Path) -> None:
    async def test(pilot: Any) -> None:
        burst(pilot.app, "e", "m")
        await quiet(pilot)
        await pilot.pause(0.3)
        assert "no exchange is marked" in screen(pilot.app), screen(pilot.app)
        assert "Save" in screen(pilot.app)
        assert pilot.app.screen is not pilot.app.browser
        burst(pilot.app, "escape")
        await quiet(pilot)
        pilot.app.browser.actions.save("marked")
        await quiet(pilot)
        assert pilot.app.screen is pilot.app.browser, "it prompts for no file"
        assert list(elsewhere.iterdir()) == []

    on(JAVA, test)


def test_escape_cancels_a_view_that_computes_and_keys_that_were_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from kcap.tui.views.statistics import Statistics

    blocked, page = threading.Event(), Statistics.page

    def slow(self: Any, book: Any) -> Any:
        blocked.wait(20)
        return page(self, book)

    monkeypatch.setattr(Statistics, "page", slow)

    async def test(pilot: Any) -> None:
        burst(pilot.app, "S", "3", "e")
        await pilot.pause(0.7)
        assert pilot.app.screen.NAME == "statistics"
        assert pilot.app.keys_wait
        burst(pilot.app, "escape", "j")
        await pilot.pause(0.5)
        blocked.set()
        await quiet(pilot)
        assert pilot.app.screen is pilot.app.browser
        assert pilot.app.view.cursor == 1, "the key behind Escape is for the list"

    on(JAVA, test)


def test_keys_that_go_elsewhere_do_not_wait_for_a_view_that_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from kcap.tui.views.statistics import Statistics

    blocked = threading.Event()

    def slow(self: Any, book: Any) -> Any:
        blocked.wait(20)

    monkeypatch.setattr(Statistics, "page", slow)

    async def test(pilot: Any) -> None:
        try:
            burst(pilot.app, "S", "f1")
            await quiet(pilot)
            assert "Every view" in screen(pilot.app), screen(pilot.app)
            burst(pilot.app, "escape", "V", "4")
            await quiet(pilot)
            assert (pilot.app.screen.NAME, pilot.app.screen.at) == ("versions", 3)
        finally:
            blocked.set()

    on(JAVA, test)


KEYS = (
    *(character for character in string.printable if not character.isspace()),
    "enter", "escape", "tab", "shift+tab", "up", "down", "left", "right", "shift+left", "shift+right", "pageup", "pagedown",
    "home", "end", "f1", "f7", "f8", "backspace", "space", "delete",
    "ctrl+f", "ctrl+g", "ctrl+n", "ctrl+p", "ctrl+q", "ctrl+s",
)  # fmt: skip
"""Keys of a monkey: every one that something listens to."""
TEXTS = ("x y.pcap", "api == Fetch", "日本\n語", "🙂" * 40)
"""What a monkey pastes: a file's name, a filter, text of two lines, wide characters."""


def click(app: Any, x: int, y: int, button: int) -> None:
    """A click as a terminal reports it, whatever is there."""
    for kind in (events.MouseMove, events.MouseDown, events.MouseUp):
        app.post_message(kind(None, x, y, 0, 0, button, False, False, False, x, y))


async def monkey(pilot: Any, chance: random.Random, bursts: int) -> None:
    """Types bursts of keys, pastes, clicks, resizes, at any pace. The keys that end the program are counted, not obeyed."""
    app, left = pilot.app, []

    async def leave() -> None:
        left.append(app.screen)

    app.action_quit = leave
    for _ in range(bursts):
        burst(app, *(chance.choice(KEYS) for _ in range(chance.randint(1, 5))))
        if chance.random() < 0.05:
            app.post_message(events.Paste(chance.choice(TEXTS)))
        if chance.random() < 0.03:
            await pilot.resize_terminal(chance.randint(1, 250), chance.randint(1, 60))
        if chance.random() < 0.03:
            click(app, chance.randrange(app.size.width), chance.randrange(app.size.height), chance.choice((1, 1, 3)))
        if chance.random() < 0.3:
            await pilot.pause(chance.choice((0.0, 0.0, 0.005, 0.05)))
    await pilot.resize_terminal(*LARGE)
    for _ in range(12):
        burst(app, "escape")
        await quiet_keys(pilot)
        if app.screen is app.browser and app.focused is app.browser.listed and app.book.only is None:
            break
    assert app.screen is app.browser
    assert app.is_running
    burst(app, "escape", "g")
    await quiet_keys(pilot)
    await settle(pilot)
    assert app.view.cursor == 0
    assert "Quick filters" in screen(app)
    burst(app, "V")
    await quiet_keys(pilot)
    assert app.screen.NAME == "versions", "it does what keys say"


def read_while_typed(name: str, test: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    """The same with an app that begins to read the capture when the first key comes."""

    async def run() -> None:
        with CaptureModel(ReadRequest([str(PCAPS / name)])) as book:
            app = KcapApp(book)
            async with app.run_test(size=SMALL) as pilot:
                await test(pilot)
        assert not app.failures, "".join(line for error in app.failures for line in format_exception(error))

    asyncio.run(run())


def test_random_bursts_of_keys_leave_a_live_program() -> None:
    captures = CAPTURES if BURSTS > 40 else CAPTURES[:2]
    for at, name in enumerate(captures):
        typing = partial(monkey, chance=random.Random(f"{SEED} {name}"), bursts=BURSTS // len(captures))
        if at % 2:
            read_while_typed(name, typing)
        else:
            on(name, typing, judges=True)
        print(f"{name}: {BURSTS // len(captures)} bursts, alive")
