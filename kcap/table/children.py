"""What belongs to an exchange, as a list beside its columns: its partitions, its records.

In: a batch of decided exchanges and which of its rows are wanted. Out: list columns, an entry a row. Law: the rows of the table
of that name, each with its exchange, without the columns that the exchange has itself.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap.analyzer import RowBatch
from kcap.arrays.arrow import lists
from kcap.columns import PAYLOADS, TABLES, Column
from kcap.facts.fetch_positions import Positions
from kcap.table.partitions import Partitions
from kcap.table.records import RecordRows, names_of, placed_records
from kcap.table.schema import arrow_schema

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s
    from kcap.table.builder import Pass

CHILDREN: Final = ("partitions", "records")
OF_EXCHANGE: Final = frozenset({"connection", "exchange", "time", "api_key", "api"})
"""Columns that the exchange has itself."""


def columns_of_child(name: str) -> list[Column]:
    """The columns of a child; keys and values of records stay where they are."""
    return [column for column in TABLES[name] if column.name not in OF_EXCHANGE | PAYLOADS]


def child_fields(names: Sequence[str]) -> list["pa.Field[Any]"]:
    """The list columns."""
    return [pa.field(name, pa.list_(pa.struct(list(arrow_schema(name, columns_of_child(name)))))) for name in names]


class Children:
    """The list columns of a pass."""

    def __init__(self, names: Sequence[str], reading: "Pass") -> None:
        """Reads the capture once to learn what topic ids are called, where it can be read twice."""
        self._names = list(names)
        self.fields = child_fields(names)
        self._reading = reading
        self._topics, self._learns = names_of(reading)
        self._positions = Positions()
        reading.keep_bodies()

    def beside(self, made: pa.RecordBatch, batch: RowBatch, places: "Int64s | None") -> pa.RecordBatch:
        """The exchanges made of a batch, of all its rows or of those at `places`, with what belongs to them."""
        if self._learns:
            from kcap.table.records import learn

            learn(batch, self._topics, self._reading.message, self._reading.analyzer.report)
        where = np.arange(len(batch)) if places is None else places
        columns = [*made.columns]
        for name, field in zip(self._names, self.fields):
            rows, entries = self._partitions(batch) if name == "partitions" else self._records(batch, where)
            columns.append(gathered(rows, entries, where, len(batch)).cast(field.type))
        schema = made.schema
        for field in self.fields:
            schema = schema.append(field)
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _partitions(self, batch: RowBatch) -> tuple["Int64s", Any]:
        """Exchange of each partition, and the partitions."""
        columns = columns_of_child("partitions")
        found = Partitions(batch, self._reading.message, self._topics, self._positions, report=self._reading.analyzer.report)
        schema = arrow_schema("partitions", columns)
        arrays: list[Any] = [found.column(column.name) for column in columns]
        arrow: Any = pa.StructArray
        return found.pairs.row, arrow.from_arrays(arrays, fields=list(schema))

    def _records(self, batch: RowBatch, where: "Int64s") -> tuple["Int64s", Any]:
        """Exchange of each record, and the records."""
        rows = RecordRows(columns_of_child("records"))
        counts: Counter[int] = Counter()
        only = frozenset(where.tolist())
        for at, row in placed_records(batch, self._topics, self._reading.message, only, self._reading.analyzer.report):
            counts[at] += 1
            rows.add(row)
        taken: Any = rows.take().to_struct_array()
        return np.repeat(where, [counts[at] for at in where.tolist()]), taken


def gathered(rows: "Int64s", entries: Any, where: "Int64s", size: int) -> Any:
    """Entries, in the order of their rows, as a list for each of some rows."""
    counts = np.bincount(rows, minlength=size)
    starts = np.concatenate([[0], np.cumsum(counts)])
    offsets = np.concatenate([[0], np.cumsum(counts[where])]).astype(np.int32)
    chosen = [np.arange(starts[at], starts[at + 1]) for at in where.tolist()]
    places = np.concatenate(chosen) if chosen else np.zeros(0, np.int64)
    return lists(offsets, entries.take(pa.array(places, pa.int64())), np.zeros(len(where), np.bool_))
