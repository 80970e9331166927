"""What a worker returned does not stay in memory with it."""

import asyncio
import gc
import weakref
from typing import Any

import pytest

from kcap.tui.handoff import Handoff
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
