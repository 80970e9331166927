"""The view of consumer groups in a terminal."""

from tests.tui.views.stub import EmptyBook, StubBook, drive

NAME = "problems/rebalance-loop-848.pcap"


def test_sections() -> None:
    assert "rebalances" in drive(StubBook(NAME), "groups").text
    seen = drive(StubBook(NAME), "groups", "3", "enter")
    (text,) = seen.narrowed
    assert text.startswith("group_id == ")
    assert "client_id == " in text


def test_nothing_before_the_end() -> None:
    assert "when the capture has been read" in drive(EmptyBook("reading"), "groups").text
