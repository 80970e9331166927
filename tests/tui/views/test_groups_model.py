"""Consumer groups as sheets."""

from typing import Any

import pytest

from kcap.reports.groups.report import groups
from kcap.reports.source import ReportInput
from kcap.tui.views import groups_model as model
from tests.tui.views.laws import leads_somewhere, lines_hold, sheet_holds
from tests.tui.views.stub import PCAPS

NAME = "problems/rebalance-loop-848.pcap"


@pytest.fixture(scope="module")
def result() -> Any:
    return groups(ReportInput([str(PCAPS / NAME)]))


def test_every_row_leads_to_exchanges(result: Any) -> None:
    found, rebalances, members = model.sheets(result)
    assert found.rows
    assert members.rows
    for sheet in (found, rebalances, members):
        sheet_holds(sheet, NAME)
        for row in sheet.rows:
            assert leads_somewhere(NAME, sheet.down(row))
            if sheet.detail is not None:
                lines_hold(sheet.detail(row, 50), 50)


def test_members_and_rebalances_are_drawn_over_time(result: Any) -> None:
    row = result["rows"][0]
    text = "\n".join("".join(part for part, _ in line) for line in model.detail(row, 70))
    assert text.count("█") > 10
    assert "rebalances" in text


def test_causes_are_counted() -> None:
    assert model.causes({"rebalances": [{"cause": "join"}, {"cause": "leave"}, {"cause": "join"}]}) == "2 join, 1 leave"
