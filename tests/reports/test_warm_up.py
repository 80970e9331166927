"""After the set-up the first run of a report compiles nothing."""

from importlib import import_module
from pathlib import Path

import pytest

from kcap.cli.commands import COMMANDS
from kcap.cli.reports import HELP
from kcap.reports import run as runner
from kcap.reports.definition import ReportRequest
from kcap.reports.source import ReportInput
from kcap.reports.warm_up import REPORTS, warm_up


def test_every_report_finds_its_plan_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pcaps: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    warm_up()
    monkeypatch.setattr(runner, "tables_of", None)  # nothing may be compiled
    for name in REPORTS:
        report = import_module(f"kcap.reports.{name}").REPORT
        assert runner.run(report, ReportInput([str(pcaps / "quota-3.9.pcap")]), ReportRequest())["report"] == name
    assert set(REPORTS) == set(HELP) <= set(COMMANDS)
