"""Which broker a server address is, and of which cluster: lists of brokers in, node ids and cluster ids out.

In: the server that lists them, the cluster's id, and (node id, host, port, rack) of each broker. Out: what is proven of an
address. An id is proven by a host that is the address (as an IP address, as `localhost`, or by a name that the capture file
resolves), or by a server that lists itself: exactly one broker on its list has its port, under a host name, and no other
server claims that broker. Law: where two lists do not agree the id is None; a wrong id is worse than none. The order of the
lists does not matter.
"""

import functools
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final, TypeVar

from kcap.limits import BROKERS_KEPT

T = TypeVar("T")
Server = tuple[str, int]
"""Address and port, as seen on the wire."""
Endpoint = tuple[str, int]
"""Host and port, as brokers tell them."""
Claim = tuple[int, int]
"""Node id and port of a broker that a server may be."""
LOCAL: Final = ("127.0.0.1", "::1")
ANY: Final = ""
"""Stands for all clusters; no id is empty."""


@functools.lru_cache(1024)
def plain_host(host: str) -> tuple[str, bool]:
    """A host in one spelling, and whether it is an IP address."""
    try:
        return str(ip_address(host)), True
    except ValueError:
        return host.rstrip(".").lower(), False


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker of a list."""

    node: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class BrokerListing:
    """A broker's address, and the exchange that lists it first."""

    cluster: str | None
    broker: Broker
    server: Server
    """The server of that exchange."""
    connection: str
    exchange: int


class Brokers:
    """The lists until now; a picklable value."""

    def __init__(self) -> None:
        self.listings: dict[tuple[str | None, int, str, int], BrokerListing] = {}
        """Rows of the table `brokers`, by cluster, node id, host and port."""
        self.nodes: dict[Endpoint, set[int]] = {}
        self.clusters: dict[Server, set[str]] = {}
        """Clusters that a server named as its own."""
        self.listed: dict[Endpoint, set[str]] = {}
        """Clusters on whose lists an endpoint stands."""
        self.own: dict[Server, set[tuple[int, str, int]]] = {}
        """What servers list that stand on their own list."""
        self.names: dict[str, str] = {}
        """Address -> host name, as the capture file tells."""
        self.version = 0
        """Goes up with every new fact."""
        self._claims: tuple[int, dict[Server, Claim], dict[tuple[Claim, str | None], set[Server]]] = -1, {}, {}
        """Version; the claims of servers; who has a claim, by the clusters that they name as their own, None for none."""
        self._known: tuple[int, dict[Server, tuple[int | None, str | None]]] = -1, {}

    def take(
        self,
        server: Server,
        cluster: str | None,
        brokers: Iterable[Broker],
        *,
        itself: bool = True,
        connection: str = "",
        exchange: int = 0,
    ) -> None:
        """Takes a list of brokers that a server gave, or was given. `itself`: the server is one of them."""
        if len(self.listings) >= BROKERS_KEPT:
            return
        before = len(self.listings), len(self.clusters.get(server, ())), len(self.own.get(server, ()))
        if cluster:
            self.clusters.setdefault(server, set()).add(cluster)
        for broker in brokers:
            if broker.node < 0 or not broker.host or not 0 < broker.port < 1 << 16:
                continue
            host = plain_host(broker.host)[0]
            endpoint = host, broker.port
            self.nodes.setdefault(endpoint, set()).add(broker.node)
            if cluster:
                self.listed.setdefault(endpoint, set()).add(cluster)
            if itself:
                self.own.setdefault(server, set()).add((broker.node, host, broker.port))
            self.listings.setdefault(
                (cluster, broker.node, broker.host, broker.port), BrokerListing(cluster, broker, server, connection, exchange)
            )
        if before != (len(self.listings), len(self.clusters.get(server, ())), len(self.own.get(server, ()))):
            self.version += 1

    def resolve_names(self, names: Mapping[str, str]) -> None:
        """Takes what a capture file tells of host names."""
        new = {plain_host(address)[0]: plain_host(name)[0] for address, name in names.items()}
        if not new.items() <= self.names.items():
            self.names |= new
            self.version += 1

    def facts(self, server: Server) -> tuple[int | None, str | None, int | None]:
        """Node id and cluster id of a server, and how many brokers its own lists have; None where it gave none."""
        return *self.identify(server), len({node for node, _, _ in self.own.get(server, ())}) or None

    @staticmethod
    def endpoint(host: str, port: int) -> Endpoint:
        """An endpoint in one spelling."""
        return plain_host(host)[0], port

    def endpoints(self, server: Server) -> list[Endpoint]:
        """What a server's address is called."""
        ip, port = server
        hosts = [ip]
        if ip in self.names:
            hosts.append(self.names[ip])
        if ip in LOCAL:
            hosts.append("localhost")
        return [(host, port) for host in hosts]

    def identify(self, server: Server) -> tuple[int | None, str | None]:
        """Node id and cluster id of a server, as far as they are proven."""
        if self._known[0] != self.version:
            self._known = self.version, {}
        known = self._known[1]
        found = known.get(server)
        if found is None:
            found = known[server] = self._node(server), self._cluster(server)
        return found

    def _node(self, server: Server) -> int | None:
        nodes: set[int] = set()
        for endpoint in self.endpoints(server):
            nodes |= self.nodes.get(endpoint, set())
        return only(nodes) if nodes else self._claimed(server)

    def _claim(self, server: Server, resolved: Set[str]) -> Claim | None:
        """The one broker of its own list with its port, where that goes by a host name that is not resolved."""
        port = server[1]
        mine = {(node, host) for node, host, number in self.own[server] if number == port}
        if len(mine) != 1:
            return None
        node, host = next(iter(mine))
        return None if plain_host(host)[1] or host == "localhost" or host in resolved else (node, port)

    def _claiming(self) -> tuple[dict[Server, Claim], dict[tuple[Claim, str | None], set[Server]]]:
        """The claims of servers, and who has each."""
        if self._claims[0] != self.version:
            claims: dict[Server, Claim] = {}
            rivals: dict[tuple[Claim, str | None], set[Server]] = {}
            resolved = set(self.names.values())
            for server in self.own:
                claim = self._claim(server, resolved)
                if claim is not None:
                    claims[server] = claim
                    for cluster in self.clusters.get(server) or (None,):
                        rivals.setdefault((claim, cluster), set()).add(server)
                        rivals.setdefault((claim, ANY), set()).add(server)
            self._claims = self.version, claims, rivals
        return self._claims[1:]

    def _claimed(self, server: Server) -> int | None:
        """The node of a claim that no other server has but such as are known to be of other clusters (`apart`)."""
        claims, rivals = self._claiming()
        claim = claims.get(server)
        if claim is None:
            return None
        own = self.clusters.get(server)
        alone = all(rivals.get((claim, cluster), {server}) == {server} for cluster in ((*own, None) if own else (ANY,)))
        return claim[0] if alone else None

    def apart(self, one: Server, other: Server) -> bool:
        """Whether two servers are known to be of different clusters."""
        first, second = self.clusters.get(one), self.clusters.get(other)
        return bool(first and second and not first & second)

    def _cluster(self, server: Server) -> str | None:
        own = self.clusters.get(server)
        if own:
            return only(own)
        listed: set[str] = set()
        for endpoint in self.endpoints(server):
            listed |= self.listed.get(endpoint, set())
        return only(listed)

    def seen(self, servers: Iterable[Server]) -> dict[Endpoint, Server]:
        """Which of some servers is which endpoint, where that is one."""
        found: dict[Endpoint, set[Server]] = {}
        for server in servers:
            for endpoint in self.endpoints(server):
                found.setdefault(endpoint, set()).add(server)
            claim = self._claiming()[0].get(server) if self.identify(server)[0] is not None else None
            if claim is not None:
                mine = next(e for e in self.own[server] if (e[0], e[2]) == claim)
                found.setdefault(mine[1:], set()).add(server)
        return {endpoint: next(iter(these)) for endpoint, these in found.items() if len(these) == 1}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_claims": (-1, {}, {}), "_known": (-1, {})}


def only(found: set[T]) -> T | None:
    """The one entry of a set, None for none and for several."""
    return next(iter(found)) if len(found) == 1 else None
