"""What the bodies of a batch of rows tell, a column at a time.

In: the slots of one side's rows and the `BodyBatch` they point into. Out: integer vectors, texts, spans of topics. Law: a row
whose body was not kept, or that no program reads, has null in every column; only distinct texts pass through Python.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kcap.decode import slots
from kcap.kafka.bodies import BodyBatch, BodyValues
from kcap.kafka.frames import NO_BODY
from kcap.table.arrow import binary, coded
from kcap.table.vectors import Vector, nothing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.table.vectors import Bools, Int64s

    Bytes = NDArray[np.uint8]

_TEXTS = len(slots.SLOTS)
ID_BYTES = 16


class Messages:
    """The projected messages of a batch as arrays: those of its projection, then those carried over from earlier ones.

    `bytes` is what spans of texts and topics point into: the batch's bodies, then the texts of carried messages.
    """

    def __init__(self, batch: BodyBatch, wanted: Sequence["Int64s"]) -> None:
        self._projection = batch.projection
        self.count = len(batch.projection)
        self._dense = np.append(np.asarray(batch.dense, np.int64), -1)  # the last entry is what NO_BODY picks
        numbers = sorted({int(slot) for column in wanted for slot in column[column < NO_BODY]})
        known = [(number, values) for number in numbers if (values := batch.carried.get(number)) is not None]
        self._places = {number: self.count + at for at, (number, _) in enumerate(known)}
        self.carried: list[BodyValues] = [values for _, values in known]
        self._arena = batch.arena
        self.bytes: Bytes = np.frombuffer(batch.arena, np.uint8)
        self._texts, self._topics = self._append()
        self.status = self._column(batch.projection.status, [values.status for values in self.carried])
        self.mask = self._column(batch.projection.mask, [values.mask for values in self.carried])
        self._columns: dict[int, Int64s] = {}

    def _append(self) -> tuple[list[list[int]], list[tuple[int, int, int, int]]]:
        """Lays the texts of carried messages behind the bodies; their spans, and their topics as the projection has them."""
        base, extra = len(self.bytes), bytearray()

        def lay(text: bytes | None) -> tuple[int, int]:
            if text is None:
                return -1, -1
            start = base + len(extra)
            extra.extend(text)
            return start, base + len(extra)

        texts = [[place for text in values.texts for place in lay(text)] for values in self.carried]
        topics = [
            (at, *lay(name), lay(uuid)[0]) for at, values in enumerate(self.carried, self.count) for name, uuid in values.topics
        ]
        if extra:
            self.bytes = np.concatenate([self.bytes, np.frombuffer(extra, np.uint8)])
        return texts, topics

    @staticmethod
    def _column(projected: Sequence[int], carried: Sequence[int]) -> "Int64s":
        column = np.asarray(projected, np.int64)
        return np.concatenate([column, np.array(carried, np.int64)]) if carried else column

    def column(self, at: int) -> "Int64s":
        """Number `at` of every message; it means something where the mask says so."""
        found = self._columns.get(at)
        if found is None:
            carried = [texts[at - _TEXTS] for texts in self._texts] if at >= _TEXTS else [v.values[at] for v in self.carried]
            found = self._column(self._projection.values[at], carried)
            if at == slots.RECORD_COUNT and len(self._projection.wrapped[0]):
                found = found + self._wrapped_records()
            self._columns[at] = found
        return found

    def _wrapped_records(self) -> "Int64s":
        """Records inside of compressed messages of magic 0 and 1, which have no header that counts them."""
        from kcap.records.sets import count_wrapped

        counts = np.zeros(self.count + len(self.carried), np.int64)
        for message, start, end in zip(*self._projection.wrapped):
            counts[message] += count_wrapped(self._arena, int(start), int(end))
        return counts

    @cached_property
    def topics(self) -> "list[Int64s]":
        """Columns message, name start, name end, id start of all topics; messages in order."""
        carried = list(zip(*self._topics)) or [()] * 4
        return [self._column(column, more) for column, more in zip(self._projection.topics, carried)]

    def indices(self, wanted: "Int64s") -> "Int64s":
        """Slots to messages, -1 for none."""
        found: Int64s = self._dense[np.maximum(wanted, NO_BODY)]
        for row in np.flatnonzero(wanted < NO_BODY).tolist():
            found[row] = self._places.get(int(wanted[row]), -1)
        return found


class Side:
    """The requests, or the responses, of a batch of rows."""

    def __init__(self, messages: Messages, wanted: "Int64s") -> None:
        self.messages = messages
        self.index = messages.indices(wanted)
        """Message of each row, -1 for none."""
        self.here: Bools = self.index >= 0
        self._at = np.maximum(self.index, 0)
        size = len(wanted)
        there = bool(self.here.any())
        self.status: Int64s = messages.status[self._at] if there else np.zeros(size, np.int64)
        self.mask: Int64s = np.where(self.here, messages.mask[self._at], 0) if there else np.zeros(size, np.int64)
        self._seen = int(np.bitwise_or.reduce(self.mask)) if size else 0

    def slot(self, name: str) -> Vector:
        """An integer of every row's message."""
        return self._pick(slots.SLOT[name], slots.SLOT[name])

    def text(self, name: str) -> tuple[Vector, Vector]:
        """Starts and ends of a text of every row's message; a null text is -1."""
        bit, at = _TEXTS + slots.TEXT[name], _TEXTS + 2 * slots.TEXT[name]
        return self._pick(bit, at), self._pick(bit, at + 1)

    def _pick(self, bit: int, at: int) -> Vector:
        if not self._seen >> bit & 1:
            return nothing(len(self.mask))
        return Vector(self.messages.column(at)[self._at], (self.mask >> bit & 1).astype(np.bool_))


def encoded(data: "Bytes", starts: "Int64s", ends: "Int64s") -> tuple["Int64s", list[bytes]]:
    """Spans of some bytes as numbers of the distinct contents, and those; the number of a span that starts at -1 is -1."""
    absent = starts < 0
    sizes = np.where(absent, 0, ends - starts)
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    picked = data[np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)]
    numbers, texts = coded(binary(pa.binary(), len(sizes), offsets, picked))
    return np.where(absent, -1, numbers), texts


def encoded_ids(data: "Bytes", starts: "Int64s") -> tuple["Int64s", list[bytes]]:
    """The same for ids, which are all of one size."""
    absent = starts < 0
    picked = np.zeros((0, ID_BYTES), np.uint8)
    if len(data):
        picked = data[np.where(absent, 0, starts)[:, None] + np.arange(ID_BYTES)]
    numbers, ids = coded(binary(pa.binary(ID_BYTES), len(starts), picked))
    return np.where(absent, -1, numbers), ids
