"""The view of findings in a terminal."""

from kcap.tui.views.health import UNFILTERED
from tests.tui.views.stub import EmptyBook, StubBook, drive

NAME = "problems/zombie-fenced.pcap"


def test_a_problem_with_its_next_step_and_its_exchanges() -> None:
    seen = drive(StubBook(NAME), "findings", "enter")
    assert "next step:" in seen.text
    assert "severity" in seen.text
    (text,) = seen.narrowed
    assert not text.startswith("&&"), "the filter in force does not count"
    assert "rule" in drive(StubBook(NAME), "findings", "3").text
    assert UNFILTERED not in seen.text
    assert UNFILTERED in drive(StubBook(NAME, "api == Fetch"), "findings").text


def test_one_about_connections_without_exchanges_leads_to_them() -> None:
    seen = drive(StubBook("problems/tls-plaintext-confusion.pcap"), "findings", "enter")
    assert seen.name == "conversations" or seen.narrowed
    if seen.name == "conversations":
        assert ", to " in seen.lines[0]


def test_nothing_before_the_end() -> None:
    assert "when the capture has been read" in drive(EmptyBook("reading"), "findings").text
