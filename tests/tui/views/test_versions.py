"""The view of versions in a terminal."""

from types import SimpleNamespace
from typing import Any

from kcap.schema.facts import releases
from kcap.tui.views.versions import UNDER, Versions, passing
from tests.tui.views.stub import StubBook, drive, talks_of

NAME = "old-java-new-broker.pcap"


def test_who_breaks() -> None:
    seen = drive(StubBook(NAME), "versions")
    assert "1 client: with Kafka 4.4, 0 work, 1 breaks" in seen.text
    assert "breaks" in seen.text
    assert drive(StubBook(NAME), "versions", "enter").narrowed == ['&& client_id == "relic-0.10.2.2"']


def test_another_release_is_another_verdict() -> None:
    older = releases().index("3.9")
    keys = ["["] * (len(releases()) - 1 - older)
    seen = drive(StubBook(NAME), "versions", *keys)
    assert "against Kafka 3.9" in seen.lines[0]
    assert "1 client: with Kafka 3.9, 1 works" in seen.text
    assert f"against Kafka {releases()[-1]}" in drive(StubBook(NAME), "versions", "[", "]", "]").lines[0]


def test_the_story_of_a_connection() -> None:
    seen = drive(StubBook("go-franz.pcap"), "versions", "4", size=(160, 50))
    assert "the broker names 6" in seen.text or "the client requests the versions with ApiVersions" in seen.text
    assert drive(StubBook("go-franz.pcap"), "versions", "4", "L").name == "ladder"


def test_sections_fit_a_narrow_terminal() -> None:
    line = drive(StubBook(NAME), "versions").lines[1]
    assert all(f"{at}:" in line for at in range(1, 7))


def test_a_filter_chooses_the_connections() -> None:
    name, text = "java-transactions.pcap", "api == Produce"
    book = StubBook(name, text)
    plain, under = drive(StubBook(name), "versions"), drive(book, "versions")
    uids, every = passing(book), set(talks_of(name).profiles)
    assert set() < uids < every
    assert UNDER in under.text
    assert UNDER not in plain.text
    assert {row["connection"] for row in Versions().page(book).sheets[3].rows} == uids
    assert {row["connection"] for row in Versions().page(StubBook(name)).sheets[3].rows} >= every


def test_a_filter_that_passes_nothing_leaves_nothing() -> None:
    seen = drive(StubBook("java-transactions.pcap", "api == Metadata && api == Fetch"), "versions")
    assert "0 clients" in seen.text


def test_the_end_of_a_long_search_is_seen() -> None:
    """A filter on fields inside messages knows its rows later."""
    book = StubBook(NAME, "api == Fetch")

    class Seen(Versions):
        home: Any = SimpleNamespace(book=book)

    before = Seen().settled()
    book.looking = True
    assert Seen().settled() != before
