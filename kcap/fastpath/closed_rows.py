"""Rows of `connections` for connections that began and ended in the fast path.

In: the numbers of connections that were closed together. Out: their columns at once, or the row of one. Law: only `COLUMNS` and
`ALIKE` define how a value is made, so that a column and a row agree.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, repeat
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kcap import limits
from kcap.fastpath import layout as at
from kcap.identities import endpoints, flows_of, uid_of
from kcap.tls.facts import tls_values

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s
    from kcap.fastpath.sealed_connection import ClosedTls
    from kcap.fastpath.state import FastPathState

Row = dict[str, object]
Values = Any
"""A column: an array of numbers in which NONE is null, or a list."""
NEVER: Final = np.iinfo(np.int64).max
ALIKE: Final[Row] = {
    "began": "syn", "out_of_order": 0, "recovered": 0,
    "client_pending": 0, "client_missing": 0, "server_missing": 0, "client_skipped": 0,
}  # fmt: skip
"""Values that are the same in all rows of connections of the fast path."""


@dataclass(frozen=True, eq=False, slots=True)
class Sides:
    """The input for columns, with one entry per connection."""

    values: Any
    client: Any
    """The stream of the client."""
    server: Any
    lower: list[bytes]
    """The flow keys of the lower endpoints."""
    flows: list[bytes]
    """The flow keys of the clients."""
    ends: list[tuple[str, int, str, int]]
    """Address and port of client and server."""
    client_ids: list[str | None]
    tls: "list[ClosedTls | None]"
    """TLS of connections whose exchanges were encrypted."""

    @property
    def sealed(self) -> list[bool]:
        """Whether the exchanges of each were encrypted."""
        return [one is not None for one in self.tls]


@dataclass(frozen=True, eq=False, slots=True)
class ClosedRows:
    """The numbers of closed connections whose rows need no objects."""

    connections: Any
    streams: Any
    """The two streams of each connection."""
    keys: Any
    client_ids: list[str | None]
    tls: "list[ClosedTls | None]"
    _made: dict[tuple[str, ...] | None, list[Row]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.connections)

    @property
    def count(self) -> int:
        """As `analyzer.SilentConnection`."""
        return len(self)

    @property
    def phases(self) -> dict[str, int]:
        """As `analyzer.SilentConnection`."""
        empty = int(np.count_nonzero(without_byte(self.streams[:, 0], self.streams[:, 1])))
        return {name: count for name, count in (("kafka", len(self) - empty), ("empty", empty)) if count}

    @property
    def details(self) -> dict[str, int]:
        """As `analyzer.SilentConnection`."""
        sealed = len(self) - self.tls.count(None)
        return {"tls": sealed} if sealed else {}

    def each(self) -> "list[ClosedRow]":
        """As `analyzer.SilentConnection`."""
        return [ClosedRow(self, place, ref) for place, ref in enumerate(self.connections[:, at.FIRST_REF].tolist())]

    def rows(self, names: tuple[str, ...] | None = None) -> list[Row]:
        """Their rows, or the named columns of these, with None if a row does not have one. They are made once."""
        found = self._made.get(names)
        if found is None:
            sides, some = self.sides(), EVERY if names is None else names
            columns = [plain(COLUMNS[name](sides)) if name in COLUMNS else repeat(ALIKE.get(name), len(self)) for name in some]
            found = self._made[names] = [dict(zip(some, row)) for row in zip(*columns, strict=True)]
            for row, sealed in zip(found, self.tls):
                row.update((name, value) for name, value in tls_row(sealed).items() if names is None or name in row)
        return found

    def sides(self) -> Sides:
        """The input for columns."""
        every, side = np.arange(len(self)), self.connections[:, at.CLIENT]
        flows = self._flows(every, side)
        return Sides(
            self.connections, self.streams[every, side], self.streams[every, 1 - side], self._flows(every, np.zeros_like(side)),
            flows, list(map(endpoints, flows)), self.client_ids, self.tls,
        )  # fmt: skip

    def _flows(self, places: "Int64s", sides: "Int64s") -> list[bytes]:
        """The flow key of one stream of each connection."""
        return flows_of(self.keys[places, sides], self.streams[places, sides, at.FLOW_SIZE])


@dataclass(slots=True)
class ClosedRow:
    """A closed connection, whose row is made when it is read."""

    together: ClosedRows
    place: int
    ref: int
    """Reference of its first packet."""

    @property
    def values(self) -> Row:
        """The row, without the file's name."""
        return self.together.rows()[self.place]

    def part(self, names: tuple[str, ...]) -> Row:
        """The named columns of the row; None if it does not have one."""
        return self.together.rows(names)[self.place]

    def settle(self) -> None:
        """As `analyzer.KeptConnection`; there is nothing to release."""


def closed_rows(state: "FastPathState", slots: "Int64s") -> ClosedRows:
    """The numbers of own connections that are about to be closed."""
    both = 2 * slots[:, None] + (0, 1)
    values, names = state.connections[slots], state.all_names()
    numbers = np.where(values[:, at.NUMBER] != 0, values[:, at.NAME], at.NO_NAME)
    tls: list[ClosedTls | None] = [None] * len(slots)
    for place, slot in enumerate(slots.tolist()) if state.sealed else ():
        sealed = state.sealed.get(slot)
        tls[place] = None if sealed is None else sealed.closed()
    return ClosedRows(values, state.streams[both], state.keys[both], [names[number] for number in numbers.tolist()], tls)


def gathered(closed: Sequence[ClosedRow]) -> ClosedRows:
    """The numbers of connections in this order, wherever they were closed."""
    parts: list[tuple[ClosedRows, list[int]]] = []
    for _, some in groupby(closed, lambda one: id(one.together)):
        run = list(some)
        parts.append((run[0].together, [one.place for one in run]))
    return ClosedRows(
        np.concatenate([part.connections[places] for part, places in parts]),
        np.concatenate([part.streams[places] for part, places in parts]),
        np.concatenate([part.keys[places] for part, places in parts]),
        [part.client_ids[place] for part, places in parts for place in places],
        [part.tls[place] for part, places in parts for place in places],
    )


def tls_row(sealed: "ClosedTls | None") -> Row:
    """The values of a row that concern TLS and are not among the columns here."""
    return {} if sealed is None else tls_values(sealed.facts)


def plain(values: Values) -> Iterable[object]:
    """A column as Python values."""
    if not isinstance(values, np.ndarray):
        return values  # type: ignore[no-any-return]
    return [None if value == at.NONE else value for value in values.tolist()]


def _closings(sides: Sides) -> "Int64s":
    """Times of the FINs of the lower and the upper stream and of the RST; `NEVER` if there is none."""
    lower = sides.values[:, at.CLIENT] == 0
    fins = sides.client[:, at.FIN_NS], sides.server[:, at.FIN_NS]
    ends = np.stack([np.where(lower, *fins), np.where(lower, *fins[::-1]), sides.values[:, at.RST_NS]])
    return np.where(ends == at.NONE, NEVER, ends)


def _closed_ns(sides: Sides) -> "Int64s":
    first: Int64s = _closings(sides).min(axis=0)
    return np.where(first == NEVER, at.NONE, first)


def _closed_by(sides: Sides) -> list[str | None]:
    values, ends = sides.values, _closings(sides)
    first = ends.argmin(axis=0)  # at equal times a FIN precedes a reset
    by = np.where((ends == NEVER).all(axis=0), 2, np.where(first == 2, values[:, at.RST_BY], first) != values[:, at.CLIENT])
    return list(map(("client", "server", None).__getitem__, by.tolist()))


def _closed_window(sides: Sides) -> "Int64s":
    both = np.stack([sides.client, sides.server])
    since, last = both[:, :, at.SHUT], sides.values[:, at.LAST]
    still = np.where(since == at.NONE, 0, np.maximum(last - since, 0))
    before = both[:, :, at.SHUT_NS]
    total: Int64s = (before + np.minimum(still, limits.CLOSED_WINDOW_NS - before)).sum(axis=0)
    return total


def _pending(sides: Sides) -> "Int64s":
    """Bytes of a response that did not end."""
    left = sides.server[:, at.OPEN_LEFT]
    return np.where(left > 0, sides.server[:, at.OPEN_SIZE] - left, 0)


def _average(sides: Sides) -> "Int64s":
    count = sides.client[:, at.RTT_COUNT]
    average: Int64s = np.where(count > 0, sides.client[:, at.RTT_SUM] // np.maximum(count, 1), at.NONE)
    return average


def without_byte(first: Any, second: Any) -> Any:
    """Which connections carried no bytes, from their streams."""
    return (first[:, at.SEGMENTS] == 0) & (second[:, at.SEGMENTS] == 0)


def _uids(sides: Sides) -> list[str]:
    return list(map(uid_of, sides.lower, sides.values[:, at.FIRST_NS].tolist(), plain(sides.client[:, at.ISN])))  # type: ignore[arg-type]


def _of(side: str, place: int) -> Callable[[Sides], Values]:
    return lambda sides: getattr(sides, side)[:, place]


def _both(place: int) -> Callable[[Sides], Values]:
    return lambda sides: sides.client[:, place] + sides.server[:, place]


def _opaque(side: str, framed: int) -> Callable[[Sides], Values]:
    """Makes a column of the bytes of an encrypted stream that are not plaintext of frames; there are none without TLS."""
    return lambda sides: np.where(sides.sealed, getattr(sides, side)[:, at.CAPTURED] - sides.values[:, framed], 0)


def _unacked_ns(side: str) -> Callable[[Sides], Values]:
    def of(sides: Sides) -> Values:
        stream = getattr(sides, side)
        acked = stream[:, at.ACKED]
        open_ = (acked != at.NONE) & (acked < stream[:, at.NEXT])
        return np.where(open_, sides.values[:, at.LAST] - stream[:, at.LAST_NS], at.NONE)

    return of


def _end(place: int) -> Callable[[Sides], Values]:
    return lambda sides: [end[place] for end in sides.ends]


COLUMNS: Final[dict[str, Callable[[Sides], Values]]] = {
    "number": _of("values", at.PLACE), "first_ns": _of("values", at.FIRST_NS), "last_ns": _of("values", at.LAST),
    "ended": lambda sides: list(map((*at.ENDS, "idle").__getitem__, sides.values[:, at.ENDED].tolist())),
    "closed_by": _closed_by, "closed_ns": _closed_ns,
    "phase": lambda sides: np.where(without_byte(sides.client, sides.server), "empty", "kafka").tolist(),
    "client_packets": _of("client", at.PACKETS), "server_packets": _of("server", at.PACKETS),
    "rtt_min_ns": _of("client", at.RTT_MIN), "client_rtt_min_ns": _of("server", at.RTT_MIN), "rtt_avg_ns": _average,
    "client_id": lambda sides: sides.client_ids, "exchanges": _of("values", at.ROWS),
    "request_frames": _of("values", at.REQUEST_FRAMES), "response_frames": _of("values", at.RESPONSE_FRAMES),
    "client_captured": _of("client", at.CAPTURED), "client_framed": _of("values", at.REQUEST_BYTES),
    "server_captured": _of("server", at.CAPTURED), "server_framed": _of("values", at.RESPONSE_BYTES),
    "server_skipped": _of("values", at.SKIPPED), "server_pending": _pending,
    "packets": _both(at.PACKETS), "retransmitted": _both(at.RETRANSMITTED), "duplicated": _both(at.DUPLICATED),
    "sacked": _both(at.SACKED), "spurious": _both(at.SPURIOUS),
    "client_unacked_ns": _unacked_ns("client"), "server_unacked_ns": _unacked_ns("server"),
    "client_resent_ns": _of("client", at.RESENT_NS), "server_resent_ns": _of("server", at.RESENT_NS),
    "client_resent_at_ns": _of("client", at.RESENT_AT), "server_resent_at_ns": _of("server", at.RESENT_AT),
    "zero_window_stalls": _both(at.STALLS), "zero_window_ns": _closed_window,
    "connection": _uids, "flow": lambda sides: sides.flows,
    "client_opaque": _opaque("client", at.REQUEST_BYTES), "server_opaque": _opaque("server", at.RESPONSE_BYTES),
    "tls": lambda sides: sides.sealed, "detail": lambda sides: ["tls" if one else None for one in sides.sealed],
    "client_ip": _end(0), "client_port": _end(1), "server_ip": _end(2), "server_port": _end(3),
}  # fmt: skip
"""Function that makes each column."""
EVERY: Final = (*ALIKE, *COLUMNS)
"""The columns of all rows."""
