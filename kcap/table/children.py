"""The partitions and records of each exchange as list columns beside its own.

In: a batch of exchanges and the rows to make. Out: list columns, an entry a row. Law: the rows of the table of that name, each
with its exchange, without the columns that the exchange has itself.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap.arrays.arrow import lists, of_type
from kcap.batch.columns import BatchColumns
from kcap.columns import PAYLOADS, TABLES, Column
from kcap.facts.fetch_positions import Positions
from kcap.facts.tracker import MetadataTracker, Reread
from kcap.table.partitions import Partitions
from kcap.table.records import RecordRows, placed_records
from kcap.table.schema import TYPES, arrow_schema

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s

OF_EXCHANGE: Final = frozenset({"connection", "exchange", "time", "api_key", "api"})
"""Columns that the exchange has itself."""


def columns_of_child(name: str) -> list[Column]:
    """The columns of a child; keys and values of records stay where they are."""
    return [column for column in TABLES[name] if column.name not in OF_EXCHANGE | PAYLOADS]


def child_fields(names: Sequence[str]) -> list["pa.Field[Any]"]:
    """The list columns."""
    return [pa.field(name, pa.list_(pa.struct(list(arrow_schema(name, columns_of_child(name)))))) for name in names]


class Children:
    """The list columns of a reading."""

    def __init__(self, names: Sequence[str], tracker: MetadataTracker, reread: Reread) -> None:
        self.fields = child_fields(names)
        self._names, self._tracker, self._reread = list(names), tracker, reread
        self._positions = Positions()

    def make(self, columns: BatchColumns, where: "Int64s") -> list[Any]:
        """The list columns of the rows at `where`."""
        made = []
        for name, field in zip(self._names, self.fields):
            rows, entries = self._partitions(columns) if name == "partitions" else self._records(columns, where)
            made.append(gathered(rows, entries, where, columns.size).cast(field.type))
        return made

    def _partitions(self, columns: BatchColumns) -> tuple["Int64s", Any]:
        """Exchange of each partition, and the partitions."""
        chosen = columns_of_child("partitions")
        found = Partitions(columns, self._tracker, self._positions, self._reread)
        arrays: list[Any] = [of_type(found.column(column.name), TYPES[column.type]) for column in chosen]
        return found.pairs.row, STRUCTS.from_arrays(arrays, fields=list(arrow_schema("partitions", chosen)))

    def _records(self, columns: BatchColumns, where: "Int64s") -> tuple["Int64s", Any]:
        """Exchange of each record, and the records."""
        rows = RecordRows(columns_of_child("records"))
        counts: Counter[int] = Counter()
        for at, row in placed_records(columns, self._tracker, self._reread, where):
            counts[at] += 1
            rows.add(row)
        taken: Any = rows.take().to_struct_array()
        return np.repeat(where, [counts[at] for at in where.tolist()]), taken


STRUCTS: Final[Any] = pa.StructArray


def gathered(rows: "Int64s", entries: Any, where: "Int64s", size: int) -> Any:
    """Entries, in the order of their rows, as a list for each of some rows."""
    counts = np.bincount(rows, minlength=size)
    starts = np.concatenate([[0], np.cumsum(counts)])
    offsets = np.concatenate([[0], np.cumsum(counts[where])]).astype(np.int32)
    chosen = [np.arange(starts[at], starts[at + 1]) for at in where.tolist()]
    places = np.concatenate(chosen) if chosen else np.zeros(0, np.int64)
    return lists(offsets, entries.take(pa.array(places, pa.int64())), np.zeros(len(where), np.bool_))
