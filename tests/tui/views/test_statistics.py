"""The view of times in a terminal."""

import asyncio
import re
import threading
from typing import Any

import pytest

from kcap import limits
from kcap.reports.definition import Report, ReportRequest, report_of
from tests.tui.views.stub import StubApp, StubBook, drive, screen

NAME = "java-transactions.pcap"


def test_sections() -> None:
    seen = drive(StubBook(NAME), "statistics", size=(160, 50))
    assert "takes 65% of the summed latency" in drive(StubBook("long-polls.pcap"), "statistics", size=(200, 50)).text
    assert "latency distribution" in seen.text
    assert "p99 over time" in seen.text
    assert "share" in drive(StubBook(NAME), "statistics", "2").text
    slowest = drive(StubBook(NAME), "statistics", "3", size=(160, 50))
    assert "the slowest exchanges" in slowest.lines[0]
    assert "latency breakdown" in slowest.text


def test_the_number_of_a_bar_is_a_way_down() -> None:
    (text,) = drive(StubBook(NAME), "statistics", "tab", "down", "enter", size=(160, 50)).narrowed
    assert "latency_without_polls >= " in text
    assert "latency_without_polls < " in text


def test_groupings() -> None:
    assert " · by client_id" in drive(StubBook(NAME), "statistics", "B").lines[0]
    assert " · by server_ip" in drive(StubBook(NAME), "statistics", "B", "B").lines[0]


def test_long_polls_are_apart_or_not() -> None:
    name = "long-polls.pcap"
    wide = (160, 50)
    apart, among = drive(StubBook(name), "statistics", size=wide), drive(StubBook(name), "statistics", "p", size=wide)
    assert "p99 w/ polls" in apart.text
    assert "p Long polls" in apart.lines[-1]
    assert "by api, with long polls" in among.lines[0]
    assert apart.text != among.text
    assert "p Long polls" not in drive(StubBook(name), "statistics", "2", size=wide).lines[-1]


class Long(StubBook):
    """A book whose reports take their time."""

    def __init__(self) -> None:
        super().__init__(NAME)
        self.left = threading.Event()
        self.gone: list[object] = []

    def give_up(self, who: object) -> None:
        self.gone.append(who)
        self.left.set()

    def report(self, report: Report, asked: ReportRequest) -> dict[str, Any]:
        self.left.wait(30)
        return super().report(report, asked)


def test_who_leaves_waits_for_nothing() -> None:
    """It is said what is done meanwhile, and that one may leave; what was asked for is given up then."""

    async def run() -> None:
        book = Long()
        app = StubApp(book, "statistics")
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause(0.1)
            assert f"computing over {book.rows} exchanges; Esc cancels" in screen(app)
            await pilot.pause(2.5)
            assert re.search(r"computing for \d s over ", screen(app)), "it goes on, and since when"
            view = app.screen
            await pilot.press("escape")
            await pilot.pause(0.1)
            assert app.screen is not view
            assert book.gone == [view]

    asyncio.run(run())


def test_of_many_groups_those_with_most_time_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VIEW_ROWS", 2)
    assert "groups with most time" not in drive(StubBook(NAME), "statistics", size=(160, 50)).text, "there are few APIs"
    seen = drive(StubBook(NAME), "statistics", "B", size=(160, 50))
    assert "the 2 groups with most time" in seen.text
    groups = StubBook(NAME).report(report_of("latency"), ReportRequest(("client_id",)))["rows"]
    groups.sort(key=lambda row: -row["sum_ns"])
    shown = [row["client_id"] for row in groups if any(line[1:].startswith(f"{row['client_id']} ") for line in seen.lines)]
    assert shown == [row["client_id"] for row in groups[:2]]
