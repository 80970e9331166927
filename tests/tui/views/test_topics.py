"""The view of topics and clients in a terminal."""

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
