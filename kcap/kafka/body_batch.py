"""The bodies of a batch in one buffer, projected.

In: byte ranges with the program that reads them. Out: the values of each body, by slot. Law: both engines give the same values.
A body that cannot be read is in `unread`, and raises no exception.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from kcap.decode import slots
from kcap.decode.interpreter import MALFORMED
from kcap.decode.programs import with_partitions
from kcap.decode.projection import Engine, Projection, project, project_some
from kcap.faults import fault_of
from kcap.kafka.body_topics import NO_TOPICS, topics_of
from kcap.kafka.body_values import NO_TEXTS, TEXTS, UNKNOWN, WORDS, BodyValues, entries_of, in_wrapped, piece_of
from kcap.kafka.frames import NO_BODY
from kcap.limits import OVERTAKEN_BODY_BYTES, PARTITIONS_PROJECTED_MAX
from kcap.model import Buffer

if TYPE_CHECKING:
    from kcap.kafka.waiting_bodies import WaitingBodies

Spans = Sequence[Sequence[int]]
"""Columns of one message's entries in a side buffer of the projection, without the first column."""


@dataclass(frozen=True, slots=True)
class BodyBatch:
    """A closed batch. A slot from 0 on is body `dense[slot]` of the projection, or none; others are in `carried` or
    `waiting`."""

    arena: Buffer
    starts: Sequence[int]
    ends: Sequence[int]
    dense: Sequence[int]
    """Slot -> message of the projection; -1 for a body that no program reads."""
    projection: Projection
    carried: dict[int, BodyValues]
    keep: bool = False
    """Whether carried bodies retain their bytes."""
    partitioned: bool = False
    """Whether the projection has the partitions of all its messages except Metadata."""
    room: Any = None
    """The bytes of the arena, followed by free ones, as numpy uint8[n], if there is such a buffer. Data that is written there
    stays until other data is."""
    waiting: "WaitingBodies | None" = None
    """Bodies that earlier batches of the fast path carried; none of them is damaged."""

    def unread(self) -> dict[int, str]:
        """Slots of truncated and malformed bodies, with the word for which of the two it is."""
        status = self.projection.status
        found = {at: WORDS[int(status[at])] for at in positions(status, WORDS)} | self.projection.faults
        slots_of = {int(self.dense[slot]): slot for slot in positions(self.dense, found)} if found else {}
        carried = {number: v.fault or WORDS[v.status] for number, v in self.carried.items() if v.status in WORDS}
        return {slots_of[at]: word for at, word in found.items()} | carried

    def values(self, slot: int) -> BodyValues | None:
        """All projected values of one body; None if no program read it."""
        if slot < NO_BODY:
            return carried_values(self.carried, self.waiting, slot)
        at = int(self.dense[slot]) if slot >= 0 else -1
        if at < 0:
            return None
        projection = self.projection
        topics, wrapped = (
            [column[bisect_left(messages, at) : bisect_right(messages, at)] for column in parts]
            for messages, *parts in (projection.topics, projection.wrapped)
        )
        status, mask, *row = (int(column[at]) for column in (projection.status, projection.mask, *projection.values))
        return self._values(at, status, mask, tuple(row), topics, wrapped, int(self.starts[slot]), int(self.ends[slot]))

    def several(self, wanted: Any) -> "Iterator[BodyValues | None]":
        """Yields `values` of slots from 0 on, for a batch that the compiled engine projected."""
        projection: Any = self.projection
        if not len(wanted) or not len(projection.status):  # no program read any of them
            return iter([None] * len(wanted))
        at = self.dense[wanted]
        spans = self.starts[wanted].tolist(), self.ends[wanted].tolist()
        numbers = projection.status[at].tolist(), projection.mask[at].tolist()
        rows = zip(*(column[at].tolist() for column in projection.values))
        every = zip(at.tolist(), *numbers, rows, _spans(projection.topics, at), _spans(projection.wrapped, at), *spans)
        return (None if place < 0 else self._values(place, *known) for place, *known in every)

    def _values(
        self, at: int, status: int, mask: int, row: tuple[int, ...], topics: Spans, wrapped: Spans, start: int, end: int
    ) -> BodyValues:  # fmt: skip
        """Values of message `at` of the projection, whose body is `arena[start:end]`, from its status, mask, numbers, and the
        spans of its topics and of its wrapped messages."""
        arena, fault = self.arena, self.projection.faults.get(at)
        try:
            if len(wrapped[0]):  # the projection does not count the records inside them
                count = row[slots.RECORD_COUNT] + in_wrapped(arena, zip(*wrapped), end)
                row = *row[: slots.RECORD_COUNT], count, *row[slots.RECORD_COUNT + 1 :]
        except Exception as error:  # noqa: BLE001 - the other values of the message remain valid
            fault, status = fault_of(error), MALFORMED
        texts = NO_TEXTS
        if mask >> TEXTS and max(row[TEXTS::2]) >= 0:
            texts = tuple(piece_of(arena, row[TEXTS + 2 * i], row[TEXTS + 2 * i + 1]) for i in range(len(NO_TEXTS)))
        data = bytes(arena[start:end]) if self.keep or end - start <= OVERTAKEN_BODY_BYTES else b""
        return BodyValues(status, mask, row, texts, topics_of(arena, *topics), data, fault)

    def token(self, slot: int) -> BodyValues | None:
        """A raw SASL token, which no program reads; None if it was too large to retain."""
        data = bytes(self.arena[self.starts[slot] : self.ends[slot]])
        nothing = (0,) * slots.WIDTH, NO_TEXTS, NO_TOPICS
        return BodyValues(UNKNOWN, 0, *nothing, data) if len(data) <= OVERTAKEN_BODY_BYTES else None


def carried_values(carried: dict[int, BodyValues], waiting: "WaitingBodies | None", slot: int) -> BodyValues | None:
    """The values of a carried body; None if it is in neither table."""
    found = carried.get(slot)
    return waiting.values(slot) if found is None and waiting is not None else found


def positions(values: Sequence[int], wanted: Collection[int]) -> list[int]:
    """Positions at which a column has one of the wanted values."""
    if isinstance(values, list):
        some = frozenset(wanted)
        return [at for at, value in enumerate(values) if value in some]
    import numpy as np

    column = np.asarray(values)
    few = len(wanted) <= len(WORDS)  # `isin` would sort the column
    nowhere = np.zeros(len(column), np.bool_)
    found = reduce(or_, (column == value for value in wanted), nowhere) if few else np.isin(column, list(wanted))
    places: list[int] = found.nonzero()[0].tolist()
    return places


def _spans(columns: Any, at: Any) -> Iterator[Spans]:
    """Yields, for each of these messages, its entries in a table that is ordered by message."""
    messages, *parts = columns
    first, counts = (found.tolist() for found in entries_of(messages, at))
    none = [()] * len(parts)
    return ([part[low : low + count].tolist() for part in parts] if count else none for low, count in zip(first, counts))


def projected(
    arena: Buffer,
    starts: Any,
    ends: Any,
    programs: Any,
    carried: dict[int, BodyValues],
    *,
    compiled: bool,
    keep: bool = False,
    partitions: bool = False,
    room: Any = None,
) -> BodyBatch:
    """Projects bodies in one buffer; `programs` has UNKNOWN for bodies that no program reads. With `compiled`, the numbers are
    arrays, otherwise lists. With `partitions`, partitions are projected unless there are very many. `room` is that of
    `BodyBatch`."""
    dense: Any
    spans: tuple[Any, ...]
    if compiled:
        import numpy as np

        here = programs >= 0
        dense = np.where(here, np.cumsum(here) - 1, -1)
        spans = (starts, ends, programs) if here.all() else (starts[here], ends[here], programs[here])
    else:
        read = [at for at, index in enumerate(programs) if index >= 0]
        dense = [-1] * len(programs)
        for number, at in enumerate(read):
            dense[at] = number
        spans = [starts[at] for at in read], [ends[at] for at in read], [programs[at] for at in read]
    engine: Engine = "jit" if compiled else "auto"
    projection = _with_partitions(arena, spans, engine) if partitions else None
    found = project(arena, *spans, engine=engine) if projection is None else projection
    return BodyBatch(arena, starts, ends, dense, found, carried, keep, projection is not None, room)


def _with_partitions(arena: Buffer, spans: tuple[Any, ...], engine: Engine) -> Projection | None:
    """The projection with all partitions; None if there are too many. `spans`: starts, ends and programs."""
    starts, ends, programs = spans
    every: Any = list(map(with_partitions, programs)) if isinstance(programs, list) else mapped(programs, with_partitions)
    return project_some(arena, starts, ends, every, PARTITIONS_PROJECTED_MAX, engine=engine)


def mapped(numbers: Any, make: Callable[[int], int]) -> Any:
    """Applies a function to an array of small numbers from 0 on, calling it once for each distinct number."""
    import numpy as np

    made = np.zeros(numbers.max(initial=-1) + 1, np.int64)
    made[numbers] = 1
    some = np.flatnonzero(made)
    made[some] = [make(number) for number in some.tolist()]
    return made.take(numbers)
