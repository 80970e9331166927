"""The view of the capture itself in a terminal."""

from kcap.tui.views.health import UNFILTERED, Health
from tests.tui.views.stub import EmptyBook, StubBook, drive


def test_sections() -> None:
    book = StubBook("raw-frames.pcap")
    assert "✓ ok" in drive(book, "health").text
    assert "correlation_reused" in drive(book, "health", "2").text
    assert "raw-frames.pcap" in drive(book, "health", "3").text
    assert "captured = framed + skipped + opaque + pending" in drive(book, "health", "4").text


def test_it_is_about_the_whole_capture_and_says_so() -> None:
    plain, under = (StubBook("raw-frames.pcap", text) for text in ("", "api == Fetch"))
    assert UNFILTERED not in drive(plain, "health").text
    assert UNFILTERED in drive(under, "health").text
    pages = [Health().page(book) for book in (plain, under)]
    assert [sheet.rows for sheet in pages[0].sheets] == [sheet.rows for sheet in pages[1].sheets]


def test_no_verdict_before_the_end() -> None:
    assert "when the capture has been read" in drive(EmptyBook("reading"), "health").text
