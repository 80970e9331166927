"""Times in which a broker was not there for its clients, whatever the reason: it stood still, or accepted no connection.

In: what the rules `broker-stall` and `broker-unavailable` rest on, and `slow-replication`. Out: these times, and whether a wait
falls into one of them. Law: what follows from such a time accuses no client; these rules say what happened to the broker.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kcap.limits import ABSENCES_MOST
from kcap.reports.findings.observed import Observed, Row
from kcap.reports.findings.outages import lasting
from kcap.reports.findings.replication import by_default_limits as by_default_limits_of_writes
from kcap.reports.findings.replication import place_of
from kcap.reports.findings.served import ALL, REPLICATED
from kcap.reports.findings.stalls import by_default_limits


class Absence(NamedTuple):
    """A time in which a broker was away; times in ns since the epoch."""

    ip: str
    port: int
    broker_id: int | None
    since: int
    until: int
    rule: str
    """The rule that speaks of the broker."""
    back: bool
    """Whether connections to it had exchanges later."""

    @property
    def server(self) -> str:
        """Address and port."""
        return f"{self.ip}:{self.port}"

    @property
    def words(self) -> str:
        """What it did, in a sentence."""
        return DID[self.rule].format(self.server)


STALL, OUTAGE, SLOW = "broker-stall", "broker-unavailable", "slow-replication"
DID: Final = {
    STALL: "broker {} sent no response to anyone",
    OUTAGE: "broker {} accepted no connection",
    SLOW: "writes with acks=all to broker {} were slow",
}
"""Rule -> what a broker did, in a sentence."""


def absences(seen: Observed) -> list[Absence]:
    """The times in which brokers were away, those of a broker that only waits for others left out."""
    used: dict[tuple[str, int], int] = {}
    for link in seen.links:
        if link["exchanges"]:
            used[place_of(link)] = max(used.get(place_of(link), 0), link["last_ns"])
    stood = [
        (*place, some["usual"]["broker_id"], silence["since"], silence["until"], STALL)
        for place, some in seen.once(by_default_limits).items() if not some["followers"]
        for silence in some["silences"]
    ]  # fmt: skip
    refused = [(*place_of(run), run["broker_id"], run["seen_ns"], run["last_ns"], OUTAGE) for run in lasting(seen)]
    every = [Absence(*one, back=one[4] < used.get(one[:2], 0)) for one in (*stood, *refused)]
    if len(every) > ABSENCES_MOST:
        seen.left_out["absences"] = len(every) - ABSENCES_MOST
        every = sorted(every, key=lambda one: one.since - one.until)[:ABSENCES_MOST]
    return every


def slow_writes(seen: Observed) -> list[Absence]:
    """The times in which brokers were slow at writes that all replicas acknowledge, and at nothing else."""
    return [
        Absence(*place, one.row["broker_id"], one.row["late_ns"], one.row["late_until_ns"], SLOW, back=True)
        for place, one in seen.once(by_default_limits_of_writes).items()
    ]


def waited_for(request: Row, away: Sequence[Absence]) -> Absence | None:
    """The absence that lasted for at least half of the time that a request waited: of its own broker, or for a write that waits
    for all replicas of another one, which may have them.

    `request` has server_ip, server_port, api, acks, request_last_ns, and age_ns or latency_ns.
    """
    begin = request["request_last_ns"]
    waited = request["age_ns"] if request["age_ns"] is not None else request["latency_ns"]
    if begin is None or waited is None:
        return None
    own = request["server_ip"], request["server_port"]
    replicated = request["api"] in REPLICATED or (request["api"] == "Produce" and request["acks"] == ALL)

    def concerns(one: Absence) -> bool:
        here = (one.ip, one.port) == own
        return (here and replicated) if one.rule == SLOW else (here or replicated)

    fits = [
        one for one in away
        if concerns(one) and 2 * (min(one.until, begin + waited) - max(one.since, begin)) >= waited
    ]  # fmt: skip
    return min(fits, key=lambda one: (one.ip, one.port) != own, default=None)


STOPPING_NS, CATCH_UP_NS = 10_000_000_000, 30_000_000_000
"""How long before it is away a broker may leave the replicas in sync, since it hands over what it leads first; and how long
replicas take, as a rule, to copy what was written while their broker was away."""


def away_since(away: Sequence[Absence], node: int, since_ns: int, until_ns: int) -> bool:
    """Whether a broker was away around the time between these two and served clients again later: its replicas are behind by
    that, and are in sync again when they have copied what was written meanwhile."""
    return any(
        one.back and one.broker_id == node and one.since - STOPPING_NS <= since_ns and until_ns <= one.until + CATCH_UP_NS
        for one in away
    )


MOVING_NS: Final = 10_000_000_000
"""How long before a broker is away, when it hands over what it leads, and behind that, when it takes it back, coordinators
move for that reason."""


def while_away(seen: Observed, rows: Sequence[Row]) -> Absence | None:
    """The first absence of a broker, where all of these errors fall into the time around one."""
    away = seen.once(absences)
    around = [(one.since - MOVING_NS, one.until + MOVING_NS) for one in away]
    if all(any(since <= row["first_ns"] and row["last_ns"] <= until for since, until in around) for row in rows):
        return next(iter(away), None)
    return None
