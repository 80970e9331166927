"""Which clients were throttled, and whether they complied."""

import pytest

from kcap.reports.definition import ReportRequest, keys_of, report_of
from kcap.tui.views import throttling_model as model
from kcap.tui.views.throttling import Throttling
from tests.tui.views.laws import cases, leads_somewhere, lines_hold, sheet_holds
from tests.tui.views.stub import StubBook

CAPTURES = ("quota-3.9.pcap", "quota-0.10.pcap", "java-transactions.pcap")


@pytest.mark.parametrize(("name", "by"), cases(CAPTURES, Throttling.GROUPINGS))
def test_every_count_leads_to_as_many_exchanges(name: str, by: tuple[str, ...]) -> None:
    report, asked = report_of("throttle"), ReportRequest(by)
    sheet = model.groups(StubBook(name).report(report, asked), keys_of(report, asked))
    assert sheet_holds(sheet, name) >= len(sheet.rows)
    assert bool(sheet.rows) == name.startswith("quota")
    for row in sheet.rows:
        assert leads_somewhere(name, sheet.down(row))
        assert sheet.detail is not None
        lines_hold(sheet.detail(row, 70), 90)


@pytest.mark.parametrize(("name", "words"), [("quota-0.10.pcap", {"broker delayed"}), ("quota-3.9.pcap", {"yes"})])
def test_each_throttle_says_whether_it_was_complied_with(name: str, words: set[str]) -> None:
    sheet = model.each(StubBook(name).report(report_of("throttled"), ReportRequest()))
    sheet_holds(sheet, name)
    complied = next(field for field in sheet.fields if field.head == "complied")
    assert {complied.text(row) for row in sheet.rows} == words


@pytest.mark.parametrize(("name", "word"), [("quota-0.10.pcap", "broker delayed"), ("quota-3.9.pcap", "9 of 9")])
def test_the_verdict_on_a_group(name: str, word: str) -> None:
    report, asked = report_of("throttle"), ReportRequest(("client_id",))
    sheet = model.groups(StubBook(name).report(report, asked), keys_of(report, asked))
    assert {model.verdict(row) for row in sheet.rows} == {word}
    assert {model.TONES[row["obeys"]] for row in sheet.rows} <= {"good", "dim"}


def test_a_group_obeys_in_the_word_of_the_report() -> None:
    """Also where it did not comply with a few: JSON and CSV promise `obeys`."""
    report, asked = report_of("throttle"), ReportRequest(("client_id",))
    result = StubBook("quota-3.9.pcap").report(report, asked)
    first = {**result["rows"][0], "complied": result["rows"][0]["muting"] - 1}
    rows = [{**first, "obeys": word} for word in ("yes", "mixed", "no")]
    sheet = model.groups({**result, "rows": rows}, keys_of(report, asked))
    obeys = next(field for field in sheet.fields if field.head == "obeys")
    assert [obeys.text(row) for row in sheet.rows] == ["yes", "mixed", "no"]
