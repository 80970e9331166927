"""Connections that began and ended in the fast path.

In: the numbers of a closed connection. Out: its place in the order of all ends, and its objects on demand. Law: it is closed
when and where the reference path would close it, with the same row of `connections`.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from kcap.fastpath import layout as at
from kcap.fastpath.closed_rows import ClosedRow, ClosedRows
from kcap.fastpath.export_state import ConnectionOwner, filled, made
from kcap.fastpath.sealed_connection import ClosedTls
from kcap.fastpath.state import FastPathState
from kcap.kafka.conversation import Conversation
from kcap.net.connections import Ended
from kcap.net.tcp import Connection

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s

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


@dataclass(frozen=True, slots=True)
class ClosedState:
    """The numbers of a closed connection whose row needs its objects."""

    connection: Any
    streams: Any
    keys: Any
    name: str | None
    keeper: ConnectionOwner

    @property
    def ref(self) -> int:
        """Reference of its first packet."""
        return int(self.connection[at.FIRST_REF])

    def restore(self) -> tuple[Connection, Conversation]:
        """Makes its objects."""
        values, streams = self.connection.tolist(), self.streams.tolist()
        low, high = (key[: numbers[at.FLOW_SIZE]].tobytes() for key, numbers in zip(self.keys, streams))
        conversation = made(values, streams, (low, high), self.name, self.keeper)
        filled(conversation, values, streams)
        return conversation.connection, conversation


@dataclass(frozen=True, slots=True)
class ClosedStates:
    """The numbers of connections that were closed together."""

    connections: Any
    streams: Any
    """The two of each connection."""
    keys: Any
    names: list[str | None]
    keeper: ConnectionOwner
    tls: list[ClosedTls | None]

    def __len__(self) -> int:
        return len(self.connections)

    def each(self) -> Iterator[ClosedRow | ClosedState]:
        """One after the other, in a form that gives its row or from which its objects are made."""
        spoke = ~np.isin(self.connections[:, at.LIVE], (at.CALLED, at.OPEN))
        rows = iter(self._rows(np.flatnonzero(spoke)).each())
        for place, has_spoken in enumerate(spoke.tolist()):
            yield next(rows) if has_spoken else self._state(place)

    def _state(self, place: int) -> ClosedState:
        values = self.connections[place]
        return ClosedState(values, self.streams[place], self.keys[place], self.names[values[at.NAME]], self.keeper)

    def _rows(self, places: "Int64s") -> ClosedRows:
        """Connections whose rows need no objects."""
        values = self.connections[places]
        known = [self.names[name] if some else None for name, some in values[:, (at.NAME, at.NUMBER)].tolist()]
        tls = [self.tls[place] for place in places.tolist()]
        return ClosedRows(values, self.streams[places], self.keys[places], known, tls)


def keep(state: FastPathState, slots: list[int], keeper: ConnectionOwner) -> ClosedStates:
    """The states of own connections."""
    places = np.array(slots)
    both = 2 * places[:, None] + (0, 1)
    sealed = (state.sealed[slot] for slot in slots)
    tls = [None if one is None else ClosedTls(one) for one in sealed]
    return ClosedStates(state.connections[places], state.streams[both], state.keys[both], state.all_names(), keeper, tls)
