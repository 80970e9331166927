"""Connections that began and ended in the fast path.

In: the numbers of a closed connection. Out: its place in the order of all ends, and its objects on demand. Law: it is closed
when and where the reference path would close it, with the same row of `connections`.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from kcap.fastpath import layout as at
from kcap.fastpath.export_state import ConnectionOwner, filled, made
from kcap.fastpath.state import FastPathState
from kcap.kafka.conversation import Conversation
from kcap.net.tcp import Connection


class Closer(Protocol):
    """The engine, which closes the fast path's own connections."""

    def close(self, slot: int) -> Connection | None: ...


@dataclass(eq=False, slots=True)
class OwnEnding:
    """An own connection of the fast path in the queue of ended connections."""

    number: int
    closing_ns: int
    closing_order: int
    slot: int
    fast_path: Closer

    def close(self) -> Connection | None:
        """As `net.connections.Ending`."""
        return self.fast_path.close(self.slot)


@dataclass(frozen=True, slots=True)
class ClosedState:
    """The numbers of a connection that is closed."""

    connection: Any
    streams: Any
    keys: Any
    name: str | None
    keeper: ConnectionOwner

    @property
    def ref(self) -> int:
        """Its first packet."""
        return int(self.connection[at.FIRST_REF])

    def restore(self) -> tuple[Connection, Conversation]:
        """Makes its objects."""
        values, streams = self.connection.tolist(), self.streams.tolist()
        low, high = (key[: numbers[at.FLOW_SIZE]].tobytes() for key, numbers in zip(self.keys, streams))
        conversation = made(values, streams, (low, high), self.name, self.keeper)
        filled(conversation, values, streams)
        return conversation.connection, conversation


def keep(state: FastPathState, slot: int, keeper: ConnectionOwner) -> ClosedState:
    """The state of an own connection."""
    connection, pair = state.connections[slot].copy(), slice(2 * slot, 2 * slot + 2)
    name = state.all_names()[connection[at.NAME]]
    return ClosedState(connection, state.streams[pair].copy(), state.keys[pair].copy(), name, keeper)
