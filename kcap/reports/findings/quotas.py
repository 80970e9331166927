"""Quotas: who is throttled, and whether the client waits."""

from collections.abc import Mapping
from typing import Any

from kcap.reports.definition import KEY
from kcap.reports.findings.model import Finding, Found, called, rule, seconds, where
from kcap.reports.findings.observed import Observed, Row
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted


def obedience(row: Row) -> str | None:
    """Whether a client complies with its throttles, as `throttle_compliance.obeys`."""
    from kcap.reports.throttle_compliance import obeys  # few captures have throttles

    return obeys(row["complied"], row["muting"] or 0)


def evades(row: Row) -> bool:
    """Whether a client of `throttled` closes most of its throttled connections early and goes on on others."""
    return bool(2 * row["left"] >= row["muting"] > 0 and (row["elsewhere"] or 0) >= row["left"])


def throttled(seen: Observed) -> list[Row]:
    """Clients with throttled responses, how many of these they complied with, how many of the connections they closed before
    the throttle was over (`left`), and for how long their connections were throttled (`covered_ns`) while they were in use
    (`used_ns`): the throttles of requests that were sent one behind the other run at the same time."""
    if not seen.quality["throttled"]:
        return []
    from kcap.reports.throttle_compliance import MS, compliance, is_muting

    table = seen.exchanges
    ibis = functions(table)
    found = compliance(table).select("violations", "elsewhere", link=KEY[0], step=KEY[1])
    both = table.left_join(found, [(KEY[0], "link"), (KEY[1], "step")])
    ends = seen.connections.select("closed_ns", "closed_by", ended="connection")
    both = both.mutate(muting=is_muting(both)).left_join(ends, [(KEY[0], "ended")])
    some = both.filter(both.throttle_time_ms > 0)
    lasts = some.throttle_time_ms.cast("int64") * MS
    begun = some.response_last_ns.coalesce(some.request_last_ns) - ibis.ifelse(some.muting, 0, lasts)
    left = some.muting & (some.closed_by == "client") & (some.closed_ns < begun + lasts)
    some = some.mutate(begun=begun, left=left.fill_null(False))
    some = some.mutate(until=ibis.ifelse(some.left, ibis.greatest(some.closed_ns, some.begun), some.begun + lasts))
    upto = ibis.window(group_by=KEY[0], order_by=["begun", KEY[1]], rows=(None, 0))
    some = some.mutate(reach=some.until.max().over(upto))
    before = some.reach.lag().over(ibis.window(group_by=KEY[0], order_by=["begun", KEY[1]]))
    some = some.mutate(covered=some.reach - ibis.greatest(some.begun, before.coalesce(some.begun)))
    each = some.group_by("client_id", "software_name", KEY[0]).aggregate(
        throttled=some.count(), muting=some.muting.sum(), violations=some.violations.sum(),
        complied=some.count(where=some.muting & (some.violations.fill_null(0) == 0)),
        throttle_ms=some.throttle_time_ms.cast("int64").sum(), elsewhere=some.elsewhere.sum(), left=some.left.sum(),
        first_ns=some.request_first_ns.min(), last_ns=some.request_last_ns.max(), covered_ns=some.covered.sum(),
        used_ns=some.until.max() - some.request_first_ns.min(),
    )  # fmt: skip
    sums = {name: each[name].sum() for name in SUMS[1:]} | {"connections": each.count()}
    ends_ns = {"first_ns": each.first_ns.min(), "last_ns": each.last_ns.max()}
    return by_program(seen.run(each.group_by("client_id", "software_name").aggregate(**sums, **ends_ns)))


SUMS = (
    "connections", "throttled", "muting", "violations", "complied", "throttle_ms", "elsewhere", "left", "covered_ns", "used_ns",
)  # fmt: skip
"""Figures of a client that are sums of those of its connections."""


def by_program(rows: list[Row]) -> list[Row]:
    """The rows, with those of connections that do not name the client's software added to those of its only one: a library may
    request the versions (KIP-511) on one connection and not on others."""
    names: dict[str | None, set[str]] = {}
    for row in rows:
        names.setdefault(row["client_id"], set()).update({row["software_name"]} - {None})
    programs: dict[tuple[str | None, str | None], list[Row]] = {}
    for row in rows:
        known = names[row["client_id"]]
        software = row["software_name"] or (min(known) if len(known) == 1 else None)
        programs.setdefault((row["client_id"], software), []).append(row)
    return [
        {"client_id": client, "software_name": software, "first_ns": min(row["first_ns"] for row in some),
         "last_ns": max(row["last_ns"] for row in some), **{name: sum(row[name] or 0 for row in some) for name in SUMS}}
        for (client, software), some in programs.items()
    ]  # fmt: skip


THROTTLED = "throttle_time_ms > 0"


def of_client(row: Row, condition: str) -> dict[str, Any]:
    """What findings about a client of `throttled` have in common; their filter passes its exchanges of a condition."""
    return {
        "who": {"client_id": row["client_id"], "software": row["software_name"]},
        "filter": where(condition, client_id=row["client_id"]),
        "first_ns": row["first_ns"], "last_ns": row["last_ns"], "lost_ns": row["covered_ns"],
    }  # fmt: skip


@rule(
    "throttled-obedient", "info", 0.95,
    needs="responses bodies",
    looks_at="throttle_time_ms of responses, and requests on the throttled connection before the throttle time was over "
    "(KIP-219)",
    advice="If this load is intended, raise the quota of this client (kafka-configs.sh --entity-type clients); otherwise send "
    "less.",
    instead="a quota that does what it should",
    sources="KIP-13, KIP-124, KIP-219",
)  # fmt: skip
def throttled_obedient(seen: Observed, _limit: Mapping[str, float]) -> Found:
    """A client at its quota that complies with its throttles."""
    for row in seen.once(throttled):
        verdict = obedience(row)
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
    looks_at="requests on a throttled connection before the throttle time was over (KIP-219); throttled connections that the "
    "client closes before that, to send requests on others",
    advice="Use a client library that honours throttle_time_ms, and lower its rate: its requests wait in the broker's muted "
    "channel while its own timeouts run.",
    instead="requests that were in flight when the throttle arrived, which are few; for connections that are closed, processes "
    "that had ended",
    sources="KIP-219",
    throttles=3,
)  # fmt: skip
def throttled_disobedient(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A client that keeps sending on a throttled connection, or that closes it to send on others."""
    for row in seen.once(throttled):
        if obedience(row) == "no" and row["muting"] >= limit["throttles"]:
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
    looks_at="time in which the connections of a client were throttled, compared with the time from the first throttled "
    "request of each to the end of its last throttle",
    advice="The load needs a multiple of the quota: raise producer_byte_rate, consumer_byte_rate or request_percentage of this "
    "client, or lower what it sends.",
    instead="a batch job that is meant to take its time",
    sources="KIP-13, KIP-124",
    share=0.5, throttled=5,
)  # fmt: skip
def quota_too_small(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A client that is throttled most of the time."""
    for row in seen.once(throttled):
        share = row["covered_ns"] / max(row["used_ns"], 1)
        if row["throttled"] >= limit["throttled"] and share >= limit["share"]:
            yield Finding(
                f"{called(row['client_id'])} was throttled {share:.0%} of the time on "
                f"{counted(row['connections'], 'connection')}: its quota is too small for its load",
                count=row["throttled"], **of_client(row, THROTTLED),
                evidence={"throttled": row["throttled"], "throttle_ms": row["throttle_ms"], "share": round(share, 3)},
            )  # fmt: skip
