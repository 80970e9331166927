"""Topics of a batch of rows: names and ids of both messages, in wire order (response, then request), each topic once.

In: the two sides of the rows. Out: two list columns of equal shape. Law: an entry has a name, an id, or both. A name in one
message, and the same name with an id in the other, are the same topic.
"""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kcap import kernels
from kcap.arrays.arrow import Array, lists, nulls, take
from kcap.arrays.vectors import grouped
from kcap.batch.bodies import Messages, SideColumns, beyond
from kcap.wire.text import name_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.arrays.vectors import Bools, Int64s

    Columns = NDArray[np.int64]
    """Row, name and id of topics, a row each."""

TOPIC_NS: Final = 700
"""Processor time of a topic in Python, ns."""
Pair = tuple[int, int]
"""Index of the name and of the id, -1 for none."""


class TopicColumns:
    """The topics of all rows, numbered as they come."""

    def __init__(self, messages: Messages, request: SideColumns, response: SideColumns, rows: int) -> None:
        row_of = np.full(messages.total, -1, np.int64)
        order = np.zeros(len(row_of), np.int64)
        for at, side in enumerate((response, request)):
            owners = np.flatnonzero(side.here)
            row_of[side.index[owners]] = owners
            order[side.index[owners]] = at
        message = messages.topics[0]
        row = row_of.take(message)
        cut = row_of[message[beyond(message)]]
        self.cut = grouped(cut[cut >= 0])[0]
        """Rows with a message that has more topics than these."""
        waited = [at for at, values in enumerate(messages.carried, messages.count) if values.cut]
        self.left_out = row_of[np.array(waited, np.int64)]
        """Rows with a message that waited with too many topics."""
        (name, self._names), (number, self._ids) = messages.topic_names, messages.topic_ids
        if (row < 0).any():
            used = row >= 0
            message, name, number, row = message[used], name[used], number[used], row[used]
        self._both = row, name, number
        lay = self._compiled if kernels.worthwhile(TOPIC_NS * len(row)) else self._laid
        self._name, self._uuid, self._counts = lay(row * 2 + order[message], name, number, rows)

    def _compiled(self, keys: "Int64s", name: "Int64s", uuid: "Int64s", rows: int) -> "tuple[Int64s, Int64s, Int64s]":
        """As `_laid`, by a kernel."""
        from kcap.batch.topic_kernels import topics_of_rows

        ends, counts = np.zeros(2 * rows, np.int64), np.empty(rows, np.int64)
        by_name, by_id = (np.full((2, len(known)), -1, np.int64) for known in (self._names, self._ids))
        most = int(np.bincount(keys >> 1, minlength=1).max(initial=0))
        table, out = np.full(2 << most.bit_length(), -1, np.int64), np.empty((2, len(keys)), np.int64)
        count = topics_of_rows(keys, name, uuid, ends, np.empty_like(keys), by_name, by_id, table, out, counts, kernels.SEED)
        return out[0, :count], out[1, :count], counts

    def _laid(self, keys: "Int64s", name: "Int64s", uuid: "Int64s", rows: int) -> "tuple[Int64s, Int64s, Int64s]":
        """Name and id of each row's topics, each once, and how many each row has. `keys`: twice the row, plus 1 for a
        request."""
        sort = np.argsort(keys, kind="stable")
        named = (name >= 0) | (uuid >= 0)
        if not named.all():
            sort = sort[named[sort]]
        row = keys[sort] >> 1
        topics = np.array([row, name[sort], uuid[sort]])
        if len(row):
            fresh = np.ones(len(row), np.bool_)
            fresh[1:] = (topics[:, 1:] != topics[:, :-1]).any(axis=0)
            topics = topics[:, fresh]
            several = np.zeros(topics.shape[1], np.bool_)
            several[1:] = topics[0, 1:] == topics[0, :-1]
            several[:-1] |= several[1:]
            if several.any():
                topics = in_rows(topics[:, ~several], self._once(topics[:, several]))
        row, name, uuid = topics
        return name, uuid, np.bincount(row, minlength=rows)

    def _once(self, topics: "Columns") -> "Columns":
        """Merges equal topics that are not adjacent, and halves of one topic."""
        row, name, uuid = topics
        code = (row * (len(self._names) + 1) + name + 1) * (len(self._ids) + 1) + uuid + 1
        topics = topics[:, np.sort(grouped(code)[1])]
        row, name, uuid = topics
        size = int(row[-1]) + 1
        counts = np.bincount(row, minlength=size)
        mixed = np.zeros(size, np.bool_)
        for column in (name, uuid):
            lacking = np.bincount(row[column < 0], minlength=size)
            mixed |= (lacking > 0) & (lacking < counts)
        if not mixed.any():
            return topics
        halves = mixed[row]
        joined = whole(row[halves].tolist(), name[halves].tolist(), uuid[halves].tolist())
        return in_rows(topics[:, ~halves], joined)

    @cached_property
    def _id_texts(self) -> list[str]:
        return [urlsafe_b64encode(uuid)[:22].decode() for uuid in self._ids]

    def pairs(self) -> list[tuple[int, str, str]]:
        """Row, name and id of topics that one message gives with both, each once, with the first row that has it."""
        row, name, uuid = self._both
        both = np.flatnonzero((name >= 0) & (uuid >= 0))
        if not len(both):
            return []
        both = both[np.argsort(row[both], kind="stable")]  # bodies are in the order in which the two paths took them
        row, name, uuid = row[both], name[both], uuid[both]
        first = np.sort(grouped(name * len(self._ids) + uuid)[1])
        named = zip(row[first].tolist(), name[first].tolist(), uuid[first].tolist())
        return [(at, name_text(self._names[text]), self._id_texts[number]) for at, text, number in named]

    def mentions(self, name: str, uuid: str) -> "Bools":
        """Which rows have a message with a topic of that name or id."""
        found, (row, names, ids) = np.zeros(len(self._counts), np.bool_), self._both
        if name.encode() in self._names:
            found[row[names == self._names.index(name.encode())]] = True
        if uuid in self._id_texts:
            found[row[ids == self._id_texts.index(uuid)]] = True
        return found

    def nameless(self) -> list[str]:
        """The ids that occur without a name."""
        return [self._id_texts[at] for at in grouped(self._uuid[self._name < 0])[0].tolist()]

    def names(self, known: Mapping[str, str] = MappingProxyType({})) -> Array:
        """The column `topics`; `known` has names of ids that the messages themselves do not give."""
        texts, name = [name_text(text) for text in self._names], self._name
        alone = name < 0
        if known and alone.any():
            place = np.full(len(self._ids) + 1, -1, np.int64)
            for at in grouped(self._uuid[alone])[0].tolist():
                found = known.get(self._id_texts[at])
                if found is not None:
                    place[at] = len(texts)
                    texts.append(found)
            name = np.where(alone, place[self._uuid], name)
        return self._lists(texts, name)

    def ids(self) -> Array:
        """The column `topic_ids`, in Kafka's notation of uuids."""
        return self._lists(self._id_texts, self._uuid)

    def _lists(self, known: list[str], places: "Int64s") -> Array:
        counts = self._counts
        if not len(places):
            return nulls(len(counts), pa.list_(pa.string()))
        offsets = np.zeros(len(counts) + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        values = take(pa.array([*known, None], pa.string()), np.where(places < 0, len(known), places))
        return lists(offsets, values, counts == 0)


def in_rows(some: "Columns", others: "Columns") -> "Columns":
    """Merges topics of some rows with those of others, in the order of the rows."""
    both = np.concatenate([some, others], axis=1)
    return both[:, np.argsort(both[0], kind="stable")]


def whole(rows: list[int], names: list[int], ids: list[int]) -> "NDArray[np.int64]":
    """Rows, names and ids, with the halves of a topic merged into one entry."""
    out: list[tuple[int, int, int]] = []
    found = RowTopics()
    before = -1
    for row, name, uuid in zip(rows, names, ids):
        if row != before:
            out += [(before, *pair) for pair in found.pairs]
            found, before = RowTopics(), row
        found.join(name, uuid)
    out += [(before, *pair) for pair in found.pairs]
    return np.array(out, np.int64).T


class RowTopics:
    """The topics of one row. An entry with only a name or only an id gets the other half from the first topic that has it."""

    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        self._places: dict[Pair, int] = {}
        """Entry -> its index."""
        self._first: dict[Pair, int] = {}
        """A name or an id alone -> index of the first entry that has it."""

    def join(self, name: int, uuid: int) -> None:
        """Adds a topic unless it, or its other half, is there."""
        halves = (name, -1), (-1, uuid)
        if -1 in (name, uuid):
            at = self._first.get((name, uuid))
        else:
            at = min((place for pair in ((name, uuid), *halves) if (place := self._places.get(pair)) is not None), default=None)
        if at is None:
            at = len(self.pairs)
            self.pairs.append((name, uuid))
        else:
            known = self.pairs[at]
            del self._places[known]
            self.pairs[at] = max(name, known[0]), max(uuid, known[1])
        self._places[self.pairs[at]] = at
        for half in halves:
            self._first[half] = min(at, self._first.get(half, at))
