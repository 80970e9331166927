"""Maps server addresses to brokers and clusters, from lists of brokers to node ids and cluster ids.

In: the server that lists brokers, the cluster's id, and (node id, host, port, rack) of each broker. Out: what is proven about
an address. An id is proven by a host that is the address (as an IP address, as `localhost`, or by a name that the capture file
resolves), or by a server that lists itself: exactly one broker on its list has its port, under a host name, and no other server
claims that broker. Law: if two lists contradict each other the id is None, since a wrong id is worse than none. The order of
the lists does not matter.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final, TypeVar

from kcap.limits import BROKERS_KEPT, HOST_NAMES_KEPT, NAMELESS_KEPT

T = TypeVar("T")
Server = tuple[str, int]
"""Address and port, as seen on the wire."""
Endpoint = tuple[str, int]
"""Host and port, as brokers advertise them."""
Claim = tuple[int, int]
"""Node id and port of a broker that a server may be."""
LOCAL: Final = ("127.0.0.1", "::1")
ANY: Final = ""
"""Stands for all clusters; no cluster id is empty."""


@functools.lru_cache(1024)
def plain_host(host: str) -> tuple[str, bool]:
    """A host in its normal form, and whether it is an IP address."""
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
    """The lists so far; can be pickled."""

    def __init__(self) -> None:
        self.listings: dict[tuple[str | None, int, str, int], BrokerListing] = {}
        """Rows of the table `brokers`, by cluster, node id, host and port."""
        self.nodes: dict[Endpoint, set[int]] = {}
        self.clusters: dict[Server, set[str]] = {}
        """Clusters that a server named as its own."""
        self.listed: dict[Endpoint, set[str]] = {}
        """Clusters whose lists have an endpoint."""
        self.own: dict[Server, set[tuple[int, str, int]]] = {}
        """The lists of servers that are on their own list."""
        self._own_nodes: dict[Server, set[int]] = {}
        """The nodes on these lists."""
        self.names: dict[str, str] = {}
        """Address -> host name, as capture files resolve it."""
        self.version = 0
        """Increased by every new fact."""
        self._clusters = 0
        """Number of stored names of clusters."""
        self._claims = Claims(self.clusters)
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
        """Takes a list of brokers that a server sent or received. `itself`: the server is one of them."""
        if max(len(self.listings), self._clusters) >= BROKERS_KEPT:
            return
        before = len(self.listings), self._clusters, len(self.own.get(server, ()))
        if cluster and cluster not in self.clusters.setdefault(server, set()):
            self.clusters[server].add(cluster)
            self._clusters += 1
            self._claims.belongs(server, cluster)
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
                self._own_nodes.setdefault(server, set()).add(broker.node)
                if broker.port == server[1]:
                    self._claims.lists(server, broker.node, host)
            self.listings.setdefault(
                (cluster, broker.node, broker.host, broker.port), BrokerListing(cluster, broker, server, connection, exchange)
            )
        if before != (len(self.listings), self._clusters, len(self.own.get(server, ()))):
            self.version += 1

    def resolve_names(self, names: Mapping[str, str]) -> bool:
        """Takes host names from a capture file; False if there are too many."""
        for address, name in names.items():
            host, other = plain_host(address)[0], plain_host(name)[0]
            if len(self.names) < HOST_NAMES_KEPT and self.names.get(host) != other:
                self.names[host] = other
                self._claims.resolves(other)
                self.version += 1
        return len(self.names) < HOST_NAMES_KEPT

    def facts(self, server: Server) -> tuple[int | None, str | None, int | None]:
        """Node id and cluster id of a server, and how many brokers its own lists have; None if it sent none."""
        return *self.identify(server), len(self._own_nodes.get(server, ())) or None

    @staticmethod
    def endpoint(host: str, port: int) -> Endpoint:
        """An endpoint in its normal form."""
        return plain_host(host)[0], port

    def endpoints(self, server: Server) -> list[Endpoint]:
        """The endpoints that a server's address may have on lists."""
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
            if len(known) >= NAMELESS_KEPT:
                known.clear()
            found = known[server] = self._node(server), self._cluster(server)
        return found

    def _node(self, server: Server) -> int | None:
        nodes: set[int] = set()
        for endpoint in self.endpoints(server):
            nodes |= self.nodes.get(endpoint, set())
        return only(nodes) if nodes else self._claimed(server)

    def claim_all(self) -> None:
        """Computes all claims again, after the lists were changed from outside."""
        self.version += 1
        self._claims = Claims(self.clusters)
        for name in self.names.values():
            self._claims.resolves(name)
        self._own_nodes = {server: {node for node, _, _ in mine} for server, mine in self.own.items()}
        for server, mine in self.own.items():
            for node, host, port in mine:
                if port == server[1]:
                    self._claims.lists(server, node, host)

    def _claimed(self, server: Server) -> int | None:
        """The node of a claim that no other server has."""
        claim = self._claims.of.get(server)
        return claim[0] if claim is not None and self._claims.sole(server) else None

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
        """Maps endpoints to some of the servers, where the mapping is unambiguous."""
        found: dict[Endpoint, set[Server]] = {}
        for server in servers:
            for endpoint in self.endpoints(server):
                found.setdefault(endpoint, set()).add(server)
            claim = self._claims.of.get(server) if self.identify(server)[0] is not None else None
            if claim is not None:
                mine = next(e for e in self.own[server] if (e[0], e[2]) == claim)
                found.setdefault(mine[1:], set()).add(server)
        return {endpoint: next(iter(these)) for endpoint, these in found.items() if len(these) == 1}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_claims": None, "_own_nodes": None, "_known": (-1, {})}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.claim_all()


class Claims:
    """Which broker each server may be: the one on its own list with its port, under a host name that is not resolved. Law: the
    cost of a new fact depends on what it changes, not on the number of servers."""

    def __init__(self, clusters: Mapping[Server, Set[str]]) -> None:
        """`clusters`: those that servers name as their own."""
        self.of: dict[Server, Claim] = {}
        self._of_server = clusters
        self._mine: dict[Server, tuple[int, str] | None] = {}
        """Node and host of the one broker with the server's port; None if there are several."""
        self._having: Counter[tuple[Claim, str | None]] = Counter()
        """Number of servers with a claim, by the clusters that they name as their own; None for none, `ANY` for all."""
        self._by_host: dict[str, list[Server]] = {}
        """Servers that had a claim to a broker of this host."""
        self._resolved: set[str] = set()

    def sole(self, server: Server) -> bool:
        """Whether no other server has this claim, except servers known to be of other clusters (`apart`)."""
        claim, own = self.of[server], self._of_server.get(server)
        if not own:
            return self._having[claim, ANY] == 1
        return not self._having[claim, None] and all(self._having[claim, cluster] == 1 for cluster in own)

    def lists(self, server: Server, node: int, host: str) -> None:
        """Observes that a server lists a broker with its own port."""
        if server not in self._mine:
            self._mine[server] = node, host
            if not (plain_host(host)[1] or host == "localhost" or host in self._resolved):
                self.of[server] = node, server[1]
                self._by_host.setdefault(host, []).append(server)
                self._count(server, self.of[server], 1)
        elif self._mine[server] not in ((node, host), None):
            self._mine[server] = None
            self._withdraw(server)

    def belongs(self, server: Server, cluster: str) -> None:
        """Observes that a server names a further cluster as its own."""
        claim = self.of.get(server)
        if claim is not None:
            self._having[claim, cluster] += 1
            self._having[claim, None] -= len(self._of_server[server]) == 1

    def resolves(self, host: str) -> None:
        """Observes that an address is known for a host, so that no server can claim it by port."""
        self._resolved.add(host)
        for server in self._by_host.pop(host, ()):
            self._withdraw(server)

    def _withdraw(self, server: Server) -> None:
        claim = self.of.pop(server, None)
        if claim is not None:
            self._count(server, claim, -1)

    def _count(self, server: Server, claim: Claim, more: int) -> None:
        for cluster in (*(self._of_server.get(server) or (None,)), ANY):
            self._having[claim, cluster] += more


def only(found: set[T]) -> T | None:
    """The only entry of a set; None for an empty set and for several entries."""
    return next(iter(found)) if len(found) == 1 else None
