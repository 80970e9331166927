"""Which clients were throttled, for how long, and whether they complied.

In: exchanges. Out: one row per group with at least one throttled response. Law: sums are of Kafka's own milliseconds. A
throttle counts for the response that has it, a muted time for the request that waited for its end, and a violation for the
throttled response that was disregarded (`kcap.reports.throttle_compliance`).
"""

from typing import Any, Final

from kcap.reports.definition import (
    KEY,
    TIMES,
    Expressions,
    Grouping,
    Report,
    ReportRequest,
    Results,
    Row,
    Tables,
    added,
    time_of,
    total,
)
from kcap.reports.throttle_compliance import COLUMNS as COMPLIANCE
from kcap.reports.throttle_compliance import MS, compliance, is_muting, obeys

QUOTAS: Final = {
    "Produce": "produced bytes, or request time", "Fetch": "fetched bytes, or request time",
    "CreateTopics": "controller mutations, or request time", "DeleteTopics": "controller mutations, or request time",
    "CreatePartitions": "controller mutations, or request time",
}  # fmt: skip
"""API -> the quotas that can throttle it (KIP-13, KIP-599). All other APIs have only the request-time quota (KIP-124). The wire
does not show which of two quotas it was."""
UNTHROTTLED: Final = {
    "librdkafka": "has no throttling of its own",
    "kafka-go": "has no throttling of its own",
    "github.com/segmentio/kafka-go": "has no throttling of its own",
    "rskafka": "has no throttling of its own",
}
"""Client software that does not wait -> what its maintainers write about it (confluentinc/librdkafka 5592, segmentio/kafka-go
919, influxdata/rskafka 182)."""


def with_compliance(tables: Tables) -> Any:
    """The exchanges joined with the violations of their throttles."""
    selected = tables.selected.left_join(compliance(tables.every), list(KEY))
    return selected.drop(*(name for name in selected.columns if name.endswith("_right")))


def build(tables: Tables, request: ReportRequest) -> Expressions:
    """Expressions of the groups, and of what is not counted."""
    grouping = Grouping.of(REPORT, request)
    rows = grouping.rows(with_compliance(tables))
    time_ms = rows.throttle_time_ms
    throttled = (time_ms > 0).fill_null(False)
    muting = is_muting(rows)
    sums = rows.group_by(grouping.by).aggregate(
        responses=time_ms.count(),
        throttled=total(throttled),
        throttle_ms_sum=added(time_ms.cast("int64")),
        throttle_ms_max=time_ms.max(),
        delayed=total(rows.throttle_ns > 0),
        muting=total(muting),
        violations=added(rows.violations),
        complied=total(muting & (rows.violations.fill_null(0) == 0)),
        elsewhere=added(rows.elsewhere),
        early_ns=rows.early_ns.max(),
        throttle_ns_sum=added(rows.throttle_ns),
        muted_ns_sum=added(rows.muted_ns),
        first_ns=time_of(rows).min(where=throttled),
        last_ns=time_of(rows).max(where=throttled),
        software_name=rows.software_name.max(),
        software_version=rows.software_version.max(),
    )
    left = tables.selected
    plain = grouping.rows(left)
    return {
        "rows": sums.filter(sums.throttled > 0),
        "responses": plain.aggregate(responses=plain.throttle_time_ms.count()),
        "left_out": left.aggregate(
            no_throttle_time=total((left.outcome == "answered") & left.throttle_time_ms.isnull()),
            unanswered=total(left.outcome == "unanswered"),
            one_way=total(left.outcome == "one_way"),
            **grouping.without(left),
        ),
    }


def throttled(tables: Tables, request: ReportRequest) -> Any:
    """The throttled exchanges by group."""
    rows = tables.selected
    return Grouping.of(REPORT, request).rows(rows.filter((rows.throttle_time_ms > 0).fill_null(False)))


def finish(results: Results, request: ReportRequest) -> Row:
    """Most throttled first."""
    grouping = Grouping.of(REPORT, request)
    out = []
    for row in results["rows"]:
        row = grouping.named(row)
        early = row.pop("early_ns")
        row["obeys"] = obeys(row["complied"], row["muting"])
        row["earliest_ms"] = None if early is None else early / MS
        row["phase"] = phase(row["delayed"], row["muting"])
        row["quota"] = QUOTAS.get(row["api"], "request time") if row.get("api") else None
        row["known"] = UNTHROTTLED.get(row["software_name"] or "")
        row["sentence"] = compliance_text(row)
        out.append(row)
    never = results["responses"][0]["responses"] - sum(row["responses"] for row in out)
    rows = grouping.in_order(out, lambda row: -row["throttle_ms_sum"])
    return {"rows": rows, "left_out": results["left_out"][0] | {"never_throttled": never}}


def phase(delayed: int, muting: int) -> str | None:
    """Where the throttle time was spent: `delayed` before the response, `muted` after it (KIP-219)."""
    return "both" if delayed and muting else "delayed" if delayed else "muted" if muting else None


def complied(row: Row) -> str:
    """`15 of 18`; an empty string if the broker muted no connection."""
    return f"{row['complied']:,} of {row['muting']:,}" if row["muting"] else ""


def compliance_text(row: Row) -> str:
    """Whether a group complied, as a sentence."""
    from kcap.reports.text import count, milliseconds

    delayed = f"the broker delayed {count(row['delayed'], 'response')} itself, as brokers did before KIP-219"

    if not row["muting"]:
        return f"{delayed}." if row["delayed"] else "its API versions predate KIP-219: the broker waits instead of the client."
    text = f"complied with {complied(row)} throttles"
    if row["violations"]:
        sent = "request was" if row["violations"] == 1 else "requests were"
        text += f"; {row['violations']:,} {sent} sent on a muted connection, up to {milliseconds(row['earliest_ms'])} too early"
    if row["elsewhere"]:
        sent = "request was" if row["elsewhere"] == 1 else "requests were"
        text += f"; {row['elsewhere']:,} {sent} sent on other connections meanwhile, which KIP-219 allows"
        if row["elsewhere"] > row["muting"]:
            text += ", unless the client closes throttled connections to do so (see kcap check)"
    return text + (f"; {delayed}." if row["delayed"] else ".")


REPORT: Final = Report(
    "throttle",
    ("client_ip", "client_id", "api"),
    tuple(dict.fromkeys((*COMPLIANCE, "outcome", "muted_ns", "software_name", "software_version", *TIMES))),
    build,
    finish,
    counted=throttled,
)
