"""The view of the capture itself in a terminal."""

from tests.tui.views.stub import EmptyBook, StubBook, drive


def test_sections() -> None:
    book = StubBook("raw-frames.pcap")
    assert "✓ ok" in drive(book, "health").text
    assert "correlation_reused" in drive(book, "health", "2").text
    assert "raw-frames.pcap" in drive(book, "health", "3").text
    assert "captured = framed + skipped + opaque + pending" in drive(book, "health", "4").text


def test_no_verdict_before_the_end() -> None:
    assert "when reading is over" in drive(EmptyBook("reading"), "health").text
