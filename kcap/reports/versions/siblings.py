"""Finds listeners of the same broker or cluster with known ranges, for servers without an ApiVersions response.

In: the lists of brokers, and the offers of servers. Out: a listener with its offer. Law: a listener at the same host is
preferred, then one of the same broker, then one of the same cluster; of several, the one that made its offer first. A server
known to be of another cluster is never returned. A server is compared with few others, however many there are.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from kcap.facts.api_versions import Offer
from kcap.facts.brokers import Brokers, Endpoint, Server
from kcap.limits import SIBLINGS_COMPARED

PRODUCE: Final = 0
"""Brokers offer this API; controllers do not."""


class Siblings:
    """Servers with known ranges, by what others may have in common with them."""

    def __init__(self, brokers: Brokers, offers: Mapping[Server, Offer]) -> None:
        self.brokers = brokers
        self.offers = {server: offer for server, offer in offers.items() if PRODUCE in offer.ranges}
        self._places = {server: place for place, server in enumerate(self.offers)}
        self._hosts: dict[str, list[Server]] = {}
        self._clusters: dict[str, list[Server]] = {}
        self._called: dict[Endpoint, list[Server]] = {}
        """Endpoint of a server -> servers with that endpoint."""
        self._listing: dict[Endpoint, list[Server]] = {}
        """Endpoint on the lists of servers -> these servers."""
        self._known: dict[Server, Server | None] = {}
        for server in self.offers:
            self._hosts.setdefault(server[0], []).append(server)
            cluster = brokers.identify(server)[1]
            if cluster is not None:
                self._clusters.setdefault(cluster, []).append(server)
            for endpoint in brokers.endpoints(server):
                self._called.setdefault(endpoint, []).append(server)
            for endpoint in self._listed(server):
                self._listing.setdefault(endpoint, []).append(server)

    def of(self, server: Server) -> tuple[Server, Offer] | None:
        """A listener of the same broker, or else of the same cluster; None if none is known."""
        if server not in self._known:
            self._known[server] = self._found(server)
        found = self._known[server]
        return None if found is None else (found, self.offers[found])

    def _listed(self, server: Server) -> set[Endpoint]:
        return {(host, port) for _, host, port in self.brokers.own.get(server, ())}

    def _found(self, server: Server) -> Server | None:
        same = self._not_apart(server, [self._hosts.get(server[0], [])])
        if same:
            return same[0]
        node, cluster = self.brokers.identify(server)
        mine = self._not_apart(server, (
            self._clusters.get(cluster, []) if cluster is not None else [],
            *(self._listing.get(endpoint, []) for endpoint in self.brokers.endpoints(server)),
            *(self._called.get(endpoint, []) for endpoint in self._listed(server)),
        ))  # fmt: skip
        of_broker = (other for other in mine if node is not None and self.brokers.identify(other)[0] == node)
        return next(of_broker, mine[0] if mine else None)

    def _not_apart(self, server: Server, some: Iterable[list[Server]]) -> list[Server]:
        """The first entries of each list that are not known to be of another cluster, in the order of their offers."""
        found = {other for these in some for other in islice(these, SIBLINGS_COMPARED)}
        return sorted((other for other in found if not self.brokers.apart(server, other)), key=self._places.__getitem__)
