"""The view that compares two exchanges, by its keys."""

import asyncio
from typing import Any

import pytest

from tests.tui.driving import LARGE, SMALL, opened, press, screen, settle

pytestmark = pytest.mark.usefixtures("fresh_settings")
JAVA = "java-transactions.pcap"


async def to_view(pilot: Any, *keys: str) -> None:
    await pilot.press(*keys)
    await pilot.app.workers.wait_for_complete()
    await settle(pilot)
    await pilot.app.workers.wait_for_complete()


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_the_marked_exchange_is_compared_with_the_selected_one(size: tuple[int, int]) -> None:
    async def run() -> None:
        async with opened(JAVA, size=size, only="api == TxnOffsetCommit") as pilot:
            app: Any = pilot.app
            first = app.selected
            await press(pilot, "m")
            second = app.selected
            await to_view(pilot, "equals_sign")
            assert app.screen.pair == (first, second)
            assert "ProducerEpoch" in screen(app)
            assert "fields differ" in screen(app)
            await to_view(pilot, "3")
            assert "latency" in screen(app)
            assert "second - first" in screen(app)
            await press(pilot, "right", "enter")
            assert app.screen is app.browser
            assert app.selected in (first, second)

    asyncio.run(run())


def test_without_a_mark_it_is_the_one_before_of_the_same_api() -> None:
    async def run() -> None:
        async with opened(JAVA, only="api == TxnOffsetCommit") as pilot:
            app: Any = pilot.app
            await press(pilot, "G")
            uid, number = app.selected
            await to_view(pilot, "equals_sign")
            (same, before), second = app.screen.pair
            assert (same, second) == (uid, (uid, number))
            assert before < number
            await to_view(pilot, "left_square_bracket")
            assert app.screen.pair[1][1] < number

    asyncio.run(run())


def test_an_exchange_without_another_says_so() -> None:
    async def run() -> None:
        async with opened(JAVA, only="api == InitProducerId") as pilot:
            await to_view(pilot, "equals_sign")
            assert "m marks one, and = compares it" in screen(pilot.app)

    asyncio.run(run())
