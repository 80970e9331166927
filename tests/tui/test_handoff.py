"""What a worker returned does not stay in memory with it."""

import asyncio
import gc
import weakref
from typing import Any

import pytest
from textual.worker import Worker, WorkerState

from kcap.tui.handoff import Handoff, has_ended
from kcap.tui.list_model import Arranged, ListModel
from tests.tui.driving import opened, settle


def test_a_value_is_taken_once() -> None:
    handed = Handoff([1])
    assert handed.take() == [1]
    with pytest.raises(IndexError):
        handed.take()


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


def test_a_late_message_of_a_beginning_is_no_end() -> None:
    """Each finished worker is told once more that it began: what it returned has been taken, and is not asked for again."""

    async def test() -> None:
        async with opened("node-platformatic.pcap") as pilot:
            browser, worked = pilot.app.screen, []
            post = type(browser).post_message

            def late(self: Any, message: Any) -> bool:
                if (
                    isinstance(message, Worker.StateChanged)
                    and has_ended(message)
                    and message.worker.group in ("exchange", "order")
                ):
                    worked.append(message.worker.group)
                    post(self, Worker.StateChanged(message.worker, WorkerState.RUNNING))
                return post(self, message)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(type(browser), "post_message", late)
                for key in ("down", "down"):
                    await pilot.press(key)
                    await settle(pilot)
                pilot.app.narrow("api == Fetch")  # type: ignore[attr-defined]
                await settle(pilot)
            assert {"exchange", "order"} <= set(worked)

    asyncio.run(test())
