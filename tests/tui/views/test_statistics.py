"""The view of times in a terminal."""

from tests.tui.views.stub import StubBook, drive

NAME = "java-transactions.pcap"


def test_sections() -> None:
    seen = drive(StubBook(NAME), "statistics", size=(160, 50))
    assert "how long answers took" in seen.text
    assert "p99 over time" in seen.text
    assert "share" in drive(StubBook(NAME), "statistics", "2").text
    slowest = drive(StubBook(NAME), "statistics", "3", size=(160, 50))
    assert "the slowest exchanges" in slowest.lines[0]
    assert "where the time went" in slowest.text


def test_the_number_of_a_bar_is_a_way_down() -> None:
    (text,) = drive(StubBook(NAME), "statistics", "tab", "down", "enter", size=(160, 50)).narrowed
    assert "latency_ns >= " in text
    assert "latency_ns < " in text


def test_groupings() -> None:
    assert " · by client_id" in drive(StubBook(NAME), "statistics", "b").lines[0]
    assert " · by server_ip" in drive(StubBook(NAME), "statistics", "b", "b").lines[0]


def test_long_polls_are_apart_or_not() -> None:
    name = "long-polls.pcap"
    apart, among = drive(StubBook(name), "statistics"), drive(StubBook(name), "statistics", "p")
    assert "long polls" in apart.text
    assert "p Long polls" in apart.lines[-1]
    assert "by api, long polls among them" in among.lines[0]
    (text,) = drive(StubBook(name), "statistics", "p", "right", "enter").narrowed
    assert "long_poll_ns" not in text
    assert "p Long polls" not in drive(StubBook(name), "statistics", "2").lines[-1]
