"""Projects the bodies of both paths as one batch.

In: the reference path's open batch and the fast path's table of bodies. Out: both in one buffer, projected. Law: the slots of
the fast path's bodies follow those of the reference path in the order of its table.
"""

from typing import Any

import numpy as np

from kcap.decode import projection_kernels  # noqa: F401 - where this module cannot be imported, neither can the fast path
from kcap.decode.projection import program_index
from kcap.fastpath.layout import KEYS, VERSIONS
from kcap.kafka.bodies import REQUEST, RESPONSE, BodyBatch, BodyCollector, projected
from kcap.kafka.deferred_bodies import DeferredBodies


def both_projected(bodies: BodyCollector, table: Any, fast_arena: Any, count: int, top: int) -> BodyBatch | DeferredBodies:
    """The reference path's bodies and the first `count` of the fast path's, which are the first `top` bytes of its arena. The
    batch holds that arena where it can, so that the fast path goes on with another.
    """
    size = len(bodies.arena)
    starts = np.concatenate([np.array(bodies.starts, np.int64), table[0, :count] + size])
    ends = np.concatenate([np.array(bodies.ends, np.int64), table[1, :count] + size])
    every = np.concatenate([np.array(bodies.programs, np.int64), programs(table[2, :count])])
    if bodies.deferred:
        return DeferredBodies(bodies.arena, fast_arena[:top], starts, ends, every, bodies.carried, compiled=True)
    mine = memoryview(fast_arena[:top])
    arena = bytearray(bodies.arena) + mine if size else mine
    return projected(arena, starts, ends, every, bodies.carried, compiled=True)


def programs(codes: Any) -> Any:
    """The programs for the kernel's codes: key, version and side as one number from -2 down; others are programs already."""
    noted = codes <= -2
    numbers = np.where(noted, -2 - codes, 0)
    keys, versions, sides = numbers >> 17, numbers >> 1 & 0xFFFF, numbers & 1
    places = (keys * VERSIONS + versions) * 2 + sides
    found = np.zeros(2 * KEYS * VERSIONS, np.int64)
    found[places] = 1
    for place in np.flatnonzero(found).tolist():
        key, version = divmod(place >> 1, VERSIONS)
        found[place] = program_index(key, version, RESPONSE if place & 1 else REQUEST)
    return np.where(noted, found[places], codes)
