"""What the bodies of a batch of rows tell, a column at a time.

In: the slots of one side's rows and the `BodyBatch` they point into. Out: integer vectors, texts, topics. Law: a row whose body was
not kept or that no program reads has null in every column; nothing here looks at a body's bytes but for names.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kcap.decode import slots
from kcap.kafka.bodies import BodyBatch, BodyValues
from kcap.kafka.frames import NO_BODY
from kcap.table.vectors import Vector

if TYPE_CHECKING:
    from kcap.table.vectors import Bools, Int64s

_TEXTS = len(slots.SLOTS)


class Messages:
    """The projected messages of a batch as arrays: those of its projection, then those carried over from earlier ones."""

    def __init__(self, batch: BodyBatch, wanted: Sequence["Int64s"]) -> None:
        self.batch = batch
        projection = batch.projection
        self.count = len(projection)
        numbers = sorted({int(slot) for column in wanted for slot in column[column < NO_BODY]})
        known = [(number, values) for number in numbers if (values := batch.carried.get(number)) is not None]
        self.places = {number: self.count + at for at, (number, _) in enumerate(known)}
        """Slot of a carried message -> its index."""
        self.carried: list[BodyValues] = [values for _, values in known]
        self.status = self._column(projection.status, [values.status for values in self.carried])
        self.mask = self._column(projection.mask, [values.mask for values in self.carried])
        self._columns: dict[int, Int64s] = {}

    @staticmethod
    def _column(projected: Sequence[int], carried: Sequence[int]) -> "Int64s":
        column = np.asarray(projected, np.int64)
        return np.concatenate([column, np.array(carried, np.int64)]) if carried else column

    def column(self, at: int) -> "Int64s":
        """Number `at` of every message; it means something where the mask says so."""
        found = self._columns.get(at)
        if found is None:
            carried = [values.values[at] for values in self.carried]
            found = self._columns[at] = self._column(self.batch.projection.values[at], carried)
        return found

    @cached_property
    def arena(self) -> bytes:
        """The bodies, as bytes whose slices can be looked up."""
        return bytes(self.batch.arena)

    def indices(self, wanted: "Int64s") -> "Int64s":
        """Slots to messages, -1 for none."""
        dense = np.append(np.asarray(self.batch.dense, np.int64), -1)  # the last entry is what NO_BODY picks
        found = dense[np.maximum(wanted, NO_BODY)]
        for row in np.flatnonzero(wanted < NO_BODY).tolist():
            found[row] = self.places.get(int(wanted[row]), -1)
        return found


class Side:
    """The requests, or the responses, of a batch of rows."""

    def __init__(self, messages: Messages, wanted: "Int64s") -> None:
        self.messages = messages
        self.index = messages.indices(wanted)
        """Message of each row, -1 for none."""
        self.here: Bools = self.index >= 0
        self._any = bool(self.here.any())
        self._at = np.maximum(self.index, 0)
        size = len(wanted)
        self.status: Int64s = messages.status[self._at] if self._any else np.zeros(size, np.int64)
        self.mask: Int64s = np.where(self.here, messages.mask[self._at], 0) if self._any else np.zeros(size, np.int64)
        self._seen = int(np.bitwise_or.reduce(self.mask)) if size else 0

    def has(self, bit: int) -> "Bools":
        """For each row whether its message has the slot or text of this presence bit."""
        return (self.mask >> bit & 1).astype(np.bool_)

    def slot(self, name: str) -> Vector:
        """An integer of every row's message."""
        bit = slots.SLOT[name]
        if not self._seen >> bit & 1:
            size = len(self.mask)
            return Vector(np.zeros(size, np.int64), np.zeros(size, np.bool_))
        return Vector(self.messages.column(bit)[self._at], self.has(bit))

    def text(self, name: str) -> dict[int, bytes]:
        """Row -> a text of its message; rows whose message has none, or null, are missing."""
        number = slots.TEXT[name]
        bit = _TEXTS + number
        if not self._seen >> bit & 1:
            return {}
        messages = self.messages
        starts = messages.column(_TEXTS + 2 * number)[self._at]
        ends = messages.column(_TEXTS + 2 * number + 1)[self._at]
        own = self.has(bit) & (self.index < messages.count) & (starts >= 0)
        rows = np.flatnonzero(own)
        arena = messages.arena
        spans = zip(rows.tolist(), starts[rows].tolist(), ends[rows].tolist())
        found = {row: arena[start:end] for row, start, end in spans}
        for row in np.flatnonzero(self.has(bit) & (self.index >= messages.count)).tolist():
            text = messages.carried[int(self.index[row]) - messages.count].texts[number]
            if text is not None:
                found[row] = text
        return found
