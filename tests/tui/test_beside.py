"""Slow work beside the screens: its result is shown once and does not stay in memory."""

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest

from kcap.tui.beside import beside
from kcap.tui.list_model import Arranged, ListModel
from tests.tui.driving import opened, settle


def test_an_order_that_is_shown_no_longer_goes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the collector of cycles: orders of large captures are 24 MB each."""
    made: list[weakref.ref[Any]] = []
    arrange = ListModel.arrange

    def noted(self: ListModel) -> Arranged:
        found = arrange(self)
        made.append(weakref.ref(found))
        return found

    monkeypatch.setattr(ListModel, "arrange", noted)

    async def test() -> None:
        async with opened("node-platformatic.pcap") as pilot:
            gc.collect()
            made.clear()
            for text in ("api == Fetch", "", "api == Produce", ""):
                pilot.app.narrow(text)  # type: ignore[attr-defined]
                await settle(pilot)
            assert len(made) >= 4
            assert sum(one() is not None for one in made) == 1

    gc.disable()
    try:
        asyncio.run(test())
    finally:
        gc.enable()


def test_work_that_fails_is_told_and_a_result_that_cannot_be_shown_is_a_fault() -> None:
    async def test() -> None:
        async with opened("node-platformatic.pcap") as pilot:
            app: Any = pilot.app
            told: list[object] = []

            def no(_given: object = None) -> None:
                raise ValueError("no")

            beside(app.browser, lambda: 1, told.append, group="test")
            beside(app.browser, no, told.append, lambda error: told.append(str(error)), group="test")
            await app.workers.wait_for_complete()
            assert sorted(map(str, told)) == ["1", "no"]
            before = len(app.failures)
            beside(app.browser, no, told.append, group="test")
            beside(app.browser, lambda: 1, no, group="test")
            await app.workers.wait_for_complete()
            assert len(app.failures) == before + 2
            app.failures.clear()
            assert app.is_running

    asyncio.run(test())


def test_later_work_of_a_group_may_replace_earlier_work() -> None:
    async def test() -> None:
        async with opened("node-platformatic.pcap") as pilot:
            app: Any = pilot.app
            go, told = threading.Event(), []
            beside(app.browser, lambda: go.wait(10), told.append, group="test", exclusive=True)
            await pilot.pause(0.05)
            beside(app.browser, lambda: 2, told.append, group="test", exclusive=True)
            await pilot.pause(0.05)
            go.set()
            await settle(pilot)
            assert told == [2]

    asyncio.run(test())
