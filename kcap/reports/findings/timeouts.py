"""Requests that clients gave up, and what may have caused that.

In: connections and exchanges. Out: findings. Law: what follows from a broker that was away is one finding of that broker's
clients, below that of the broker; a wait whose longer part lies elsewhere is not explained by it.
"""

from collections.abc import Mapping
from typing import Any

from kcap.reports.definition import AFTER_APPEND
from kcap.reports.findings.model import Finding, Found, called, picking, rule, these, where
from kcap.reports.findings.observed import Observed, cut_short, in_groups, server_of
from kcap.reports.findings.served import WAITING, late_responses
from kcap.reports.text import count as counted

ELSEWHERE = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE")
"""Errors of a broker that is not the coordinator of a group or transaction."""
SMALLEST_RESPONSE = 10
"""Bytes of the smallest response: length, correlation id and an error code."""


def unread(seen: Observed, given_up: Any) -> Any:
    """Connections of which it is not known whether the responses that are due came.

    Of these the server sent bytes that are in no complete response, and enough of them: the boundary of frames was lost there.
    Or bytes of the server are missing behind which encrypted records do not open. Or a request is older than the connection's
    first packet: the file is not in the order of time, so that nothing shows what came before the end.
    """
    every, links = seen.exchanges, seen.connections
    whole = every.filter(every.response_bytes.notnull(), every.response_last_ns.notnull())
    sizes = whole.group_by("connection").aggregate(known=whole.response_bytes.sum())
    due = given_up.group_by("connection").aggregate(due=given_up.count(), requested_ns=given_up.request_first_ns.min())
    both = links.select("connection", "tls", "server_captured", "server_missing", "first_ns").left_join(sizes, "connection")
    both = both.inner_join(due, "connection")
    rest = both.server_captured - both.known.fill_null(0) >= SMALLEST_RESPONSE * both.due
    sealed = both.tls & (both.server_missing > 0)
    return both.filter((~both.tls & rest) | sealed | (both.requested_ns < both.first_ns)).select("connection")


@rule(
    "request-timeout", "high", 0.85,
    needs="responses requests",
    looks_at="requests that a client gave up by closing the connection; REQUEST_TIMED_OUT responses",
    advice="Find what the broker waited for (replicas, disk). request.timeout.ms and delivery.timeout.ms set how long the "
    "client waits.",
    instead="a client that was shut down with requests in flight",
    requests=2, milliseconds=400,
)  # fmt: skip
def request_timeout(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Requests that did not get their response in time.

    A broker answers the requests of a connection in order. The wait of a request therefore begins with the response before it,
    or with the end of a throttle; a request behind a long poll that may still wait does not count. A response that arrives
    after the client closed the connection is too late as well. If a broker responds that it is not the coordinator, Kafka's
    Java client leaves it and drops what it had sent (AbstractCoordinator.markCoordinatorUnknown): such requests do not count.

    If nothing follows from the client, it may have been stopped: the finding is info. Requests that waited for a broker that
    was away (`broker-stall`, `broker-unavailable`), or for its replicas, are one low finding for that broker's clients; so are
    writes to a broker at which `slow-replication` finds such writes late.
    """
    open_ends = any(call["error"] == "REQUEST_TIMED_OUT" or call["reason"] in ("fin", "rst") for call in seen.calls)
    if not open_ends and not seen.once(late_responses):
        return
    table = seen.exchanges
    timed_out = table.error == "REQUEST_TIMED_OUT"
    waits_ns = nanoseconds(table.max_wait_ms)
    closed = cut_short(table)
    least = int(limit["milliseconds"] * 1e6)
    due = ~table.api.isin(WAITING) | ((table.api == "Fetch") & table.max_wait_ms.notnull())
    behind = behind_close(seen, table.filter(due, (table.error != "REQUEST_TIMED_OUT").fill_null(True)))
    behind = behind.filter(behind.age_ns - nanoseconds(behind.max_wait_ms) >= least)
    given_up = closed & ~table.connection.isin(seen.closed_by_server) & (table.age_ns - waits_ns >= least) & due
    late = table.filter(given_up).union(behind)
    every = table.mutate(waits=closed & ~given_up & table.api.isin(WAITING)).semi_join(late, "connection")
    polled_ns = every.max_wait_ms.fill_null(0).cast("int64") * 1_000_000
    # a capture of the beginnings of packets alone does not say how long a Fetch may wait
    unknown = every.api.isin(WAITING) & every.max_wait_ms.isnull()
    in_time = ~every.flags.contains("late") | (every.latency_ns - polled_ns < least) | unknown
    # a broker that throttles reads nothing from the connection until the time is over (KIP-219)
    muted_ns = nanoseconds(every.throttle_time_ms)
    others = every.group_by("connection").aggregate(
        done_ns=(every.response_last_ns + muted_ns).max(where=in_time), poll=every.exchange.min(where=every.waits),
        left_ns=every.response_last_ns.max(where=every.error.isin(list(ELSEWHERE))),
    )  # fmt: skip
    chosen = table.filter(timed_out | given_up).union(behind)
    chosen = chosen.anti_join(unread(seen, late), "connection").left_join(others, "connection")
    before_ns = (chosen.done_ns - chosen.request_last_ns).fill_null(0).clip(lower=0)
    its_turn = (chosen.age_ns - before_ns >= least) & (chosen.exchange < chosen.poll).fill_null(True)
    its_turn &= (chosen.request_last_ns > chosen.left_ns).fill_null(True)
    chosen = chosen.filter((chosen.error == "REQUEST_TIMED_OUT").fill_null(False) | its_turn)
    rows = seen.run(
        in_groups(
            chosen, ("client_id",), errors=chosen.count(where=chosen.error == "REQUEST_TIMED_OUT"), longest=chosen.age_ns.max(),
            apis=chosen.api.nunique(), api=chosen.api.min(), servers=chosen.server_ip.nunique(),
            ports=chosen.server_port.nunique(), server_ip=chosen.server_ip.min(), server_port=chosen.server_port.min(),
            lost=chosen.latency_ns.sum(where=chosen.age_ns.isnull()), waited=chosen.age_ns.sum(),
            ended_ns=(chosen.request_last_ns + chosen.age_ns).min(),
        )
    )  # fmt: skip
    answered = {call["client_id"] for call in seen.calls if call["outcome"] == "answered" and call["api"] != "ApiVersions"}
    rows = [row for row in rows if row["client_id"] in answered]
    picked = picking(seen, chosen, "client_id")
    if not rows:
        return
    from kcap.reports.findings.absences import absences, slow_writes
    from kcap.reports.findings.effects import LATE, apart, effects, goes_on

    if away := seen.once(absences) + slow_writes(seen):
        rows, held = apart(seen, chosen, rows, away)
        yield from effects(seen, held, limit)
    for row in rows:
        if row["n"] >= limit["requests"]:
            what = row["api"] if row["apis"] == 1 else "requests"
            stopped = not row["errors"] and not goes_on(seen, row)
            yield Finding(
                f"{row['n']} {what} of {called(row['client_id'])} were not answered in time"
                + (f"; {row['errors']} got REQUEST_TIMED_OUT" if row["errors"] else "")
                + ("; nothing follows of this client: it may have been stopped" if stopped else ""),
                {"client_id": row["client_id"], "server": server_of(row) if row["servers"] == row["ports"] == 1 else None},
                row["n"],
                where(LATE, these(row["requests"]) if "requests" in row else picked(row), client_id=row["client_id"]),
                row["first_ns"], row["last_ns"], (row["lost"] or 0) + (row["waited"] or 0),
                {"requests": row["n"], "timed_out": row["errors"], "longest_wait_ns": row["longest"]},
                "info" if stopped else None,
            )  # fmt: skip


def nanoseconds(milliseconds: Any) -> Any:
    """A column of times in ms, where null and what is below zero stand for none, as ns."""
    return milliseconds.fill_null(0).clip(lower=0).cast("int64") * 1_000_000


def behind_close(seen: Observed, table: Any) -> Any:
    """Of exchanges: those whose response began when the client had closed the connection; `age_ns` is how long it waited."""
    links = seen.connections.filter(seen.connections.closed_by == "client")
    both = table.filter(table.flags.contains("late")).inner_join(links.select("connection", "closed_ns"), "connection")
    both = both.filter(both.response_first_ns > both.closed_ns)
    return both.mutate(age_ns=both.closed_ns - both.request_last_ns).drop("closed_ns")


@rule(
    "retries-duplicate", "medium", 0.7,
    needs="requests responses bodies",
    looks_at="Produce requests without a producer id that timed out, or whose connection the client closed before the "
    "response, and later ones of the same client to the same topic",
    advice="Set enable.idempotence=true: the broker then drops a batch that it already has (KIP-98).",
    instead="a producer that dropped the records (retries=0), or a broker that never accepted them",
    sources="KIP-98, KIP-679",
    batches=2, milliseconds=400,
)  # fmt: skip
def retries_duplicate(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Batches that a producer without idempotence may have written twice: it gave them up and continued, even if the response
    arrived later. A producer that ends with requests in flight does not send them again. Batches of several clients of a broker
    that was away are one finding.
    """
    behind = "Produce" in seen.apis and seen.once(late_responses)
    if not behind and not any(flow["doubtful"] for flow in seen.flows_of("Produce")):
        return
    table, parts = seen.exchanges, seen.parts
    late = table.filter(table.api == "Produce", table.flags.contains("late")).select("connection", "exchange")
    chosen = parts.filter(parts.api == "Produce", parts.topic.notnull(), parts.acks != 0)
    chosen = chosen.left_join(late.rename(of="connection", number="exchange"), [("connection", "of"), ("exchange", "number")])
    waited = chosen.age_ns.fill_null(chosen.latency_ns)
    unknown = (cut_short(chosen) | chosen.number.notnull()) & (waited >= int(limit["milliseconds"] * 1e6))
    unknown |= chosen.error.isin(list(AFTER_APPEND))
    unknown = unknown.fill_null(False) & (chosen.producer_id.fill_null(-1) < 0) & chosen.magic.notnull()
    ended_ns = chosen.response_first_ns.fill_null(chosen.request_last_ns + chosen.age_ns)
    rows = seen.run(
        chosen.group_by("client_id", "topic").aggregate(
            n=chosen.count(where=unknown), records=chosen.records.sum(where=unknown),
            first_ns=chosen.request_first_ns.min(where=unknown), last_ns=chosen.request_last_ns.max(where=unknown),
            ended_ns=ended_ns.min(where=unknown), good_ns=chosen.request_first_ns.max(where=chosen.error == "NONE"),
        )
    )  # fmt: skip
    going = [
        row for row in rows if row["n"] >= limit["batches"] and (row["good_ns"] or 0) > (row["ended_ns"] or row["first_ns"])
    ]
    if len(going) > 1:
        from kcap.reports.findings.effects import batches_together

        together, going = batches_together(seen, going)
        yield from together
    for row in going:
        yield Finding(
            f"{counted(row['n'], 'batch', 'batches')} of {called(row['client_id'])} for topic {row['topic']} had no "
            "known result when others followed; without idempotence they may be in the log twice",
            {"client_id": row["client_id"], "topic": row["topic"]}, row["n"],
            where("api == Produce", client_id=row["client_id"], topic=row["topic"]), row["first_ns"], row["last_ns"], 0,
            {"batches": row["n"], "records": row["records"]},
        )  # fmt: skip
