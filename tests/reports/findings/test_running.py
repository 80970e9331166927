"""What is held stands for its expression."""

from pathlib import Path
from typing import Any

import pytest

from kcap.reports.findings.report import check
from kcap.reports.findings.running import Runner
from kcap.reports.findings.source import Statements, observed
from kcap.reports.source import ReportInput


def test_a_runner_of_a_function_holds_nothing() -> None:
    runner = Runner(lambda expression: [{"expression": expression}])
    assert runner("rows") == [{"expression": "rows"}]
    assert runner.hold("name", "rows", view=True) == "rows"
    assert runner.names("name", ("a", "b")) == ["a", "b"]


@pytest.mark.parametrize("name", ["old-java-new-broker", "problems/proxy-slow", "problems/listener-is-controller"])
def test_findings_over_what_is_held_are_those_of_the_expressions(pcaps: Path, name: str) -> None:
    """Law: captures of brokers and of both sides of a proxy have the same findings either way."""
    found: list[dict[str, Any]] = []
    for holds in (True, False):
        with observed(ReportInput([str(pcaps / f"{name}.pcap")])) as seen:
            assert isinstance(seen.runner, Statements)
            seen.runner = seen.runner if holds else Runner(seen.runner)
            found.append(check(seen))
    assert found[0] == found[1]
    assert found[0]["rows"]
