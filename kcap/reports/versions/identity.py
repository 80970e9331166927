"""Which connections belong to one client: the same client id, software and principal, at any number of addresses.

In: stored profiles. Out: `Clients`: connections by client, and the library of each. Law: two programs that name themselves
differently are never one client. Connections that name nothing join a named client only if it is the one client of that id at
their address and their beginning was not captured, or if it also sent everything that they sent. Clients that name nothing are
distinguished by how their connections begin, by versions that exclude each other, and by their libraries if these are certain.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from kcap.facts.api_versions import Offer
from kcap.facts.api_versions import Software as Named
from kcap.limits import PROGRAMS_COMPARED
from kcap.reports.versions.fingerprints import Software, hint_of, release_in, who
from kcap.reports.versions.libraries import keys_of_apis
from kcap.reports.versions.profile import HANDSHAKE
from kcap.reports.versions.profile_store import StoredProfile
from kcap.reports.versions.profile_templates import ProfileTemplate, uses_of
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.readiness import BEGINNING, range_in
from kcap.reports.versions.traits import ENOUGH
from kcap.schema.facts import Versions

UNKNOWN: Final = "unknown"
ONE_VERSION: Final = keys_of_apis("Produce", "Fetch", "JoinGroup", "OffsetCommit", "Heartbeat", "SyncGroup", "LeaveGroup")
"""APIs that a program sends to one broker in only one version."""


@dataclass(frozen=True, slots=True)
class ClientKey:
    """One client."""

    client_id: str | None
    software: Named | None = None
    """Name and version as the client states them (KIP-511)."""
    principal: str | None = None
    library: str | None = None
    """Distinguishes programs that do not name themselves and share a client id; None if there is only one. It is not a
    statement about the library, which is in `Clients.software`."""
    address: str | None = None
    """None if clients are counted over all addresses."""

    @property
    def order(self) -> tuple[Any, ...]:
        """Sort key: address, client id, software, principal and library; None sorts last."""
        parts = (self.address, self.client_id, self.software, self.principal, self.library)
        return tuple((part is None, part or "") for part in parts)


@dataclass(slots=True)
class Clients:
    """The clients of a capture."""

    connections: dict[ClientKey, list[StoredProfile]] = field(default_factory=dict)
    """In order."""
    software: dict[ClientKey, Software] = field(default_factory=dict)
    keys: dict[tuple[str, str | None], ClientKey] = field(default_factory=dict)
    """Connection and client id -> client."""
    shared: set[tuple[str, str | None]] = field(default_factory=set)
    """Addresses and client ids of which some connections request the broker's versions and others do not. A library may request
    them on its first connection only, and use the result on the others (kafka-python 2, @platformatic/kafka)."""

    def of(self, connection: str, client_id: str | None) -> Software | None:
        """The library of a client by one of its connections."""
        key = self.keys.get((connection, client_id))
        return self.software.get(key) if key is not None else None


Spot = tuple[str, str | None]
"""Address and client id."""
Spoke = tuple[str | None, Named | None]
"""Principal and software."""


def used_by(stored: StoredProfile, client: int) -> frozenset[tuple[int, int]]:
    """APIs and versions that a connection sent under one of its client ids."""
    return frozenset((use.key, use.version) for _, use in uses_of(stored.template, client))


def joined(spots: dict[Spot, list[tuple[StoredProfile, int]]]) -> Iterable[tuple[Spot, Spoke, StoredProfile, int]]:
    """Each connection with the software and principal of the client that it belongs to."""
    for spot, some in spots.items():
        spokes = {(stored.template.principal, stored.template.software) for stored, _ in some}
        principals: dict[Named | None, set[str]] = {}
        for principal, software in spokes:
            if software is not None:
                principals.setdefault(software, set()).update(() if principal is None else (principal,))
        sent: set[tuple[int, int]] = set()
        if len(principals) == 1 and any(software is None for _, software in spokes):
            sent = sent.union(*(used_by(stored, client) for stored, client in some if stored.template.software is not None))
        for stored, client in some:
            spoke: Spoke = stored.template.principal, stored.template.software
            alone = spoke[1] is None and len(principals) == 1
            if alone and (stored.template.midstream or used_by(stored, client) <= sent):
                spoke = spoke[0], next(iter(principals))
            if spoke[0] is None and not stored.template.errors:
                names = principals.get(spoke[1], ())
                if len(names) == 1 and (stored.template.midstream or not stored.template.mechanism):
                    spoke = next(iter(names)), spoke[1]
            yield spot, spoke, stored, client


Flow = tuple[int | None, int | None]
"""How a connection begins: version of its first ApiVersions request, and of its SaslHandshake; None without one."""


def flow_of(stored: StoredProfile) -> Flow:
    """How a connection begins."""
    template = stored.template
    first = next(iter(template.probes), None)
    step = None if first is None else template.opening[first[0]] if isinstance(first[0], int) else first[0]
    handshake = next((one[2] for one in template.opening if one[1] == HANDSHAKE), None)
    return None if step is None else step[2], handshake


def programs(whole: ConnectionProfiles, some: list[StoredProfile], client_id: str | None) -> list[list[StoredProfile]]:
    """Connections at one address that name nothing, by program: connections that begin alike are of one program."""
    flows: dict[Flow, list[StoredProfile]] = {}
    for stored in some:
        flows.setdefault(flow_of(stored), []).append(stored)
    ordered = sorted(flows.items(), key=lambda one: (-len(one[1]), str(one[0])))
    return united(whole, (mine for _, mine in ordered), client_id)


def united(whole: ConnectionProfiles, parts: Iterable[list[StoredProfile]], client_id: str | None) -> list[list[StoredProfile]]:
    """Connections by program. Those that do not send an API in mutually exclusive versions to brokers with the same offer are
    united, as far as they are compared: a connection that fits none of the first programs is another one."""
    found: list[tuple[list[StoredProfile], Sent]] = []
    for mine in parts:
        sent = sent_by(whole, mine, client_id)
        for theirs, other in islice(found, PROGRAMS_COMPARED):
            if not exclude(sent, other):
                theirs += mine
                for at, versions in sent.items():
                    other.setdefault(at, set()).update(versions)
                break
        else:
            found.append((list(mine), sent))
    return [mine for mine, _ in found]


Sent = dict[tuple[Versions | None, int], set[int]]
"""The range that a broker offers of an API, and the API's key -> versions sent."""


def sent_by(whole: ConnectionProfiles, some: list[StoredProfile], client_id: str | None) -> Sent:
    out: Sent = {}
    for template, client, offer in {
        (one.template, one.number_of(client_id), whole.offer_for(one)): None for one in some
    }:  # fmt: skip
        for _, use in uses_of(template, client):
            if use.key not in BEGINNING:
                out.setdefault((range_in(offer, use.key), use.key), set()).add(use.version)
    return out


def exclude(one: Sent, other: Sent) -> bool:
    """Whether two sets of connections must be of two programs: with the same offer they sent disjoint versions of an API that a
    program sends in only one version, or of at least two APIs."""
    apart = [key for offered, key in one.keys() & other.keys() if one[offered, key].isdisjoint(other[offered, key])]
    return len(apart) > 1 or any(key in ONE_VERSION for key in apart)


def identify(whole: ConnectionProfiles, *, by_address: bool = False) -> Clients:
    """The clients of a capture, and the library of each. `by_address`: clients at different addresses are different clients."""
    spots: dict[Spot, list[tuple[StoredProfile, int]]] = {}
    for stored in whole.profiles.stored():
        for client, client_id in enumerate(stored.clients):
            spots.setdefault((stored.address, client_id), []).append((stored, client))
    groups: dict[tuple[Spot, Spoke], list[StoredProfile]] = {}
    for spot, spoke, stored, _ in joined(spots):
        groups.setdefault((spot, spoke), []).append(stored)
    guess = Guesses(whole)
    out = Clients()
    out.shared = {spot for spot, some in spots.items() if len({bool(stored.template.probes) for stored, _ in some}) > 1}
    found: dict[tuple[Any, ...], tuple[ClientKey, list[StoredProfile]]] = {}

    def count(some: list[StoredProfile], client_id: str | None, spoke: Spoke, library: str | None = None) -> None:
        for stored in some:
            parts = client_id, spoke[1], spoke[0], library, stored.address if by_address else None
            one = found.get(parts)
            if one is None:
                key = ClientKey(*parts)
                one = found[parts] = key, out.connections.setdefault(key, [])
            one[1].append(stored)
            out.keys[stored.uid, client_id] = one[0]

    nameless: dict[tuple[str | None, Spoke], dict[str, list[list[StoredProfile]]]] = {}
    """Client id and principal -> library, empty if it is not certain -> connections of programs."""
    for (spot, spoke), some in groups.items():
        if spoke[1] is not None:
            count(some, spot[1], spoke)
            continue
        for mine in programs(whole, some, spot[1]):
            known = guess.of(mine, spot[1])
            nameless.setdefault((spot[1], spoke), {}).setdefault(known.text, []).append(mine)
    for (client_id, spoke), libraries in nameless.items():
        unsure = libraries.pop("", [])
        sure = [[one for part in parts for one in part] for parts in libraries.values()]
        # With one library there, the others may be of it; with several, nothing shows which.
        made = united(whole, sure + unsure, client_id) if len(sure) < 2 else sure + united(whole, unsure, client_id)
        names = [*libraries, *(f"{UNKNOWN} {number}" for number in range(len(made)))]
        for some, name in zip(made, names):
            count(some, client_id, spoke, name if len(made) > 1 else None)
    out.connections = dict(sorted(out.connections.items(), key=lambda item: item[0].order))
    for key, some in out.connections.items():
        some.sort(key=lambda one: one.uid)
        out.software[key] = guess.of(some, key.client_id)
    return out


class Guesses:
    """Determines libraries, once for all clients that are equal."""

    def __init__(self, whole: ConnectionProfiles) -> None:
        self.whole = whole
        self._known: dict[tuple[Any, ...], Software] = {}

    def of(self, some: list[StoredProfile], client_id: str | None) -> Software:
        """The library of a client with these connections."""
        alike: dict[tuple[ProfileTemplate, int, Offer | None], list[StoredProfile]] = {}
        for one in some:
            those = alike.setdefault((one.template, one.number_of(client_id), self.whole.offer_for(one)), [])
            if len(those) < ENOUGH:
                those.append(one)
        if len({template.software for template, _, _ in alike} - {None}) > 1:  # the most frequent one counts
            return who(some, client_id, self.whole)
        key = hint_of(client_id), release_in(client_id), tuple((kind, len(those)) for kind, those in alike.items())
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = who([one for those in alike.values() for one in those], client_id, self.whole)
        return found
