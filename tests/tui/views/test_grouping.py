"""What the views of reports share."""

from typing import Any, cast

import pytest

from kcap import limits
from kcap.reports.definition import ReportRequest, key_of
from kcap.reports.latency import REPORT
from kcap.tui.capture_model import CaptureModel
from kcap.tui.views.grouping import STEPS, keyed, of_busiest, over_time, waiting
from tests.tui.views.stub import StubBook


def test_the_first_column_is_what_a_row_is_about() -> None:
    api, version = keyed([key_of("api"), key_of("version")], {"api_version": "v"})
    row = {"api": "Fetch", "api_version": 12}
    assert (api.head, api.text(row), api.tone and api.tone(row), api.right) == ("api", "Fetch", "bold", False)
    assert (version.head, version.text(row), version.right) == ("v", "12", True)


def test_what_is_not_there_yet_says_so() -> None:
    sheet = waiting("x", "not yet")
    assert (sheet.name, sheet.empty, sheet.rows) == ("x", "not yet", [])


def test_a_value_over_time() -> None:
    """Law: the bars add up to the rows, steps in which nothing was are there, each leads to its time."""
    keys = [key_of("time:1s"), key_of("error")]
    times = ("2026-11-21T07:42:12Z", "2026-11-21T07:42:12Z", "2026-11-21T07:42:15Z")
    rows = [{"time": time, "error": "X", "n": at} for at, time in enumerate(times, 1)]
    (bars,) = over_time(rows, keys, "n", "title", str, "error_code != 0")
    assert (list(bars.values), list(bars.labels)) == ([3, 0, 0, 3], ["07:42:12", "07:42:13", "07:42:14", "07:42:15"])
    assert bars.downs[1] == "error_code != 0 && time >= 1795246933.000000 && time < 1795246934.000000"
    assert over_time(rows[:2], keys, "n", "title", str, "") == []
    assert over_time(rows, keys[1:], "n", "title", str, "") == []
    far = [*rows, {"time": "2026-11-22T07:42:15Z", "error": "X", "n": 9}]
    assert len(over_time(far, keys, "n", "title", str, "")[0].values) == 3 < STEPS


def test_the_busiest_are_looked_for_where_there_are_more_groups_than_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    book: Any = StubBook("java-transactions.pcap")
    for by, wanted in ((("client_id",), None), (("api", "client_id"), 8), (("topic",), 8)):
        monkeypatch.setattr(limits, "VIEW_ROWS", 8)
        assert of_busiest(cast("CaptureModel", book), REPORT, ReportRequest(by)).busiest == wanted, by
        monkeypatch.setattr(limits, "VIEW_ROWS", book.rows)
        assert of_busiest(cast("CaptureModel", book), REPORT, ReportRequest(by)).busiest is None, "no more groups than rows"
