"""Topics of a batch of rows: names and ids of both messages, in wire order (response, then request), each topic once.

In: the two sides of the rows. Out: two list columns of equal shape. Law: an entry has a name, an id, or both; one message's
name and the other's name with id are the same topic.
"""

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kcap.table.arrow import Array, lists, nulls, take
from kcap.table.bodies import Messages, Side, encoded, encoded_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kcap.table.vectors import Int64s

NO_ID = bytes(16)
"""Kafka's zero uuid: no id."""
Pair = tuple[int, int]
"""Index of the name and of the id, -1 for none."""


class Topics:
    """The topics of all rows, numbered as they come."""

    def __init__(self, messages: Messages, request: Side, response: Side, rows: int) -> None:
        row_of = np.full(messages.count + len(messages.carried), -1, np.int64)
        order = np.zeros(len(row_of), np.int64)
        for at, side in enumerate((response, request)):
            owners = np.flatnonzero(side.here)
            row_of[side.index[owners]] = owners
            order[side.index[owners]] = at
        message, start, end, uuid = messages.topics
        row = row_of[message]
        if (row < 0).any():
            used = row >= 0
            message, start, end, uuid, row = message[used], start[used], end[used], uuid[used], row[used]
        name, self._names = encoded(messages.bytes, start, end)
        number, self._ids = encoded_ids(messages.bytes, uuid)
        if NO_ID in self._ids:
            number[number == self._ids.index(NO_ID)] = -1
        sort = np.argsort(row * 2 + order[message], kind="stable")
        named = (name >= 0) | (number >= 0)
        if not named.all():
            sort = sort[named[sort]]
        self._lay(row[sort], name[sort], number[sort], rows)

    def _lay(self, row: "Int64s", name: "Int64s", uuid: "Int64s", rows: int) -> None:
        """Keeps the first of equal topics of a row; counts what stays."""
        if len(row):
            fresh = np.ones(len(row), np.bool_)
            fresh[1:] = (row[1:] != row[:-1]) | (name[1:] != name[:-1]) | (uuid[1:] != uuid[:-1])
            row, name, uuid = row[fresh], name[fresh], uuid[fresh]
            several = np.zeros(len(row), np.bool_)
            several[1:] = row[1:] == row[:-1]
            if several.any():
                row, name, uuid = self._once(row, name, uuid)
        self._name, self._uuid = name, uuid
        self._counts = np.bincount(row, minlength=rows)

    def _once(self, row: "Int64s", name: "Int64s", uuid: "Int64s") -> tuple["Int64s", "Int64s", "Int64s"]:
        """Equal topics further apart, and halves of one topic."""
        code = (row * (len(self._names) + 1) + name + 1) * (len(self._ids) + 1) + uuid + 1
        kept = np.sort(np.unique(code, return_index=True)[1])
        row, name, uuid = row[kept], name[kept], uuid[kept]
        size = int(row[-1]) + 1
        counts = np.bincount(row, minlength=size)
        mixed = np.zeros(size, np.bool_)
        for column in (name, uuid):
            lacking = np.bincount(row[column < 0], minlength=size)
            mixed |= (lacking > 0) & (lacking < counts)
        if not mixed.any():
            return row, name, uuid
        halves = mixed[row]
        joined = whole(row[halves].tolist(), name[halves].tolist(), uuid[halves].tolist())
        rest = ~halves
        row = np.concatenate([row[rest], joined[0]])
        order = np.argsort(row, kind="stable")
        return row[order], np.concatenate([name[rest], joined[1]])[order], np.concatenate([uuid[rest], joined[2]])[order]

    def names(self) -> Array:
        """The column `topics`."""
        return self._lists([name.decode(errors="replace") for name in self._names], self._name)

    def ids(self) -> Array:
        """The column `topic_ids`, as Kafka prints its uuids."""
        known = [urlsafe_b64encode(uuid)[:22].decode() for uuid in self._ids]
        return self._lists(known, self._uuid)

    def _lists(self, known: list[str], places: "Int64s") -> Array:
        counts = self._counts
        if not len(places):
            return nulls(len(counts), pa.list_(pa.string()))
        offsets = np.zeros(len(counts) + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        values = take(pa.array([*known, None], pa.string()), np.where(places < 0, len(known), places))
        return lists(offsets, values, counts == 0)


def whole(rows: list[int], names: list[int], ids: list[int]) -> "NDArray[np.int64]":
    """Rows, names and ids in which the halves of a topic are one entry."""
    out: list[tuple[int, int, int]] = []
    found: list[Pair] = []
    before = -1
    for row, name, uuid in zip(rows, names, ids):
        if row != before:
            out += [(before, *pair) for pair in found]
            found, before = [], row
        join(found, (name, uuid))
    out += [(before, *pair) for pair in found]
    return np.array(out, np.int64).T


def join(found: list[Pair], pair: Pair) -> None:
    """Adds a topic to those of its row unless it, or its other half, is there."""
    name, uuid = pair
    for at, (known_name, known_uuid) in enumerate(found):
        same_name = name >= 0 and name == known_name and (uuid == known_uuid or -1 in (uuid, known_uuid))
        same_id = uuid >= 0 and uuid == known_uuid and (name == known_name or -1 in (name, known_name))
        if same_name or same_id:
            found[at] = max(name, known_name), max(uuid, known_uuid)
            return
    found.append(pair)
