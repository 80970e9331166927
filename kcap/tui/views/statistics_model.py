"""Where the time goes: latencies by group, the digest, the slowest. Free of widgets.

In: results of the reports latency, stats and slow. Out: sheets. Law: what is shown is in the results; each count leads to as
many exchanges.
"""

from collections.abc import Sequence
from typing import Final

from kcap.output.grid import duration
from kcap.reports.definition import EDGES_NS, Key, Row, instant
from kcap.reports.text import BARS, duration_short, left_out, number, words
from kcap.tui.views import drill_down
from kcap.tui.views.grouping import keyed
from kcap.tui.views.sheet import Bars, Line, Sheet, SheetField, counted, lasting, named, sized

PARTS: Final = {
    "queue_ns": "queue", "service_ns": "broker", "rtt_ns": "network", "long_poll_ns": "long poll", "throttle_ns": "throttle",
    "muted_ns": "mute", "request_transfer_ns": "request transfer", "transfer_ns": "transfer",
}  # fmt: skip
"""Parts of a latency -> what they are called; long poll, throttle and mute are parts of what the broker took."""


def spark(counts: Sequence[int]) -> str:
    """A histogram in one cell."""
    most = max(counts, default=0)
    return "".join(BARS[max(1, round(count / most * 8))] if count else " " for count in counts)


def shown(rows: Sequence[Row]) -> tuple[int, int]:
    """The classes in which any row has something."""
    there = [at for at, column in enumerate(zip(*(row["histogram"] for row in rows))) if any(column)] or [0]
    return there[0], there[-1] + 1


def shape(rows: Sequence[Row], rank: int) -> SheetField:
    """The histogram of each row."""
    low, high = shown(rows)
    head = f"{'0' if not low else duration_short(EDGES_NS[low - 1])}…{duration_short(EDGES_NS[min(high, len(EDGES_NS)) - 1])}"
    return SheetField(
        head, lambda row: spark(row["histogram"][low:high]), rank=rank, whole=True, key=lambda row: row.get("max_ns")
    )


def histogram(row: Row, group: str, timed: str) -> Bars:
    """The classes of a row, each of which leads to its exchanges."""
    counts = row["histogram"]
    low, high = shown([row])
    labels, downs = [], []
    for at in range(low, high):
        first = EDGES_NS[at - 1] if at else None
        end = EDGES_NS[at] if at < len(EDGES_NS) else None
        labels.append(f"{duration_short(first) if first else '0'} - {duration_short(end) if end else 'more'}")
        downs.append(drill_down.every(group, timed, drill_down.within(first, end)))
    values = counts[low:high]
    return Bars("how long answers took", labels, values, [number(count) for count in values], downs)


def over_time(series: Row | None, timed: str) -> list[Bars]:
    """The figures over time."""
    if not series or len(series["count"]) < 2:
        return []
    first, step = series["first_ns"], max(1, series["step_ns"])
    starts = [first + at * step for at in range(len(series["count"]))]
    ends = [*starts[1:], None]  # the last step ends with the last exchange, which its rounded width may leave out
    downs = [drill_down.every(timed, drill_down.between(start, end)) for start, end in zip(starts, ends)]
    labels = [instant(start, 1_000_000)[11:-1] for start in starts]
    return [
        Bars(f"p99 over time, {duration(step)} a step, by orders of magnitude", labels, series["p99_ns"],
             [duration(value) for value in series["p99_ns"]], downs, logarithmic=True, upright=True),
        Bars("answers over time", labels, series["count"], [number(value) for value in series["count"]], downs, upright=True),
    ]  # fmt: skip


def percent(name: str, head: str, rank: int) -> SheetField:
    """A part of the summed latency."""

    def share(row: Row) -> float:
        return 100 * row[name] / row["sum_ns"] if row["sum_ns"] else 0.0

    return SheetField(
        head, lambda row: "" if not row[name] else f"{share(row):.0f}%" if share(row) >= 1 else "<1%", rank=rank, key=share
    )


def latency(result: Row, keys: Sequence[Key], timed: str = drill_down.TIMED) -> Sheet:
    """Percentiles by group."""
    series = over_time(result.get("over_time"), timed)

    def group(row: Row) -> str:
        return drill_down.group(keys, row)

    def at_least(name: str, head: str, rank: int = 0) -> SheetField:
        def leads(row: Row) -> str:
            return drill_down.every(group(row), timed, f"latency_ns >= {row[name]}" if row[name] is not None else None)

        return lasting(name, head, rank, down=leads)

    fields = [
        *keyed(keys),
        counted("count", down=lambda row: drill_down.every(group(row), timed), counts=lambda row: row["count"]),
        counted("unanswered", "unansw.", 3, zero=False, down=lambda row: drill_down.every(group(row), drill_down.UNANSWERED),
                counts=lambda row: row["unanswered"], tone=lambda _row: "care"),
        at_least("p50_ns", "p50"), at_least("p90_ns", "p90", 5), at_least("p95_ns", "p95", 6), at_least("p99_ns", "p99"),
        at_least("p999_ns", "p99.9", 7), at_least("max_ns", "max", 1), lasting("sum_ns", "total", 2),
        percent("queue_ns_sum", "queue", 8), percent("service_ns_sum", "broker", 9), percent("rtt_ns_sum", "net", 10),
        shape(result["rows"], 4),
        counted("long_polls", "polls", 11, zero=False, counts=lambda row: row["long_polls"],
                down=lambda row: drill_down.every(group(row), drill_down.ANSWERED, "long_poll_ns > 0")),
        SheetField("p99 with them", lambda row: duration(row["with_long_polls"]["p99_ns"]) if row["long_polls"] else "",
            rank=12,
              key=lambda row: row["with_long_polls"]["p99_ns"], down=lambda row: drill_down.every(group(row),
              drill_down.ANSWERED)),
    ]  # fmt: skip

    def charts(row: Row) -> list[Bars]:
        return [*([histogram(row, group(row), timed)] if any(row["histogram"]) else []), *series]

    def detail(row: Row, width: int) -> list[Line]:
        parts = {name: row[f"{name}_sum"] for name in PARTS if row.get(f"{name}_sum")}
        told: list[Line] = [[(", ".join(words(row[key.name]) for key in keys)[:width], "bold")]]
        whole = row["sum_ns"]
        said = ", ".join(f"{PARTS[name]} {100 * value / whole:.0f}%" for name, value in parts.items() if whole)
        told += [[(f"of the time: {said}"[: 2 * width], "dim")]] if said else []
        if row["unanswered"]:
            age = duration(row["unanswered_age_ns_max"]) or "?"
            told.append([(f"{row['unanswered']:,} unanswered, the oldest for {age}", "care")])
        return told

    doubts = ", ".join(f"{count:,} {flag}" for flag, count in (result.get("flagged") or {}).items())
    foot = "; ".join(filter(None, (left_out(result["left_out"]), f"in doubt: {doubts}" if doubts else "")))
    return Sheet("latency", fields, result["rows"], group, "no request was answered", foot=foot, detail=detail, charts=charts)


def digest(result: Row, keys: Sequence[Key]) -> Sheet:
    """The classes by their share of the time."""
    totals = result["totals"]

    def group(row: Row) -> str:
        return drill_down.group(keys, row)

    fields = [
        SheetField("share", lambda row: f"{100 * row['share']:.1f}%", key=lambda row: row["share"]),
        lasting("sum_ns", "time"),
        *keyed(keys, {"api_version": "v"}),
        counted("count", counts=lambda row: row["count"]),
        counted("errors", rank=2, zero=False, down=lambda row: drill_down.every(group(row), drill_down.FAILED),
                counts=lambda row: row["errors"], tone=lambda _row: "bad"),
        counted("unanswered", "unansw.", 6, zero=False, down=lambda row: drill_down.every(group(row), drill_down.UNANSWERED),
                counts=lambda row: row["unanswered"], tone=lambda _row: "care"),
        counted("throttled", rank=7, zero=False, down=lambda row: drill_down.every(group(row), drill_down.THROTTLED),
                counts=lambda row: row["throttled"], tone=lambda _row: "care"),
        sized("request_bytes", "asked", 8), sized("response_bytes", "answered", 9), lasting("p50_ns", "p50", 5),
        lasting("p95_ns", "p95"),
        lasting("max_ns", "max", 3, down=lambda row: drill_down.exchange(row["worst"])),
        shape(result["rows"], 4),
    ]  # fmt: skip
    seconds = ((totals["last_ns"] or 0) - (totals["first_ns"] or 0)) / 1e9
    p50, p95, most = (duration(totals[name]) or "-" for name in ("p50_ns", "p95_ns", "max_ns"))
    note = (
        f"{totals['count']:,} exchanges on {totals['connections']:,} connections in {seconds:,.1f} s; {totals['errors']:,} "
        f"with errors, {totals['unanswered']:,} unanswered, {totals['throttled']:,} throttled; p50 {p50}, p95 {p95}, max {most}"
    )
    return Sheet(
        "digest", fields, result["rows"], group, "no exchange", note=note, foot=left_out(result["left_out"]),
        charts=lambda row: [histogram(row, group(row), drill_down.TIMED)] if any(row["histogram"]) else [],
    )  # fmt: skip


def slow(result: Row) -> Sheet:
    """The slowest, each with its reason."""
    fields = [
        lasting("latency_ns", "latency", tone=lambda _row: "bold"),
        SheetField("api", lambda row: f"{row['api'] or '?'} v{words(row['api_version'])}", right=False),
        named("client_id", "client", 1),
        named("why"),
        SheetField("time", lambda row: (row["time"] or "")[11:23], right=False, rank=3),
        named("server_ip", "broker", 5),
        named("topics", "topics", 4),
        named("error", "error", 6),
        named("exchange", rank=2),
    ]  # fmt: skip
    return Sheet(
        "slowest", fields, result["rows"], lambda row: drill_down.exchange(row["exchange"]), "no request was answered",
        foot=left_out(result["left_out"]), detail=slow_detail, charts=lambda row: [spent(row)],
        connection=lambda row: row["exchange"].rpartition(".")[0],
    )  # fmt: skip


def slow_detail(row: Row, width: int) -> list[Line]:
    """One of them in words."""
    from kcap.reports.text import wrapped

    who = f"{words(row['client_id'])} {row['client_ip']} to {row['server_ip']}:{row['server_port']}"
    out: list[Line] = [
        [(f"{row['api'] or '?'} v{words(row['api_version'])}", "bold"), (f"  {duration(row['latency_ns'])}", "key")]
    ]
    out += [[(text, "")] for text in wrapped(row["why"], width)]
    out += [[(text, "dim")] for text in wrapped(who, width)]
    out += [[(text, "dim")] for text in wrapped(f"topics {words(row['topics'])}", width)] if row["topics"] else []
    return [*out, [("", "")]]


def spent(row: Row) -> Bars:
    """Where the time of one exchange went."""
    there = {name: row[name] for name in PARTS if row.get(name)}
    names = list(there)
    return Bars(
        "where the time went", [PARTS[name] for name in names], list(there.values()),
        [duration(value) for value in there.values()], [drill_down.exchange(row["exchange"])] * len(names),
    )  # fmt: skip
