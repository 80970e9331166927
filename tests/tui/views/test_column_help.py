"""Columns of the views are explained."""

import asyncio
import re
from typing import Any

import pytest

from kcap.reports.text import TextColumn
from kcap.tui.help import columns_of, help_of
from kcap.tui.views import VIEWS, load
from kcap.tui.views.column_help import OF_PLACES, PATTERNS, WORDS, explained, meaning
from kcap.tui.views.sheet import Sheet
from tests.tui.driving import LARGE, opened, press, screen

JAVA = "java-transactions.pcap"
DATA = re.compile(r"|≠|.*\S:\d+.*")
"""Heads that are data or a sign: addresses, lifelines of the ladder."""
PLAIN = {"requests", "topic"}
"""Heads that need no other words."""
ELSEWHERE = {"differences"}
"""Views that need more than a capture."""
OF_CAPTURES = [
    (JAVA, [name for name in VIEWS if name not in ELSEWHERE]), ("quota-3.9.pcap", ["throttling", "findings"]),
    ("problems/tls-plaintext-confusion.pcap", ["conversations"]),
]  # fmt: skip


@pytest.mark.parametrize(("capture", "views"), OF_CAPTURES)
def test_every_column_that_a_view_shows_is_explained(capture: str, views: list[str]) -> None:
    async def run() -> None:
        async with opened(capture, size=LARGE) as pilot:
            app: Any = pilot.app
            for name in views:
                app.open_view(name)
                await pilot.pause()
                view: Any = app.screen
                for at in range(10):
                    for _ in range(400):
                        if view.ready and view.shown.sheets:
                            break
                        await pilot.pause(0.02)
                    if at >= len(view.shown.sheets):
                        break
                    view.action_section(at)
                    heads = [field.head.strip() for field in view.sheet.fields]
                    assert [head for head in heads if not DATA.fullmatch(head) and not meaning(name, head)] == [], name
                app.to_list()
                await pilot.pause()

    asyncio.run(run())


def test_what_rows_are_grouped_by_is_explained() -> None:
    views = {name: load(name) for name in VIEWS if name not in ("compare", "ladder")}
    for name, view in views.items():
        groupings = [*view.GROUPINGS, *getattr(view, "CLIENTS_BY", ())]
        assert [one for by in groupings for one in by if not meaning(name, one.partition(":")[0])] == [], name


def test_a_head_is_explained_once_and_in_few_words() -> None:
    fields = [TextColumn(head, lambda _row: "", right=True) for head in ("bytes ", "p99", "bytes ", "127.0.0.1:9092")]
    found = list(explained("topics", Sheet("topics", fields, [], lambda _row: None, "")))
    assert found == [("bytes", "their bytes"), ("p99", "percentile of the latency, without the time of long polls")]
    assert meaning("topics", "batch") != meaning("records", "batch")
    for words in [*WORDS.values(), *OF_PLACES.values(), *(words for _, words in PATTERNS)]:
        assert words == words.strip(". "), "as other lines of the help"
        assert len(words) < 120
    assert [head for head, words in WORDS.items() if words == head and head not in PLAIN] == [], (
        "a word that says itself says nothing"
    )


def test_a_head_means_in_a_section_what_it_shows_there() -> None:
    """`broker` is an address among the slowest exchanges, and a share of the latency among groups."""
    assert meaning("statistics", "broker", "slowest") == meaning("conversations", "broker")
    assert "share" in meaning("statistics", "broker", "latency")
    assert meaning("health", "time", "files") != meaning("throttling", "time", "groups") != meaning("findings", "time")


def test_the_help_of_a_view_names_its_sections_and_only_keys_that_work_there() -> None:
    async def run() -> None:
        async with opened(JAVA, size=LARGE) as pilot:
            app: Any = pilot.app
            await press(pilot, "V")
            for _ in range(400):
                if app.screen.ready:
                    break
                await pilot.pause(0.02)
            keys = help_of(app.screen, app.focused).plain
            for words in ("Section: clients", "Section: diagnoses", "Search", "Newer target"):
                assert words in keys
            assert "Group" not in keys, "its rows have one grouping"
            assert "Section 6" not in keys
            assert "Ctrl+F" in keys
            columns = columns_of(app.screen).plain
            assert columns.startswith("Columns of clients")
            assert "removed in first release without a version that the client uses" in " ".join(columns.split())
            await press(pilot, "f1")
            shown = screen(app)
            assert "Versions: columns and keys" in shown
            assert "Columns of clients" in shown

    asyncio.run(run())
