"""What parts of a capture told, put together: a part sees some connections only, yet topic names, brokers and offers hold for
all of them.

In: learners of parts. Out: facts that travel, and one learner of them all. Law: the learner knows at its end what one that had
seen the whole capture would; where two were told different things, the order of their telling decides as it does there.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from kcap.facts.api_versions import Offer, Software
from kcap.facts.brokers import BrokerListing as ToldBroker
from kcap.facts.brokers import Server
from kcap.facts.topic_names import TopicNames
from kcap.facts.tracker import MetadataTracker
from kcap.row_columns import RowColumns
from kcap.schema.quirks import API_VERSIONS
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from kcap.analyzer import RowBatch

Order = tuple[int, str, int]
"""When a row was decided, its connection, its number: which was told first."""
EARLIEST: Final[Order] = (-(1 << 63), "", 0)


@dataclass(slots=True)
class Facts:
    """What a part told; a picklable value."""

    names: dict[str, tuple[Order, str]] = field(default_factory=dict)
    """Topic id -> its name, and when that was told."""
    tellers: dict[str, tuple[Order, tuple[str, int, Server]]] = field(default_factory=dict)
    told: dict[tuple[str | None, int, str, int], tuple[Order, ToldBroker]] = field(default_factory=dict)
    offers: dict[Server, tuple[Order, Offer]] = field(default_factory=dict)
    """What a server answered last."""
    clusters: dict[Server, set[str]] = field(default_factory=dict)
    nodes: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    listed: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    own: dict[Server, set[tuple[int, str, int]]] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    """Address -> host name."""
    used: set[tuple[Software, int, int]] = field(default_factory=set)
    """Client library, API and version."""
    servers: set[Server] = field(default_factory=set)
    """Who was talked to."""
    limits: set[str] = field(default_factory=set)
    """Of what there was too much."""


class FactsRecorder:
    """Looks on while a learner takes the batches of a part."""

    def __init__(self, learner: MetadataTracker) -> None:
        self.learner = learner
        self.facts = Facts()
        self._broker_version = -1

    def saw(self, batch: "RowBatch") -> None:
        """The learner took a batch."""
        learner, facts = self.learner, self.facts
        fresh_names = [uuid for uuid in learner.topics.names if uuid not in facts.names]
        fresh_told = (
            [key for key in learner.brokers.told if key not in facts.told]
            if learner.brokers.version != self._broker_version
            else []
        )
        self._broker_version = learner.brokers.version
        facts.servers.update((one.server_ip, one.server_port) for one in batch.identities)
        for server, order in answers_of(batch).items():
            offer = learner.offers.get(server)
            if offer is not None:
                facts.offers[server] = order, offer
        if not fresh_names and not fresh_told:
            return
        orders = orders_of(batch)
        for uuid in fresh_names:
            teller = learner.tellers.get(uuid)
            order = orders.get(teller[:2], EARLIEST) if teller is not None else EARLIEST
            facts.names[uuid] = order, learner.topics.names[uuid]
            if teller is not None:
                facts.tellers[uuid] = order, teller
        for key in fresh_told:
            told = learner.brokers.told[key]
            facts.told[key] = orders.get((told.connection, told.exchange), EARLIEST), told

    def close(self) -> Facts:
        """All that was told."""
        facts, brokers, used = self.facts, self.learner.brokers, self.learner.used
        facts.clusters, facts.nodes, facts.listed, facts.own = brokers.clusters, brokers.nodes, brokers.listed, brokers.own
        facts.hosts = brokers.names
        for software, number in used.numbers.items():
            keys, versions = np.nonzero(used.seen(number))
            facts.used.update((software, key, version) for key, version in zip(keys.tolist(), versions.tolist()))
        return facts


def orders_of(batch: "RowBatch") -> dict[tuple[str, int], Order]:
    """When each row of a batch was decided, by connection and number."""
    orders: dict[tuple[str, int], Order] = {}
    for row in batch.rows:
        uid = batch.identities[row[0]].uid
        orders[uid, row[1]] = max((row[at] for at in TIMES if row[at] is not None), default=0), uid, row[1]
    return orders


def answers_of(batch: "RowBatch") -> dict[Server, Order]:
    """When each server last told its versions."""
    parts = RowColumns(batch)
    keys = parts.number("api_key")
    asked = np.flatnonzero((keys.values == API_VERSIONS) & keys.mask() & parts.number("response_last_ns").mask())
    last: dict[Server, Order] = {}
    columns = (parts.number(name).values[asked].tolist() for name in ("identity", "exchange", "response_last_ns"))
    for identity, exchange, time_ns in zip(*columns):
        one = batch.identities[identity]
        server, order = (one.server_ip, one.server_port), (time_ns, one.uid, exchange)
        last[server] = max(order, last.get(server, EARLIEST))
    return last


def _times() -> tuple[int, ...]:
    from kcap.analyzer import ROW

    return tuple(ROW.index(name) for name in ("request_first_ns", "request_last_ns", "response_first_ns", "response_last_ns"))


TIMES: Final = _times()


def merged(parts: Iterable[Facts]) -> Facts:
    """The facts of several parts."""
    out = Facts()
    for part in parts:
        for name in ("names", "tellers", "told"):
            mine, theirs = getattr(out, name), getattr(part, name)
            for key, entry in theirs.items():
                if key not in mine or entry[0] < mine[key][0]:
                    mine[key] = entry
        for server, answer in part.offers.items():
            if server not in out.offers or answer[0] >= out.offers[server][0]:
                out.offers[server] = answer
        for name in ("clusters", "nodes", "listed", "own"):
            sets = getattr(out, name)
            for key, some in getattr(part, name).items():
                sets.setdefault(key, set()).update(some)
        out.hosts |= part.hosts
        out.used |= part.used
        out.servers |= part.servers
        out.limits |= part.limits
    return out


def tracker_of(facts: Facts, report: Callable[[WeirdKind, str], None] | None = None) -> MetadataTracker:
    """One who knows all that, and tells `report` of what there is too much."""
    learner = MetadataTracker(report)
    learner.topics = TopicNames()
    for uuid, (_, name) in sorted(facts.names.items(), key=lambda entry: entry[1][0]):
        learner.topics.names[uuid] = name
    for uuid, (_, teller) in sorted(facts.tellers.items(), key=lambda entry: entry[1][0]):
        learner.tellers[uuid] = teller
    brokers = learner.brokers
    for key, (_, told) in sorted(facts.told.items(), key=lambda entry: entry[1][0]):
        brokers.told[key] = told
    brokers.clusters, brokers.nodes, brokers.listed, brokers.own = facts.clusters, facts.nodes, facts.listed, facts.own
    brokers.names, brokers.version = facts.hosts, 1
    for server, (_, offer) in facts.offers.items():
        learner.offers[server] = offer
    by_software: dict[Software, list[tuple[int, int]]] = {}
    for software, api, version in facts.used:
        by_software.setdefault(software, []).append((api, version))
    for software in sorted(by_software):
        keys, versions = np.array(by_software[software], np.int64).T
        number = learner.used.number(software)
        if number:
            learner.used.take(np.full(len(keys), number, np.int64), keys, versions)
    return learner


__all__ = ["Facts", "FactsRecorder", "merged", "tracker_of"]
