"""Quotas: who is throttled, and whether the client waits."""

from collections.abc import Mapping
from typing import Any

from kcap.reports.definition import KEY
from kcap.reports.findings.model import Finding, Found, called, rule, seconds, where
from kcap.reports.findings.observed import Observed, Row
from kcap.reports.text import count as counted
from kcap.reports.throttle_compliance import MS, compliance, is_muting, obeys


def evades(row: Row) -> bool:
    """Whether a client of `throttled` closes most of its throttled connections early and goes on on others."""
    return bool(2 * row["left"] >= row["muting"] > 0 and (row["elsewhere"] or 0) >= row["left"])


def throttled(seen: Observed) -> list[Row]:
    """Clients with throttled responses, how many of these they complied with, and how many of the connections they closed
    before the throttle was over (`left`)."""
    if not seen.quality["throttled"]:
        return []
    table = seen.exchanges
    found = compliance(table).select("violations", "elsewhere", link=KEY[0], step=KEY[1])
    both = table.left_join(found, [(KEY[0], "link"), (KEY[1], "step")])
    ends = seen.connections.select("closed_ns", "closed_by", ended="connection")
    both = both.mutate(muting=is_muting(both)).left_join(ends, [(KEY[0], "ended")])
    until = both.response_last_ns + both.throttle_time_ms.cast("int64") * MS
    left = both.muting & (both.closed_by == "client") & (both.closed_ns < until)
    rows = seen.run(
        both.group_by("client_id", "software_name").aggregate(
            throttled=both.count(where=both.throttle_time_ms > 0), muting=both.muting.sum(), violations=both.violations.sum(),
            complied=both.count(where=both.muting & (both.violations.fill_null(0) == 0)),
                throttle_ms=both.throttle_time_ms.cast("int64").sum(),
            elsewhere=both.elsewhere.sum(), left=both.count(where=left),
            first_ns=both.request_first_ns.min(where=both.throttle_time_ms > 0),
            last_ns=both.request_last_ns.max(where=both.throttle_time_ms > 0),
        )
    )  # fmt: skip
    return [row for row in rows if row["throttled"]]


THROTTLED = "throttle_time_ms > 0"


def of_client(row: Row, condition: str) -> dict[str, Any]:
    """What findings about a client of `throttled` have in common; their filter passes its exchanges of a condition."""
    return {
        "who": {"client_id": row["client_id"], "software": row["software_name"]},
        "filter": where(condition, client_id=row["client_id"]),
        "first_ns": row["first_ns"], "last_ns": row["last_ns"], "lost_ns": row["throttle_ms"] * 1_000_000,
    }  # fmt: skip


@rule(
    "throttled-obedient", "info", 0.95,
    needs="responses bodies",
    looks_at="throttle_time_ms of responses, and requests on the throttled connection before the time was over (KIP-219)",
    advice="Raise the quota of this client if the load is meant to be (kafka-configs.sh --entity-type clients), or send less.",
    instead="a quota that does what it should",
    sources="KIP-13, KIP-124, KIP-219",
)  # fmt: skip
def throttled_obedient(seen: Observed, _limit: Mapping[str, float]) -> Found:
    """A client at its quota that complies with its throttles."""
    for row in seen.once(throttled):
        verdict = obeys(row["complied"], row["muting"] or 0)
        if verdict != "no" and not evades(row):
            complied = f"; it complied with {row['complied']} of {row['muting']} throttles" if row["muting"] else ""
            yield Finding(
                f"{called(row['client_id'])} was throttled {counted(row['throttled'], 'time')}, "
                f"{seconds(row['throttle_ms'] * 1e6)} in all{complied}",
                count=row["throttled"], **of_client(row, THROTTLED),
                evidence={"throttled": row["throttled"], "throttle_ms": row["throttle_ms"], "complied": row["complied"],
                          "muting": row["muting"]},
            )  # fmt: skip


@rule(
    "throttled-disobedient", "medium", 0.9,
    needs="responses requests bodies",
    looks_at="requests on the throttled connection before the throttle time was over (KIP-219); throttled connections that the "
    "client closes before, to send requests on others",
    advice="Use a client library that honours throttle_time_ms, and lower its rate: its requests wait in the broker's muted "
    "channel, and its time-outs run meanwhile.",
    instead="requests that were on their way when the throttle came; they are few. For connections that are closed: processes "
    "that had ended",
    sources="KIP-219",
    throttles=3,
)  # fmt: skip
def throttled_disobedient(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A client that goes on sending on a throttled connection."""
    for row in seen.once(throttled):
        if obeys(row["complied"], row["muting"] or 0) == "no" and row["muting"] >= limit["throttles"]:
            yield Finding(
                f"{called(row['client_id'])} sent {counted(row['violations'], 'request')} on throttled connections before the "
                f"throttle was over; it complied with {row['complied']} of {row['muting']} throttles",
                count=row["violations"], **of_client(row, "muted_ns > 0ms"),
                evidence={"violations": row["violations"], "complied": row["complied"], "throttles": row["muting"]},
            )  # fmt: skip
        elif evades(row) and row["left"] >= limit["throttles"]:
            yield Finding(
                f"{called(row['client_id'])} closed {row['left']} of {counted(row['muting'], 'throttled connection')} before "
                f"the throttle was over, and sent {counted(row['elsewhere'], 'request')} on others meanwhile",
                count=row["left"], **of_client(row, THROTTLED), confidence=0.8,
                evidence={"left": row["left"], "elsewhere": row["elsewhere"], "throttles": row["muting"]},
            )  # fmt: skip


@rule(
    "quota-too-small", "info", 0.8,
    needs="responses bodies",
    looks_at="throttle time of a client against the time that it was active",
    advice="The load needs a multiple of the quota: raise producer_byte_rate, consumer_byte_rate or request_percentage of this "
    "client, or lower what it sends.",
    instead="a batch job that is meant to take its time",
    sources="KIP-13, KIP-124",
    share=0.5, throttled=5,
)  # fmt: skip
def quota_too_small(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A client that is throttled most of its time."""
    for row in seen.once(throttled):
        span = row["last_ns"] - row["first_ns"]
        share = row["throttle_ms"] * 1e6 / max(span, 1)
        if row["throttled"] >= limit["throttled"] and share >= limit["share"]:
            yield Finding(
                f"{called(row['client_id'])} was throttled for {seconds(row['throttle_ms'] * 1e6)} within {seconds(span)}: its "
                "quota is too small for its load",
                count=row["throttled"], **of_client(row, THROTTLED),
                evidence={"throttled": row["throttled"], "throttle_ms": row["throttle_ms"]},
            )  # fmt: skip
