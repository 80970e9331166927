"""The digest: where the time went, by class of request.

In: exchanges. Out: one row per class, largest summed latency first, with its share and its slowest exchange; totals of all
classes. Law: shares are of the latency summed over all classes; every exchange counts in `count`, every answered one in the
times. These are those of the latency report: without long polls unless they are requested.
"""

from typing import Any, Final

from kcap.reports.definition import (
    EDGES_NS,
    KEY,
    TIMES,
    Expressions,
    Grouping,
    Report,
    ReportRequest,
    Results,
    Row,
    Tables,
    added,
    classes,
    empty,
    group_of,
    histogram,
    slowest,
    summed,
    time_of,
    total,
    uid,
)
from kcap.reports.latency import is_poll, with_quantiles, with_times

DIGITS: Final = 6
"""Decimal places of a share."""
PERCENTILES: Final = {"p50_ns": 0.5, "p95_ns": 0.95}


def sums(rows: Any) -> dict[str, Any]:
    """Figures of a class whose sum over classes is the total."""
    return {
        "count": rows.count(),
        "timed": rows.timed_ns.count(),
        "errors": total(rows.error_code != 0),
        "unanswered": total(rows.outcome == "unanswered"),
        "one_way": total(rows.outcome == "one_way"),
        "long_polls": total(rows.answered_ns.notnull() & is_poll(rows)),
        "throttled": total(rows.throttle_time_ms > 0),
        "request_bytes": summed(rows.request_bytes),
        "response_bytes": summed(rows.response_bytes),
        "sum_ns": added(rows.timed_ns),
    }


def figures(rows: Any) -> dict[str, Any]:
    """Figures of a class that cannot be summed."""
    return {
        "percentiles": rows.timed_ns.quantile(list(PERCENTILES.values())),
        "max_ns": rows.timed_ns.max(),
    }


def build(tables: Tables, request: ReportRequest) -> Expressions:
    """Expressions of the classes, the totals, and the slowest exchange of each class."""
    grouping = Grouping.of(REPORT, request)
    selected = with_times(tables.selected, request)
    rows, by = grouping.rows(selected), grouping.by
    left = {
        "orphan": total(selected.outcome == "orphan"),
        "no_latency": total((selected.outcome == "answered") & selected.latency_ns.isnull()),
        **grouping.without(selected),
    }
    out = {
        "rows": rows.group_by(by).aggregate(**sums(rows), **figures(rows), worst=slowest(rows, rows.timed_ns)),
        "histograms": histogram(rows, by, "timed_ns"),
    }
    beside: dict[str, Any] = {}
    if any(key.entry for key in grouping.keys):  # a row may be in several groups or in none: sums are no totals
        beside = sums(selected)
        out["histogram"] = histogram(selected, [], "timed_ns")
    all_ = {f"left_{name}": count for name, count in left.items()} | beside | figures(selected)
    all_ |= {"first_ns": time_of(selected).min(), "last_ns": time_of(selected).max()}
    return out | {"totals": selected.aggregate(**all_, connections=selected.connection.nunique())}


def finish(results: Results, request: ReportRequest) -> Row:
    """Most time first."""
    grouping = Grouping.of(REPORT, request)
    by = grouping.by
    shapes = classes(results["histograms"], by)
    found = results["rows"]
    totals = dict(results["totals"][0])
    left = {name.removeprefix("left_"): totals.pop(name) for name in list(totals) if name.startswith("left_")}
    if "histogram" in results:
        shape = classes(results["histogram"], []).get((), empty())
    else:
        totals = {name: sum(row[name] for row in found) for name in SUMS} | totals
        shape = [sum(column) for column in zip(*shapes.values())] or empty()
    totals = with_quantiles(totals, PERCENTILES) | {"histogram": shape}
    left |= {name: totals[name] for name in ("unanswered", "one_way")}
    whole = sum(row["sum_ns"] for row in found)
    out = []
    for row in found:
        at = group_of(row, by)
        row = with_quantiles(grouping.named(row), PERCENTILES)
        row["share"] = round(row["sum_ns"] / whole, DIGITS) if whole else 0.0
        worst = row.pop("worst")
        row["worst"] = worst and uid(worst["connection"], worst["exchange"])
        row["histogram"] = shapes.get(at, empty())
        out.append(row)
    return {
        "totals": totals,
        "rows": grouping.in_order(out, lambda row: (-row["sum_ns"], -row["count"])),
        "left_out": left,
        "histogram_edges_ns": list(EDGES_NS),
    }


SUMS: Final = (
    "count", "timed", "errors", "unanswered", "one_way", "long_polls", "throttled", "request_bytes", "response_bytes", "sum_ns",
)  # fmt: skip


REPORT: Final = Report(
    "stats",
    ("api", "api_version", "client_id"),
    (
        *KEY, "outcome", "error_code", "latency_ns", "long_poll_ns", "throttle_time_ms", "request_bytes", "response_bytes",
        *TIMES,
    ),
    build,
    finish,
    begins=True,
)  # fmt: skip
