"""Errors, requests without a response, tries, stories."""

import pytest

from kcap.reports.definition import ReportRequest, keys_of, report_of
from kcap.tui.views import errors_model as model
from kcap.tui.views.errors import Errors
from tests.tui.views.laws import cases, leads_somewhere, lines_hold, sheet_holds
from tests.tui.views.stub import StubBook

CAPTURES = ("java-transactions.pcap", "raw-frames.pcap", "librdkafka-zstd.pcap")


@pytest.mark.parametrize(("name", "by"), cases(CAPTURES, Errors.GROUPINGS))
def test_every_count_leads_to_as_many_exchanges(name: str, by: tuple[str, ...]) -> None:
    report, asked = report_of("errors"), ReportRequest(by)
    result = StubBook(name).report(report, asked)
    for sheet in (
        model.errors(result, keys_of(report, asked)),
        model.unanswered(result),
        model.retries(result),
        model.stories(result),
    ):
        sheet_holds(sheet, name)
        for row in sheet.rows:
            assert leads_somewhere(name, sheet.down(row)), sheet.name
            if sheet.detail is not None:
                lines_hold(sheet.detail(row, 70), 90)


def test_errors_of_partitions_lead_to_the_exchanges_they_stand_in() -> None:
    name, asked = "librdkafka-zstd.pcap", ReportRequest(("error", "topic", "partition"))
    report = report_of("errors")
    sheet = model.errors(StubBook(name).report(report, asked), keys_of(report, asked))
    assert sheet.rows
    assert all("error_count > 0" in str(sheet.down(row)) for row in sheet.rows)
    assert all(field.counts is None for field in sheet.fields)


def test_a_storm_is_said() -> None:
    row = {"error": "NOT_LEADER_OR_FOLLOWER", "count": 40, "first_ns": 0, "last_ns": 10**9, "storm": True, "peak_per_s": 40,
           "example": "C.1"}  # fmt: skip
    reported = "".join(text for line in model.detail(row, 60) for text, _ in line)
    assert "a storm: 40" in reported
    assert "code 6" in reported
