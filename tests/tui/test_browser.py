"""The main screen: keys, panes, filters, as a user has them."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.tui.driving import LARGE, PCAPS, SMALL, lines, opened, press, screen, settle

pytestmark = pytest.mark.usefixtures("fresh_settings")
JAVA = "java-transactions.pcap"
Test = Callable[[Any], Coroutine[Any, Any, None]]


def on(test: Test, *names: str | Path, size: tuple[int, int] = SMALL) -> None:
    async def run() -> None:
        async with opened(*(names or (JAVA,)), size=size) as pilot:
            await test(pilot)

    asyncio.run(run())


def heads(app: Any) -> str:
    """The line of the columns' names."""
    return next(line for line in lines(app) if "Client" in line)


@pytest.mark.parametrize("does", [
    lambda pilot: press(pilot, "y", "escape"), lambda pilot: press(pilot, "tab"), lambda pilot: press(pilot, "w", "escape"),
    lambda pilot: pilot.click("Keys", offset=(35, 0)),
])  # fmt: skip
def test_whatever_the_user_does_keeps_the_selected_exchange(does: Test) -> None:
    """While a capture is read, rows come in above the first, where the cursor is until the user does something."""

    async def test(pilot: Any) -> None:
        assert not pilot.app.view.chose
        await does(pilot)
        assert pilot.app.view.chose

    on(test)


def test_why_the_list_is_empty_is_said_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = " ".join(f"word{at}" for at in range(20))
    monkeypatch.setattr("kcap.tui.browser.trouble", lambda _book: reason)

    async def run() -> None:
        async with opened(JAVA, only="api == Fetch && api == Produce") as pilot:
            assert reason in " ".join(screen(pilot.app).split())

    asyncio.run(run())


def test_the_first_screen_at_80x24() -> None:
    """List, tree and bytes, in words, with the keys that matter."""

    async def test(pilot: Any) -> None:
        shown = lines(pilot.app)
        assert len(shown) == 24
        assert shown[0].startswith(" kcap  java-transactions.pcap")
        assert shown[2].split()[:5] == ["Time▲", "Client", "Request", "Latency", "Result"]
        assert shown[3].split() == ["07:42:12.122", "shop-tx", "ApiVersions", "v5", "654us", "ok"]
        assert "▸ ApiVersions v5  ok" in screen(pilot.app)
        assert "00 00 00 30 00 12 00 05" in screen(pilot.app)
        assert "Quick filters" in shown[-1]

    on(test)


def test_the_first_screen_at_160x50() -> None:
    async def test(pilot: Any) -> None:
        assert all(title in heads(pilot.app) for title in ("Why", "Out", "Topics, group"))
        assert "FetchRequest" not in screen(pilot.app)
        assert "ApiVersionsRequest v5" in screen(pilot.app)
        tree = next(line for line in lines(pilot.app) if "Exchange──" in line)
        assert "Request──" in tree, "tree and bytes stand beside each other"

    on(test, size=LARGE)


def test_from_the_list_into_a_value_and_its_bytes() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        await press(pilot, "G", "enter")
        outline = app.browser.detail.outline
        while outline.current.name != "MaxBytes":
            await press(pilot, "j")
        dump = app.browser.hexes.dump
        assert dump.data[dump.start : dump.end] == (52428800).to_bytes(4, "big")
        assert "MaxBytes: 52428800" in screen(app)
        await press(pilot, "tab", "right", "right", "right", "right")
        assert outline.current.name == "IsolationLevel", "a byte leads to its line"
        await press(pilot, "home", "right", "right", "right", "right")
        assert outline.current.name == "RequestApiKey"
        assert "byte 4 of" in lines(app)[-2]

    on(test, size=LARGE)


def test_typing_a_filter() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        await press(pilot, "slash", *"api == F")
        assert app.browser.bar.has_class("-invalid")
        assert "^" in screen(app)
        assert "Fetch  FindCoordinator" in screen(app)
        await press(pilot, "enter")
        assert app.book.only is None, "what does not read is not applied"
        await press(pilot, "tab", "enter")
        assert app.book.filter_text == "api == Fetch"
        assert app.browser.bar.has_class("-valid")
        assert f"{app.book.passed} of 110" in screen(app)
        assert app.focused is app.browser.listed
        await press(pilot, "escape")
        assert app.book.only is None
        await press(pilot, "slash", "up")
        assert app.browser.bar.line.value == "api == Fetch", "history"
        await press(pilot, "escape")
        assert app.browser.bar.line.value == ""

    on(test)


def test_filtering_by_what_is_under_the_cursor() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        await press(pilot, "j", "right", "right", "a")
        assert app.book.filter_text == "api == Metadata && api_version == 13"
        await press(pilot, "escape", "exclamation_mark")
        assert app.book.filter_text == "!(api == Metadata && api_version == 13)"
        await press(pilot, "A", "3")
        assert app.book.filter_text.startswith("!(api == Metadata && api_version == 13) && ")
        await press(pilot, "A", "a")
        assert app.focused is app.browser.bar.line, "prepared, to go on typing"
        await press(pilot, "escape", "escape")
        await press(pilot, "f", "c")
        assert app.book.filter_text.startswith('connection == "C')
        await press(pilot, "f", "x")
        assert app.book.only is None

    on(test)


def test_sorting() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        await press(pilot, "right", "right", "right", "s", "g")
        assert "▼Latency" in heads(app)
        first = app.view.arranged.rows.row(app.view.current)["latency_ns"]
        assert first == max(value for value in app.book.exchanges(["latency_ns"]).column(0).to_pylist() if value is not None)
        await press(pilot, "s")
        assert "▲Latency" in heads(app)
        await pilot.click("ExchangeList", offset=(5, 0))
        await settle(pilot)
        assert "Time▲" in heads(app)

    on(test)


@pytest.mark.parametrize("key", ["s", "F"])
def test_an_order_gives_back_the_memory_that_it_took(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten million rows that is some 70 MB; a key that needs no order gives back nothing."""
    threads: list[bool] = []
    monkeypatch.setattr(
        "kcap.tui.browser.trim_heap", lambda: threads.append(threading.current_thread() is threading.main_thread())
    )

    async def test(pilot: Any) -> None:
        threads.clear()
        await press(pilot, key)
        assert threads == ([False] if key == "s" else [])

    on(test)


def test_neighbors_of_the_connection() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        uid, number = app.selected
        await press(pilot, "right_square_bracket")
        assert app.selected == (uid, number + 1)
        await press(pilot, "left_square_bracket")
        assert app.selected == (uid, number)
        await press(pilot, "left_square_bracket")
        assert app.selected == (uid, number)

    on(test)


def test_the_mouse() -> None:
    async def test(pilot: Any) -> None:
        app = pilot.app
        await pilot.click("ExchangeList", offset=(10, 4))
        await settle(pilot)
        assert app.view.cursor == 3
        await pilot.click("Detail", offset=(0, 0))
        await settle(pilot)
        assert app.browser.detail.outline.lines[0].open
        await pilot.click("Bytes", offset=(8 + 3 * 9 + 1, 0))
        await settle(pilot)
        assert app.browser.hexes.dump.cursor == 9

    on(test, size=LARGE)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_what_cannot_be_read_is_told_calmly(tmp_path: Path, size: tuple[int, int]) -> None:
    (tmp_path / "bad.pcap").write_bytes(b"this is no capture")
    (tmp_path / "empty.pcap").write_bytes((PCAPS / "aiokafka.pcap").read_bytes()[:24])

    async def bad(pilot: Any) -> None:
        assert "no capture (it starts with 74686973)" in screen(pilot.app)
        await press(pilot, "j", "enter", "tab", "f", "escape", "a", "s", "G", "right_square_bracket")
        assert pilot.app.is_running

    async def empty(pilot: Any) -> None:
        assert "No Kafka found: 0 packets" in screen(pilot.app)
        await press(pilot, "j", "enter", "b", "d", "t", "m", "apostrophe")
        assert pilot.app.is_running

    on(bad, tmp_path / "bad.pcap", size=size)
    on(empty, tmp_path / "empty.pcap", size=size)


def test_without_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def test(pilot: Any) -> None:
        await press(pilot, "j", "tab")
        assert "ApiVersions" in screen(pilot.app)

    on(test)


def test_the_selected_exchange_stays_selected_and_on_the_screen() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=(100, 24)) as pilot:
            app: Any = pilot.app
            view, listed = app.view, app.browser.listed
            await press(pilot, "G")
            wanted = view.current
            steps: tuple[tuple[str, ...], ...] = (
                ("d",), ("d",), ("s",), ("s",), ("w",), ("escape",), ("C",), ("escape",), ("backslash",), ("backslash",),
                ("slash", *"latency > 1000s", "enter"), ("escape",), ("slash", *"latency", "enter"), ("escape",),
                ("vertical_line",), ("vertical_line",),
            )  # fmt: skip
            for keys in steps:
                await press(pilot, *keys)
                await pilot.pause()
                if "1000s" in app.book.filter_text or app.screen is not app.browser:
                    continue
                assert view.current == wanted, keys
                assert listed.scroll_offset.y <= view.cursor < listed.scroll_offset.y + listed.size.height - 1, keys

    asyncio.run(run())
