"""Lists the clients and what each of them does.

In: exchanges, and partitions for the control records among what is read. Out: one row per client. Law: every request counts for
one client; lists are sorted and have no duplicates; brokers and controllers that call others are clients as well and come after
all others.
"""

from typing import Any, Final

from kcap.reports.definition import (
    CALLED,
    KEY,
    NODE,
    REQUESTS_OF_BROKERS,
    TIMES,
    Expressions,
    Grouping,
    Report,
    ReportRequest,
    Results,
    Row,
    Tables,
    calls_node,
    group_of,
    of_brokers,
    of_busiest,
    shows_node,
    summed,
    time_of,
    total,
)
from kcap.schema.registry import api_key

PRODUCE, FETCH, SHARE_FETCH = (api_key(name) for name in ("Produce", "Fetch", "ShareFetch"))
SETS: Final = {
    "apis": "api", "groups": "group_id", "principals": "principal", "transactional_ids": "transactional_id",
    "sasl_mechanisms": "sasl_mechanism", "brokers": "server_ip",
}  # fmt: skip
"""List of the result -> the column that its values come from."""
SOFTWARE: Final = ("software_name", "software_version")


def entries(rows: Any, by: list[str], name: str) -> Any:
    """Values of lists, by group."""
    each = rows.select(*by, entry=rows[name].unnest())
    each = each.filter(each.entry.notnull())
    return each.group_by(by).aggregate(entries=each.entry.collect(distinct=True))


def topics_of(rows: Any, by: list[str]) -> Any:
    """Topic names by group, and the ids of topics without a name."""
    some = rows.select(*by, "topics", "topic_ids").distinct()
    each = some.mutate(pair=some.topics.zip(some.topic_ids).unnest())
    each = each.select(*by, entry=each.pair.f1.fill_null(each.pair.f2))
    each = each.filter(each.entry.notnull())
    return each.group_by(by).aggregate(entries=each.entry.collect(distinct=True))


def with_control_records(tables: Tables) -> Any:
    """Exchanges with the number of their control records, which end transactions or are otherwise not delivered to
    applications; `record_count` includes these. The number is null for exchanges without partitions."""
    import ibis

    parts = tables.partitions
    if parts is None or "control_records" not in parts.columns:
        return tables.selected.mutate(control_records=ibis.literal(0, "int64"))
    some = parts.filter(parts.control_records > 0)
    some = some.group_by(list(KEY)).aggregate(control_records=some.control_records.sum())
    with_them = tables.selected.left_join(some, list(KEY))
    return with_them.select(*tables.selected.columns, control_records=with_them.control_records.fill_null(0).cast("int64"))


def with_nodes(alike: Any, rows: Any) -> Any:
    """Groups of equal requests, and which of these are of brokers and controllers. A group is one of these by its client id, by
    its API, or because a row of `rows` has the same `NODE` and others call the same server as a node does.

    The nodes are few and therefore joined: windows over the groups would hold all groups with their sums in memory.
    """
    import ibis

    sides = ((NODE, shows_node(rows), "shown"), (CALLED, calls_node(rows), "called"))
    for names, some, flag in sides:
        found = rows.filter(some).select(**{f"{flag}_{name}": rows[name] for name in names}).distinct()
        found = found.mutate(**{flag: ibis.literal(True)})
        alike = alike.left_join(found, [alike[name] == found[f"{flag}_{name}"] for name in names])
    own = of_brokers(alike) | alike.api.isin(REQUESTS_OF_BROKERS).fill_null(False)
    return alike.mutate(of_node=own | (alike.shown & alike.called).fill_null(False))


def build(tables: Tables, request: ReportRequest) -> Expressions:
    """Expressions of the clients, and of what they write and read."""
    grouping = Grouping.of(REPORT, request)
    requests = with_control_records(tables)
    requests = requests.filter(requests.outcome != "orphan")
    rows, by = grouping.rows(requests), grouping.by
    if request.busiest is not None:
        rows = of_busiest(rows, rows, by, rows.count(), request.busiest)
    produces = (rows.api_key == PRODUCE).fill_null(False)
    fetches = rows.api_key.isin([FETCH, SHARE_FETCH]).fill_null(False)
    sums = {
        "requests": rows.count(),
        "errors": total(rows.error != "NONE"),
        "throttled": total(rows.throttle_time_ms > 0),
        "unanswered": total(rows.outcome == "unanswered"),
        "request_bytes": summed(rows.request_bytes),
        "response_bytes": summed(rows.response_bytes),
        "produce_requests": total(produces),
        "fetch_requests": total(fetches),
        "records_in": summed(rows.record_count, produces),
        "records_out": summed(rows.record_count - rows.control_records, fetches),
        "batches_in": summed(rows.batch_count, produces),
        "batches_out": summed(rows.batch_count, fetches),
        "bytes_in": summed(rows.records_bytes, produces),
        "bytes_out": summed(rows.records_bytes, fetches),
        "idempotent": total(rows.producer_id >= 0),  # Produce itself has the producer id in its batches
        "tls": total(rows.tls),
    }
    times = {"first_ns": time_of(rows).min(), "last_ns": time_of(rows).max()}
    # The distinct values of a few rows per connection cost a fraction of those of all its requests.
    names = list(dict.fromkeys([*by, "connection", *SOFTWARE, *SETS.values(), *NODE, *CALLED]))
    alike = with_nodes(rows.group_by(names).aggregate(**sums, **times), rows)
    figures = {name: alike[name].max() for name in SOFTWARE}
    figures |= {"connections": alike.connection.nunique()} | {name: alike[name].sum() for name in sums}
    figures |= {"broker_requests": summed(alike.requests, alike.of_node)}
    figures |= {name: figures[name] > 0 for name in ("idempotent", "tls")}
    figures |= {"first_ns": alike.first_ns.min(), "last_ns": alike.last_ns.max()}
    figures |= {name: alike[column].collect(where=alike[column].notnull(), distinct=True) for name, column in SETS.items()}
    written, read = rows.filter(produces), rows.filter(fetches)
    without = grouping.without(requests)
    return ({"without": requests.aggregate(**without)} if without else {}) | {
        "rows": alike.group_by(by).aggregate(**figures),
        "topics_in": topics_of(written, by),
        "topics_out": topics_of(read, by),
        "codecs_in": entries(written, by, "codecs"),
        "magics_in": entries(written, by, "magics"),
        "left_out": tables.selected.aggregate(orphan=total(tables.selected.outcome == "orphan")),
    }


FIRST: Final = (
    "software_name", "software_version", "connections", "requests", "apis", "topics_in", "topics_out", "groups", "principals",
    "errors", "throttled", "unanswered",
)  # fmt: skip


def finish(results: Results, request: ReportRequest) -> Row:
    """Most requests first, brokers and controllers last."""
    grouping = Grouping.of(REPORT, request)
    by = grouping.by
    lists = {
        name: {group_of(row, by): sorted(row["entries"]) for row in results[name]}
        for name in ("topics_in", "topics_out", "codecs_in", "magics_in")
    }
    out = []
    for row in results["rows"]:
        at = group_of(row, by)
        row = grouping.named(row) | {name: found.get(at, []) for name, found in lists.items()}
        row |= {name: sorted(row[name] or ()) for name in SETS}
        head = {name: row[name] for name in (*(key.name for key in grouping.keys), *FIRST)}
        out.append(head | row)
    return {
        "rows": grouping.in_order(out, lambda row: (row["broker_requests"] == row["requests"], -row["requests"])),
        "left_out": results["left_out"][0] | dict(*results.get("without", ())),
    }


REPORT: Final = Report(
    "clients",
    ("client_ip", "client_id"),
    (
        *KEY, *SETS.values(), *NODE, *CALLED, "outcome", "api_key", "software_name", "software_version", "error",
        "throttle_time_ms", "request_bytes", "response_bytes", "record_count", "batch_count", "records_bytes", "producer_id",
        "tls", "topics", "topic_ids", "codecs", "magics", *TIMES,
    ),
    build,
    finish,
    partitions=("control_records",),
    sides=True,
)  # fmt: skip
