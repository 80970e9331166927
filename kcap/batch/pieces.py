"""Batches whose messages name very many topics, as several batches of fewer rows.

In: a `RowBatch`. Out: batches with its rows in their order, which share its bodies. Law: each row and what its messages say is
the same; but of one row alone, no batch has more than TOPICS_AT_ONCE topics beside those of a row.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kcap.analyzer import RowBatch
from kcap.decode import slots
from kcap.decode.projection import Projection
from kcap.limits import TOPICS_AT_ONCE

if TYPE_CHECKING:
    from kcap.arrays.vectors import Bools


def in_pieces(batch: RowBatch) -> Iterator[RowBatch]:
    """The batch itself unless its messages have too many topics: each takes some hundred bytes while rows are made of it."""
    projection = getattr(batch.bodies, "projection", None)
    if projection is None or len(projection.topics[0]) <= TOPICS_AT_ONCE or len(batch) < 2:
        yield batch
        return
    yield from _pieces(batch)


def _pieces(batch: RowBatch) -> Iterator[RowBatch]:
    import numpy as np

    from kcap.batch.columns import SIDES
    from kcap.batch.rows import RowColumns
    from kcap.kafka.frames import NO_BODY

    projection, rows = batch.bodies.projection, RowColumns(batch)
    dense = np.append(np.asarray(batch.bodies.dense, np.int64), -1)
    places: Any = [rows.number(f"{side}_slot").filled(NO_BODY) for side in SIDES]
    messages = [dense[np.where(place >= 0, place, -1)] for place in places]
    topics = np.append(np.bincount(np.asarray(projection.topics[0], np.int64), minlength=len(projection)), 0)
    many = np.cumsum(sum(topics[message] for message in messages)) // TOPICS_AT_ONCE
    cuts = [0, *(np.flatnonzero(np.diff(many)) + 1).tolist(), len(batch)]
    fast = batch.fast_rows
    count = 0 if fast is None else len(fast)
    order = np.arange(len(batch)) if fast is None else fast.merged(batch.orders)
    before = 0
    for low, high in pairwise(cuts):
        wanted = np.zeros(len(projection) + 1, np.bool_)
        for message in messages:
            wanted[message[low:high]] = True
        of_fast, others = order[low:high][order[low:high] < count], (order[low:high][order[low:high] >= count] - count).tolist()
        after = before + len(others)
        passed = [one for one in batch.passed_over if before <= one[0] < after or (high == len(batch) and one[0] >= after)]
        yield RowBatch(
            [batch.tuples[at] for at in others],
            batch.identities,
            replace(batch.bodies, projection=_of_messages(projection, wanted[:-1])),
            None if fast is None else replace(fast, columns=np.ascontiguousarray(fast.columns[:, of_fast])),
            [batch.orders[at] for at in others] if batch.orders else [],
            [(row - before, *rest) for row, *rest in passed],  # type: ignore[misc]
        )
        before = after


def _of_messages(projection: Projection, wanted: "Bools") -> Projection:
    """The projection without topics, wrapped messages and partitions of other messages."""
    import numpy as np

    first, last = np.flatnonzero(wanted)[[0, -1]] if wanted.any() else (0, -1)
    parts: list[list[Any]] = []
    for table in (projection.topics, projection.wrapped, projection.elements):
        of_message = np.asarray(table[0], np.int64)
        low, high = np.searchsorted(of_message, (first, last + 1)).tolist()  # entries are in the order of the messages
        inside = wanted[of_message[low:high]]
        parts.append([np.asarray(column[low:high], np.int64)[inside] for column in table])
        if table is projection.topics:
            place = np.full(len(of_message) + 1, -1, np.int64)
            place[low:high] = np.cumsum(inside) - 1
    parts[2][slots.TOPIC] = place[parts[2][slots.TOPIC]]
    return replace(projection, topics=parts[0], wrapped=parts[1], elements=parts[2])
