"""Rows that a filter lets pass, of which alone most columns are made.

In: batches of decided exchanges and a sieve. Out: record batches of the rows that pass. Law: those of the whole table that the
sieve passes. What batches teach is learned from all of their rows; what runs through the rows of a connection is made of all.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kcap.analyzer import RowBatch
from kcap.arrays.arrow import Array, take
from kcap.arrays.vectors import Vector
from kcap.columns import Column
from kcap.facts.tracker import MetadataTracker, RowContext
from kcap.model import CaptureFile
from kcap.row_columns import RowColumns
from kcap.table.exchanges import Exchanges, ExchangeTable
from kcap.table.push_down import MUTES, names_topics
from kcap.table.row_filter import RowFilter
from kcap.table.service_parts import ServiceParts

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s

OF_ALL: Final = frozenset({*MUTES, "version_verdict"})
"""Columns in which a row depends on the other rows of the batch."""


class FilteredColumns(RowColumns):
    """The parts of some rows."""

    def __init__(self, parts: RowColumns, places: "Int64s") -> None:
        self.size = len(places)
        self._parts = parts
        self._places = places

    def array(self, name: str) -> Array:
        """One part of every row, as it comes."""
        return take(self._parts.array(name), self._places)

    def number(self, name: str) -> Vector:
        """One part of every row, integers."""
        return self._parts.number(name).take(self._places)

    def codes(self, name: str) -> "tuple[list[str | None], Int64s]":
        """A part that is a text as numbers of texts, and those."""
        known, numbers = self._parts.codes(name)
        return known, numbers[self._places]


class FilteredRows(Exchanges):
    """Some rows of a batch; nothing is learned from them."""

    def __init__(self, rows: Exchanges, places: "Int64s") -> None:
        self.batch, self.learner, self.files = rows.batch, rows.learner, rows.files
        self.size = len(places)
        self.parts = FilteredColumns(rows.parts, places)
        self.array, self.number = self.parts.array, self.parts.number
        self._rows = rows
        self._places = places

    @cached_property
    def told(self) -> RowContext:
        """What the rows' connections had told."""
        told = self._rows.told
        return RowContext(told.known, told.state[self._places], told.servers, told.server[self._places])

    @cached_property
    def waits(self) -> ServiceParts:
        """Of the whole batch alone."""
        raise AssertionError("waits run through all rows of a connection")


class FilteredTable(ExchangeTable):
    """Turns batches into those of their rows that pass."""

    def __init__(
        self, columns: Sequence[Column], files: Sequence[CaptureFile], learner: MetadataTracker, sieve: RowFilter
    ) -> None:
        super().__init__(columns, files, learner)
        self._sieve = sieve
        self._looked = ExchangeTable(sieve.columns, files, learner)
        self._names = [column.name for column in columns]
        self._learns = self._learns or self._looked._learns

    def turn(self, batch: RowBatch) -> pa.RecordBatch:
        """The rows of one batch that pass."""
        rows = self._rows(batch)
        if self._learns:
            rows.told  # noqa: B018 - what servers tell must be known before their columns are made
        asked = zip(self._sieve.columns, self._looked._makers)
        seen = {column.name: make(rows) for column, make in asked}
        looked = pa.RecordBatch.from_arrays(list(seen.values()), schema=self._looked.schema)
        places = np.array(self._sieve.rows(looked, batch), np.int64)
        if len(places) == rows.size:
            self.places = None
            return self.made(rows)
        self.places = places
        few = FilteredRows(rows, places)
        self._learn(rows)
        made = []
        for name, make in zip(self._names, self._makers):
            if name in seen:
                made.append(take(seen[name], places))
            else:
                made.append(take(make(rows), places) if name in OF_ALL else make(few))
        self.learner.let_go()
        for spent in (rows, few):
            vars(spent).clear()  # its parts refer to it: without this a batch's bodies wait for Python's collector
        return pa.RecordBatch.from_arrays(made, schema=self.schema)

    def _learn(self, rows: Exchanges) -> None:
        """What later rows need of these, whether they pass or not."""
        if "topics" in self._names:
            telling = names_topics(rows.number("api_key"))
            if len(telling):
                self.learner.take_topics(FilteredRows(rows, telling))
        if not MUTES.isdisjoint(self._names):
            rows.waits  # noqa: B018
