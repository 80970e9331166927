"""Merges the facts of shards of a capture: a shard has some of the connections, but topic names, brokers and offers hold for
all.

In: the trackers of shards. Out: `Facts`, which can be pickled, and one tracker for all of them. Law: that tracker has the facts
of one that observed the whole capture; if shards report different things, the time of the report decides as it does there.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from kcap.facts.api_versions import Offer, Software
from kcap.facts.brokers import BrokerListing, Server
from kcap.facts.topic_names import TopicNames
from kcap.facts.tracker import MetadataTracker, Reread
from kcap.model import PART
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from kcap.analyzer import RowBatch

Order = tuple[int, str, int]
"""Time in nanoseconds at which a row was decided, its connection, its number: the order in which facts were reported."""
EARLIEST: Final[Order] = (-(1 << 63), "", 0)


@dataclass(slots=True)
class Facts:
    """The facts of a shard; can be pickled."""

    names: dict[str, tuple[Order, str]] = field(default_factory=dict)
    """Topic id -> its name, and the order of its report."""
    topic_sources: dict[str, tuple[Order, tuple[str, int, Server]]] = field(default_factory=dict)
    listings: dict[tuple[str | None, int, str, int], tuple[Order, BrokerListing]] = field(default_factory=dict)
    offers: dict[Server, list[tuple[int, Offer]]] = field(default_factory=dict)
    """Time and offer of each ApiVersions response of a server: another shard's may lie between any two."""
    clusters: dict[Server, set[str]] = field(default_factory=dict)
    nodes: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    listed: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    own: dict[Server, set[tuple[int, str, int]]] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    """Address -> host name."""
    used: set[tuple[Software, int, int]] = field(default_factory=set)
    """Client library, API and version."""
    servers: set[Server] = field(default_factory=set)
    """Servers of connections."""
    limits: set[str] = field(default_factory=set)
    """Limits that were reached."""


class FactsRecorder:
    """Records when the tracker of a shard received its facts."""

    def __init__(self, tracker: MetadataTracker) -> None:
        self.tracker = tracker
        self.facts = Facts()

    def observed(self, batch: "RowBatch") -> None:
        """Records the facts of a batch that the tracker has observed."""
        tracker, facts = self.tracker, self.facts
        # Both only grow, in the order in which they are recorded here.
        fresh_names = list(islice(tracker.topics.names, len(facts.names), None))
        fresh_listings = list(islice(tracker.brokers.listings, len(facts.listings), None))
        facts.servers.update([] if tracker.constants is None else tracker.constants.servers[1])
        for server, times, offer in tracker.fresh_offers:
            facts.offers.setdefault(server, []).extend((time_ns, offer) for time_ns in times.tolist())
        if not fresh_names and not fresh_listings:
            return
        orders = orders_of(batch)
        for uuid in fresh_names:
            source = tracker.topic_sources.get(uuid)
            order = orders.get(source[:2], EARLIEST) if source is not None else EARLIEST
            facts.names[uuid] = order, tracker.topics.names[uuid]
            if source is not None:
                facts.topic_sources[uuid] = order, source
        for key in fresh_listings:
            listing = tracker.brokers.listings[key]
            facts.listings[key] = orders.get((listing.connection, listing.exchange), EARLIEST), listing

    def close(self) -> Facts:
        """The facts of the shard."""
        facts, brokers, used = self.facts, self.tracker.brokers, self.tracker.used
        facts.clusters, facts.nodes, facts.listed, facts.own = brokers.clusters, brokers.nodes, brokers.listed, brokers.own
        facts.hosts = brokers.names
        for software, number in used.numbers.items():
            keys, versions = np.nonzero(used.seen(number))
            facts.used.update((software, key, version) for key, version in zip(keys.tolist(), versions.tolist()))
        return facts


def orders_of(batch: "RowBatch") -> dict[tuple[str, int], Order]:
    """The order of each row of a batch, by connection and number."""
    orders: dict[tuple[str, int], Order] = {}
    for row in batch.rows:
        uid = batch.identities[row[0]].uid
        orders[uid, row[1]] = max((row[at] for at in TIMES if row[at] is not None), default=0), uid, row[1]
    return orders


TIMES: Final = tuple(PART[name] for name in ("request_first_ns", "request_last_ns", "response_first_ns", "response_last_ns"))


def merged(shards: Iterable[Facts]) -> Facts:
    """The facts of several shards."""
    out = Facts()
    for shard in shards:
        for name in ("names", "topic_sources", "listings"):
            mine, theirs = getattr(out, name), getattr(shard, name)
            for key, entry in theirs.items():
                if key not in mine or entry[0] < mine[key][0]:
                    mine[key] = entry
        for server, offers in shard.offers.items():
            out.offers.setdefault(server, []).extend(offers)
        for name in ("clusters", "nodes", "listed", "own"):
            sets = getattr(out, name)
            for key, some in getattr(shard, name).items():
                sets.setdefault(key, set()).update(some)
        out.hosts |= shard.hosts
        out.used |= shard.used
        out.servers |= shard.servers
        out.limits |= shard.limits
    return out


def tracker_of(
    facts: Facts, report: Callable[[WeirdKind, str], None] | None = None, reread: Reread | None = None
) -> MetadataTracker:
    """A tracker with all these facts; `report` receives oddities."""
    tracker = MetadataTracker(report, reread)
    tracker.topics = TopicNames()
    for uuid, (_, name) in sorted(facts.names.items(), key=lambda entry: entry[1][0]):
        tracker.topics.names[uuid] = name
    for uuid, (_, source) in sorted(facts.topic_sources.items(), key=lambda entry: entry[1][0]):
        tracker.topic_sources[uuid] = source
    brokers = tracker.brokers
    for key, (_, listing) in sorted(facts.listings.items(), key=lambda entry: entry[1][0]):
        brokers.listings[key] = listing
    brokers.clusters, brokers.nodes, brokers.listed, brokers.own = facts.clusters, facts.nodes, facts.listed, facts.own
    brokers.names = facts.hosts
    brokers.claim_all()
    for server, offers in facts.offers.items():
        for time_ns, offer in sorted(offers, key=itemgetter(0)):
            tracker.take_offer(server, time_ns, offer)
    by_software: dict[Software, list[tuple[int, int]]] = {}
    for software, api, version in facts.used:
        by_software.setdefault(software, []).append((api, version))
    for software in sorted(by_software):
        keys, versions = np.array(by_software[software], np.int64).T
        number = tracker.used.number(software)
        if number:
            tracker.used.take(np.full(len(keys), number, np.int64), keys, versions)
    return tracker
