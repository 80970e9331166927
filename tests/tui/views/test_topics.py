"""The view of topics and clients in a terminal."""

import pytest

from kcap import limits
from kcap.reports.definition import ReportRequest, report_of
from tests.tui.views.stub import StubBook, drive

NAME = "java-transactions.pcap"


def test_sections() -> None:
    assert "orders.txout" in drive(StubBook(NAME), "topics").text
    assert "produced by: shop-tx; 120 records" in drive(StubBook(NAME), "topics").text
    assert "partition" in drive(StubBook(NAME), "topics", "2").text
    assert "high watermark" in drive(StubBook(NAME), "topics", "3").text
    clients = drive(StubBook(NAME), "topics", "4")
    assert clients.lines[0].startswith(" Topics and clients · by client_ip, client_id")
    assert "shop-tx-rc" in clients.text
    assert " · by client_id " in drive(StubBook(NAME), "topics", "4", "B").lines[0]


def test_records_wait_for_partitions_and_clients_do_not() -> None:
    class Some(StubBook):
        def table(self, name: str) -> None:  # type: ignore[override]
            return None

    assert "computing: the partitions are read from the capture" in drive(Some(NAME), "topics").text
    assert "shop-tx" in drive(Some(NAME), "topics", "4").text


def test_a_pipe_cannot_be_read_once_more() -> None:
    class Piped(StubBook):
        def table(self, name: str) -> None:  # type: ignore[override]
            return None

    book = Piped(NAME)
    book.paths = ["-"]
    assert "need a second pass" in drive(book, "topics").text


def test_of_many_clients_those_with_most_requests_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "clients with most requests" not in drive(StubBook(NAME), "topics", "4", size=(160, 50)).text
    monkeypatch.setattr(limits, "VIEW_ROWS", 2)
    seen = drive(StubBook(NAME), "topics", "4", size=(160, 50))
    assert "the 2 clients with most requests" in seen.text
    rows = StubBook(NAME).report(report_of("clients"), ReportRequest())["rows"]
    shown = [row["client_id"] for row in rows if any(f" {row['client_id']} " in line for line in seen.lines)]
    assert shown == [row["client_id"] for row in rows[:2]]
