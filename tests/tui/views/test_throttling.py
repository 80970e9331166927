"""The view of throttles in a terminal: who, and whether they kept quiet."""

from tests.tui.views.stub import StubBook, drive


def test_who_was_throttled_and_whether_they_kept_quiet() -> None:
    seen = drive(StubBook("quota-3.9.pcap"), "throttling")
    assert "2 of the groups did not keep quiet" in seen.text
    assert "did not obey" in seen.text
    assert "requests came before the time was over" in seen.text
    assert "broker waited" in drive(StubBook("quota-0.10.pcap"), "throttling").text
    each = drive(StubBook("quota-3.9.pcap"), "throttling", "2", size=(160, 50))
    assert sum("not kept" in line for line in each.lines) == 3


def test_nobody_was_throttled() -> None:
    assert "nobody was throttled" in drive(StubBook("pipelined.pcap"), "throttling").text
