"""Connections that began and ended in the fast path.

In: the numbers of a closed connection. Out: its place in the order of all ends, and its objects on demand. Law: it is closed
when and where the reference path would close it, with the same row of `connections`.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from kcap.fastpath import layout as at
from kcap.fastpath.export_state import ConnectionOwner, filled, made
from kcap.fastpath.state import FastPathState, none
from kcap.kafka.conversation import Conversation
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

    def described(self) -> dict[str, object] | None:
        """What numbers alone say in a row of `connections`; None of one that never spoke, which needs its objects."""
        values = self.connection.tolist()
        if values[at.LIVE] in (at.CALLED, at.OPEN):
            return None
        streams = self.streams.tolist()
        client, server = streams[values[at.CLIENT]], streams[1 - values[at.CLIENT]]
        ends = [(numbers[at.FIN_NS], place) for place, numbers in enumerate(streams) if numbers[at.FIN_NS] != at.NONE]
        if values[at.RST_NS] != at.NONE:
            ends.append((values[at.RST_NS], values[at.RST_BY]))
        by = min(ends, key=itemgetter(0))[1] if ends else None  # a FIN goes before a reset of the same time
        return {
            "number": values[at.PLACE], "first_ns": values[at.FIRST_NS], "last_ns": values[at.LAST], "began": "syn",
            "ended": at.ENDS[values[at.ENDED]], "phase": "kafka", "detail": None,
            "closed_by": None if by is None else "client" if by == values[at.CLIENT] else "server",
            "packets": client[at.PACKETS] + server[at.PACKETS], "client_packets": client[at.PACKETS],
            "server_packets": server[at.PACKETS], "retransmitted": client[at.RETRANSMITTED] + server[at.RETRANSMITTED],
            "duplicated": client[at.DUPLICATED] + server[at.DUPLICATED], "out_of_order": 0,
            "rtt_min_ns": none(client[at.RTT_MIN]),
            "rtt_avg_ns": client[at.RTT_SUM] // client[at.RTT_COUNT] if client[at.RTT_COUNT] else None,
            "client_rtt_min_ns": none(server[at.RTT_MIN]), "zero_window_stalls": client[at.STALLS] + server[at.STALLS],
            "client_id": self.name if values[at.NUMBER] else None, "tls": False, "exchanges": values[at.ROWS],
            "request_frames": values[at.REQUEST_FRAMES], "response_frames": values[at.RESPONSE_FRAMES],
            "client_captured": client[at.CAPTURED], "client_framed": values[at.REQUEST_BYTES], "client_skipped": 0,
            "client_opaque": 0, "client_pending": 0, "client_missing": 0, "server_captured": server[at.CAPTURED],
            "server_framed": values[at.RESPONSE_BYTES], "server_skipped": 0, "server_opaque": 0, "server_pending": 0,
            "server_missing": 0,
        }  # fmt: skip

    def named(self) -> tuple[bytes, bytes, int, int | None]:
        """Flow key of the lower endpoint and of the client, time of the first packet, the client's initial sequence number."""
        client = int(self.connection[at.CLIENT])
        flows = [key[: numbers[at.FLOW_SIZE]].tobytes() for key, numbers in zip(self.keys, self.streams)]
        return flows[0], flows[client], int(self.connection[at.FIRST_NS]), none(int(self.streams[client][at.ISN]))

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

    def __len__(self) -> int:
        return len(self.connections)

    def each(self) -> Iterator[ClosedState]:
        """The numbers of one after the other."""
        of = self.connections[:, at.NAME].tolist()
        for i, (connection, streams, keys) in enumerate(zip(self.connections, self.streams, self.keys)):
            yield ClosedState(connection, streams, keys, self.names[of[i]], self.keeper)


def keep(state: FastPathState, slots: list[int], keeper: ConnectionOwner) -> ClosedStates:
    """The states of own connections."""
    places = np.array(slots)
    both = 2 * places[:, None] + (0, 1)
    return ClosedStates(state.connections[places], state.streams[both], state.keys[both], state.all_names(), keeper)
