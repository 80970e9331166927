"""Findings as sheets."""

from functools import cache
from typing import Any

import pytest

from kcap.reports.findings.report import check
from kcap.reports.findings.source import observed
from kcap.reports.source import ReportInput
from kcap.tui.views import findings_model as model
from tests.tui.views.laws import leads_somewhere, lines_hold
from tests.tui.views.stub import PCAPS

NAMES = ("zombie-fenced", "tls-plaintext-confusion", "authorization-denied", "request-timeout")


@cache
def checked(name: str) -> Any:
    with observed(ReportInput([str(PCAPS / f"problems/{name}.pcap")])) as seen:
        return check(seen)


@pytest.mark.parametrize("name", NAMES)
def test_a_problem_leads_to_exchanges_or_names_its_broker(name: str) -> None:
    """Law: from each finding there is a way on, to exchanges that are there."""
    problems, notes, skipped = model.sheets(checked(name))
    assert problems.rows
    assert {row["severity"] for row in notes.rows} <= {"info"}
    for row in problems.rows:
        down = problems.down(row)
        assert leads_somewhere(f"problems/{name}.pcap", down) if down else model.server(row), row
        lines_hold(model.detail(row, 40), 40)
        text = "\n".join("".join(part for part, _ in line) for line in model.detail(row, 500))
        assert all(f"{head}: " in text for head in ("who", "when", "evidence", "next step", "other explanations", "rule"))
    assert problems.empty == "no problem was found in this capture"
    none: dict[str, Any] = {"rows": [], "not_judged": {"acks-risk": "the capture holds no Kafka exchange"}}
    assert model.sheets(none)[0].empty == "nothing could be judged: the capture holds no Kafka exchange"
    for sheet in (problems, notes, skipped):
        assert all(column.text(row).isprintable() for row in sheet.rows for column in sheet.fields)


@pytest.mark.parametrize(
    ("server", "ends"),
    [("10.0.0.1:9092", ("10.0.0.1", 9092)), ("[::1]:9092", ("::1", 9092)), ("10.0.0.1", None), (None, None), ("a:b", None)],
)
def test_the_broker_of_a_finding(server: str | None, ends: tuple[str, int] | None) -> None:
    assert model.server({"who": {"server": server}}) == ends
