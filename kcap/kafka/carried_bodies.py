"""Carries bodies of the fast path whose requests wait for a later batch.

In: a closed batch, and slots of it. Out: the new slots of their bodies. Law: a carried body has the values that it had in its
own batch.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from kcap.kafka.bodies import BodyCollector
from kcap.kafka.body_batch import BodyBatch
from kcap.kafka.body_values import UNKNOWN, WORDS, entries_of
from kcap.kafka.deferred_bodies import DeferredBodies
from kcap.kafka.waiting_bodies import WaitingBodies, both, packed
from kcap.limits import OVERTAKEN_BODY_BYTES, WAITING_BODIES_MAX, WAITING_TOPICS_MAX

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s = NDArray[np.int64]


def carried(bodies: BodyCollector, batch: BodyBatch | DeferredBodies, wanted: "Int64s") -> "Int64s":
    """Carries bodies of a closed batch of the fast path, given by slot. Returns their new slots, UNKNOWN for bodies that no
    program reads.
    """
    found = np.full(len(wanted), UNKNOWN)
    if not len(wanted):
        return found
    if isinstance(batch, DeferredBodies):
        batch, wanted = batch.some(wanted), np.arange(len(wanted))
    at = np.asarray(batch.dense)[wanted]
    alike = _alike(bodies, batch, wanted, at)
    places = np.flatnonzero(alike)
    if len(places):
        arena = np.frombuffer(batch.arena, np.uint8)
        projection: Any = batch.projection
        some = at[places]
        numbers = np.concatenate([projection.values[:, some], [projection.status[some], projection.mask[some]]])
        slots_from = bodies.next_slots(len(places))
        found[places] = numbered = np.arange(slots_from, slots_from + len(places))
        bodies.waiting = both(WaitingBodies(numbered, *packed(arena, numbers, projection.topics, some)), bodies.waiting)
    others = np.flatnonzero(~alike)
    for place, values in zip(others.tolist(), batch.several(wanted[others])):
        if values is not None:
            found[place] = bodies.carry(values)
    return found


def _alike(bodies: BodyCollector, batch: BodyBatch, wanted: "Int64s", at: "Int64s") -> Any:
    """Selects which of these bodies, messages `at` of the projection, are carried as columns."""
    projection: Any = batch.projection
    alike = at >= 0
    before = 0 if bodies.waiting is None else len(bodies.waiting)
    if batch.keep or before + len(at) > WAITING_BODIES_MAX or not len(projection.status):
        return np.zeros(len(at), np.bool_)
    status = projection.status[at]
    for word in WORDS:
        alike &= status != word
    alike &= entries_of(projection.topics[0], at)[1] <= WAITING_TOPICS_MAX
    alike &= entries_of(projection.wrapped[0], at)[1] == 0
    alike &= np.asarray(batch.ends)[wanted] - np.asarray(batch.starts)[wanted] > OVERTAKEN_BODY_BYTES
    return alike
