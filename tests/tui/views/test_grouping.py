"""What the views of reports share."""

import pytest

from kcap.reports.latency import REPORT
from kcap.reports.shape import key_of
from kcap.tui.views.grouping import keyed, report_of, waiting


def test_reports_by_name() -> None:
    assert report_of("latency") is REPORT
    assert {report_of(name).name for name in ("stats", "slow", "throttle", "throttled", "errors", "topics", "clients")} == {
        "stats", "slow", "throttle", "throttled", "errors", "topics", "clients",
    }  # fmt: skip
    with pytest.raises(ModuleNotFoundError):
        report_of("nothing")


def test_the_first_column_is_what_a_row_is_about() -> None:
    api, version = keyed([key_of("api"), key_of("version")], {"api_version": "v"})
    row = {"api": "Fetch", "api_version": 12}
    assert (api.head, api.text(row), api.tone and api.tone(row), api.right) == ("api", "Fetch", "bold", False)
    assert (version.head, version.text(row), version.right) == ("v", "12", True)


def test_what_is_not_there_yet_says_so() -> None:
    sheet = waiting("x", "not yet")
    assert (sheet.name, sheet.empty, sheet.rows) == ("x", "not yet", [])
