"""Finding one of many things."""

import asyncio
from typing import Any

import pytest

from kcap.tui.finder import BEHIND_SECONDS, SHOWN, Finder, FinderEntry, ranked
from tests.tui.driving import burst, opened, press, quiet

pytestmark = pytest.mark.usefixtures("fresh_settings")

ENTRIES = [
    FinderEntry("1", "View: Errors"),
    FinderEntry("2", "Filter: Errors"),
    FinderEntry("3", "Column: error_code"),
    FinderEntry("4", "Theme: nord", "color"),
]


def names(text: str) -> list[str]:
    return [entry.name for entry in ranked(ENTRIES, text)]


def test_letters_are_matched_in_their_order_in_any_place() -> None:
    assert names("") == ["1", "2", "3", "4"]
    assert set(names("err")) == {"1", "2", "3"}
    assert names("vwers")[0] == "1", "fuzzy"
    assert names("nord")[0] == "4"
    assert "4" in names("color"), "what the note says counts too"
    assert names("zzz") == []


def test_a_beginning_comes_before_letters_in_between() -> None:
    assert names("filter")[0] == "2"
    assert names("error_c") == ["3"]


def test_other_words_find_an_entry() -> None:
    entries = [FinderEntry("rows", "Save: rows", also="export"), FinderEntry("sort", "Sort by time")]
    assert [entry.name for entry in ranked(entries, "export")] == ["rows"]
    assert [entry.name for entry in ranked(entries, "rows")] == ["rows"]


def test_letters_that_come_at_once_are_not_listed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: what is listed, and what Enter takes, is what matches all letters typed before."""
    made = []
    seen = Finder._list

    def counted(self: Finder, text: str) -> None:
        made.append(text)
        seen(self, text)

    async def run() -> None:
        async with opened("java-transactions.pcap") as pilot:
            app: Any = pilot.app
            await press(pilot, "colon")
            burst(app, *"field: latency_n")
            await quiet(pilot)
            await pilot.pause(2 * BEHIND_SECONDS)
            assert len(made) < len("field: latency_n")
            assert made[-1] == "field: latency_n"
            assert app.screen.listed == ranked(app.screen.entries, "field: latency_n")[:SHOWN]
            await press(pilot, "escape")
            burst(app, "colon", *"sort by latency", "enter")
            await quiet(pilot)
            assert app.view.sort == "latency"

    monkeypatch.setattr(Finder, "_list", counted)
    asyncio.run(run())
