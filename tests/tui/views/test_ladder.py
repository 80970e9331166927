"""The ladder in a terminal: the selected exchange, its other end, other connections, a client on all of its connections."""

import pytest

from kcap.tui.views.ladder import Ladder
from kcap.tui.views.ladder_model import busiest, connections
from tests.tui.views.stub import StubBook, drive

NAME = "java-transactions.pcap"


def cursor(lines: list[str]) -> str:
    return next(line for line in lines if line.startswith("▸"))


def test_it_begins_with_the_selected_exchange() -> None:
    book = StubBook(NAME)
    uid = busiest(book.exchanges(["connection"]))
    assert uid is not None
    seen = drive(book, "ladder", selected=(uid, 5), size=(160, 50))
    assert uid in seen.lines[0]
    assert f"⏎ the exchange {uid}.5" in seen.text
    assert "▶" in cursor(seen.lines)
    assert drive(book, "ladder", "enter", selected=(uid, 5)).shown == [(uid, 5)]


def test_both_arrows_of_an_exchange_stand_out() -> None:
    seen = drive(StubBook(NAME), "ladder")
    assert sum("━" in line for line in seen.lines) == 2
    other = drive(StubBook(NAME), "ladder", "percent_sign")
    assert "◀" in cursor(other.lines)
    assert sum("━" in line for line in other.lines) == 2
    assert "▶" in cursor(drive(StubBook(NAME), "ladder", "percent_sign", "percent_sign").lines)


def test_other_connections() -> None:
    book = StubBook(NAME)
    uids = connections(book.exchanges(["connection"]))
    assert uids[1] in drive(book, lambda: Ladder(uids[0]), "]").lines[0]
    assert uids[-1] in drive(book, lambda: Ladder(uids[0]), "[").lines[0]
    assert uids[0] in drive(book, lambda: Ladder(uids[0]), "]", "[").lines[0]


def test_a_client_has_a_line_for_each_broker() -> None:
    seen = drive(StubBook(NAME), "ladder", "B", size=(160, 50))
    assert "shop-tx with 3 brokers" in seen.lines[0]
    assert all(f"broker {at}" in seen.lines[1] for at in (1, 2, 3))


def test_long_conversations_come_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kcap.tui.views.ladder_model.WINDOW", 20)
    book = StubBook("pipelined.pcap")
    assert "exchanges 1 to 20 of " in drive(book, "ladder").text
    assert "exchanges 21 to 40 of " in drive(book, "ladder", "right_curly_bracket").text
    later, earlier = "right_curly_bracket", "left_curly_bracket"
    assert "exchanges 1 to 20 of " in drive(book, "ladder", later, earlier, earlier).text
    assert "exchanges 21 to 40 of " in drive(book, "ladder", earlier, later).text
    uid = busiest(book.exchanges(["connection"]))
    assert uid is not None
    assert "exchanges 91 to 110 of " in drive(book, "ladder", selected=(uid, 101)).text


def test_time_and_filter() -> None:
    assert "0.000000" in cursor(drive(StubBook(NAME), "ladder", "t").lines)
    book = StubBook(NAME, "api == EndTxn")
    assert "ApiVersions" in drive(book, "ladder").text
    seen = drive(book, "ladder", "u")
    assert "display filter" in seen.lines[0]
    assert "· filter " in seen.lines[0]
    assert "EndTxn" in seen.text
    assert "ApiVersions" not in seen.text


def test_keys_of_tables_are_not_offered() -> None:
    seen = drive(StubBook(NAME), "ladder", "s", "c", size=(120, 30))
    assert "Sort" not in seen.lines[-1]
    assert "% Response" in seen.lines[-1]
    assert "u Unfiltered" not in seen.lines[-1], "there is none in force"
    assert seen.name == "ladder"
