"""A report from its input to its result.

In: captures or saved rows, a report, what is asked of it. Out: the report as plain values, which is its JSON form. Law: the
result depends on the rows alone, not on how they came.
"""

from typing import Any

from kcap.errors import UsageError
from kcap.reports.definition import Report, ReportRequest, Row, Rows, Tables, keys_of
from kcap.reports.source import Engine, ReportInput, opened


def columns_of(report: Report, asked: ReportRequest) -> list[str]:
    """Columns of exchanges that the report takes as it is asked for.

    Raises UsageError for a grouping that cannot be.
    """
    if asked.by and not report.groups:
        raise UsageError(f"{report.name} has no groups: --by goes with other reports")
    keys = keys_of(report, asked) if report.groups else []
    grouping = [name for key in keys if key.name not in report.own for name in key.columns]
    return list(dict.fromkeys([*report.columns, *grouping]))


def result(engine: Engine, tables: Tables, report: Report, asked: ReportRequest) -> Row:
    """Runs the expressions, and puts their rows together."""
    expressions = report.build(tables, asked)
    results: dict[str, Rows] = {name: engine.rows(expression) for name, expression in expressions.items()}
    return report.finish(results, asked)


def run(report: Report, given: ReportInput, asked: ReportRequest) -> Row:
    """The report.

    Raises UsageError for a grouping or a filter that cannot be, CaptureError where nothing can be read.
    """
    columns = columns_of(report, asked)
    with opened(given, columns, report.partitions) as (engine, tables):
        made: dict[str, Any] = result(engine, tables, report, asked)
    return {"report": report.name, "captures": given.captures} | made
