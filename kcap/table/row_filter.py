"""The rows that a filter lets pass.

In: a checked filter, batches of exchanges or of their rows. Out: the rows that pass, in their order. Law: those that
`kcap.filter.row_test` passes; bodies are decoded only where everything cheaper holds.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa

from kcap.analyzer import RowBatch, endpoints
from kcap.columns import Column
from kcap.facts.tracker import MetadataTracker
from kcap.filter.ast import Filter, Membership, is_deep, packets_of
from kcap.filter.ast import columns_of as named_by
from kcap.filter.row_test import Selection
from kcap.model import CaptureFile
from kcap.net.packet_index import PacketIndex
from kcap.schema.registry import REQUEST, RESPONSE
from kcap.table.backfill import COMPANIONS
from kcap.table.exchanges import ExchangeTable
from kcap.table.records import Exchanged
from kcap.table.schema import columns_of

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s
    from kcap.decode.message import Message

SIDES: Final = {"request": REQUEST, "response": RESPONSE}
DECLARED: Final = columns_of("exchanges")


PLACES: Final = (
    "capture", "response_capture", "request_last_capture", "response_last_capture", "client_ip", "client_port", "server_ip",
    "server_port", "request_pos", "request_end_pos", "response_pos", "response_end_pos",
)  # fmt: skip
"""Columns that say whose packets a row's are, and between which places of a file."""


class Read(Protocol):
    """A reading of a capture."""

    noted: list[PacketIndex]

    def message(self, batch: RowBatch, at: int, side: str) -> "Message | None": ...

    @property
    def capture_files(self) -> Sequence[CaptureFile]: ...


def noted(tree: Filter) -> PacketIndex | None:
    """What a filter asks of the numbers of packets; None where it asks nothing."""
    asked = packets_of(tree)
    if not asked:
        return None
    singles: list[Any] = []
    ranges: list[Any] = []
    for test in asked:
        singles += test.values if isinstance(test, Membership) else [test.value]
        ranges += test.ranges if isinstance(test, Membership) else ()
    return PacketIndex((int(one) for one in singles), ((int(low), int(high)) for low, high in ranges))


class RowFilter:
    """A filter over rows."""

    def __init__(self, tree: Filter, reading: Read | None = None) -> None:
        """`reading` reads large messages again, for filters that look inside, and looks out for packets."""
        self._tree = tree
        self._reading = reading
        self.deep = is_deep(tree)
        """It looks into decoded bodies."""
        self.noted = noted(tree) if reading is not None else None
        """The packets it asks for."""
        if self.noted is not None and reading is not None:
            reading.noted.append(self.noted)
        names = [*named_by(tree), *(["api_key"] if self.deep else []), *(PLACES if self.noted is not None else ())]
        self.columns: list[Column] = [DECLARED[name] for name in dict.fromkeys(names)] or [DECLARED["exchange"]]
        self.late = any(column.name in COMPANIONS for column in self.columns)
        """It looks at what the whole capture may know better."""

    def beside(self, columns: Sequence[Column]) -> list[Column]:
        """Columns that must be made: those asked for, then what else the filter looks at."""
        names = {column.name for column in columns}
        return [*columns, *(column for column in self.columns if column.name not in names)]

    def rows(self, rows: pa.RecordBatch, batch: RowBatch | None) -> list[int]:
        """Numbers of the rows that pass. Of `batch`, which has the same rows, only a deep filter needs the bodies."""
        columns = {column.name: values(rows.column(column.name)) for column in self.columns}

        def body(row: int, side: str) -> Mapping[str, Any] | None:
            if batch is None or self._reading is None:
                return None
            return Exchanged(batch, row, self._reading.message).body(SIDES[side]) or None

        packets = None if self.noted is None else self._between(columns)
        return Selection(columns, body, packets).rows(self._tree, range(rows.num_rows))

    def _between(self, columns: Mapping[str, Sequence[Any]]) -> Callable[[int], list[int]]:
        """Finds packets that were asked for among those of a row's two frames."""
        assert self.noted is not None
        assert self._reading is not None
        files = self._reading.capture_files
        places = {(files[file].name, *endpoints(flow)): packets for (file, flow), packets in self.noted.found.items()}

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

    def passed(self, rows: pa.RecordBatch, batch: RowBatch | None = None) -> pa.RecordBatch:
        """The rows that pass."""
        numbers = self.rows(rows, batch)
        if len(numbers) == rows.num_rows:
            return rows
        taken: pa.RecordBatch = rows.take(pa.array(numbers, pa.int64()))
        return taken


class ExchangeFilter:
    """The exchanges of batches that pass, for tables whose rows are parts of exchanges."""

    def __init__(self, sieve: RowFilter, files: Sequence[CaptureFile], learner: MetadataTracker | None) -> None:
        self._sieve = sieve
        self._table = ExchangeTable(sieve.columns, files, learner)

    def rows(self, batch: RowBatch) -> "Int64s":
        """Numbers of the exchanges that pass."""
        return np.array(self._sieve.rows(self._table.turn(batch), batch), np.int64)


def values(column: Any) -> list[Any]:
    """A column as Python values; times as microseconds since the epoch."""
    kind = pa.int64() if pa.types.is_timestamp(column.type) else None
    found: list[Any] = (column.cast(kind) if kind is not None else column).to_pylist()
    return found
