"""Whether a broker is slow by itself, or waits for the replicas of its partitions.

In: Produce requests of one broker. Out: whether those that are late ask for all replicas (acks=all), and whether others, which
the leader writes alone (acks=1), get their response in time meanwhile. Law: no pairs of exchanges, one order of time.
"""

from typing import Any, Final

from kcap.reports.findings.observed import RESPONSES_READ, Observed
from kcap.reports.recorded import functions

ALL: Final = -1
UNSURE: Final = 0.4
"""How often a broker of a cluster is the cause where only requests wait that all replicas have to acknowledge."""


def waits_for_replicas(seen: Observed, chosen: Any, late: Any, broker: tuple[str, int]) -> bool | None:
    """Whether the late Produce requests of a broker waited for its followers: nearly all of them have acks=all, and while most
    of them waited, one with acks=1 was sent and got its response in time. None where nearly all have acks=all and nothing
    distinguishes the broker from its followers and the paths to them. `chosen` has `own`, as `serving.served` gives it.
    """
    ip, port = broker
    some = chosen.mutate(late=late).filter(
        chosen.api == "Produce", chosen.server_ip == ip, chosen.server_port == port, chosen.response_first_ns.notnull()
    )
    quick = (some.acks == 1) & ~some.late
    some = some.mutate(quick_ns=quick.ifelse(some.response_first_ns, None))
    behind = functions(some).window(order_by="request_first_ns", rows=(0, None))
    some = some.mutate(next_ns=some.quick_ns.min().over(behind))
    some = some.filter(some.late)
    to_all = some.acks == ALL
    (row,) = seen.run(
        some.aggregate(
            late=some.count(), to_all=some.count(where=to_all),
            beside=some.count(where=to_all & (some.next_ns < some.response_first_ns).fill_null(False)),
        )
    )  # fmt: skip
    if row["to_all"] < 0.9 * row["late"] or not row["late"]:
        return False
    if 2 * row["beside"] >= row["late"]:
        return True
    return None if replicated(seen) else False


def replicated(seen: Observed) -> bool:
    """Whether topics that are written to may have followers: the last Metadata responses name more than one replica of some
    partition, or say nothing of them.
    """
    table, written = seen.exchanges, seen.clients_by_topic("Produce")
    table = table.filter(table.api == "Metadata", table.outcome == "answered")
    latest = table.select("connection", "exchange", "request_first_ns")
    rows = seen.run(latest.order_by(latest.request_first_ns.desc(), "connection", "exchange").limit(RESPONSES_READ))
    topics = (topic for row in seen.prepared(rows) for topic in seen.message(row, "response").get("topics") or ())
    sizes = [
        len(part.get("replicaNodes") or ())
        for topic in topics if topic.get("name") in written for part in topic.get("partitions") or ()
    ]  # fmt: skip
    return not sizes or max(sizes) != 1
