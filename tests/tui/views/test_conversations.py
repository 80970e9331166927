"""The view of conversations in a terminal."""

from tests.tui.views.stub import StubBook, drive

NAME = "java-transactions.pcap"


def test_connections_and_their_groups() -> None:
    seen = drive(StubBook(NAME), "conversations", size=(160, 50))
    assert "client to broker: 2,933 bytes = 2,933 framed" in seen.text
    assert "exchanges by API" in seen.text
    assert " · by client_ip, client_id" in drive(StubBook(NAME), "conversations", "B").lines[0]
    (text,) = drive(StubBook(NAME), "conversations", "enter").narrowed
    assert text.startswith('&& connection == "C')


def test_a_filter_narrows_them() -> None:
    seen = drive(StubBook(NAME, "api == EndTxn"), "conversations", size=(160, 50))
    assert "filter api == EndTxn" in seen.lines[0]
    assert sum("127.1.0." in line and "shop" in line for line in seen.lines) < 5
