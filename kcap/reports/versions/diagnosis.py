"""What the rules of diagnosis look at, and the rows that they make.

In: the connections of a capture, its clients and brokers. Out: `DiagnosisContext`, which rules read and add troubles to. Law: a
trouble counts each of its connections once, and keeps the first as its example.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from kcap.facts.brokers import Server
from kcap.reports.versions.fingerprints import Software
from kcap.reports.versions.profile import ConnectionProfile
from kcap.reports.versions.profile_store import ALERT_BYTES, ProfileTemplate, StoredProfile
from kcap.reports.versions.profiles import ConnectionProfiles
from kcap.schema.registry import api_name

T = TypeVar("T")
Row = dict[str, Any]
ClientKey = tuple[str, str | None]
ERROR, WARNING, NOTE = "error", "warning", "note"
LEVELS: Final = (ERROR, WARNING, NOTE)
SHOWN: Final = 100
"""Connections that a row names; it counts all."""
ENDS: Final = ("fin", "rst")


@dataclass(slots=True)
class Diagnosis:
    """One row in the making."""

    kind: str
    level: str
    sentence: str
    advice: str
    subject: Row
    connections: list[str] = field(default_factory=list)
    example: str = ""
    clients: set[tuple[str | None, str | None]] = field(default_factory=set)

    def told(self) -> str:
        """The sentence with its figures."""
        text = self.sentence.replace("{n}", counted(len(self.connections)))
        return text.replace("{others}", others(len(self.clients) - 1))

    def row(self) -> Row:
        """As JSON has it."""
        return {
            "kind": self.kind, "level": self.level, "sentence": self.told(),
            "advice": self.advice, "count": len(self.connections), "clients": len(self.clients),
            "connections": self.connections[:SHOWN],
            "example": self.example, **self.subject,
        }  # fmt: skip


class DiagnosisContext:
    """What the rules look at, and where they put what they find."""

    def __init__(self, whole: ConnectionProfiles, known: dict[ClientKey, Software], brokers: Sequence[Row]) -> None:
        self.whole = whole
        self.known = known
        self.brokers = brokers
        self.troubles: dict[tuple[Any, ...], Diagnosis] = {}
        self.added = 0
        """Troubles that rules told of, again and again the same one among them."""
        self.every = whole.profiles.stored()
        self.clients = list(self._clients())
        """Connections of clients that are no brokers, with client id, and a number that those share which are alike."""
        spoke = once(answered)
        self.kafka: set[Server] = {stored.server for stored in self.every if spoke(stored)}
        """Servers that answered in Kafka's words."""
        self.sasl = {stored.server for stored in self.every if stored.template.mechanism is not None}
        self.tls = {
            server_of(line) for line in whole.others if line["phase"] == "tls" and (line["server_captured"] or 0) > ALERT_BYTES
        }
        """Servers that took part in a TLS handshake."""

    def add(self, key: tuple[Any, ...], connection: str, example: str, made: Diagnosis) -> None:
        """Counts a connection to a trouble."""
        self.added += 1
        found = self.troubles.get((made.kind, *key))
        if found is None:
            found = self.troubles[made.kind, *key] = made
            found.example = example
        found.clients.add((made.subject.get("client_ip"), made.subject.get("client_id")))
        if connection and connection not in found.connections[-1:]:
            found.connections.append(connection)

    def _clients(self) -> Iterator[tuple[StoredProfile, str | None, int]]:
        kinds: dict[tuple[ProfileTemplate, Server, Software | None], int] = {}
        for stored in self.every:
            if not stored.clients:
                continue  # the filter passed none of it
            known = self.known.get((stored.identity.client_ip, stored.clients[0]))
            if known is None or not known.is_broker:
                yield stored, stored.clients[0], kinds.setdefault((stored.template, stored.server, known), len(kinds))

    def profiles(self) -> Iterator[tuple[ConnectionProfile, str | None, str]]:
        """The same opened, with the client's name, for a rule that asks what was said, to which server, by which library.

        Of those that are alike in all three it sees no other once it has found nothing to say of the first.
        """
        quiet: set[int] = set()
        for stored, client, kind in self.clients:
            if kind in quiet:
                continue
            before = self.added
            yield stored.open(), client, self.name(stored, client)
            if self.added == before:
                quiet.add(kind)

    def name(self, stored: StoredProfile, client: str | None) -> str:
        """A client in words."""
        ip = stored.identity.client_ip
        return named(ip, client, self.known.get((ip, client)))

    def worth(self, wanted: Callable[[StoredProfile], bool]) -> Iterator[tuple[ConnectionProfile, str | None, str]]:
        """The same of those that a rule has reason to look at, each of them."""
        for stored, client, _ in self.clients:
            if wanted(stored):
                yield stored.open(), client, self.name(stored, client)


def once(asked: Callable[[ConnectionProfile], T]) -> Callable[[StoredProfile], T]:
    """A question about what connections said, asked once for all that share a tale."""
    known: dict[ProfileTemplate, T] = {}

    def answer(stored: StoredProfile) -> T:
        if stored.template not in known:
            known[stored.template] = asked(stored.open())
        return known[stored.template]

    return answer


def others(number: int) -> str:
    """How many clients a row concerns beside the one it names."""
    return "" if number < 1 else f" (and {number:,} more {'client' if number == 1 else 'clients'} of this library)"


def library(known: Software | None, client: ClientKey) -> tuple[str | None, ...]:
    """What to count mere notes by: thousands of clients of one library are one row."""
    return (known.name, known.version) if known is not None and known.name is not None else client


def counted(number: int) -> str:
    """`1 connection`."""
    return f"{number:,} connection" + ("" if number == 1 else "s")


def server_of(line: Row) -> Server:
    """Address of a connection's server."""
    return str(line["server_ip"]), int(line["server_port"])


def place(server: Server) -> str:
    """As people write it."""
    return f"{server[0]}:{server[1]}" if ":" not in server[0] else f"[{server[0]}]:{server[1]}"


def named(ip: str, client_id: str | None, known: Software | None) -> str:
    """A client in words."""
    library = " ".join(filter(None, (known.name, known.version))) if known is not None else ""
    name = f"client {client_id!r}" if client_id is not None else "a client without id"
    return f"{name} of {ip}" + (f" ({'probably ' if known is not None and known.guessed else ''}{library})" if library else "")


def answered(profile: ConnectionProfile) -> bool:
    """Whether the server spoke Kafka on this connection."""
    return bool(profile.line.get("server_framed")) or any(step.outcome == "answered" for step in profile.opening)


def whole_line(profile: ConnectionProfile) -> bool:
    """Whether the connection is there from its first packet, both ways and without holes."""
    line = profile.line
    return (
        line.get("began") == "syn" and (line.get("server_packets") or 0) > 0 and (line.get("client_packets") or 0) > 0
        and not line.get("server_missing") and not line.get("client_missing")
    )  # fmt: skip


def subject(profile: ConnectionProfile, client_id: str | None) -> Row:
    """Whom a row concerns."""
    return {"client_ip": profile.identity.client_ip, "client_id": client_id, "server": place(profile.server)}


def call(key: int, version: int) -> str:
    """`Fetch v12`."""
    return f"{api_name(key) or f'API key {key}'} v{version}"
