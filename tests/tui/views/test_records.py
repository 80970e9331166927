"""The view of records, by its keys."""

import asyncio
from typing import Any

import pytest

from tests.tui.driving import LARGE, SMALL, opened, press, screen

pytestmark = pytest.mark.usefixtures("fresh_settings")


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_records_of_the_selected_exchange(size: tuple[int, int]) -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=size, only="api == Produce && record_count > 0") as pilot:
            app: Any = pilot.app
            await press(pilot, "R")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert "Produce v" in screen(app)
            assert "offset" in screen(app)
            first = app.screen.exchange
            await press(pilot, "right_square_bracket")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert app.screen.exchange == (first[0], first[1] + 1) or app.screen.exchange == first
            await press(pilot, "escape")
            assert app.screen is app.browser

    asyncio.run(run())


def test_one_that_carries_none() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", only="api == ApiVersions") as pilot:
            await press(pilot, "R")
            await pilot.app.workers.wait_for_complete()
            await pilot.pause()
            assert "carries no records; Produce" in screen(pilot.app)

    asyncio.run(run())


def test_the_metadata_log_has_its_name_as_in_the_list() -> None:
    """No message names the id of KRaft's log: it is the same in every cluster (Uuid.METADATA_TOPIC_ID)."""

    async def run() -> None:
        chosen = 'topics == "__cluster_metadata" && api == Fetch && record_count > 0'
        async with opened("cluster-startup.pcap", size=LARGE, only=chosen) as pilot:
            app: Any = pilot.app
            await press(pilot, "R")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert {row["topic"] for row in app.screen.table.rows} == {"__cluster_metadata"}

    asyncio.run(run())


def test_the_list_goes_on_to_an_exchange_with_records() -> None:
    """`R` `Esc` `e` `p` `Enter` saves the packets of the records that were shown."""

    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            app: Any = pilot.app
            assert not app.book.snapshot().row(app.view.current)["record_count"]
            await press(pilot, "R")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert "offset" in screen(app)
            shown = app.screen.exchange
            await press(pilot, "escape")
            assert app.selected == shown
            row = app.book.snapshot().row(app.view.current)
            assert row["record_count"] > 0
            before = app.book.exchanges(["record_count"]).to_pydict()["record_count"][: app.view.cursor]
            assert not any(before), "the next one"
            await press(pilot, "G", "R")
            await app.workers.wait_for_complete()
            assert app.book.snapshot().row(app.view.current)["record_count"] > 0, "the last before the end"

    asyncio.run(run())
