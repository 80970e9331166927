"""The carried values of bodies whose requests wait for a later batch, as columns.

In: messages of a projection. Out: their numbers, texts and topics by slot, which need no other buffer. Law: `values` equals
what `BodyBatch.values` gives for each body in its own batch. Only the fast path has many such requests. Bodies with rare
properties (damage, retained bytes, many topics) are left to `BodyCollector.carry`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kcap.decode import slots
from kcap.kafka.body_topics import ID_BYTES, topics_of
from kcap.kafka.body_values import TEXTS, BodyValues, entries_of, places_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]

_WIDTH: Final = slots.WIDTH
STATUS, MASK = _WIDTH, _WIDTH + 1
"""Rows of `WaitingBodies.numbers` after those of `Projection.values`."""


@dataclass(frozen=True, slots=True)
class WaitingBodies:
    """Carried bodies, one per column."""

    slots: "Int64s"
    """Slots, which are below NO_BODY and ascending."""
    numbers: Any
    """int64[STATUS + 2, n]: as `Projection.values`, then status and mask. Texts are spans of `data`."""
    topics: Any
    """int64[4, t]: as `Projection.topics`, with spans of `data`."""
    data: Any
    """Texts, names and ids, as uint8."""

    def __len__(self) -> int:
        return len(self.slots)

    def topic_counts(self, wanted: "Int64s") -> "Int64s":
        """Number of topics of the body of each slot; 0 if it is not here."""
        counts = np.append(np.bincount(self.topics[0], minlength=len(self)), 0)
        found: Int64s = counts[self.places(wanted)]
        return found

    def places(self, wanted: "Int64s") -> "Int64s":
        """Index of the body of each slot; -1 if it is not here."""
        places = np.searchsorted(self.slots, wanted)
        found: Int64s = np.where(np.searchsorted(self.slots, wanted, "right") > places, places, -1)
        return found

    def picked(self, places: "Int64s") -> "WaitingBodies":
        """The bodies at these indexes, which are ascending."""
        if len(places) == len(self):
            return self
        return WaitingBodies(self.slots[places], *packed(self.data, self.numbers[:, places], self.topics, places))

    def without(self, settled: set[int]) -> "WaitingBodies | None":
        """The bodies with other slots; None if none is left."""
        left = np.ones(len(self), np.bool_)
        left[self._among(settled)] = False
        return self.picked(np.flatnonzero(left)) if left.any() else None

    def of(self, wanted: set[int]) -> "WaitingBodies":
        """Those of these slots that are here."""
        return self.picked(self._among(wanted))

    def _among(self, wanted: set[int]) -> "Int64s":
        places = self.places(np.fromiter(wanted, np.int64))
        return np.sort(places[places >= 0])

    def values(self, slot: int) -> BodyValues | None:
        """All values of one body; None if it is not here."""
        at = int(self.places(np.array([slot]))[0])
        if at < 0:
            return None
        row = self.numbers[:, at].tolist()
        first, end = np.searchsorted(self.topics[0], [at, at + 1]).tolist()
        arena = memoryview(self.data)
        spans = zip(row[TEXTS:_WIDTH:2], row[TEXTS + 1 : _WIDTH : 2])
        here = row[MASK] >> TEXTS
        texts = tuple(bytes(arena[low:high]) if here >> bit & 1 and low >= 0 else None for bit, (low, high) in enumerate(spans))
        topics = topics_of(arena, *self.topics[1:, first:end].tolist())
        return BodyValues(row[STATUS], row[MASK], tuple(row[:_WIDTH]), texts, topics)


def packed(arena: Any, numbers: Any, topics: Any, places: "Int64s") -> tuple[Any, Any, Any]:
    """Returns the three tables of `WaitingBodies` for messages whose texts and topics are spans of `arena`. `numbers` are those
    of these messages, and this function may change them. `topics` are those of all messages, and `places` are the messages, in
    order.
    """
    first, counts = entries_of(topics[0], places)
    entries = places_of(first, counts)
    _, starts, ends, ids = (np.asarray(column)[entries].astype(np.int64) for column in topics)
    texts = numbers[TEXTS:_WIDTH:2], numbers[TEXTS + 1 : _WIDTH : 2]
    lows = np.concatenate([texts[0].ravel(), starts, ids])
    highs = np.concatenate([texts[1].ravel(), ends, ids + ID_BYTES])
    sizes = np.where(lows < 0, 0, highs - lows)
    data = arena[places_of(lows, sizes)]
    highs = sizes.cumsum()
    lows, highs = np.where(lows < 0, -1, highs - sizes), np.where(lows < 0, -1, highs)
    cut = texts[0].size
    for table, spans in ((texts[0], lows), (texts[1], highs)):
        table[:] = spans[:cut].reshape(table.shape)
    owners = np.repeat(np.arange(len(places)), counts)
    behind = cut + len(entries)
    return numbers, np.array([owners, lows[cut:behind], highs[cut:behind], lows[behind:]]), data


def both(first: WaitingBodies, second: WaitingBodies | None) -> WaitingBodies:
    """Joins the bodies of two tables; the slots of the first are below those of the second."""
    if second is None:
        return first
    shift, numbers, topics = len(first.data), second.numbers.copy(), second.topics.copy()
    for spans in (numbers[TEXTS:_WIDTH], topics[1:]):
        spans[spans >= 0] += shift
    topics[0] += len(first)
    return WaitingBodies(
        np.concatenate([first.slots, second.slots]),
        np.concatenate([first.numbers, numbers], axis=1),
        np.concatenate([first.topics, topics], axis=1),
        np.concatenate([first.data, second.data]),
    )
