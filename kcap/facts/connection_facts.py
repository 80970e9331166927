"""What connections reported about themselves, by uid: some 40 bytes a connection, since many have the same facts.

In: facts of a connection, as they change. Out: its facts so far. Law: those that it was given last, unless it had no row for
CONNECTION_IDLE_NS. A picklable value.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kcap import limits
from kcap.facts.api_versions import Offer, Software
from kcap.identities import UidTable, number_of


@dataclass(frozen=True, slots=True)
class ConnectionFacts:
    """What a connection reported about itself."""

    software: Software | None = None
    mechanism: str | None = None
    principal: str | None = None
    offer: Offer | None = None
    negotiated: bool = False
    """It sent an ApiVersions request, and no response shows that the broker refused it."""


NO_FACTS: Final = ConnectionFacts()


class PackedFacts:
    """The facts of many connections: 64 bits of each uid, and which of the different facts it has."""

    def __init__(self) -> None:
        self._entries = UidTable()
        self._facts = array("I")
        """Of each entry the place in `_different`."""
        self._different: list[ConnectionFacts] = []
        self._numbers: dict[ConnectionFacts, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, uid: str) -> ConnectionFacts:
        """The facts of a connection, `NO_FACTS` where there are none."""
        entry = self._entries.find(number_of(uid)) if self._facts else -1
        return self._different[self._facts[entry]] if entry >= 0 else NO_FACTS

    def update(self, known: Iterable[tuple[str, ConnectionFacts]]) -> None:
        """Takes the facts of connections."""
        for uid, facts in known:
            found = self._numbers.setdefault(facts, len(self._different))
            if found == len(self._different):
                self._different.append(facts)
            entry = self._entries.entry(number_of(uid))
            if entry == len(self._facts):
                self._facts.append(found)
            else:
                self._facts[entry] = found


class FactsOfConnections:
    """The facts of the connections of a capture."""

    def __init__(self) -> None:
        self._recent: dict[str, ConnectionFacts] = {}
        self._packed = PackedFacts()
        self._older = PackedFacts()
        """Connections without a row since `_packed` was begun."""
        self.begun_ns = 0

    def __getitem__(self, uid: str) -> ConnectionFacts:
        """The facts of a connection so far."""
        found = self._recent.get(uid)
        if found is None:
            found = self._packed.get(uid)
            if found is NO_FACTS:
                found = self._older.get(uid)
            if found is not NO_FACTS:
                self._recent[uid] = found
        return found

    def of(self, uids: Sequence[str]) -> list[ConnectionFacts]:
        """The facts of some connections so far."""
        if len(self._recent) > limits.FACTS_RECENT:
            self._packed.update(self._recent.items())
            self._recent = {}
        recent = self._recent
        return [recent.get(uid) or self[uid] for uid in uids]

    def update(self, known: Iterable[tuple[str, ConnectionFacts]]) -> None:
        """Takes new facts of connections."""
        self._recent.update(known)

    def forget_idle(self, time_ns: int) -> bool:
        """Forgets connections without a row for CONNECTION_IDLE_NS; Kafka closes idle connections after a sixth of that.
        Whether it was time to."""
        if time_ns - self.begun_ns < limits.CONNECTION_IDLE_NS:
            return False
        self._packed.update(self._recent.items())
        self._recent, self._older, self._packed, self.begun_ns = {}, self._packed, PackedFacts(), time_ns
        return True
