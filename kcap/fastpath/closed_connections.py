"""Connections that began and ended in the lane.

In: the numbers of one that is over. Out: its place among all that end, and its objects where somebody asks for them. Law: it is
closed when and where the machines would close it; what it says of itself is what theirs would say.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from kcap.fastpath import layout as at
from kcap.fastpath.export_state import ConnectionOwner, filled, made
from kcap.fastpath.state import FastPathState
from kcap.kafka.conversation import Conversation
from kcap.net.tcp import Connection


class Closer(Protocol):
    """Who closes the lane's own connections."""

    def close(self, slot: int) -> Connection | None: ...


@dataclass(eq=False, slots=True)
class OwnEnding:
    """One of the lane's own connections in the queue of those that are over."""

    number: int
    closing_ns: int
    closing_order: int
    slot: int
    lane: Closer

    def close(self) -> Connection | None:
        """As `net.connections.Ending`."""
        return self.lane.close(self.slot)


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
        """Its objects."""
        values, streams = self.connection.tolist(), self.streams.tolist()
        low, high = (key[: numbers[at.FLOW_SIZE]].tobytes() for key, numbers in zip(self.keys, streams))
        talk = made(values, streams, (low, high), self.name, self.keeper)
        filled(talk, values, streams)
        return talk.connection, talk


def keep(state: FastPathState, slot: int, keeper: ConnectionOwner) -> ClosedState:
    """What is known of an own connection."""
    connection, pair = state.connections[slot].copy(), slice(2 * slot, 2 * slot + 2)
    name = state.all_names()[connection[at.NAME]]
    return ClosedState(connection, state.streams[pair].copy(), state.keys[pair].copy(), name, keeper)
