"""A capture that goes on: its rows, rates and problems come to the screen, and stay when it is over."""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kcap.tui import capture_model
from kcap.tui.app import KcapApp
from kcap.tui.conclusions import banner
from kcap.tui.reader_main import ReaderStatus, ReadRequest
from kcap.tui.views.findings_model import sheets
from tests.tui.driving import PCAPS, press, screen

CAPTURE = PCAPS / "problems" / "authorization-denied.pcap"
MOST_SECONDS = 30.0


async def until(pilot: Any, holds: Callable[[], bool]) -> None:
    """Waits until something holds."""
    end = time.monotonic() + MOST_SECONDS
    while not holds() and time.monotonic() < end:
        await pilot.pause(0.05)
    assert holds(), screen(pilot.app)


def test_rows_rates_and_problems_arise_while_packets_pass_and_stay_when_it_is_over(
    monkeypatch: pytest.MonkeyPatch, fresh_settings: None
) -> None:
    monkeypatch.setattr(capture_model, "LIVE_ROWS_MAX", 20)
    reader, writer = os.pipe()
    data = CAPTURE.read_bytes()
    release = threading.Event()

    def feed() -> None:
        os.write(writer, data)
        release.wait(MOST_SECONDS)
        os.close(writer)

    feeder = threading.Thread(target=feed)
    feeder.start()

    async def run() -> None:
        app = KcapApp(book)
        async with app.run_test(size=(140, 40)) as pilot:
            os.close(reader)
            await until(pilot, lambda: "exchanges/s" in screen(app) and "failed/s" in screen(app))
            shown = screen(app)
            assert "eth0" in shown
            assert "● live" in shown
            assert "auto scroll" in shown, "the list begins at the end of what passes"
            await until(pilot, lambda: "now: " in screen(app) and "P shows them" in screen(app))
            await press_now(pilot, "P")
            await until(pilot, lambda: "problems now" in screen(app) and "next step" in screen(app))
            await press_now(pilot, "escape")
            release.set()
            await until(pilot, lambda: app.book.done and not app.view.due)
            await until(pilot, lambda: "exchanges/s" not in screen(app))
            assert "P shows them" in screen(app)
            await press(pilot, "P")
            await until(pilot, lambda: "problems now" in screen(app))
            await press(pilot, "U")
            await until(pilot, lambda: "a pipe is read once" in screen(app))

    async def press_now(pilot: Any, key: str) -> None:
        await pilot.press(key)
        await pilot.pause(0.2)

    order = ReadRequest(["-"], span_seconds=60, every_seconds=1, source="eth0")
    with capture_model.CaptureModel(order, reader) as book:
        asyncio.run(run())
    feeder.join()


def test_problems_that_ended_are_listed_behind_those_that_go_on() -> None:
    row: dict[str, Any] = {
        "severity": "high", "sentence": "a storm", "id": "storm", "who": {}, "evidence": {}, "first_ns": 1, "last_ns": 2,
        "filter": "error", "advice": "", "instead": "", "count": 1, "confidence": 0.9,
    }  # fmt: skip

    class Ended:
        finding, time_ns = row | {"sentence": "a flood"}, 3

    checked = ReaderStatus(findings=[row], ended=[Ended()]).checked  # type: ignore[list-item]
    assert banner(checked) == "1 problem now: a storm"
    going, over = sheets(checked)
    assert [(sheet.name, [one["sentence"] for one in sheet.rows]) for sheet in (going, over)] == [
        ("problems now", ["a storm"]), ("ended", ["a flood"]),
    ]  # fmt: skip
    assert banner(ReaderStatus().checked) == ""
