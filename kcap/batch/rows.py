"""The parts of a batch's rows as columns, whether the rows come as tuples, as the fast path's arrays, or as both.

In: a `RowBatch`. Out: one part of every row, in the order in which the rows were decided. Law: each value equals the part of
the same row in `RowBatch.rows`.
"""

from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap.analyzer import RowBatch
from kcap.arrays.arrow import Array, coded, picked, take, validity
from kcap.arrays.vectors import Vector, vector
from kcap.batch.constants import Constants
from kcap.model import PART, ROW

if TYPE_CHECKING:
    from kcap.arrays.vectors import Int64s

TEXTS: Final = frozenset({"client_id", "outcome", "reason"})
ROW_STRUCT: Final = pa.struct([(name, pa.string() if name in TEXTS else pa.int64()) for name in ROW])
STRUCT_FROM: Final = 16
"""Number of columns from which converting whole rows is faster than picking parts from them."""


class RowColumns:
    """The parts of one batch's rows; each is made once."""

    def __init__(self, batch: RowBatch, *, many: bool = False) -> None:
        """`many`: most parts will be needed, so that rows are converted whole."""
        self.size = len(batch)
        self._tuples = batch.tuples
        self._fast: Any = batch.fast_rows
        self._orders = batch.orders
        self._identities = batch.identities
        self._structs: Any = pa.array(batch.tuples, ROW_STRUCT) if many and batch.tuples else None
        self._arrays: dict[str, Array] = {}
        self._vectors: dict[str, Vector] = {}
        self._codes: dict[str, tuple[list[str | None], Int64s]] = {}

    def array(self, name: str) -> Array:
        found = self._arrays.get(name)
        if found is None:
            if self._fast is None:
                found = self._of_tuples(name)
            elif name in TEXTS:
                known, numbers = self.codes(name)
                found = picked(pa.array(known, pa.string()), numbers)
            else:
                found = self.number(name).to_arrow(pa.int64())
            self._arrays[name] = found
        return found

    def number(self, name: str) -> Vector:
        """One integer part of every row."""
        found = self._vectors.get(name)
        if found is None:
            found = vector(self.array(name)) if self._fast is None else self._number(name)
            self._vectors[name] = found
        return found

    def _of_tuples(self, name: str) -> Array:
        if self._structs is not None:
            made: Array = self._structs.field(PART[name])
            return made
        kind = pa.string() if name in TEXTS else pa.int64()
        return pa.array(list(map(itemgetter(PART[name]), self._tuples)), kind)

    @cached_property
    def constants(self) -> Constants:
        """The constants of the rows' connections."""
        return Constants(self._identities)

    @cached_property
    def _order(self) -> "Int64s | None":
        """Indexes into the fast path's rows followed by the tuples; None if they are in order."""
        order: Int64s = self._fast.merged(self._orders)
        return None if (order[1:] > order[:-1]).all() else order

    def place_of(self, row: int) -> int:
        """Index of the reference path's row number `row`; the number of rows if there is no such row."""
        if row >= len(self._tuples):
            return self.size
        order = None if self._fast is None else self._order
        at = row + (0 if self._fast is None else len(self._fast))
        return at if order is None else int(np.flatnonzero(order == at)[0])

    def _number(self, name: str) -> Vector:
        values, valid = self._fast.numbers(name)
        found = Vector(values, valid)
        if self._tuples:
            found = found.followed_by(vector(self._of_tuples(name)))
        return found if self._order is None else found.take(self._order)

    def codes(self, name: str) -> "tuple[list[str | None], Int64s]":
        """A text part: texts, of which two may be equal, and the index of each row's text."""
        found = self._codes.get(name)
        if found is None:
            found = self._codes[name] = self._coded(name)
        return found

    def _coded(self, name: str) -> "tuple[list[str | None], Int64s]":
        known: list[str | None] = []
        parts: list[Int64s] = []
        if self._fast is not None:
            from kcap.fastpath.layout import R_NAME, R_OUTCOME
            from kcap.fastpath.rows import CODED

            if name == "client_id":
                known, numbers = list(self._fast.names), self._fast.columns[R_NAME]
            else:
                known, numbers = list(CODED[name]), self._fast.columns[R_OUTCOME]
            parts.append(numbers)
        if self._tuples or not parts:
            array = self._of_tuples(name)
            few, texts = coded(array)
            here = validity(array)
            parts.append((few if here is None else np.where(here, few, len(texts))).astype(np.int64) + len(known))
            known = [*known, *texts, None]
        joined = np.concatenate(parts) if len(parts) > 1 else parts[0]
        return known, joined if self._fast is None or self._order is None else joined.take(self._order)


class SelectedRows(RowColumns):
    """The parts of some rows of a batch."""

    def __init__(self, rows: RowColumns, places: "Int64s") -> None:
        self.size = len(places)
        self._all = rows
        self._places = places

    @property
    def constants(self) -> Constants:
        return self._all.constants

    def array(self, name: str) -> Array:
        return take(self._all.array(name), self._places)

    def number(self, name: str) -> Vector:
        return self._all.number(name).take(self._places)

    def codes(self, name: str) -> "tuple[list[str | None], Int64s]":
        known, numbers = self._all.codes(name)
        return known, numbers[self._places]
