"""Help is made of the bindings."""

import asyncio

from kcap.tui.help import help_of
from tests.tui.driving import opened, press, screen


def test_every_key_stands_once_with_what_it_does() -> None:
    async def run() -> None:
        async with opened("node-platformatic.pcap") as pilot:
            app = pilot.app
            text = help_of(app.screen, app.focused).plain
            for name in ("The list", "Everywhere", "The program"):
                assert name in text
            for words in ("Quick filters", "Zoom pane", "Conversations", "Next mark", "Next in the connection"):
                assert text.count(words) == 1
            for words in ("Page Left", "Page Right", "Copy selected text"):
                assert words not in text, "keys that only Textual binds are no part of the program"
            await press(pilot, "f1")
            assert "Keys" in screen(app)
            await press(pilot, "escape")
            assert "Keys" not in screen(app).splitlines()[0]

    asyncio.run(run())
