"""What connections reported about themselves, by uid. This takes some 30 bytes per connection, since many have equal facts.

In: facts of connections, as they change. Out: their latest facts. Law: the facts of a connection are the last ones stored,
unless it had no row for CONNECTION_IDLE_NS. Can be pickled.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from kcap import limits
from kcap.arrays.vectors import grouped
from kcap.facts.api_versions import Offer, Software
from kcap.facts.brokers import Server
from kcap.identities import number_of
from kcap.uid_table import UidTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.arrays.vectors import Int64s

    UInt64s = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class ConnectionFacts:
    """What a connection reported about itself."""

    software: Software | None = None
    mechanism: str | None = None
    principal: str | None = None
    offer: Offer | None = None
    negotiated: bool = False
    """Whether it sent an ApiVersions request, and no response shows that the broker refused it."""


NO_FACTS: Final = ConnectionFacts()


@dataclass(frozen=True, slots=True)
class RowConnections:
    """The connection and the server of each row of a batch."""

    states: Sequence[ConnectionFacts]
    """The distinct states of connections."""
    state: "Int64s"
    """Row -> its connection's state, by number."""
    servers: Sequence[Server]
    """The distinct servers."""
    server: "Int64s"
    """Row -> its server, by number."""


class NumbersOfUids:
    """One number for each of many connections: some 30 bytes each."""

    def __init__(self) -> None:
        self._entries = UidTable()
        self._numbers = array("q")
        """Number of each entry."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, uid: int) -> int:
        """The number of a connection, 0 if it has none."""
        entry = self._entries.find(uid)
        return self._numbers[entry] if entry >= 0 else 0

    def set(self, uid: int, number: int) -> None:
        """Stores the number of a connection."""
        entry = self._entries.entry(uid)
        if entry == len(self._numbers):
            self._numbers.append(number)
        else:
            self._numbers[entry] = number

    def of(self, uids: "UInt64s") -> "Int64s":
        """The numbers of some connections."""
        entries = self._entries.find_all(uids)
        return np.where(entries >= 0, self._array()[entries], 0) if len(self) else np.zeros(len(uids), np.int64)

    def update(self, uids: "UInt64s", numbers: "Int64s") -> None:
        """Stores numbers of connections; for a repeated connection the last one counts."""
        entries = self._entries.entries(uids)
        self._numbers.frombytes(bytes(8 * (len(self._entries) - len(self._numbers))))
        self._array()[entries] = numbers

    def renumber(self, new: "Int64s") -> None:
        """Replaces each number n by `new[n]`."""
        held = self._array()
        held[:] = new[held]

    def used(self) -> "Int64s":
        """The distinct numbers."""
        return grouped(self._array())[0]

    def _array(self) -> "Int64s":
        return np.frombuffer(self._numbers, np.int64)


class FactsOfConnections:
    """The facts of the connections of a capture."""

    def __init__(self) -> None:
        self.different: list[ConnectionFacts] = [NO_FACTS]
        """Distinct facts, by number."""
        self._numbers = {NO_FACTS: 0}
        self._recent = NumbersOfUids()
        self._older = NumbersOfUids()
        """Connections without a row since `_recent` was started."""
        self.begun_ns = 0

    def __setitem__(self, uid: str, facts: ConnectionFacts) -> None:
        """Takes new facts of a connection."""
        self._recent.set(number_of(uid), self.number(facts))

    def __getitem__(self, uid: str) -> ConnectionFacts:
        """The facts of a connection so far."""
        bits = number_of(uid)
        return self.different[self._recent.get(bits) or self._older.get(bits)]

    def number(self, facts: ConnectionFacts) -> int:
        """The number of facts; equal facts have the same number until connections are forgotten."""
        found = self._numbers.setdefault(facts, len(self.different))
        if found == len(self.different):
            self.different.append(facts)
        return found

    def of(self, uids: "UInt64s") -> "Int64s":
        """The numbers of the latest facts of some connections, by the numbers of their uids."""
        found = self._recent.of(uids)
        if len(self._older) and (unknown := np.flatnonzero(found == 0)).size:
            older = self._older.of(uids[unknown])
            known = unknown[older > 0]
            found[unknown] = older
            self._recent.update(uids[known], found[known])
        return found

    def update(self, uids: "UInt64s", numbers: "Int64s") -> None:
        """Stores new facts of connections, by number."""
        self._recent.update(uids, numbers)

    def forget_idle(self, time_ns: int) -> bool:
        """Forgets connections without a row for CONNECTION_IDLE_NS (Kafka closes idle ones after a sixth of that), and facts
        that no other connection has. Returns whether that was due."""
        if time_ns - self.begun_ns < limits.CONNECTION_IDLE_NS:
            return False
        self._older, self._recent, self.begun_ns = self._recent, NumbersOfUids(), time_ns
        used = grouped(np.append(self._older.used(), 0))[0]
        new = np.zeros(len(self.different), np.int64)
        new[used] = np.arange(len(used))
        self._older.renumber(new)
        self.different = [self.different[number] for number in used.tolist()]
        self._numbers = {facts: number for number, facts in enumerate(self.different)}
        return True
