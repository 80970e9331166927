"""A broker that sends no response at all for a while, as a paused process, host or disk leaves it.

In: exchanges. Out: findings. Law: requests that a broker answers at once were waiting, sent before and while it was silent.
"""

from collections.abc import Mapping
from typing import Final

from kcap.limits import EVENTS_MOST
from kcap.reports.findings.model import RULES, Finding, Found, rule, seconds, where
from kcap.reports.findings.observed import SERVER, Observed, Row
from kcap.reports.findings.replication import UNSURE
from kcap.reports.findings.served import PROMPT, served
from kcap.reports.text import count as counted

SECOND_NS: Final = 1_000_000_000


@rule(
    "broker-stall", "medium", 0.75,
    needs="responses requests",
    looks_at="times in which a broker sends no response to any client while requests wait that it otherwise answers at once",
    advice="Look at that broker at that time: garbage collection and safepoints (its GC log), a paused virtual machine, stolen "
    "CPU time, a disk that hangs (iostat).",
    instead="if the capture shows only one client, its host or the path may have held packets back; if only writes waited, "
    "replicas that acknowledge slowly (acks=all)",
    seconds=1, requests=3, spread=0.1, times=10, often=20, alone=0.6, several=0.85,
)  # fmt: skip
def broker_stall(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A broker that is silent for `seconds` or longer while `requests` or more requests wait.

    The waiting requests must be sent over `spread` seconds or more: if the clock of the capture is set forward, no request
    appears in between. The broker's median, over `often` requests, must be `times` shorter. Requests that TCP retransmitted do
    not count, since they waited for the network; nor do connections whose requests wait behind a long poll, a rebalance or a
    throttle.

    A stopped broker makes the others in a cluster wait for its replicas. If the first waiting request of each connection is a
    write to all replicas, and no long poll is overdue, nothing shows which broker stopped: the finding is info. It is high if
    hosts gave up requests in that time and connected again, since their clients saw errors.
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
    """Brokers that stood still as `broker_stall` defines it: `silences` with their times, the broker's `usual` time, whether
    its `followers` may have been what stood still, and a `filter` that picks the requests where they are few. It is looked for
    once where the limits are those of the rule.
    """
    usual = limit == RULES["broker-stall"].thresholds
    return seen.once(by_default_limits) if usual else looked_for(seen, limit)


def by_default_limits(seen: Observed) -> dict[tuple[str, int], Row]:
    """`stood_still` with the limits of the rule, for rules on what follows from it."""
    return looked_for(seen, RULES["broker-stall"].thresholds)


def looked_for(seen: Observed, limit: Mapping[str, float]) -> dict[tuple[str, int], Row]:
    """`standing_brokers` of the module `silences`, which few captures need."""
    if not some_waited(seen, int(limit["seconds"] * 1e9)):
        return {}
    from kcap.reports.findings.silences import standing_brokers

    return standing_brokers(seen, limit)


def some_waited(seen: Observed, least: int) -> bool:
    """Whether requests may have waited `least` ns: from classes of exchanges alone, without a query."""
    ends = ("fin", "rst", "capture_end")
    calls = (call for call in seen.calls if call["api"] in PROMPT)
    return any((call["latency_ns"] or 0) >= least or call["reason"] in ends for call in calls)


def stalls(seen: Observed) -> list[Row]:
    """The times of a second and more in which a broker sent no response to anyone while requests waited: server_ip,
    server_port, since, until."""
    if not some_waited(seen, SECOND_NS):
        return []
    from kcap.reports.findings.silences import delayed, silences

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
