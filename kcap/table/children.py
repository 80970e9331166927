"""The partitions and records of each exchange, as list columns beside its own columns.

In: a batch of exchanges and the rows to build. Out: list columns with one entry per row. Law: each list has the exchange's rows
of the table of that name, without the columns that the exchange has itself; at most the first NESTED_MAX.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap.arrays.arrow import lists, of_type
from kcap.batch.columns import BatchColumns
from kcap.batch.failures import report_row
from kcap.columns import PAYLOADS, TABLES, Column
from kcap.facts.fetch_positions import Positions
from kcap.facts.tracker import MetadataTracker, Reread
from kcap.limits import NESTED_MAX
from kcap.table.exchanges import Exchanges
from kcap.table.partition_pairs import stretches
from kcap.table.partitions import Partitions
from kcap.table.records import RecordRows, placed_records
from kcap.table.schema import TYPES, arrow_schema
from kcap.weird import WeirdKind

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s

OF_EXCHANGE: Final = frozenset({"connection", "exchange", "time", "api_key", "api"})
"""Columns that the exchange has itself."""


def columns_of_child(name: str) -> list[Column]:
    """The columns of a child table; keys and values of records are not included."""
    return [column for column in TABLES[name] if column.name not in OF_EXCHANGE | PAYLOADS]


def child_fields(names: Sequence[str]) -> list["pa.Field[Any]"]:
    return [pa.field(name, pa.list_(pa.struct(list(arrow_schema(name, columns_of_child(name)))))) for name in names]


class Children:
    """The list columns of a pass."""

    def __init__(self, names: Sequence[str], tracker: MetadataTracker, reread: Reread) -> None:
        self.fields = child_fields(names)
        self._names, self._tracker, self._reread = list(names), tracker, reread
        self._positions = Positions()

    def stretches(self, rows: Exchanges) -> list[tuple[int, int]]:
        """Ranges of exchanges of a batch that are built together: the first, and the one after the last."""
        return stretches(rows, records="records" in self._names)

    def make(self, columns: BatchColumns, where: "Int64s", between: tuple[int, int]) -> list[Any]:
        """The list columns of the rows at `where`, which are in the range `between`."""
        made = []
        for name, field in zip(self._names, self.fields):
            rows, entries = self._partitions(columns, between) if name == "partitions" else self._records(columns, where)
            counts = np.bincount(rows, minlength=columns.size)
            for at in where[counts[where] > NESTED_MAX].tolist():
                report_row(self._tracker.report, columns.batch, at, WeirdKind.NESTED_LIMIT, name, f"the first {NESTED_MAX}")
            made.append(gathered(counts, entries, where).cast(field.type))
        return made

    def _partitions(self, columns: BatchColumns, between: tuple[int, int]) -> tuple["Int64s", Any]:
        """Exchange of each partition, and the partitions."""
        chosen = columns_of_child("partitions")
        found = Partitions(columns, self._tracker, self._positions, self._reread, between=between)
        arrays: list[Any] = [of_type(found.column(column.name), TYPES[column.type]) for column in chosen]
        return found.pairs.row, STRUCTS.from_arrays(arrays, fields=list(arrow_schema("partitions", chosen)))

    def _records(self, columns: BatchColumns, where: "Int64s") -> tuple["Int64s", Any]:
        """Exchange of each record, and the records."""
        rows = RecordRows(columns_of_child("records"))
        counts: Counter[int] = Counter()
        for at, row in placed_records(columns, self._tracker, self._reread, where):
            counts[at] += 1
            if counts[at] <= NESTED_MAX + 1:  # one more shows that the list is cut
                rows.add(row)
        taken: Any = rows.take().to_struct_array()
        return np.repeat(where, [min(counts[at], NESTED_MAX + 1) for at in where.tolist()]), taken


STRUCTS: Final[Any] = pa.StructArray


def gathered(counts: "Int64s", entries: Any, where: "Int64s") -> Any:
    """Entries, in the order of their rows, as one list per row with at most NESTED_MAX of them."""
    taken = np.minimum(counts[where], NESTED_MAX)
    starts, offsets = np.cumsum(counts)[where] - counts[where], np.concatenate([[0], np.cumsum(taken)])
    places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], taken)
    return lists(offsets.astype(np.int32), entries.take(pa.array(places, pa.int64())), np.zeros(len(where), np.bool_))
