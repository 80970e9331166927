"""Each report as a document for people: its sentences, its tables and their columns.

In: the result of a report, the style of the terminal, the grouping, the captures. Out: a document, which `report_formats`
renders. Law: every figure is in the result, or follows from it by a unit, a share or a sum.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from kcap.cli.report_formats import Block, Commands, Document, Section, Sentences, shell
from kcap.columns import WITHOUT_POLLS
from kcap.output.grid import counts, duration
from kcap.reports import drill_down
from kcap.reports.common_columns import classes, clocked, counted, lasting, named, part, shape, sized
from kcap.reports.definition import PARTITIONED, WAITS, Key, Row, counts_of, group_name, key_of
from kcap.reports.findings.model import headline
from kcap.reports.text import (
    Style,
    Target,
    TextColumn,
    clock,
    duration_short,
    folded,
    left_out,
    milliseconds,
    number,
    size,
    spark,
    spark_log,
    words,
)

SHOWN: Final = 10
"""Number of rows that a terminal shows of secondary tables."""
COURSE: Final = 100
"""Maximum number of steps of a figure over time."""
NARROW: Final = 130
"""Width below which the reason of a slow exchange has a line of its own."""
FACTS: Final = ("files", "packets", "connections")
"""Points of a capture's health that a terminal shows even if they are good."""
WRITES: Final = "api == Produce"
READS: Final = "(api == Fetch || api == ShareFetch)"
DIGEST: Final = 3
"""Number of classes of the digest for which a command shows the slowest exchange."""


# -- links ------------------------------------------------------------------------------------------------------------
Down = Callable[[Row], Target | None]


def leading(down: Down, *columns: TextColumn) -> Iterable[TextColumn]:
    """The columns with the links of their values on a page."""
    return (replace(column, down=down) for column in columns)


def below(keys: Sequence[Key], *conditions: str) -> Down:
    """A link to the exchanges of a row's group that meet conditions."""
    return lambda row: drill_down.every(*conditions, drill_down.group(keys, row))


def at_least(keys: Sequence[Key], name: str, time: str) -> Down:
    """A link to the exchanges of a row's group that took at least as long as its figure."""
    return lambda row: drill_down.every(drill_down.group(keys, row), drill_down.ANSWERED, f"{time} >= {row[name]}")


def example(name: str) -> Down:
    """A link to the exchange that a column names."""
    return lambda row: drill_down.exchange(row[name])


def of_exchanges(keys: Sequence[Key]) -> list[Key]:
    """The grouping without keys that filters of exchanges lack, such as the partition."""
    return [key for key in keys if key.name != "partition"]


def below_columns(*names: str) -> Down:
    """A link to the exchanges that have the row's values in these columns."""
    return below([key_of(name) for name in names])


def listing(result: Row, by: Sequence[Key]) -> Callable[[Row], Sequence[Row]]:
    """The exchanges that the report lists for a row's group."""

    def group(row: Row) -> tuple[str, ...]:
        return tuple(repr(row.get(key.name)) for key in by)

    found: dict[tuple[str, ...], list[Row]] = {}
    for row in result.get("exchanges", ()):
        found.setdefault(group(row), []).append(row)
    return lambda row: found.get(group(row), ())


# -- blocks -----------------------------------------------------------------------------------------------------------
def histogram(rows: Sequence[Row], edges: Sequence[int], style: Style) -> Section:
    """The histogram of all rows, one row per class from the first that is not empty to the last."""
    counts = counts_of(rows)
    most, room = max(counts, default=0), max(10, min(50, style.width - 30))
    block, least = ("█", "▏") if style.unicode else ("#", "|")
    found: list[Row] = [
        {
            "low": "below" if at == 0 else duration_short(edges[at - 1]),
            "high": duration_short(edges[at]) if at < len(edges) else "more",
            "count": counts[at],
            "bar": block * round(counts[at] / most * room) or (least if counts[at] else ""),
        }
        for at in classes(counts)
        if most
    ]
    columns = [TextColumn("from", lambda row: row["low"]), TextColumn("to", lambda row: row["high"]), counted("count"),
               TextColumn("", lambda row: row["bar"], right=False, whole=True)]  # fmt: skip
    return Section(found, columns, title="latency of the rows above" if len(rows) > 1 else "latency")


def over_time(series: Row | None, style: Style) -> Section:
    """Each figure over time: its course, its minimum and maximum."""
    rows: list[Row] = []
    if series and len(series["count"]) > 1:
        width = max(10, min(len(series["count"]), COURSE, style.width - 40))
        for name, text, draw in (("count", number, spark), ("p50_ns", duration, spark_log), ("p99_ns", duration, spark_log)):
            there = [value for value in series[name] if value is not None]
            course = draw(folded(series[name], width, sum if name == "count" else max), style)
            rows.append(
                {"figure": name.removesuffix("_ns"), "course": course, "least": text(min(there)), "most": text(max(there))}
            )
    columns = [named("figure"), TextColumn("course", lambda row: row["course"], right=False, whole=True),
               TextColumn("least", lambda row: row["least"]), TextColumn("most", lambda row: row["most"])]  # fmt: skip
    return Section(rows, columns, title=f"over time, {duration(series['step_ns'])} a step" if series else "")


def foot(result: Row) -> Sentences:
    """The sentence about what the report does not count, without what a section of its own lists."""
    return Sentences([left_out({name: n for name, n in result["left_out"].items() if not result.get(name)})], tone="dim")


def document(result: Row, files: Sequence[str], *blocks: Block) -> Document:
    """A report's document, which ends with what it does not count."""
    sides = [
        f"The {row['exchanges']:,} exchanges with {row['back']} may be those with {row['front']} once more, sent on by a "
        "proxy; both are counted. kcap check says whether what they write and read proves it (proxy-both-sides). "
        f"-Y '{row['filter']}' leaves the clients' side."
        for row in result.get("both_sides", ())
    ]
    return Document(f"{result['report']}: {', '.join(result['captures'])}", [Sentences(sides), *blocks, foot(result)], files)


# -- reports ----------------------------------------------------------------------------------------------------------
def latency(result: Row, style: Style, by: Sequence[Key], files: Sequence[str]) -> Document:
    """The document: the verdict, percentiles by group, the histogram of all, figures over time."""
    keys, whole = of_exchanges(by), "latency_ns"
    time = whole if result.get("with_long_polls") else WITHOUT_POLLS

    def figure(name: str, head: str, rank: int = 0, time: str = time) -> TextColumn:
        return replace(lasting(name, head, rank), down=at_least(keys, name, time))

    silent = below(keys, drill_down.UNANSWERED)
    columns = [
        *(named(key.name) for key in by), *leading(below(keys, drill_down.ANSWERED), counted("count")),
        *leading(silent, counted("unanswered", "unanswered", 5, zero=False)), lasting("min_ns", "min", 12),
        figure("p50_ns", "p50", 1),
        figure("p90_ns", "p90", 6), figure("p95_ns", "p95", 8), figure("p99_ns", "p99"), figure("p999_ns", "p99.9", 7),
        figure("max_ns", "max"), figure("with_polls_p99_ns", "p99 w/ polls", 0, whole),
        figure("with_polls_max_ns", "max w/ polls", 0, whole), lasting("sum_ns", "total", 2), part("queue", 9, "queue_ns_sum"),
        part("mute", 9, "muted_ns_sum"), part("throttle", 9, "throttle_ns_sum"),
        part("broker", 10, "service_ns_sum", *(f"{name}_sum" for name in WAITS)), part("network", 11, "rtt_ns_sum"),
        shape(result["rows"], style, 4),
        *leading(below(keys, drill_down.ANSWERED, "long_poll_ns > 0"), counted("long_polls", "long polls", 13, zero=False)),
        lasting("long_poll_ns_sum", "polled for", 14, zero=False),
        *leading(silent, lasting("unanswered_age_ns_max", "oldest unanswered", 15)),
    ]  # fmt: skip
    flagged = counts(result.get("flagged") or {})
    return document(
        result,
        files,
        Sentences([result["verdict"]["sentence"]], tone="bold"),
        Section(result["rows"], columns, empty="No request was answered.", listed=listing(result, by)),
        histogram(result["rows"], result["histogram_edges_ns"], style),
        over_time(result.get("over_time"), style),
        Sentences([f"Counted, with a flag that makes their times less than exact: {flagged}." if flagged else ""]),
    )


def stats(result: Row, style: Style, by: Sequence[Key], files: Sequence[str]) -> Document:
    """The document: the capture and its health, its totals, the classes by their share of the time."""
    health, totals = result.get("health"), result["totals"]
    points: list[str] = []
    if health:
        points = [
            f"{point['name']}: {point['sentence']}"
            for point in health["points"]
            if style.whole or point["name"] in FACTS or point["verdict"] != "good"
        ]
    seconds = ((totals["last_ns"] or 0) - (totals["first_ns"] or 0)) / 1e9
    rate = f", {totals['count'] / seconds:,.1f} a second" if seconds > 0 else ""
    latencies = ", ".join(f"{name} {duration(totals[f'{name}_ns']) or '-'}" for name in ("p50", "p95", "max"))
    rows, keys = [row | {"rank": rank} for rank, row in enumerate(result["rows"], 1)], of_exchanges(by)
    columns = [
        counted("rank", "#"), TextColumn("share", lambda row: f"{100 * row['share']:.1f}%"), lasting("sum_ns", "time"),
        *(named(key.name, {"api_version": "v"}.get(key.name), right=key.name == "api_version") for key in by),
        *leading(below(keys), counted("count")),
        *leading(below(keys, drill_down.FAILED), counted("errors", "errors", 2, zero=False)),
        *leading(below(keys, drill_down.UNANSWERED), counted("unanswered", "unanswered", 6, zero=False)),
        *leading(below(keys, drill_down.THROTTLED), counted("throttled", "throttled", 7, zero=False)),
        sized("request_bytes", "request bytes", 8), sized("response_bytes", "response bytes", 9), lasting("p50_ns", "p50", 5),
        lasting("p95_ns", "p95"), *leading(example("worst"), lasting("max_ns", "max", 3)), shape(result["rows"], style, 4),
        *leading(example("worst"), TextColumn("slowest", lambda row: row["worst"] or "", right=False, rank=10)),
    ]  # fmt: skip
    slowest = [row for row in rows if row["worst"]][:DIGEST] if files else []
    found = result.get("findings", [])
    serious = [f"{row['severity']}  {row['sentence']}" for row in found if row["severity"] != "info"]
    return document(
        result, files,
        Sentences(serious, headline(found), "red", most=SHOWN) if serious
        else Sentences([headline(found)] if "findings" in result and totals["count"] else (), tone="bold"),
        Sentences(points, health["sentence"] if health else "", "bold" if health and health["verdict"] == "good" else "red"),
        Sentences([
            f"{totals['count']:,} exchanges on {totals['connections']:,} connections in {seconds:,.1f} s{rate}; "
            f"{totals['errors']:,} with errors, {totals['unanswered']:,} unanswered, {totals['throttled']:,} throttled; "
            f"request bytes {size(totals['request_bytes'])}, response bytes {size(totals['response_bytes'])}; "
            f"latency {latencies}, total {duration(totals['sum_ns']) or '0s'}."
        ]),
        histogram([totals], result["histogram_edges_ns"], style),
        Section(
            rows, columns, empty="No exchange.", red=lambda row: row["errors"] * 2 > row["count"], listed=listing(result, by)
        ),
        Commands(
            [f"{duration(row['max_ns']):>7}  kcap show {shell(files)} {row['worst']}" for row in slowest],
            "the slowest of the first classes",
        ),
    )  # fmt: skip


def slow(result: Row, _style: Style, _by: Sequence[Key], files: Sequence[str]) -> Document:
    """The document: the verdict, the slowest exchanges with their reasons, then the oldest requests without a response."""
    api = TextColumn("api", lambda row: f"{row['api'] or '?'} v{words(row['api_version'])}", right=False)
    times = [*leading(example("exchange"), lasting("latency_ns", "latency")),
             lasting("long_poll_ns", "long poll", 3, zero=False)]  # fmt: skip
    columns = [
        *times, *leading(example("exchange"), named("exchange")),
        TextColumn("time", lambda row: (row["time"] or "")[11:23], right=False, rank=2), api,
        named("client_id", "client", 4), named("server_ip", "broker", 6), named("topics", "topics", 5),
        lasting("transfer_ns", "transfer", 7, zero=False), named("why"),
    ]  # fmt: skip
    waiting = [*leading(example("exchange"), lasting("age_ns", "waited"), named("exchange")), named("api"),
               named("client_id", "client", 1), named("server_ip", "broker", 3), named("reason", rank=2)]  # fmt: skip
    first = (
        f"every byte of the first: kcap show {shell(files)} {result['rows'][0]['exchange']}" if files and result["rows"] else ""
    )

    def itself(row: Row) -> Sequence[Row]:
        return [{"outcome": "answered", "reason": None, "age_ns": None, "request_first_ns": row["time_ns"]} | row | {
            "name": row["exchange"]}]  # fmt: skip

    return document(
        result, files,
        Sentences([result["verdict"]["sentence"]], tone="bold"),
        Section(
            result["rows"], columns, empty="No request was answered.", narrow=NARROW, listed=itself,
            narrow_columns=[*times, api, named("exchange")],
            narrow_text=lambda row: f"{row['why']}; {words(row['client_id'])} to {row['server_ip']}",
        ),
        Commands([first]),
        Section(result["unanswered"], waiting, "requests without a response", most=SHOWN),
    )  # fmt: skip


def throttle(result: Row, _style: Style, by: Sequence[Key], files: Sequence[str]) -> Document:
    """The document: which clients were throttled, and whether they complied."""
    from kcap.reports.throttle import complied

    keys = of_exchanges(by)
    columns = [
        *(named(key.name) for key in by), *leading(below(keys, drill_down.THROTTLED), counted("throttled")),
        *leading(below(keys, drill_down.HAS_THROTTLE_TIME), counted("responses", "of responses", 6)),
        *leading(
            below(keys, drill_down.THROTTLED), TextColumn("throttle time", lambda row: milliseconds(row["throttle_ms_sum"])),
            TextColumn("longest", lambda row: milliseconds(row["throttle_ms_max"]), rank=4),
        ),
        named("phase", rank=7),
        TextColumn("complied", complied), named("obeys"), counted("violations", "sent while muted", 2, zero=False),
        TextColumn("early by", lambda row: milliseconds(row["earliest_ms"]), rank=3),
        counted("elsewhere", "other connections", 5, zero=False),
        *leading(below(keys, "muted_ns > 0"), lasting("muted_ns_sum", "waited in mute", 8)),
        *leading(below(keys, "throttle_ns > 0"), lasting("throttle_ns_sum", "delayed", 9)), named("quota", rank=10),
        named("known", "library", rank=11),
    ]  # fmt: skip
    return document(
        result,
        files,
        Sentences([f"{group_name(row, by)}: {row['sentence']}" for row in result["rows"]], tone="bold", most=SHOWN),
        Section(
            result["rows"],
            columns,
            empty="No response was throttled.",
            red=lambda row: row["obeys"] == "no",
            listed=listing(result, by),
        ),
    )


def errors(result: Row, _style: Style, by: Sequence[Key], files: Sequence[str]) -> Document:
    """The document: errors, requests without a response, retries, and how leadership errors ended."""
    # The error of a partition may differ from the first error of its exchange, by which exchanges are filtered.
    own = PARTITIONED.isdisjoint(key.name for key in by)
    keys = [key for key in of_exchanges(by) if own or key.name != "error"]
    down = below(keys, drill_down.FAILED if own else drill_down.ANY_ERROR)
    first_of = example("example")
    columns = [
        *leading(down, counted("count")), *(named(key.name) for key in by), clocked("first_ns", "first", 3, right=True),
        clocked("last_ns", "last", 4, right=True),
        TextColumn("most a second", lambda row: number(row["peak_per_s"]) + (" storm" if row["storm"] else ""), rank=5),
        *leading(first_of, named("example", rank=1)),
    ]  # fmt: skip
    silent = below([key_of(name) for name in ("api", "client_id", "reason")], drill_down.UNANSWERED)
    unanswered = [*leading(silent, counted("count")), named("reason"), named("api"), named("client_id", "client"),
                  lasting("age_ns_max", "longest wait", 2), *leading(first_of, named("example", rank=1))]  # fmt: skip
    of_topic = below_columns("api", "client_id", "topic")
    retried = [
        *leading(of_topic, counted("retries")),
        named("api"),
        named("client_id", "client"),
        named("topic"),
        named("partition", right=True),
    ]
    first = f"the first: kcap show {shell(files)} {result['rows'][0]['example']}" if result["rows"] and files else ""
    most = [f"{group_name(row, by)}: {row['count']:,}, first at {clock(row['first_ns'])}." for row in result["rows"][:1]]
    most += [
        f"{row['api']}, {words(row['client_id'])}: {row['count']:,} without a response ({row['reason']})."
        for row in result["unanswered"][:1]
    ]
    return document(
        result,
        files,
        Sentences(most, "Most often", "bold"),
        Section(result["rows"], columns, empty="No error.", listed=listing(result, by)),
        Commands([first]),
        Section(result["unanswered"], unanswered, "requests without a response", most=SHOWN),
        Section(result["retries"], retried, "retries", most=SHOWN),
        Sentences([row["sentence"] for row in result["stories"]], "leadership changes", "bold", most=SHOWN),
    )


def topics(result: Row, _style: Style, by: Sequence[Key], files: Sequence[str]) -> Document:
    """The document: the verdict, which clients write and read which topic, the busiest partitions, lag of groups, and requests
    to brokers that do not lead."""
    keys = of_exchanges(by)
    writes, reads, bad = below(keys, WRITES), below(keys, READS), below(keys, drill_down.ANY_ERROR)
    columns = [
        *(named(key.name) for key in by),
        *leading(writes, counted("records_in", "records in"), counted("records_failed", "with errors", 2, zero=False)),
        *leading(writes, sized("bytes_in", "bytes in", 1)),
        TextColumn("records/batch", lambda row: number(row["records_per_batch_in"]), rank=7),
        sized("bytes_per_batch_in", "bytes/batch", 8),
        *leading(reads, counted("records_out", "records out"), sized("bytes_out", "bytes out", 2)),
        TextColumn("to replicas", lambda row: size(row["replica_bytes_out"] or None), rank=4),
        named("produce_clients", "producers", 5),
        named("consumers", rank=6), named("groups", "groups", 7), named("codecs", "codecs", 9),
        TextColumn("ratio", lambda row: number(row["compression_ratio_in"]), rank=9), named("magics", "magic", 10),
        named("timestamp_types", "timestamps", 11),
        *leading(reads, counted("lag_last", "last lag", 3), counted("lag_max", "max lag", 4)),
        *leading(bad, counted("errors", "errors", 3, zero=False)),
    ]  # fmt: skip
    there = [key_of("topic")]
    busiest = [
        named("topic"), named("partition", right=True),
        *leading(below(there, WRITES), counted("records_in", "records in"), sized("bytes_in", "bytes in")),
        *leading(below(there, READS), counted("records_out", "records out"), sized("bytes_out", "bytes out")),
        *leading(below(there, READS), counted("high_watermark", "high watermark", 2), counted("lag_last", "last lag", 1),
                 counted("lag_max", "max lag", 1)),
    ]  # fmt: skip
    lags = [*leading(below_columns("group_id", "topic"), counted("lag")), named("group_id", "group"),
            named("topic"), named("partition", right=True), counted("committed_offset", "committed", 1),
            counted("high_watermark", "high watermark", 2)]  # fmt: skip
    routing = [
        named("client_id", "client", 2),
        named("api"),
        named("topic"),
        named("partition", right=True),
        named("broker_id", "to broker", right=True),
        named("leaders", "leaders"),
        *leading(below_columns("client_id", "api", "topic", "broker_id"), counted("requests"), counted("refused")),
    ]
    return document(
        result,
        files,
        Sentences([result["verdict"]["sentence"]], tone="bold"),
        Section(result["rows"], columns, empty="No topic was written or read.", listed=listing(result, by)),
        Section(result["partitions"] if len(result["partitions"]) > 1 else [], busiest, "busiest partitions", most=SHOWN),
        Section([row for row in result["lags"] if row["lag"]], lags, "lag of groups, by committed offsets", most=SHOWN),
        Section(result["routing"], routing, "requests to brokers that no Metadata names leader", most=SHOWN),
    )


def clients(result: Row, _style: Style, by: Sequence[Key], files: Sequence[str]) -> Document:
    keys = of_exchanges(by)
    columns = [
        *(named(key.name) for key in by), TextColumn("software", software, right=False, rank=4),
        counted("connections", "connections", 7), *leading(below(keys, "outcome != orphan"), counted("requests")),
        *leading(below(keys, drill_down.FAILED), counted("errors", "errors", 1, zero=False)),
        *leading(below(keys, drill_down.THROTTLED), counted("throttled", "throttled", 5, zero=False)),
        *leading(below(keys, drill_down.UNANSWERED), counted("unanswered", "unanswered", 6, zero=False)),
        *leading(below(keys, WRITES), counted("records_in", "records in", 3, zero=False)),
        *leading(below(keys, READS), counted("records_out", "records out", 3, zero=False)),
        named("topics_in", "writes", 9), named("topics_out", "reads", 9), named("groups", "groups", 8),
        named("principals", "principals", 10), named("apis", "apis", 11),
    ]  # fmt: skip
    rows, nodes = (
        [row for row in result["rows"] if (row["broker_requests"] == row["requests"]) is own] for own in (False, True)
    )
    most = [f"Most requests: {group_name(row, by)}, {row['requests']:,}." for row in rows[:1]]
    return document(
        result,
        files,
        Sentences(most, tone="bold"),
        Section(rows, columns, empty="No client.", listed=listing(result, by)),
        Section(nodes, columns, "brokers and controllers that call others", listed=listing(result, by)),
    )


def software(row: Row) -> str:
    """Name and version of a client's software."""
    return " ".join(words(row[name]) for name in ("software_name", "software_version") if row[name])


VIEWS: Final[dict[str, Callable[[Row, Style, Sequence[Key], Sequence[str]], Document]]] = {
    "latency": latency, "stats": stats, "slow": slow, "throttle": throttle, "errors": errors, "topics": topics,
    "clients": clients,
}  # fmt: skip
"""Report -> function for its document; the arguments are the result, the style, the grouping, the captures' paths."""
