"""How long answers took, and of what: percentiles by group, long polls apart.

In: exchanges. Out: a row a group, a histogram, the figures over time. Law: percentiles are exact, interpolated as numpy does
and rounded to the nearest nanosecond; what is not among them is counted: long polls, requests without an answer with their age.
"""

from typing import Any, Final

from kcap.reports.definition import (
    EDGES_NS,
    PARTS,
    TIMES,
    Expressions,
    Report,
    ReportRequest,
    Results,
    Row,
    Tables,
    added,
    classes,
    counts_without,
    cut,
    empty,
    grouped,
    histogram,
    keys_of,
    named,
    names_by,
    nearest_ns,
    sort_value,
    time_of,
    total,
    without_zeros,
)

PERCENTILES: Final = {"p50_ns": 0.5, "p90_ns": 0.9, "p95_ns": 0.95, "p99_ns": 0.99, "p999_ns": 0.999}
BESIDE: Final = {"p50_ns": 0.5, "p99_ns": 0.99}
"""Of the figures with long polls in, and of those with unanswered requests at their age."""
DOUBTS: Final = ("clock", "duplicated", "gap", "out_of_order", "retransmitted")
"""Flags of rows whose latency may be less than exact."""
EXACT_NS: Final = 1 << 46
"""Up to here steps of time are worked out in nanoseconds: engines divide integers as doubles, which must hold the product."""
STEPS: Final = 60
"""Points of the figures over time."""


def is_answered(rows: Any) -> Any:
    """Rows that have a latency."""
    return (rows.outcome == "answered") & rows.latency_ns.notnull()


def is_poll(rows: Any) -> Any:
    """Rows that waited for data, as they had asked to."""
    return rows.long_poll_ns.fill_null(0) > 0


def is_timed(rows: Any, asked: ReportRequest) -> Any:
    """Rows whose latency counts."""
    return is_answered(rows) if asked.long_polls else is_answered(rows) & ~is_poll(rows)


def with_times(rows: Any, asked: ReportRequest) -> Any:
    """The rows with the latencies that count, those of all answers, and those beside the ages of the unanswered: null where a
    row has none. An engine takes a null column faster than a condition on each figure."""
    import ibis

    none = ibis.null("int64")
    rows = rows.mutate(
        timed_ns=ibis.ifelse(is_timed(rows, asked), rows.latency_ns, none),
        answered_ns=ibis.ifelse(is_answered(rows), rows.latency_ns, none),
    )
    if "age_ns" not in rows.columns:
        return rows
    return rows.mutate(at_least_ns=ibis.ifelse(rows.outcome == "unanswered", rows.age_ns, rows.timed_ns))


def build(tables: Tables, asked: ReportRequest) -> Expressions:
    """The groups, the figures over time, what is left out."""
    keys = keys_of(REPORT, asked)
    rows, by = grouped(with_times(tables.kept, asked), keys), names_by(keys)
    waiting, value = rows.outcome == "unanswered", rows.timed_ns
    timed = value.notnull()
    figures = {
        "count": total(timed),
        "unanswered": total(waiting),
        "min_ns": value.min(),
        "percentiles": value.quantile(list(PERCENTILES.values())),
        "max_ns": value.max(),
        "sum_ns": added(value),
        **{f"{part}_sum": added(rows[part], timed) for part in PARTS},
        "unanswered_age_ns_max": rows.age_ns.max(where=waiting),
        "long_polls": total(rows.answered_ns.notnull() & is_poll(rows)),
        "with_polls": rows.answered_ns.quantile(list(BESIDE.values())),
        "with_polls_max_ns": rows.answered_ns.max(),
        "with_unanswered": rows.at_least_ns.quantile(list(BESIDE.values())),
    }
    flagged = {f"flag_{flag}": total(tables.kept.flags.contains(flag) & is_timed(tables.kept, asked)) for flag in DOUBTS}
    polls = total(is_answered(tables.kept) & is_poll(tables.kept))
    left: dict[str, Any] = {
        "long_poll": polls * 0 if asked.long_polls else polls,
        "unanswered": total(tables.kept.outcome == "unanswered"),
        "one_way": total(tables.kept.outcome == "one_way"),
        "orphan": total(tables.kept.outcome == "orphan"),
        "no_latency": total((tables.kept.outcome == "answered") & tables.kept.latency_ns.isnull()),
        **counts_without(tables.kept, keys),
    }
    return {
        "rows": rows.group_by(by).aggregate(**figures),
        "histograms": histogram(rows, by, "timed_ns"),
        "left_out": tables.kept.aggregate(**left, **flagged),
        "over_time": over_time(tables, asked),
    }


def over_time(tables: Tables, asked: ReportRequest) -> Any:
    """Figures of each sixtieth of the time that the rows take."""
    rows = tables.kept.filter(is_timed(tables.kept, asked))
    rows = rows.mutate(at_ns=time_of(rows)).filter(lambda some: some.at_ns.notnull())
    rows = rows.select("at_ns", "latency_ns", "service_ns", one=1)
    span = rows.aggregate(first_ns=rows.at_ns.min(), last_ns=rows.at_ns.max()).mutate(one_=1)
    both = rows.join(span, rows.one == span.one_)
    span_ns = both.last_ns - both.first_ns
    unit = span_ns // EXACT_NS + 1  # 1 ns but for captures of many hours; with decades in nanoseconds the product overflows
    step = both.mutate(step=((both.at_ns - both.first_ns) // unit * STEPS) // (span_ns // unit + 1))
    return step.group_by("step", "first_ns", "last_ns").aggregate(
        count=step.latency_ns.count(),
        percentiles=step.latency_ns.quantile(list(BESIDE.values())),
        max_ns=step.latency_ns.max(),
    )


def finish(results: Results, asked: ReportRequest) -> Row:
    """Names for the percentiles; most time first."""
    keys = keys_of(REPORT, asked)
    by = names_by(keys)
    shapes = classes(results["histograms"], by)
    out = []
    for row in results["rows"]:
        shape = shapes.get(tuple(row[name] for name in by), empty())
        row = named(dict(row), keys)
        sum_at = list(row).index("max_ns")
        quantiles = figures(PERCENTILES, row.pop("percentiles"))
        row = dict(list(row.items())[: sum_at - 1]) | quantiles | dict(list(row.items())[sum_at - 1 :])
        polls = row.pop("with_polls")
        row["with_long_polls"] = {
            "count": row["count"] + (0 if asked.long_polls else row["long_polls"]),
            **figures(BESIDE, polls), "max_ns": row.pop("with_polls_max_ns"),
        }  # fmt: skip
        row["with_unanswered"] = figures(BESIDE, row.pop("with_unanswered"))
        row["histogram"] = shape
        out.append(row)
    out = in_order(out, [key.name for key in keys], "time" if any(key.step_ns for key in keys) else None)
    left = dict(results["left_out"][0])
    flagged = {name.removeprefix("flag_"): left.pop(name) for name in list(left) if name.startswith("flag_")}
    return {
        "rows": cut(out, asked.top),
        "left_out": without_zeros(left),
        "flagged": without_zeros(flagged),
        "histogram_edges_ns": list(EDGES_NS),
        "over_time": series(results["over_time"]),
    }


def figures(names: dict[str, float], values: Any) -> Row:
    """Quantiles by name."""
    return {name: nearest_ns(value) for name, value in zip(names, values if values is not None else [None] * len(names))}


def in_order(rows: list[Row], names: list[str], time: str | None) -> list[Row]:
    """Most time first, ties by name; along the time where that is asked for."""
    rows.sort(key=lambda row: [sort_value(row[name]) for name in names])
    if time is None:
        rows.sort(key=lambda row: (row["count"] == 0, -row["sum_ns"]))
    else:
        rows.sort(key=lambda row: sort_value(row[time]))
    return rows


def series(rows: list[Row]) -> Row | None:
    """The figures over time as lists, None where nothing has a point; a step without rows has null."""
    if not rows:
        return None
    first, last = rows[0]["first_ns"], rows[0]["last_ns"]
    found = {row["step"]: row for row in rows}
    steps = [found.get(at) for at in range(STEPS if last > first else 1)]
    quantiles = [figures(BESIDE, row["percentiles"]) if row else dict.fromkeys(BESIDE) for row in steps]
    return {
        "first_ns": first,
        "step_ns": (last - first + 1) // STEPS,
        "count": [row["count"] if row else 0 for row in steps],
        "p50_ns": [row["p50_ns"] for row in quantiles],
        "p99_ns": [row["p99_ns"] for row in quantiles],
        "max_ns": [row["max_ns"] if row else None for row in steps],
    }


REPORT: Final = Report(
    "latency",
    ("api",),
    ("outcome", "latency_ns", "age_ns", "flags", *PARTS, *TIMES),
    build,
    finish,
)
