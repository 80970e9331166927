"""Outages: times in which a broker that responded before accepts no connection.

In: connections and exchanges. Out: these times; whether a server was out of reach in a span of time; partitions that stayed
with their broker over its restart. Rules on members and leaders leave out what follows from an outage. Law: no pairs of
connections, one order of time.
"""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any, Final

from kcap.limits import SERVERS_MOST
from kcap.reports.findings.observed import PLACE, SERVER, Observed, Row
from kcap.reports.recorded import functions

OUTAGE: Final = (
    "See why that server was away (broker-unavailable): requests that wait for a leader or a coordinator there continue when "
    "another broker has taken over."
)
"""Advice for what took long while a server was away."""
SHORTEST_NS: Final = 1_000_000_000
"""A connection that a busy server refuses among others is no outage."""


def not_accepted(links: Any) -> Any:
    """Whether connections were refused or not answered."""
    no_server = (links.server_packets == 0) | ((links.server_packets == 1) & (links.ended == "rst"))
    return (links.phase == "empty") & (links.began == "syn") & no_server


def failing(links: Any) -> Any:
    """`not_accepted` of connections to a server in an outage, without those that end with a FIN: the capture lacks their
    packets."""
    return not_accepted(links) & (links.ended != "fin")


def refused_runs(seen: Observed) -> list[Row]:
    """Servers that responded, with the longest time from one refused connection to the last before it accepts again: n, tries
    (a SYN that is sent again is one more), refused (others were not answered), hosts, client_ip, first_ns, last_ns and seen_ns,
    its last response before. Servers that respond meanwhile on other connections are left out.
    """
    links = seen.every_link
    order = {"group_by": list(SERVER), "order_by": ["first_ns", "connection"]}
    ibis = functions(links)
    links = links.filter(links.began == "syn")
    links = links.mutate(failed=failing(links))
    links = links.mutate(
        turn=(~links.failed).cast("int64").sum().over(ibis.window(**order, rows=(None, 0))),
        taken_ns=links.failed.ifelse(None, links.first_ns).min().over(ibis.window(**order, rows=(0, None))),
    )
    failed = links.filter(links.failed)
    # of packets without any of the server all are the SYN; whether it was sent while the server took another is not known
    again = (failed.server_packets == 0) & (failed.last_ns <= failed.taken_ns).fill_null(True)
    failed = failed.mutate(tries=again.ifelse(failed.packets, 1), tried_ns=again.ifelse(failed.last_ns, failed.first_ns))
    runs = failed.group_by(*SERVER, "turn").aggregate(
        n=failed.count(), refused=failed.count(where=failed.server_packets == 1), hosts=failed.client_ip.nunique(),
        client_ip=failed.client_ip.min(), first_ns=failed.first_ns.min(), last_ns=failed.tried_ns.max(),
        tries=failed.tries.sum(),
    )  # fmt: skip
    longest = ibis.window(group_by=list(SERVER), order_by=[(runs.last_ns - runs.first_ns).desc(), runs.turn])
    runs = runs.mutate(place=ibis.row_number().over(longest))
    runs = runs.filter(runs.place == 0)
    table = seen.every
    at = table.filter(table.outcome == "answered").select(*SERVER, "response_last_ns", "broker_id")
    both = runs.inner_join(at, list(SERVER))
    known = both.group_by(*SERVER, "n", "tries", "refused", "hosts", "client_ip", "first_ns", "last_ns").aggregate(
        seen_ns=both.response_last_ns.max(where=both.response_last_ns <= both.first_ns),
        meanwhile=both.count(where=(both.response_last_ns > both.first_ns) & (both.response_last_ns < both.last_ns)),
        broker_id=both.broker_id.max(),
    )  # fmt: skip
    known = known.filter(known.seen_ns.notnull(), known.meanwhile == 0)
    return seen.first(known, ("first_ns", *SERVER), SERVERS_MOST, "unavailable_brokers")


def outages(seen: Observed) -> list[Row]:
    """`refused_runs`, which are found once; none where no connection failed."""
    return seen.once(refused_runs) if ("empty", "syn") in seen.begun else []


def lasting(seen: Observed) -> list[Row]:
    """The outages of `SHORTEST_NS` and more from the server's last response to the last connection that it did not take."""
    return [run for run in outages(seen) if run["last_ns"] - run["seen_ns"] >= SHORTEST_NS]


def unreachable(seen: Observed, ip: str, port: int, first_ns: int, last_ns: int) -> bool:
    """Whether a server was in an outage for some of the time between these two."""
    return any(
        (run["server_ip"], run["server_port"]) == (ip, port) and first_ns <= run["last_ns"] and run["seen_ns"] <= last_ns
        for run in lasting(seen)
    )


def meanwhile(seen: Observed, first_ns: int, last_ns: int) -> Row | None:
    """The outage of any server that lasted for half of the time between these two, or longer: what took long then may have
    waited for that server."""
    return next(
        (run for run in lasting(seen)
         if 2 * (min(run["last_ns"], last_ns) - max(run["seen_ns"], first_ns)) >= last_ns - first_ns),
        None,
    )  # fmt: skip


def restarted(seen: Observed) -> Any:
    """Partitions, as a table of `topic` and `partition`, that one broker alone serves in the capture, with requests for them
    before and behind a time in which it took no connections: it was restarted, and they did not move. So is one that no broker
    serves and that requests name at one alone: responses of a fetch session leave partitions without records out (KIP-227).
    None where no broker was restarted.
    """
    if not lasting(seen):
        return None
    parts = seen.parts.filter(seen.parts.topic.notnull(), seen.parts.api.isin(["Produce", "Fetch"]))
    each = parts.group_by(*PLACE, *SERVER).aggregate(
        good=parts.count(where=parts.error == "NONE"), first_ns=parts.request_first_ns.min(),
        last_ns=parts.request_first_ns.max(),
    )  # fmt: skip
    whole = functions(each).window(group_by=list(PLACE))
    each = each.mutate(serving=(each.good > 0).cast("int64").sum().over(whole), brokers=each.good.count().over(whole))
    spans = [
        (each.server_ip == run["server_ip"])
        & (each.server_port == run["server_port"])
        & (each.first_ns < run["first_ns"])
        & (each.last_ns > run["last_ns"])
        for run in lasting(seen)
    ]
    alone = ((each.good > 0) & (each.serving == 1)) | ((each.serving == 0) & (each.brokers == 1))
    return each.filter(alone, reduce(or_, spans)).select(*PLACE)


def leaders_moved(seen: Observed, errors: Sequence[str]) -> Any:
    """The partitions of `parts` with one of these errors of leadership whose leaders moved: those of `restarted` and of
    `not_yet_led` did not, and refusals at an address that stands for several brokers show nothing about leaders.
    """
    from kcap.reports.findings.addresses import elsewhere  # for captures with such errors

    parts = elsewhere(seen, seen.parts)
    bad = parts.filter(parts.error.isin(list(errors))).anti_join(seen.not_yet_led(errors), list(PLACE))
    stayed = restarted(seen)
    return bad if stayed is None else bad.anti_join(stayed, list(PLACE))
