"""Connections that began and ended in the fast path.

In: the slots of connections that ended. Out: their positions in the order of all ends. Law: each connection is closed when and
where the reference path would close it.
"""

from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from kcap.net.tcp import Connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kcap.arrays.vectors import Int64s

FEW: Final = 16
"""Number of connections that are first examined together. It is small, since most runs are short."""
MANY: Final = 4096
"""Largest number of connections that are examined together."""


class EndedSlots:
    """Own connections that ended and are held for late packets, in the order of their ends."""

    def __init__(self) -> None:
        self._slots, self._orders, self._times = np.empty((3, 0), np.int64)

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, slots: "Int64s", orders: "Int64s", times_ns: "Int64s") -> None:
        """Adds connections that ended later than all before: the order of the packet that ended each, and its time."""
        self._slots = np.concatenate([self._slots, slots])
        self._orders = np.concatenate([self._orders, orders])
        self._times = np.concatenate([self._times, times_ns])

    def ends(self) -> "Iterator[tuple[int, int]]":
        """Order and time of each end."""
        return zip(self._orders.tolist(), self._times.tolist())

    def due(self, until_ns: int, before: int) -> "Int64s":
        """The first ones, up to MANY, that ended before packet `before` and not later than `until_ns`."""
        count = min(int(self._orders.searchsorted(before)), MANY)
        held = (self._times[:count] > until_ns).nonzero()[0]
        return self._slots[: held[0] if len(held) else count]

    def begin_before(self, order: int) -> bool:
        """Whether the first one ended before a packet."""
        return bool(len(self) and self._orders[0] < order)

    def drop(self, count: int) -> None:
        """Removes the first ones, which were closed."""
        self._slots, self._orders, self._times = self._slots[count:], self._orders[count:], self._times[count:]

    def take(self, slot: int) -> int:
        """Removes a connection that the reference path takes over; returns the order of its end. Raises IndexError if it is not
        here.
        """
        place = int(np.flatnonzero(self._slots == slot)[0])
        order = int(self._orders[place])
        self._slots, self._orders, self._times = (
            np.delete(column, place) for column in (self._slots, self._orders, self._times)
        )
        return order


class Closer(Protocol):
    """The engine, which closes the fast path's own connections."""

    def close(self, slot: int) -> Connection | None: ...

    def close_many(self, slots: "Int64s") -> int: ...


@dataclass(eq=False, slots=True)
class OwnConnection:
    """An own connection that is closed in the order of numbers, among those of the reference path."""

    number: int
    slot: int
    """-1 after it was closed."""
    fast_path: Closer

    def close(self) -> Connection | None:
        """As `net.connections.Numbered`."""
        return None if self.slot < 0 else self.fast_path.close(self.slot)

    def close_with(self, others: deque[Any]) -> None:
        """As `net.connections.Numbered`."""
        run, wanted = [self], FEW
        while True:
            for other in islice(others, wanted - len(run)):
                if not isinstance(other, OwnConnection):
                    break
                run.append(other)
            closed = self.fast_path.close_many(np.array([one.slot for one in run])) if run else 0
            for one in run[:closed]:
                one.slot = -1
                if one is not self:
                    others.popleft()
            if closed < wanted:
                return
            run, wanted = [], min(4 * wanted, MANY)
