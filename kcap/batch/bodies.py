"""The values of the bodies of a batch of rows, a column at a time.

In: the slots of one side's rows, and the `BodyBatch` they refer to. Out: integer vectors, texts, spans of topics. Law: a row
whose body was not retained, or that no program reads, has null in every column. Only distinct texts become Python objects.
"""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kcap import kernels
from kcap.arrays.arrow import Array, binary, coded, take
from kcap.arrays.vectors import Vector, grouped, nothing
from kcap.decode import slots
from kcap.faults import Fault, fault_of
from kcap.kafka.body_batch import BodyBatch
from kcap.kafka.body_topics import ID_BYTES, NO_ID
from kcap.kafka.body_values import NO_TEXTS, BodyValues
from kcap.kafka.frames import NO_BODY
from kcap.limits import TOPICS_OF_MESSAGE
from kcap.model import Buffer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.arrays.vectors import Bools, Int64s

    Bytes = NDArray[np.uint8]
    Matrix = NDArray[np.int64]

_TEXTS = len(slots.SLOTS)
_WIDTH = slots.WIDTH
NO_ROWS: Final = np.zeros(0, np.int64)
SPAN_NS: Final = 60
"""Processor time that Arrow takes per span, ns."""
SHORT: Final = 64
"""Mean size of spans, in bytes, up to which the kernel takes less time than Arrow, which compares whole bodies faster."""


@dataclass(slots=True)
class Pool:
    """The buffers that spans of texts and topics refer to: the batch's bodies, followed by the texts of carried messages.

    The two are separate buffers, because bodies are megabytes and texts of carried messages a few bytes.
    """

    bodies: "Bytes"
    more: bytearray = field(default_factory=bytearray)

    def lay(self, text: Buffer | None) -> tuple[int, int]:
        """Adds a text; returns its span."""
        if text is None:
            return -1, -1
        start = len(self.bodies) + len(self.more)
        self.more += text
        return start, start + len(text)

    def text(self, start: int, end: int) -> bytes:
        base = len(self.bodies)
        return self.bodies[start:end].tobytes() if start < base else bytes(self.more[start - base : end - base])

    def picked(self, starts: "Int64s", ends: "Int64s") -> Array:
        """The bytes of spans as an Arrow array, in the order of the spans."""
        base = len(self.bodies)
        behind = starts >= base
        if not self.more or not behind.any():
            return spans(self.bodies, starts, ends)
        before = np.flatnonzero(~behind)
        places = np.flatnonzero(behind)
        more = np.frombuffer(self.more, np.uint8)
        both: Any = [
            spans(self.bodies, starts[before], ends[before]),
            spans(more, starts[places] - base, ends[places] - base),
        ]
        order = np.empty(len(starts), np.int64)
        order[before], order[places] = np.arange(len(before)), np.arange(len(before), len(starts))
        return take(pa.concat_arrays(both), order)


def beyond(messages: "Int64s") -> "Int64s":
    """The last topics of messages with more than TOPICS_OF_MESSAGE topics, given the message of each topic in order."""
    if len(messages) <= TOPICS_OF_MESSAGE:
        return NO_ROWS
    many = np.flatnonzero(np.bincount(messages) > TOPICS_OF_MESSAGE)
    return np.searchsorted(messages, many, "right") - 1


def spans(data: "Bytes", starts: "Int64s", ends: "Int64s") -> Array:
    """The bytes of spans of one buffer.

    Arrow copies them: entry 2 i of an array over the whole buffer is span i. The other entries lie between two spans and are
    not used.
    """
    size = len(starts)
    if not size:
        return pa.array([], pa.binary())
    offsets = np.empty(2 * size + 1, np.int32)
    offsets[0:-1:2], offsets[1::2] = starts, ends
    offsets[-1] = max(starts[0], min(starts[0] + 2 * int((ends - starts).sum()), len(data)))  # room by the mean length
    return take(binary(pa.binary(), 2 * size, offsets, data), np.arange(0, 2 * size, 2, dtype=np.int32))


class Messages:
    """The projected messages of a batch as arrays. Those carried over from earlier batches are numbered after its own."""

    def __init__(self, batch: BodyBatch, wanted: "list[Int64s]") -> None:
        self.projection = batch.projection
        self.count = len(batch.projection)
        self._dense = np.append(np.asarray(batch.dense, np.int64), -1)  # the last entry is the one for NO_BODY
        found = [column[column < NO_BODY] for column in wanted]
        numbers = grouped(np.concatenate(found))[0].tolist() if any(map(len, found)) else []
        known = [(number, values) for number in numbers if (values := batch.carried.get(number)) is not None]
        self.carried: list[BodyValues] = [values for _, values in known]
        """The carried messages that are not in columns."""
        self.waiting = None if batch.waiting is None else batch.waiting.of({*numbers})
        """Those in columns, which are numbered after the others."""
        known_slots = np.array([number for number, _ in known], np.int64)
        self._known = known_slots if self.waiting is None else np.concatenate([known_slots, self.waiting.slots])
        """Slots of all carried messages, in the order of their numbers."""
        self.total = self.count + len(self._known)
        """Number of messages."""
        self._sorter = self._known.argsort()
        self._arena = batch.arena
        self._ends = np.asarray(batch.ends, np.int64)
        self.pool = Pool(np.frombuffer(batch.arena, np.uint8))
        self._columns: dict[int, Int64s] = {}
        self._faults: dict[int, Fault] = {}

    @property
    def faults(self) -> dict[int, Fault]:
        """Messages whose wrapped records could not be counted, because the reader failed on them."""
        if len(self.projection.wrapped[0]):
            self.column(slots.RECORD_COUNT)
        return self._faults

    @cached_property
    def carried_values(self) -> "Matrix":
        """The numbers of carried messages, with one column per message: those of `Projection.values`, then status and mask."""
        numbers = chain.from_iterable([(*body.values, body.status, body.mask) for body in self.carried])
        rows: Matrix = np.fromiter(numbers, np.int64).reshape(len(self.carried), _WIDTH + 2)
        rows[:, _TEXTS:_WIDTH] = -1
        for row, body in zip(rows, self.carried):
            if body.texts != NO_TEXTS:
                row[_TEXTS:_WIDTH] = [place for text in body.texts for place in self.pool.lay(text)]
        if self.waiting is None:
            return np.ascontiguousarray(rows.T)
        more = self.waiting.numbers.copy()
        texts = more[_TEXTS:_WIDTH]
        texts[texts >= 0] += self._waiting_base
        return np.concatenate([rows.T, more], axis=1)

    @cached_property
    def _waiting_base(self) -> int:
        """Offset in the pool at which the texts and topics of `waiting` begin."""
        assert self.waiting is not None
        return self.pool.lay(self.waiting.data.data)[0]

    def column(self, at: int) -> "Int64s":
        """Number `at` of every message of the projection; it has a meaning only if the mask has its bit."""
        found = self._columns.get(at)
        if found is None:
            found = np.asarray(self.projection.values[at], np.int64)
            if at == slots.RECORD_COUNT and len(self.projection.wrapped[0]):
                found = found + self._wrapped_records()
            self._columns[at] = found
        return found

    def _wrapped_records(self) -> "Int64s":
        """Number of records in compressed messages of magic 0 and 1, which have no header with a count."""
        from kcap.records.record_sets import count_wrapped

        counts = np.zeros(self.count, np.int64)
        body_end = np.zeros(self.count, np.int64)
        dense = self._dense[:-1]
        body_end[dense[dense >= 0]] = self._ends[dense >= 0]
        for message, start, end in zip(*self.projection.wrapped):
            try:
                counts[message] += count_wrapped(self._arena, int(start), int(end), int(body_end[message]))
            except Exception as error:  # noqa: BLE001 - the other values remain valid; the row is flagged
                self._faults[int(message)] = fault_of(error)
        return counts

    @cached_property
    def topics(self) -> "list[Int64s]":
        """Columns message, name start, name end, id start of all topics, ordered by message. The last topic of a message in
        `beyond` represents those that are left out, without a name and an id."""
        projected = [np.asarray(column, np.int64) for column in self.projection.topics]
        if any(values.topics for values in self.carried):
            projected = [np.concatenate([column, more]) for column, more in zip(projected, self._carried_topics())]
        if self.waiting is not None and self.waiting.topics.size:
            message, *places = self.waiting.topics
            more = [message + self.count + len(self.carried), *(np.where(at < 0, -1, at + self._waiting_base) for at in places)]
            projected = [np.concatenate([column, behind]) for column, behind in zip(projected, more)]
        left_out = beyond(projected[0])
        if len(left_out):
            projected = [projected[0], *(column.copy() for column in projected[1:])]
            for column in projected[1:]:
                column[left_out] = -1
        return projected

    def _carried_topics(self) -> "list[Int64s]":
        """The columns of `topics` of carried messages."""
        topics = [values.topics for values in self.carried]
        message = np.repeat(np.arange(self.count, self.count + len(topics)), [len(one) for one in topics])
        sizes = np.frombuffer(b"".join([one.sizes for one in topics]), np.int32).astype(np.int64)
        ends = self.pool.lay(b"".join([one.names for one in topics]))[0] + sizes.clip(0).cumsum()
        starts = np.where(sizes < 0, -1, ends - sizes)
        ids = np.full(len(message), -1)
        if any(one.ids for one in topics):
            first = self.pool.lay(b"".join([one.ids or bytes(ID_BYTES * len(one)) for one in topics]))[0]
            ids = first + ID_BYTES * np.arange(len(message))
        return [message, starts, np.where(sizes < 0, -1, ends), ids]

    @cached_property
    def topic_names(self) -> "tuple[Int64s, list[bytes]]":
        """The index of each topic's name, -1 for none, and the names."""
        _, starts, ends, _ = self.topics
        return encoded(self.pool, starts, ends)

    @cached_property
    def topic_ids(self) -> "tuple[Int64s, list[bytes]]":
        """The index of each topic's id, -1 for none, and the ids."""
        return encoded_ids(self.pool, self.topics[3])

    def indices(self, wanted: "Int64s") -> "Int64s":
        """The message of each slot; -1 for none."""
        found: Int64s = self._dense.take(np.maximum(wanted, NO_BODY))
        rows = np.flatnonzero(wanted < NO_BODY)
        if len(rows):
            numbers = wanted[rows]
            places = np.append(self._sorter, len(self._known))[np.searchsorted(self._known, numbers, sorter=self._sorter)]
            there = np.append(self._known, NO_BODY)[places] == numbers
            found[rows] = np.where(there, self.count + places, -1)
        return found


class SideColumns:
    """The requests, or the responses, of a batch of rows."""

    def __init__(self, messages: Messages, wanted: "Int64s") -> None:
        self.messages = messages
        self.index = messages.indices(wanted)
        """Message of each row; -1 for none."""
        self.here: Bools = self.index >= 0
        self._at = np.maximum(self.index, 0)
        self._carried = np.flatnonzero(self.index >= messages.count)
        """Rows whose message was carried over."""
        self._which = self.index[self._carried] - messages.count
        self._at[self._carried] = 0
        self.status: Int64s = self._numbers(messages.projection.status, _WIDTH)
        self.mask: Int64s = np.where(self.here, self._numbers(messages.projection.mask, _WIDTH + 1), 0)
        self._seen = int(np.bitwise_or.reduce(self.mask)) if len(wanted) else 0

    def _numbers(self, column: Any, at: int) -> "Int64s":
        """One number of every row's message: from a column of the projection, or number `at` of a carried message."""
        found: Int64s = np.asarray(column, np.int64).take(self._at) if len(column) else np.zeros(len(self._at), np.int64)
        if len(self._carried):
            found[self._carried] = self.messages.carried_values[at][self._which]
        return found

    def slot(self, name: str) -> Vector:
        """An integer of every row's message."""
        return self._pick(slots.SLOT[name], slots.SLOT[name])

    def texts(self, name: str) -> tuple["Int64s", "Int64s", "Int64s"]:
        """Rows whose message has a text, and the text's start and end in each; a null text is -1."""
        bit, at = _TEXTS + slots.TEXT[name], _TEXTS + 2 * slots.TEXT[name]
        if not self._seen >> bit & 1:
            return NO_ROWS, NO_ROWS, NO_ROWS
        rows = np.flatnonzero(self.mask & 1 << bit)
        columns = [self.messages.column(at), self.messages.column(at + 1)]
        messages = self._at[rows]
        starts, ends = (column.take(messages) if len(column) else np.zeros(len(rows), np.int64) for column in columns)
        carried = np.flatnonzero(self.index[rows] >= self.messages.count)
        if len(carried):
            which = self.index[rows[carried]] - self.messages.count
            starts[carried], ends[carried] = self.messages.carried_values[at : at + 2, which]
        return rows, starts, ends

    def _pick(self, bit: int, at: int) -> Vector:
        if not self._seen >> bit & 1:
            return nothing(len(self.mask))
        return Vector(self._numbers(self.messages.column(at), at), (self.mask & 1 << bit).astype(np.bool_))


def encoded(pool: Pool, starts: "Int64s", ends: "Int64s") -> tuple["Int64s", list[bytes]]:
    """Spans as indexes of the distinct contents, and these contents; the index of a span that starts at -1 is -1."""
    if (ends - starts).sum() <= SHORT * len(starts) and kernels.worthwhile(SPAN_NS * len(starts)):
        return _compiled(pool, starts, ends)
    here = np.flatnonzero(starts >= 0)
    if len(here) == len(starts):
        numbers, texts = coded(pool.picked(starts, ends))
        return numbers.astype(np.int64), texts
    some, texts = coded(pool.picked(starts[here], ends[here]))
    scattered = np.full(len(starts), -1, np.int64)
    scattered[here] = some
    return scattered, texts


def _compiled(pool: Pool, starts: "Int64s", ends: "Int64s") -> tuple["Int64s", list[bytes]]:
    """As `encoded`, by a kernel."""
    from kcap.batch.span_kernels import number_spans

    size = len(starts)
    table, (numbers, firsts) = np.zeros(2 << size.bit_length(), np.int32), np.empty((2, size), np.int64)
    more = np.frombuffer(pool.more, np.uint8)
    starts, ends = np.ascontiguousarray(starts), np.ascontiguousarray(ends)
    count = number_spans(pool.bodies, more, starts, ends, table, numbers, firsts, kernels.SEED)
    first = firsts[:count]
    return numbers, [pool.text(start, end) for start, end in zip(starts[first].tolist(), ends[first].tolist())]


def encoded_ids(pool: Pool, starts: "Int64s") -> tuple["Int64s", list[bytes]]:
    """The same for ids, which all have one size; Kafka's zero uuid means none."""
    numbers, ids = encoded(pool, starts, starts + ID_BYTES)
    if NO_ID in ids:
        numbers[numbers == ids.index(NO_ID)] = -1
    return numbers, ids
