"""Latency percentiles by group, without the time that Fetch requests waited for data (long polls).

In: exchanges. Out: one row per group, a histogram, figures over time, a verdict. Law: every answered exchange counts, with
`latency_ns - long_poll_ns`, or with `latency_ns` if long polls are requested. Percentiles are exact, interpolated linearly as
in numpy and rounded to the nearest nanosecond. Requests without a response are counted with their age.
"""

from typing import Any, Final

from kcap.output.grid import duration
from kcap.reports.definition import (
    EDGES_NS,
    LARGEST,
    PARTS,
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
    nearest_ns,
    of_busiest,
    time_of,
    total,
    without_zeros,
)
from kcap.reports.text import time_of_day

PERCENTILES: Final = {"p50_ns": 0.5, "p90_ns": 0.9, "p95_ns": 0.95, "p99_ns": 0.99, "p999_ns": 0.999}
BESIDE: Final = {"p50_ns": 0.5, "p99_ns": 0.99}
"""Percentiles of each time step, and of the figures that count unanswered requests with their age."""
INEXACT: Final = ("clock", "duplicated", "gap", "out_of_order", "retransmitted")
"""Flags of rows whose latency may be inexact."""
TIMED: Final = ("outcome", "latency_ns", "long_poll_ns")
"""Columns that `with_times` needs."""
EXACT_NS: Final = 1 << 46
"""Limit up to which time steps are computed in nanoseconds: engines divide integers as doubles, which must hold the product."""
STEPS: Final = 60
"""Number of points of the figures over time."""
SOURCE: Final = ("api", "client_ip", "client_id", "server_ip", "server_port")
"""Columns of a source as the verdict names it: an API of a client at a broker."""
HALF: Final = 0.5
"""Share from which the verdict says that a source or a part takes most of the time."""


def is_answered(rows: Any) -> Any:
    """Rows that have a latency."""
    return (rows.outcome == "answered") & rows.latency_ns.notnull()


def is_poll(rows: Any) -> Any:
    """Rows whose request waited for data."""
    return rows.long_poll_ns.fill_null(0) > 0


def with_times(rows: Any, request: ReportRequest) -> Any:
    """Adds `timed_ns`, the time that counts, `answered_ns`, the whole latency, and `at_least_ns`, the age of a request without
    a response. Each is null for rows to which it does not apply: engines skip nulls of a column faster than they test a
    condition per figure."""
    import ibis

    none = ibis.null("int64")
    time = rows.latency_ns if request.long_polls else rows.latency_ns - rows.long_poll_ns.fill_null(0)
    rows = rows.mutate(
        timed_ns=ibis.ifelse(is_answered(rows), time, none),
        answered_ns=ibis.ifelse(is_answered(rows), rows.latency_ns, none),
    )
    if "age_ns" not in rows.columns:
        return rows
    return rows.mutate(at_least_ns=ibis.ifelse(rows.outcome == "unanswered", rows.age_ns, rows.timed_ns))


def build(tables: Tables, request: ReportRequest) -> Expressions:
    """Expressions of the groups, the figures over time, the source of most time, and what is not counted."""
    grouping = Grouping.of(REPORT, request)
    timed = with_times(tables.selected, request)
    rows, by = grouping.rows(timed.mutate(**parts_where(timed.timed_ns.notnull(), timed))), grouping.by
    if request.busiest is not None:
        needed = dict.fromkeys((*(name for key in grouping.keys for name in key.columns), *TIMED))
        slim = grouping.rows(with_times(tables.selected.select(*needed), request))  # see `answered`
        rows = of_busiest(rows, slim, by, added(slim.timed_ns), request.busiest)
    waiting, value = rows.outcome == "unanswered", rows.timed_ns
    figures = {
        "count": total(value.notnull()),
        "unanswered": total(waiting),
        "min_ns": value.min(),
        "percentiles": value.quantile(list(PERCENTILES.values())),
        "max_ns": value.max(),
        "sum_ns": added(value),
        "with_polls_max_ns": rows.answered_ns.max(),
        **{f"{part}_sum": added(rows[part]) for part in PARTS},
        "unanswered_age_ns_max": rows.age_ns.max(where=waiting),
        "long_polls": total(is_poll(rows)),
    }
    # An engine holds all values of a quantile in memory, those of several at once if they are in one statement.
    beside_figures = {
        "with_polls": rows.answered_ns.quantile([PERCENTILES["p99_ns"]]),
        "with_unanswered": rows.at_least_ns.quantile(list(BESIDE.values())),
    }
    counted = timed.timed_ns.notnull()
    beside = {
        "unanswered": total(timed.outcome == "unanswered"),
        "one_way": total(timed.outcome == "one_way"),
        "orphan": total(timed.outcome == "orphan"),
        "no_latency": total((timed.outcome == "answered") & timed.latency_ns.isnull()),
        **grouping.without(timed),
        **{f"flag_{flag}": total(timed.flags.contains(flag) & counted) for flag in INEXACT},
        "age_ns_max": timed.age_ns.max(where=timed.outcome == "unanswered"),
        "all_ns": added(timed.timed_ns),
    }
    return {
        "rows": rows.group_by(by).aggregate(**figures),
        **{name: rows.group_by(by).aggregate(percentiles=figure) for name, figure in beside_figures.items()},
        "histograms": histogram(rows, by, "timed_ns"),
        "left_out": timed.aggregate(**beside),
        "over_time": over_time(tables.selected, request),
        "source_steps": source_steps(tables.selected, request),
    }


def parts_where(condition: Any, rows: Any) -> dict[str, Any]:
    """The parts of the latency, null where a condition does not hold (see `with_times`)."""
    import ibis

    return {part: ibis.ifelse(condition, rows[part], ibis.null("int64")) for part in PARTS}


def steps(rows: Any, span: Any) -> Any:
    """The rows with the number of their step, a sixtieth of the time span of all rows."""
    rows = rows.mutate(at_ns=time_of(rows), one=1).filter(lambda some: some.at_ns.notnull())
    both = rows.join(span.mutate(one_=1), rows.one == span.mutate(one_=1).one_)
    span_ns = both.last_ns - both.first_ns
    unit = span_ns // EXACT_NS + 1  # 1 ns except in captures of many hours; over decades the product in nanoseconds overflows
    return both.mutate(step=((both.at_ns - both.first_ns) // unit * STEPS) // (span_ns // unit + 1))


def span_of(rows: Any) -> Any:
    """First and last time of the rows, as a table with one row."""
    return rows.mutate(at_ns=time_of(rows)).aggregate(
        first_ns=lambda some: some.at_ns.min(), last_ns=lambda some: some.at_ns.max()
    )


def answered(rows: Any, request: ReportRequest, *names: str) -> Any:
    """The answered exchanges: some of their columns, and their `timed_ns`.

    A subquery that a statement uses twice would be computed once and held, or written to disk if it does not fit. The engine
    treats two with different columns as distinct, and reading twice is quicker.
    """
    timed = with_times(rows.select(*dict.fromkeys((*names, *TIMED))), request)
    return timed.filter(timed.timed_ns.notnull()).select(*names, "timed_ns")


def over_time(rows: Any, request: ReportRequest) -> Any:
    """Figures of each step of the time span of the answered exchanges."""
    step = steps(answered(rows, request, *TIMES), span_of(answered(rows, request, *TIMES, "api")))
    return step.group_by("step", "first_ns", "last_ns").aggregate(
        count=step.timed_ns.count(), percentiles=step.timed_ns.quantile(list(BESIDE.values())), max_ns=step.timed_ns.max()
    )


def source_steps(rows: Any, request: ReportRequest) -> Any:
    """The source with the largest sum: its sum and the parts of its time in each step."""
    import ibis

    found = answered(rows, request, *SOURCE).group_by(SOURCE).aggregate(sum_ns=lambda some: added(some.timed_ns))
    first = found.order_by([ibis.desc("sum_ns"), *SOURCE]).limit(1)
    some = answered(rows, request, *TIMES, *SOURCE, *PARTS)
    same = some.semi_join(first, [some[name].identical_to(first[name]) for name in SOURCE])
    step = steps(same, span_of(answered(rows, request, *TIMES)))
    return step.group_by("step", "first_ns", "last_ns", *SOURCE).aggregate(
        count=step.count(), sum_ns=added(step.timed_ns), **{f"{part}_sum": added(step[part]) for part in PARTS}
    )


def source_of(steps: list[Row]) -> Row | None:
    """The source as a whole, from its steps; None if no request was answered."""
    if not steps:
        return None
    sums = {name: sum(row[name] for row in steps) for name in ("count", "sum_ns", *(f"{part}_sum" for part in PARTS))}
    return {name: steps[0][name] for name in SOURCE} | {
        name: max(-LARGEST, min(LARGEST, value)) for name, value in sums.items()
    }


def finish(results: Results, request: ReportRequest) -> Row:
    """Adds names to the percentiles, and sorts the groups by time, the largest first."""
    grouping = Grouping.of(REPORT, request)
    by = grouping.by
    shapes = classes(results["histograms"], by)
    quantiles = [{group_of(row, by): row["percentiles"] for row in results[name]} for name in ("with_polls", "with_unanswered")]
    out = []
    for row in results["rows"]:
        group = group_of(row, by)
        with_polls, with_unanswered = (found.get(group) for found in quantiles)
        made: Row = {}
        for name, value in with_quantiles(grouping.named(row), PERCENTILES).items():
            if name == "with_polls_max_ns":
                made["with_polls_p99_ns"] = nearest_ns((with_polls or [None])[0])
            made[name] = value
        made["with_unanswered"] = figures(BESIDE, with_unanswered)
        made["histogram"] = shapes.get(group, empty())
        out.append(made)
    left = dict(results["left_out"][0])
    flagged = {name.removeprefix("flag_"): left.pop(name) for name in list(left) if name.startswith("flag_")}
    age, whole = left.pop("age_ns_max"), left.pop("all_ns")
    return {
        "rows": grouping.in_order(out, lambda row: (row["count"] == 0, -row["sum_ns"])),
        "left_out": left,
        "verdict": verdict(results, whole, left["unanswered"], age, long_polls=request.long_polls),
        "with_long_polls": request.long_polls,
        "flagged": without_zeros(flagged),
        "histogram_edges_ns": list(EDGES_NS),
        "over_time": series(results["over_time"]),
    }


def with_quantiles(row: Row, names: dict[str, float]) -> Row:
    """The row with one entry for each of its `percentiles`, in the place of that list."""
    at, items = list(row).index("percentiles"), list(row.items())
    return dict(items[:at]) | figures(names, row["percentiles"]) | dict(items[at + 1 :])


def figures(names: dict[str, float], values: Any) -> Row:
    """Quantiles by name."""
    return {name: nearest_ns(value) for name, value in zip(names, values if values is not None else [None] * len(names))}


def parts_of(row: Row, *, long_polls: bool) -> dict[str, int]:
    """Sums of the parts of the counted time. The broker's own part is the service time less its named parts."""
    inner = {"long poll": row["long_poll_ns_sum"], "throttle": row["throttle_ns_sum"], "mute": row["muted_ns_sum"]}
    broker = row["service_ns_sum"] - sum(inner.values())
    if not long_polls:
        del inner["long poll"]
    return {"network": row["rtt_ns_sum"], "queue": row["queue_ns_sum"], "broker": broker, **inner}


WHERE: Final = {
    "network": "on the network between the tap and the broker",
    "queue": "in the queue behind earlier requests of the connection",
    "broker": "in the broker, or in network delay and retransmissions beyond the smallest round trip",
    "long poll": "in long polls",
    "throttle": "in the broker's delay of throttled responses",
    "mute": "while the connection was muted after a throttled response",
}
"""Part -> the place where the time was spent."""
WHERE_WRITTEN: Final = WHERE["broker"].replace("broker,", "broker (with acks=all also in its wait for followers),")
"""The same for the broker's part of writes."""


def verdict(results: Results, whole: int, unanswered: int, age_ns: int | None, *, long_polls: bool) -> Row:
    """The source of most time, the largest part of that time, and the shortest run of steps with half of it, as values and as a
    sentence. The sentence says that something dominates only if it takes half or more."""
    from kcap.reports.text import words

    found: Row = {"sentence": "No request was answered."}
    source = source_of(results["source_steps"])
    if source is not None and whole > 0:
        parts = parts_of(source, long_polls=long_polls)
        part = max(parts, key=lambda name: parts[name])
        first_ns, last_ns, share_of_span = half_of(results["source_steps"], source["sum_ns"])
        share, part_share = source["sum_ns"] / whole, parts[part] / source["sum_ns"] if source["sum_ns"] else 0.0
        found = {name: source[name] for name in (*SOURCE, "count", "sum_ns")}
        found |= {
            "share": round(share, 6),
            "part": part,
            "part_share": round(part_share, 6),
            "first_ns": first_ns,
            "last_ns": last_ns,
        }
        who = f"{source['api'] or 'An unknown API'} of client {words(source['client_id'])} ({source['client_ip']}) at broker "
        who += f"{source['server_ip']}:{source['server_port']}"
        takes = "takes" if share >= HALF else "has the largest share, but only"
        text = f"{who} {takes} {percent(share)} of the summed latency ({duration(source['sum_ns'])} of {duration(whole)}, "
        text += f"{source['count']:,} exchanges)"
        where = WHERE_WRITTEN if part == "broker" and source["api"] == "Produce" else WHERE[part]
        spent = f"{percent(part_share)} of that is spent {where}"
        text += (
            f"; {spent}."
            if part_share >= HALF
            else f"; no part has half of that, the largest is {percent(part_share)} {where}."
        )
        if first_ns is not None and last_ns is not None:
            between = f"between {time_of_day(first_ns)} and {time_of_day(last_ns)}"
            text += f" Half of it belongs to requests sent {between}, {percent(share_of_span)} of the captured time."
        found["sentence"] = text
    elif source is not None:
        found = {"sentence": "The summed latency is not above zero: the clock of the capture does not show what dominates."}
    found["sentence"] += without_response(unanswered, age_ns)
    return found


def without_response(many: int, age_ns: int | None) -> str:
    """The number of requests without a response and the age of the oldest, as a sentence to append."""
    oldest = "" if age_ns is None else f", the oldest after {duration(age_ns)}"
    return f" {many:,} {'requests have' if many > 1 else 'request has'} no response{oldest}." if many else ""


def percent(share: float) -> str:
    """`83%`; never 100 for less than all, never 0 for more than nothing."""
    return "<1%" if 0 < share < 0.01 else ">99%" if 0.99 < share < 1 else f"{100 * share:.0f}%"


def half_of(rows: list[Row], whole: int) -> tuple[int | None, int | None, float]:
    """Start and end of the shortest run of steps with half of a sum (the first of several), and its share of all steps."""
    if not rows or whole <= 0:
        return None, None, 0.0
    first_ns, last_ns = rows[0]["first_ns"], rows[0]["last_ns"]
    sums = [0] * STEPS
    for row in rows:
        sums[row["step"]] = row["sum_ns"]
    low = spent = 0
    best = (STEPS + 1, 0, 0)
    for high, value in enumerate(sums):
        spent += value
        while low < high and (spent - sums[low]) * 2 >= whole:
            spent -= sums[low]
            low += 1
        if spent * 2 >= whole and high + 1 - low < best[0]:
            best = high + 1 - low, low, high + 1
    width, low, high = best
    if width > STEPS:
        return None, None, 0.0
    length = last_ns - first_ns + 1
    return first_ns + -(-low * length // STEPS), first_ns + high * length // STEPS, width / STEPS


def series(rows: list[Row]) -> Row | None:
    """The figures over time as lists; None if there are none. A step without rows has null."""
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
    ("outcome", "latency_ns", "age_ns", "flags", *SOURCE, *PARTS, *TIMES),
    build,
    finish,
    sides=True,
)
