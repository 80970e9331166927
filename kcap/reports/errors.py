"""Errors by code, API and client, on request by partition; retries; and how leadership errors ended.

In: exchanges, and their partitions where they have any. Out: one row per group; beside it requests without a response, retries,
and how leadership errors ended. Law: an exchange counts once, by its first error; if topic or partition is in the grouping,
each partition counts by its own error.
"""

from typing import Any, Final

from kcap.reports.definition import (
    KEY,
    PARTITIONED,
    TIMES,
    Expressions,
    Grouping,
    Report,
    ReportRequest,
    Results,
    Row,
    Tables,
    first_of,
    group_of,
    key_of,
    sort_value,
    time_of,
    topic_of,
    total,
    uid,
)
from kcap.reports.retries import COLUMNS as STORIES
from kcap.reports.retries import retries, stories
from kcap.reports.text import story

SECOND: Final = 1_000_000_000
STORM: Final = 10
"""Number of equal errors within one second that shows that a client does not wait between its retries (retry.backoff.ms is 100
ms)."""


def is_error(rows: Any) -> Any:
    return (rows.error != "NONE").fill_null(False)


def of_partitions(tables: Tables) -> Any:
    """Partitions with the columns of their exchanges; error, topic and partition are those of the partition."""
    there = tables.partitions
    own = there.select(*KEY, "error", "error_code", "partition", topic=topic_of(there))
    names = [name for name in tables.selected.columns if name not in own.columns or name in KEY]
    return own.join(tables.selected.select(*names), list(KEY)).drop("error_code")


def failed(tables: Tables, request: ReportRequest) -> tuple[Any, Any, Grouping]:
    """The rows with an error, by group and by themselves, and the grouping. The rows are exchanges, or partitions if these are
    in the grouping."""
    grouping = Grouping.of(REPORT, request)
    deep = any(key.name in PARTITIONED for key in grouping.keys) and tables.partitions is not None
    source = of_partitions(tables) if deep else tables.selected
    bad = source.filter(is_error(source))
    if not deep:
        grouping = Grouping([key_of(key.name) if key.name in PARTITIONED else key for key in grouping.keys])
    return grouping.rows(bad), bad, grouping


def build(tables: Tables, request: ReportRequest) -> Expressions:
    """Expressions of the groups and of what is reported beside them."""
    rows, bad, grouping = failed(tables, request)
    rows = rows.mutate(at_ns=time_of(rows))
    by = grouping.by
    per_second = rows.group_by(*by, second=rows.at_ns // SECOND).aggregate(here=rows.count())
    waiting = tables.selected.filter(tables.selected.outcome == "unanswered")
    out: Expressions = {
        "rows": rows.group_by(by).aggregate(count=rows.count(), first_ns=rows.at_ns.min(), last_ns=rows.at_ns.max()),
        "examples": first_of(rows, by, rows.at_ns),
        "peaks": per_second.group_by(by).aggregate(peak_per_s=per_second.here.max()),
        "unanswered": waiting.group_by("api", "client_id", "reason").aggregate(
            count=waiting.count(), age_ns_max=waiting.age_ns.max()
        ),
        "unanswered_examples": first_of(waiting, ["api", "client_id", "reason"], time_of(waiting)),
        "left_out": tables.selected.aggregate(
            no_error=total(tables.selected.error == "NONE"),
            no_error_field=total((tables.selected.outcome == "answered") & tables.selected.error.isnull()),
            unanswered=total(tables.selected.outcome == "unanswered"),
            one_way=total(tables.selected.outcome == "one_way"),
            orphan=total((tables.selected.outcome == "orphan") & tables.selected.error.isnull()),
        ),
    }
    without = grouping.without(bad)
    if without:
        out["without"] = bad.aggregate(**without)
    if tables.partitions is not None:
        out["retries"] = retries(tables)
        out["stories"] = stories(tables)
    return out


def finish(results: Results, request: ReportRequest) -> Row:
    """Most frequent first."""
    grouping = Grouping.of(REPORT, request)
    by = grouping.by
    examples = {group_of(row, by): uid(row["connection"], row["exchange"]) for row in results["examples"]}
    peaks = {group_of(row, by): row["peak_per_s"] for row in results["peaks"]}
    out = []
    for row in results["rows"]:
        at = group_of(row, by)
        row = grouping.named(row)
        row |= {"example": examples.get(at), "peak_per_s": peaks.get(at), "storm": (peaks.get(at) or 0) >= STORM}
        out.append(row)
    return {
        "rows": grouping.in_order(out, lambda row: -row["count"]),
        "left_out": results["left_out"][0] | dict(*results.get("without", ())),
        "unanswered": silent(results),
        "retries": sorted(results.get("retries", ()), key=lambda row: (-row["retries"], repr(sorted(row.items(), key=str)))),
        "stories": [row_of(row) for row in sorted(results.get("stories", ()), key=order)],
    }


def silent(results: Results) -> list[Row]:
    """Requests without a response, by API, client and reason."""
    by = ["api", "client_id", "reason"]
    examples = {group_of(row, by): uid(row["connection"], row["exchange"]) for row in results["unanswered_examples"]}
    rows = [row | {"example": examples.get(group_of(row, by))} for row in results["unanswered"]]
    return sorted(rows, key=lambda row: (-row["count"], [sort_value(row[name]) for name in by]))


def order(row: Row) -> list[Any]:
    """The sort key of a story: time, then its subject."""
    return [sort_value(row[name]) for name in ("at_ns", *KEY, "topic", "partition")]


def row_of(row: Row) -> Row:
    """The story with the `UID.N` of its exchange, its cluster if there are several, and its sentence."""
    row = {name: value for name, value in row.items() if name != "cluster_id" or value is not None}
    row = {"example": uid(row.pop("connection"), row.pop("exchange"))} | row
    return row | {"sentence": story(row)}


def counted(tables: Tables, request: ReportRequest) -> Any:
    """The rows with an error, counted by group."""
    return failed(tables, request)[0]


REPORT: Final = Report(
    "errors",
    ("error", "api", "client_id"),
    tuple(dict.fromkeys((*KEY, "outcome", "error", "reason", "age_ns", *STORIES, *TIMES))),
    build,
    finish,
    partitions=(
        "error", "error_code", "topic", "topic_id", "partition", "api_key", "producer_id", "producer_epoch", "base_sequence",
        "fetch_offset",
    ),
    own=PARTITIONED,
    counted=counted,
)  # fmt: skip
