"""Thresholds that a user sets."""

import pytest

from kcap.errors import UsageError
from kcap.reports.findings.report import rules
from kcap.reports.findings.thresholds import thresholds_of


def test_tables_name_rules_and_their_thresholds() -> None:
    assert thresholds_of({"format": "json", "commit-storm": {"commits": 9}}, rules()) == {"commit-storm": {"commits": 9}}
    assert thresholds_of({}, rules()) == {}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"comit-storm": {"commits": 9}}, "commit-storm"),
        ({"commit-storm": {"comits": 9}}, "did you mean commits"),
        ({"commit-storm": {"commits": "9"}}, "no number"),
        ({"commit-storm": {"commits": -1}}, "no number"),
        ({"commit-storm": {"commits": True}}, "no number"),
        ({"zombie-fenced": {"x": 1}}, "it has none"),
    ],
)
def test_slips_are_refused(table: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        thresholds_of(table, rules())
