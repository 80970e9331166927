"""From an input to a report."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kcap.errors import UsageError
from kcap.filter.parse import parse
from kcap.reports import latency, listing, slow, topics
from kcap.reports.definition import KEY, ReportRequest
from kcap.reports.run import columns_of, computed, result, run
from kcap.reports.source import Engine, ReportInput, engine_over, tables_of


def test_the_head_of_every_report(pcaps: Path) -> None:
    reported = run(latency.REPORT, ReportInput([str(pcaps / "aiokafka.pcap")]), ReportRequest(top=2))
    assert list(reported)[:4] == ["report", "captures", "rows", "left_out"]
    assert (reported["report"], reported["captures"], len(reported["rows"])) == ("latency", ["aiokafka.pcap"], 2)


def test_only_columns_that_are_looked_at_are_read() -> None:
    assert "topics" not in columns_of(latency.REPORT, ReportRequest())
    assert {"topics", "topic_ids"} <= set(columns_of(latency.REPORT, ReportRequest(by=("topic",))))


@pytest.mark.parametrize("by", [(), ("client",), ("codec", "topic"), ("time:1s", "partition")], ids=str)
@pytest.mark.parametrize("text", ["", "api != Fetch"])
def test_sums_in_a_table_are_those_of_the_statements(by: tuple[str, ...], text: str, pcaps: Path) -> None:
    """What an engine has as a table, of columns beside partitions, tells the same as joined rows in each statement."""
    request, given = ReportRequest(by), ReportInput([str(pcaps / "pipelined.pcap")], only=parse(text))
    reported = run(topics.REPORT, given, request)
    with engine_over(given, columns_of(topics.REPORT, request), topics.REPORT.partitions) as (engine, names):
        tables = tables_of(engine, names, given)
        assert reported["rows"]
        assert reported == {"report": "topics", "captures": given.captures} | result(engine, tables, topics.REPORT, request)


def test_columns_beside_partitions_are_not_among_exchanges_too(pcaps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    defined: dict[str, list[str]] = {}

    def noted(engine: Engine, names: list[str], *given: Any) -> Any:
        defined.update({name: [column for column, _ in engine.columns(name)] for name in names})
        return computed(engine, names, *given)

    monkeypatch.setattr("kcap.reports.run.computed", noted)
    given = ReportInput([str(pcaps / "aiokafka.pcap")])
    run(topics.REPORT, given, ReportRequest())
    assert sorted(defined["exchanges"]) == sorted(KEY)
    assert "client_id" in defined["partitions"]
    run(topics.REPORT, given, ReportRequest(listed=1))
    assert {*KEY, *listing.COLUMNS} <= {*defined["exchanges"]}


def test_a_grouping_where_there_are_no_groups() -> None:
    with pytest.raises(UsageError, match="no groups"):
        run(slow.REPORT, ReportInput(["nothing"]), ReportRequest(by=("api",)))


def test_what_compiles_a_report_gives_its_pages_back_before_the_engine_needs_memory(
    pcaps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the SQL is not known yet, between compiling all of it and running it."""
    steps: list[str] = []
    compiles, runs = Engine.sql, Engine.rows

    def noted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: (steps.append(name), call(*given))[1]

    monkeypatch.setattr(Engine, "sql", noted("compile", compiles))
    monkeypatch.setattr(Engine, "rows", noted("run", runs))
    monkeypatch.setattr("kcap.reports.run.give_back", lambda: steps.append("give back"))
    monkeypatch.setattr("kcap.reports.run.planned", lambda _parts, make: make())
    run(latency.REPORT, ReportInput([str(pcaps / "aiokafka.pcap")]), ReportRequest())
    assert list(dict.fromkeys(steps)) == ["compile", "give back", "run"]
    assert steps.count("give back") == 1
