"""The exchanges that the groups of a report count: the slowest ones, and the slowest failed ones.

In: the tables and the request of a report. Out: rows of exchanges with the columns of the grouping. Law: an exchange is listed
once in each group that counts it.
"""

from typing import Any, Final

from kcap.reports.definition import KEY, PARTS, TIMES, Grouping, Report, ReportRequest, Row, Rows, Tables, uid

COLUMNS: Final = (
    *KEY, *TIMES, "api", "api_version", "client_id", "client_ip", "server_ip", "server_port", "outcome", "reason", "error",
    "latency_ns", "age_ns", *PARTS, "request_bytes", "response_bytes",
)  # fmt: skip
"""Columns of exchanges that a listing needs."""
NAME: Final = "listing"
"""Name of the expression among those of the report."""


def listing(report: Report, tables: Tables, request: ReportRequest) -> Any:
    """For each group, up to `request.listed` failed exchanges and as many others, the slowest of each."""
    import ibis

    grouping = Grouping.of(report, request)
    by = grouping.by
    groups = report.counted(tables, request) if report.counted else grouping.rows(tables.selected)
    names = {f"of_{name}": groups[name] for name in by}  # an exchange's column and a key may have the same name
    once = groups.select(*KEY, **names).distinct()
    rows = once.join(tables.selected.select(*COLUMNS), list(KEY))
    failed = ((rows.error != "NONE").fill_null(False) | (rows.outcome == "unanswered")).fill_null(False)
    rows = rows.mutate(failed=failed)
    order = [rows.latency_ns.desc(nulls_first=False), rows.age_ns.desc(nulls_first=False), *KEY]
    ranked = rows.mutate(place_=ibis.row_number().over(ibis.window(group_by=[*names, "failed"], order_by=order)))
    return ranked.filter(ranked.place_ < request.listed).drop("place_").rename(**{name: f"of_{name}" for name in by})


def listed(report: Report, rows: Rows, request: ReportRequest) -> list[Row]:
    """The rows of the expression with their `UID.N` as `name`: failed ones first, then by latency."""
    grouping = Grouping.of(report, request)
    rows = sorted(rows, key=lambda row: (not row["failed"], -(row["latency_ns"] or row["age_ns"] or 0), *map(row.get, KEY)))
    return [grouping.named(row) | {"name": uid(row["connection"], row["exchange"])} for row in rows]
