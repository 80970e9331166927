"""Whether a broker is slow by itself, or waits for the replicas of its partitions.

In: Produce requests of one broker. Out: whether those that are late ask for all replicas (acks=all) while others, which the
leader writes alone (acks=1), get their response in time. Law: no pairs of exchanges, one order of time.
"""

from typing import Any, Final

from kcap.reports.findings.observed import Observed
from kcap.reports.recorded import functions

ALL: Final = -1


def waits_for_replicas(seen: Observed, chosen: Any, late: Any, broker: tuple[str, int]) -> bool:
    """Whether the late Produce requests of a broker waited for its followers: nearly all of them have acks=all, and while most
    of them waited, one with acks=1 was sent and got its response in time. `chosen` has `own`, as `serving.served` gives it.
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
    return bool(row["to_all"] >= 0.9 * row["late"] and 2 * row["beside"] >= row["late"] > 0)
