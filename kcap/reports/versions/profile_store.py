"""Deduplicated profiles of connections: what many of them have in common is stored once as a template; each has its own
figures.

In: profiles. Out: `StoredProfile`, and `ProfileStore`, a mapping that holds them as columns and returns profiles. Law: an
opened profile equals the stored one.
"""

from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, MutableMapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from kcap import limits
from kcap.facts.brokers import Server
from kcap.reports.versions.deflated_pieces import DeflatedPieces, ValueNumbers
from kcap.reports.versions.growing_profiles import NEVER, GrowingProfiles
from kcap.reports.versions.profile import ApiVersionsRequest, ConnectionProfile, ProfiledCall, Use
from kcap.reports.versions.profile_templates import (
    OF_IDENTITY,
    First,
    Placeholder,
    ProfileDeduplicator,
    ProfileTemplate,
    TemplateUse,
    layout_of,
    uses_of,
)

if TYPE_CHECKING:
    from kcap.identities import Identities, Identity

SEARCHED: Final = 1024
"""Number of a connection's client ids up to which one is found by a search; above it, by a dictionary."""
DICTIONARIES: Final = 64
"""Number of dictionaries of client ids that are retained."""


class StoredProfile:
    """One connection: its template, and its own figures, which remain in their columns and are read each time."""

    __slots__ = ("_columns", "address", "clients", "place", "server", "template", "uid")

    def __init__(self, uid: str, columns: "ProfileColumns", place: int) -> None:
        self.uid, self._columns, self.place = uid, columns, place
        self.address = columns.address(place)
        """The client's address."""
        self.server = columns.server(place)
        """The broker's address."""
        self.template = columns.template(place)
        """What it has in common with others."""
        self.clients = columns.clients(place)
        """Client ids; its uses refer to them by number."""

    @property
    def identity(self) -> "Identity":
        """The identity of the connection."""
        return self._columns.identity(self.uid, self.place)

    @property
    def figures(self) -> bytes:
        """Numbers of 8 bytes: ApiVersions requests, times of the steps, uses, errors, the row."""
        return self._columns.figures(self.place)

    def numbers(self) -> "memoryview[int]":
        """The figures."""
        return memoryview(self.figures).cast("q")

    def first_uses(self) -> Iterator[int]:
        """When each version of an API was first used, in nanoseconds."""
        numbers = self.numbers()
        return (numbers[at + 1] for at in layout_of(self.template).starts[:-1])

    def open(self) -> ConnectionProfile:
        """The profile of the connection."""
        return self._opened(zip(layout_of(self.template).starts, self.template.uses))

    def open_for(self, client_id: str | None) -> ConnectionProfile:
        """The profile with only the uses of one of its client ids. Raises LookupError if it has no such id."""
        return self._opened(uses_of(self.template, self.number_of(client_id)))

    def number_of(self, client_id: str | None) -> int:
        """The number by which its uses refer to a client id. Raises LookupError if it has no such id."""
        if len(self.clients) == 1 and self.clients[0] == client_id:
            return 0
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


class ProfileColumns:
    """Stored profiles as columns: a sixth of the memory of objects, and only a few values to pickle. Append-only, except for
    what the end of a connection adds."""

    def __init__(self) -> None:
        self._addresses, self._servers, self._templates, self._clients = (ValueNumbers() for _ in range(4))
        self._columns = {name: array("I") for name in ("address", "port", "server", "number", "template", "clients")}
        self._figures, self._added = DeflatedPieces(), DeflatedPieces()
        """Figures of each profile, and those that its end added."""
        self._numbers: dict[int, dict[str | None, int]] = {}
        """Client ids of connections that have many -> their numbers."""

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_numbers": {}}

    def __len__(self) -> int:
        return len(self._figures)

    def append(
        self, identity: "Identity", template: ProfileTemplate, clients: tuple[str | None, ...], figures: bytes
    ) -> int:  # fmt: skip
        """Adds a profile; returns its position."""
        server = identity.server_ip, identity.server_port
        row = (
            self._addresses[identity.client_ip], identity.client_port, self._servers[server], identity.number,
            self._templates[template], self._clients[clients],
        )  # fmt: skip
        for column, value in zip(self._columns.values(), row):
            column.append(value)
        self._figures.append(figures)
        return len(self) - 1

    def end(self, place: int, template: ProfileTemplate, figures: bytes) -> None:
        """Gives a profile another template, and its last figures."""
        self._columns["template"][place] = self._templates[template]
        self._added.set(place, figures)

    def identity(self, uid: str, place: int) -> "Identity":
        """The identity of a profile; `uid` is its connection."""
        from kcap.identities import Identity

        port, number = self._columns["port"][place], self._columns["number"][place]
        return Identity(uid, self.address(place), port, *self.server(place), number)

    def address(self, place: int) -> str:
        """The client's address of a profile."""
        found: str = self._addresses.known[self._columns["address"][place]]
        return found

    def server(self, place: int) -> Server:
        """The broker's address of a profile."""
        found: Server = self._servers.known[self._columns["server"][place]]
        return found

    def template(self, place: int) -> ProfileTemplate:
        """The template of a profile."""
        found: ProfileTemplate = self._templates.known[self._columns["template"][place]]
        return found

    def clients(self, place: int) -> tuple[str | None, ...]:
        """The client ids of a profile."""
        found: tuple[str | None, ...] = self._clients.known[self._columns["clients"][place]]
        return found

    def number_of(self, place: int, client_id: str | None) -> int:
        """The number of a client id among those of a profile."""
        clients, number = self.clients(place), self._columns["clients"][place]
        if len(clients) <= SEARCHED:
            return clients.index(client_id)
        if number not in self._numbers:
            if len(self._numbers) >= DICTIONARIES:
                self._numbers.clear()
            self._numbers[number] = {name: nth for nth, name in enumerate(clients)}
        return self._numbers[number][client_id]

    def figures(self, place: int) -> bytes:
        """The figures of a profile."""
        return self._figures.get(place) + self._added.get(place)


class ProfileStore(MutableMapping[str, ConnectionProfile]):
    """Profiles by connection, in order of arrival; those that can still change are in `growing`, the others are stored."""

    def __init__(self) -> None:
        self._kept: dict[str, int] = {}
        """The position of a stored profile, or the number of one in `growing`, inverted."""
        self._columns = ProfileColumns()
        self._folder = ProfileDeduplicator()
        self.growing = GrowingProfiles()
        self._clients: dict[bytes, tuple[str | None, ...]] = {}
        """Client ids by their numbers."""
        self._stored: list[StoredProfile] | None = None
        """All profiles as objects, made when they are first needed."""

    def __getitem__(self, uid: str) -> ConnectionProfile:
        self.store(uid)
        return StoredProfile(uid, self._columns, self._kept[uid]).open()

    def __setitem__(self, uid: str, profile: ConnectionProfile) -> None:
        self._forget(uid)
        self._add(profile)
        self.settle()

    def __delitem__(self, uid: str) -> None:
        self._forget(uid)
        del self._kept[uid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, uid: object) -> bool:
        return uid in self._kept

    def _forget(self, uid: str) -> None:
        found, self._stored = self._kept.get(uid, 0), None
        if found < 0:
            self.growing.forget(~found)

    def _add(self, profile: ConnectionProfile) -> int:
        form = self._folder.form(profile.line, profile.identity, midstream=profile.midstream, is_over=False)
        number = self.growing.add_profile(profile, *form)
        self._kept[profile.uid], self._stored = ~number, None
        return number

    def number(self, identities: "Identities", index: int) -> int:
        """The number in `growing` of a connection that changes; a stored one is opened again."""
        uid = identities.uid(index)
        found = self._kept.get(uid)
        if found is None:
            number = self.growing.begin(identities[index])
            self._kept[uid], self._stored = ~number, None
            return number
        return ~found if found < 0 else self._add(self[uid])

    def settle(self) -> None:
        """Stores profiles where more than PROFILES_OPEN are open: those of connections that are over, or else, since most are
        quiet long before, those that were opened first. Stored ones are a few times smaller."""
        known = self.growing.known
        if len(known) > limits.PROFILES_OPEN:
            many = len(known) - limits.PROFILES_OPEN // 2
            over = list(islice((number for number, one in known.items() if one.line), many))
            self._store(over if len(known) - len(over) <= limits.PROFILES_OPEN else list(islice(known, many)))
            if len(self._columns) > 2 * len(self._kept):  # most are of profiles that were opened again
                self._pack()
        self.growing.compact(limits.PROFILE_ROWS)

    def _store(self, numbers: list[int]) -> None:
        for folded in self.growing.fold(numbers):
            growing, names = folded.growing, self._clients.get(folded.clients)
            if names is None:
                every = self.growing.clients.known
                names = self._clients[folded.clients] = tuple(every[name] for name in memoryview(folded.clients).cast("q"))
            more = array("q", (*chain.from_iterable(growing.errors.values()), *growing.line_figures)).tobytes()
            template, identity = self._folder.template(folded, self.growing), growing.identity
            self._kept[identity.uid] = self._columns.append(identity, template, names, folded.figures + more)
        self._stored = None

    def store(self, uid: str) -> None:
        """Stores one that is over; another exchange opens it again."""
        found = self._kept[uid]
        if found < 0:
            self._store([~found])

    def end(self, uid: str, line: dict[str, Any], *, midstream: bool) -> bool:
        """A connection is over: gives its profile its line; whether there is one."""
        found = self._kept.get(uid)
        if found is None:
            return False
        if found >= 0:
            template = self._columns.template(found)
            if not template.line and template in self._folder:
                form, figures = self._folder.form(line, self._columns.identity(uid, found), midstream=midstream, is_over=True)
                self._columns.end(found, self._folder.ended(template, form), array("q", figures).tobytes())
                self._stored = None
                return True
            found = ~self._add(self[uid])
        one = self.growing.known[~found]
        one.line, one.line_figures = self._folder.form(line, one.identity, midstream=midstream, is_over=True)
        return True

    def close(self) -> None:
        """Stores all of them."""
        self._store(list(self.growing.known))

    def stored(self) -> list[StoredProfile]:
        """All of them, stored."""
        self.close()
        if self._stored is None:
            self._stored = list(self._each())
        return self._stored

    def _each(self) -> Iterator[StoredProfile]:
        return (StoredProfile(uid, self._columns, place) for uid, place in self._kept.items() if place >= 0)

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
        self._folder, self.growing = ProfileDeduplicator(), GrowingProfiles()
        self._clients, self._stored = {}, None
