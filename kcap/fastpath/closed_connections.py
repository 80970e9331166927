"""Connections that began and ended in the fast path.

In: the slot of a connection that ended. Out: its place in the order of all ends. Law: it is closed when and where the
reference path would close it.
"""

from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from kcap.net.connections import Ended
from kcap.net.tcp import Connection

FEW, MANY = 16, 4096
"""Connections that are looked at together: few first, since most runs are short, then up to many."""


class Closer(Protocol):
    """The engine, which closes the fast path's own connections."""

    def close(self, slot: int) -> Connection | None: ...

    def close_many(self, slots: list[int]) -> int: ...


@dataclass(eq=False, slots=True)
class OwnEnding:
    """An own connection of the fast path in the queue of ended connections."""

    number: int
    closing_ns: int
    closing_order: int
    slot: int
    """-1 once it is closed."""
    fast_path: Closer
    exported: Ended | None = None
    """The connection, where the reference path took it over since."""

    def close(self) -> Connection | None:
        """As `net.connections.Ending`."""
        if self.exported is not None:
            return self.exported.close()
        return None if self.slot < 0 else self.fast_path.close(self.slot)

    def close_with(self, others: deque[Any], until_ns: int) -> None:
        """As `net.connections.Ending`."""
        if self.exported is not None:
            return
        run, wanted = [self], FEW
        while True:
            for other in islice(others, wanted - len(run)):
                if not isinstance(other, OwnEnding) or other.exported is not None or other.closing_ns > until_ns:
                    break
                run.append(other)
            closed = self.fast_path.close_many([ending.slot for ending in run]) if run else 0
            for ending in run[:closed]:
                ending.slot = -1
                if ending is not self:
                    others.popleft()
            if closed < wanted:
                return
            run, wanted = [], min(4 * wanted, MANY)
