"""Brokers that responded, then accept no connection for a while, and perhaps do again.

In: connections and exchanges. Out: findings. Law: no pairs of connections, one order of time.
"""

from collections.abc import Mapping
from typing import Any, Final

from kcap.limits import SERVERS_MOST
from kcap.reports.findings.closing import hosts_of, not_accepted
from kcap.reports.findings.model import Finding, Found, rule, seconds, where
from kcap.reports.findings.observed import Observed, Row, server_of
from kcap.reports.recorded import functions
from kcap.reports.text import count as counted

SERVER: Final = ("server_ip", "server_port")
PLACE: Final = ("topic", "partition")
BEFORE_NS: Final = 5_000_000_000
"""How long before the broker's last response the writes count that show how often a partition is written to."""
STEADY: Final = 5
"""Writes in that time from which on the next one is due within a second."""


def refused_runs(seen: Observed) -> list[Row]:
    """Servers that responded, with the longest time from one refused connection to the last before it accepts again: n,
    refused (others were not answered), hosts, client_ip, first_ns, last_ns and seen_ns, its last response before. One that
    responds meanwhile on connections that it has is none of them.
    """
    links = seen.every_link
    order = {"group_by": list(SERVER), "order_by": ["first_ns", "connection"], "rows": (None, 0)}
    ibis = functions(links)
    links = links.filter(links.began == "syn")
    links = links.mutate(failed=not_accepted(links) & (links.ended != "fin"))  # a FIN follows what the capture lacks
    links = links.mutate(turn=(~links.failed).cast("int64").sum().over(ibis.window(**order)))
    failed = links.filter(links.failed)
    runs = failed.group_by(*SERVER, "turn").aggregate(
        n=failed.count(), refused=failed.count(where=failed.server_packets == 1), hosts=failed.client_ip.nunique(),
        client_ip=failed.client_ip.min(), first_ns=failed.first_ns.min(), last_ns=failed.first_ns.max(),
    )  # fmt: skip
    longest = ibis.window(group_by=list(SERVER), order_by=[(runs.last_ns - runs.first_ns).desc(), runs.turn])
    runs = runs.mutate(place=ibis.row_number().over(longest))
    runs = runs.filter(runs.place == 0)
    table = seen.every
    at = table.filter(table.outcome == "answered").select(*SERVER, "response_last_ns", "broker_id")
    both = runs.inner_join(at, list(SERVER))
    known = both.group_by(*SERVER, "n", "refused", "hosts", "client_ip", "first_ns", "last_ns").aggregate(
        seen_ns=both.response_last_ns.max(where=both.response_last_ns <= both.first_ns),
        meanwhile=both.count(where=(both.response_last_ns > both.first_ns) & (both.response_last_ns < both.last_ns)),
        broker_id=both.broker_id.max(),
    )  # fmt: skip
    known = known.filter(known.seen_ns.notnull(), known.meanwhile == 0)
    return seen.first(known, ("first_ns", *SERVER), SERVERS_MOST, "unavailable_brokers")


@rule(
    "broker-unavailable", "medium", 0.85,
    needs="beginnings responses",
    looks_at="brokers that responded, and then accept no connection for a while; partitions that were written to all the time, "
    "until no write to them succeeded at any broker",
    advice="See why it stopped: its log, the kernel's (out of memory), and the times of deployments. A broker that stops by "
    "itself hands its partitions over first (controlled.shutdown.enable); those of one that was killed have no leader until "
    "its session is over (broker.session.timeout.ms).",
    instead="a planned restart; a listener or a firewall that was changed",
    refused=3, seconds=1, unwritten=3,
)  # fmt: skip
def broker_unavailable(seen: Observed, limit: Mapping[str, float]) -> Found:
    """A broker that becomes unavailable while the capture runs.

    A rolling restart looks alike, and clients go on at the brokers that lead by then: that is worth knowing and no more. It is
    a problem where no write succeeded for `unwritten` seconds to partitions that were written to several times a second until
    then.
    """
    if ("empty", "syn") not in seen.begun:
        return
    for row in seen.once(refused_runs):
        lasted = row["last_ns"] - row["first_ns"]
        if row["n"] < limit["refused"] or lasted < limit["seconds"] * 1e9:
            continue
        server = server_of(row)
        how = "refused" if row["refused"] == row["n"] else "not answered" if not row["refused"] else "refused or not answered"
        waits = [one for one in unwritten(seen, row) if one["gap_ns"] >= limit["unwritten"] * 1e9]
        longest = max((one["gap_ns"] for one in waits), default=0)
        yield Finding(
            f"broker {server} accepted no connection for at least {seconds(lasted)}: {counted(row['n'], 'connection')} of "
            f"{hosts_of(row)} were {how}"
            + (f"; no write to {counted(len(waits), 'partition')} succeeded for up to {seconds(longest)}" if waits else ""),
            {"server": server, "broker_id": row["broker_id"], "client_ips": [row["client_ip"]]}, row["n"],
            where(server_ip=row["server_ip"], server_port=row["server_port"]), row["first_ns"], row["last_ns"], longest,
            {"connections": row["n"], "refused": row["refused"], "refusing_ns": lasted, "partitions": len(waits),
             "unwritten_ns": longest},
            None if waits else "info",
        )  # fmt: skip


def unwritten(seen: Observed, row: Row) -> list[Row]:
    """Partitions that clients wrote to all the time through a broker up to its first refused connection, with `gap_ns`, from
    the last write that it took to the next that any broker took. A client that closed its connection was done by itself.
    """
    parts = seen.parts
    good = parts.filter(parts.api == "Produce", parts.error == "NONE", parts.topic.notnull(), parts.response_first_ns.notnull())
    mine = (good.server_ip == row["server_ip"]) & (good.server_port == row["server_port"])
    before: Any = (good.response_first_ns <= row["first_ns"]) & (good.response_first_ns > row["seen_ns"] - BEFORE_NS)
    last = good.filter(mine & before)
    last = last.group_by(*PLACE).aggregate(
        n=last.count(), ok_ns=last.response_first_ns.max(), connection=last.connection.argmax(last.response_first_ns)
    )
    links = seen.connections
    last = last.anti_join(links.filter(links.closed_by == "client"), "connection")
    both = last.filter(last.n >= STEADY).inner_join(good.select(*PLACE, "response_first_ns"), list(PLACE))
    both = both.filter(both.response_first_ns > both.ok_ns)
    gaps = both.group_by(*PLACE, "ok_ns").aggregate(next_ns=both.response_first_ns.min())
    return seen.run(gaps.select(*PLACE, gap_ns=gaps.next_ns - gaps.ok_ns))
