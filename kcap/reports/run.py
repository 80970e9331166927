"""A report from its input to its result.

In: captures or saved rows, a report, its parameters. Out: the report as plain values, which is its JSON form. Law: the
result depends on the rows alone, not on how they came.
"""

from typing import Any

from kcap.errors import UsageError
from kcap.reports.definition import Report, ReportRequest, Row, Rows, Tables, keys_of
from kcap.reports.plans import planned
from kcap.reports.source import Engine, ReportInput, engine_over, tables_of


def columns_of(report: Report, request: ReportRequest) -> list[str]:
    """Columns of exchanges that the report takes for a request.

    Raises UsageError for a grouping that cannot be.
    """
    if request.by and not report.groups:
        raise UsageError(f"{report.name} has no groups: --by goes with other reports")
    keys = keys_of(report, request) if report.groups else []
    grouping = [name for key in keys if key.name not in report.own for name in key.columns]
    return list(dict.fromkeys([*report.columns, *grouping]))


def result(engine: Engine, tables: Tables, report: Report, request: ReportRequest) -> Row:
    """Runs the expressions, and puts their rows together."""
    expressions = report.build(tables, request)
    results: dict[str, Rows] = {name: engine.rows(expression) for name, expression in expressions.items()}
    return report.finish(results, request)


def run(report: Report, given: ReportInput, request: ReportRequest) -> Row:
    """The report.

    Raises UsageError for a grouping or a filter that cannot be, CaptureError where nothing can be read.
    """
    columns = columns_of(report, request)
    with engine_over(given, columns, report.partitions) as (engine, names):

        def compiled() -> dict[str, str]:
            expressions = report.build(tables_of(engine, names, given), request)
            return {name: engine.sql(expression) for name, expression in expressions.items()}

        parts = (report.name, request, given.only, [(name, engine.columns(name)) for name in names])
        results: dict[str, Rows] = {name: engine.rows(sql) for name, sql in planned(parts, compiled).items()}
    made: dict[str, Any] = report.finish(results, request)
    return {"report": report.name, "captures": given.captures} | made
