"""Deduplicated profiles of connections: what many of them have in common is stored once as a template, and their figures each.

In: profiles. Out: `StoredProfile`, and `ProfileStore`, a mapping that holds them as columns and returns profiles. Law: what is
opened equals what was stored. Two of one `ProfileTemplate` differ in addresses, client ids, times and counts alone; what rules
test of counts besides (is there one, did all die, is it the size of an alert) is the same for all of one template.
"""

from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcap import limits
from kcap.facts.api_versions import Offer, Software
from kcap.facts.brokers import Server
from kcap.reports.versions.deflated_pieces import DeflatedPieces, ValueNumbers
from kcap.reports.versions.profile import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ConnectionProfile,
    ProfiledCall,
    Trait,
    Use,
    is_proven,
)

if TYPE_CHECKING:
    from kcap.identities import Identity

NEVER: Final = -(1 << 63)
"""Stands for a time or an exchange that there is none of."""
SEARCHED: Final = 1024
"""Up to so many client ids of a connection one is found by a search; else by a dictionary."""
DICTIONARIES: Final = 64
"""Dictionaries of client ids that stay."""
ALERT_BYTES: Final = 7
"""A TLS alert record: 5 bytes of header, 2 of alert."""


class Placeholder(Enum):
    """What a template has in place of a value of a line."""

    NUMBER = "a figure"
    OWN = "what the identity says"


USE_FIGURES: Final = 8
"""Numbers of a use before those of its verdicts: count, first, last, example, refused, served, died, example of these."""
OF_IDENTITY: Final = {
    "connection": "uid", "client_ip": "client_ip", "client_port": "client_port", "server_ip": "server_ip",
    "server_port": "server_port",
}  # fmt: skip
"""Columns of a line that say what the identity says."""
CHECKED: Final = frozenset(
    {"client_packets", "server_packets", "client_missing", "server_missing", "client_captured", "server_captured",
     "server_framed"}
)  # fmt: skip
"""Numbers of a line that rules test."""

OWN: Final = {name: (name, Placeholder.OWN) for name in OF_IDENTITY}

Line = tuple[tuple[str, Any], ...]
"""A row of `connections` with placeholders for what a template does not have."""
Signs = tuple[int, ...]
"""Of each number that rules test: 0, 7 for the size of an alert, 1 for others."""
First = tuple[int, int, int, str, str | None, int | None]
"""A step without its times: exchange, key, version, outcome, reason, error."""


@dataclass(frozen=True, slots=True)
class TemplateUse:
    """One version of one API in a template."""

    client: int
    """Number of the client id among those of the connection."""
    key: int
    version: int
    codecs: int
    kinds: tuple[int, ...]
    """Verdicts."""
    spared: bool
    """More were sent than cost the connection."""
    served: bool
    """Some got a response other than a refusal."""
    refused: bool
    died: bool

    @property
    def width(self) -> int:
        """How many figures it has."""
        return USE_FIGURES + len(self.kinds)


@dataclass(frozen=True, slots=True, eq=False)
class ProfileTemplate:
    """What the profiles of several connections have in common."""

    software: Software | None
    principal: str | None
    offer: Offer | None
    midstream: bool
    opening: tuple[First, ...]
    probes: tuple[tuple[int | First, ApiVersionsResponse | None], ...]
    """A question is one of the opening, by its place, or stands for itself."""
    uses: tuple[TemplateUse, ...]
    errors: tuple[tuple[int, int], ...]
    mechanism: str | None
    mechanisms: tuple[str, ...]
    ids_from: int | None
    traits: frozenset[Trait]
    line: Line
    signs: Signs

    @property
    def first_use(self) -> int:
        """Where the figures of the uses begin, those of one behind those of the other."""
        return 1 + 2 * (len(self.opening) + sum(not isinstance(which, int) for which, _ in self.probes))


Uses = list[tuple[int, TemplateUse]]
"""Uses, each with where its figures begin."""


class TemplateLayout(NamedTuple):
    """Where the figures of a template's uses are: a connection may have thousands of client ids, which are looked at one by
    one."""

    starts: "array[int]"
    """Where the figures of each use begin, and those behind the uses."""
    order: "array[int]"
    """Places of the uses, those of one client id behind those of the other."""
    clients: "array[int]"
    """Number of a client id -> where its uses begin in the order, and the end."""


@lru_cache(maxsize=4096)
def layout_of(template: ProfileTemplate) -> TemplateLayout:
    """The layout of a template."""
    uses = template.uses
    starts = array("I", accumulate((use.width for use in uses), initial=template.first_use))
    order = array("I", sorted(range(len(uses)), key=lambda place: uses[place].client))
    counts = Counter(use.client for use in uses)
    clients = array("I", accumulate((counts[client] for client in range(len(counts))), initial=0))
    return TemplateLayout(starts, order, clients)


def uses_of(template: ProfileTemplate, client: int) -> Uses:
    """The uses of one of a template's client ids, by its number."""
    starts, order, clients = layout_of(template)
    return [(starts[place], template.uses[place]) for place in order[clients[client] : clients[client + 1]]]


class StoredProfile:
    """One connection: its template, and its own figures. They stay in their columns, and are looked up each time."""

    __slots__ = ("_columns", "place", "uid")

    def __init__(self, uid: str, columns: "ProfileColumns", place: int) -> None:
        self.uid, self._columns, self.place = uid, columns, place

    @property
    def identity(self) -> "Identity":
        """Whose it is."""
        return self._columns.identity(self.uid, self.place)

    @property
    def address(self) -> str:
        """The client's address."""
        return self._columns.address(self.place)

    @property
    def server(self) -> Server:
        """The broker's address."""
        return self._columns.server(self.place)

    @property
    def template(self) -> ProfileTemplate:
        """What it has in common with others."""
        return self._columns.template(self.place)

    @property
    def clients(self) -> tuple[str | None, ...]:
        """Client ids, as its uses number them."""
        return self._columns.clients(self.place)

    @property
    def figures(self) -> bytes:
        """Numbers of 8 bytes: questions, times of the steps, uses, errors, the line."""
        return self._columns.figures(self.place)

    def numbers(self) -> "memoryview[int]":
        """The figures."""
        return memoryview(self.figures).cast("q")

    def first_uses(self) -> Iterator[int]:
        """When each version of an API was first used, in nanoseconds."""
        numbers = self.numbers()
        return (numbers[at + 1] for at in layout_of(self.template).starts[:-1])

    def open(self) -> ConnectionProfile:
        """The connection as it was."""
        return self._opened(zip(layout_of(self.template).starts, self.template.uses))

    def open_for(self, client_id: str | None) -> ConnectionProfile:
        """The same with the uses of one of its client ids alone. Raises LookupError where it has no such."""
        return self._opened(uses_of(self.template, self.number_of(client_id)))

    def number_of(self, client_id: str | None) -> int:
        """By which number its uses name a client id. Raises LookupError where it has no such."""
        return self._columns.number_of(self.place, client_id)

    def _opened(self, uses: Iterable[tuple[int, TemplateUse]]) -> ConnectionProfile:
        template, figures, identity, clients = self.template, self.numbers(), self.identity, self.clients
        numbers = iter(figures[: template.first_use])
        made = ConnectionProfile(
            identity, template.software, template.principal, template.offer, template.midstream, probe_count=next(numbers)
        )  # fmt: skip
        made.opening = [_step(first, numbers) for first in template.opening]
        made.probes = [
            ApiVersionsRequest(made.opening[which] if isinstance(which, int) else _step(which, numbers), answer)
            for which, answer in template.probes
        ]
        for at, described in uses:
            count, first, last, example, refused, served, died, lost, *kinds = figures[at : at + described.width]
            made.uses[clients[described.client], described.key, described.version] = Use(
                count, first, last, example, refused, served, died, None if lost == NEVER else lost, described.codecs,
                Counter(dict(zip(described.kinds, kinds))),
            )  # fmt: skip
        numbers = iter(figures[layout_of(template).starts[-1] :])
        for error in template.errors:
            made.errors[error], made.error_example[error] = next(numbers), next(numbers)
        made.mechanism, made.mechanisms = template.mechanism, template.mechanisms
        made.ids_from, made.traits = template.ids_from, set(template.traits)
        for name, value in template.line:
            if value is Placeholder.NUMBER:
                value = next(numbers)
            elif value is Placeholder.OWN:
                value = getattr(identity, OF_IDENTITY[name])
            made.line[name] = value
        return made


def _step(first: First, numbers: Iterator[int]) -> ProfiledCall:
    requested, responded = next(numbers), next(numbers)
    return ProfiledCall(*first, None if requested == NEVER else requested, None if responded == NEVER else responded)


def _first(step: ProfiledCall) -> First:
    return step.exchange, step.key, step.version, step.outcome, step.reason, step.error


def _times(step: ProfiledCall) -> tuple[int, int]:
    return NEVER if step.requested_ns is None else step.requested_ns, NEVER if step.responded_ns is None else step.responded_ns


def sign(number: int) -> int:
    """What rules may test of a number."""
    return number if number in (0, ALERT_BYTES) else 1


class ProfileDeduplicator:
    """Stores profiles; equal templates are one."""

    def __init__(self) -> None:
        self._templates: dict[tuple[Any, ...], ProfileTemplate] = {}
        self._common: dict[ProfileTemplate, tuple[Any, ...]] = {}
        """What the keys of templates that differ in their line alone have in common."""
        self._ended: dict[tuple[ProfileTemplate, str | None, bool, Line, Signs], ProfileTemplate] = {}
        """Template, and what `ended` gives it -> the template with that."""

    def store(self, profile: ConnectionProfile, into: "ProfileColumns") -> StoredProfile:
        """Adds one to columns. Steps and questions come into the order of their exchanges."""
        opening = sorted(profile.opening, key=lambda step: step.exchange)
        figures, places = [profile.probe_count], {id(step): at for at, step in enumerate(opening)}
        for step in opening:
            figures += _times(step)
        probes: list[tuple[int | First, ApiVersionsResponse | None]] = []
        for probe in sorted(profile.probes, key=lambda probe: probe.step.exchange):
            at = places.get(id(probe.step))
            probes.append((_first(probe.step) if at is None else at, probe.answer))
            figures += _times(probe.step) if at is None else ()
        clients: dict[str | None, int] = {}
        uses = []
        for (client, key, version), use in profile.uses.items():
            lost = NEVER if use.died_example is None else use.died_example
            figures += (use.count, use.first_ns, use.last_ns, use.example, use.refused, use.served, use.died, lost)
            figures += use.verdicts.values()
            uses.append((
                clients.setdefault(client, len(clients)), key, version, use.codecs, tuple(use.verdicts),
                use.count > use.died, use.served > 0, use.refused > 0, use.died > 0,
            ))  # fmt: skip
        for error, count in profile.errors.items():
            figures += (count, profile.error_example[error])
        first, traits = tuple(map(_first, opening)), frozenset(profile.traits)
        line, signs, numbers = _line_of(profile.line, profile.identity)
        figures += numbers
        common = (
            profile.software, id(profile.offer), first, tuple((which, id(answer)) for which, answer in probes),
            tuple(uses), tuple(profile.errors), profile.mechanism, profile.mechanisms, profile.ids_from, traits,
        )  # fmt: skip
        whole = common, profile.principal, profile.midstream, line, signs
        template = self._templates.get(whole)
        if template is None:
            template = self._templates[whole] = ProfileTemplate(
                profile.software, profile.principal, profile.offer, profile.midstream, first, tuple(probes),
                tuple(TemplateUse(*one) for one in uses),
                tuple(profile.errors), profile.mechanism, profile.mechanisms, profile.ids_from, traits, line, signs,
            )  # fmt: skip
            self._common[template] = common
        place = into.append(profile.identity, template, tuple(clients), array("q", figures).tobytes())
        return StoredProfile(profile.uid, into, place)

    def __contains__(self, template: ProfileTemplate) -> bool:
        return template in self._common

    def ended(
        self, template: ProfileTemplate, identity: "Identity", values: Mapping[str, Any], *, midstream: bool, proven: bool
    ) -> tuple[ProfileTemplate, bytes]:
        """The template of a profile without a line with that of its connection, and the figures that come behind those it has:
        `store` makes the same of the whole profile. `proven`: its principal stays.
        """
        line, signs, numbers = _line_of(values, identity)
        principal = template.principal if proven else None
        made = self._ended.get(short := (template, principal, midstream, line, signs))
        if made is None:
            common = self._common[template]
            whole = common, principal, midstream, line, signs
            made = self._templates.get(whole)
            if made is None:
                made = replace(template, principal=principal, midstream=midstream, line=line, signs=signs)
                self._templates[whole], self._common[made] = made, common
            self._ended[short] = made
        return made, array("q", numbers).tobytes()


def _line_of(values: Mapping[str, Any], identity: "Identity") -> tuple[Line, Signs, list[int]]:
    """The line of a template, its signs, and the numbers that are figures."""
    line: list[tuple[str, Any]] = []
    signs: list[int] = []
    numbers: list[int] = []
    for name, value in values.items():
        if name in OF_IDENTITY and value == getattr(identity, OF_IDENTITY[name]):
            line.append(OWN[name])
        elif type(value) is int:
            line.append((name, Placeholder.NUMBER))
            numbers.append(value)
            if name in CHECKED:
                signs.append(sign(value))
        else:
            line.append((name, value))
    return tuple(line), tuple(signs), numbers


class ProfileColumns:
    """Stored profiles as columns: a sixth of the memory of objects, and one value each for pickle. Append-only, but for what
    the end of a connection adds.
    """

    def __init__(self) -> None:
        self._addresses, self._servers, self._templates, self._clients = (ValueNumbers() for _ in range(4))
        self._columns = {name: array("I") for name in ("address", "port", "server", "number", "template", "clients")}
        self._figures, self._added = DeflatedPieces(), DeflatedPieces()
        """Figures of each, and those that its end added."""
        self._numbers: dict[int, dict[str | None, int]] = {}
        """Client ids of connections that have many -> their numbers."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_numbers": {}}

    def __len__(self) -> int:
        return len(self._figures)

    def append(
        self, identity: "Identity", template: ProfileTemplate, clients: tuple[str | None, ...], figures: bytes
    ) -> int:  # fmt: skip
        """Adds one; its place."""
        server = identity.server_ip, identity.server_port
        row = (
            self._addresses[identity.client_ip], identity.client_port, self._servers[server], identity.number,
            self._templates[template], self._clients[clients],
        )  # fmt: skip
        for column, value in zip(self._columns.values(), row):
            column.append(value)
        self._figures.append(figures)
        self._added.append(b"")
        return len(self) - 1

    def end(self, place: int, template: ProfileTemplate, figures: bytes) -> None:
        """Gives one another template, of which these are the last figures."""
        self._columns["template"][place] = self._templates[template]
        self._added.set(place, figures)

    def identity(self, uid: str, place: int) -> "Identity":
        """Whose one of them is; `uid`: its connection."""
        from kcap.identities import Identity

        port, number = self._columns["port"][place], self._columns["number"][place]
        return Identity(uid, self.address(place), port, *self.server(place), number)

    def address(self, place: int) -> str:
        """The client's address of one of them."""
        found: str = self._addresses.known[self._columns["address"][place]]
        return found

    def server(self, place: int) -> Server:
        """The broker's address of one of them."""
        found: Server = self._servers.known[self._columns["server"][place]]
        return found

    def template(self, place: int) -> ProfileTemplate:
        """The template of one of them."""
        found: ProfileTemplate = self._templates.known[self._columns["template"][place]]
        return found

    def clients(self, place: int) -> tuple[str | None, ...]:
        """The client ids of one of them."""
        found: tuple[str | None, ...] = self._clients.known[self._columns["clients"][place]]
        return found

    def number_of(self, place: int, client_id: str | None) -> int:
        """The number of a client id among those of one of them."""
        clients, number = self.clients(place), self._columns["clients"][place]
        if len(clients) <= SEARCHED:
            return clients.index(client_id)
        if number not in self._numbers:
            if len(self._numbers) >= DICTIONARIES:
                self._numbers.clear()
            self._numbers[number] = {name: nth for nth, name in enumerate(clients)}
        return self._numbers[number][client_id]

    def figures(self, place: int) -> bytes:
        """The figures of one of them."""
        return self._figures.get(place) + self._added.get(place)


class ProfileStore(MutableMapping[str, ConnectionProfile]):
    """Profiles by connection, in order of arrival; those of closed connections are stored, and opened on request."""

    def __init__(self) -> None:
        self._kept: dict[str, ConnectionProfile | int] = {}
        """An open profile, or the place of a stored one."""
        self._columns = ProfileColumns()
        self._folder = ProfileDeduplicator()
        self._growing: dict[str, None] = {}
        """Connections whose profiles are open, in the order in which they were opened."""
        self._stored: list[StoredProfile] | None = None
        """All as objects, made when they are first needed."""

    def __getitem__(self, uid: str) -> ConnectionProfile:
        found = self._kept[uid]
        return StoredProfile(uid, self._columns, found).open() if isinstance(found, int) else found

    def __setitem__(self, uid: str, profile: ConnectionProfile) -> None:
        self._kept[uid], self._stored = profile, None

    def __delitem__(self, uid: str) -> None:
        del self._kept[uid]
        self._stored = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, uid: object) -> bool:
        return uid in self._kept

    def growing(self, identity: "Identity") -> ConnectionProfile:
        """The profile of a connection to add to: as it is, opened again where it was stored, or a new one."""
        found = self._kept.get(identity.uid)
        if type(found) is ConnectionProfile:
            return found
        self[identity.uid] = made = ConnectionProfile(identity) if found is None else self[identity.uid]
        self._growing[identity.uid] = None
        return made

    def settle(self) -> None:
        """Stores the profiles that were opened first, where more than PROFILES_OPEN are: they take ten times the memory, and
        most connections are quiet long before they are over.
        """
        if len(self._growing) > limits.PROFILES_OPEN:
            for uid in list(self._growing)[: len(self._growing) - limits.PROFILES_OPEN // 2]:
                self.store(uid)
            if len(self._columns) > 2 * len(self._kept):  # most are of profiles that were opened again
                self._pack()

    def store(self, uid: str) -> None:
        """Folds one that is over; another exchange opens it again."""
        found = self._kept[uid]
        self._growing.pop(uid, None)
        if isinstance(found, ConnectionProfile):
            self._kept[uid] = self._folder.store(found, self._columns).place
            self._stored = None

    def end(self, uid: str, line: dict[str, Any], *, midstream: bool) -> bool:
        """A connection is over: gives its profile its line and stores it; whether there is one."""
        found = self._kept.get(uid)
        if found is None:
            return False
        if isinstance(found, int):
            template = self._columns.template(found)
            if not template.line and template in self._folder:
                proven = is_proven(template.errors, ((use.key, use.served) for use in template.uses))
                identity = self._columns.identity(uid, found)
                self._columns.end(found, *self._folder.ended(template, identity, line, midstream=midstream, proven=proven))
                self._stored = None
                return True
            self[uid] = found = self[uid]
        found.line, found.midstream = line, midstream
        if not is_proven(found.errors, ((key, use.served > 0) for (_, key, _), use in found.uses.items())):
            found.principal = None
        self.store(uid)
        return True

    def close(self) -> None:
        """Stores all of them."""
        for uid in [uid for uid, one in self._kept.items() if isinstance(one, ConnectionProfile)]:
            self.store(uid)

    def stored(self) -> list[StoredProfile]:
        """All of them, stored."""
        self.close()
        if self._stored is None:
            self._stored = list(self._each())
        return self._stored

    def _each(self) -> Iterator[StoredProfile]:
        return (StoredProfile(uid, self._columns, place) for uid, place in self._kept.items() if isinstance(place, int))

    def _pack(self) -> None:
        """Leaves out what was stored of profiles that were stored again."""
        every, self._columns = list(self._each()), ProfileColumns()
        self._kept |= {one.uid: self._append(one) for one in every}

    def keep(self, some: Iterable[StoredProfile]) -> None:
        """Adds stored profiles of another store."""
        self._kept.update((one.uid, self._append(one)) for one in some)
        self._stored = None

    def _append(self, one: StoredProfile) -> int:
        return self._columns.append(one.identity, one.template, one.clients, one.figures)

    def only(self, uids: Container[str | None]) -> "ProfileStore":
        """Those of these connections."""
        made = ProfileStore()
        made.keep(one for one in self.stored() if one.uid in uids)
        return made

    def __getstate__(self) -> tuple[Any, ...]:
        self.close()
        if len(self._columns) != len(self._kept):
            self._pack()
        # all are stored; pickle remembers each string, and none of those within one
        return " ".join(self._kept), array("I", self._kept.values()), self._columns

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        uids, places, self._columns = state
        self._kept = dict(zip(uids.split(), places))
        self._folder, self._growing, self._stored = ProfileDeduplicator(), {}, None
