"""Each report as text for people.

In: the result of a report, the style of the terminal, the command that was typed. Out: lines. Law: what is shown is in the
result; nothing is worked out here.
"""

from collections.abc import Callable, Sequence
from typing import Final

from kcap.output.grid import duration
from kcap.reports.text import (
    Row,
    Style,
    TextColumn,
    clock,
    duration_short,
    folded,
    left_out,
    lines,
    milliseconds,
    number,
    size,
    spark,
    spark_log,
    story,
    words,
    wrapped,
)

SHOWN: Final = 10
"""Rows of what stands beside a report."""


def named(name: str, head: str | None = None, rank: int = 0, right: bool = False) -> TextColumn:
    """A column of values as they are."""
    return TextColumn(head or name, lambda row: words(row.get(name)), right=right, rank=rank)


def counted(name: str, head: str | None = None, rank: int = 0) -> TextColumn:
    """A number."""
    return TextColumn(head or name, lambda row: number(row.get(name)), rank=rank)


def lasting(name: str, head: str, rank: int = 0) -> TextColumn:
    """A duration in nanoseconds."""
    return TextColumn(head, lambda row: duration(row.get(name)), rank=rank)


def sized(name: str, head: str, rank: int = 0) -> TextColumn:
    """Bytes."""
    return TextColumn(head, lambda row: size(row.get(name)), rank=rank)


def some(name: str, head: str, rank: int = 0) -> TextColumn:
    """A number that is left out where it is 0."""
    return TextColumn(head, lambda row: number(row.get(name) or None), rank=rank)


def parts(name: str, head: str, rank: int) -> TextColumn:
    """A part of the summed latency, as a percentage."""

    def text(row: Row) -> str:
        whole = row["sum_ns"]
        share = 100 * row[name] / whole if whole else 0
        return "" if not row[name] else f"{share:.0f}%" if share >= 1 else "<1%"

    return TextColumn(head, text, rank=rank)


def shape(result: Row, style: Style, rank: int) -> TextColumn:
    """The histogram of each row as bars, over the classes in which any row has something."""
    counts = [sum(column) for column in zip(*(row["histogram"] for row in result["rows"]))]
    there = [at for at, count in enumerate(counts) if count] or [0]
    low, high, edges = there[0], there[-1] + 1, result["histogram_edges_ns"]
    first = "0" if low == 0 else duration_short(edges[low - 1])
    last = duration_short(edges[high - 1]) if high - 1 < len(edges) else "more"
    return TextColumn(f"{first} to {last}", lambda row: spark(row["histogram"][low:high], style), False, rank, whole=True)


def frame(
    result: Row, columns: Sequence[TextColumn], style: Style, empty: str, red: Callable[[Row], bool] | None = None
) -> list[str]:
    """The table, or what to say where it has no rows."""
    return lines(result["rows"], columns, style, red) if result["rows"] else [empty]


def foot(result: Row, style: Style) -> list[str]:
    """What is not in the table."""
    return [style.dim(text) for text in wrapped(left_out(result["left_out"]), style.width, "  ")]


def latency(result: Row, style: Style, by: Sequence[str], _files: Sequence[str]) -> list[str]:
    """Percentiles by group; then the histogram of all, and the figures over time."""
    columns = [
        *(named(name) for name in by), counted("count"), some("unanswered", "unansw.", 3),
        lasting("p50_ns", "p50"), lasting("p90_ns", "p90", 4), lasting("p95_ns", "p95", 6), lasting("p99_ns", "p99"),
        lasting("p999_ns", "p99.9", 5), lasting("max_ns", "max"), lasting("sum_ns", "total", 2),
        parts("queue_ns_sum", "queue", 7), parts("service_ns_sum", "service", 8), parts("rtt_ns_sum", "net", 9),
        shape(result, style, 1),
        some("long_polls", "polls", 10), TextColumn("p99 with them", lambda row: duration(row["with_long_polls"]["p99_ns"])
                                                if row["long_polls"] else "", rank=11),
    ]  # fmt: skip
    out = frame(result, columns, style, "no request was answered")
    out += ["", *bars(result, style)] if result["rows"] else []
    series = result.get("over_time")
    if series and len(series["count"]) > 1:
        step, points = duration(series["step_ns"]), len(series["count"])
        width = max(10, min(points, style.width - 40))
        out += ["", style.bold(f"over time, {step} a step")]
        for name, text, draw in (("count", number, spark), ("p50_ns", duration, spark_log), ("p99_ns", duration, spark_log)):
            values = folded(series[name], width, sum if name == "count" else max)
            there = [value for value in series[name] if value is not None]
            told = f"{text(min(there))} to {text(max(there))}" if there else ""
            out.append(f"  {name.removesuffix('_ns'):<5} {draw(values, style)}  {told}")
    flagged = result.get("flagged") or {}
    if flagged:
        told = ", ".join(f"{count:,} {flag}" for flag, count in flagged.items())
        out += ["", *wrapped(f"counted, with a flag that makes their times less than sure: {told}", style.width, "  ")]
    return [*out, "", *foot(result, style)] if result["left_out"] else out


def bars(result: Row, style: Style) -> list[str]:
    """The histogram of all rows, a line a class from the first that has anything to the last."""
    rows = [row["histogram"] for row in result["rows"]]
    counts = [sum(column) for column in zip(*rows)]
    edges = result["histogram_edges_ns"]
    there = [at for at, count in enumerate(counts) if count]
    if not there:
        return []
    most, room = max(counts), max(10, min(50, style.width - 30))
    block = "█" if style.unicode else "#"
    out = [style.bold("latency of the rows above")]
    for at in range(there[0], there[-1] + 1):
        low = "below" if at == 0 else duration_short(edges[at - 1])
        high = duration_short(edges[at]) if at < len(edges) else "more"
        length = round(counts[at] / most * room)
        bar = block * length if length or not counts[at] else ("▏" if style.unicode else "|")
        out.append(f"  {low:>6} - {high:<6} {counts[at]:>9,}  {bar}".rstrip())
    return out


def stats(result: Row, style: Style, by: Sequence[str], files: Sequence[str]) -> list[str]:
    """What the capture is, what it holds, the classes by their share of the time."""
    out = []
    health = result.get("health")
    if health:
        out.append(style.bold(health["sentence"]) if health["verdict"] == "good" else style.red(health["sentence"]))
        out += [text for point in health["points"] if point["name"] in FACTS or point["verdict"] != "good"
                for text in wrapped(f"  {point['name']}: {point['sentence']}", style.width, "    ")]  # fmt: skip
        out.append("")
    totals = result["totals"]
    seconds = ((totals["last_ns"] or 0) - (totals["first_ns"] or 0)) / 1e9
    rate = f", {totals['count'] / seconds:,.1f} a second" if seconds > 0 else ""
    out += wrapped(
        f"{totals['count']:,} exchanges on {totals['connections']:,} connections in {seconds:,.1f} s{rate}; "
        f"{totals['errors']:,} with errors, {totals['unanswered']:,} unanswered, {totals['throttled']:,} throttled; "
        f"{size(totals['request_bytes'])} asked, {size(totals['response_bytes'])} answered; latency p50 "
        f"{duration(totals['p50_ns']) or '-'}, p95 {duration(totals['p95_ns']) or '-'}, max "
        f"{duration(totals['max_ns']) or '-'}, {duration(totals['sum_ns']) or '0s'} in all",
        style.width,
    )
    out += ["", *bars({"rows": [totals], "histogram_edges_ns": result["histogram_edges_ns"]}, style), ""]
    for rank, row in enumerate(result["rows"], 1):
        row["rank"] = rank
    columns = [
        counted("rank", "#"), TextColumn("share", lambda row: f"{100 * row['share']:.1f}%"), lasting("sum_ns", "time"),
        *(named(name, {"api_version": "v"}.get(name), right=name == "api_version") for name in by),
        counted("count"), some("errors", "errors", 2), some("unanswered", "unansw.", 6), some("throttled", "throttled", 7),
        sized("request_bytes", "asked", 8), sized("response_bytes", "answered", 9), lasting("p50_ns", "p50", 5),
        lasting("p95_ns", "p95"), lasting("max_ns", "max", 3),
        shape(result, style, 4),
        TextColumn("worst", lambda row: row["worst"] or "", right=False, rank=10),
    ]  # fmt: skip
    out += frame(result, columns, style, "no exchange", lambda row: row["errors"] * 2 > row["count"])
    for row in result["rows"]:
        del row["rank"]
    worst = [row for row in result["rows"] if row["worst"]][:3]
    if worst and files:
        out += ["", style.bold("the worst of the first classes")]
        out += [f"  {duration(row['max_ns']):>7}  kcap show {shell(files)} {row['worst']}" for row in worst]
    return [*out, "", *foot(result, style)] if result["left_out"] else out


FACTS: Final = ("files", "packets", "connections")


def shell(files: Sequence[str]) -> str:
    """Paths as a shell takes them."""
    from shlex import quote

    return " ".join(map(quote, files))


def slow(result: Row, style: Style, _by: Sequence[str], files: Sequence[str]) -> list[str]:
    """The slowest with their reasons."""
    columns = [
        TextColumn("latency", lambda row: duration(row["latency_ns"])), named("exchange"),
        TextColumn("time", lambda row: (row["time"] or "")[11:23], right=False, rank=2),
        TextColumn("api", lambda row: f"{row['api'] or '?'} v{words(row['api_version'])}", right=False),
        named("client_id", "client", 3), named("server_ip", "broker", 5), named("topics", "topics", 4),
        lasting("transfer_ns", "transfer", 6), named("why"),
    ]  # fmt: skip
    if style.width < NARROW:
        columns = [columns[0], columns[3], columns[1]]
        out = []
        for text, row in zip(lines(result["rows"], columns, style)[1:], result["rows"]):
            out += [style.bold(text), *(f"  {part}" for part in wrapped(reason_with(row), style.width - 4, "  "))]
        out = out or ["no request was answered"]
    else:
        out = frame(result, columns, style, "no request was answered")
    if result["rows"] and files:
        out += ["", f"every byte of the first: kcap show {shell(files)} {result['rows'][0]['exchange']}"]
    if result["unanswered"]:
        waiting = [lasting("age_ns", "waited"), named("exchange"), named("api"), named("client_id", "client", 1),
                   named("reason", "until", 2)]  # fmt: skip
        out += ["", style.bold("without an answer"), *lines(result["unanswered"][:SHOWN], waiting, style)]
    return [*out, "", *foot(result, style)] if result["left_out"] else out


NARROW: Final = 130
"""Below this a reason stands on a line of its own."""


def reason_with(row: Row) -> str:
    """The reason, and who."""
    return f"{row['why']}; {words(row['client_id'])} to {row['server_ip']}"


def throttle(result: Row, style: Style, by: Sequence[str], _files: Sequence[str]) -> list[str]:
    """Who was throttled, and whether they kept quiet."""
    columns = [
        *(named(name) for name in by), counted("throttled"), counted("responses", "of", 6),
        TextColumn("time", lambda row: milliseconds(row["throttle_ms_sum"])),
        TextColumn("longest", lambda row: milliseconds(row["throttle_ms_max"]), rank=4),
        named("phase", rank=5), counted("violations", "too early"),
        TextColumn("worst", lambda row: milliseconds(row["earliest_ms"]), rank=3), lasting("muted_ns_sum", "mute suffered", 2),
        lasting("throttle_ns_sum", "late answers", 7), named("quota", rank=8), named("known", rank=9),
    ]  # fmt: skip
    out = frame(result, columns, style, "nobody was throttled", lambda row: row["violations"] > 0)
    for row in result["rows"]:
        if row["violations"]:
            who = ", ".join(words(row[name]) for name in by)
            same = row["same_connection"]
            text = (
                f"{who}: {row['violations']:,} requests came before the time was over, by up to "
                f"{milliseconds(row['earliest_ms'])}; {row['disobeyed']:,} of {row['muting']:,} throttles were not kept; "
                f"{same:,} of the requests came on the connection that was throttled, the others on another one of the same "
                "client to the same broker"
            )
            out += ["", *wrapped(text, style.width, "  ")]
    return [*out, "", *foot(result, style)] if result["left_out"] else out


def errors(result: Row, style: Style, by: Sequence[str], files: Sequence[str]) -> list[str]:
    """Errors; and what came of them."""
    columns = [
        counted("count"), *(named(name) for name in by),
        TextColumn("first", lambda row: clock(row["first_ns"]), rank=3),
        TextColumn("last", lambda row: clock(row["last_ns"]), rank=4),
        TextColumn("most a second", lambda row: number(row["peak_per_s"]) + (" storm" if row["storm"] else ""), rank=5),
        named("example", rank=1),
    ]  # fmt: skip
    out = frame(result, columns, style, "no error")
    if result["rows"] and files:
        out += ["", f"the first: kcap show {shell(files)} {result['rows'][0]['example']}"]
    if result["unanswered"]:
        silent = [counted("count"), named("reason"), named("api"), named("client_id", "client"),
                  lasting("age_ns_max", "waited at most", 2), named("example", rank=1)]  # fmt: skip
        out += ["", style.bold("without an answer"), *lines(result["unanswered"][:SHOWN], silent, style)]
    if result["retries"]:
        again = [counted("retries"), named("api"), named("client_id", "client"), named("topic"), named("partition", right=True)]
        out += ["", style.bold("tried again"), *lines(result["retries"][:SHOWN], again, style)]
    if result["stories"]:
        out += ["", style.bold("leaders that moved")]
        for row in result["stories"][:SHOWN]:
            out += wrapped("  " + story(row), style.width, "    ")
        more = len(result["stories"]) - SHOWN
        out += [f"  and {more:,} more"] if more > 0 else []
    return [*out, "", *foot(result, style)] if result["left_out"] else out


def topics(result: Row, style: Style, by: Sequence[str], _files: Sequence[str]) -> list[str]:
    """Who writes and reads what."""
    columns = [
        *(named(name) for name in by), counted("records_in", "written", 0), sized("bytes_in", "bytes", 1),
        TextColumn("records/batch", lambda row: number(row["records_per_batch_in"]), rank=7),
        sized("bytes_per_batch_in", "batch", 8),
        counted("records_out", "read", 0), sized("bytes_out", "bytes", 2), named("produce_clients", "writers", 4),
        named("fetch_clients", "readers", 5), named("groups", "groups", 6), named("codecs", "codecs", 9),
        TextColumn("ratio", lambda row: number(row["compression_ratio_in"]), rank=9),
        named("magics", "format", 10), named("timestamp_types", "times", 11), counted("lag_max", "lag", 3),
        some("errors", "errors", 3),
    ]  # fmt: skip
    out = frame(result, columns, style, "no topic was written or read")
    if len(result["partitions"]) > 1:
        hot = [named("topic"), named("partition", right=True), counted("records_in", "written"), sized("bytes_in", "bytes"),
               counted("records_out", "read"), sized("bytes_out", "bytes"), counted("high_watermark", "end", 2),
               counted("lag_max", "lag", 1)]  # fmt: skip
        out += ["", style.bold("busiest partitions"), *lines(result["partitions"][:SHOWN], hot, style)]
    behind = [row for row in result["lags"] if row["lag"]]
    if behind:
        lags = [counted("lag"), named("group_id", "group"), named("topic"), named("partition", right=True),
                counted("committed_offset", "committed", 1), counted("high_watermark", "end", 2)]  # fmt: skip
        out += ["", style.bold("groups behind, by what they committed"), *lines(behind[:SHOWN], lags, style)]
    if result["routing"]:
        astray = [named("client_id", "client", 2), named("api"), named("topic"), named("partition", right=True),
                  named("broker_id", "to broker", right=True), named("leaders", "led by"), counted("requests"),
                  counted("refused")]  # fmt: skip
        out += [
            "",
            style.bold("sent to brokers that no Metadata calls leader"),
            *lines(result["routing"][:SHOWN], astray, style),
        ]
    return [*out, "", *foot(result, style)] if result["left_out"] else out


def clients(result: Row, style: Style, by: Sequence[str], _files: Sequence[str]) -> list[str]:
    """Who the clients are."""
    software: Callable[[Row], str] = lambda row: " ".join(filter(None, (row["software_name"], row["software_version"])))  # noqa: E731
    columns = [
        *(named(name) for name in by), TextColumn("software", software, right=False, rank=4),
        counted("connections", "conns", 7),
        counted("requests"), some("errors", "errors", 1), some("throttled", "throttled", 5), some("unanswered", "unansw.", 6),
        some("records_in", "wrote", 3), some("records_out", "read", 3), named("topics_in", "writes", 9),
        named("topics_out", "reads", 9), named("groups", "groups", 8), named("principals", "users", 10),
        named("apis", "apis", 11),
    ]  # fmt: skip
    out = frame(result, columns, style, "no client")
    return [*out, "", *foot(result, style)] if result["left_out"] else out


VIEWS: Final[dict[str, Callable[[Row, Style, Sequence[str], Sequence[str]], list[str]]]] = {
    "latency": latency, "stats": stats, "slow": slow, "throttle": throttle, "errors": errors, "topics": topics,
    "clients": clients,
}  # fmt: skip
