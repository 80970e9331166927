"""Transactions as sheets."""

from typing import Any

import pytest

from kcap.reports.source import ReportInput
from kcap.reports.transactions.report import transactions
from kcap.tui.views import transactions_model as model
from tests.tui.views.laws import leads_somewhere, lines_hold, sheet_holds
from tests.tui.views.stub import PCAPS

NAMES = ("problems/aborted-transactions.pcap", "problems/zombie-fenced.pcap", "problems/hanging-transaction.pcap")


@pytest.mark.parametrize("name", NAMES)
def test_every_row_leads_to_exchanges(name: str) -> None:
    result: Any = transactions(ReportInput([str(PCAPS / name)]))
    sheets = model.sheets(result)
    assert sheets[0].rows
    for sheet in sheets:
        sheet_holds(sheet, name)
        for row in sheet.rows:
            assert leads_somewhere(name, sheet.down(row)), (sheet.name, sheet.down(row))
            if sheet.detail is not None:
                lines_hold(sheet.detail(row, 50), 50)


def test_the_outcome_has_a_word_and_a_tone() -> None:
    assert model.outcome({"outcome": "timed_out"}) == "timed out"
    assert model.outcome({"outcome": None}) == "ended"
    span = model.span({"begin_ns": None, "end_ns": 5, "duration_ns": None, "outcome": "aborted"})
    assert span is not None
    assert (span.first_ns, span.last_ns, span.tone) == (5, 5, "care")
