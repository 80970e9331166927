"""Who writes and who reads which topic, how much, in what format, and how far readers are behind.

In: partitions beside their exchanges. Out: a row a topic; the busiest partitions; each group's place. Law: records and bytes
are those of the topic's own partitions; sums of Produce count what was sent, also where it was refused.
"""

from typing import Any, Final

from kcap.errors import UsageError
from kcap.reports.definition import (
    KEY,
    TIMES,
    Expressions,
    Report,
    ReportRequest,
    Results,
    Row,
    Tables,
    added,
    cut,
    grouped,
    keys_of,
    named,
    names_by,
    sort_value,
    time_of,
    total,
    without_zeros,
)
from kcap.schema.registry import api_key

PRODUCE, FETCH, SHARE_FETCH, METADATA = (api_key(name) for name in ("Produce", "Fetch", "ShareFetch", "Metadata"))
OWN: Final = frozenset({"topic", "partition"})
COLUMNS: Final = (
    *KEY, "api_key", "topic", "topic_id", "partition", "error", "group_id", "fetch_offset", "high_watermark",
    "committed_offset", "batches", "records", "bytes", "codec", "magic", "timestamp_type", "first_timestamp_ms",
    "max_timestamp_ms", "lag", "crc_ok", "producer_id", "plain_bytes",
    "leader_id",
)  # fmt: skip
PLACES: Final = 20
"""Busiest partitions that are named."""
MS: Final = 1_000_000
CREATED: Final = "CreateTime"
DRIFT_BATCHES: Final = 20
DRIFT_NS: Final = 60_000_000_000
"""A clock's drift shows in a minute at the earliest: a batch waits some milliseconds, a bad clock loses 0.1 ms a second."""
OVERHEAD: Final = {0: 26, 1: 34, 2: 61}
"""Bytes of a message (formats 0 and 1) or of a batch (format 2) that are neither key nor value."""


def joined(tables: Tables) -> Any:
    """Partitions with the columns of their exchanges, topics by name or by id."""
    there = tables.partitions
    if there is None:
        raise UsageError(
            "records and bytes of a topic are in the table partitions: give captures, or the Parquet file of "
            "`kcap rows --table partitions` beside that of the exchanges"
        )
    if "plain_bytes" not in there.columns:  # a saved table has it where it was asked for
        there = there.mutate(plain_bytes=there.bytes.nullif(there.bytes))
    there = there.filter((there.api_key != METADATA).fill_null(True))
    own = there.mutate(topic_=there.topic.fill_null(there.topic_id), his_group=there.group_id)
    own = own.select(*KEY, "partition", "error", "fetch_offset", "high_watermark", "committed_offset", "batches", "records",
                     "bytes", "codec", "magic", "timestamp_type", "first_timestamp_ms", "max_timestamp_ms", "lag", "crc_ok",
                     "producer_id", "plain_bytes", "his_group", topic=own.topic_)  # fmt: skip
    names = [name for name in tables.kept.columns if name not in own.columns or name in KEY]
    rows = own.join(tables.kept.select(*names), list(KEY))
    return rows.filter(rows.topic.notnull())


def build(tables: Tables, asked: ReportRequest) -> Expressions:
    """The topics; the busiest partitions; the groups' places."""
    keys = keys_of(REPORT, asked)
    rows = grouped(joined(tables), keys)
    by = names_by(keys)
    written = (rows.api_key == PRODUCE).fill_null(False)
    read = rows.api_key.isin([FETCH, SHARE_FETCH]).fill_null(False)
    group = rows.his_group.fill_null(rows.group_id) if "group_id" in rows.columns else rows.his_group
    skew = time_of(rows) // MS - rows.max_timestamp_ms
    clock = (time_of(rows) // MS).cast("float64")
    timed = written & rows.max_timestamp_ms.notnull() & (rows.timestamp_type == CREATED).fill_null(False)
    name = rows.connection.concat(".").concat(rows.exchange.cast("string"))
    figures = {
        "produce_clients": rows.client_id.collect(where=written & rows.client_id.notnull(), distinct=True),
        "fetch_clients": rows.client_id.collect(where=read & rows.client_id.notnull(), distinct=True),
        "groups": group.collect(where=group.notnull() & (group != ""), distinct=True),
        "produce_requests": name.nunique(where=written),
        "fetch_requests": name.nunique(where=read),
        "records_in": added(rows.records.cast("int64"), written),
        "bytes_in": added(rows.bytes, written),
        "batches_in": added(rows.batches.cast("int64"), written),
        "records_out": added(rows.records.cast("int64"), read),
        "bytes_out": added(rows.bytes, read),
        "batches_out": added(rows.batches.cast("int64"), read),
        "codecs": rows.codec.collect(where=rows.codec.notnull(), distinct=True),
        "magics": rows.magic.collect(where=rows.magic.notnull(), distinct=True),
        "timestamp_types": rows.timestamp_type.collect(where=rows.timestamp_type.notnull(), distinct=True),
        "lag_max": rows.lag.max(),
        "partitions": rows.partition.nunique(),
        "errors": total(rows.error != "NONE"),
        "bad_checksums": total(~rows.crc_ok),
        "idempotent": total(written & (rows.producer_id >= 0)) > 0,
        "behind_ms_min": skew.min(where=written),
        "behind_ms_max": skew.max(where=written),
        "plain_bytes_in": added(rows.plain_bytes, written),
        "inflated_bytes_in": added(rows.bytes, written & rows.plain_bytes.notnull()),
        "drift": clock.cov(skew.cast("float64"), where=timed, how="pop") / clock.var(where=timed, how="pop").nullif(0),
        "drift_of": total(timed),
        "drift_from": time_of(rows).min(where=timed),
        "drift_to": time_of(rows).max(where=timed),
        "first_ns": time_of(rows).min(),
        "last_ns": time_of(rows).max(),
    }
    place = rows.group_by("topic", "partition").aggregate(
        bytes_in=added(rows.bytes, written), bytes_out=added(rows.bytes, read),
        records_in=added(rows.records.cast("int64"), written), records_out=added(rows.records.cast("int64"), read),
        high_watermark=rows.high_watermark.max(), lag_max=rows.lag.max(),
    )  # fmt: skip
    committed = rows.mutate(group_=group)
    committed = committed.filter(committed.group_.notnull() & (committed.committed_offset >= 0))
    places = committed.group_by("group_", "topic", "partition").aggregate(committed_offset=committed.committed_offset.max())
    ends = rows.filter(rows.high_watermark.notnull()).group_by("topic", "partition").aggregate(end=rows.high_watermark.max())
    groups = places.left_join(ends, ["topic", "partition"])
    kept = tables.kept
    return strays(tables) | {
        "rows": rows.group_by(by).aggregate(**figures),
        "partitions": place,
        "lags": groups.select(
            "topic", "partition", group_id=groups.group_, committed_offset=groups.committed_offset, high_watermark=groups.end,
            lag=groups.end - groups.committed_offset,
        ),
        "left_out": kept.anti_join(joined(tables).select(*KEY), list(KEY)).aggregate(
            no_partitions=lambda some: some.count()
        ),
    }  # fmt: skip


def strays(tables: Tables) -> Expressions:
    """Requests to a broker that no Metadata of the capture calls leader of the partition; nothing where none is called so."""
    there = tables.partitions
    if there is None or "leader_id" not in there.columns:
        return {}
    named_ = there.mutate(topic=there.topic.fill_null(there.topic_id))
    told = named_.filter(named_.leader_id >= 0).select("topic", "partition", broker_id="leader_id").distinct()
    sent = named_.filter(named_.api_key.isin([PRODUCE, FETCH])).select(*KEY, "topic", "partition", "api_key", refusal="error")
    sent = sent.join(tables.kept.select(*KEY, "client_id", "broker_id"), list(KEY))
    known = sent.filter(sent.broker_id.notnull()).semi_join(told, ["topic", "partition"])
    astray = known.anti_join(told, ["topic", "partition", "broker_id"])
    return {
        "routing": astray.group_by("client_id", "api_key", "topic", "partition", "broker_id").aggregate(
            requests=astray.count(), refused=total(astray.refusal != "NONE"), untold=total(astray.refusal.isnull())
        ),
        "leaders": told.semi_join(astray, ["topic", "partition"]),
    }


def routes(results: Results) -> list[Row]:
    """The requests that went astray, by client and partition: most first. Where all were taken the broker was leader then, or a
    reader was sent to the replica that is nearest (KIP-392); writes without an answer (acks=0) tell nothing, and count."""
    leaders: dict[tuple[str, int], list[int]] = {}
    for row in results.get("leaders", ()):
        leaders.setdefault((row["topic"], row["partition"]), []).append(row["broker_id"])
    found = []
    for row in results.get("routing", ()):
        if not row["refused"] and (row["api_key"] == FETCH or not row["untold"]):
            continue
        api = "Fetch" if row["api_key"] == FETCH else "Produce"
        place = {name: row[name] for name in ("topic", "partition", "broker_id")}
        head = {"client_id": row["client_id"], "api": api, **place, "leaders": sorted(leaders[row["topic"], row["partition"]])}
        found.append(head | {"requests": row["requests"], "refused": row["refused"]})
    found.sort(key=lambda row: (-row["requests"], row["topic"], row["partition"], row["client_id"] or "", row["broker_id"]))
    return found


def mean(whole: int, parts: int) -> float | None:
    """One of them, on average."""
    return round(whole / parts, 1) if parts else None


def finish(results: Results, asked: ReportRequest) -> Row:
    """Most bytes first."""
    keys = keys_of(REPORT, asked)
    out = []
    for row in results["rows"]:
        row = named(dict(row), keys)
        for name in ("produce_clients", "fetch_clients", "groups", "codecs", "magics", "timestamp_types"):
            row[name] = sorted(row[name] or ())
        row["records_per_batch_in"] = mean(row["records_in"], row["batches_in"])
        row["bytes_per_batch_in"] = mean(row["bytes_in"], row["batches_in"])
        row["bytes_per_record_in"] = mean(row["bytes_in"], row["records_in"])
        row["records_per_batch_out"] = mean(row["records_out"], row["batches_out"])
        row["format_bytes_in"] = format_bytes(row)
        row["compression_ratio_in"] = ratio(row.pop("plain_bytes_in"), row.pop("inflated_bytes_in"))
        row["drift_ppm"] = drift(row)
        out.append(row)
    out.sort(key=lambda row: [sort_value(row[key.name]) for key in keys])
    timed = any(key.step_ns for key in keys)
    out.sort(key=lambda row: sort_value(row["time"]) if timed else (False, -row["bytes_in"] - row["bytes_out"]))
    hot = sorted(results["partitions"], key=lambda row: (-row["bytes_in"] - row["bytes_out"], row["topic"], row["partition"]))
    lags = sorted(results["lags"], key=lambda row: (-(row["lag"] or 0), row["group_id"], row["topic"], row["partition"]))
    return {
        "rows": cut(out, asked.top),
        "left_out": without_zeros(results["left_out"][0]),
        "partitions": hot[:PLACES],
        "lags": lags,
        "routing": routes(results),
    }


def ratio(plain: int, packed: int) -> float | None:
    """How many bytes of batches one byte on the wire stands for, of what could be inflated."""
    return round(plain / packed, 2) if packed else None


def drift(row: Row) -> float | None:
    """By how much the clocks of writers run slower than that of the capture, in millionths: how the time from a record's
    timestamp to its request grows. None where too little was seen to tell."""
    slope, seen, first, last = (row.pop(name) for name in ("drift", "drift_of", "drift_from", "drift_to"))
    told = slope is not None and seen >= DRIFT_BATCHES and last - first >= DRIFT_NS
    return round(slope * 1_000_000, 1) if told else None


def format_bytes(row: Row) -> int | None:
    """Bytes that the message format itself takes of what was written, where one format was: of batches in format 2, of messages
    before."""
    if len(row["magics"]) != 1:
        return None
    magic = int(row["magics"][0])
    units: int = row["batches_in"] if magic == 2 else row["records_in"]
    return OVERHEAD[magic] * units if magic in OVERHEAD else None


REPORT: Final = Report(
    "topics",
    ("topic",),
    (*KEY, "api_key", "client_id", "group_id", "broker_id", *TIMES),
    build,
    finish,
    partitions=COLUMNS,
    own=OWN,
)
