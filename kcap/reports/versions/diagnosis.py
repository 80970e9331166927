"""The input of the rules of diagnosis, and the rows that they make.

In: the connections of a capture, its clients and brokers. Out: `DiagnosisContext`, which rules read and to which they add
troubles. Law: a trouble counts each of its connections once, and its example is the first one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from kcap.facts.brokers import Server
from kcap.reports.text import count
from kcap.reports.versions.fingerprints import Software
from kcap.reports.versions.identity import Clients
from kcap.reports.versions.profile import ConnectionProfile
from kcap.reports.versions.profile_store import StoredProfile
from kcap.reports.versions.profile_templates import ProfileTemplate
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.reports.versions.release_guess import CONTROLLER
from kcap.reports.versions.siblings import Siblings
from kcap.schema.registry import api_name

T = TypeVar("T")
Row = dict[str, Any]
ERROR, WARNING, NOTE = "error", "warning", "note"
LEVELS: Final = (ERROR, WARNING, NOTE)
SHOWN: Final = 100
"""Number of connections that a row names; it counts all."""
IDS_NAMED: Final = 5
"""Number of client ids, and of brokers, that a sentence names; it counts all."""
ENDS: Final = ("fin", "rst")


@dataclass(slots=True)
class Diagnosis:
    """One row while it is made.

    The sentence may contain `{n}` (connections), `{who}` (clients), `{s}` (the ending of the verb after them), `{at}` (their
    addresses), `{servers}` and `{vs}` (the ending of the verb after these).
    """

    kind: str
    level: str
    sentence: str
    advice: str
    subject: Row
    connections: list[str] = field(default_factory=list)
    example: str = ""
    clients: dict[tuple[str | None, str | None], str] = field(default_factory=dict)
    """Address and client id -> library, empty if it is not known."""
    servers: dict[str, None] = field(default_factory=dict)
    """Brokers' addresses, in the order of their first occurrence."""

    @property
    def ids(self) -> list[str | None]:
        """Client ids, each once, in order."""
        return sorted({client for _, client in self.clients}, key=lambda one: (one is None, one or ""))

    def who(self) -> str:
        """The clients, in words."""
        ids, addresses = self.ids, sorted({ip for ip, _ in self.clients if ip is not None})
        libraries = set(self.clients.values())
        library = ", ".join(sorted(libraries - {""})) + ("; others unknown" if "" in libraries and len(libraries) > 1 else "")
        shown = [f"'{one}'" if one is not None else "one without an id" for one in ids[:IDS_NAMED]]
        if ids == [None]:
            text = "a client without id"
        elif len(ids) == 1:
            text = f"client {shown[0]}"
        else:
            text = "clients " + ", ".join(shown) + (f" and {len(ids) - len(shown):,} more" if len(ids) > len(shown) else "")
        text += f" of {addresses[0]}" if len(addresses) == 1 else f" of {len(addresses):,} addresses" if addresses else ""
        return text + (f" ({library})" if library else "")

    def text(self) -> str:
        """The sentence with its figures."""
        servers = sorted(self.servers)
        shown = ", ".join(servers[:IDS_NAMED]) + (f" and {len(servers) - IDS_NAMED:,} more" if len(servers) > IDS_NAMED else "")
        addresses = sorted({ip for ip, _ in self.clients if ip is not None})
        at = f" at {addresses[0]}" if len(addresses) == 1 else f" ({len(addresses):,} addresses)" if addresses else ""
        one, alone = len(self.ids) == 1, len(servers) == 1
        parts = {
            "n": count(len(self.connections), "connection"), "who": self.who(), "at": at, "servers": shown,
            "s": "s" if one else "", "vs": "s" if alone else "",
        }  # fmt: skip
        text = self.sentence
        for name, value in parts.items():
            text = text.replace("{" + name + "}", value)
        return text

    def row(self) -> Row:
        """The row in its JSON form."""
        return {
            "kind": self.kind, "level": self.level, "sentence": self.text(),
            "advice": self.advice, "count": len(self.connections), "clients": len(self.clients),
            "client_ids": self.ids[:SHOWN], "addresses": len({ip for ip, _ in self.clients} - {None}),
            "servers": sorted(self.servers)[:SHOWN], "connections": self.connections[:SHOWN],
            "example": self.example, **self.subject,
        }  # fmt: skip


class DiagnosisContext:
    """What rules examine, and where they put what they find."""

    def __init__(self, whole: ConnectionProfiles, known: Clients, brokers: Sequence[Row]) -> None:
        self.whole = whole
        self.known = known
        self.brokers = brokers
        self.troubles: dict[tuple[Any, ...], Diagnosis] = {}
        self.added = 0
        """Number of troubles that rules reported, repetitions included."""
        self.every = whole.profiles.stored()
        self.clients = list(self._clients())
        """Connections of clients that are not brokers, with client id and a number that equal ones share."""
        spoke = once(answered)
        self.kafka: set[Server] = {stored.server for stored in self.every if spoke(stored)}
        """Servers that sent Kafka responses."""
        self.offering: set[Server] = set(whole.tracker.offers.servers())
        """Servers that responded to an ApiVersions request."""
        self.sasl = {stored.server for stored in self.every if stored.template.mechanism is not None}
        self.controllers = {(row["server_ip"], row["server_port"]) for row in brokers if row["role"] == CONTROLLER}
        """Listeners of controllers."""
        self.siblings = Siblings(whole.tracker.brokers, whole.tracker.offers.all_latest())

    def add(self, key: tuple[Any, ...], connection: str, example: str, made: Diagnosis) -> None:
        """Counts a connection for a trouble."""
        self.added += 1
        found = self.troubles.get((made.kind, *key))
        if found is None:
            found = self.troubles[made.kind, *key] = made
            found.example = example
        if made.subject.get("client_ip") is not None or made.subject.get("client_id") is not None:
            client = made.subject.get("client_ip"), made.subject.get("client_id")
            found.clients.setdefault(client, library(self.known.of(connection, client[1])))
        if made.subject.get("server") is not None:
            found.servers.setdefault(made.subject["server"])
        if connection and connection not in found.connections[-1:]:
            found.connections.append(connection)

    def _clients(self) -> Iterator[tuple[StoredProfile, str | None, int]]:
        numbers: dict[Software | None, int] = {}
        number = {id(known): numbers.setdefault(known, len(numbers)) for known in (None, *self.known.software.values())}
        kinds: dict[tuple[ProfileTemplate, Server, int], int] = {}
        for stored in self.every:
            if not stored.clients:
                continue  # the filter selected none of it
            known = self.known.of(stored.uid, stored.clients[0])
            if known is None or not known.is_broker:
                where = stored.template, stored.server, number[id(known)]
                yield stored, stored.clients[0], kinds.setdefault(where, len(kinds))

    def profiles(self) -> Iterator[tuple[ConnectionProfile, str | None]]:
        """The same as profiles, with the client id, for a rule that tests requests, server and library.

        If nothing is found in the first of several connections that are equal in all three, the others are skipped.
        """
        quiet: set[int] = set()
        for stored, client, kind in self.clients:
            if kind in quiet:
                continue
            before = self.added
            yield stored.open(), client
            if self.added == before:
                quiet.add(kind)

    def worth(self, wanted: Callable[[StoredProfile], bool]) -> Iterator[tuple[ConnectionProfile, str | None]]:
        """The same for each connection that a rule has reason to examine."""
        for stored, client, _ in self.clients:
            if wanted(stored):
                yield stored.open(), client

    def group(self, uid: str, client: str | None) -> tuple[str | None, ...]:
        """Key by which troubles are counted: clients of one library and release share a row, as do those of no
        known library."""
        known = self.known.of(uid, client)
        return (known.name, known.version) if known is not None else (None, None)


def once(compute: Callable[[ConnectionProfile], T]) -> Callable[[StoredProfile], T]:
    """A function of a connection's profile, computed once for all connections that share a template."""
    return of_template(lambda stored: compute(stored.open()))


def of_template(compute: Callable[[StoredProfile], T]) -> Callable[[StoredProfile], T]:
    """A function of a connection's template, computed once for all connections that share it."""
    known: dict[ProfileTemplate, T] = {}

    def computed(stored: StoredProfile) -> T:
        if stored.template not in known:
            known[stored.template] = compute(stored)
        return known[stored.template]

    return computed


def library(known: Software | None) -> str:
    """A library in words; empty if it is not known."""
    if known is None or not known.text:
        return ""
    return f"probably {known.text}" if known.guessed else known.text


def server_of(line: Row) -> Server:
    """Address of a connection's server."""
    return str(line["server_ip"]), int(line["server_port"])


def place(server: Server) -> str:
    """The address in readable form."""
    return f"{server[0]}:{server[1]}" if ":" not in server[0] else f"[{server[0]}]:{server[1]}"


def answered(profile: ConnectionProfile) -> bool:
    """Whether the server spoke Kafka on this connection."""
    return bool(profile.line.get("server_framed")) or any(step.outcome == "answered" for step in profile.opening)


def whole_line(profile: ConnectionProfile) -> bool:
    """Whether the connection was captured from its first packet on, in both directions and without holes."""
    line = profile.line
    return (
        line.get("began") == "syn" and (line.get("server_packets") or 0) > 0 and (line.get("client_packets") or 0) > 0
        and not line.get("server_missing") and not line.get("client_missing")
    )  # fmt: skip


def subject(profile: ConnectionProfile, client_id: str | None) -> Row:
    """The clients that a row concerns."""
    return {"client_ip": profile.identity.client_ip, "client_id": client_id, "server": place(profile.server)}


def call(key: int, version: int) -> str:
    """`Fetch v12`."""
    return f"{api_name(key) or f'API key {key}'} v{version}"
