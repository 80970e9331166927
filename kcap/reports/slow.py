"""The slowest exchanges, and why each of them was slow.

In: exchanges. Out: one row per exchange, slowest first, with the parts of its latency and the largest part in words. Law:
exchanges are ordered by the time that the latency report counts; the reason is the largest part of that time; each part is 0 or
more, and their sum is the latency.
"""

from collections import Counter
from typing import Final

from kcap.limits import SLOW_MESSAGE_BYTES
from kcap.reports.definition import (
    AFTER_APPEND,
    KEY,
    PARTS,
    TIMES,
    Expressions,
    Report,
    ReportRequest,
    Results,
    Row,
    Tables,
    group_of,
    total,
    uid,
)
from kcap.reports.latency import with_times, without_response
from kcap.reports.text import instant

DEFAULT: Final = 20
"""Number of rows without `--top`: one screen."""
BLOCKER: Final = ("connection", "exchange", "api", "service_ns", "request_last_ns", "response_last_ns", "throttle_time_ms")
SOURCE: Final = ("api", "client_id", "client_ip", "server_ip", "server_port")
SHOWN: Final = (
    "api", "api_version", "client_ip", "client_id", "server_ip", "server_port", "topics", "error", "latency_ns", *PARTS,
    "request_bytes", "response_bytes", "acks", "cluster_brokers", "flags",
)  # fmt: skip


def build(tables: Tables, request: ReportRequest) -> Expressions:
    """Expressions of the slowest exchanges, of the earlier request that blocked each of them, and of the oldest requests
    without a response."""
    import ibis

    limit = request.top or DEFAULT
    selected = tables.selected
    if "cluster_brokers" not in selected.columns:  # a saved table has optional columns only if they were requested
        selected = selected.mutate(cluster_brokers=ibis.null("int32"))
    timed = with_times(selected, request)
    slow = timed.filter(timed.timed_ns.notnull()).order_by([ibis.desc("timed_ns"), *KEY]).limit(limit)
    few = slow.select(slow_connection=slow.connection, slow_exchange=slow.exchange, came_ns=slow.request_last_ns)
    others = tables.every.select(*BLOCKER)
    same = others.join(few, [others.connection == few.slow_connection, others.exchange < few.slow_exchange])
    in_flight = same.filter(same.response_last_ns > same.came_ns)
    slow_key = ["slow_connection", "slow_exchange"]
    longest = ibis.window(group_by=slow_key, order_by=[in_flight.service_ns.desc(nulls_first=False), "exchange"])
    before = in_flight.mutate(place_=ibis.row_number().over(longest))
    throttled = same.filter(same.throttle_time_ms > 0)
    last = ibis.window(group_by=slow_key, order_by=[ibis.desc("exchange")])
    muting = throttled.mutate(place_=ibis.row_number().over(last))
    waiting = selected.filter(selected.outcome == "unanswered")
    return {
        "rows": slow.select(*KEY, *TIMES, *SHOWN, "timed_ns"),
        "blockers": before.filter(before.place_ == 0).select(*slow_key, "exchange", "api", "service_ns"),
        "muting": muting.filter(muting.place_ == 0).select(*slow_key, "exchange", "throttle_time_ms"),
        "unanswered": waiting.order_by([waiting.age_ns.desc(nulls_first=False), *KEY])
        .limit(limit)
        .select(*KEY, *TIMES, "api", "client_id", "server_ip", "age_ns", "reason"),
        "left_out": selected.aggregate(
            unanswered=total(selected.outcome == "unanswered"),
            one_way=total(selected.outcome == "one_way"),
            orphan=total(selected.outcome == "orphan"),
            no_latency=total((selected.outcome == "answered") & selected.latency_ns.isnull()),
        ),
    }


def headed(row: Row) -> Row:
    """The row with its `UID.N` and its time first."""
    row = dict(row)
    name = uid(row.pop("connection"), row.pop("exchange"))
    request, response = (row.pop(name) for name in TIMES)
    at = request if request is not None else response
    return {"exchange": name, "time": None if at is None else instant(at), "time_ns": at} | row


def finish(results: Results, request: ReportRequest) -> Row:
    """The rows with their reasons."""
    blockers = {(row["slow_connection"], row["slow_exchange"]): row for row in results["blockers"]}
    muting = {(row["slow_connection"], row["slow_exchange"]): row for row in results["muting"]}
    out = []
    for row in sorted(results["rows"], key=lambda row: (-row["timed_ns"], row["connection"], row["exchange"])):
        at = row["connection"], row["exchange"]
        cause, words = why(row, blockers.get(at), muting.get(at), long_polls=request.long_polls)
        out.append(headed(row) | {"cause": cause, "why": words})
    waiting = sorted(results["unanswered"], key=lambda row: (-(row["age_ns"] or 0), row["connection"], row["exchange"]))
    return {
        "verdict": verdict(out, waiting, results["left_out"][0]["unanswered"] or 0),
        "rows": out,
        "left_out": results["left_out"][0],
        "unanswered": [headed(row) for row in waiting],
    }


WENT: Final = {
    "queue": "in the queue behind earlier requests of the same connection", "network": "on the network between tap and broker",
    "service": "in the broker", "throttle": "in a throttle before the response",
    "muted": "while the connection was muted after a throttle", "long_poll": "in long polls",
    "unknown": "in parts that the capture does not show",
}  # fmt: skip
"""Largest part of an exchange's time -> where the time was spent."""
FOLLOWED: Final = "in the broker, or in its wait for followers (acks=all; kcap check says where that is proven)"
"""The same for the service time of writes that followers acknowledge."""


def verdict(rows: list[Row], waiting: list[Row], unanswered: int) -> Row:
    """What most of the slowest exchanges have in common: the largest part of their time, API, client and broker; as values and
    as a sentence."""
    from kcap.output.grid import duration
    from kcap.reports.text import words

    found: Row = {"sentence": "No request was answered."}
    if rows:
        cause, those = Counter(row["cause"] for row in rows).most_common(1)[0]
        source, mine = Counter(group_of(row, SOURCE) for row in rows).most_common(1)[0]
        api, client_id, client_ip, server_ip, server_port = source
        alike = [row for row in rows if row["cause"] == cause]
        went = FOLLOWED if cause == "service" and 2 * sum(map(followed, alike)) > len(alike) else WENT[cause]
        who = f"{api or 'an unknown API'} of client {words(client_id)} ({client_ip}) at broker {server_ip}:{server_port}"
        found = {"exchanges": len(rows), "cause": cause, "of_cause": those} | dict(zip(SOURCE, source)) | {"of_source": mine}
        if len(rows) == 1:
            text = f"The slowest exchange took {duration(rows[0]['timed_ns'])}, the largest part of it {went}: {who}."
        else:
            text = (
                f"The slowest {len(rows):,} exchanges took {duration(rows[-1]['timed_ns'])} to {duration(rows[0]['timed_ns'])}"
            )
            text += f"; {those:,} spent the largest part of that {went}, and {mine:,} {'are' if mine > 1 else 'is'} {who}."
        found["sentence"] = text
    found["sentence"] += without_response(unanswered, waiting[0]["age_ns"] if waiting else None)
    return found


def largest(row: Row, *, long_polls: bool = False) -> tuple[str, int]:
    """The largest part of the counted time, and its length in ns; `unknown` if the parts are not known or all 0."""
    inner = {name: row[f"{name}_ns"] or 0 for name in ("long_poll", "throttle", "muted")}
    parts = {"queue": row["queue_ns"] or 0, "network": row["rtt_ns"] or 0, **inner}
    parts["service"] = max(0, (row["service_ns"] or 0) - sum(inner.values()))
    if row["service_ns"] is None:
        return "unknown", 0
    if not long_polls:
        del parts["long_poll"]
    cause = max(parts, key=lambda name: parts[name])
    return cause if parts[cause] else "unknown", parts[cause]


def why(row: Row, blocker: Row | None, muting: Row | None, *, long_polls: bool = False) -> tuple[str, str]:
    """The largest part of the counted time: its name, and a sentence."""
    from kcap.output.grid import duration

    cause, length = largest(row, long_polls=long_polls)
    if cause == "unknown":
        return cause, "the parts of the time are not known" if row["service_ns"] is None else NO_TIME[bool(row["long_poll_ns"])]
    spent = duration(length)
    if cause == "queue":
        if blocker is None:
            return cause, f"{spent} behind earlier requests of the same connection"
        name = uid(row["connection"], blocker["exchange"])
        took = "" if blocker["service_ns"] is None else f", which took {duration(blocker['service_ns'])}"
        return cause, f"{spent} in the queue behind {name} ({blocker['api'] or 'unknown'}{took})"
    if cause == "muted":
        name = "" if muting is None else f" by {uid(row['connection'], muting['exchange'])} ({muting['throttle_time_ms']} ms)"
        return cause, f"{spent} on a connection that was muted after a throttled response{name}"
    sentences = {
        "long_poll": f"{spent} long poll: waited for min_bytes of data",
        "throttle": f"{spent} throttled before the response (broker before KIP-219)",
        "network": f"{spent} on the network between the tap and the broker",
        "service": f"{spent} {SERVED[RETRANSMITTED in (row['flags'] or ())]}" + reason(row),
    }
    return cause, sentences[cause]


NO_TIME: Final = {False: "no time that the clock of the capture can show", True: "no time apart from its long poll"}
"""Whether the exchange was a long poll -> the words for an exchange without any counted time."""
RETRANSMITTED: Final = "retransmitted"
SERVED: Final = {False: "in the broker", True: "until a lost segment was retransmitted and arrived, or in the broker"}
"""Whether a segment of the exchange was retransmitted -> where the time before the response may have been spent."""
WAITING: Final = {
    "JoinGroup": ": waited for the group's members", "SyncGroup": ": may have waited for the group's leader",
    "Produce": ": appended, and may have waited for followers (acks=all)", "ShareFetch": ": waited for records",
    "Fetch": ": read records, or waited for them",
}  # fmt: skip
"""API -> what a broker waits for before it responds."""


def followed(row: Row) -> bool:
    """Whether the response waits for followers: to a Produce with acks=all, in a cluster of several brokers."""
    return bool(row["api"] == "Produce" and row["acks"] == -1 and row["cluster_brokers"] != 1)


def reason(row: Row) -> str:
    """What the broker did during a long service time, as far as the capture shows it. With acks=all a broker waits for the
    partition's in-sync replicas, of which a cluster of one broker has no others. Requests that it refuses, as with
    MEMBER_ID_REQUIRED, do not wait."""
    size = max(row["request_bytes"] or 0, row["response_bytes"] or 0)
    if size >= SLOW_MESSAGE_BYTES:
        return f": a large message, {size / (1 << 20):.1f} MiB"
    if row["error"] not in (None, "NONE", *AFTER_APPEND):
        return ""
    if row["api"] == "Produce" and not followed(row):
        return ": appended"
    return WAITING.get(row["api"] or "", "")


REPORT: Final = Report(
    "slow",
    (),
    tuple(dict.fromkeys((*SHOWN, *BLOCKER, "outcome", "age_ns", "reason", *TIMES))),
    build,
    finish,
    groups=False,
)
