"""Whether a broker is slow by itself, or waits for the replicas of its partitions.

In: Produce requests of one broker. Out: whether those that are late ask for all replicas (acks=all), and whether others, which
the leader writes alone (acks=1), get their response in time meanwhile. Law: no pairs of exchanges, one order of time.
"""

from typing import Any, Final

from kcap.reports.findings.observed import Observed
from kcap.reports.recorded import functions

ALL: Final = -1
UNSURE: Final = 0.4
"""How often a broker of a cluster is the cause where only requests wait that all replicas have to acknowledge."""


def waits_for_replicas(seen: Observed, chosen: Any, late: Any, broker: tuple[str, int]) -> bool | None:
    """Whether the late Produce requests of a broker waited for its followers: nearly all of them have acks=all, and while most
    of them waited, one with acks=1 was sent and got its response in time. None where nearly all have acks=all and nothing tells
    the broker from its followers and the paths to them. `chosen` has `own`, as `serving.served` gives it.
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
    return True if 2 * row["beside"] >= row["late"] else None
