"""Findings, groups and transactions that are made beside the screens are those of the commands."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kcap.cli.main import main
from kcap.runtime import releasing
from kcap.tui.capture_model import CaptureModel
from kcap.tui.conclusions import NAME, banner, conclude, differ, problems
from kcap.tui.reader_main import KEY, Child, ReadRequest
from tests.tui.driving import PCAPS, lines, opened, press, screen

CAPTURE = PCAPS / "problems" / "zombie-fenced.pcap"
pytestmark = pytest.mark.usefixtures("fresh_settings")


def wait_for(book: CaptureModel) -> dict[str, object]:
    """The conclusions of a book, when they are made."""
    book.process.wait()
    book.look()
    book.conclusions()
    book._beside["conclusions"].wait(60)
    found = book.conclusions()
    assert found is not None, book.no_conclusions()
    return found


def test_the_results_are_those_of_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """Law: one pass over the capture says what three commands say."""
    with CaptureModel(ReadRequest([str(CAPTURE)])) as book:
        found = wait_for(book)
        assert list(Path(book.folder, "conclusions").iterdir()) == [Path(book.folder, "conclusions", NAME)]
    for name in ("check", "groups", "transactions"):
        main([name, str(CAPTURE), "--format", "json"])
        assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found[name]))


def test_every_pass_releases_pages_that_it_does_not_need(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pages of libraries are a third of what a pass over a large capture holds."""
    steps: list[None] = []
    monkeypatch.setattr("kcap.runtime.PageRelease.step", lambda _: steps.append(None))
    options, capture = ReadRequest([str(CAPTURE)]).options(), str(CAPTURE)
    line: Any = SimpleNamespace(send=lambda _: None)

    def counted(run: Callable[[], None]) -> int:
        before = len(steps)
        run()
        return len(steps) - before

    once = counted(lambda: conclude([capture], options, {}, str(tmp_path / "c"), releasing))
    assert once > 0
    assert counted(Child(ReadRequest([capture], str(tmp_path), conclusions=True), line)._conclude) == once
    twice = counted(lambda: differ(capture, [capture], options, str(tmp_path / "d"), releasing))
    assert twice == 2 * once, "both captures are read"
    assert counted(Child(ReadRequest([capture], str(tmp_path), against=capture), line)._differ) == 2 * once
    child = Child(ReadRequest([capture], str(tmp_path), partitions=True), line)
    assert counted(lambda: child._beside("partitions", KEY)) == once


def test_thresholds_of_the_configuration_count() -> None:
    capture = str(PCAPS / "problems" / "head-of-line.pcap")
    with CaptureModel(ReadRequest([capture], thresholds={"head-of-line": {"requests": 1e9}})) as book:
        checked = wait_for(book)["check"]
    assert "head-of-line" not in {row["id"] for row in checked["rows"]}  # type: ignore[index]


def test_a_capture_that_cannot_be_read_has_no_conclusions(tmp_path: Path) -> None:
    broken = tmp_path / "x.pcap"
    broken.write_bytes(b"no capture")
    with CaptureModel(ReadRequest([str(broken)])) as book:
        assert book.conclusions() is None
        book.process.wait()
        book.look()
        book.conclusions()
        book._beside["conclusions"].wait(60)
        assert book.conclusions() is None
        assert book.no_conclusions().startswith("they cannot be made: ")


def test_the_banner_says_how_many_problems_and_which() -> None:
    rows = [{"severity": "high", "sentence": "one"}, {"severity": "info", "sentence": "a note"}]
    assert problems({"rows": rows}) == rows[:1]
    assert banner({"rows": rows}) == "1 problem: one"
    assert banner({"rows": [*rows[:1], *rows]}) == "2 problems: one; one"
    assert banner({"rows": rows[1:]}) == banner(None) == ""


async def found_by(pilot: object, text: str) -> None:
    """Waits until a text is on the screen."""
    for _ in range(600):
        await pilot.pause(0.05)  # type: ignore[attr-defined]
        if text in screen(pilot.app):  # type: ignore[attr-defined]
            return
    raise AssertionError(screen(pilot.app))  # type: ignore[attr-defined]


def test_a_capture_opens_with_its_problems_and_a_key_leads_to_their_exchanges() -> None:
    async def run() -> None:
        async with opened(CAPTURE, judges=True) as pilot:
            await found_by(pilot, "P shows them")
            assert "1 problem: " in lines(pilot.app)[1]
            await press(pilot, "P")
            await found_by(pilot, "next step:")
            await press(pilot, "enter")
            app = pilot.app
            assert app.screen is app.browser
            assert 0 < app.book.passed < app.book.rows
            assert app.browser.bar.line.value == app.book.filter_text != ""
            await press(pilot, "P", "enter")
            assert app.book.passed > 0, "the filter is replaced, not added to"
            await press(pilot, "escape")

    asyncio.run(run())


def test_a_healthy_capture_has_no_banner() -> None:
    async def run() -> None:
        async with opened(PCAPS / "problems" / "healthy-1.pcap", judges=True) as pilot:
            await pilot.pause()
            for _ in range(600):
                await pilot.pause(0.05)
                if pilot.app.book.conclusions() is not None:
                    break
            await pilot.pause(0.3)
            assert "P shows them" not in screen(pilot.app)

    asyncio.run(run())
