"""Requests in flight and polls: pipelines that are full, large messages that others wait behind, polls that ask too often."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kcap.limits import EVENTS_MOST
from kcap.reports.findings.model import Finding, Found, called, rule, seconds, where
from kcap.reports.findings.observed import HEARTBEATS, PLACE, SERVER, Observed, Row, in_groups, rows_by, server_of, times_of
from kcap.reports.findings.outages import OUTAGE, meanwhile
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted

HELD_NS_PER_MS: Final = 900_000
"""A Fetch was held until `max_wait_ms` if its latency has so many nanoseconds for each of these milliseconds."""
MS: Final = 1_000_000
SOON_NS: Final = 1_000_000_000
"""Within this time a client that timed out begins another connection."""
TOGETHER_NS: Final = 100_000_000
"""A program that ends closes its connections within this time."""
OWN_TIMEOUT: Final = (
    "The client's own timeout ends these requests while the broker may still wait for records or has just responded; no packet "
    "has to be late for that. Set it to several times fetch.max.wait.ms (request.timeout.ms; some libraries derive both from "
    "one setting)."
)
"""Advice for a client that does not wait for what it asks for."""


@rule(
    "in-flight-saturated", "info", 0.7,
    needs="requests responses",
    looks_at="Produce requests whose response arrives while four requests behind them on the connection have none yet "
    "(max.in.flight.requests.per.connection is 5 by default)",
    advice="The producer waits for responses, not for records: larger batches (batch.size, linger.ms, compression.type) carry "
    "more in each request.",
    instead="a producer that pipelines on purpose and is fast enough",
    requests=100, share=0.5, in_flight=5,
)  # fmt: skip
def in_flight_saturated(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Producers whose connections are full of requests without a response."""
    if seen.most_calls(("client_id", "server_ip", "server_port"), ("Produce",)) < limit["requests"]:
        return
    table = seen.exchanges
    chosen = table.filter(table.api == "Produce", table.outcome == "answered")
    rows = seen.run(
        in_groups(
            chosen, ("client_id", "server_ip", "server_port"), queued=chosen.queue_ns.fill_null(0).sum(),
            full=chosen.count(where=chosen.in_flight >= int(limit["in_flight"])),
        )
    )  # fmt: skip
    for row in rows:
        if row["n"] >= limit["requests"] and row["full"] >= limit["share"] * row["n"]:
            server = server_of(row)
            full = f"in_flight >= {limit['in_flight']:g}"
            yield Finding(
                f"{called(row['client_id'])} had {limit['in_flight']:g} or more Produce requests in flight to {server} in "
                f"{row['full']} of {row['n']} cases",
                {"client_id": row["client_id"], "server": server}, row["full"],
                where("api == Produce", full, client_id=row["client_id"], server_ip=row["server_ip"]), row["first_ns"],
                row["last_ns"], row["queued"], {"requests": row["n"], "full": row["full"], "queue_ns": row["queued"]},
            )  # fmt: skip


@rule(
    "large-message-stall", "medium", 0.75,
    needs="requests responses",
    looks_at="time from the first to the last byte of large requests and responses",
    advice="Send smaller batches (batch.size, max.partition.fetch.bytes), compress them, or give large messages separate "
    "connections: everything behind them on a connection waits.",
    instead="a network that is slow for everything; a receiver that does not read (slow-consumer-fetch)",
    messages=3, kilobytes=500, milliseconds=500,
)  # fmt: skip
def large_message_stall(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Large messages that take long to transfer."""
    table = seen.exchanges
    size, took = int(limit["kilobytes"] * 1000), int(limit["milliseconds"] * 1e6)
    if all(max(call["most_request_bytes"] or 0, call["most_response_bytes"] or 0) < size for call in seen.calls):
        return
    up = ((table.request_bytes >= size) & (table.request_transfer_ns >= took)).fill_null(False)
    down = ((table.response_bytes >= size) & (table.transfer_ns >= took)).fill_null(False)
    chosen = table.filter(up | down)
    rows = seen.run(
        in_groups(
            chosen, ("client_id", "api"), longest_up=chosen.request_transfer_ns.max(), longest_down=chosen.transfer_ns.max(),
            most_up=chosen.request_bytes.max(), most_down=chosen.response_bytes.max(),
            total=chosen.request_transfer_ns.fill_null(0).sum() + chosen.transfer_ns.fill_null(0).sum(),
        )
    )  # fmt: skip
    for row in rows:
        if row["n"] >= limit["messages"]:
            longest = max(row["longest_up"] or 0, row["longest_down"] or 0)
            most = max(row["most_up"] or 0, row["most_down"] or 0)
            yield Finding(
                f"{row['n']} large {row['api']} messages of {called(row['client_id'])} took up to {seconds(longest)} to pass "
                f"({most / 1e6:.1f} MB at most)",
                {"client_id": row["client_id"]}, row["n"], where(f"api == {row['api']}", client_id=row["client_id"]),
                row["first_ns"], row["last_ns"], int(row["total"]),
                {"messages": row["n"], "longest_ns": longest, "bytes": most},
            )  # fmt: skip


MEANT: Final = (
    "This client is configured to wait (fetch.min.bytes, fetch.max.wait.ms), for fewer and larger responses. If its records "
    "are needed sooner, lower them."
)
"""Advice where records wait for others."""


@rule(
    "long-poll-misconfigured", "low", 0.75,
    needs="requests responses bodies",
    looks_at="Fetch responses without records that come at once; Fetch responses with records that min_bytes held back; "
    "connections that the client or the other side closes each time equally long after a Fetch request, before its response",
    advice="Leave fetch.max.wait.ms at 500 and fetch.min.bytes at 1: the broker then responds as soon as there is a record, "
    "and waits if there is none.",
    instead="a client that must poll at very short intervals; if connections are closed, a program that is restarted at once, "
    "or a proxy with such a timeout",
    fetches=200, a_second=50, empty=0.8, wait_ms=20, held_ms=3000, held=3, timeouts=5, room_ms=100,
)  # fmt: skip
def long_poll_misconfigured(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Consumers that poll all the time, that let records wait, or whose own timeout is no more than `room_ms` longer than the
    time that they let the broker wait.

    A timeout has a fixed length, so `timeouts` or more connections must end after the same time. A consumer that leaves its
    group is closed by its program and does not count. A device between client and broker may have a timeout as well, and close
    connections on which a Fetch waits for records and no byte passes. Libraries wait for one byte unless they are configured
    otherwise: if records wait for more, that is meant, and the finding is info.
    """
    yield from own_timeouts(seen, limit)
    if any(call["api"] == "Fetch" and call["reason"] in ("fin", "rst") for call in seen.calls):
        from kcap.reports.findings.polls import cut_while_waiting  # for captures with such connections

        yield from cut_while_waiting(seen, limit)
    held_ns = limit["held"] * limit["held_ms"] * HELD_NS_PER_MS
    if not any(
        sum(call["n"] for call in calls) >= limit["fetches"] or sum(call["latency_ns"] or 0 for call in calls) >= held_ns
        for calls in seen.calls_by("client_id", ("Fetch",)).values()
    ):
        return
    table = seen.exchanges
    chosen = table.filter(table.api == "Fetch", table.outcome == "answered", table.error == "NONE")
    nothing = chosen.record_count.fill_null(0) == 0
    hasty = nothing & ((chosen.max_wait_ms <= int(limit["wait_ms"])) | (chosen.min_bytes == 0))
    waited = ~nothing & (chosen.min_bytes > 1) & (chosen.max_wait_ms >= int(limit["held_ms"]))
    held = waited & (chosen.latency_ns >= chosen.max_wait_ms.cast("int64") * HELD_NS_PER_MS)
    rows = seen.run(
        in_groups(
            chosen, ("client_id",), hasty=chosen.count(where=hasty), held=chosen.count(where=held),
            wait=chosen.max_wait_ms.max(), least=chosen.min_bytes.max(), lost=chosen.latency_ns.sum(where=held),
        )
    )  # fmt: skip
    for row in rows:
        rate = row["hasty"] / max((row["last_ns"] - row["first_ns"]) / 1e9, 1.0)
        often = row["hasty"] >= max(limit["fetches"], limit["empty"] * row["n"]) and rate >= limit["a_second"]
        if not often and row["held"] < limit["held"]:
            continue
        yield Finding(
            f"{called(row['client_id'])} sent {row['hasty']} Fetch requests, {rate:.0f} a second, that brought no record"
            if often
            else f"{row['held']} Fetch responses of {called(row['client_id'])} waited for min_bytes ({row['least']:,}) "
            "although there were records",
            {"client_id": row["client_id"]}, row["hasty"] if often else row["held"],
            where("api == Fetch", client_id=row["client_id"]), row["first_ns"], row["last_ns"],
            0 if often else row["lost"] or 0,
            {"fetches": row["n"], "empty": row["hasty"], "held_back": row["held"], "max_wait_ms": row["wait"]},
            None if often else "info", advice=None if often else MEANT,
        )  # fmt: skip


def own_timeouts(seen: Observed, limit: Mapping[str, float]) -> Found:
    """The clients that close connections before the broker may respond to their Fetch, and go on with others."""
    left = left_behind(seen, int(limit["room_ms"] * MS))
    if left:
        from kcap.reports.findings.polls import alike  # for captures with such connections
    for client, some in rows_by(left, "client_id").items():
        rows = alike(some)
        if len(rows) < limit["timeouts"]:
            continue
        after, wait = rows[len(rows) // 2]["after_ns"], max(row["wait_ns"] for row in rows)
        if seen.once(usual_polls).get(client, 0) > rows[-1]["after_ns"]:
            continue  # it waits longer than that for other responses: a program that ends has no such time-out
        yield Finding(
            f"{called(client)} closed {counted(len(rows), 'connection')} {seconds(after)} after a Fetch request which lets the "
            f"broker wait up to {seconds(wait)} for records, without its response, and opened another each time",
            {"client_id": client}, len(rows), where("api == Fetch", client_id=client), *times_of(rows),
            sum(row["after_ns"] for row in rows), {"closed": len(rows), "timed_out_ns": after, "may_wait_ns": wait}, "medium",
            advice=OWN_TIMEOUT,
        )  # fmt: skip


def left_behind(seen: Observed, room_ns: int) -> list[Row]:
    """Connections that a client closes while a Fetch has no response, no later than `room_ns` behind the time that it lets the
    broker wait, with the next to the same server soon behind: client_id, after_ns (from the request), wait_ns, first_ns,
    last_ns. A client that has the records that it wants closes sooner than in a tenth of that time, and a program that ends
    closes others as well.
    """
    if not any(call["api"] == "Fetch" for call in seen.calls):
        return []
    table, links = seen.exchanges, seen.connections
    order = functions(links).window(group_by=["client_id", "client_ip", *SERVER], order_by=["first_ns", "connection"])
    links = links.filter(links.phase == "kafka")
    links = links.mutate(next_ns=links.first_ns.lead().over(order))
    links = links.filter(links.closed_by == "client", links.next_ns - links.closed_ns <= SOON_NS)
    polls = table.filter(table.api == "Fetch", table.max_wait_ms > 0)
    polls = polls.inner_join(links.select("connection", "client_ip", "closed_ns"), "connection")
    polls = polls.filter((polls.response_first_ns > polls.closed_ns).fill_null(True))
    polls = polls.mutate(after_ns=polls.closed_ns - polls.request_last_ns, wait_ns=polls.max_wait_ms.cast("int64") * MS,
                         slot=polls.closed_ns // TOGETHER_NS)  # fmt: skip
    polls = polls.filter(polls.after_ns > polls.wait_ns // 10, polls.after_ns <= polls.wait_ns + room_ns)
    polls = polls.anti_join(ending(seen, polls), ["client_id", "client_ip", "slot"])
    polls = polls.select("client_id", "client_ip", "after_ns", "wait_ns", first_ns="request_last_ns", last_ns="closed_ns")
    rows = seen.first(polls, ("first_ns", "client_id", "after_ns"), EVENTS_MOST, "polls_left_behind")
    leaves = seen.once(leaving) if rows else {}
    return [row for row in rows if not left_meanwhile(row, leaves.get((row["client_id"], row["client_ip"]), ()))]


def leaving(seen: Observed) -> dict[tuple[str | None, str], list[int]]:
    """Client id and host -> when members of groups said that they leave, in order."""
    if seen.apis.isdisjoint(("LeaveGroup", *HEARTBEATS)):
        return {}
    table = seen.exchanges
    gone = (table.api == "LeaveGroup") | (table.api.isin(list(HEARTBEATS)) & (table.generation < 0))
    chosen = table.filter(gone.fill_null(False)).select("client_id", "client_ip", "request_first_ns")
    rows = seen.first(chosen, ("request_first_ns", "client_id", "client_ip"), EVENTS_MOST, "members_that_leave")
    by = rows_by(rows, ("client_id", "client_ip"))
    return {who: [row["request_first_ns"] for row in some] for who, some in by.items()}


def left_meanwhile(row: Row, times: Sequence[int]) -> bool:
    """Whether one of these times is after the last request of a connection, and no more than SOON_NS after its end."""
    at = bisect_left(times, row["first_ns"])
    return at < len(times) and times[at] <= row["last_ns"] + SOON_NS


def usual_polls(seen: Observed) -> dict[str | None, float]:
    """Client -> the 90th percentile of the latency of its answered Fetch requests, ns."""
    polls = seen.exchanges.filter(seen.exchanges.api == "Fetch", seen.exchanges.outcome == "answered")
    polls = polls.inner_join(seen.connections.select("connection", "closed_ns"), "connection")
    polls = polls.filter((polls.response_first_ns <= polls.closed_ns).fill_null(True))
    rows = seen.run(polls.group_by("client_id").aggregate(most=polls.latency_ns.quantile(0.9)))
    return {row["client_id"]: row["most"] or 0 for row in rows}


def ending(seen: Observed, polls: Any) -> Any:
    """When clients close connections without such a Fetch: client_id, client_ip, and slots of the time."""
    links = seen.connections
    old = links.closed_ns - links.first_ns >= 3 * TOGETHER_NS  # one that is begun behind the time-out shows nothing
    links = links.filter(links.phase == "kafka", links.closed_by == "client", old).anti_join(polls, "connection")
    own = ("client_id", "client_ip")
    by = [links.select(*own, slot=links.closed_ns // TOGETHER_NS + beside) for beside in (-1, 0, 1)]
    return by[0].union(by[1]).union(by[2])


@rule(
    "stuck-partition", "medium", 0.85,
    needs="responses bodies time",
    looks_at="partitions whose last stable offset stands still below the high watermark in Fetch responses",
    advice="Find the open transaction (kafka-transactions.sh find-hanging). Consumers with isolation.level=read_committed get "
    "nothing behind it.",
    instead="a long transaction that is meant to be one",
    sources="KIP-664",
    seconds=5, fetches=3,
)  # fmt: skip
def stuck_partition(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Partitions in which consumers with read_committed get no more records.

    The longest time between two Fetch requests does not count: the clock of the capture may have been set forward in it. If the
    capture shows that a transaction began at that offset, the finding is low: `hanging-transaction`, `long-transaction` and
    `transaction-timed-out` name its transactional id.
    """
    if all((flow["behind"] or 0) <= 0 for flow in seen.flows_of("Fetch")):
        return
    parts = seen.parts
    chosen = parts.filter(
        parts.api == "Fetch", parts.error == "NONE", parts.last_stable_offset >= 0,
        parts.high_watermark > parts.last_stable_offset, parts.topic.notnull(),
    )  # fmt: skip
    place = ["topic", "partition", "last_stable_offset"]
    same = {"group_by": place, "order_by": ["request_first_ns", "connection", "exchange"]}
    chosen = chosen.mutate(waited_ns=chosen.request_first_ns - chosen.request_first_ns.lag().over(**same))
    one = chosen.group_by(*place).aggregate(
        n=chosen.count(), behind=(chosen.high_watermark - chosen.last_stable_offset).max(),
        first_ns=chosen.request_first_ns.min(), last_ns=chosen.request_first_ns.max(), gap_ns=chosen.waited_ns.max(),
    )  # fmt: skip
    stood_ns = one.last_ns - one.first_ns - one.gap_ns.fill_null(0)
    one = one.filter(stood_ns >= int(limit["seconds"] * 1e9), one.n >= int(limit["fetches"]))
    known = any(call["transactional_id"] is not None for call in seen.calls_of(api="Produce"))
    for topic, rows in rows_by(seen.run(begun_by(seen, one) if known else one), "topic").items():
        long = max(rows, key=lambda row: (row["last_ns"] - row["first_ns"], row["partition"]))
        stood, away = long["last_ns"] - long["first_ns"], meanwhile(seen, long["first_ns"], long["last_ns"])
        owner = long.get("owner")
        yield Finding(
            f"the last stable offset of topic {topic}, partition {long['partition']} stood at {long['last_stable_offset']} for "
            f"{seconds(stood)}, {long['behind']:,} behind the high watermark"
            + (f", where a transaction of {owner} began" if owner else "")
            + ("" if away is None else f"; {server_of(away)} accepted no connection meanwhile"),
            {"topic": topic, "partition": long["partition"]}, len(rows), where("api == Fetch", topic=topic),
            long["first_ns"], long["last_ns"], stood,
            {"last_stable_offset": long["last_stable_offset"], "behind": long["behind"], "stood_ns": stood},
            "info" if away is not None else "low" if owner else None, advice=None if away is None else OUTAGE,
        )  # fmt: skip


def begun_by(seen: Observed, stood: Any) -> Any:
    """Partitions with offsets at which the last stable one stood, and as `owner` the transactional id of a Produce request that
    got this offset: that of the oldest open transaction is its first (KIP-98).
    """
    work = seen.exchanges.filter(seen.exchanges.api == "Produce", seen.exchanges.transactional_id.notnull())
    work = work.select("connection", "exchange", "transactional_id")
    begun = seen.parts.filter(seen.parts.base_offset >= 0).inner_join(work, ["connection", "exchange"])
    begun = begun.group_by(*PLACE, last_stable_offset="base_offset").aggregate(owner=begun.transactional_id.min())
    return stood.left_join(begun, [*PLACE, "last_stable_offset"])
