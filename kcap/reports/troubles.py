"""What the rules of diagnosis look at, and the rows that they make.

In: the connections of a capture, its clients and brokers. Out: `Case`, which rules read and add troubles to. Law: a trouble
counts each of its connections once, and keeps the first as its example.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kcap.kafka.brokers import Server
from kcap.reports.fingerprints import Who
from kcap.reports.talks import Talk, Talks
from kcap.schema.registry import api_name

Row = dict[str, Any]
ClientKey = tuple[str, str | None]
ERROR, WARNING, NOTE = "error", "warning", "note"
LEVELS: Final = (ERROR, WARNING, NOTE)
SHOWN: Final = 100
"""Connections that a row names; it counts all."""
ALERT_BYTES: Final = 7
"""A TLS alert record: 5 bytes of header, 2 of alert."""
ENDS: Final = ("fin", "rst")


@dataclass(slots=True)
class Trouble:
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


class Case:
    """What the rules look at, and where they put what they find."""

    def __init__(self, whole: Talks, known: dict[ClientKey, Who], brokers: Sequence[Row]) -> None:
        self.whole = whole
        self.known = known
        self.brokers = brokers
        self.troubles: dict[tuple[Any, ...], Trouble] = {}
        self.kafka: set[Server] = {talk.server for talk in whole.talks.values() if answered(talk)}
        """Servers that answered in Kafka's words."""
        self.sasl = {talk.server for talk in whole.talks.values() if talk.mechanism is not None}
        self.tls = {
            server_of(line) for line in whole.others if line["phase"] == "tls" and (line["server_captured"] or 0) > ALERT_BYTES
        }
        """Servers that took part in a TLS handshake."""

    def add(self, key: tuple[Any, ...], connection: str, example: str, made: Trouble) -> None:
        """Counts a connection to a trouble."""
        found = self.troubles.get((made.kind, *key))
        if found is None:
            found = self.troubles[made.kind, *key] = made
            found.example = example
        found.clients.add((made.subject.get("client_ip"), made.subject.get("client_id")))
        if connection and connection not in found.connections[-1:]:
            found.connections.append(connection)

    def talks(self) -> Iterator[tuple[Talk, str | None, str]]:
        """Connections of clients that are no brokers, with client id and name."""
        for talk in self.whole.talks.values():
            if not talk.uses:
                continue  # the filter passed none of it
            one = next(iter(talk.uses))[0]
            known = self.known.get((talk.identity.client_ip, one))
            if known is None or not known.is_broker:
                yield talk, one, named(talk.identity.client_ip, one, known)


def others(number: int) -> str:
    """How many clients a row concerns beside the one it names."""
    return "" if number < 1 else f" (and {number:,} more {'client' if number == 1 else 'clients'} of this library)"


def library(known: Who | None, client: ClientKey) -> tuple[str | None, ...]:
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


def named(ip: str, client_id: str | None, known: Who | None) -> str:
    """A client in words."""
    library = " ".join(filter(None, (known.name, known.version))) if known is not None else ""
    name = f"client {client_id!r}" if client_id is not None else "a client without id"
    return f"{name} of {ip}" + (f" ({'probably ' if known is not None and known.guessed else ''}{library})" if library else "")


def answered(talk: Talk) -> bool:
    """Whether the server spoke Kafka on this connection."""
    return bool(talk.line.get("server_framed")) or any(step.outcome == "answered" for step in talk.opening)


def whole_line(talk: Talk) -> bool:
    """Whether the connection is there from its first packet, both ways and without holes."""
    line = talk.line
    return (
        line.get("began") == "syn" and (line.get("server_packets") or 0) > 0 and (line.get("client_packets") or 0) > 0
        and not line.get("server_missing") and not line.get("client_missing")
    )  # fmt: skip


def subject(talk: Talk, client_id: str | None) -> Row:
    """Whom a row concerns."""
    return {"client_ip": talk.identity.client_ip, "client_id": client_id, "server": place(talk.server)}


def call(key: int, version: int) -> str:
    """`Fetch v12`."""
    return f"{api_name(key) or f'API key {key}'} v{version}"
