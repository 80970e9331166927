"""Runs a report from its input to its result.

In: captures or saved rows, a report, its parameters. Out: the report as plain values, which is its JSON form. Law: the result
depends on the rows alone, not on their source.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from kcap.errors import UsageError
from kcap.reports.definition import Expressions, Report, ReportRequest, Row, Rows, Tables, keys_of, without_zeros
from kcap.reports.plans import planned
from kcap.reports.saved import saved_files
from kcap.reports.source import Engine, ReportInput, engine_over, tables_of
from kcap.runtime import give_back

if TYPE_CHECKING:
    from kcap.filter.ast import Filter

SUMMED: Final = "summed"
"""Name of the table of `Report.summed`, and of the statement that builds it."""


def listing() -> Any:
    """The module `listing`, which only pages need."""
    from kcap.reports import listing as module

    return module


def columns_of(report: Report, request: ReportRequest) -> list[str]:
    """Columns of exchanges that the report needs for a request.

    Raises UsageError for an invalid grouping.
    """
    if request.by and not report.groups:
        raise UsageError(f"{report.name} has no groups: --by goes with other reports")
    keys = keys_of(report, request) if report.groups else []
    grouping = [name for key in keys if key.name not in report.own for name in key.columns]
    listed = listing().COLUMNS if request.listed and report.groups else ()
    return list(dict.fromkeys([*report.columns, *grouping, *listed]))


def expressions_of(tables: Tables, report: Report, request: ReportRequest) -> Expressions:
    """The expressions of the report, and that of the exchanges to list."""
    made = report.build(tables, request)
    return made | {listing().NAME: listing().listing(report, tables, request)} if request.listed and report.groups else made


def finished(results: dict[str, Rows], report: Report, request: ReportRequest) -> Row:
    """The report's own keys, without rows beyond `top` and reasons that do not apply; with `exchanges` if listed."""
    made = report.finish(results, request)
    made |= {"rows": made["rows"][: request.top], "left_out": without_zeros(made["left_out"])}
    if not (request.listed and report.groups):
        return made
    return made | {"exchanges": listing().listed(report, results[listing().NAME], request)}


def result(engine: Engine, tables: Tables, report: Report, request: ReportRequest) -> Row:
    """Runs the expressions and assembles the result from their rows."""
    results = {name: engine.rows(expression) for name, expression in expressions_of(tables, report, request).items()}
    return finished(results, report, request)


def run(report: Report, given: ReportInput, request: ReportRequest) -> Row:
    """Runs the report.

    Raises UsageError for an invalid grouping or filter, CaptureError if nothing can be read.
    """
    columns: Sequence[str] = columns_of(report, request)
    beside: Sequence[str] = ()
    sides = report.sides and given.only is None and saved_files(given.paths) is None  # a saved table may lack the columns
    if sides:
        from kcap.reports import both_sides
    if report.joined:  # columns beside partitions are in no other table: writing them twice would take twice the time
        columns, beside = listing().COLUMNS if request.listed else (), columns_of(report, replace(request, listed=0))
        beside = list(dict.fromkeys([*beside, *(both_sides.COLUMNS if sides else ())]))
    elif sides:
        columns = list(dict.fromkeys([*columns, *both_sides.COLUMNS]))
    with engine_over(given, columns, report.partitions, beside) as (engine, names):
        made = computed(engine, names, report, given, request)
        found = both_sides.suspected(engine, "partitions" if report.joined else "exchanges") if sides else []
        return made | {"both_sides": found} if found else made


def computed(engine: Engine, names: Sequence[str], report: Report, given: ReportInput, request: ReportRequest) -> Row:
    """The report over the views of an engine."""
    made = by_views(engine, names, lambda: tables_of(engine, names, given), report, request, given.only)
    return {"report": report.name, "captures": given.captures} | made


def by_views(
    engine: Engine,
    names: Sequence[str],
    tables: Callable[[], Tables],
    report: Report,
    request: ReportRequest,
    *only: "Filter | None",
) -> Row:
    """The report's own keys, by SQL that is cached between runs.

    `tables` makes the tables of the engine's views `names`, and `only` is the filter among them. It is called only if the SQL
    is not known yet, and loads Ibis, which takes 0.3 s and 45 MB.
    """

    def compiled() -> dict[str, str]:
        given, made = tables(), {}
        if report.summed is not None:
            made[SUMMED], given = with_summed(engine, given, report.summed(given, request))
        made |= {name: engine.sql(expression) for name, expression in expressions_of(given, report, request).items()}
        give_back()  # releases the 50 MB of Ibis while the engine needs memory
        return made

    parts = (report.name, request, *only, [(name, engine.columns(name)) for name in names])
    statements = planned(parts, compiled)
    with engine.table(SUMMED, statements.pop(SUMMED, None)):
        results: dict[str, Rows] = {name: engine.rows(sql) for name, sql in statements.items()}
    return finished(results, report, request)


def with_summed(engine: Engine, tables: Tables, rows: Any) -> tuple[str, Tables]:
    """The SQL of the rows that the engine is to have as the table SUMMED, and the tables including it."""
    import ibis

    return engine.sql(rows), replace(tables, summed=ibis.table(rows.schema(), name=SUMMED))
