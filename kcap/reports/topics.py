"""Which clients write and read which topic, how much, in what format, and how far readers are behind.

In: partitions joined with their exchanges. Out: one row per topic; the busiest partitions; the committed offsets of each group.
Law: records and bytes are those of the topic's own partitions. Sums of Produce count what was sent, even if it was refused
(`records_failed` has the records of partitions with an error). Sums of Fetch do not include what brokers copied from each
other, which has its own sums.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from kcap.columns import ONLY_ROW, exchange_column
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
    group_of,
    is_replica,
    keys_of,
    of_replicas,
    summed,
    time_of,
    topic_of,
    total,
    uids,
)
from kcap.reports.latency import percent
from kcap.reports.saved import without_tables
from kcap.schema.registry import api_key

PRODUCE, FETCH, SHARE_FETCH, METADATA = (api_key(name) for name in ("Produce", "Fetch", "ShareFetch", "Metadata"))
COLUMNS: Final = (
    *KEY, "api_key", "topic", "topic_id", "partition", "error", "group_id", "high_watermark", "committed_offset", "batches",
    "records", "bytes", "codec", "magic", "timestamp_type", "max_timestamp_ms", "lag", "crc_ok", "producer_id", "plain_bytes",
    "control_records", "leader_id",
)  # fmt: skip
OWN: Final = (
    "api_key", "partition", "error", "high_watermark", "committed_offset", "batches", "records", "bytes", "codec", "magic",
    "timestamp_type", "max_timestamp_ms", "lag", "crc_ok", "producer_id", "plain_bytes", "control_records",
)  # fmt: skip
"""Grouping names whose values count by partition."""
REQUESTED: Final = ("plain_bytes", "control_records")
"""Optional columns of partitions, for the compression ratio and for the records that applications read."""
MEMBERS: Final = {
    "produce_clients": "produce_client", "fetch_clients": "fetch_client", "groups": "group_id",
    "codecs": "codec", "magics": "magic", "timestamp_types": "timestamp_type",
}  # fmt: skip
"""List of the result -> the column that its values come from. The values are fetched as distinct rows: for distinct lists,
engines plan and fill a separate table for each list."""
FIRST: Final = (
    "produce_clients", "fetch_clients", "groups", "produce_requests", "fetch_requests", "records_in", "bytes_in", "batches_in",
    "records_out", "bytes_out", "batches_out", "replica_records_out", "replica_bytes_out", "codecs", "magics",
    "timestamp_types",
)  # fmt: skip
"""Columns of the result that follow those of the grouping, in this order; the others come after them."""
PLACES: Final = 20
"""Number of busiest partitions in the report."""
MS: Final = 1_000_000
FARTHEST: Final = 1 << 62
"""Bound in milliseconds. Timestamps of records may be any 64-bit values, and engines raise errors if a difference overflows."""
CREATED: Final = "CreateTime"
DRIFT_BATCHES: Final = 20
DRIFT_NS: Final = 60_000_000_000
"""Minimum time, and number of batches, for which a drift is computed. A clock's drift is visible after a minute at the
earliest: a batch waits some milliseconds, and a bad clock loses 0.1 ms a second."""
OVERHEAD: Final = {0: 26, 1: 34, 2: 61}
"""Bytes of a message (formats 0 and 1) or of a batch (format 2) that are neither key nor value."""


def own_rows(tables: Tables, more: Mapping[str, str] | None = None) -> Any:
    """Partitions of requests that concern them, with topics by name or id; `own_group` is their group. `more`: further columns,
    with their names in the table."""
    import ibis

    there = tables.partitions
    if there is None:
        raise without_tables(["partitions"], REQUESTED)
    for name in REQUESTED:  # a saved table has them only if they were requested
        if name not in there.columns:
            there = there.mutate(**{name: ibis.null("int64")})
    there = there.filter((there.api_key != METADATA).fill_null(True))
    named = {name: there[column] for name, column in (more or {}).items()}
    own = there.select(*KEY, *OWN, topic=topic_of(there), own_group=there.group_id, **named)
    return own.filter(own.topic.notnull())


def joined(tables: Tables, request: ReportRequest) -> Any:
    """The same, joined with the columns of their exchanges that the report and its grouping need."""
    own = own_rows(tables)
    grouping = (name for key in keys_of(REPORT, request) if key.name not in REPORT.own for name in key.columns)
    names = [name for name in dict.fromkeys([*REPORT.columns, *grouping]) if name not in own.columns]
    named = {name: exchange_column(name) for name in names}
    if {*named.values(), ONLY_ROW} <= {*tables.partitions.columns}:
        return own_rows(tables, named | {ONLY_ROW: ONLY_ROW})
    return own.join(tables.selected.select(*KEY, *names), list(KEY))


def summed_rows(tables: Tables, request: ReportRequest) -> Any:
    """Rows of partitions, summed by everything that the figures distinguish: one row per group, topic, partition, kind of
    request, client and format. Columns that are the sum or maximum of others have their names."""
    grouping = Grouping.of(REPORT, request)
    rows = grouping.rows(joined(tables, request))
    rows = rows.mutate(group_=rows.own_group.fill_null(rows.group_id))
    figures = {
        **{name: summed(rows[name]) for name in ("records", "bytes", "batches", "plain_bytes")},
        **{name: rows[name].max() for name in ("lag", "high_watermark", "committed_offset", "producer_id")},
        "data": summed(data_records(rows)),
        "inflated_bytes": summed(rows.bytes, rows.plain_bytes.notnull()),
        "behind_ms_min": behind(rows).min(),
        "behind_ms_max": behind(rows).max(),
        "first_ns": time_of(rows).min(),
        "last_ns": time_of(rows).max(),
        "errors": total(rows.error != "NONE"),
        "records_failed": summed(rows.records, rows.error != "NONE"),
        "unconfirmed": total(rows.error.isnull()),
        "bad_checksums": total(~rows.crc_ok),
        "rows": rows.count(),
    }
    if ONLY_ROW in rows.columns:
        figures["alone"] = total(rows[ONLY_ROW])
    by = ("topic", "partition", "api_key", "client_id", "broker_id", "group_", "codec", "magic", "timestamp_type")
    return rows.group_by(*grouping.by, *by).aggregate(**figures)


def build(tables: Tables, request: ReportRequest) -> Expressions:
    """Expressions of the topics, the busiest partitions, and the groups' committed offsets."""
    grouping = Grouping.of(REPORT, request)
    every = joined(tables, request)
    rows, by = grouping.rows(every), grouping.by
    sums = summed_rows(tables, request) if tables.summed is None else tables.summed
    written, read = is_write(sums), is_read(sums)
    copied = read & of_replicas(sums)
    figures = {
        "records_in": summed(sums.records, written),
        "bytes_in": summed(sums.bytes, written),
        "batches_in": summed(sums.batches, written),
        "records_failed": summed(sums.records_failed, written),
        "records_out": summed(sums.data, read),
        "bytes_out": summed(sums.bytes, read),
        "batches_out": summed(sums.batches, read),
        "replica_records_out": summed(sums.data, copied),
        "replica_bytes_out": summed(sums.bytes, copied),
        "lag_max": sums.lag.max(),
        "partitions": sums.partition.nunique(),
        "errors": summed(sums.errors),
        "bad_checksums": summed(sums.bad_checksums),
        "idempotent": total(written & (sums.producer_id >= 0)) > 0,
        "behind_ms_min": sums.behind_ms_min.min(where=written),
        "behind_ms_max": sums.behind_ms_max.max(where=written),
        "plain_bytes_in": summed(sums.plain_bytes, written),
        "inflated_bytes_in": summed(sums.inflated_bytes, written),
        "first_ns": sums.first_ns.min(),
        "last_ns": sums.last_ns.max(),
    }
    if ONLY_ROW in every.columns:
        figures |= {"produce_requests": summed(sums.alone, written), "fetch_requests": summed(sums.alone, read)}
    if ONLY_ROW in every.columns and not any(key.entry for key in grouping.keys):
        own = sent = sums
    else:  # partitions count even if their exchange is missing, and once if the exchange is in several groups
        own = own_rows(tables).mutate(data=data_records)
        sent = every.mutate(rows=1, errors=every.error != "NONE", unconfirmed=every.error.isnull())
    place = own.group_by("topic", "partition").aggregate(
        bytes_in=summed(own.bytes, is_write(own)), bytes_out=summed(own.bytes, is_read(own)),
        records_in=summed(own.records, is_write(own)), records_out=summed(own.data, is_read(own)),
        high_watermark=own.high_watermark.max(), lag_max=own.lag.max(),
    )  # fmt: skip
    place = place.left_join(last_lags(rows, ["topic", "partition"]), ["topic", "partition"])
    place = place.drop(*(column for column in place.columns if column.endswith("_right")))
    busiest = place.order_by([(place.bytes_in + place.bytes_out).desc(), "topic", "partition"]).limit(PLACES)
    committed = sums.filter(sums.group_.notnull() & (sums.committed_offset >= 0))
    places = committed.group_by("group_", "topic", "partition").aggregate(committed_offset=committed.committed_offset.max())
    ends = own.filter(own.high_watermark.notnull()).group_by("topic", "partition").aggregate(end=own.high_watermark.max())
    groups = places.left_join(ends, ["topic", "partition"])
    return strays(tables, sent) | {
        "rows": sums.group_by(by).aggregate(**figures),
        "requests": requests_of(rows, by),
        "drifts": drifts(rows, by),
        "members": sums.select(
            *by, "codec", "magic", "timestamp_type", group_id=sums.group_.nullif(""),
            produce_client=written.ifelse(sums.client_id, None), fetch_client=read.ifelse(sums.client_id, None),
        ).distinct(),
        "last_lags": last_lags(rows, by),
        "partitions": busiest,
        "lags": groups.select(
            "topic", "partition", group_id=groups.group_, committed_offset=groups.committed_offset, high_watermark=groups.end,
            lag=groups.end.clip(lower=-1) - groups.committed_offset,
        ),
        "exchanges": tables.selected.aggregate(count=lambda some: some.count()),
        "with_partitions": every.aggregate(count=exchanges_of(every), clusters=every.cluster_id.nunique()),
    }  # fmt: skip


def is_write(rows: Any) -> Any:
    """Whether a row is of a Produce request."""
    return (rows.api_key == PRODUCE).fill_null(False)


def is_read(rows: Any) -> Any:
    """Whether a row is of a request that fetches."""
    return rows.api_key.isin([FETCH, SHARE_FETCH]).fill_null(False)


def data_records(rows: Any) -> Any:
    """Number of data records of a row, without control records."""
    return rows.records.cast("int64") - rows.control_records.fill_null(0)


def exchanges_of(rows: Any) -> Any:
    """Number of exchanges that the rows of partitions belong to. If the table marks rows that are the only one of their
    exchange, those are counted without names: distinct names take an engine more time and memory than all other figures."""
    import ibis

    if ONLY_ROW not in rows.columns:
        return uids(rows).nunique()
    return total(rows[ONLY_ROW]) + ibis.ifelse(~rows[ONLY_ROW], uids(rows), None).nunique()


def requests_of(rows: Any, by: list[str]) -> Any:
    """Number of exchanges that wrote and read, by group, without those with a single row, which `summed_rows` counts."""
    requests = rows.filter(is_write(rows) | is_read(rows))
    if ONLY_ROW in rows.columns:
        requests = requests.filter(~requests[ONLY_ROW])
    once = requests.select(*by, *KEY, written=is_write(requests)).distinct()
    return once.group_by(*by, "written").aggregate(requests=once.count())


def drifts(rows: Any, by: list[str]) -> Any:
    """The input of `drift`, by group: the slope of the time from a record's timestamp to its request, and the
    number of values."""
    rows = rows.filter(is_write(rows), rows.max_timestamp_ms.notnull(), (rows.timestamp_type == CREATED).fill_null(False))
    clock = (time_of(rows) // MS).cast("float64")
    skew = behind(rows).cast("float64")
    return rows.group_by(by).aggregate(
        drift=clock.cov(skew, how="pop") / clock.var(how="pop").nullif(0),
        drift_of=rows.count(),
        drift_from=time_of(rows).min(),
        drift_to=time_of(rows).max(),
    )


def behind(rows: Any) -> Any:
    """Milliseconds from the largest timestamp of a row's records to its request."""
    return time_of(rows) // MS - rows.max_timestamp_ms.clip(-FARTHEST, FARTHEST)


def last_lags(rows: Any, by: list[str]) -> Any:
    """By group: the largest of the lags that the last Fetch responses of the partitions show."""
    import ibis

    rows = rows.filter(rows.lag.notnull()).mutate(at_ns=time_of(rows))
    each = list(dict.fromkeys([*by, "topic", "partition"]))
    order = [rows.at_ns.desc(nulls_first=False), rows.connection.desc(), rows.exchange.desc()]
    ranked = rows.mutate(place_=ibis.row_number().over(ibis.window(group_by=each, order_by=order)))
    ranked = ranked.filter(ranked.place_ == 0)
    return ranked.group_by(by).aggregate(lag_last=ranked.lag.max())


def strays(tables: Tables, rows: Any) -> Expressions:
    """Requests to a broker that no Metadata response of the capture names as leader of the partition; none if no leader is
    named.

    `rows`: rows of partitions, with the number of rows that each stands for, and the numbers of those with an error and without
    a response.
    """
    there = tables.partitions if tables.leading is None else tables.leading
    if "leader_id" not in there.columns:
        return {}
    leaders = there.mutate(topic=topic_of(there))
    leaders = leaders.filter(leaders.leader_id >= 0).select("topic", "partition", broker_id="leader_id").distinct()
    sent = rows.filter(rows.api_key.isin([PRODUCE, FETCH]) & rows.broker_id.notnull())
    routing = sent.group_by("client_id", "api_key", "topic", "partition", "broker_id").aggregate(
        requests=summed(sent.rows), refused=summed(sent.errors), unconfirmed=summed(sent.unconfirmed)
    )
    routing = routing.anti_join(leaders, ["topic", "partition", "broker_id"])
    of_partition = leaders.group_by("topic", "partition").aggregate(leaders=leaders.broker_id.collect())
    return {"routing": routing.join(of_partition, ["topic", "partition"])}


def routes(results: Results) -> list[Row]:
    """Requests to brokers that do not lead the partition, by client and partition, most requests first. If all were accepted,
    the broker was leader then, or a reader was directed to the nearest replica (KIP-392); these are not counted. Writes without
    a response (acks=0) prove neither, and count."""
    found = []
    for row in results.get("routing", ()):
        if not row["refused"] and (row["api_key"] == FETCH or not row["unconfirmed"]):
            continue
        api = "Fetch" if row["api_key"] == FETCH else "Produce"
        place = {name: row[name] for name in ("topic", "partition", "broker_id")}
        head = {"client_id": row["client_id"], "api": api, **place, "leaders": sorted(row["leaders"])}
        found.append(head | {"requests": row["requests"], "refused": row["refused"]})
    found.sort(key=lambda row: (-row["requests"], row["topic"], row["partition"], row["client_id"] or "", row["broker_id"]))
    return found


def mean(whole: int, parts: int) -> float | None:
    """The average, to one decimal place; None for no values."""
    return round(whole / parts, 1) if parts else None


def finish(results: Results, request: ReportRequest) -> Row:
    """Sorts by bytes, the largest first."""
    grouping = Grouping.of(REPORT, request)
    by = grouping.by
    lags_of = {group_of(row, by): row["lag_last"] for row in results["last_lags"]}
    requests = {(group_of(row, by), row["written"]): row["requests"] for row in results["requests"]}
    drifts_of = {group_of(row, by): drift(row) for row in results["drifts"]}
    members: defaultdict[Any, dict[str, set[Any]]] = defaultdict(lambda: {name: set() for name in MEMBERS})
    for row in results["members"]:
        for name, found in members[group_of(row, by)].items():
            found.add(row[MEMBERS[name]])
    out = []
    for row in results["rows"]:
        group = group_of(row, by)
        lists: dict[str, list[Any]] = {name: sorted(found - {None}) for name, found in members[group].items()}
        counts = {
            name: row.get(name, 0) + requests.get((group, written), 0)
            for name, written in (("produce_requests", True), ("fetch_requests", False))
        }
        lists["consumers"] = [name for name in lists["fetch_clients"] if not is_replica(name)]
        known = row | lists | counts | {"lag_last": lags_of.get(group)}
        row = grouping.named({name: known[name] for name in dict.fromkeys((*by, *FIRST, *known))})
        row["records_per_batch_in"] = mean(row["records_in"], row["batches_in"])
        row["bytes_per_batch_in"] = mean(row["bytes_in"], row["batches_in"])
        row["bytes_per_record_in"] = mean(row["bytes_in"], row["records_in"])
        row["records_per_batch_out"] = mean(row["records_out"], row["batches_out"])
        row["format_bytes_in"] = format_bytes(row)
        row["compression_ratio_in"] = ratio(row.pop("plain_bytes_in"), row.pop("inflated_bytes_in"))
        row["drift_ppm"] = drifts_of.get(group)
        out.append(row)
    out = grouping.in_order(out, lambda row: -row["bytes_in"] - row["bytes_out"])
    (about,) = results["with_partitions"]
    if about["clusters"] > 1:  # topics and groups of several clusters may have the same names
        results = {**results, "partitions": [], "lags": []}
    hot = sorted(results["partitions"], key=lambda row: (-row["bytes_in"] - row["bytes_out"], row["topic"], row["partition"]))
    lags = sorted(results["lags"], key=lambda row: (-(row["lag"] or 0), row["group_id"], row["topic"], row["partition"]))
    return {
        "verdict": verdict(out, [key.name for key in grouping.keys], lags, about["clusters"]),
        "rows": out,
        "left_out": {"no_partitions": results["exchanges"][0]["count"] - about["count"]},
        "partitions": hot[:PLACES],
        "lags": lags,
        "routing": routes(results),
        "clusters": about["clusters"],
    }


def verdict(rows: list[Row], by: list[str], lags: list[Row], clusters: int = 1) -> Row:
    """The group with the most bytes written and read, the largest lag of a consumer group, and the number of partitions with
    refused requests; as values and as a sentence. If there are several clusters it says how to select one."""
    from kcap.reports.text import size, words

    if not rows:
        return {"sentence": "No topic was written or read."}
    whole = sum(row["bytes_in"] + row["bytes_out"] for row in rows)
    busiest = max(rows, key=lambda row: row["bytes_in"] + row["bytes_out"])
    behind = lags[0] if lags and lags[0]["lag"] else None
    refused = sum(row["errors"] or 0 for row in rows)
    most = busiest["bytes_in"] + busiest["bytes_out"]
    found: Row = {name: busiest[name] for name in by} | {"share": round(most / whole, 6) if whole else None}
    found |= {"group_id": behind and behind["group_id"], "lag": behind and behind["lag"], "errors": refused}
    name = ", ".join(words(busiest[one]) for one in by)
    text = f"{name} has {percent(most / whole)} of the bytes" if whole else f"{name}: no records were written or read"
    if whole:
        text += f": {size(busiest['bytes_in'])} written, {size(busiest['bytes_out'])} read"
        copied = busiest["replica_bytes_out"]
        text += f", {size(copied)} of that by replicas" if copied else ""
    text += "."
    if behind is not None:
        text += f" The group furthest behind is {words(behind['group_id'])}: {behind['lag']:,} records on "
        text += f"{words(behind['topic'])}-{behind['partition']}."
    if refused:
        text += f" {refused:,} partition{'s of requests have' if refused > 1 else ' of a request has'} an error."
    if failed := sum(row["records_failed"] for row in rows):
        sent = sum(row["records_in"] for row in rows)
        text += f" Records in are those that were sent: {failed:,} of {sent:,} got an error."
    if clusters > 1:
        text += f" Topics and groups of {clusters} clusters may have the same names: --by topic,cluster_id has a row for each,"
        text += " and -Y 'cluster_id == ...' selects one with its partitions and groups."
    return found | {"sentence": text}


def ratio(plain: int, packed: int) -> float | None:
    """Compression ratio of the batches that could be decompressed: uncompressed bytes for each byte on the wire."""
    return round(plain / packed, 2) if packed else None


def drift(row: Row) -> float | None:
    """How much slower the writers' clocks run than that of the capture, in parts per million: the growth of the time from a
    record's timestamp to its request. None if there are too few batches or too little time."""
    slope, first, last = row["drift"], row["drift_from"], row["drift_to"]
    enough = slope is not None and row["drift_of"] >= DRIFT_BATCHES and last - first >= DRIFT_NS
    return round(slope * 1_000_000, 1) if enough else None


def format_bytes(row: Row) -> int | None:
    """Bytes of the message format itself in what was written, if only one format was used: of batches for format 2, of messages
    for older formats."""
    if len(row["magics"]) != 1:
        return None
    magic = int(row["magics"][0])
    units: int = row["batches_in"] if magic == 2 else row["records_in"]
    return OVERHEAD[magic] * units if magic in OVERHEAD else None


def counted(tables: Tables, request: ReportRequest) -> Any:
    """The partitions by group."""
    return Grouping.of(REPORT, request).rows(joined(tables, request))


REPORT: Final = Report(
    "topics",
    ("topic",),
    (*KEY, "client_id", "group_id", "broker_id", "cluster_id", *TIMES),
    build,
    finish,
    partitions=COLUMNS,
    joined=True,
    summed=summed_rows,
    own=PARTITIONED,
    counted=counted,
    sides=True,
)
