"""Shows latencies by group, the digest and the slowest exchanges as sheets. Free of widgets.

In: results of the reports latency, stats and slow. Out: sheets. Law: every value is in the results; each count drills down to
as many exchanges.
"""

from collections.abc import Sequence
from typing import Final

from kcap.columns import WITHOUT_POLLS
from kcap.output.grid import counts, duration
from kcap.reports import drill_down
from kcap.reports.common_columns import bold, classes, counted, lasting, named, part, shape, sized
from kcap.reports.definition import EDGES_NS, WAITS, Key, Row, group_name
from kcap.reports.text import UNLIMITED, Style, TextColumn, count, duration_short, instant, left_out, number, words
from kcap.tui.views.grouping import keyed
from kcap.tui.views.sheet import Bars, Line, Sheet, paragraph

PARTS: Final = {
    "queue_ns": "queue", "service_ns": "broker", "rtt_ns": "network", "long_poll_ns": "long poll", "throttle_ns": "throttle",
    "muted_ns": "mute", "request_transfer_ns": "request transfer", "transfer_ns": "transfer",
}  # fmt: skip
"""Part of a latency -> its name."""
BLOCKS: Final = Style(UNLIMITED, color=False, unicode=True)
"""The style of bars in a cell."""


def apart(row: Row, end: str = "") -> dict[str, int]:
    """The parts that do not overlap: the broker's part excludes those in which it waits. `end`: suffix of the
    columns' names."""
    there = {name: row.get(f"{name}{end}") or 0 for name in PARTS}
    there["service_ns"] -= sum(there[name] for name in WAITS)
    return {name: value for name, value in there.items() if value > 0}


def histogram(row: Row, group: str, time: str = WITHOUT_POLLS) -> Bars:
    """The classes of a row, each of which leads to its exchanges. `time` is the filter's name for the counted time."""
    counts = row["histogram"]
    found = classes(counts)
    labels, downs = [], []
    for at in found:
        first = EDGES_NS[at - 1] if at else None
        end = EDGES_NS[at] if at < len(EDGES_NS) else None
        labels.append(f"{duration_short(first) if first else '0'} - {duration_short(end) if end else 'more'}")
        downs.append(drill_down.every(group, drill_down.ANSWERED, drill_down.within(first, end, time)))
    values = counts[found.start : found.stop]
    return Bars("latency distribution", labels, values, [number(count) for count in values], downs)


def over_time(series: Row | None) -> list[Bars]:
    if not series or len(series["count"]) < 2:
        return []
    first, step = series["first_ns"], max(1, series["step_ns"])
    starts = [first + at * step for at in range(len(series["count"]))]
    ends = [*starts[1:], None]  # the rounded width of the last step may exclude the last exchange
    downs = [drill_down.every(drill_down.ANSWERED, drill_down.between(start, end)) for start, end in zip(starts, ends)]
    labels = [instant(start, 1_000_000)[11:-1] for start in starts]
    return [
        Bars(f"p99 over time, {duration(step)} per interval, log scale", labels, series["p99_ns"],
             [duration(value) for value in series["p99_ns"]], downs, logarithmic=True, upright=True),
        Bars("responses over time", labels, series["count"], [number(value) for value in series["count"]], downs, upright=True),
    ]  # fmt: skip


def latency(result: Row, keys: Sequence[Key], time: str = WITHOUT_POLLS) -> Sheet:
    """Percentiles by group. `time` is the filter's name for the counted time."""
    timed, series = drill_down.ANSWERED, over_time(result.get("over_time"))

    def group(row: Row) -> str:
        return drill_down.group(keys, row)

    def at_least(name: str, head: str, rank: int = 0, time: str = time) -> TextColumn:
        def leads(row: Row) -> str:
            return drill_down.every(group(row), timed, f"{time} >= {row[name]}" if row[name] is not None else None)

        return lasting(name, head, rank, down=leads)

    fields = [
        *keyed(keys),
        counted("count", down=lambda row: drill_down.every(group(row), timed), counts=lambda row: row["count"]),
        counted("unanswered", "unansw.", 3, zero=False, down=lambda row: drill_down.every(group(row), drill_down.UNANSWERED),
                counts=lambda row: row["unanswered"], tone=lambda _row: "care"),
        at_least("p50_ns", "p50"), at_least("p90_ns", "p90", 5), at_least("p95_ns", "p95", 6), at_least("p99_ns", "p99"),
        at_least("p999_ns", "p99.9", 7), at_least("max_ns", "max", 1), lasting("sum_ns", "total", 2),
        at_least("with_polls_p99_ns", "p99 w/ polls", 3, "latency_ns"),
        at_least("with_polls_max_ns", "max w/ polls", 3, "latency_ns"),
        part("queue", 8, "queue_ns_sum"), part("mute", 8, "muted_ns_sum"), part("throttle", 8, "throttle_ns_sum"),
        part("broker", 9, "service_ns_sum", *(f"{name}_sum" for name in WAITS)), part("network", 10, "rtt_ns_sum"),
        shape(result["rows"], BLOCKS, 4, "…", right=True),
        counted("long_polls", "long polls", 11, zero=False, counts=lambda row: row["long_polls"],
                down=lambda row: drill_down.every(group(row), drill_down.ANSWERED, "long_poll_ns > 0")),
    ]  # fmt: skip

    def charts(row: Row) -> list[Bars]:
        return [*([histogram(row, group(row), time)] if any(row["histogram"]) else []), *series]

    def detail(row: Row, width: int) -> list[Line]:
        parts = apart(row, "_sum")
        out: list[Line] = [[(group_name(row, keys)[:width], "bold")]]
        sums = ", ".join(f"{PARTS[name]} {duration(value)}" for name, value in parts.items())
        out += [[(f"time: {sums}"[: 2 * width], "dim")]] if sums else []
        if row["unanswered"]:
            age = duration(row["unanswered_age_ns_max"]) or "?"
            out.append([(f"{row['unanswered']:,} unanswered, the oldest for {age}", "care")])
        return out

    flagged = counts(result.get("flagged") or {})
    foot = "; ".join(filter(None, (left_out(result["left_out"]), f"inexact times: {flagged}" if flagged else "")))
    return Sheet(
        "latency", fields, result["rows"], group, "no responses", note=result["verdict"]["sentence"], foot=foot,
        detail=detail, charts=charts,
    )  # fmt: skip


def digest(result: Row, keys: Sequence[Key]) -> Sheet:
    """The classes by their share of the time."""
    totals = result["totals"]

    def group(row: Row) -> str:
        return drill_down.group(keys, row)

    fields = [
        TextColumn("share", lambda row: f"{100 * row['share']:.1f}%", key=lambda row: row["share"]),
        lasting("sum_ns", "time"),
        *keyed(keys, {"api_version": "v"}),
        counted("count", counts=lambda row: row["count"]),
        counted("errors", rank=2, zero=False, down=lambda row: drill_down.every(group(row), drill_down.FAILED),
                counts=lambda row: row["errors"], tone=lambda _row: "bad"),
        counted("unanswered", "unansw.", 6, zero=False, down=lambda row: drill_down.every(group(row), drill_down.UNANSWERED),
                counts=lambda row: row["unanswered"], tone=lambda _row: "care"),
        counted("throttled", rank=7, zero=False, down=lambda row: drill_down.every(group(row), drill_down.THROTTLED),
                counts=lambda row: row["throttled"], tone=lambda _row: "care"),
        sized("request_bytes", "request bytes", 8), sized("response_bytes", "response bytes", 9), lasting("p50_ns", "p50", 5),
        lasting("p95_ns", "p95"),
        lasting("max_ns", "max", 3, down=lambda row: drill_down.exchange(row["worst"])),
        shape(result["rows"], BLOCKS, 4, "…", right=True),
    ]  # fmt: skip
    seconds = ((totals["last_ns"] or 0) - (totals["first_ns"] or 0)) / 1e9
    p50, p95, most = (duration(totals[name]) or "-" for name in ("p50_ns", "p95_ns", "max_ns"))
    note = (
        f"{count(totals['count'], 'exchange')} on {count(totals['connections'], 'connection')} in {seconds:,.1f} s; "
        f"{totals['errors']:,} with errors, {totals['unanswered']:,} unanswered, "
        f"{totals['throttled']:,} throttled; p50 {p50}, p95 {p95}, max {most}"
    )
    return Sheet(
        "digest", fields, result["rows"], group, "no exchanges", note=note if totals["count"] else "",
        foot=left_out(result["left_out"]),
        charts=lambda row: [histogram(row, group(row))] if any(row["histogram"]) else [],
    )  # fmt: skip


def slow(result: Row) -> Sheet:
    """The slowest exchanges, each with its reason, by the latency with or without long polls."""
    fields = [
        lasting("timed_ns", "latency", tone=bold),
        TextColumn("long poll", lambda row: duration(row["long_poll_ns"] or None), rank=3, key=lambda row: row["long_poll_ns"]),
        TextColumn("api", lambda row: f"{row['api'] or '?'} v{words(row['api_version'])}", right=False, whole=True),
        named("client_id", "client", 1),
        named("why", least=60),
        TextColumn("time", lambda row: (row["time"] or "")[11:23], right=False, rank=3, whole=True),
        named("server_ip", "broker", 5),
        named("topics", "topics", 4),
        named("error", "error", 6),
        named("exchange", rank=7),
    ]  # fmt: skip
    return Sheet(
        "slowest", fields, result["rows"], lambda row: drill_down.exchange(row["exchange"]), "no responses",
        foot=left_out(result["left_out"]), detail=slow_detail, charts=lambda row: [spent(row)],
        connection=lambda row: row["exchange"].rpartition(".")[0],
    )  # fmt: skip


def slow_detail(row: Row, width: int) -> list[Line]:
    """One exchange in words."""
    ends = f"{words(row['client_id'])} {row['client_ip']} to {row['server_ip']}:{row['server_port']}"
    out: list[Line] = [
        [(f"{row['api'] or '?'} v{words(row['api_version'])}", "bold"), (f"  {duration(row['latency_ns'])}", "key")]
    ]
    out += paragraph(row["why"], width)
    out += paragraph(ends, width, "dim")
    topics = [name for name in row["topics"] or () if name]  # some have only an id
    out += paragraph(f"topics {words(topics)}", width, "dim") if topics else []
    return [*out, [("", "")]]


def spent(row: Row) -> Bars:
    """The latency breakdown of one exchange."""
    there = apart(row)
    names = list(there)
    return Bars(
        "latency breakdown", [PARTS[name] for name in names], list(there.values()),
        [duration(value) for value in there.values()], [drill_down.exchange(row["exchange"])] * len(names),
    )  # fmt: skip
