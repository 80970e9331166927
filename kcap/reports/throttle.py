"""Who was throttled, where the time was spent, and whether clients kept quiet for as long as they were asked to.

In: exchanges. Out: a row a group that was throttled at least once. Law: sums are of Kafka's own milliseconds; a throttle counts
where it was told, a mute where it was suffered, disobedience with the answer that was not obeyed.
"""

from typing import Final

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
    counts_without,
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
from kcap.reports.throttle_compliance import COLUMNS as OBEDIENCE
from kcap.reports.throttle_compliance import MS, asks_for_silence, broken

QUOTAS: Final = {
    "Produce": "produced bytes, or request time", "Fetch": "fetched bytes, or request time",
    "CreateTopics": "controller mutations, or request time", "DeleteTopics": "controller mutations, or request time",
    "CreatePartitions": "controller mutations, or request time",
}  # fmt: skip
"""API -> the quotas that throttle it (KIP-13, KIP-599); all others know request time alone (KIP-124). The wire does not tell
which of two it was."""
DEAF: Final = {
    "librdkafka": "has no throttling of its own",
    "kafka-go": "has no throttling of its own",
    "github.com/segmentio/kafka-go": "has no throttling of its own",
    "rskafka": "has no throttling of its own",
}
"""Client software that is known not to wait -> what is known of it (confluentinc/librdkafka 5592, segmentio/kafka-go 919,
influxdata/rskafka 182)."""


def build(tables: Tables, asked: ReportRequest) -> Expressions:
    """The groups, what is left out."""
    keys = keys_of(REPORT, asked)
    kept = tables.kept.left_join(broken(tables.every), list(KEY))
    kept = kept.drop(*(name for name in kept.columns if name.endswith("_right")))
    rows = grouped(kept, keys)
    told = rows.throttle_time_ms
    hit = (told > 0).fill_null(False)
    silent = asks_for_silence(rows)
    sums = rows.group_by(names_by(keys)).aggregate(
        responses=told.count(),
        throttled=total(hit),
        throttle_ms_sum=added(told.cast("int64")),
        throttle_ms_max=told.max(),
        delayed=total(rows.throttle_ns > 0),
        muting=total(silent),
        violations=added(rows.violations),
        same_connection=added(rows.same_connection),
        disobeyed=total(rows.violations > 0),
        early_ns=rows.early_ns.max(),
        throttle_ns_sum=added(rows.throttle_ns),
        muted_ns_sum=added(rows.muted_ns),
        first_ns=time_of(rows).min(where=hit),
        last_ns=time_of(rows).max(where=hit),
        software_name=rows.software_name.max(),
        software_version=rows.software_version.max(),
    )
    left = tables.kept
    plain = grouped(left, keys)
    return {
        "rows": sums.filter(sums.throttled > 0),
        "responses": plain.aggregate(responses=plain.throttle_time_ms.count()),
        "left_out": left.aggregate(
            no_throttle_time=total((left.outcome == "answered") & left.throttle_time_ms.isnull()),
            unanswered=total(left.outcome == "unanswered"),
            one_way=total(left.outcome == "one_way"),
            **counts_without(left, keys),
        ),
    }


def finish(results: Results, asked: ReportRequest) -> Row:
    """Most throttled first."""
    keys = keys_of(REPORT, asked)
    out = []
    for row in results["rows"]:
        row = named(dict(row), keys)
        early = row.pop("early_ns")
        row["earliest_ms"] = None if early is None else early / MS
        row["phase"] = phase(row["delayed"], row["muting"])
        row["quota"] = QUOTAS.get(row["api"], "request time") if row.get("api") else None
        row["known"] = DEAF.get(row["software_name"] or "")
        out.append(row)
    never = results["responses"][0]["responses"] - sum(row["responses"] for row in out)
    out.sort(key=lambda row: [sort_value(row[key.name]) for key in keys])
    timed = any(key.step_ns for key in keys)
    out.sort(key=lambda row: sort_value(row["time"]) if timed else (False, -row["throttle_ms_sum"]))
    return {"rows": cut(out, asked.top), "left_out": without_zeros(dict(results["left_out"][0]) | {"never_throttled": never})}


def phase(delayed: int, muting: int) -> str | None:
    """Where the waiting was done: `delayed` inside the latency, `muted` behind the answer (KIP-219)."""
    return "both" if delayed and muting else "delayed" if delayed else "muted" if muting else None


REPORT: Final = Report(
    "throttle",
    ("client_ip", "client_id", "api"),
    tuple(dict.fromkeys((*OBEDIENCE, "outcome", "muted_ns", "software_name", "software_version", *TIMES))),
    build,
    finish,
)
