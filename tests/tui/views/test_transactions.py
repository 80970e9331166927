"""The view of transactions in a terminal."""

from tests.tui.views.stub import EmptyBook, StubBook, drive

NAME = "problems/aborted-transactions.pcap"


def test_sections() -> None:
    seen = drive(StubBook(NAME), "transactions", "enter")
    assert "aborted" in seen.text
    (text,) = seen.narrowed
    assert text.startswith("transactional_id == ")
    assert "time >= " in text
    assert "transactions over time" in drive(StubBook(NAME), "transactions", "2").text


def test_nothing_before_the_end() -> None:
    assert "when the capture has been read" in drive(EmptyBook("reading"), "transactions").text
