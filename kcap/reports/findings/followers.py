"""Followers whose Fetch requests acknowledge the records that late writes wait for.

In: late writes, and Fetch requests of followers where the capture has them. Out: the followers of each leader. Law: no pairs of
exchanges, one order of time.
"""

import re
from typing import Any, Final, NamedTuple

from kcap.reports.definition import REPLICAS as FETCHERS
from kcap.reports.definition import of_brokers
from kcap.reports.findings.observed import SERVER, Observed
from kcap.reports.recorded import functions

FOLLOWER: Final = re.compile(r"broker-(\d+)-fetcher-\d+")
"""The client id of a follower, with its broker id (kafka.server.ReplicaFetcherManager)."""
NEAR_NS: Final = 5_000_000
"""A leader responds within this time of the Fetch that it waited for."""


class Follower(NamedTuple):
    """A follower that late writes of a leader wait for."""

    broker_id: int
    writes: int
    """Late writes whose response came with its Fetch."""
    waited_ns: int
    """The time that these took."""
    took_ns: int
    """Median time from records that were sent to it until its next Fetch, of those that took long."""


def acknowledging(seen: Observed, writes: Any, least: int) -> dict[tuple[str, int], list[Follower]]:
    """Leader -> the followers whose Fetch comes `least` ns and more behind the records that they were sent, with those of the
    writes whose response the leader sent when such a Fetch arrived.

    The tap may be anywhere between them: a round trip from the tap to the leader lies between a response that passes the tap
    and the Fetch that follows it, and half of one between the tap and the leader. Brokers often have a listener of their own
    for followers (inter.broker.listener.name): it is that of the only port at its address that clients use.
    """
    table = seen.every
    polls = table.filter(table.api == "Fetch", of_brokers(table, (), FETCHERS[1]), table.outcome == "answered")
    before = functions(polls).window(group_by="connection", order_by="exchange")
    polls = polls.mutate(
        sent_ns=polls.response_last_ns.lag().over(before), carried=polls.record_count.lag().over(before),
        half_ns=polls.rtt_ns.fill_null(0) // 2,
    )  # fmt: skip
    polls = polls.mutate(took=polls.request_last_ns - polls.sent_ns + 2 * polls.half_ns)
    polls = polls.filter(polls.carried > 0, polls.took >= least)
    polls = polls.mutate(due_ns=polls.request_last_ns + polls.half_ns)
    polls = at_listeners_of_clients(seen, polls).select(*SERVER, "client_id", "took", "due_ns")
    ibis = functions(writes)
    at = writes.response_first_ns - writes.rtt_ns.fill_null(0) // 2
    both = ibis.union(
        polls.select(*SERVER, at="due_ns", due_ns="due_ns", waits=ibis.literal(0, "int64"), own=ibis.null("int64")),
        writes.select(*SERVER, at=at, due_ns=ibis.null("int64"), waits=ibis.literal(1, "int64"), own="own"),
    )
    upto = ibis.window(group_by=list(SERVER), order_by=["at", "waits"], rows=(None, 0))
    both = both.mutate(due_ns=both.due_ns.max().over(upto))
    both = both.filter(both.waits == 1, both["at"] - both.due_ns <= NEAR_NS)
    met = both.group_by(*SERVER, "due_ns").aggregate(writes=both.count(), waited=both.own.sum())
    polls = polls.left_join(met, [*SERVER, "due_ns"])
    rows = seen.run(
        polls.group_by(*SERVER, "client_id").aggregate(
            writes=polls.writes.fill_null(0).sum(), waited=polls.waited.fill_null(0).sum(), took=polls.took.median()
        )
    )
    found: dict[tuple[str, int], list[Follower]] = {}
    for row in rows:
        if name := FOLLOWER.match(row["client_id"] or ""):
            found.setdefault((row["server_ip"], row["server_port"]), []).append(
                Follower(int(name[1]), int(row["writes"]), int(row["waited"]), round(row["took"]))
            )
    return found


def at_listeners_of_clients(seen: Observed, polls: Any) -> Any:
    """Requests of followers; of an address at which they use one port and clients use one port, with that of the clients."""
    answered = seen.exchanges.filter(seen.exchanges.outcome == "answered")
    port = answered.server_port
    clients = answered.group_by("server_ip").aggregate(clients_port=port.max(), ports=port.nunique())
    own = polls.group_by("server_ip").aggregate(own_ports=polls.server_port.nunique())
    pairs = clients.inner_join(own, "server_ip")
    pairs = pairs.filter(pairs.ports == 1, pairs.own_ports == 1).select("server_ip", "clients_port")
    polls = polls.left_join(pairs, "server_ip")
    return polls.mutate(server_port=polls.clients_port.fill_null(polls.server_port))
