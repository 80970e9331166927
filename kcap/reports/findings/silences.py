"""The silences of brokers: times without any response, and the requests that waited in them.

In: exchanges and connections. Out: silences by broker. Law: requests that wait for the network, behind a long poll, a rebalance
or a throttle show nothing of their broker.
"""

from collections.abc import Mapping
from typing import Any, Final

from kcap.limits import EVENTS_MOST
from kcap.reports.findings.model import picking
from kcap.reports.findings.observed import SERVER, Observed, Row
from kcap.reports.findings.served import ALL, PROMPT, REPLICATED, WAITING, in_time, served
from kcap.reports.recorded import functions

STEP_NS: Final = 125_000_000
"""Responses are counted in steps of this time; a stall holds several, so that steps without responses are few to look at."""
UNANSWERED: Final = ("fin", "rst", "capture_end")
"""Reasons for which a request that was waited for has no response."""


def standing_brokers(seen: Observed, limit: Mapping[str, float]) -> dict[tuple[str, int], Row]:
    """Brokers that stood still, as `stalls.stood_still` says."""
    least = int(limit["seconds"] * 1e9)
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


def delayed(seen: Observed, chosen: Any, late: Any) -> Any:
    """Those of the exchanges of `served` that are late for want of the broker alone: not for the network, and not behind a long
    poll, a rebalance or a throttle. So are requests without a response that clients gave up, or that wait when the capture
    ends: `ended_ns` is when that was, null where there is a response; `left`: the client had closed the connection by then.
    """
    table, ibis = seen.exchanges, functions(chosen)
    waits = table.filter(table.api.isin(WAITING) | (table.throttle_time_ms > 0)).select("connection").distinct()
    columns = (*SERVER, "connection", "client_ip", "exchange", "request_first_packet", "api", "request_last_ns",
               "response_first_ns", "to_all")  # fmt: skip
    open_ = table.filter(
        table.api.isin(sorted(PROMPT)), table.outcome == "unanswered", table.reason.isin(list(UNANSWERED)),
        table.age_ns.notnull(), table.request_last_ns.notnull(), ~table.connection.isin(seen.closed_by_server), in_time(table),
    )  # fmt: skip
    open_ = open_.mutate(
        to_all=(open_.api == "Produce") & (open_.acks == ALL).fill_null(False), ended_ns=open_.request_last_ns + open_.age_ns
    )
    answered = chosen.filter(late).select(*columns, ended_ns=ibis.null("int64"), left=chosen.flags.contains("late"))
    open_ = open_.select(*columns, "ended_ns", left=open_.reason != "capture_end")
    return answered.union(open_).anti_join(waits, "connection")


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
