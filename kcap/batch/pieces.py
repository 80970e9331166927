"""Splits batches whose messages name very many topics into several batches of fewer rows.

In: a `RowBatch`. Out: batches with its rows in their order, which share its bodies. Law: each row and the values of its
messages are unchanged. No batch has more than TOPICS_AT_ONCE topics besides those of one row.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kcap.analyzer import RowBatch
from kcap.decode import slots
from kcap.decode.projection import Projection
from kcap.kafka.body_values import entries_of, places_of
from kcap.limits import TOPICS_AT_ONCE

if TYPE_CHECKING:
    from kcap.arrays.vectors import Bools


def in_pieces(batch: RowBatch) -> Iterator[RowBatch]:
    """Yields the batch, in parts if its messages have too many topics: each takes some hundred bytes while rows are made."""
    projection = getattr(batch.bodies, "projection", None)
    carried, waiting = sum(len(values.topics) for values in batch.bodies.carried.values()), batch.bodies.waiting
    carried += 0 if waiting is None else len(waiting.topics[0])
    if projection is None or len(batch) < 2 or len(projection.topics[0]) + carried <= TOPICS_AT_ONCE:
        some = [batch]
        del batch, projection  # they would remain while the rows are written
        yield some.pop()
    else:
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
    topics = np.append(entries_of(projection.topics[0], np.arange(len(projection)))[1], 0)
    carried = batch.bodies.carried
    waited = np.array([[len(carried[at].topics) if at in carried else 0 for at in place.tolist()] for place in places])
    if batch.bodies.waiting is not None:
        waited += [batch.bodies.waiting.topic_counts(place) for place in places]
    many = np.cumsum(sum(topics[message] for message in messages) + waited.sum(axis=0)) // TOPICS_AT_ONCE
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

    messages = np.flatnonzero(wanted)
    parts: list[list[Any]] = []
    for table in (projection.topics, projection.wrapped, projection.elements):
        first, counts = entries_of(table[0], messages)
        places = places_of(first, counts)
        parts.append([column[places].astype(np.int64) for column in map(np.asarray, table)])
        if table is projection.topics:
            low, size, begins = first, counts, np.cumsum(counts) - counts
    topic = parts[2][slots.TOPIC]
    if len(topic):
        owner = np.searchsorted(low, topic, "right") - 1
        parts[2][slots.TOPIC] = np.where(
            (owner >= 0) & (topic - low[owner] < size[owner]), topic - low[owner] + begins[owner], -1
        )
    return replace(projection, topics=parts[0], wrapped=parts[1], elements=parts[2])
