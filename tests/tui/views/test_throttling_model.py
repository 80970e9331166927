"""Who was throttled, and whether they kept quiet."""

import pytest

from kcap.reports.definition import ReportRequest, keys_of
from kcap.tui.views import throttling_model as model
from kcap.tui.views.grouping import report_of
from kcap.tui.views.throttling import Throttling
from tests.tui.views.laws import cases, leads_somewhere, lines_hold, sheet_holds
from tests.tui.views.stub import StubBook

CAPTURES = ("quota-3.9.pcap", "quota-0.10.pcap", "java-transactions.pcap")


@pytest.mark.parametrize(("name", "by"), cases(CAPTURES, Throttling.GROUPINGS))
def test_every_count_leads_to_as_many_exchanges(name: str, by: tuple[str, ...]) -> None:
    report, asked = report_of("throttle"), ReportRequest(by)
    sheet = model.who(StubBook(name).report(report, asked), keys_of(report, asked))
    assert sheet_holds(sheet, name) >= len(sheet.rows)
    assert bool(sheet.rows) == name.startswith("quota")
    for row in sheet.rows:
        assert leads_somewhere(name, sheet.down(row))
        assert sheet.detail is not None
        lines_hold(sheet.detail(row, 70), 90)


@pytest.mark.parametrize(("name", "words"), [("quota-0.10.pcap", {"broker waited"}), ("quota-3.9.pcap", {"kept", "not kept"})])
def test_each_throttle_says_whether_it_was_kept(name: str, words: set[str]) -> None:
    sheet = model.each(StubBook(name).report(report_of("throttled"), ReportRequest()))
    sheet_holds(sheet, name)
    quiet = next(field for field in sheet.fields if field.head == "kept quiet?")
    assert {quiet.text(row) for row in sheet.rows} == words


@pytest.mark.parametrize(("name", "word"), [("quota-0.10.pcap", "broker waited"), ("quota-3.9.pcap", "did not obey")])
def test_the_verdict_on_a_group(name: str, word: str) -> None:
    report, asked = report_of("throttle"), ReportRequest(("client_id",))
    sheet = model.who(StubBook(name).report(report, asked), keys_of(report, asked))
    assert {model.verdict(row) for row in sheet.rows} == {word}
    assert model.verdict({"violations": 0, "muting": 2}) == "kept quiet"
