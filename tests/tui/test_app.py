"""What the views ask of the app."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.app import ComposeResult
from textual.css.query import NoMatches
from textual.events import Resize
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Static

from kcap.tui.app import KcapApp
from kcap.tui.browser import Browser
from kcap.tui.capture_model import read_whole
from kcap.tui.pane_layout import Panes
from kcap.tui.views import VIEWS
from tests.tui.conftest import PCAPS
from tests.tui.driving import LARGE, SMALL, burst, opened, press, quiet_keys, screen, settle

pytestmark = pytest.mark.usefixtures("fresh_settings")
JAVA = "java-transactions.pcap"


def on(name: str, test: Callable[[Any], Coroutine[Any, Any, None]], size: tuple[int, int] = SMALL, only: str = "") -> None:
    async def run() -> None:
        async with opened(name, size=size, only=only) as pilot:
            await test(pilot)

    asyncio.run(run())


def test_narrowing_from_a_view() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        app.narrow("api == Fetch || api == Produce")
        await settle(pilot)
        app.narrow("&& latency > 3ms")
        await settle(pilot)
        assert app.book.filter_text == "(api == Fetch || api == Produce) && latency > 3ms"
        assert len(app.view) == app.book.passed < 110
        app.narrow("nonsense ==")
        await settle(pilot)
        assert app.book.filter_text.endswith("latency > 3ms"), "what does not read changes nothing"

    on(JAVA, test)


def test_views_that_were_left_are_freed_between_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: the collector does not run while keys come, and runs for several views at once."""
    collected: list[float] = []
    monkeypatch.setattr("kcap.tui.app.UNUSED_SECONDS", 0.3)

    async def test(pilot: Any) -> None:
        monkeypatch.setattr("kcap.tui.app.collect", lambda: collected.append(pilot.app.unused_seconds))
        burst(pilot.app, *("S", "escape") * 4)
        await quiet_keys(pilot)
        until = time.monotonic() + 60
        while not collected and time.monotonic() < until:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        assert 1 <= len(collected) < 4
        assert min(collected) >= 0.3

    on(JAVA, test)


def test_mapped_rows_are_given_back_between_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: not while one page is made after the other, for some seconds at most."""

    async def test(pilot: Any) -> None:
        app, released, now = pilot.app, list[float](), 1000.0
        monkeypatch.setattr(app.book, "release", lambda: released.append(now))
        monkeypatch.setattr("kcap.tui.app.time", SimpleNamespace(monotonic=lambda: now))
        app._released = now
        for step in range(12):
            now = 1000.5 + step / 2
            app.view.paged = now - 0.1 if step < 11 else app.view.paged
            app._release()
        assert released == [1005.0, 1006.0]

    on(JAVA, test)


def test_going_to_an_exchange() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        await press(pilot, "G")
        wanted = app.selected
        assert wanted is not None
        await press(pilot, "g")
        app.narrow("api == ApiVersions")
        await settle(pilot)
        app.show_exchange(*wanted)
        await settle(pilot)
        await settle(pilot)
        assert app.selected == wanted, "a filter that hides it is taken away"
        app.show_exchange("C0", 1)
        await settle(pilot)
        assert app.selected == wanted

    on(JAVA, test)


def test_a_filter_from_the_command_line() -> None:
    async def test(pilot: Any) -> None:
        rows = pilot.app.book.exchanges(["api"], filtered=False).column("api").to_pylist()
        assert len(pilot.app.view) == pilot.app.book.passed == rows.count("Metadata") > 0
        assert "api == Metadata" in screen(pilot.app)

    on(JAVA, test, only="api == Metadata")


def test_saving_a_text(tmp_path: Path) -> None:
    async def test(pilot: Any) -> None:
        pilot.app.save_text("", "words")
        await pilot.pause()
        pilot.app.screen.dismiss(str(tmp_path / "out.txt"))
        await settle(pilot)
        assert (tmp_path / "out.txt").read_text() == "words"
        pilot.app.write(str(tmp_path / "none" / "x"), b"")
        await settle(pilot)
        (capture,) = pilot.app.book.order.paths
        before = Path(capture).read_bytes()
        (tmp_path / "link").symlink_to(capture)
        pilot.app.write(str(tmp_path / "link"), b"words")
        await settle(pilot)
        assert Path(capture).read_bytes() == before, "a capture on the screen is not replaced"

    on(JAVA, test)


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("name", VIEWS)
def test_every_view_opens_and_closes(name: str, size: tuple[int, int]) -> None:
    """One that is not there, or fails, is reported; the list is there behind it."""

    async def test(pilot: Any) -> None:
        key, title, _ = VIEWS[name]
        await pilot.press(key)
        await settle(pilot)
        if pilot.app.screen is not pilot.app.browser:
            assert title in screen(pilot.app)
            await press(pilot, "escape")
        assert pilot.app.screen is pilot.app.browser
        before = pilot.app.view.cursor  # that of records goes on to the next exchange that has some
        await press(pilot, "j")
        assert pilot.app.view.cursor == before + 1

    on("node-platformatic.pcap", test, size)


def test_a_view_that_fails_leaves_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VIEWS, "health", ("H", "Capture health", "kcap.tui.nothing:None"))

    async def test(pilot: Any) -> None:
        await press(pilot, "H")
        assert pilot.app.screen is pilot.app.browser
        assert any("cannot be opened" in reported.title for reported in pilot.app._notifications)

    on("node-platformatic.pcap", test)


LATE = """
import asyncio
from textual.widgets import _toast
from kcap.tui.app import KcapApp
from tests.tui.driving import book_of, press, settle

made = _toast.Toast.__init__

def late(toast, notification):
    notification.raised_at -= 100
    made(toast, notification)
    print("made", flush=True)

async def run():
    app = KcapApp(book_of("node-platformatic.pcap"), judges=False)
    async with app.run_test(notifications=True) as pilot:
        await settle(pilot)
        app.notify("late")
        await press(pilot, "j", "j")
        print(app.view.cursor)

_toast.Toast.__init__ = late
asyncio.run(run())
"""


def test_a_toast_that_is_made_when_its_time_is_over_does_not_stop_the_app() -> None:
    """A process of its own: Textual's timer would keep the loop for ever."""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", LATE], cwd=root, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "made\n2\n"), done.stderr


class Broken(Screen[None]):
    """A view with faults."""

    BINDINGS = [("x", "fail", "Fail"), ("escape", "app.pop_screen", "Back")]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        yield Static("a view")

    def action_fail(self) -> None:
        raise RuntimeError("a fault of a view")


def test_a_view_that_crashes_leaves_the_session() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        app.push_screen(Broken())
        await pilot.pause()
        await pilot.press("x")
        await settle(pilot)
        await pilot.pause(0.2)
        assert [str(error) for error in app.failures] == ["a fault of a view"]
        (reported,) = app._notifications
        assert reported.title == "this window failed and was closed"
        where = reported.message.rpartition(": ")[2]
        assert "RuntimeError: a fault of a view" in reported.message
        assert "in action_fail" in Path(where).read_text(encoding="utf-8")
        app.failures.clear()
        assert app.screen is app.browser
        await press(pilot, "j", "j")
        assert app.view.cursor == 2
        assert "ApiVersions" in screen(app) or "Metadata" in screen(app)

    on("node-platformatic.pcap", test)


@pytest.mark.parametrize("moment", [(KcapApp, "on_load"), (Browser, "compose"), (Panes, "compose"), (KcapApp, "on_mount")])
def test_a_signal_that_comes_while_the_screen_is_made_ends_the_app_in_order(
    moment: tuple[type[Any], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = getattr(*moment)

    def ended(self: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return before(self)

    monkeypatch.setattr(*moment, ended)
    with read_whole(str(PCAPS / "java-transactions.pcap")) as book:
        app = KcapApp(book, judges=False)
        with app.leaving_on_signals():
            app.run(headless=True)
        assert app._exception is None
        assert app.return_code == 128 + signal.SIGTERM


def test_values_of_the_capture() -> None:
    async def test(pilot: Any) -> None:
        assert "shop-tx" in pilot.app.values("client_id")
        assert "orders.txout" in pilot.app.values("topics")

    on(JAVA, test)


def test_settings_are_kept() -> None:
    async def change(pilot: Any) -> None:
        await press(pilot, "b", "t")

    async def look(pilot: Any) -> None:
        assert not pilot.app.look.bytes
        assert pilot.app.view.form == "relative"

    on(JAVA, change)
    on(JAVA, look)


def test_a_callback_of_a_screen_that_was_left_is_no_failure() -> None:
    async def test(pilot: Any) -> None:
        await press(pilot, "S")
        view = pilot.app.screen
        await press(pilot, "escape")
        with pytest.raises(NoMatches) as caught:
            view.query_one("#main")
        assert pilot.app.stumbled(caught.value, view)
        assert not pilot.app.failures

    on(JAVA, test)


def test_sizes_that_cross_on_their_way_come_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A screen that takes a size tells itself: an old size and the new one followed each other, and no key came through."""
    laid: list[object] = []
    resized = Screen._screen_resized

    def counted(screen: Any, size: Any) -> None:
        laid.append(size)
        if len(laid) < 50:
            resized(screen, size)

    async def test(pilot: Any) -> None:
        app, old = pilot.app, Size(24, 12)
        await press(pilot, "C")
        await settle(pilot)
        monkeypatch.setattr(Screen, "_screen_resized", counted)
        for wait in (0, 0.02):
            for size in (old, app.size):
                app.screen.post_message(Resize(size, size))
                app.screen.call_later(lambda: None)
                app.screen.refresh(layout=True)
                await asyncio.sleep(wait)
        await asyncio.sleep(1)
        assert len(laid) < 10, "the screens do not come to rest"
        assert app.browser.size == app.screen.size == app.size

    on(JAVA, test, LARGE)
