"""Tree and bytes lead to each other."""

import asyncio
from typing import Any

import pytest

from tests.tui.driving import LARGE, opened, press

pytestmark = pytest.mark.usefixtures("fresh_settings")


@pytest.mark.parametrize("name", ["java-transactions.pcap", "librdkafka-zstd.pcap"])
def test_every_byte_leads_to_a_line_that_leads_back(name: str) -> None:
    """Law: the line that a byte leads to holds the byte."""

    async def run() -> None:
        async with opened(name, size=LARGE, only="api == Produce") as pilot:
            app: Any = pilot.app
            pane = app.browser.lower
            pane.hexes.focus()
            for at in range(4, min(len(pane.hexes.dump.data), 400), 13):
                pane.hexes.go(at)
                await pilot.pause()
                item = pane.detail.outline.current
                assert item.node is not None
                assert item.node.start + 4 <= at < item.node.end + 4
                assert pane.hexes.dump.cursor == at

    asyncio.run(run())


def test_inflated_bytes_are_shown_as_their_own() -> None:
    async def run() -> None:
        async with opened("librdkafka-zstd.pcap", size=LARGE, only="api == Produce && codec == zstd") as pilot:
            app: Any = pilot.app
            pane = app.browser.lower
            outline = pane.detail.outline
            pane.detail.focus()
            at = next(at for at, item in enumerate(outline.lines) if item.name == "request")
            outline.set_all(at, wanted=True)
            outline.cursor = next(at for at, item in enumerate(outline.lines) if item.node is not None and item.node.buffer)
            pane.detail.renew()
            await press(pilot)
            dump = pane.hexes.dump
            assert dump.buffer > 0
            assert dump.how == "zstd"
            assert "zstd inflated" in pane.query_one("#dump").border_title

    asyncio.run(run())


def test_what_was_open_stays_open_in_the_next_exchange() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap", size=LARGE, only="api == Fetch") as pilot:
            app: Any = pilot.app
            outline = app.browser.detail.outline
            app.browser.detail.focus()
            outline.cursor = next(at for at, item in enumerate(outline.lines) if item.name == "response")
            await press(pilot, "right")
            app.browser.listed.focus()
            await press(pilot, "j")
            assert next(item for item in outline.lines if item.name == "response").open

    asyncio.run(run())
