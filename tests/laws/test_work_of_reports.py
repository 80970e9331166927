"""What a report does grows with its capture and no faster: lines of Python and rows of the engine's operators are counted.

The captures are those classes of `tests/fuzz/hostile.py` in which two things of a report could be compared each with each: of
four times as many of both that would be sixteen times as much.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import kcap
from kcap.reports.source import Engine
from tests.cli.running import run_here
from tests.fuzz.hostile import CLASSES

FOLLOWED = tuple(str(Path(kcap.__file__).parent / part) for part in ("reports", "facts/brokers.py"))
FEW, TIMES, MOST = 100, 4, 5.5
"""Units of the smaller capture, of how many times as many the larger one has, and how many times as much work it may be."""
NEAR = (
    "kcap.reports.findings.transactions.STRETCHES_MAX", "kcap.reports.versions.identity.PROGRAMS_COMPARED",
    "kcap.reports.versions.siblings.SIBLINGS_COMPARED", "kcap.reports.versions.addresses.ADVERTISED_JUDGED",
)  # fmt: skip
"""Bounds that a small capture is to reach."""


class Work:
    """Lines of Python in `kcap.reports` and what it asks of brokers, and rows that operators of the engine gave."""

    def __init__(self) -> None:
        self.lines = self.rows = 0

    def frame(self, frame: FrameType, _event: str, _given: object) -> Any:
        """A frame that begins; only those of reports are followed."""
        if not frame.f_code.co_filename.startswith(FOLLOWED):
            return None
        return self.line

    def line(self, _frame: FrameType, _event: str, _given: object) -> Any:
        """A line of such a frame; a loop in one line is a line each time round."""
        self.lines += 1
        return self.line

    def operators(self, profile: dict[str, Any]) -> None:
        """The profile of a statement, or of an operator in it, as DuckDB 2 has it or as earlier ones have."""
        self.rows += profile.get("intermediate_rows", profile.get("operator_cardinality", 0))
        for child in (*profile.get("operator", ()), *profile.get("children", ())):
            self.operators(child)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    """Counts what happens in the block."""
    work = Work()
    made, executed = Engine.__init__, Engine._executed

    def with_profile(self: Engine, *args: Any, **named: Any) -> None:
        made(self, *args, **named)
        self._duckdb.execute("SET enable_profiling = 'no_output'")

    def profiled(self: Engine, sql: str, params: dict[str, Any] | None) -> list[dict[str, Any]]:
        rows = executed(self, sql, params)
        work.operators(json.loads(self._duckdb.get_profiling_information()))
        return rows

    def by_sql(self: Engine, expression: Any) -> list[dict[str, Any]]:
        return self._fetched(expression if isinstance(expression, str) else self.sql(expression))

    with monkeypatch.context() as patched:
        patched.setattr(Engine, "_optimize", lambda *_: None)  # plans of small tables have other operators
        for name, function in (("__init__", with_profile), ("_executed", profiled), ("rows", by_sql)):
            patched.setattr(Engine, name, function)
        before = sys.gettrace()
        sys.settrace(work.frame)
        try:
            yield work
        finally:
            sys.settrace(before)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("errors", "leader_turns"),
        ("check", "leader_turns"),
        ("check", "commits_and_ends"),
        ("check", "standing_offsets"),
        ("check", "refused_hellos"),
        ("check", "busy_brokers"),
        ("check", "idle_ends"),
        ("check", "dead_listeners"),
        ("check", "clients_closed_at_requests"),
        ("groups", "generations"),
        ("groups", "waiting_members"),
        ("groups", "groups_of_one_client"),
        ("transactions", "open_transactions"),
        ("transactions", "wide_transactions"),
        ("versions", "principals_of_one_host"),
        ("versions", "dead_listeners"),
        ("versions", "programs_of_one_id"),
        ("versions", "servers_without_offers"),
        ("versions", "claiming_servers"),
        ("versions", "useless_lists"),
        ("versions", "refused_beside"),
        ("versions", "shared_client_ids"),
    ],
)
def test_work_grows_with_the_capture(command: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the capture is some four times the work; a bound that is far away is near here."""
    for bound in NEAR:
        monkeypatch.setattr(bound, FEW // 4)
    found = []
    for units in (FEW, FEW * TIMES):
        path = tmp_path / f"{units}.pcap"
        path.write_bytes(CLASSES[name][0](units))
        with counted(monkeypatch) as work:
            code, said = run_here(command, str(path), "--format", "json")
        assert code in (0, 1), said
        found.append(work)
    few, many = found
    assert few.lines > FEW
    assert many.lines <= MOST * few.lines
    assert many.rows <= MOST * few.rows
