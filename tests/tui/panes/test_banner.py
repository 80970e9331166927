"""The line of problems."""

import asyncio
from typing import Any

import pytest

from tests.tui.driving import opened, screen, settle

pytestmark = pytest.mark.usefixtures("fresh_settings")


def test_a_capture_without_problems_has_no_line() -> None:
    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            app: Any = pilot.app
            line = app.browser.query_one("#banner")
            line.show({"check": {"rows": []}}, 80)
            assert not line.region.area
            row = {"severity": "high", "sentence": "TLS on a plaintext port"}
            line.show({"check": {"rows": [row, {"severity": "info", "sentence": "a note"}]}}, 80)
            await settle(pilot)
            assert "1 problem: TLS on a plaintext port" in screen(app)
            assert "P shows them" in screen(app)
            await pilot.click("#banner")
            await settle(pilot)
            assert app.screen.NAME == "findings"

    asyncio.run(run())
