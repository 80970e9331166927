"""Brokers and connections: slow brokers, idle connections that are closed, requests that wait behind others."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kcap.reports.findings.leaders import MOVED
from kcap.reports.findings.model import (
    RULES,
    Finding,
    Found,
    called,
    connected,
    erring,
    picking_parts,
    rule,
    seconds,
    where,
)
from kcap.reports.findings.observed import SERVER, Observed, Row, in_groups, rows_by, server_of, times_of, totals
from kcap.reports.findings.outages import leaders_moved
from kcap.reports.findings.replication import REPLICAS, UNSURE, slow_leaders, waits_for_replicas
from kcap.reports.findings.served import (
    CALL,
    PROMPT,
    REPLICATED,
    WAITING,
    again,
    call_of,
    late_beside,
    often_late,
    served,
)
from kcap.reports.text import count as counted

LONG_POLLS = ("Fetch", "ShareFetch")
"""Those that wait for records; an earlier one holds up what comes behind it on its connection."""
GATHERING = tuple(api for api in WAITING if api not in LONG_POLLS)
"""Those that wait for the other members of a group: behind these a client waits for the rebalance."""
NOT_LED = (*MOVED, "UNKNOWN_LEADER_EPOCH", "LEADER_NOT_AVAILABLE")
"""Errors of a broker that does not lead a partition, or not in the epoch of the request."""
STAYED = (
    "The capture shows no leader that moved: the broker that refused these requests served the same partitions at other times, "
    "and no other broker did. See its log at these times: an election may have moved the partitions away and back, or clients "
    "may have had a leader epoch from another time. A server that only imitates a broker may refuse like this by itself."
)
"""The next step where one broker alone serves the partitions."""
WORK = ("Produce", "Fetch", "ShareFetch", "JoinGroup", "ConsumerGroupHeartbeat", "EndTxn")
"""What applications do; a client that only does administration is a tool, which runs once for each command."""


@rule(
    "not-leader", "medium", 0.85,
    needs="responses bodies",
    looks_at="NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH and LEADER_NOT_AVAILABLE responses, by topic",
    advice="See why leaders move: broker restarts, reassignments, preferred leader elections, full garbage "
    "collections, unstable networks.",
    instead="a planned reassignment or rolling restart, which clients follow by themselves; a topic that was just created",
    errors=3, each=2, seconds=1, lasting=10, moves=4,
)  # fmt: skip
def not_leader(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Leaders that move while clients use them.

    Errors of a client and partition less than `seconds` apart are one move, of which a client normally learns from one or two
    errors. A busy client has more requests on the way, and some libraries request metadata only so often (`leader-change`), so
    that a move of less than `lasting` seconds counts as `each` errors at most. A rolling restart moves a leader away and back:
    the finding is info unless there are more errors than that, or `moves` or more for one client and partition; clients that
    `leader-change` names do not count. A partition that one broker alone serves, before and after its restart, did not move.
    """
    if not seen.errors_of_partitions.intersection(NOT_LED):
        return
    bad = leaders_moved(seen, NOT_LED)
    picked, alone = picking_parts(seen, bad, "topic"), seen.once(served_by_one)
    refused = seen.partition_errors(NOT_LED, chosen=bad)
    by = rows_by((row for row in refused if row["topic"] is not None and not row["topic"].startswith("__")), "topic")
    many = any(sum(row["n"] for row in some) >= limit["errors"] for some in by.values())
    late = seen.once(late_followers) if many else []
    learnt = moves(seen, bad.filter(~bad.client_id.fill_null("").isin(late)), limit) if many else {}
    for topic, some in by.items():
        count, others = sum(row["n"] for row in some), learnt.get(topic, {"times": 0, "most": 0, "errors": 0})
        requests, stayed = sum(row["requests"] for row in some), topic in alone
        leads = "did not lead the partition then, and no other is seen to" if stayed else "does not lead the partition"
        first, last = times_of(some)
        often = others["errors"] > limit["each"] * others["times"] or others["most"] >= limit["moves"]
        moved = others["errors"] >= limit["errors"] and often
        yield Finding(
            f"requests for topic {topic} went {counted(requests, 'time')} to a broker that {leads}",
            {"topic": topic}, requests, where(erring(seen, NOT_LED), picked({"topic": topic, "n": requests}), topic=topic),
            first, last, sum(row["latency_ns"] or 0 for row in some),
            {"errors": count, "partitions": max(row["partitions"] for row in some), "clients": len(some)},
            None if moved else "info", 0.5 if stayed else None, STAYED if stayed else None,
        )  # fmt: skip


def late_followers(seen: Observed) -> list[str]:
    """Clients of which `leader-change` says that they go on with the last leader of a partition for too long."""
    return sorted({one.who["client_id"] for one in seen.once(RULES["leader-change"].by_default) if one.severity is None})


def served_by_one(seen: Observed) -> set[str]:
    """Topics in which one broker alone both refused (with an error of leadership) and served each partition concerned: nothing
    shows that a leader moved.
    """
    parts, place = seen.parts, ["topic", "partition"]
    parts = parts.filter(parts.topic.notnull(), parts.api.isin(["Produce", "Fetch", "ListOffsets"]))
    bad, good = parts.error.isin(list(NOT_LED)), parts.error == "NONE"
    each = parts.group_by(*place).aggregate(
        refused=parts.count(where=bad), served=parts.count(where=good),
        ips=parts.server_ip.nunique(), ports=parts.server_port.nunique(),
    )  # fmt: skip
    each = each.filter(each.refused > 0)
    alone = (each.served > 0) & (each.ips == 1) & (each.ports == 1)
    topics = each.group_by("topic").aggregate(others=each.count(where=~alone))
    return {row["topic"] for row in seen.run(topics.filter(topics.others == 0))}


def moves(seen: Observed, bad: Any, limit: Mapping[str, float]) -> dict[str, Row]:
    """Topic -> how many moves all clients learnt of by these errors (`times`, summed over partitions), by how many errors
    (`errors`, of which a move of less than `lasting` seconds counts as `each` at most), and the `most` moves for one client and
    partition.
    """
    one, apart = ["client_id", "topic", "partition"], int(limit["seconds"] * 1e9)
    order = {"group_by": one, "order_by": ["request_first_ns", "connection", "exchange"]}
    bad = bad.mutate(before_ns=bad.request_first_ns.lag().over(**order))
    bad = bad.mutate(begins=(bad.request_first_ns - bad.before_ns > apart).fill_null(True).cast("int64"))
    bad = bad.mutate(turn=bad.begins.sum().over(**order, rows=(None, 0)))
    runs = bad.group_by(*one, "turn").aggregate(
        n=bad.count(), lasted=bad.request_first_ns.max() - bad.request_first_ns.min()
    )  # fmt: skip
    runs = runs.mutate(n=(runs.lasted >= int(limit["lasting"] * 1e9)).ifelse(runs.n, runs.n.clip(upper=int(limit["each"]))))
    each = runs.group_by(*one).aggregate(times=runs.count(), errors=runs.n.sum())
    rows = seen.run(
        each.group_by("topic").aggregate(times=each.times.sum(), most=each.times.max(), errors=each.errors.sum())
    )  # fmt: skip
    return {row["topic"]: row for row in rows}


@rule(
    "slow-broker", "high", 0.8,
    needs="responses requests peers",
    looks_at="service time (latency without round trip, queueing and long poll) by API and broker, compared with the other "
    "brokers",
    advice="Look at that broker: disk, garbage collection, CPU, network threads (RequestQueueTimeMs, LocalTimeMs, "
    "RemoteTimeMs).",
    instead="partitions with more load, or with slow followers, on that broker; packet loss between it and its followers",
    requests=20, times=5, milliseconds=50, share=0.15, late=5, seconds=2, alone=0.5,
)  # fmt: skip
def slow_broker(seen: Observed, limit: Mapping[str, float]) -> Found:
    """One broker that is slow at an API while its peers are not.

    The 95th percentile of 20 requests is a single request, and while a cluster waits for another broker's replicas, any broker
    may be slow for a moment. So `late` requests must be slow, with `seconds` from the first of them to the response of the
    last. Requests that waited at the same time as the slowest one do not count: the clock of the capture may have been set
    forward then. The part `alone` of the late time must lie in seconds in which the other brokers served the same API and were
    not late: a cluster that starts is slow everywhere, and a group has one coordinator after the other.
    """
    calls = seen.calls_by(("api", "server_ip", "server_port"), PROMPT)
    often = Counter(api for (api, _, _), some in calls.items() if totals(some)["n"] >= limit["requests"])
    if max(often.values(), default=0) < 2:
        return  # no API has two brokers to compare
    chosen, late = served(seen, limit)
    rows = seen.run(
        in_groups(
            chosen, CALL, total=chosen.own.sum(), slow=chosen.count(where=late), slow_ns=chosen.own.sum(where=late),
            no_rtt=chosen.count(where=chosen.rtt_ns.isnull()), broker_id=chosen.broker_id.max(),
            late_ns=chosen.request_first_ns.min(where=late), late_until_ns=chosen.response_first_ns.max(where=late),
        )
    )  # fmt: skip
    slow: dict[tuple[str, int], list[tuple[Row, float]]] = {}
    for some in rows_by((row for row in rows if row["n"] >= limit["requests"]), ("api", "to_all")).values():
        if len(some) > 1 and any(often_late(row, limit) for row in some):
            for row, usual in slow_again(seen, some, limit):
                slow.setdefault((row["server_ip"], row["server_port"]), []).append((row, usual))
    waiting = slow_leaders(seen, RULES["slow-replication"].thresholds) if slow else {}
    for (ip, port), found in slow.items():
        row, others_p95 = max(found, key=lambda one: one[0]["total"])
        apis = sorted({one["api"] for one, _ in found})
        with_all = all(one["to_all"] or one["api"] in REPLICATED for one, _ in found)
        leader = waiting.get((ip, port))
        if with_all and leader is not None and leader.proven:
            continue  # slow-replication names it
        unsure = with_all and waits_for_replicas(seen, chosen, late).get((ip, port), False) is not False
        yield Finding(
            f"broker {ip}:{port} takes {seconds(row['p95'])} for {row['api']}"
            + " with acks=all" * (unsure and row["to_all"])
            + f" (95th percentile), other brokers {seconds(others_p95)}"
            + "; its followers may be what is slow" * unsure,
            {"server": f"{ip}:{port}", "broker_id": row["broker_id"]}, row["n"],
            where(f"api in {{{', '.join(apis)}}}", server_ip=ip, server_port=port), row["first_ns"], row["last_ns"],
            sum(int(one["total"]) for one, _ in found), {"p95_ns": round(row["p95"]), "others_p95_ns": round(others_p95),
                "apis": apis}, "medium" if unsure else None, UNSURE if unsure else None, REPLICAS if unsure else None,
        )  # fmt: skip


def slow_again(seen: Observed, rows: Sequence[Row], limit: Mapping[str, float]) -> list[tuple[Row, float]]:
    """Of the brokers that serve an API those that were slow at it, each with the 95th percentile of the others: slow next to
    them, beside the moment of its slowest request, and while they were not.

    One API at a time is looked at, since few have late requests that are worth the queries.
    """
    chosen, late = served(seen, limit, rows[0]["api"])
    lasted = chosen.group_by(*CALL).aggregate(p95=chosen.own.quantile(0.95), elapsed_p95=chosen.elapsed.quantile(0.95))
    times = {call_of(row): row for row in seen.run(lasted)}
    rows = [{**row, **times[call_of(row)]} for row in rows]
    usual, elapsed = (sorted(row[name] for row in rows) for name in ("p95", "elapsed_p95"))
    beside = [(row, middle_without(usual, row["p95"]), middle_without(elapsed, row["elapsed_p95"])) for row in rows]
    slow = [(row, others) for row, others, others_elapsed in beside if stands_out(row, others, others_elapsed, limit)]
    if not slow:
        return []
    rest = {call_of(row): row for row in seen.run(late_beside(chosen, late))}
    compared = while_others_serve(chosen, rows, [row for row, _ in slow])
    alone = {
        call_of(row): (row["alone_ns"] or 0) / max(row["own_ns"], 1)
        for row in seen.run(late_alone(chosen, late, limit["times"], compared))
    }
    return [
        (row, others)
        for row, others in slow
        if again(rest.get(call_of(row)), row, limit) and alone.get(call_of(row), 0) >= limit["alone"]
    ]


def while_others_serve(chosen: Any, rows: Sequence[Row], slow: Sequence[Row]) -> Any:
    """Whether exchanges with one of the `slow` brokers were sent between the first and the last that other brokers got of the
    API: what one serves alone, as a coordinator does before it moves, compares two times and not two brokers.
    """
    found = chosen.connection.isnull()
    for row in slow:
        others = [one for one in rows if call_of(one) != call_of(row)]
        between = chosen.request_first_ns.between(min(one["first_ns"] for one in others), max(one["last_ns"] for one in others))
        mine = (chosen.server_ip == row["server_ip"]) & (chosen.server_port == row["server_port"])
        found |= mine & (chosen.to_all == row["to_all"]) & between
    return found


def late_alone(chosen: Any, late: Any, times: float, compared: Any) -> Any:
    """Of each API and broker how long the late exchanges took in all, and those `compared` of seconds in which it had `times`
    as many as its peers together.
    """
    some = chosen.mutate(compared=compared).filter(late)
    some = some.select(*CALL, "own", "compared", second=some.request_first_ns // 1_000_000_000)
    each = some.group_by(*CALL, "second").aggregate(
        mine=some.count(), own_ns=some.own.sum(), compared_ns=some.own.sum(where=some.compared)
    )
    each = each.mutate(all=each.mine.sum().over(group_by=["api", "to_all", "second"]))
    alone = (each.all - each.mine) * times <= each.mine
    return each.group_by(*CALL).aggregate(own_ns=each.own_ns.sum(), alone_ns=each.compared_ns.sum(where=alone))


def median(values: Sequence[float]) -> float:
    """The median of values; the standard library's module of it loads fractions and decimals."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def middle_without(ordered: Sequence[float], one: float) -> float:
    """The median of sorted values, of two or more, without one of them."""
    at, count = bisect_left(ordered, one), len(ordered) - 1
    low, high = ((count - 1) // 2, count // 2)
    return (ordered[low + (low >= at)] + ordered[high + (high >= at)]) / 2


def stands_out(row: Row, others: float, others_elapsed: float, limit: Mapping[str, float]) -> bool:
    """Whether a broker's service is slow next to the medians of the others."""
    if not often_late(row, limit) or row["p95"] < max(limit["milliseconds"] * 1e6, limit["times"] * max(others, 1.0)):
        return False
    # where no round trip is known the network is part of the time, so that it has to be part of that of the others
    return not row["no_rtt"] or row["elapsed_p95"] >= limit["times"] * others_elapsed


SEARCHES = ("Metadata", "FindCoordinator")
"""What libraries send by themselves, to whichever broker they are connected to."""


@rule(
    "head-of-line", "medium", 0.85,
    needs="responses requests",
    looks_at="time that requests wait behind earlier ones of their connection",
    advice="Do not pipeline quick requests behind a long poll: give them a separate connection, or lower fetch.max.wait.ms.",
    instead="a broker that was slow for all clients",
    requests=5, milliseconds=100, seconds=1,
)  # fmt: skip
def head_of_line(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Quick requests that wait behind slow ones of the same connection.

    If all of them were sent within less than `seconds`, they waited once, for example when a client that is assigned partitions
    looks up their offsets: that is info. Requests that a library sends by itself to any connected broker are no pipelining by
    the application and do not extend this time: FindCoordinator, and Metadata if the client names its library.
    """
    long = int(limit["milliseconds"] * 1e6)
    if seen.apis.isdisjoint(LONG_POLLS) or all(
        (call["most_queue_ns"] or 0) < long for call in seen.calls if call["api"] not in LONG_POLLS
    ):
        return
    table = seen.exchanges
    behind_fetch = table.group_by("connection").aggregate(
        fetches=table.count(where=table.api.isin(LONG_POLLS)), joins=table.count(where=table.api.isin(GATHERING)),
        shares=table.count(where=table.api == "ShareFetch"),
        throttled=table.count(where=table.throttle_time_ms > 0),
    )  # fmt: skip
    fetching = behind_fetch.filter(behind_fetch.fetches > 0, behind_fetch.joins == 0, behind_fetch.throttled == 0)
    chosen = table.filter(
        table.queue_ns >= long, table.queue_ns * 2 >= table.latency_ns, ~table.api.isin(LONG_POLLS)
    )  # fmt: skip
    chosen = chosen.inner_join(fetching.select("connection", "shares"), "connection")
    at, work = chosen.request_first_ns, ~chosen.api.isin(SEARCHES)
    figures = {
        "shares": chosen.shares.max(), "lost": chosen.queue_ns.sum(),
        "searches": chosen.count(where=chosen.api == "FindCoordinator"),
        "work_ns": (at.max(where=work) - at.min(where=work)).fill_null(0),
    }  # fmt: skip
    rows = seen.run(in_groups(chosen, ("client_id", "connection"), **figures))
    for client, some in rows_by((row for row in rows if row["n"] >= limit["requests"]), "client_id").items():
        count, lost = sum(row["n"] for row in some), sum(row["lost"] for row in some)
        library = any(call["software_name"] for call in seen.calls_of(client_id=client))
        by_itself = library or any(row["searches"] for row in some)
        lasted = max(row["work_ns"] if by_itself else row["last_ns"] - row["first_ns"] for row in some)
        yield Finding(
            f"{count} requests of {called(client)} waited {seconds(lost / count)} on average behind "
            f"{'ShareFetch' if all(row['shares'] for row in some) else 'Fetch'} on the same connection",
            {"client_id": client, "connection": some[0]["connection"]}, count,
            where(f"queue_ns >= {int(limit['milliseconds'])}ms", client_id=client),
            *times_of(some), lost, {"requests": count, "queue_ns": lost},
            None if lasted >= limit["seconds"] * 1e9 else "info",
        )  # fmt: skip


@rule(
    "idle-disconnect", "low", 0.8,
    needs="responses requests time",
    looks_at="connections that the other side closes after the same time without a request, and that the client opens again",
    advice="Keep connections.max.idle.ms of the client below that of the broker, and below the timeouts of firewalls and load "
    "balancers between them.",
    instead="a proxy or a load balancer that is restarted at regular intervals",
    connections=3, seconds=1, spread=0.25, together=0.2,
)  # fmt: skip
def idle_disconnect(seen: Observed, limit: Mapping[str, float]) -> Found:
    """Connections that the other side closes while they are idle. Connections of a client to several servers count together if
    all were idle for the same time, as behind a proxy, and one server closed two or more of them.
    """
    cut = Counter[str]()
    for link in seen.links:
        if link["ended"] in ("fin", "rst") and link["client_id"] is not None and link["exchanges"]:
            cut[link["client_id"]] += link["n"]
    if max(cut.values(), default=0) < limit["connections"]:
        return
    by, begins = cut_at_rest(seen, limit)
    for client, rows in rows_by(by, "client_id").items():
        places = rows_by(rows, SERVER)
        most = max(map(len, places.values()))
        together = alike_in(rows, begins, limit) if most >= TWICE else []
        for alike in [together] if together else [alike_in(some, begins, limit) for some in places.values()]:
            if not alike:
                continue
            servers, middle = sorted({server_of(row) for row in alike}), median([row["idle_ns"] for row in alike])
            one = len(servers) == 1
            yield Finding(
                f"{len(alike)} connections of {called(client)} to {servers[0] if one else counted(len(servers), 'server')} "
                f"were closed by the other side after {seconds(middle)} without a request, and opened again",
                {"client_id": client, "server": servers[0] if one else None}, len(alike),
                where(connected(alike), client_id=client, **({name: alike[0][name] for name in SERVER} if one else {})),
                *times_of(alike), 0,
                {"connections": len(alike), "idle_ns": round(middle), **({} if one else {"servers": len(servers)})},
            )  # fmt: skip


TWICE = 2
"""Connections that one server closed: of several servers each may close one in the same moment."""


def cut_at_rest(seen: Observed, limit: Mapping[str, float]) -> tuple[list[Row], dict[tuple[str, str, int], int]]:
    """Connections that the server closed at rest (`idle_ns` behind the last response), without those that ended with their
    process; and when the last connection of each client to each server began."""
    table, links = seen.exchanges, seen.connections
    used = table.group_by("connection").aggregate(done_ns=table.response_last_ns.max())
    joined = links.filter(links.ended.isin(["fin", "rst"])).inner_join(used, "connection")
    idle = joined.mutate(idle_ns=joined.closed_ns - joined.done_ns)
    idle = idle.filter(idle.closed_by == "server").filter(idle.idle_ns >= int(limit["seconds"] * 1e9), idle.client_id.notnull())
    rows = seen.run(idle.select("connection", "client_id", "client_ip", "server_ip", "server_port", "idle_ns", "first_ns",
                                "last_ns"))  # fmt: skip
    if len(rows) < limit["connections"]:
        return [], {}
    resting = {row["connection"] for row in rows}
    busy: dict[tuple[str, str], list[int]] = {}
    begins: dict[tuple[str, str, int], int] = {}
    for link in seen.run(
        links.select("connection", "client_id", "client_ip", "server_ip", "server_port", "first_ns", "last_ns")
    ):
        if link["connection"] not in resting:
            busy.setdefault((link["client_id"], link["client_ip"]), []).append(link["last_ns"])
        place = link["client_id"], link["server_ip"], link["server_port"]
        begins[place] = max(link["first_ns"], begins.get(place, 0))
    for ends in busy.values():
        ends.sort()
    found = []
    for row in rows:
        # with a process end all of its connections, also those that were busy until then
        ends, together = busy.get((row["client_id"], row["client_ip"]), []), limit["together"] * 1e9
        at = bisect_left(ends, row["last_ns"] - together)
        if at == len(ends) or ends[at] > row["last_ns"] + together:
            found.append(row)
    return found, begins


def alike_in(rows: Sequence[Row], begins: Mapping[tuple[str, str, int], int], limit: Mapping[str, float]) -> list[Row]:
    """Of connections that were cut at rest those that were idle as long; none where they are few, or hardly any was opened
    again."""
    again = [row for row in rows if begins[row["client_id"], row["server_ip"], row["server_port"]] > row["last_ns"]]
    if len(again) < limit["connections"] - 1 or len(rows) < limit["connections"]:
        return []
    middle = median([row["idle_ns"] for row in rows])
    alike = [row for row in rows if abs(row["idle_ns"] - middle) <= limit["spread"] * middle]
    return alike if len(alike) >= max(limit["connections"], 0.7 * len(rows)) else []


@rule(
    "connection-churn", "medium", 0.85,
    needs="beginnings",
    looks_at="connections per second of a client and host, and what each is used for",
    advice="Create one client for the life of the process and share it: a producer for each task costs a login and metadata "
    "each time.",
    instead="many short-lived processes, such as functions or cron jobs",
    connections=20, a_second=2, exchanges=6, seconds=5, share=0.2,
)  # fmt: skip
def connection_churn(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A client that opens connections all the time. Only connections of one host count together, since a service with many
    instances opens many when it starts. If a `share` of them fails, the client has another problem and the rule is silent.
    """
    begun = (link for link in seen.links if link["client_id"] and link["phase"] == "kafka" and link["began"] == "syn")
    by = rows_by(begun, ("client_id", "client_ip"))
    failed = Counter[str]()
    for call in seen.calls:
        error, closed = call["error"] or "", call["reason"] in ("fin", "rst") and call["api"] not in WAITING
        failed[call["client_id"]] += call["n"] * (closed or "SASL" in error or "AUTHENTICATION" in error)
    if seen.calls_of(api="Produce", outcome="one_way"):
        from kcap.reports.findings.one_way import refused_one_way  # for captures with such requests

        for row in seen.run(in_groups(seen.once(refused_one_way), ("client_id",))):
            failed[row["client_id"]] += row["n"]
    worked, opened, accused = seen.calls_by("client_id", WORK), Counter[str](), set[str]()
    many: list[tuple[int, str, list[Row]]] = []
    for (client, _), links in by.items():
        count = sum(link["n"] for link in links)
        opened[client] += count
        if count >= limit["connections"] and failed[client] < limit["share"] * count:
            many.append((count, client, links))
    for count, client, links in sorted(many, key=lambda one: -one[0]):
        exchanges = sum(link["exchanges"] for link in links)
        first, last = min(link["first_ns"] for link in links), max(link["last_ns"] for link in links)
        rate = count / max((last - first) / 1e9, 1.0)
        short = median([link["life_ns"] or 0 for link in links]) <= limit["seconds"] * 1e9
        if rate >= limit["a_second"] and exchanges <= limit["exchanges"] * count and short and client not in accused:
            accused.add(client)
            work = sum(call["n"] for call in worked.get(client, ()))
            yield Finding(
                f"{called(client)} opened {count} connections, {rate:.0f} a second, with {exchanges / count:.1f} "
                "exchanges each",
                {"client_id": client}, count, where(client_id=client), first, last, 0,
                {"connections": count, "connections_a_second": round(rate, 1), "exchanges": exchanges},
                None if work >= limit["share"] * opened[client] else "info",
            )  # fmt: skip
