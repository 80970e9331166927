"""Connections that began and ended in the fast path.

In: the numbers of a closed connection. Out: its place in the order of all ends, and its objects on demand. Law: it is closed
when and where the reference path would close it, with the same row of `connections`.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from kcap.fastpath import layout as at
from kcap.fastpath.export_state import ConnectionOwner, filled, made
from kcap.fastpath.state import FastPathState, none
from kcap.identities import endpoints, uid_of
from kcap.kafka.conversation import Conversation
from kcap.net.connections import Ended
from kcap.net.tcp import Connection

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s

FEW, MANY = 16, 4096
"""Connections that are looked at together: few first, since most runs are short, then up to many."""
NEVER: Final = np.iinfo(np.int64).max
OF_BOTH: Final = {
    "packets": at.PACKETS, "retransmitted": at.RETRANSMITTED, "duplicated": at.DUPLICATED, "zero_window_stalls": at.STALLS,
}  # fmt: skip
"""Columns that count what both streams have."""


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

    def restore(self) -> tuple[Connection, Conversation]:
        """Makes its objects."""
        values, streams = self.connection.tolist(), self.streams.tolist()
        low, high = (key[: numbers[at.FLOW_SIZE]].tobytes() for key, numbers in zip(self.keys, streams))
        conversation = made(values, streams, (low, high), self.name, self.keeper)
        filled(conversation, values, streams)
        return conversation.connection, conversation


Row = dict[str, object]
ALIKE: Final[Row] = {
    "began": "syn", "phase": "kafka", "detail": None, "out_of_order": 0, "tls": False,
    **{f"{name}_{part}": 0 for name in ("client", "server") for part in ("skipped", "opaque", "pending", "missing")},
}  # fmt: skip
"""What the rows of all connections that lived in the fast path have in common."""


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

    def each(self) -> Iterator[tuple[Row | ClosedState, int]]:
        """The row of `connections` of one after the other, or what it is made of, and the reference of its first packet."""
        spoke = ~np.isin(self.connections[:, at.LIVE], (at.CALLED, at.OPEN))
        rows = iter(self._rows(np.flatnonzero(spoke)))
        refs, names = (self.connections[:, place].tolist() for place in (at.FIRST_REF, at.NAME))
        for place, (has_spoken, ref) in enumerate(zip(spoke.tolist(), refs)):
            yield (next(rows) if has_spoken else self._state(place, names[place])), ref

    def _state(self, place: int, name: int) -> ClosedState:
        return ClosedState(self.connections[place], self.streams[place], self.keys[place], self.names[name], self.keeper)

    def _rows(self, places: "Int64s") -> Iterator[Row]:
        """The rows of connections that need no objects."""
        values, streams = self.connections[places], self.streams[places]
        side = values[:, at.CLIENT]
        every = np.arange(len(places))
        client, server = streams[every, side], streams[every, 1 - side]
        ends = np.stack([streams[:, 0, at.FIN_NS], streams[:, 1, at.FIN_NS], values[:, at.RST_NS]])
        first = np.where(ends == at.NONE, NEVER, ends).argmin(axis=0)  # a FIN goes before a reset of the same time
        closed_by = np.where((ends == at.NONE).all(axis=0), 2, np.where(first == 2, values[:, at.RST_BY], first) != side)
        lower, flows = self._flows(places, np.zeros_like(side)), self._flows(places, side)
        known = [self.names[name] if some else None for name, some in values[:, (at.NAME, at.NUMBER)].tolist()]
        columns: dict[str, Iterable[object]] = {
            "number": values[:, at.PLACE].tolist(), "first_ns": values[:, at.FIRST_NS].tolist(),
            "last_ns": values[:, at.LAST].tolist(), "ended": map(at.ENDS.__getitem__, values[:, at.ENDED].tolist()),
            "closed_by": map(("client", "server", None).__getitem__, closed_by.tolist()),
            "client_packets": client[:, at.PACKETS].tolist(), "server_packets": server[:, at.PACKETS].tolist(),
            "rtt_min_ns": nones(client[:, at.RTT_MIN]), "client_rtt_min_ns": nones(server[:, at.RTT_MIN]),
            "rtt_avg_ns": nones(np.where(
                client[:, at.RTT_COUNT] > 0, client[:, at.RTT_SUM] // np.maximum(client[:, at.RTT_COUNT], 1), at.NONE
            )),
            "client_id": known, "exchanges": values[:, at.ROWS].tolist(),
            "request_frames": values[:, at.REQUEST_FRAMES].tolist(), "response_frames": values[:, at.RESPONSE_FRAMES].tolist(),
            "client_captured": client[:, at.CAPTURED].tolist(), "client_framed": values[:, at.REQUEST_BYTES].tolist(),
            "server_captured": server[:, at.CAPTURED].tolist(), "server_framed": values[:, at.RESPONSE_BYTES].tolist(),
            **{name: (client[:, part] + server[:, part]).tolist() for name, part in OF_BOTH.items()},
            "connection": map(uid_of, lower, values[:, at.FIRST_NS].tolist(), nones(client[:, at.ISN])), "flow": flows,
            **dict(zip(("client_ip", "client_port", "server_ip", "server_port"), zip(*map(endpoints, flows)))),
        }  # fmt: skip
        for row in zip(*columns.values(), strict=True):
            yield ALIKE | dict(zip(columns, row))

    def _flows(self, places: "Int64s", sides: "Int64s") -> list[bytes]:
        """The flow key of one stream of each connection."""
        keys, width = self.keys[places, sides].tobytes(), self.keys.shape[2]
        sizes = self.streams[places, sides, at.FLOW_SIZE].tolist()
        return [keys[start : start + size] for start, size in zip(range(0, len(keys), width), sizes)]


def nones(values: "Int64s") -> list[int | None]:
    """The numbers, None for NONE."""
    return [none(value) for value in values.tolist()]


def keep(state: FastPathState, slots: list[int], keeper: ConnectionOwner) -> ClosedStates:
    """The states of own connections."""
    places = np.array(slots)
    both = 2 * places[:, None] + (0, 1)
    return ClosedStates(state.connections[places], state.streams[both], state.keys[both], state.all_names(), keeper)
