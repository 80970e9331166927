"""What each client used, summed over its connections.

In: stored profiles. Out: clients with their connections, the versions of each, rows of its APIs, and how its calls suit a
release. Law: counts are those of the rows of `exchanges`. What follows from a template, or from equal figures, is computed
once: clients that did the same share rows of APIs, which must not be changed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from kcap import limits
from kcap.facts.api_versions import Offer
from kcap.facts.brokers import Server
from kcap.facts.version_verdicts import VERDICTS
from kcap.reports.definition import Row, uid
from kcap.reports.versions.fingerprints import Software
from kcap.reports.versions.profile_store import StoredProfile
from kcap.reports.versions.profile_templates import USE_FIGURES, ProfileTemplate, uses_of
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.readiness import ApiUse, Assessment, of, range_in
from kcap.schema.facts import Versions
from kcap.schema.registry import api_name
from kcap.schema.releases import deprecated_in, removed_in


@dataclass(frozen=True, slots=True)
class PlannedUse:
    """A use in a template, with its verdicts against what the server offers."""

    at: int
    """Position of its first figure."""
    key: int
    version: int
    named: bool
    """Whether kcap knows the API."""
    offered: Versions | None
    verdicts: tuple[str | None, ...]


Plan = tuple[PlannedUse, ...]


@dataclass(slots=True)
class Sum:
    """One version of one API as a client used it on all of its connections."""

    offered: Versions | None
    """The range of the broker that offers most."""
    example: tuple[str, int]
    first_ns: int
    last_ns: int
    count: int = 0
    served: int = 0
    """Number of responses other than UNSUPPORTED_VERSION, and of requests that expect no response."""
    refused: int = 0
    died: int = 0
    midstream: bool = False
    verdicts: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Usage:
    """Everything that a client used."""

    probes: bool = False
    sums: dict[tuple[int, int], Sum] = field(default_factory=dict)
    """(key, version) -> sum, in order, for APIs that kcap knows."""
    latest: dict[int, Versions] = field(default_factory=dict)
    """API key -> the range of the last connection that has one."""
    offers: dict[int, set[Versions]] = field(default_factory=dict)
    """API key -> the ranges that its brokers offered."""
    first_ns: int = 1 << 62
    last_ns: int = 0
    count: int = 0
    servers: tuple[Server, ...] = ()
    addresses: tuple[str, ...] = ()
    login: bool = False
    """Whether some of its connections began SASL."""
    learned: bool = False
    """Whether its connections request no versions although others of its addresses and client id do, whose results
    it may use."""
    latest_of: dict[int, str] = field(default_factory=dict)
    """API key -> the connection with the latest range."""

    def add(self, plan: Plan, some: Sequence[StoredProfile], figures: Sequence[list[int]], *, midstream: bool) -> None:
        """Adds connections with the same plan, whose figures are the columns of `figures`. They are ordered by uid, and plans
        by their first connection."""
        last_uid = some[-1].uid
        for use in plan:
            counts, lows, highs, examples, refused, served, died = figures[use.at : use.at + 7]
            low, high, count = min(lows), max(highs), sum(counts)
            self.first_ns, self.last_ns = min(self.first_ns, low), max(self.last_ns, high)
            if not use.named:
                continue
            place = lows.index(low)
            example, at = (some[place].uid, examples[place]), (use.key, use.version)
            found = self.sums.get(at)
            if found is None:
                found = self.sums[at] = Sum(use.offered, example, low, high)
            elif (low, example[0]) < (found.first_ns, found.example[0]):
                found.example, found.first_ns = example, low
            found.last_ns = max(found.last_ns, high)
            found.count += count
            found.served += sum(served)
            found.refused += sum(refused)
            found.died += sum(died)
            self.count += count
            found.midstream = found.midstream or midstream
            if use.offered is not None:
                if last_uid >= self.latest_of.get(use.key, ""):
                    self.latest[use.key], self.latest_of[use.key] = use.offered, last_uid
                self.offers.setdefault(use.key, set()).add(use.offered)
                if found.offered is None or use.offered[1] > found.offered[1]:
                    found.offered = use.offered
            for name, column in zip(use.verdicts, figures[use.at + USE_FIGURES :]):
                if name is not None:
                    found.verdicts[name] = found.verdicts.get(name, 0) + sum(column)


class ClientUsage:
    """Computes what clients used, once for all clients that are equal."""

    def __init__(self, whole: ConnectionProfiles, target: str, shared: Set[tuple[str, str | None]] = frozenset()) -> None:
        """`shared`: as in `Clients`."""
        self.whole, self.target, self.shared = whole, target, shared
        self._plans: dict[tuple[ProfileTemplate, int, Offer | None, Offer | None], Plan] = {}
        self._usual: dict[tuple[ProfileTemplate, int, Server], Plan] = {}
        """Plans of connections to servers that made only one offer."""
        self._apis: dict[tuple[Any, ...], list[Row]] = {}
        self._named: dict[tuple[Server, ...], list[str]] = {}
        self._judged: dict[tuple[Any, ...], tuple[list[tuple[int, Assessment]], str, str]] = {}

    def plan(self, stored: StoredProfile, client: int) -> Plan:
        """The uses of a connection under one of its client ids."""
        template, server = stored.template, stored.server
        found = self._usual.get((template, client, server))
        if found is not None:
            return found
        offer, common, verdict = self.whole.offer_for(stored), self.whole.tracker.offers.common(server), self.whole.verdict
        found = self._plans.get((template, client, offer, common))
        if found is None:
            found = self._plans[template, client, offer, common] = tuple(
                PlannedUse(
                    at, use.key, use.version, api_name(use.key) is not None, range_in(offer, use.key),
                    tuple(verdict(kind, offer, common, use.key, use.version, template.software) for kind in use.kinds),
                )
                for at, use in uses_of(template, client)
            )  # fmt: skip
        if self.whole.has_one_offer(stored):
            self._usual[template, client, server] = found
        return found

    def usages(self, clients: Iterable[tuple[str | None, Sequence[StoredProfile]]]) -> Iterator[Usage]:
        """What each of some clients used, with their ids and their connections in order. The figures of many connections are
        read together."""
        waiting: list[tuple[str | None, Sequence[StoredProfile]]] = []
        size = 0
        for client_id, some in clients:
            waiting.append((client_id, some))
            size += len(some)
            if size >= limits.PROFILES_SUMMED:
                yield from self._summed(waiting)
                waiting, size = [], 0
        yield from self._summed(waiting)

    def usage(self, some: Sequence[StoredProfile], client_id: str | None) -> Usage:
        """What a client used. If its brokers differ, the one that offered most counts."""
        return next(self._summed([(client_id, some)]))

    def _summed(self, clients: Sequence[tuple[str | None, Sequence[StoredProfile]]]) -> Iterator[Usage]:
        # Blocks of figures are decompressed in order, each once.
        every = sorted((stored for _, some in clients for stored in some), key=attrgetter("place"))
        figures = {id(stored): stored.figures for stored in every}
        return (self._sum(client_id, some, figures) for client_id, some in clients)

    def _sum(self, client_id: str | None, some: Sequence[StoredProfile], figures: Mapping[int, bytes]) -> Usage:
        alike: dict[tuple[ProfileTemplate, int], tuple[Plan, list[StoredProfile]]] = {}
        for stored in some:
            plan = self.plan(stored, stored.number_of(client_id))
            alike.setdefault((stored.template, id(plan)), (plan, []))[1].append(stored)
        made = Usage()
        for (template, _), (plan, mine) in alike.items():
            numbers = np.frombuffer(b"".join([figures[id(stored)] for stored in mine]), np.int64)
            made.add(plan, mine, numbers.reshape(len(mine), -1).T.tolist(), midstream=template.midstream)
            made.probes = made.probes or bool(template.probes)
            made.login = made.login or template.mechanism is not None
        made.learned = not made.probes and all((stored.address, client_id) in self.shared for stored in some)
        made.sums = dict(sorted(made.sums.items()))
        made.servers = tuple(dict.fromkeys(stored.server for stored in some))
        made.addresses = tuple(sorted({stored.address for stored in some}))
        return made

    def apis(self, usage: Usage) -> list[Row]:
        """Each API that a client used, with its versions. Equal lists are one object."""
        key = tuple(
            (
                *at,
                one.count,
                one.served,
                one.refused,
                one.died,
                usage.latest.get(at[0]),
                *sorted(usage.offers.get(at[0], ())),
                *one.verdicts.items(),
            )
            for at, one in usage.sums.items()
        )
        found = self._apis.get(key)
        if found is None:
            found = self._apis[key] = apis_of(usage)
        return found

    def assessed(self, usage: Usage, known: Software) -> tuple[list[Assessment], str, str]:
        """The calls that the release rejects, the verdict, and its reason."""
        key = (
            known,
            usage.login,
            tuple(
                (*at, usage.probes or usage.learned or one.midstream, one.offered, one.served > 0, one.refused > 0)
                for at, one in usage.sums.items()
            ),
        )
        found = self._judged.get(key)
        if found is None:
            calls = calls_of(usage)
            findings, verdict, why = of(calls, known, self.target, usage.login)
            places = {id(call): place for place, call in enumerate(calls)}
            found = self._judged[key] = [(places[id(one.call)], one) for one in findings], verdict, why
        pattern, verdict, why = found
        mine = calls_of(usage) if pattern else []
        return [Assessment(mine[at], one.what, one.steps, one.head, one.cause) for at, one in pattern], verdict, why

    def named(self, servers: tuple[Server, ...]) -> list[str]:
        """Servers in readable form, in order. Equal lists are one object."""
        found = self._named.get(servers)
        if found is None:
            found = self._named[servers] = sorted({f"{host}:{port}" for host, port in servers})
        return found


def calls_of(usage: Usage) -> list[ApiUse]:
    """The versions, in the form in which they are compared with a release."""
    return [
        ApiUse(
            key,
            version,
            one.count,
            one.first_ns,
            one.last_ns,
            uid(*one.example),
            usage.probes or usage.learned or one.midstream,
            one.offered,
            one.served > 0,
            one.refused > 0,
        )
        for (key, version), one in usage.sums.items()
    ]


def apis_of(usage: Usage) -> list[Row]:
    rows: dict[int, Row] = {}
    counts: dict[int, Counter[str]] = {}
    for (key, version), one in usage.sums.items():
        row = rows.setdefault(
            key, {"api": api_name(key), "api_key": key, "min": version, "max": version, "count": 0, "verdicts": {},
                  "removed_in": None, "deprecated_in": None, "versions": {}, "offered": None}
        )  # fmt: skip
        row["max"], row["count"] = version, row["count"] + one.count
        row["versions"][str(version)] = one.count
        counts.setdefault(key, Counter()).update(one.verdicts)
        # The oldest version in use is removed first, and the client then fails.
        row["removed_in"] = row["removed_in"] or removed_in(key, version)
        row["deprecated_in"] = row["deprecated_in"] or deprecated_in(key, version)
    for key, row in rows.items():
        row["verdicts"] = {name: counts[key][name] for name in VERDICTS if counts[key][name]}
        row["offered"] = list(usage.latest[key]) if key in usage.latest else None
        row["offers"] = sorted(map(list, usage.offers.get(key, ())))
    return list(rows.values())
