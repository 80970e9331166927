"""The view of throttles in a terminal: which clients were throttled, and whether they complied."""

from tests.tui.views.stub import StubBook, drive


def test_which_clients_were_throttled_and_whether_they_complied() -> None:
    seen = drive(StubBook("quota-3.9.pcap"), "throttling")
    assert "0 groups do not comply" in seen.text
    assert "4 of 4" in seen.text
    assert "complied with 4 of 4 throttles" in seen.text
    assert "broker delayed" in drive(StubBook("quota-0.10.pcap"), "throttling").text
    each = drive(StubBook("quota-3.9.pcap"), "throttling", "2", size=(160, 50))
    assert sum(" yes " in line for line in each.lines) == 9


def test_no_response_was_throttled() -> None:
    assert "no throttled responses" in drive(StubBook("pipelined.pcap"), "throttling").text
