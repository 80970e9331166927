"""Topics, partitions, lag, clients."""

import pytest

from kcap.reports.definition import ReportRequest, keys_of, report_of
from kcap.tui.views import topics_model as model
from kcap.tui.views.topics import Topics
from tests.tui.views.laws import cases, leads_somewhere, lines_hold, sheet_holds
from tests.tui.views.stub import StubBook

CAPTURES = ("java-transactions.pcap", "librdkafka-zstd.pcap", "kafka-0.8-clients.pcap")


@pytest.mark.parametrize(("name", "by"), cases(CAPTURES, Topics.GROUPINGS))
def test_topics(name: str, by: tuple[str, ...]) -> None:
    report, asked = report_of("topics"), ReportRequest(by)
    result = StubBook(name).report(report, asked)
    sheet = model.topics(result, keys_of(report, asked))
    counts = sheet_holds(sheet, name)
    assert counts > 0 or "partition" in by
    for row in sheet.rows:
        assert leads_somewhere(name, sheet.down(row))
        assert sheet.detail is not None
        lines_hold(sheet.detail(row, 70), 90)
    for other in (model.hot(result), model.lags(result)):
        sheet_holds(other, name)
        assert all(leads_somewhere(name, other.down(row)) for row in other.rows)


@pytest.mark.parametrize(("name", "by"), cases(CAPTURES, Topics.CLIENTS_BY))
def test_clients(name: str, by: tuple[str, ...]) -> None:
    report, asked = report_of("clients"), ReportRequest(by)
    sheet = model.clients(StubBook(name).report(report, asked), keys_of(report, asked))
    assert sheet_holds(sheet, name) >= len(sheet.rows) > 0
    assert sheet.detail is not None
    for row in sheet.rows:
        lines_hold(sheet.detail(row, 70), 120)
