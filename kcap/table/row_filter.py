"""Selects the exchanges that pass a filter.

In: a checked filter, batches of exchanges or record batches of their rows. Out: the rows that pass, in their order. Law: they
are those that `kcap.filter.row_predicate` selects; bodies are decoded only if every cheaper condition holds.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa

from kcap.arrays.arrow import values
from kcap.batch.columns import BatchColumns
from kcap.columns import Column
from kcap.filter.ast import Filter, Membership, is_deep, packets_of
from kcap.filter.ast import columns_of as named_by
from kcap.filter.row_predicate import RowSelector
from kcap.identities import endpoints
from kcap.model import CaptureFile
from kcap.net.packet_index import PacketIndex
from kcap.schema.registry import REQUEST, RESPONSE
from kcap.table.backfill import COMPANIONS
from kcap.table.exchanges import ExchangeColumns, Exchanges, needs_of
from kcap.table.records import Exchanged
from kcap.table.schema import columns_of

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s
    from kcap.facts.tracker import Reread

SIDES: Final = {"request": REQUEST, "response": RESPONSE}
DECLARED: Final = columns_of("exchanges")


PLACES: Final = (
    "capture", "response_capture", "request_last_capture", "response_last_capture", "client_ip", "client_port", "server_ip",
    "server_port", "request_pos", "request_end_pos", "response_pos", "response_end_pos",
)  # fmt: skip
"""Columns that identify the flow of a row's packets, and the positions in a file between which they are."""


class Read(Protocol):
    """A pass over a capture."""

    noted: list[PacketIndex]

    @property
    def message(self) -> "Reread": ...

    @property
    def capture_files(self) -> Sequence[CaptureFile]: ...


def packet_index(tree: Filter) -> PacketIndex | None:
    """An index of the packet numbers that a filter tests; None if it tests none."""
    tests = packets_of(tree)
    if not tests:
        return None
    singles: list[Any] = []
    ranges: list[Any] = []
    for test in tests:
        singles += test.values if isinstance(test, Membership) else [test.value]
        ranges += test.ranges if isinstance(test, Membership) else ()
    return PacketIndex((int(one) for one in singles), ((int(low), int(high)) for low, high in ranges))


class RowFilter:
    """Applies a filter to rows."""

    def __init__(self, tree: Filter, reading: Read | None = None) -> None:
        """`reading` reads large messages again, for filters on decoded bodies, and finds packets by their numbers."""
        self._tree = tree
        self._reading = reading
        self.deep = is_deep(tree)
        """Whether it tests fields of decoded bodies."""
        self.packets = packet_index(tree)
        """Finds the packets whose numbers it tests."""
        if self.packets is not None and reading is not None:
            reading.noted.append(self.packets)
        names = [*named_by(tree), *(["api_key"] if self.deep else []), *(PLACES if self.packets is not None else ())]
        self.columns: list[Column] = [DECLARED[name] for name in dict.fromkeys(names)] or [DECLARED["exchange"]]
        self.needs = needs_of(self.columns)
        self.late = any(column.name in COMPANIONS for column in self.columns)
        """Whether it tests columns that may change at the end of the capture."""

    @cached_property
    def _made(self) -> ExchangeColumns:
        return ExchangeColumns(self.columns)

    def made(self, rows: Exchanges) -> pa.RecordBatch:
        """The columns that it tests."""
        return self._made.make(rows)

    def places(self, rows: Exchanges) -> "Int64s":
        """Numbers of the exchanges that pass."""
        return np.array(self.rows(self.made(rows), rows.columns), np.int64)

    def rows(self, rows: pa.RecordBatch, exchanges: BatchColumns | None = None) -> list[int]:
        """Numbers of the rows that pass. `exchanges` are the same rows; only filters on bodies need them."""
        columns = {column.name: values(rows.column(column.name)) for column in self.columns}

        def body(row: int, side: str) -> Mapping[str, Any] | None:
            if exchanges is None or self._reading is None:
                return None
            return Exchanged(exchanges, row, self._reading.message).body(SIDES[side]) or None

        packets = None if self.packets is None else self._between(columns)
        return RowSelector(columns, body, packets).rows(self._tree, range(rows.num_rows))

    def _between(self, columns: Mapping[str, Sequence[Any]]) -> Callable[[int], list[int]]:
        """Finds the indexed packets among those of a row's two frames."""
        assert self.packets is not None
        assert self._reading is not None
        files = self._reading.capture_files
        places = {(files[file].name, *endpoints(flow)): packets for (file, flow), packets in self.packets.found.items()}

        def between(row: int) -> list[int]:
            found: list[int] = []
            ends = [(columns[f"{end}_ip"][row], columns[f"{end}_port"][row]) for end in ("client", "server")]
            for side, capture, flow in (
                ("request", "capture", (*ends[0], *ends[1])),
                ("response", "response_capture", (*ends[1], *ends[0])),
            ):
                name, low, high = (columns[column][row] for column in (capture, f"{side}_pos", f"{side}_end_pos"))
                last = columns[f"{side}_last_capture"][row]
                if low is None:
                    continue
                found += [n for n, at in places.get((name, *flow), ()) if low <= at and (at <= high or last)]
                found += [n for n, at in places.get((last, *flow), ()) if at <= high] if last else []
            return found

        return between

    def passed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that pass; not for filters on bodies."""
        numbers = self.rows(rows)
        if len(numbers) == rows.num_rows:
            return rows
        taken: pa.RecordBatch = rows.take(pa.array(numbers, pa.int64()))
        return taken
