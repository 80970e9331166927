"""A broker that sends no response at all for a while, as a paused process, host or disk leaves it.

In: exchanges. Out: findings. Law: requests that a broker answers at once were waiting, sent before and while it was silent.
"""

from collections.abc import Mapping
from typing import Any, Final

from kcap.limits import EVENTS_MOST
from kcap.reports.findings.model import RULES, Finding, Found, picking, rule, seconds, where
from kcap.reports.findings.observed import SERVER, Observed, Row
from kcap.reports.findings.replication import UNSURE
from kcap.reports.findings.served import ALL, PROMPT, REPLICATED, WAITING, served
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted

SECOND_NS: Final = 1_000_000_000
STEP_NS: Final = 125_000_000
"""Responses are counted in steps of this time; a stall holds several, so that steps without responses are few to look at."""
UNANSWERED: Final = ("fin", "rst", "capture_end")
"""Reasons for which a request that was waited for has no response."""


@rule(
    "broker-stall", "medium", 0.75,
    needs="responses requests",
    looks_at="times in which a broker sends no response to anyone while requests wait that it otherwise answers at once",
    advice="Look at that broker at that time: garbage collection and safepoints (its GC log), a paused virtual machine, "
    "stolen CPU, a disk that hangs (iostat).",
    instead="where the capture shows one client, its host or the path may have held packets back; where writes alone waited, "
    "replicas that acknowledge slowly (acks=all)",
    seconds=1, requests=3, spread=0.1, times=10, often=20, alone=0.6, several=0.85,
)  # fmt: skip
def broker_stall(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Brokers that are silent for `seconds` and more while `requests` wait, which are sent over `spread` seconds at least: a
    capture whose clock is set forward shows none that were sent in between. The broker's median is `times` shorter, over
    `often` requests. Requests that TCP sent again waited for the network and are left out, and connections whose requests wait
    behind a long poll, a rebalance or a throttle. In a cluster a broker that is stopped makes others wait for its replicas:
    where the first request that waits on each connection is a write to all replicas, and no long poll is overdue, nothing
    shows which it is. It is high where hosts gave requests up in that time and connected again: their clients saw errors.
    """
    for (ip, port), stood in stood_still(seen, limit).items():
        some, usual, followers = stood["silences"], stood["usual"], stood["followers"]
        longest = max(some, key=lambda row: row["until"] - row["since"])
        lasted, hosts = longest["until"] - longest["since"], max(row["hosts"] for row in some)
        times = f" in the longest of {len(some)} times" if len(some) > 1 else ""
        alone = limit["alone"] if all(row["links"] == 1 for row in some) else None
        count, given_up = sum(row["n"] for row in some), sum(row["given_up"] or 0 for row in some)
        high = given_up >= limit["requests"] and not followers and alone is None
        waited = f"{int(limit['seconds'] * 1e3)}ms"
        yield Finding(
            f"broker {ip}:{port} sent no response to anyone for {seconds(lasted)}{times}, while "
            f"{counted(longest['n'], 'request')} from {counted(longest['hosts'], 'host')} waited; its median is "
            f"{seconds(usual['own'])}"
            + (f"; clients gave up {given_up} of these requests" if given_up else "")
            + ("; each connection waited for a write to all replicas, which other brokers may hold up" if followers else ""),
            {"server": f"{ip}:{port}", "broker_id": usual["broker_id"]}, count,
            where(f"latency_ns >= {waited} or age_ns >= {waited}" if any(row["unanswered"] for row in some)
                  else f"latency_ns >= {waited}", stood["filter"], server_ip=ip, server_port=port),
            min(row["since"] for row in some), max(row["until"] for row in some), sum(row["waited_ns"] for row in some),
            {"silences": len(some), "longest_ns": lasted, "requests": count, "connections": max(row["links"] for row in some),
             "hosts": hosts, "median_ns": round(usual["own"]), "given_up": given_up or None},
            "info" if followers else "high" if high else None,
            UNSURE if followers else limit["several"] if hosts > 1 else alone,
        )  # fmt: skip


def stood_still(seen: Observed, limit: Mapping[str, float]) -> dict[tuple[str, int], Row]:
    """Brokers that stood still as `broker_stall` says: `silences` with their times, the broker's `usual` time, whether its
    `followers` may have been what stood still, and a `filter` that picks the requests where they are few. It is looked for once
    where the limits are those of the rule.
    """
    by_default = limit == RULES["broker-stall"].thresholds
    return seen.once(by_default_limits) if by_default else look_for(seen, limit)


def by_default_limits(seen: Observed) -> dict[tuple[str, int], Row]:
    """`stood_still` with the limits of the rule, for rules on what follows from it."""
    return look_for(seen, RULES["broker-stall"].thresholds)


def look_for(seen: Observed, limit: Mapping[str, float]) -> dict[tuple[str, int], Row]:
    """What `stood_still` gives."""
    least = int(limit["seconds"] * 1e9)
    if not some_waited(seen, least):
        return {}
    chosen, late = served(seen, {"milliseconds": limit["seconds"] * 1e3})
    usual = chosen.group_by(*SERVER).aggregate(n=chosen.count(), own=chosen.own.quantile(0.5), broker_id=chosen.broker_id.max())
    brokers = {
        (row["server_ip"], row["server_port"]): row
        for row in seen.run(usual.filter(usual.n >= int(limit["often"])))
        if row["own"] * limit["times"] <= least
    }
    if not brokers:
        return {}
    by: dict[tuple[str, int], list[Row]] = {}
    waited, silent = silences(seen, delayed(seen, chosen, late), least)
    for row in seen.run(silent):
        sent_over = row["last_sent_ns"] - max(row["first_sent_ns"], row["since"])
        place = (row["server_ip"], row["server_port"])
        if place in brokers and row["n"] >= limit["requests"] and sent_over >= limit["spread"] * 1e9:
            by.setdefault(place, []).append(row)
    picked = picking(seen, waited, *SERVER, "since")
    # where no Metadata response was captured, a broker is not known to be alone
    late_polls = overdue(seen, least) if by and len({row["broker_id"] for row in seen.run(seen.brokers)}) != 1 else None
    return {
        place: {
            "silences": some, "usual": brokers[place], "filter": picked(*some),
            "followers": late_polls is not None and not any(
                (row["to_all"] or 0) < row["links"]
                or any(row["until"] <= at <= row["until"] + least for at in late_polls.get(place, ()))
                for row in some
            ),
        }
        for place, some in by.items()
    }  # fmt: skip


def some_waited(seen: Observed, least: int) -> bool:
    """Whether requests may have waited `least` ns: from classes of exchanges alone, without a query."""
    return any(
        call["api"] in PROMPT and ((call["latency_ns"] or 0) >= least or call["reason"] in UNANSWERED) for call in seen.calls
    )


def delayed(seen: Observed, chosen: Any, late: Any) -> Any:
    """Those of the exchanges of `served` that are late for want of the broker alone: not for the network, and not behind a long
    poll, a rebalance or a throttle. So are requests without a response that clients gave up, or that wait when the capture
    ends: `ended_ns` is when that was, null where there is a response; `left`: the client had closed the connection by then.
    """
    table, ibis = seen.exchanges, functions(chosen)
    waits = table.filter(table.api.isin(WAITING) | (table.throttle_time_ms > 0)).select("connection").distinct()
    columns = (*SERVER, "connection", "client_ip", "exchange", "request_first_packet", "api", "request_last_ns",
               "response_first_ns", "flags", "to_all")  # fmt: skip
    open_ = table.filter(
        table.api.isin(sorted(PROMPT)), table.outcome == "unanswered", table.reason.isin(list(UNANSWERED)),
        table.age_ns.notnull(), table.request_last_ns.notnull(), ~table.connection.isin(seen.closed_by_server),
    )  # fmt: skip
    open_ = open_.mutate(
        to_all=(open_.api == "Produce") & (open_.acks == ALL).fill_null(False), ended_ns=open_.request_last_ns + open_.age_ns
    )
    answered = chosen.filter(late).select(*columns, ended_ns=ibis.null("int64"), left=chosen.flags.contains("late"))
    open_ = open_.select(*columns, "ended_ns", left=open_.reason != "capture_end")
    both = answered.union(open_)
    return both.filter(~both.flags.contains("retransmitted")).anti_join(waits, "connection")


def stalls(seen: Observed) -> list[Row]:
    """The times of a second and more in which a broker sent no response to anyone while requests waited: server_ip,
    server_port, since, until."""
    if not some_waited(seen, SECOND_NS):
        return []
    chosen, late = served(seen, {"milliseconds": SECOND_NS / 1e6})
    _, silent = silences(seen, delayed(seen, chosen, late), SECOND_NS)
    return seen.first(silent.select(*SERVER, "since", "until"), ("since", *SERVER), EVENTS_MOST, "stalls")


def stalled_ns(seen: Observed, ip: str, port: int, first_ns: int, last_ns: int) -> int:
    """For how much of the time between these two a server was in one of its `stalls`."""
    return sum(
        max(0, min(row["until"], last_ns) - max(row["since"], first_ns))
        for row in seen.once(stalls)
        if (row["server_ip"], row["server_port"]) == (ip, port)
    )


def overdue(seen: Observed, least: int) -> dict[tuple[str, int], list[int]]:
    """Broker -> when Fetch responses came, to clients or to other brokers, `least` ns and more behind the time that they may
    wait: no replica holds them up."""
    table = seen.every
    wait_ns = table.max_wait_ms.cast("int64") * 1_000_000
    late = table.filter(table.api == "Fetch", table.latency_ns - wait_ns >= least)
    found: dict[tuple[str, int], list[int]] = {}
    order = ("response_first_ns", "connection", "exchange")
    for row in seen.first(late.select(*SERVER, *order), order, EVENTS_MOST, "late_polls"):
        found.setdefault((row["server_ip"], row["server_port"]), []).append(row["response_first_ns"])
    return found


def silences(seen: Observed, waiting: Any, least: int) -> tuple[Any, Any]:
    """Those of these exchanges that waited at least `least` ns in a time as long between two responses of their broker, from
    `since` to `until`; and these times: `since`, `until`, n, links, hosts, first_sent_ns, last_sent_ns, waited_ns, unanswered,
    and given_up, of hosts that connected to a server later. The last time of a broker that sends no response any more ends with
    the capture.

    A silence and the exchanges that wait in it stand in one order of time: pairs of them would be the product of both. Those
    with a response stand behind its end, others before it.
    """
    ibis = functions(waiting)
    table, links = seen.every, seen.every_link
    table = table.filter(table.response_first_ns.notnull()).semi_join(waiting, SERVER)
    steps = table.group_by(*SERVER, step=table.response_first_ns // STEP_NS).aggregate(
        first=table.response_first_ns.min(), last=table.response_first_ns.max()
    )
    end = steps.group_by(*SERVER).aggregate(step=steps.step.max() + 1).cross_join(links.aggregate(first=links.last_ns.max()))
    steps = steps.union(end.select(*SERVER, "step", "first", last="first"))
    before = steps.last.lag().over(ibis.window(group_by=SERVER, order_by="step"))
    steps = steps.mutate(since=before)
    steps = steps.filter(steps.first - steps.since >= least)
    ends = steps.select(
        *SERVER, at="first", since="since", until="first", waits=ibis.literal(0, "int64"), sent=ibis.null("int64"),
        connection=ibis.null("string"), host=ibis.null("string"), exchange=ibis.null("int64"), packet=ibis.null("int64"),
        to_all=ibis.literal(0, "int64"), ended=ibis.null("int64"), left=ibis.literal(False),
    )  # fmt: skip
    requests = waiting.select(
        *SERVER, at=waiting.ended_ns.isnull().ifelse(waiting.response_first_ns, waiting.request_last_ns),
        since=ibis.null("int64"), until=ibis.null("int64"),
        waits=waiting.ended_ns.isnull().ifelse(1, -1).cast("int64"), sent="request_last_ns", connection="connection",
        host="client_ip",
        exchange=waiting.exchange.cast("int64"), packet=waiting.request_first_packet.cast("int64"),
        to_all=(waiting.api.isin(list(REPLICATED)) | waiting.to_all).cast("int64"), ended="ended_ns", left="left",
    )  # fmt: skip
    both = ibis.union(ends, requests)
    upto = ibis.window(group_by=SERVER, order_by=["at", "waits"], rows=(None, 0))
    on = ibis.window(group_by=SERVER, order_by=["at", "waits"], rows=(0, None))
    answered = both.waits == 1
    both = both.mutate(
        since=answered.ifelse(both.since.max().over(upto), both.since.min().over(on)),
        until=answered.ifelse(both.until.max().over(upto), both.until.min().over(on)),
    )
    waited = ibis.least(both.ended.fill_null(both.until), both.until) - answered.ifelse(
        both.sent, ibis.greatest(both.sent, both.since)
    )
    both = both.filter(both.waits != 0, both.since.notnull(), waited >= least)
    begun = links.group_by(host=links.client_ip).aggregate(begun=links.first_ns.max())
    both = both.left_join(begun, "host").rename(request_first_packet="packet")
    first = ibis.window(group_by=[*SERVER, "since", "connection"], order_by="exchange")
    both = both.mutate(place=ibis.row_number().over(first))
    given_up = both.left & (both.begun > both.ended.fill_null(both.sent)).fill_null(False)
    return both, both.group_by(*SERVER, "since", "until").aggregate(
        n=both.count(), to_all=both.to_all.sum(where=both.place == 0), links=both.connection.nunique(),
        hosts=both.host.nunique(), first_sent_ns=both.sent.min(), last_sent_ns=both.sent.max(),
        waited_ns=(both.ended.fill_null(both["at"]) - both.sent).sum(), unanswered=both.count(where=both.waits == -1),
        given_up=both.count(where=given_up),
    )  # fmt: skip
